"""Ocean-OCR: our metrics are those of the official script.

The expected values in data/benchmarks/ocean_ocr.json come from its own function (data/benchmarks/record_ocean.py made
the file), on texts written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hsdkit_plugins.benchmarks.ocean_ocr import OceanOCR, OceanOCRConfig

from hsdkit.errors import BenchmarkError
from hsdkit.metrics import words

RECORDED = json.loads((Path(__file__).parent / "data" / "benchmarks" / "ocean_ocr.json").read_text("utf-8"))
NAMES = {"bleu": "bleu", "meteor": "meteor", "f1": "f_measure", "precision": "precision", "recall": "recall"}


def truth(image: str, text: str) -> dict[str, Any]:
    return {"image": image, "conversations": [{"from": "human", "value": "OCR"}, {"from": "gpt", "value": text}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "document_en.json").write_text(json.dumps([truth("a.png", "a b c d"), truth("b.png", "one")]))
    (tmp_path / "document_zh.json").write_text(json.dumps([truth("a.png", "港口")]))
    (tmp_path / "document_en").mkdir()
    (tmp_path / "document_en" / "a.png").touch()
    (tmp_path / "b.png").touch()
    return tmp_path


@pytest.mark.parametrize("row", RECORDED)
def test_metrics_are_the_official_ones(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_wordnet", lambda: None)  # as they were recorded
    (tmp_path / "document_en.json").write_text(json.dumps([truth("a.png", row["truth"])]))
    benchmark = OceanOCR(OceanOCRConfig(path=str(tmp_path)))
    found = benchmark.measure(benchmark.items()[0], row["output"])
    expected = {ours: row["official"][theirs] for ours, theirs in (NAMES | {"edit_distance": "edit_dist"}).items()}
    assert found == pytest.approx(expected)


def test_precision_is_of_the_output_where_that_is_asked_for(folder: Path) -> None:
    official, plain = (
        OceanOCR(OceanOCRConfig(path=str(folder), orientation=orientation)) for orientation in ("official", "plain")
    )
    item = official.items()[0]
    assert official.measure(item, "a b x")["precision"] == pytest.approx(2 / 4)
    assert plain.measure(item, "a b x")["precision"] == pytest.approx(2 / 3)
    assert official.edition != plain.edition
    assert any("in the place of the output" in note for note in official.notes)


def test_pages_of_both_languages_with_their_images(folder: Path) -> None:
    items = OceanOCR(OceanOCRConfig(path=str(folder))).items()
    assert [item.key for item in items] == ["document_en/a.png", "document_en/b.png", "document_zh/a.png"]
    assert [item.groups["language"] for item in items] == [("english",), ("english",), ("chinese",)]
    assert [item.document for item in items[:2]] == [folder / "document_en" / "a.png", folder / "b.png"]


def test_predictions_are_the_lists_that_the_script_reads(folder: Path) -> None:
    benchmark = OceanOCR(OceanOCRConfig(path=str(folder / "document_en.json")))
    [(name, content)] = benchmark.predictions((item, "read") for item in benchmark.items())
    assert name == "document_en.json"
    assert json.loads(content)[0] == {"image": "a.png", "label": "a b c d", "answer": "read"}


def test_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"holds neither document_en\.json nor document_zh\.json"):
        OceanOCR(OceanOCRConfig(path=str(tmp_path))).items()
    (tmp_path / "document_en.json").write_text('[{"image": "a.png"}]')
    with pytest.raises(BenchmarkError, match="no image or no answer"):
        OceanOCR(OceanOCRConfig(path=str(tmp_path))).items()
