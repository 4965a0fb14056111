"""Plugins: discovery, broken ones, name clashes, requirements, and building."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from toys import TOY, ToyDrafter, ToyDrafterConfig, Toys, toy_registry

import hsdkit.plugins as module
from hsdkit import hookimpl
from hsdkit.components import Component, Environment, Requirement
from hsdkit.config import compose
from hsdkit.errors import PluginError
from hsdkit.plugins import Plugins


def discovered(monkeypatch: pytest.MonkeyPatch, **values: str) -> Plugins:
    entries = [EntryPoint(name.replace("_", "-"), value, "hsdkit") for name, value in values.items()]
    monkeypatch.setattr(module, "entry_points", lambda group: entries)
    found = Plugins()
    found.discover()
    return found


def test_a_broken_plugin_is_listed_and_stops_no_other(monkeypatch: pytest.MonkeyPatch):
    found = discovered(monkeypatch, drafter_gone="no_such_module_at_all", toys="toys:plugin")
    errors = {s.name: s.error for s in found.states}
    assert "No module named 'no_such_module_at_all'" in str(errors["drafter-gone"])
    assert "has no attribute 'plugin'" in str(errors["toys"])
    with pytest.raises(PluginError, match="plugin 'drafter-gone' is broken"):
        found.component("drafter", "gone")


def test_the_environment_can_limit_what_is_loaded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HSDKIT_PLUGINS", "one, three")
    found = discovered(monkeypatch, one="json", two="json.decoder", three="json.encoder")
    assert [s.name for s in found.states] == ["one", "three"]
    with pytest.raises(PluginError, match="HSDKIT_PLUGINS limits what is loaded"):
        found.component("drafter", "two")


def test_the_environment_names_plugins_or_packages_and_is_told_what_it_names_in_vain(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HSDKIT_PLUGINS", "HSDKIT, drafter-pdftxet,")
    found = Plugins()
    found.discover()
    assert {"drafter-pdftext", "target-tiny", "engine-transformers"} <= {s.name for s in found.states}
    [note] = found.notes
    assert "names 'drafter-pdftxet'" in note
    assert "did you mean 'drafter-pdftext'" in note
    assert compose(registry=found).notes == (note,)
    monkeypatch.setenv("HSDKIT_PLUGINS", "verifier_hsd")
    found = Plugins()
    found.discover()
    assert [s.name for s in found.states] == ["verifier-hsd"]
    assert {"drafter-pdftext", "target-tiny"} <= set(found.left_out)
    monkeypatch.setenv("HSDKIT_PLUGINS", "zzzz")
    found = Plugins()
    found.discover()
    with pytest.raises(PluginError, match="'zzzz', which is no installed plugin nor a package of plugins: installed"):
        found.component("target", "tiny")


@pytest.mark.parametrize(("version", "cure"), [(0, "the plugin"), (99, "hsdkit"), ("2.1", "the plugin")])
def test_a_plugin_for_another_version_of_the_hooks_is_broken_and_says_what_to_upgrade(version: Any, cure: str):
    plugin = type("Other", (Toys,), {"HSDKIT_HOOKSPEC": version})()
    registry = Plugins()
    with pytest.raises(PluginError, match=f"version {version!r} of the plugin hooks.*has version 1: upgrade {cure}$"):
        registry.register(plugin, "other")
    assert list(registry.components()) == []
    registry.register(type("Same", (Toys,), {"HSDKIT_HOOKSPEC": 1})(), "same")
    assert registry.component("drafter", "toy").name == "toy"


def test_a_hook_that_is_not_there_or_takes_something_else_breaks_its_plugin_only():
    class Unknown(Toys):
        @hookimpl
        def hsdkit_page_started(self, page: Any) -> None:
            raise AssertionError("never called")

    class Wrong(Toys):
        @hookimpl
        def hsdkit_page_finished(self, source: str, result: Any, colour: str) -> None:
            raise AssertionError("never called")

    registry = Plugins()
    with pytest.raises(PluginError, match="implements hsdkit_page_started, no hook of version 1"):
        registry.register(Unknown(), "unknown")
    with pytest.raises(Exception, match="colour"):
        registry.register(Wrong(), "wrong")
    registry.manager.hook.hsdkit_page_finished(source="a", result=None)
    assert list(registry.components()) == []
    registry.register(Toys(), "unknown")


@pytest.mark.parametrize(
    "given",
    [
        "drafter",
        Component("printer", "x", "", ToyDrafterConfig, ToyDrafter),
        Component("drafter", "a=b", "", dict, dict),
    ],  # type: ignore[arg-type]
)
def test_what_is_no_component_breaks_its_plugin(given: Any):
    plugin = type("Odd", (), {"hsdkit_components": hookimpl(lambda self: [given])})()
    with pytest.raises(PluginError, match="which is no Component of a known kind"):
        toy_registry().register(plugin, "odd")


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"summary": None}, "which is no Component of a known kind"),
     ({"requires": ("numpy",)}, "drafter 'odd' requires \\('numpy',\\), which are no Requirements"),
     ({"environment": "docling"}, "drafter 'odd' has an environment that is none"),
     ({"environment": Environment("../x", Path(__file__), "x", "x")}, "none with a plain name"),
     ({"environment": Environment("x", Path("/no.txt"), "x", "x")}, "its requirements cannot be read: .*no.txt"),
     ({"environment": Environment("x", Path(os.devnull), "x", "x")}, "its requirements /dev/null name nothing")],
    ids=range(6),
)  # fmt: skip
def test_what_would_break_the_lists_of_components_breaks_its_plugin(given: dict[str, Any], expected: str):
    odd = replace(Component("drafter", "odd", "", ToyDrafterConfig, ToyDrafter), **given)
    plugin = type("Odd", (), {"hsdkit_components": hookimpl(lambda self: [odd])})()
    with pytest.raises(PluginError, match=expected):
        toy_registry().register(plugin, "odd")


def test_no_package_takes_the_name_of_a_component_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "greedy_plugin.py").write_text(
        "from hsdkit import hookimpl\nfrom hsdkit.components import Component\nprint('printed when imported')\n"
        "@hookimpl\ndef hsdkit_components():\n    return [Component('drafter', 'pdftext', '', dict, dict)]\n"
    )
    metadata = tmp_path / "greedy-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greedy\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[hsdkit]\naaa = greedy_plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HSDKIT_PLUGINS", "drafter-pdftext,aaa")
    found = Plugins()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        found.discover()
    assert {s.name: s.error for s in found.states} == {
        "drafter-pdftext": None,
        "aaa": f"drafter 'pdftext' is already provided by {found.states[0].origin}",
    }
    assert printed.getvalue() == "", "standard output is for results"


def test_a_plugin_that_brings_one_name_twice_is_broken():
    toy = Component("drafter", "twice", "", ToyDrafterConfig, ToyDrafter)
    plugin = type("Twice", (), {"hsdkit_components": hookimpl(lambda self: [toy, toy])})()
    with pytest.raises(PluginError, match="drafter 'twice' is already provided by this very plugin"):
        toy_registry().register(plugin, "twice")


def test_who_misses_a_component_hears_of_broken_plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "old_plugin.py").write_text("from hsdkit.protocols import NoLongerThere")
    monkeypatch.syspath_prepend(tmp_path)
    found = discovered(monkeypatch, acme="old_plugin")
    with pytest.raises(PluginError, match=r"broken plugins \(`hsdkit plugins` says why\): acme"):
        found.component("drafter", "zebra")
    with pytest.raises(PluginError, match=r"plugin 'acme' is broken: ImportError.*needs another version of hsdkit"):
        found.component("drafter", "acme")


def test_a_name_that_is_taken_is_refused_and_nothing_of_the_plugin_is_kept():
    class Clash:
        @hookimpl
        def hsdkit_components(self) -> list[Component]:
            return [
                Component("drafter", "fresh", "", ToyDrafter, ToyDrafter),
                Component("drafter", "toy", "", ToyDrafter, ToyDrafter),
            ]

    registry = toy_registry()
    with pytest.raises(PluginError, match="drafter 'toy' is already provided by plugin 'toys'"):
        registry.register(Clash(), "clash")
    assert "fresh" not in [c.name for c, _ in registry.components("drafter")]
    registry.register(Toys.__new__(type("Empty", (), {})), "empty")


def test_a_plugin_that_fails_to_answer_is_refused():
    class Failing:
        @hookimpl
        def hsdkit_components(self) -> list[Component]:
            raise OSError("no list today")

    registry = toy_registry()
    with pytest.raises(OSError, match="no list today"):
        registry.register(Failing(), "failing")
    assert registry.component("drafter", "toy").name == "toy"


def test_building_takes_the_typed_config_and_defaults_without_one():
    registry = toy_registry()
    built: Any = registry.build("drafter", "toy")
    assert built.config == registry.component("drafter", "toy").config()


def test_what_a_component_lacks_is_named_with_its_install():
    with pytest.raises(PluginError, match=r'surely_not_installed, not installed: pip install "hsdkit\[toys\]"'):
        toy_registry().build("drafter", "toy_missing")


@pytest.mark.parametrize(
    ("name", "there"), [("json", True), ("json.decoder", True), ("nope", False), ("nope.sub", False)]
)
def test_a_requirement_knows_whether_its_module_is_installed(name: str, there: bool):
    assert Requirement(name, "x").installed is there


@pytest.mark.parametrize("error", [RuntimeError("no GPU\nhere"), SystemExit("no GPU here")])
def test_a_factory_that_fails_is_an_error_naming_component_and_plugin(error: BaseException):
    class Broken:
        @hookimpl
        def hsdkit_components(self) -> list[Component]:
            def factory(config: Any) -> Any:
                raise error

            return [Component("drafter", "broken", "", ToyDrafterConfig, factory)]

    registry = toy_registry()
    registry.register(Broken(), "mine")
    with pytest.raises(PluginError, match=r"drafter 'broken' of plugin 'mine' cannot be built: \w+: no GPU here"):
        registry.build("drafter", "broken")


def test_a_plugin_that_exits_when_imported_is_listed_as_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "leaving_plugin.py").write_text("import sys; sys.exit('no licence')")
    (tmp_path / "panicking_plugin.py").write_text("raise type('Panic', (BaseException,), {})('out of bounds')")
    monkeypatch.syspath_prepend(tmp_path)
    found = discovered(monkeypatch, gone="leaving_plugin", panic="panicking_plugin")
    assert [s.error for s in found.states] == ["SystemExit: no licence", "Panic: out of bounds"]


@pytest.mark.parametrize("config", [dict, dataclass(type("C", (), {"__annotations__": {"a": object}}))])
def test_options_no_plugin_can_have_are_an_error_naming_the_component(config: Any):
    class Odd:
        @hookimpl
        def hsdkit_components(self) -> list[Component]:
            return [Component("drafter", "odd", "", config, ToyDrafter)]

    registry = toy_registry()
    registry.register(Odd(), "mine")
    with pytest.raises(PluginError, match="drafter 'odd' is broken: its options are unusable"):
        compose([*TOY, "drafter=odd"], registry=registry)
