"""A page's text as a model that misreads would have written it, so that training shows how to go on after mistakes."""

import random
import string

from training.pen import Page


def with_mistakes(page: Page, rng: random.Random, share: float = 0.04) -> tuple[Page, list[bool]]:
    """Misspells, repeats or skips something at a share of the words; also whether each glyph is as it should be.

    What a mistake touches is not to be taught, and what follows is: the true text of the place where the reader is.
    """
    maker = _Mistakes(page, rng)
    start, count = 0, len(page.glyphs)
    while start < count:
        end = start
        while end < count and page.glyphs[end].isalnum():
            end += 1
        if end - start > 1 and rng.random() < share:
            start = maker.spoil(start, end)
        else:
            end = max(end, start + 1)
            maker.copy(start, end)
            start = end
    return Page(page.image, maker.glyphs, maker.cells), maker.right


class _Mistakes:
    def __init__(self, page: Page, rng: random.Random) -> None:
        self.page, self.rng = page, rng
        self.glyphs: list[str] = []
        self.cells: list[int] = []
        self.right: list[bool] = []
        self.touched = False  # the next glyph follows a gap

    def copy(self, start: int, end: int, right: bool = True) -> None:
        for i in range(start, end):
            self.glyphs.append(self.page.glyphs[i])
            self.cells.append(self.page.cells[i])
            self.right.append(right and not self.touched)
            self.touched = False

    def write(self, letters: str, cell: int) -> None:
        self.glyphs += letters
        self.cells += [cell] * len(letters)
        self.right += [False] * len(letters)

    def spoil(self, start: int, end: int) -> int:
        """Copies the word with a mistake in it; returns where the page goes on."""
        r, glyphs, cells = self.rng, self.page.glyphs, self.page.cells
        kind = r.choices(
            ("other", "missing", "double", "swapped", "ending", "again", "skipped"), (30, 20, 10, 5, 15, 12, 8)
        )[0]
        at = r.randrange(start, end)
        if kind == "swapped" and at + 1 == end:
            kind = "other"
        if kind == "again":
            self.copy(start, end)
            begin = max(start - r.randint(0, 60), 0)
            while begin < start and glyphs[begin] != " ":
                begin += 1
            self.write(" ", cells[end - 1])
            self.copy(min(begin + 1, start), end, right=False)
        elif kind == "skipped":
            self.copy(start, end)
            far = min(end + r.randint(2, 60), len(glyphs) - 1)  # the end of the page is never said too early
            while end < far and len(glyphs[end]) == 1 and glyphs[end] not in "\n$":
                end += 1
            self.touched = True
        elif kind == "ending":
            self.copy(start, at)
            self.write("".join(r.choices(string.ascii_lowercase, k=r.randint(1, 4))), cells[at])
        elif kind == "swapped":
            self.copy(start, at)
            self.copy(at + 1, at + 2, right=False)
            self.copy(at, at + 1, right=False)
            self.copy(at + 2, end)
        elif kind == "double":
            self.copy(start, at + 1)
            self.write(glyphs[at], cells[at])
            self.copy(at + 1, end)
        elif kind == "missing":
            self.copy(start, at)
            self.touched = True
            self.copy(at + 1, end)
        else:
            self.copy(start, at)
            self.write(r.choice(string.ascii_letters + string.digits), cells[at])
            self.copy(at + 1, end)
        return end
