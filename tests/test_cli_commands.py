"""The other commands, `--help` and `--version`; and what is imported for them."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from commands import hsdkit, shell
from rich.text import Text
from toys import TOY, blank_pdf

from hsdkit.cli.plugins import readiness
from hsdkit.components import Component, Requirement

HEAVY = ("torch", "transformers", "onnxruntime", "rapidocr", "numpy", "PIL", "pypdfium2")


def test_plugins_lists_kind_name_package_version_and_state(workplace: Path):
    output = hsdkit("plugins").stdout
    assert "toy_missing" in output
    assert 'needs surely_not_installed: pip install "hsdkit[toys]"' in output
    header, *rows = output.splitlines()
    assert header.split() == ["kind", "name", "package", "version", "state", "summary"]
    [pdftext] = [row.split() for row in rows if row.startswith("drafter ") and " pdftext " in row]
    assert pdftext[:5] == ["drafter", "pdftext", "hsdkit", version("hsdkit"), "ready"]
    only = hsdkit("plugins", "target").stdout
    assert "toy" in only
    assert not any(line.startswith("drafter") for line in only.splitlines())
    assert hsdkit("plugins", "printer").exit_code == 2


def test_what_is_ready_in_part_says_how_and_what_the_rest_needs():
    with_server = Requirement("surely_not_installed", "hsdkit[far]", without="with engine.url=")
    engine = Component("engine", "far", "", dict, dict, requires=(with_server, Requirement("json", "hsdkit")))
    said = Text.from_markup(readiness(engine)).plain
    assert said == 'ready with engine.url=; else needs surely_not_installed: pip install "hsdkit[far]"'
    assert Text.from_markup(readiness(replace(engine, requires=()))).plain == "ready"


def test_plugins_tells_targets_whose_weights_are_not_here_yet(tmp_path: Path):
    from hsdkit_plugins.targets.hunyuanocr import PROFILE

    snapshot = tmp_path / f"models--{PROFILE.model.replace('/', '--')}" / "snapshots" / str(PROFILE.revision)
    snapshot.mkdir(parents=True)

    def fetched() -> dict[str, bool]:
        rows = shell("plugins", "target", env={"HF_HUB_CACHE": str(tmp_path)}).stdout.splitlines()
        return {row.split()[1]: "ready, weights are fetched on first use" in row for row in rows if "ready" in row}

    before = fetched()
    assert (before["tiny"], before["hunyuanocr"], before["dots_ocr"]) == (False, True, True)
    (snapshot / "model.safetensors").touch()
    after = fetched()
    assert (after["hunyuanocr"], after["dots_ocr"]) == (False, True)


def installed(folder: Path, name: str, source: str) -> dict[str, str]:
    """A plugin package of that name, and the environment in which it is installed beside hsdkit."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(f"[hsdkit]\n{name} = {name}\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parent)])}


def test_a_broken_package_is_listed_with_its_reason_and_no_run_suffers(workplace: Path):
    env = installed(workplace, "acme", "HSDKIT_HOOKSPEC = 7")
    listed = shell("plugins", env=env)
    assert listed.returncode == 0
    assert "broken: plugin 'acme' of acme 1.5: was written for version 7 of the plugin hooks" in listed.stdout
    assert "pdftext" in listed.stdout
    blank_pdf(workplace / "a.pdf")
    assert shell("run", *TOY, "a.pdf", env=env).returncode == 0
    missed = shell("run", *TOY, "a.pdf", "drafter=acme", env=env)
    assert missed.returncode == 2
    assert "was written for version 7" in missed.stderr
    limited = shell("plugins", env={**env, "HSDKIT_PLUGINS": "hsdkit"})
    assert "broken" not in limited.stdout
    assert "HSDKIT_PLUGINS does not name them: acme" in limited.stdout


def test_a_name_in_vain_in_the_environment_is_reported(workplace: Path):
    process = shell("plugins", env={"HSDKIT_PLUGINS": "hsdkti"})
    assert "HSDKIT_PLUGINS names 'hsdkti'" in process.stderr
    assert "did you mean 'hsdkit'" in process.stderr
    blank_pdf(workplace / "a.pdf")
    process = shell("run", *TOY, "a.pdf", env={"HSDKIT_PLUGINS": "hsdkti,hsdkit"})
    assert process.returncode == 0
    assert "note: HSDKIT_PLUGINS names 'hsdkti'" in process.stderr


def test_a_plugin_that_only_observes_is_listed_too(workplace: Path):
    source = "import hsdkit\n@hsdkit.hookimpl\ndef hsdkit_page_finished(source, result): print('saw', result.number)"
    env = installed(workplace, "watcher", source)
    assert any(
        line.split()[:4] == ["observer", "watcher", "watcher", "1.5"]
        for line in shell("plugins", env=env).stdout.splitlines()
    )
    blank_pdf(workplace / "a.pdf")
    assert "saw 1" in shell("run", *TOY, "a.pdf", env=env).stdout


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


def test_help_fits_into_80_columns():
    """A line that wraps tears options and examples apart. First paragraphs are filled anew and may be of any length."""
    import typer.main
    from rich.text import Text

    from hsdkit.cli.app import app

    commands: Any = dict(vars(typer.main.get_command(app))["commands"])
    for name in [name for name, command in commands.items() if hasattr(command, "commands")]:
        commands |= {f"{name} {each}": command for each, command in commands.pop(name).commands.items()}
    texts = {name: inspect.cleandoc(command.help).partition("\n\n")[2] for name, command in commands.items()}
    lines = [(name, Text.from_markup(line).plain) for name, text in texts.items() for line in text.splitlines()]
    assert len(lines) > 50
    assert [line for line in lines if len(line[1]) > 78] == []


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
