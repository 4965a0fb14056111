"""Which pages of a benchmark to run: those of some groups, and how many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hsdkit.benchmarks import Item
from hsdkit.errors import BenchmarkError, ConfigError
from hsdkit.suggestions import did_you_mean, nearest


def select(items: Sequence[Item], subset: str | None = None, limit: int | None = None) -> list[Item]:
    """The pages of the benchmark to run, in its order.

    `subset` is `VALUE` or `GROUP=VALUE`, several with commas: values of one group are alternatives, groups must all be
    met (`newspaper,language=english`). `limit` pages are spread evenly over what is left, the same ones every time.
    Raises `ConfigError` for values that no page has.
    """
    found = list(items)
    for group, values in _wanted(items, subset).items():
        found = [item for item in found if values & set(item.groups.get(group, ()))]
    if not found:
        raise ConfigError(f"subset={subset}: no page is in all of these groups" if subset else "the benchmark is empty")
    if limit is None or limit >= len(found):
        return found
    return [found[i * len(found) // limit] for i in range(limit)]


def some_are_there(items: Sequence[Item], options: Iterable[str]) -> None:
    """Raises `BenchmarkError` where no page's file is there: the folder is wrong, not the pages. Where some are, the
    others are pages that fail. `options` are the benchmark's."""
    if not any(item.document.is_file() for item in items):
        raise BenchmarkError(
            f"{items[0].document}: no such file, nor is that of any other of the {len(items)} pages: put them there, "
            f"or name their folder (options of the benchmark: {', '.join(f'benchmark.{o}' for o in options)})"
        )


def _wanted(items: Sequence[Item], subset: str | None) -> dict[str, set[str]]:
    known: dict[str, dict[str, None]] = {}
    for item in items:
        for group, values in item.groups.items():
            known.setdefault(group, {}).update(dict.fromkeys(values))
    wanted: dict[str, set[str]] = {}
    for given in (part.strip() for part in (subset or "").split(",") if part.strip()):
        name, equals, value = given.partition("=")
        groups = [name] if equals else [group for group, values in known.items() if given in values]
        if not groups or (equals and value not in known.get(name, {})):
            options = [f"{g}={v}" if equals else v for g, values in known.items() for v in values]
            near = did_you_mean([repr(n) for n in nearest(given, options)])
            shown = "; ".join(f"{g}: {', '.join(sorted(values))}" for g, values in known.items()) or "no groups"
            raise ConfigError(f"subset={given}: no page is in such a group:{near} known: {shown}")
        wanted.setdefault(groups[0], set()).add(value if equals else given)
    return wanted
