"""The worker scripts of PaddleOCR and MinerU: what of the options reaches the library, and its absent models by name.

The libraries are stand-ins here; what they really say is in tests/data/native.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hsdkit_plugins.drafters import mineru, ppstructurev3

from hsdkit.workers.serve import describe, import_script


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, made)
    return made


@pytest.fixture
def paddle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """The settings that the pipeline was made with; PaddleX keeps its models in `tmp_path`."""
    made: dict[str, Any] = {}

    class PPStructureV3:
        def __init__(self, **settings: Any) -> None:
            made.update(settings)
            if (tmp_path / "fails").exists():
                raise Exception("No available model hosting platforms detected.")

        def predict(self, path: str, **settings: Any) -> list[Any]:
            return [SimpleNamespace(json={"res": {"parsing_res_list": [], "path": path} | settings})]

    module(monkeypatch, "paddleocr", PPStructureV3=PPStructureV3)
    module(monkeypatch, "paddlex.utils.cache", CACHE_DIR=str(tmp_path))
    return made


def load_paddle(**options: Any) -> Any:
    config = ppstructurev3.PPStructureV3Config(**options)
    return import_script(str(ppstructurev3.LIBRARY.script)).load(config.options())


def test_pages_are_read_as_they_lie_with_the_models_that_were_asked_for(paddle: dict[str, Any]):
    read = load_paddle(ocr="mobile", tables=False, device="cpu")
    assert read("page.png") == {
        "parsing_res_list": [],
        "path": "page.png",
        "use_table_orientation_classify": False,
    }
    assert (paddle["text_detection_model_name"], paddle["text_recognition_model_name"]) == (
        "PP-OCRv5_mobile_det",
        "PP-OCRv5_mobile_rec",
    )
    assert (paddle["use_table_recognition"], paddle["use_formula_recognition"], paddle["device"]) == (
        False,
        True,
        "cpu",
    )
    assert not paddle["use_doc_unwarping"]
    assert not paddle["use_doc_orientation_classify"]


def test_a_language_chooses_the_ocr_models_itself(paddle: dict[str, Any]):
    load_paddle(lang="korean")
    assert paddle["lang"] == "korean"
    assert "text_recognition_model_name" not in paddle


def test_the_models_that_are_not_there_are_named(paddle: dict[str, Any], tmp_path: Path):
    (tmp_path / "fails").touch()
    (tmp_path / "official_models" / "PP-DocBlockLayout").mkdir(parents=True)
    with pytest.raises(FileNotFoundError) as e:
        load_paddle(tables=False)
    assert describe(e.value) == (
        "FileNotFoundError: missing models: PP-DocLayout_plus-L, PP-OCRv5_server_det, PP-OCRv5_server_rec, "
        "PP-FormulaNet_plus-L <- Exception: No available model hosting platforms detected."
    )


def test_a_folder_of_models_becomes_where_paddlex_looks(
    paddle: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PADDLE_PDX_CACHE_HOME", "")  # so that it is put back
    (tmp_path / "models" / "SLANet_plus").mkdir(parents=True)
    read = load_paddle(models=str(tmp_path / "models"))
    assert (Path(os.environ["PADDLE_PDX_CACHE_HOME"]) / "official_models" / "SLANet_plus").is_dir()
    assert read("page.png")["path"] == "page.png"
    with pytest.raises(FileNotFoundError, match="no models folder /nowhere"):
        load_paddle(models="/nowhere")


@pytest.fixture
def made_parsers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    class MinerUParser:
        def __init__(self, **settings: Any) -> None:
            made.append(settings)

        def parse(self, path: str) -> Any:
            return SimpleNamespace(to_dict=lambda: {"pages": [], "path": path})

    monkeypatch.setenv("MINERU_LOG_LEVEL", "error")
    module(monkeypatch, "mineru", MinerUParser=MinerUParser)
    return made


def load_mineru(**options: Any) -> Any:
    return import_script(str(mineru.LIBRARY.script)).load(mineru.MinerUConfig(**options).options())


def test_flash_needs_no_models(made_parsers: list[dict[str, Any]]):
    assert load_mineru(tier="flash")("page.pdf") == {"pages": [], "path": "page.pdf"}
    assert made_parsers == [{"tier": "flash", "parse_mode": "txt", "image_analysis": False}]


def test_the_repository_that_cannot_be_fetched_is_named_with_its_place(
    made_parsers: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    repository = SimpleNamespace(name="MinerU-4_models_onnx", local_dir=lambda: Path("/home/me/.mineru/models/x"))

    def download(repo: Any, reuse_ready: bool) -> None:
        raise ConnectionError("no network")

    module(monkeypatch, "mineru.model.download", download_model_repo=download)
    module(monkeypatch, "mineru.model.registry", model_repos_for_tier=lambda tier: [repository])
    module(monkeypatch, "mineru.parser.tier", ensure_tier_runtime_dependencies=lambda tier: None)
    with pytest.raises(FileNotFoundError) as e:
        load_mineru()
    said = describe(e.value)
    assert said.startswith("FileNotFoundError: missing models: MinerU-4_models_onnx in /home/me/.mineru/models <- Conn")
    assert str(mineru.explain(said)).startswith(
        "its models MinerU-4_models_onnx are not in /home/me/.mineru/models and"
    )


def test_a_setting_that_would_come_too_late_is_an_error(
    made_parsers: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    module(monkeypatch, "mineru.config")
    with pytest.raises(RuntimeError, match="mineru was in use before MINERU_DEVICE_MODE could be set"):
        load_mineru(tier="flash", device="cuda:7")
