"""Axes and cells: comma lists, studies, combinations that do not go together, and what makes two cells the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import TOY, toy_registry

from hsdkit.cli.sweep import planned, studies
from hsdkit.config_layers import study_note
from hsdkit.errors import ConfigError
from hsdkit.study.axes import read_axes, split_values
from hsdkit.study.fingerprint import fingerprint, input_digests, truth_digest
from hsdkit.study.plan import Plan, make_plan
from hsdkit.versions import checkpoint_digest


def plan(*overrides: str, study: dict[str, object] | None = None) -> Plan:
    fixed, axes = read_axes([*TOY, *overrides], study)
    return make_plan(fixed, axes, registry=toy_registry())


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", ["1"]),
        ("0.75, 1", ["0.75", "1"]),
        ("[1,2],[3]", ["[1,2]", "[3]"]),
        ("'Read it, all.',b", ["Read it, all.", "b"]),
        ("it's,that's", ["it's", "that's"]),
        ("{a: 1, b: 2}", ["{a: 1, b: 2}"]),
        ("a]b,c", ["a]b", "c"]),
        ("", [""]),
    ],
)
def test_commas_divide_values_outside_brackets_and_quotes(text: str, values: list[str]) -> None:
    assert split_values(text) == values


@given(st.lists(st.text("abc.- ", min_size=1).map(str.strip).filter(bool), min_size=1))
def test_plain_values_come_back(values: list[str]) -> None:
    assert split_values(",".join(values)) == values


def test_cells_are_the_product_and_the_last_axis_changes_fastest() -> None:
    found = plan("verifier.tau=0.5,1", "drafter.seconds=0,1,2")
    assert found.keys == ("verifier.tau", "drafter.seconds")
    assert [c.at for c in found.cells] == [(t, s) for t in ("0.5", "1") for s in ("0", "1", "2")]
    assert [c.config.verifier.options.tau for c in found.cells if c.config] == [0.5] * 3 + [1.0] * 3


def test_pages_are_no_axis() -> None:
    fixed, axes = read_axes(["pages=1,3", "verifier.tau=0.5,1"])
    assert fixed == ["pages=1,3"]
    assert [axis.key for axis in axes] == ["verifier.tau"]


def test_an_option_that_a_drafter_lacks_is_the_reason_of_its_cells() -> None:
    fixed, axes = read_axes(["target=tiny", "drafter=pdftext,noise", "drafter.recognition.char_error_rate=0,0.02"])
    found = make_plan(fixed, axes)
    assert [c.config is not None for c in found.cells] == [False, False, True, True]
    assert "drafter 'pdftext' has no option 'recognition.char_error_rate'" in found.cells[0].reason


def test_an_axis_that_applies_nowhere_is_one_error() -> None:
    with pytest.raises(ConfigError, match=r"no cell of the sweep can run: .*has no option 'colour'"):
        plan("drafter.colour=red,blue", "verifier.tau=0.5,1")


def test_a_value_out_of_range_is_the_reason_of_its_cells() -> None:
    found = plan("verifier.tau=0,1")
    assert "tau must be above 0" in found.cells[0].reason
    assert found.cells[1].config is not None


def test_a_study_has_axes_of_values_and_of_variants() -> None:
    study = {
        "way": {"plain": {"verifier.uses_draft": False}, "drafted": {"verifier.uses_draft": True, "draft": "always"}},
        "verifier.tau": [0.75, 1],
    }
    found = plan(study=study)
    assert [c.at for c in found.cells] == [(w, t) for w in ("plain", "drafted") for t in ("0.75", "1")]
    last = found.cells[-1].config
    assert last is not None
    assert (last.draft, last.verifier.options.uses_draft, last.verifier.options.tau) == ("always", True, 1.0)


def test_the_command_line_replaces_an_axis_of_the_study() -> None:
    study = {"verifier.tau": [0.5, 0.75, 1]}
    assert [c.at for c in plan("verifier.tau=0.9,1", study=study).cells] == [("0.9",), ("1",)]
    fixed, axes = read_axes(["verifier.tau=1"], study)
    assert (fixed, axes) == (["verifier.tau=1"], [])


@pytest.mark.parametrize(
    ("overrides", "study", "said"),
    [
        (["verifier=toy"], {"way": {"a": {"verifier": "x"}}}, "is set by the axis 'way'"),
        (["verifier.tau=1,2"], {"way": {"a": {"verifier.tau": 1}}}, "by the axes 'way' and 'verifier.tau'"),
        (["verifier.tau=1,"], {}, "is no list of values"),
        ([], {"verifier.tau": 1}, "is no list of values"),
        ([], {"way": {"a": 1}}, "must be a mapping"),
    ],
)
def test_what_cannot_be_meant_is_refused(overrides: list[str], study: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_axes(overrides, study)


@pytest.mark.parametrize("name", studies())
def test_every_study_runs_on_the_embedded_target_and_is_documented(name: str) -> None:
    found, called = planned([f"experiment={name}", "target=tiny"], ["a.pdf"])
    assert called == name
    assert len(found.cells) > 1
    assert {c.reason for c in found.cells if "hsdkit[suffix]" not in c.reason} == {""}
    assert not any(study_note(name) in note for note in found.notes)
    page = (Path(__file__).parent.parent / "docs" / "studies.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page


def test_the_paper_s_figures_and_tables_have_their_studies() -> None:
    assert {"fig3", "fig4", "table_a1", *(f"table{i}" for i in range(1, 9))} <= set(studies())


def test_a_study_of_one_s_own_builds_on_another(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("experiment: fig4\nverifier: {name: hsd, max_new_tokens: 9}\nsweep: {verifier.n: [2, 4]}\n")
    found, _ = planned([f"experiment={mine}", "target=tiny"], ["a.pdf"])
    assert [c.at for c in found.cells] == [("2",), ("4",)]
    assert (found.first.verifier.options.max_new_tokens, found.first.verifier.options.matching) == (9, "paper")
    assert found.first.output == "out/mine"
    mine.write_text("sweep: [1, 2]\n")
    with pytest.raises(ConfigError, match="sweep must be a mapping"):
        planned([f"experiment={mine}"], ["a.pdf"])


def test_fingerprints_change_with_what_a_measurement_depends_on(tmp_path: Path) -> None:
    document, drafts = tmp_path / "a.pdf", tmp_path / "a.drafts.json"
    document.write_bytes(b"one")
    drafts.write_bytes(b"drafts")
    settings = {"output": "x", "drafter": {"name": "replay", "path": str(drafts)}}
    first = fingerprint(settings, input_digests([document]), rounds=3)
    assert fingerprint(settings | {"output": "y"}, input_digests([document]), rounds=3) == first
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    assert fingerprint(settings, input_digests([document.rename(moved / "a.pdf")]), rounds=3) == first
    assert fingerprint(settings, input_digests([moved / "a.pdf"]), rounds=4) != first
    (moved / "a.pdf").write_bytes(b"two")
    assert fingerprint(settings, input_digests([moved / "a.pdf"]), rounds=3) != first
    (moved / "a.pdf").write_bytes(b"one")
    drafts.write_bytes(b"other drafts")
    assert fingerprint(settings, input_digests([moved / "a.pdf"]), rounds=3) != first


def test_a_checkpoint_trained_anew_in_its_folder_is_another_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"one")
    settings = {"target": {"name": "qwen3_vl", "model": str(tmp_path)}}
    first = fingerprint(settings, {})
    assert fingerprint(settings, {}) == first
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert fingerprint(settings, {}) != first


def test_in_a_large_file_a_tensor_in_the_middle_counts_and_in_ground_truth_every_byte(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    content = bytearray(6 << 20)
    digests = []
    for changed in (0, 1 << 17, 1):
        content[3 << 20 : (3 << 20) + changed] = b"x" * changed
        (tmp_path / "large").write_bytes(content)
        digests.append((checkpoint_digest(str(tmp_path)), truth_digest({"path": str(tmp_path)})))
        content[:] = bytes(len(content))
    (model, truth), (trained, _), (_, corrected) = digests
    assert model != trained
    assert truth != corrected


def test_a_limit_on_the_seconds_of_a_page_has_no_place_where_they_are_measured() -> None:
    with pytest.raises(ConfigError, match="page_seconds: pages are measured as a whole"):
        plan("verifier.tau=0.5,1", "page_seconds=2")
