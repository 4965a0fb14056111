"""From the recorded steps of a run to the forward passes it made, and to those that plain decoding makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hsdkit.results import SequenceResult, StageResult
from hsdkit.roofline.costs import Pass


@dataclass(frozen=True, slots=True)
class Work:
    """What decoding some stages makes the model do: prompts, verification passes, image tokens of each image."""

    prefills: tuple[Pass, ...] = ()
    passes: tuple[Pass, ...] = ()
    images: tuple[int, ...] = ()

    def __add__(self, other: Work) -> Work:
        return Work(self.prefills + other.prefills, self.passes + other.passes, self.images + other.images)


def work(stage: StageResult, max_rows: int, prompt_scale: float = 1.0) -> Work:
    """Of a recorded stage whose sequences were decoded in batches of up to `max_rows`. Prompts may be scaled, for a
    model that spends more or fewer tokens on an image."""
    batches = [stage.sequences[i : i + max_rows] for i in range(0, len(stage.sequences), max_rows)]
    prompts = [[_prompt(q, prompt_scale) for q in batch] for batch in batches]
    return Work(
        tuple(Pass(len(lengths), max(lengths), 0, 1) for lengths in prompts),
        tuple(p for batch, lengths in zip(batches, prompts, strict=True) for p in _passes(batch, lengths)),
        tuple(round(prompt_scale * (q.image_tokens or q.prompt_tokens)) for q in stage.sequences),
    )


def _prompt(sequence: SequenceResult, scale: float) -> int:
    return max(1, round(scale * sequence.prompt_tokens))


def _passes(batch: Sequence[SequenceResult], prompts: Sequence[int]) -> Iterator[Pass]:
    """Pass k makes step k of every row that has one. Before it, a row's cache holds its prompt and all it has emitted
    but the last token, the root of the step's tree."""
    cached = list(prompts)
    for k in range(max((len(q.steps) for q in batch), default=0)):
        live = [b for b, q in enumerate(batch) if k < len(q.steps)]
        width = 1 + max(batch[b].steps[k].nodes for b in live)
        yield Pass(len(live), width, max(cached[b] for b in live), width)
        for b in live:
            cached[b] += batch[b].steps[k].emitted


def plain_work(page: StageResult, prompt_scale: float = 1.0) -> Work:
    """What plain decoding of the recorded page stage makes the model do: the same tokens, one a pass."""
    found = Work()
    for q in page.sequences:
        prompt = _prompt(q, prompt_scale)
        emitted = sum(step.emitted for step in q.steps)
        passes = tuple(Pass(1, 1, prompt + i, 1) for i in range(emitted))
        image = round(prompt_scale * (q.image_tokens or q.prompt_tokens))
        found += Work((Pass(1, prompt, 0, 1),), passes, (image,))
    return found


def forwards_agree(stage: StageResult, max_rows: int) -> bool:
    """Whether batches of that size explain the number of passes that the run counted."""
    return len(work(stage, max_rows).passes) == stage.forwards
