"""From the bench's samples to page records, compared with plain decoding; pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from hsdkit.bench import Sample
from hsdkit.drafting_tally import ByLabel
from hsdkit.metrics.edit import edit_share
from hsdkit.results import FinishReason
from hsdkit.study.records import PageRecord, Turn

PageKey = tuple[str, int]
#: Raw output and how it ended, as Markdown.
Clean = Callable[[str, FinishReason], str]


def output_digest(tokens: Iterable[int]) -> str:
    """Tells outputs apart."""
    return hashlib.sha256(" ".join(map(str, tokens)).encode()).hexdigest()[:16]


def page_records(
    samples: Iterable[Sample],
    clean: Clean,
    baseline: Mapping[PageKey, PageRecord],
    drafts: Mapping[PageKey, str],
    fates: Mapping[PageKey, ByLabel],
) -> tuple[PageRecord, ...]:
    """One record a page, in order of appearance, from the samples of one side. `baseline` are the pages of plain
    decoding by (path, number), {} where these are the baseline themselves; pages that it lacks are not compared.
    `drafts` are texts by (file name, number), `fates` tell how they fared."""
    by_page: dict[PageKey, list[Sample]] = {}
    for sample in samples:
        by_page.setdefault((sample.document, sample.page), []).append(sample)
    named = {key: (Path(key[0]).name, key[1]) for key in by_page}
    return tuple(
        _page_record(rounds, clean, baseline.get(key), drafts.get(named[key]), fates.get(named[key], {}))
        for key, rounds in by_page.items()
    )


def _page_record(
    rounds: Sequence[Sample], clean: Clean, base: PageRecord | None, draft: str | None, fates: ByLabel
) -> PageRecord:
    last = rounds[-1]
    steps = [step for stage in last.output.stages for q in stage.sequences for step in q.steps]
    outputs = [output_digest(s.output.tokens) for s in rounds]
    texts = {o: clean(s.output.text, s.output.finish_reason) for o, s in zip(outputs, rounds, strict=True)}
    shares = {o: edit_share(text, base.text) for o, text in texts.items()} if base else {}
    return PageRecord(
        document=last.document,
        page=last.page,
        turns=tuple(map(turn, rounds)),
        tokens=len(last.output.tokens),
        steps=len(steps),
        accepted=sum(step.accepted for step in steps),
        emitted=sum(step.emitted for step in steps),
        forwards=sum(stage.forwards for stage in last.output.stages),
        finish_reason=last.output.finish_reason,
        text=texts[outputs[-1]],
        draft=draft,
        output=outputs[-1],
        baseline=base.turns if base else (),
        same=all(o == base.output for o in outputs) if base else None,
        edit=fmean(shares[o] for o in outputs) if base else None,
        draft_edit=edit_share(draft, base.text) if base and draft is not None else None,
        regions_read=sum(len(stage.sequences) for stage in last.output.stages if stage.name == "regions"),
        fates={label: found.to_json() for label, found in fates.items()},
    )


def turn(sample: Sample) -> Turn:
    host = sum(stage.times.host for stage in sample.output.stages)
    return Turn(sample.e2e, sample.decode, sample.render, sample.draft, sample.output.page_prefill, host)
