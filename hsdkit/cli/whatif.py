"""`hsdkit whatif`: what a recorded run would cost and gain with another model, on another device."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsdkit.cli import console
from hsdkit.cli.run import split_arguments
from hsdkit.errors import ConfigError, HsdkitError
from hsdkit.suggestions import did_you_mean, nearest

if TYPE_CHECKING:
    from hsdkit.roofline import Machine, MeasuredEngine, Records, Shape, SideWork

HELP = """Predict what a recorded run costs and gains on another device, with a model of another size.

Reads the steps in NAME.json of `hsdkit run`, in bench.json of `hsdkit bench`
or in a folder of `hsdkit eval` (which hold both sides, so that predictions
stand beside measurements), and counts operations and bytes of every pass
from the model's config.json. No weights and no GPU are needed; for this
machine the recorded model, if it is here, is loaded and measured. The
acceptance is that of the recording.

[bold]Options[/]

  device=NAME,...  A100, H100, H200, L4 (published peaks: times are lower
                   bounds), cpu: this machine, measured for some seconds: the
                   recorded model itself, or from its config [dim](cpu)[/]
  model=MODEL      a config.json, a checkpoint folder, the name of a target or
                   a Hugging Face id [dim](the model of the recording)[/]
  dtype=TYPE       fp32, bf16, fp16, fp8 [dim](as recorded on cpu, bf16 elsewhere)[/]
  prompt=N         tokens of a page's prompt, for a model that spends more or
                   fewer on an image; crops' change in proportion
                   [dim](as recorded)[/]
  threads=N        CPU threads to measure with [dim](as recorded)[/]
  check=true       how far predictions for this machine are off: each page
                   predicted from the recording's others, beside what it took

[bold]Examples[/]

  hsdkit bench report.pdf drafter=pdftext
  hsdkit whatif out/bench.json                [dim]this machine, and what it took[/]
  hsdkit whatif out/bench.json device=A100,H200 model=hunyuanocr prompt=4000
  hsdkit whatif out/report.json device=L4 model=Qwen/Qwen2.5-VL-7B-Instruct
  hsdkit whatif out/bench.json check=true

[bold]Exit code[/]  0: predicted; 1: the recording cannot be read; 2: usage."""

_OPTIONS = ("device", "model", "dtype", "prompt", "threads", "check")


@dataclass(frozen=True, slots=True)
class Question:
    """The options, read. `dtype` "" stands for the default of each device."""

    devices: tuple[str, ...]
    model: str | None
    dtype: str
    prompt: int | None
    threads: int | None
    check: bool = False


def whatif(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE|FILE", show_default=False, help="Options, and files with recorded steps."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    console.set_up(debug)
    options, files = split_arguments(arguments or [])
    question = read_question(options)
    if not files:
        raise ConfigError("no recording: give a NAME.json of `hsdkit run`, a bench.json or a folder of `hsdkit eval`")
    (check if question.check else answer)(question, [Path(f) for f in files], as_json)


whatif.__doc__ = HELP


def read_question(options: list[str]) -> Question:
    """Raises `ConfigError` for an unknown option or a value out of range."""
    from hsdkit.roofline import BYTES, CPU, device

    given: dict[str, str] = {}
    for option in options:
        key, _, value = option.partition("=")
        if key not in _OPTIONS:
            near = did_you_mean(nearest(key, _OPTIONS))
            raise ConfigError(f"no option {key!r}:{near} known: {', '.join(_OPTIONS)}")
        given[key] = value
    names = tuple(dict.fromkeys(n.strip() for n in given.get("device", CPU).split(",") if n.strip()))
    devices = tuple(CPU if n.lower() == CPU else device(n).name for n in names)
    if not devices:
        raise ConfigError("device=: name at least one")
    dtype = given.get("dtype", "")
    if dtype and dtype not in BYTES:
        raise ConfigError(f"dtype={dtype}: must be one of {', '.join(BYTES)}")
    model = given.get("model")
    if model == "":
        raise ConfigError("model=: is empty")
    if given.get("check", "false") not in ("true", "false"):
        raise ConfigError(f"check={given['check']}: must be true or false")
    checked = given.get("check") == "true"
    if checked and (others := [k for k in given if k not in ("check", "threads")]):
        raise ConfigError(f"check=true: is for the recorded model on this machine: leave {', '.join(others)} out")
    prompt, threads = _number(given, "prompt", 1_000_000), _number(given, "threads", 1024)
    return Question(devices, model, dtype, prompt, threads, checked)


def _number(given: dict[str, str], key: str, most: int) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= most:
        raise ConfigError(f"{key}={value}: must be a number from 1 to {most}")
    return int(value)


def answer(question: Question, files: list[Path], as_json: bool) -> None:
    """Predict for each device in turn and print."""
    from hsdkit.cli.whatif_output import cost_table, figures, notes_of, print_machine, print_recording
    from hsdkit.roofline import CPU, load, predict, sides

    records = load(files)
    shape = find_model(question, records)
    recorded_prompt = records.page_prompt
    scale = question.prompt / recorded_prompt if question.prompt and recorded_prompt else 1.0
    made = sides(records, scale)
    out = console.console(sys.stdout)
    if not as_json:
        print_recording(out, records, shape, made, round(recorded_prompt * scale))
    found, told = [], ""
    why_not = ""
    for name in question.devices:
        dtype = question.dtype or (records.dtype if name == CPU else "bf16")
        same = name == CPU and question.model is None and scale == 1 and dtype == records.dtype and records.on_cpu
        threads = question.threads or records.threads
        own, why_not = find_own(records, made, threads) if same else (None, why_not)
        machine = own or find_machine(name, dtype, threads)
        predictions = [predict(side, shape, machine, dtype) for side in made]
        if as_json:
            found.append(figures(predictions, machine, dtype, same))
        else:
            if dtype != told:
                out.print(cost_table(predictions, dtype))
                told = dtype
            print_machine(out, shape, predictions, machine, dtype, same)
    elsewhere = question.devices != (CPU,)
    notes = notes_of(records, shape, made, question.model is not None, scale != 1, elsewhere)
    notes += [why_not] if why_not else []
    if as_json:
        typer.echo(json.dumps({"model": shape.name, "predictions": found, "notes": notes}, indent=1))
    else:
        for note in notes:
            console.warn(note)


def check(question: Question, files: list[Path], as_json: bool) -> None:
    """Predict every recorded page from the others, for this machine, and print both."""
    from hsdkit.cli.check_output import figures, lines
    from hsdkit.roofline import CPU, load, sides
    from hsdkit.roofline.check import check as checked

    records = load(files)
    if not records.on_cpu:
        raise ConfigError("check=true: the recording was not made on a CPU, and only this CPU can be measured")
    shape = find_model(question, records)
    threads = question.threads or records.threads
    own, why_not = find_own(records, sides(records), threads)
    general = find_machine(CPU, records.dtype, threads)
    held = checked(records, shape, own or general, records.dtype, general if own else None)
    typer.echo(json.dumps(figures(held), indent=1) if as_json else "\n".join(lines(held, own is not None)))
    if why_not:
        console.warn(why_not)


def find_model(question: Question, records: Records) -> Shape:
    """The shape of the model asked for, or of the recorded one."""
    from hsdkit.roofline.models import find_shape

    if question.model is not None:
        return find_shape(question.model)
    options = records.target
    name = options.get("model") or options.get("name")
    if not name:
        raise ConfigError("the recording does not say which model made it: give model=")
    return find_shape(str(name), options.get("revision"))


def find_own(records: Records, made: Sequence[SideWork], threads: int | None) -> tuple[MeasuredEngine | None, str]:
    """The recorded model on this machine, measured now, from its own passes; or None and why it could not be."""
    from hsdkit.roofline.steps import Work
    from hsdkit.roofline.time_engine import measure_engine, recorded_engine

    work = sum((part for side in made for part in (side.page, side.before)), Work())
    if not work.passes:
        return None, ""
    with console.console().status("measuring the recorded model on this CPU"):
        try:
            return measure_engine(*recorded_engine(records.settings), work, threads), ""
        except HsdkitError as e:
            return None, f"the recorded model is not measured here ({e}): its times follow from its config alone"


def find_machine(name: str, dtype: str, threads: int | None) -> Machine:
    """A published device, or this machine, measured now."""
    from hsdkit.roofline import CPU, device

    if name != CPU:
        return device(name)
    if dtype == "fp8":
        raise ConfigError("dtype=fp8: not measured on a CPU; say dtype=fp32 or bf16")
    from hsdkit.roofline.calibrate import calibrate

    err = console.console()
    with err.status("measuring this CPU"):
        return calibrate(dtype, threads)
