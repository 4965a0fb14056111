"""The example plugin package: the tutorial builds it and its commands run; installed, it is used by name."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "examples" / "hsdkit-example-plugin"
TUTORIAL = ROOT / "docs" / "plugin-tutorial.md"
FIRST_RUN = "hsdkit run letter.png drafter=hocr"


def told_files() -> dict[str, str]:
    """The files that the tutorial has its reader write."""
    files: dict[str, str] = {}
    blocks = re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```\n", TUTORIAL.read_text("utf-8"), re.DOTALL)
    for name, text in blocks:
        files[name] = f"{files[name]}\n\n{text}" if name in files else text  # what follows is a new top-level block
    return files


def told_commands() -> list[tuple[str, list[str]]]:
    """The tutorial's commands, each with the lines of its output that the tutorial shows."""
    blocks = re.findall(r"<!-- run -->\n```console\n(.*?)```\n", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands: list[tuple[str, list[str]]] = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def test_the_tutorial_has_its_reader_write_the_package_as_it_is():
    assert told_files() == {name: (PACKAGE / name).read_text("utf-8") for name in told_files()}
    modules = {f"hsdkit_example_plugin/{p.name}" for p in (PACKAGE / "hsdkit_example_plugin").glob("*.py")}
    assert modules - {"hsdkit_example_plugin/__init__.py"} <= told_files().keys()


def test_drafter_and_target_take_less_than_sixty_lines():
    lines = [line for p in (PACKAGE / "hsdkit_example_plugin").glob("*.py") for line in p.read_text().splitlines()]
    assert 0 < len([line for line in lines if line.strip()]) < 60


def test_no_command_of_the_tutorial_escapes_the_test():
    text = TUTORIAL.read_text("utf-8")
    assert FIRST_RUN in dict(told_commands())
    assert len(re.findall(r"^```(?:console|bash|sh)", text, re.MULTILINE)) == text.count("<!-- run -->\n```console\n")


@pytest.fixture(scope="module")
def readers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial") / "hsdkit-example-plugin"
    for name, text in told_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (folder / "hsdkit_example_plugin" / "__init__.py").touch()
    for name in ("letter.png", "letter.hocr"):
        shutil.copy(PACKAGE / name, folder)
    return folder


@pytest.fixture(scope="module")
def tiny_rolmocr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random checkpoint of RolmOCR's architecture."""
    from models import make

    return make("qwen2_5_vl", tmp_path_factory.mktemp("rolmocr"))


@pytest.mark.parametrize(("command", "shown"), told_commands(), ids=[c for c, _ in told_commands()])
def test_a_command_of_the_tutorial_runs(
    command: str, shown: list[str], readers_folder: Path, request: pytest.FixtureRequest
):
    """In a folder of its own, in their order: what is installed goes there, the weights are a small random checkpoint,
    and outputs are cut short."""
    site = readers_folder.parent / "site"
    instead = {
        "pip install -e .": f"pip install -q --no-deps --no-build-isolation --target {site} .",
        "python -m build": "python -m build --no-isolation",
    }
    if command in instead and not (importlib.util.find_spec("setuptools") and importlib.util.find_spec("build")):
        pytest.skip("setuptools and build are not installed")
    if command not in instead and not site.is_dir():
        pytest.skip("the package could not be installed")
    if command.startswith(("hsdkit run", "hsdkit bench")):
        if command != FIRST_RUN and "CI" not in os.environ:
            pytest.skip("takes half a minute; run where CI is set")
        command += " verifier.max_new_tokens=40"
    env = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(site),
    }
    command = instead.get(command, command)
    if "/models/RolmOCR" in command:
        command = command.replace("/models/RolmOCR", str(request.getfixturevalue("tiny_rolmocr")))
    done = subprocess.run(
        command, shell=True, cwd=readers_folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0, said
    for line in shown:
        assert " ".join(line.split()) in said


def test_the_letter_is_what_its_script_makes(tmp_path: Path):
    for name in ("report.pdf", "hsdkit-example-plugin/make_letter.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "examples" / name, tmp_path / name)
    subprocess.run([sys.executable, tmp_path / "hsdkit-example-plugin" / "make_letter.py"], check=True)
    made = (tmp_path / "hsdkit-example-plugin" / "letter.hocr").read_text("utf-8")
    assert made == (PACKAGE / "letter.hocr").read_text("utf-8")


def test_an_installed_plugin_is_used_by_name(workplace: Path):
    """`.ci/run` installs the package; elsewhere `pip install ./examples/hsdkit-example-plugin` does."""
    from commands import hsdkit, load

    try:
        importlib.metadata.distribution("hsdkit-example-plugin")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the example plugin is not installed: pip install ./examples/hsdkit-example-plugin")
    for name in ("letter.png", "letter.hocr"):
        shutil.copy(PACKAGE / name, workplace)
    result = hsdkit("run", "letter.png", "drafter=hocr", "target=toy", "engine=toy", "verifier=toy")
    assert result.exit_code == 0, result.output
    page = load("out/letter.json").pages[0]
    assert (page.draft.drafter, page.draft.regions[0].text) == ("hocr", "How a page is read")
    assert "hsdkit-example-plugin" in hsdkit("plugins", "target").stdout
