"""The documents say what is true: commands and snippets run, options are all there, files named exist."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from hsdkit.documents import Page
from hsdkit.plugins import Plugins
from hsdkit.regions import Label

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/how-it-works.md",
    "docs/configuration.md",
    "docs/plugin-tutorial.md",
    "docs/targets.md",
    "docs/drafters.md",
    "docs/benchmarks.md",
    "docs/failures.md",
    "docs/jobs.md",
    "docs/concurrency.md",
    "docs/deploy.md",
    "docs/ray.md",
    "docs/roofline.md",
    "docs/service.md",
    "docs/vllm.md",
]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def snippet(document: str, name: str) -> str:
    [found] = re.findall(rf"<!-- snippet: {name} -->\n```python\n(.*?)\n```\n", read(document), re.DOTALL)
    return str(found)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def readme_command(name: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / ".ci" / "readme_command.py"
    return subprocess.run([sys.executable, script, name], capture_output=True, text=True, check=False)


def test_the_readme_has_the_two_commands_that_ci_runs() -> None:
    parse, test = readme_command("parse").stdout, readme_command("test").stdout
    assert parse.strip().endswith("pip install . && hsdkit run examples/report.pdf --report")
    assert test.strip().endswith('pip install -e ".[dev]" && pytest')
    assert all(c.startswith("python3 -m venv .venv && . .venv/bin/activate && ") for c in (parse, test))
    assert readme_command("deploy").returncode != 0
    run = read(".ci/run")
    assert "readme parse" in run
    assert "readme test" in run


def test_the_python_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(snippet("README.md", "python"), "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert re.search(r"^1 \d+ tokens in \d+ steps, AAL [\d.]+ (eos|length|loop)$", said, re.MULTILINE)


def test_the_python_of_the_configuration_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(snippet("docs/configuration.md", "configuration"), "configuration.md", "exec"), {})
    assert "max_packed: 32" in capsys.readouterr().out


def test_the_python_of_the_page_on_failures_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT / "examples")
    exec(compile(snippet("docs/failures.md", "failures"), "failures.md", "exec"), {})
    assert capsys.readouterr().out == "1 eos at once model None\n"


def test_the_python_of_the_page_on_concurrency_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT / "examples")
    exec(compile(snippet("docs/concurrency.md", "concurrency"), "concurrency.md", "exec"), {})
    assert capsys.readouterr().out == "report.pdf 1 eos None\n" * 3


def test_the_ten_line_drafter_of_contributing_drafts(tmp_path: Path) -> None:
    source = snippet("CONTRIBUTING.md", "drafter")
    body = source[source.index("class Sidecar:") :].replace("\n\n", "\n").replace("\n\n", "\n").splitlines()
    assert len([line for line in body if line.strip()]) == 10
    (tmp_path / "sidecar.py").write_text(source, encoding="utf-8")
    registry = Plugins()
    registry.register(load(tmp_path / "sidecar.py"), "sidecar")
    (tmp_path / "report.pdf.txt").write_text("first\fsecond", encoding="utf-8")
    config = registry.component("drafter", "sidecar").config(folder=str(tmp_path))
    drafter = registry.build("drafter", "sidecar", config)
    draft = drafter.draft(Page(2, Image.new("RGB", (30, 40)), "report.pdf"))
    [region] = draft.readable
    assert (region.text, region.label, region.box.x1, region.box.y1) == ("second", Label.TEXT, 30, 40)


def test_the_option_tables_are_those_of_the_code() -> None:
    options = load(ROOT / "docs" / "options.py")
    page = read("docs/configuration.md")
    assert options.updated(page) == page, "run `python docs/options.py`"
    undocumented = re.findall(r"^\| `([\w.]+)` \| .* \|  \|$", page, re.MULTILINE)
    assert undocumented == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_files_named_exist(document: str) -> None:
    text = read(document)
    links = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if not t.startswith("http")]
    named = re.findall(r"`((?:hsdkit|plugins|conf|docs|examples|\.ci)/[\w./-]*)`", text)
    missing = [t for t in links if not ((ROOT / document).parent / t).exists()]
    missing += [t for t in named if not (ROOT / t).exists()]
    assert missing == []


def test_the_changelog_keeps_its_form() -> None:
    text = read("CHANGELOG.md")
    assert text.startswith("# Changelog\n")
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert re.search(r"^## \[(Unreleased|\d+\.\d+\.\d+)\]", text, re.MULTILINE)


def test_built_in_components_are_those_the_readme_lists() -> None:
    from hsdkit.plugins import plugins

    def listed(kind: str) -> set[str]:
        [row] = re.findall(rf"^\| {kind} \| (.*) \|$", read("README.md"), re.MULTILINE)
        return set(re.findall(r"`(\w+)`", row))

    for kind in ("drafter", "target", "verifier", "engine"):
        ours = {c.name for c, plugin in plugins().components(kind) if plugin.package == "hsdkit"}
        assert listed(kind) == ours, kind


def test_the_wheel_check_names_what_is_lost(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("hsdkit_conf/config.yaml", "")
    check = load(ROOT / ".ci" / "check_wheel.py")
    assert check.missing(tmp_path / "a.whl", ["conf/config.yaml"]) == []
    assert check.missing(tmp_path / "a.whl", ["conf/config.yaml", "plugins/targets/x"]) == ["plugins/targets/x"]
