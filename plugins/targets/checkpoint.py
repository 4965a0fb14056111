"""A checkpoint in the Hugging Face file format: found (folder or hub id), checked, loaded with the stock Auto classes.

Whatever is wrong with it becomes a one-line `TargetError` that names the checkpoint, the cause and the option to set.
Nothing is ever run or unpickled from a checkpoint: safetensors only, no remote code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from hsdkit.errors import TargetError

T = TypeVar("T")

_PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]


@dataclass(frozen=True)
class Checkpoint:
    """`name` is a hub id or a folder; `revision` a branch, tag or commit of the hub; `target` names who asks."""

    name: str
    revision: str | None = None
    target: str = ""

    @cached_property
    def folder(self) -> Path:
        """The local folder; downloads a hub id on first use. Raises `TargetError` if it is not there or incomplete."""
        folder = Path(self.name).expanduser()
        if not folder.is_dir():
            looks_local = folder.is_absolute() or self.name.startswith((".", "~")) or self.name.count("/") != 1
            if looks_local or folder.exists():
                raise self.error("no such folder", "set target.model to a checkpoint folder or a Hugging Face id")
            folder = self._download()
        if missing := list(_missing(folder)):
            raise self.error(
                f"incomplete checkpoint: {', '.join(missing)} missing in {folder}",
                "download all of its files, or set target.model to a complete folder",
            )
        return folder

    def _download(self) -> Path:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

        option = "set target.model to a local checkpoint folder"
        try:
            return Path(snapshot_download(self.name, revision=self.revision, allow_patterns=_PATTERNS))
        except GatedRepoError as e:
            raise self.error("its owner asks for a login or consent", "run `hf auth login` once it is granted") from e
        except RepositoryNotFoundError as e:
            raise self.error("neither a local folder nor a model of the hub", option) from e
        except RevisionNotFoundError as e:
            raise self.error(f"has no revision {self.revision!r}", "set target.revision") from e
        except (OSError, ValueError) as e:
            offline = (
                "not in the local cache, and the hub cannot be reached" if isinstance(e, OSError) else _first_line(e)
            )
            raise self.error(offline, option) from e

    def config(self) -> Any:
        from transformers import AutoConfig

        return self._load("config.json", lambda: AutoConfig.from_pretrained(self.folder, trust_remote_code=False))

    def tokenizer(self) -> Any:
        """The tokenizer, with the chat template wherever the checkpoint keeps it."""
        from transformers import AutoTokenizer

        tokenizer = self._load(
            "the tokenizer", lambda: AutoTokenizer.from_pretrained(self.folder, trust_remote_code=False)
        )
        legacy = self.folder / "chat_template.json"
        if not tokenizer.chat_template and legacy.exists():
            text = self._load(legacy.name, lambda: json.loads(legacy.read_text(encoding="utf-8")))
            tokenizer.chat_template = text["chat_template"]
        return tokenizer

    def image_processor(self) -> Any:
        """The PIL variant, the same with and without torchvision."""
        from transformers import AutoImageProcessor

        return self._load(
            "preprocessor_config.json",
            lambda: AutoImageProcessor.from_pretrained(self.folder, backend="pil", trust_remote_code=False),
        )

    def processor(self) -> Any:
        """The processor of texts and images together, with the PIL variant of the image processor."""
        from transformers import AutoProcessor

        return self._load(
            "the processor",
            lambda: AutoProcessor.from_pretrained(self.folder, backend="pil", trust_remote_code=False),
        )

    def generation_config(self, config: Any) -> Any:
        """The model's generation settings; those of its config when it ships none."""
        from transformers import GenerationConfig

        if (self.folder / "generation_config.json").exists():
            return self._load("generation_config.json", lambda: GenerationConfig.from_pretrained(self.folder))
        return GenerationConfig.from_model_config(config)

    def model(self) -> Any:
        """The model in eval mode, on the CPU, in the type it is stored in."""
        from transformers import AutoModelForImageTextToText
        from transformers.utils import logging

        with _quiet(logging):
            loaded: Any = self._load(
                "the weights",
                lambda: AutoModelForImageTextToText.from_pretrained(
                    self.folder,
                    dtype="auto",
                    attn_implementation="sdpa",
                    use_safetensors=True,
                    trust_remote_code=False,
                    output_loading_info=True,
                ),
            )
        model, info = loaded
        if missing := sorted(info["missing_keys"]):
            raise self.error(
                f"its weights lack {len(missing)} tensors of a {type(model).__name__} (first: {missing[0]})",
                "download it again, or set target.model to a complete checkpoint",
            )
        return model.eval()

    def error(self, cause: str, fix: str) -> TargetError:
        revision = f" at revision {self.revision}" if self.revision else ""
        return TargetError(f"target {self.target!r}: {self.name}{revision}: {cause}; {fix}")

    def _load(self, what: str, load: Callable[[], T]) -> T:
        """Loaders fail in as many ways as there are broken files, so every failure of theirs is the checkpoint's."""
        try:
            return load()
        except TargetError:
            raise
        except Exception as e:
            cause = f"cannot load {what}: {type(e).__name__}: {_first_line(e)}"
            raise self.error(cause, "set target.model to a checkpoint this target reads") from e


def _missing(folder: Path) -> Iterator[str]:
    """Names of the files a checkpoint cannot do without and `folder` does not have."""
    for name in ("config.json", "preprocessor_config.json"):
        if not (folder / name).is_file():
            yield name
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.json", "tokenizer.model")):
        yield "tokenizer.json"
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        if not (folder / "model.safetensors").is_file():
            yield "model.safetensors"
        return
    try:
        shards: Sequence[str] = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError):
        yield f"a readable {index.name}"
        return
    yield from (name for name in shards if not (folder / os.path.basename(name)).is_file())


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Without the loader's progress bar and its table of missing tensors: we report these ourselves."""
    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def _first_line(e: Exception) -> str:
    text = str(e).strip()
    return text.splitlines()[0].rstrip(".:;") if text else "no reason given"
