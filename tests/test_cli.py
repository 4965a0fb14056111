"""The command line in process: arguments, files, exit codes, one-line errors; and, in processes of their own, what is
imported and what Ctrl-C leaves."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from rich.console import Console
from toys import TOY, blank_pdf, register_toys
from typer.testing import CliRunner

from hsdkit.cli.app import app
from hsdkit.cli.display import BarDisplay, LineDisplay
from hsdkit.cli.run import split_arguments
from hsdkit.draft_files import load_drafts
from hsdkit.results import DocumentResult, PageResult


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register_toys()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hsdkit(*arguments: str) -> Any:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def run(*arguments: str) -> Any:
    return hsdkit("run", *TOY, *arguments)


def load(path: str) -> DocumentResult:
    return DocumentResult.load(path)


# -- what is written


def test_a_document_becomes_markdown_and_json(workplace: Path):
    blank_pdf(workplace / "report.pdf", 2)
    result = run("report.pdf")
    assert result.exit_code == 0
    assert Path("out/report.md").read_text() == "page 1 of report.pdf\n\npage 2 of report.pdf\n"
    document = load("out/report.json")
    assert [p.number for p in document.pages] == [1, 2]
    assert document.versions["model"] == "toy-checkpoint"
    assert sorted(os.listdir("out")) == ["report.json", "report.md"]


def test_json_holds_summary_histogram_and_times(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    run("a.pdf")
    data = json.loads(Path("out/a.json").read_text())
    page = data["pages"][0]
    assert page["summary"]["accepted_lengths"] == {"4": page["summary"]["steps"]}
    assert page["summary"]["aal"] == 4
    assert page["summary"]["seconds"]["page_decode"] > 0
    assert data["summary"]["pages"] == 1
    assert data["settings"]["verifier"]["name"] == "toy"
    assert page["tau"] == 1


def test_the_summary_says_what_how_fast_and_where(workplace: Path):
    blank_pdf(workplace / "a.pdf", 2)
    output = run("a.pdf", "verifier.tau=0.5").stderr
    assert "a.pdf, page 1:" in output
    assert "1 document, 2 pages" in output
    assert "AAL 4.00" in output
    assert "tau=0.5" in output
    assert "out/a.md" in output
    assert "exact" not in output
    assert "exact (tau=1)" in run("a.pdf").stderr


def test_quiet_says_nothing_but_errors(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    assert run("a.pdf", "--quiet").output == ""
    assert "page 1" in run("a.pdf", "verifier.fail=[1]", "-q").output


def test_stream_prints_the_text_to_stdout(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    assert run("a.pdf", "--stream").stdout == "RAW page 1 of a.pdf\n\n"


def test_report_writes_one_html_a_document(workplace: Path):
    blank_pdf(workplace / "a.pdf", 2)
    assert run("a.pdf", "--report").exit_code == 0
    html = Path("out/a.html").read_text()
    assert html.count("data:image/jpeg;base64,") == 2


def test_a_report_that_fails_costs_no_page(workplace: Path):
    blank_pdf(workplace / "a.pdf", 2)
    Path("out/a.html").mkdir(parents=True)
    result = run("a.pdf", "--report")
    assert result.exit_code == 1
    assert "a.html: the report could not be written" in result.stderr
    assert len(load("out/a.json").pages) == 2


def test_drafts_are_saved_on_request(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    run("a.pdf", "save_drafts=true")
    saved = load_drafts("out/a.drafts.json")
    assert [r.text for r in saved["a.pdf", 1].draft.regions] == ["drafted"]
    first = Path("out/a.json").read_text()
    assert run("a.pdf", "drafter=replay", "drafter.path=out/a.drafts.json").exit_code == 0
    again = load("out/a.json").pages[0]
    assert again.draft.regions == DocumentResult.from_json(first).pages[0].draft.regions


def test_folders_globs_and_same_stems(workplace: Path):
    (workplace / "in").mkdir()
    blank_pdf(workplace / "in/x.pdf")
    Image.new("RGB", (60, 40), "white").save(workplace / "in/x.png")
    blank_pdf(workplace / "y.pdf")
    assert run("in", "y*.pdf", "output=there").exit_code == 0
    assert sorted(p.name for p in Path("there").glob("*.md")) == ["x.pdf.md", "x.png.md", "y.md"]


# -- failures


def test_a_broken_file_fails_and_the_good_one_is_written(workplace: Path):
    (workplace / "broken.pdf").write_bytes(b"%PDF-1.7 nonsense")
    (workplace / "empty.pdf").write_bytes(b"")
    blank_pdf(workplace / "good.pdf")
    result = run("broken.pdf", "empty.pdf", "missing.pdf", "good.pdf")
    assert result.exit_code == 1
    assert Path("out/good.md").read_text() == "page 1 of good.pdf\n"
    for name in ("broken.pdf", "empty.pdf", "missing.pdf"):
        assert f"{name}:" in result.stderr
    assert "3 failures" in result.stderr
    failed = load("out/broken.json")
    assert failed.pages == ()
    assert failed.error is not None
    assert not Path("out/broken.md").exists()


def test_a_failed_page_fails_the_run_and_the_others_are_written(workplace: Path):
    blank_pdf(workplace / "a.pdf", 3)
    result = run("a.pdf", "verifier.fail=[2]")
    assert result.exit_code == 1
    assert "a.pdf, page 2: RuntimeError: the toy broke" in result.stderr
    assert Path("out/a.md").read_text() == "page 1 of a.pdf\n\npage 3 of a.pdf\n"


def test_ctrl_c_keeps_the_finished_pages(workplace: Path):
    blank_pdf(workplace / "a.pdf", 3)
    blank_pdf(workplace / "b.pdf")
    result = run("a.pdf", "b.pdf", "verifier.interrupt=[2]", "--report")
    assert result.exit_code == 130
    assert Path("out/a.md").read_text() == "page 1 of a.pdf\n"
    document = load("out/a.json")
    assert len(document.pages) == 1
    assert document.error == "interrupted after 1 page"
    assert "</html>" in Path("out/a.html").read_text()
    assert not Path("out/b.json").exists()
    assert "interrupted" in result.stderr


def test_debug_shows_the_traceback_of_a_failed_page(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    process = shell("run", *TOY, "a.pdf", "verifier.fail=[1]", "--debug")
    assert process.returncode == 1
    assert "Traceback" in process.stderr
    assert "RuntimeError: the toy" in process.stderr
    assert "Traceback" not in shell("run", *TOY, "a.pdf", "verifier.fail=[1]").stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verifer.tau=1", "a.pdf"], "did you mean verifier.tau"),
        (["target=teeny", "a.pdf"], "no target named 'teeny'"),
        (["pages=x", "a.pdf"], "neither a page number nor a range"),
        (["verifier.tau=0", "a.pdf"], "tau must be above 0"),
        (["--no-such-option"], "No such option"),
        (["output=a.pdf", "a.pdf"], "output=a.pdf: no such folder can be made"),
    ],
)
def test_wrong_usage_is_one_clear_error(workplace: Path, arguments: list[str], said: str):
    blank_pdf(workplace / "a.pdf")
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert said in result.stderr
    assert result.exit_code == (1 if arguments[0].startswith("output") else 2)


@pytest.mark.parametrize("name", ["new\nline.pdf", "\x1b[31mred.pdf", "[bold]x.pdf", "~nobody.pdf", "\u202ertl.pdf"])
def test_odd_names_are_shown_as_they_are_on_one_line(workplace: Path, name: str):
    blank_pdf(workplace / name)
    result = run(f"./{name}", f"{name}.missing", "--quiet")
    assert result.exit_code == 1
    assert len(list(Path("out").iterdir())) == 2
    assert result.stderr.count("\n") == 1
    assert not {"\x1b", "\u202e"} & set(result.stderr)


def test_names_as_long_as_a_name_may_be_have_results_too(workplace: Path):
    names = ["x" * 251 + ".pdf", "x" * 250 + "y.pdf", "\u00e9" * 125 + ".pdf", "a.pdf"]
    for name in names:
        blank_pdf(workplace / name)
    assert run(*names, "save_drafts=true", "--report").exit_code == 0
    assert len(list(Path("out").iterdir())) == 16


@pytest.mark.parametrize("name", ["x" * 5000, "a=" + "x" * 5000, "\0.pdf"])
def test_a_name_no_file_can_have_is_an_ordinary_failure(workplace: Path, name: str):
    blank_pdf(workplace / "a.pdf")
    result = run(name if name[1] != "=" else f"./{name}", "a.pdf")
    assert result.exit_code == 1
    assert "bug" not in result.stderr
    assert Path("out/a.md").exists()
    assert split_arguments(["verifier.text=" + "x" * 5000])[1] == []


def test_no_input_is_an_error_that_says_what_to_name(workplace: Path):
    result = run()
    assert result.exit_code == 2
    assert "name a PDF or image file" in result.stderr


def test_options_written_in_another_way_are_told_how(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    spaced = run("a.pdf", "output", "=", "there", "Drafter.words=3", "nope.pdf")
    assert spaced.exit_code == 1
    hinted = [line.split()[1].rstrip(":") for line in spaced.stderr.splitlines() if "KEY=VALUE" in line]
    assert hinted == ["output", "=", "Drafter.words=3"]
    dashed = run("a.pdf", "--verifier.tau=0.5")
    assert dashed.exit_code == 2
    assert "verifier.tau=..." in dashed.stderr
    assert "KEY=VALUE, such as" not in run("a.pdf", "--reports").stderr
    several = hsdkit("bench", *TOY, "a.pdf", "verifier=autoregressive,hsd")
    assert several.exit_code == 2
    assert "verifiers=autoregressive,hsd" in several.stderr


def test_a_missing_extra_names_the_package_to_install(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    result = run("drafter=toy_missing", "a.pdf")
    assert result.exit_code == 1
    assert 'pip install "hsdkit[toys]"' in result.stderr


# -- arguments


def test_arguments_are_overrides_unless_a_file_of_that_name_is_there(workplace: Path):
    (workplace / "a=b.pdf").write_text("")
    assert split_arguments(["tau=1", "x.pdf", "a=b.pdf", "./c=d.pdf", "verifier.tau=1"]) == (
        ["tau=1", "verifier.tau=1"],
        ["x.pdf", "a=b.pdf", "./c=d.pdf"],
    )


def test_show_config_prints_yaml_that_reads_back(workplace: Path):
    first = run("verifier.tau=0.5", "a.pdf", "--show-config")
    assert first.exit_code == 0
    config = yaml.safe_load(first.stdout)
    assert config["verifier"] == {"name": "toy", **config["verifier"]}
    assert (config["verifier"]["tau"], config["input"]) == (0.5, ["a.pdf"])
    Path("mine.yaml").write_text(first.stdout)
    again = yaml.safe_load(hsdkit("run", "experiment=mine.yaml", "--show-config").stdout)
    assert {**again, "experiment": None} == config


# -- the other commands


def test_plugins_lists_kind_package_state_and_what_is_missing(workplace: Path):
    output = hsdkit("plugins").stdout
    assert "toy_missing" in output
    assert 'needs surely_not_installed: pip install "hsdkit[toys]"' in output
    only = hsdkit("plugins", "target").stdout
    assert "toy" in only
    assert not any(line.startswith("drafter") for line in only.splitlines())
    assert hsdkit("plugins", "printer").exit_code == 2


def test_doctor_loads_the_setup_and_fails_when_it_cannot(workplace: Path):
    good = hsdkit("doctor", *TOY)
    assert good.exit_code == 0
    assert "can run drafter=toy, target=toy" in good.stdout
    for fact in ("python", "torch", "transformers", "memory", "threads", "devices"):
        assert fact in good.stdout
    bad = hsdkit("doctor", *TOY, "drafter=toy_missing")
    assert bad.exit_code == 1
    assert "cannot run" in bad.stdout
    assert hsdkit("doctor", "drafter=toi").exit_code == 2


def test_version_and_help():
    assert hsdkit("--version").stdout.startswith("hsdkit 0")
    for command in ("run", "plugins", "doctor"):
        text = hsdkit(command, "--help").stdout
        assert f"hsdkit {command}" in text


# -- processes of their own

HEAVY = ("torch", "transformers", "onnxruntime", "rapidocr", "numpy", "PIL", "pypdfium2")


def shell(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own that knows the toys."""
    code = "import toys; toys.register_toys(); from hsdkit.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["plugins"], ["run", "--help"], ["run", "--show-config"], ["--version"]]
)
def test_light_commands_import_nothing_heavy(arguments: list[str]):
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print('HEAVY', [m for m in {HEAVY} if m in sys.modules], file=sys.stderr))\n"
        "from hsdkit.cli import main\nmain()"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.returncode == 0, process.stderr
    assert "HEAVY []" in process.stderr


def test_importing_the_package_imports_nothing_heavy():
    code = f"import sys, hsdkit; hsdkit.hookimpl; sys.exit(any(m in sys.modules for m in {HEAVY}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("when", ["return verify(*a)", "raise ValueError"])
def test_a_signal_ends_the_run_in_order_though_a_library_swallows_it(workplace: Path, name: str, code: int, when: str):
    blank_pdf(workplace / "a.pdf", 9)
    script = (
        "import os, signal, toys; toys.register_toys()\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit it ignored\n"
        "verify = toys.ToyVerifier.verify\n"
        "def swallowing(*a):\n"
        "    if a[1].number == 2:\n"
        f"        try: os.kill(os.getpid(), signal.{name})\n"
        "        except: pass\n"
        f"        {when}\n"
        "    return verify(*a)\n"
        "toys.ToyVerifier.verify = swallowing\n"
        "from hsdkit.cli import main; main()"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, "run", *TOY, "a.pdf"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert process.returncode == code, process.stderr
    assert Path("out/a.md").read_text() == "page 1 of a.pdf\n"
    assert load("out/a.json").error == "interrupted after 1 page"
    assert "failure" not in process.stderr


@pytest.mark.parametrize("closed", ["sys.stdout = None", "sys.stderr = None", "sys.stdout = open('/dev/full', 'w')"])
def test_streams_that_are_closed_or_full_do_not_end_a_run(workplace: Path, closed: str):
    if "full" in closed and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    blank_pdf(workplace / "a.pdf", 2)
    code = f"import sys, toys; toys.register_toys(); {closed}; from hsdkit.cli import main; main()"
    subprocess.run(
        [sys.executable, "-c", code, "run", *TOY, "a.pdf", "--stream"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, timeout=60, check=False,
    )  # fmt: skip
    assert load("out/a.json").ok
    assert len(load("out/a.json").pages) == 2


def test_text_that_stdout_cannot_encode_costs_no_page(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    process = shell(
        "run", *TOY, "a.pdf", "verifier.text=\u00fcber \u6f22", "--stream", env={"PYTHONIOENCODING": "ascii"}
    )
    assert process.returncode == 0, process.stderr
    assert "ber" in process.stdout
    assert Path("out/a.md").read_text(encoding="utf-8") == "\u00fcber \u6f22\n"


def test_a_kill_leaves_the_finished_pages_readable(workplace: Path):
    blank_pdf(workplace / "a.pdf", 2)
    code = (
        "import os, signal, toys; toys.register_toys()\n"
        "verify = toys.ToyVerifier.verify\n"
        "def deadly(self, page, *rest, **more):\n"
        "    if page.number == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return verify(self, page, *rest, **more)\n"
        "toys.ToyVerifier.verify = deadly\n"
        "from hsdkit.cli import main; main()"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, "run", *TOY, "a.pdf"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    lines = Path("out/a.pages.jsonl").read_text().splitlines()
    assert [json.loads(line)["markdown"] for line in lines] == ["page 1 of a.pdf"]
    assert not Path("out/a.json").exists()


# -- on a terminal


def test_a_terminal_gets_a_bar_with_tokens_per_step_and_no_line_a_page():
    out = Console(file=io.StringIO(), force_terminal=True, width=120, highlight=False)
    display = BarDisplay(out)
    display.status("loading toy")
    display.begin("a[1].pdf", 2)
    display.on_text(0, "some text")
    display.page(PageResult(1, "text", "text", "eos", notes=("a note",)))
    display.page(PageResult(2, error="a[1].pdf, page 2: broken"))
    display.close()
    written = out.file.getvalue()  # type: ignore[attr-defined]
    assert "tokens/step" in written
    assert "a[1].pdf" in written
    assert "note: a note" in written
    assert "page 2: broken" in written
    assert "page 1:" not in written


def test_a_note_is_said_once_a_run():
    out = Console(file=io.StringIO())
    display = LineDisplay(out)
    display.begin("a.pdf", 2)
    for number in (1, 2):
        display.page(PageResult(number, "text", "text", "loop", notes=(f"the same {number}.5",)))
    written = out.file.getvalue()  # type: ignore[attr-defined]
    assert written.count("the same") == 1
    assert written.count("went on repeating itself") == 2
