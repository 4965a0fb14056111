"""Text to draw: dictionary words, numbers, dates and random strings, so that the model has to read and cannot guess."""

import os
import random
import string
from functools import cache
from pathlib import Path
from typing import ClassVar
from zlib import crc32

from training.symbols import OTHER

DICTIONARY = Path(os.environ.get("TRAINING_WORDS", "/usr/share/dict/words"))
COMMON = """
the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one
you were all her she there would their we him been has when who will no more if out so up said what its about than
into them can only other time new some could these two may first then do any like my now over such our man me even
most made after also did many off before must well back through years where much your way down should because long
each just state those people too mr how little good world make very year still see work life between using results
method data model table figure section system process number report total value based used given per page document
information service order company date price amount research analysis however therefore both
""".split()  # noqa: SIM905


@cache
def vocabulary(split: str) -> tuple[str, ...]:
    """Dictionary words of one split, "train" or "held"; one word in ten is never trained on."""
    words = [w.strip() for w in DICTIONARY.read_text(encoding="utf-8").splitlines()]
    words = [w for w in words if w.isascii() and 1 < len(w) < 14 and w.replace("'", "").isalpha()]
    words = [w for w in words if "'" not in w or crc32(w.encode()) % 15 == 0]  # Debian's list is a quarter possessives
    return tuple(w for w in words if (crc32(w[::-1].encode()) % 10 == 0) == (split == "held"))


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:] if word[:1].isascii() else word


class Writer:
    """Draws words at random. `style` sets the shares of words, numbers and random strings."""

    STYLES: ClassVar = {"prose": (0.93, 0.05), "plain": (0.8, 0.14), "mixed": (0.45, 0.3), "codes": (0.15, 0.35)}

    def __init__(self, rng: random.Random, split: str = "train", style: str = "plain") -> None:
        self.rng = rng
        self.split = split
        self.words = vocabulary(split)
        self.style = style
        # On such a page words and phrases recur, so that the words before do not tell where the model is.
        few = rng.random() < 0.4
        self.few = [self._any_word() for _ in range(rng.randint(6, 40))] if few else []

    def word(self) -> str:
        """One word without spaces, in the shares of the style."""
        words, numbers = self.STYLES[self.style]
        u = self.rng.random()
        if u < words:
            return self._word()
        if u < words + numbers:
            return self.number()
        return self._noise()

    def _any_word(self) -> str:
        return self.rng.choice(self.words) if self.rng.random() < 0.6 else self.rng.choice(COMMON)

    def _word(self) -> str:
        r = self.rng
        word = r.choice(self.few) if self.few and r.random() < 0.75 else self._any_word()
        u = r.random()
        if u < 0.1:
            word = word.capitalize()
        elif u < 0.14:
            word = word.upper()
        elif u < 0.17:
            word = f"{word}-{r.choice(self.words)}"
        elif u < 0.19:
            word = r.choice(['"{}"', "({})", "“{}”", "‘{}’"]).format(word)
        elif u < 0.2:
            at = r.randrange(len(word))
            word = word[:at] + r.choice(OTHER[8:27]) + word[at:]
        return word

    def number(self) -> str:
        """A number, date, price, share, reference or time."""
        r = self.rng
        pick = r.randrange(14)
        if pick == 0:
            return str(r.randrange(10 ** r.randint(1, 6)))
        if pick == 1:
            return f"{r.randrange(10 ** r.randint(1, 7)):,}"
        if pick == 2:
            return f"{r.uniform(0, 10 ** r.randint(0, 4)):.{r.randint(1, 3)}f}"
        if pick == 3:
            return f"{r.randint(1950, 2030)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"
        if pick == 4:
            return f"{r.choice('$€£')}{r.randrange(2000):,}.{r.randrange(100):02d}"
        if pick == 5:
            return f"{r.uniform(0, 100):.{r.randint(0, 2)}f}%"
        if pick == 6:
            return f"({r.randrange(100)})"
        if pick == 7:
            return f"{r.randint(1, 12)}:{r.randrange(60):02d}"
        if pick == 8:
            return f"[{r.randrange(60)}]"
        if pick == 9:
            return f"{r.randint(1, 28)}/{r.randint(1, 12)}/{r.randint(1990, 2030)}"
        if pick == 10:
            return f"{r.choice('-+±')}{r.uniform(0, 10 ** r.randint(0, 3)):.{r.randint(0, 2)}f}"
        if pick == 11:
            return str(r.randint(1900, 2030))
        if pick == 12:
            return f"{r.randrange(100)}{r.choice(['–', '-', '×'])}{r.randrange(1000)}"
        return f"{r.randint(1, 999)}{r.choice(['kg', 'cm', 'px', '°', 'ms', ' ', 'A', 'b', '²', 'th'])}".strip()

    def _noise(self) -> str:
        r = self.rng
        u = r.random()
        if u < 0.1:
            return f"{self._letters(5)}@{self._letters(6)}.{r.choice(['com', 'org', 'net'])}"
        if u < 0.2:
            return f"www.{self._letters(7)}.{r.choice(['com', 'org'])}/{self._letters(4)}"
        alphabet = r.choice(
            [
                string.ascii_lowercase,
                string.ascii_letters,
                string.ascii_letters + string.digits,
                string.ascii_uppercase + string.digits,
                string.ascii_letters + string.digits + string.punctuation,
                string.ascii_lowercase + OTHER,
            ]
        )
        return "".join(r.choice(alphabet) for _ in range(r.randint(1, 9)))

    def _letters(self, n: int) -> str:
        return "".join(self.rng.choice(string.ascii_lowercase) for _ in range(self.rng.randint(2, n)))

    def sentence(self, n: int) -> list[str]:
        """`n` words; most begin with a capital and end with a full stop."""
        r = self.rng
        words = [self.word() for _ in range(n)]
        if r.random() < 0.85:
            words[0] = _capital(words[0])
        for i in range(n - 1):
            if r.random() < 0.08:
                words[i] += r.choice([",", ",", ",", ",", ";", ":", " –"])
        words[-1] += r.choice([".", ".", ".", ".", ".", "?", "!", ""])
        return " ".join(words).split(" ")

    def prose(self, n: int) -> list[str]:
        """About `n` words in sentences."""
        words: list[str] = []
        while len(words) < n:
            words += self.sentence(self.rng.randint(4, 14))
        return words[:n] if self.rng.random() < 0.3 else words

    def title(self, n: int) -> list[str]:
        """A heading of `n` words, sometimes numbered; never ends with a full stop."""
        r = self.rng
        words = self.sentence(n)
        if words[-1].endswith(".") and len(words[-1]) > 1:
            words[-1] = words[-1][:-1]
        if r.random() < 0.25:
            words = [_capital(word) for word in words]
        if r.random() < 0.25:
            words = [".".join(str(r.randint(1, 9)) for _ in range(r.randint(1, 3))), *words]
        return words
