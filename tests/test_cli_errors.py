"""`hsdkit run` on what goes wrong: every failure is one line, and costs nothing but itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from commands import hsdkit, load, run, shell
from toys import TOY, ToyEngine, ToyTarget, blank_pdf

from hsdkit.cli.run import split_arguments


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


@pytest.mark.parametrize("command", [("run",), ("bench", "verifiers=toy,autoregressive")])
def test_no_model_is_loaded_for_documents_that_cannot_be_opened(
    workplace: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    def load(self: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(ToyEngine, "load", load)
    monkeypatch.setattr(ToyTarget, "model", property(load), raising=False)
    monkeypatch.setattr(ToyTarget, "__init__", lambda self, config: None)
    blank_pdf(workplace / "two.pdf", 2)
    (workplace / "notes.txt").write_text("no document")
    result = hsdkit(*command, *TOY, "two.pdf", "notes.txt", "pages=3-4")
    assert result.exit_code == 1
    assert "two.pdf, page 3: out of range, the document has 2 pages" in result.output
    assert "notes.txt: " in result.output
    assert hsdkit(*command, *TOY, "two.pdf", "pages=2-1").exit_code == 2


def test_a_failed_page_fails_the_run_and_the_others_are_written(workplace: Path):
    blank_pdf(workplace / "a.pdf", 3)
    result = run("a.pdf", "verifier.fail=[2]")
    assert result.exit_code == 1
    assert "a.pdf, page 2: RuntimeError: the toy broke" in result.stderr
    assert Path("out/a.md").read_text() == "page 1 of a.pdf\n\npage 3 of a.pdf\n"


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
    assert len(list(Path("out").iterdir())) == 3  # the job's file is one
    assert result.stderr.count("\n") == 1
    assert not {"\x1b", "\u202e"} & set(result.stderr)


def test_names_as_long_as_a_name_may_be_have_results_too(workplace: Path):
    names = ["x" * 251 + ".pdf", "x" * 250 + "y.pdf", "\u00e9" * 125 + ".pdf", "a.pdf"]
    for name in names:
        blank_pdf(workplace / name)
    assert run(*names, "save_drafts=true", "--report").exit_code == 0
    assert len(list(Path("out").iterdir())) == 17


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
