"""A checkpoint in the Hugging Face file format: found (folder or hub id), checked, loaded with the stock classes.

Whatever is wrong with it becomes a one-line `TargetError` that names the checkpoint, the cause and the option to set.
Nothing is ever unpickled (safetensors only), and no code of a checkpoint is run unless the user asked for it.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from hsdkit.errors import TargetError
from hsdkit.hub import is_hub_id, must_be_fetched

log = logging.getLogger(__name__)

T = TypeVar("T")

_PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Checkpoint:
    """`name` is a hub id or a folder; `revision` a branch, tag or commit of the hub; `target` names who asks.
    `model_class` and `processor_class` are classes of `transformers`, for models the Auto classes do not find;
    `register` makes classes of ours known to them. Without `weights` these are neither fetched nor asked for: whoever
    only prepares requests for a server needs none."""

    name: str
    revision: str | None = None
    target: str = ""
    trust_remote_code: bool = False
    model_class: str | None = None
    processor_class: str | None = None
    register: Callable[[], None] | None = None
    weights: bool = True

    @cached_property
    def folder(self) -> Path:
        """The local folder; downloads a hub id on first use. Raises `TargetError` if it is not there or incomplete."""
        if not self.name:
            raise self.error("no model is given", "set target.model to a checkpoint folder or a Hugging Face id")
        folder = Path(self.name).expanduser()
        if not folder.is_dir():
            if not is_hub_id(self.name) or folder.exists():
                raise self.error("no such folder", "set target.model to a checkpoint folder or a Hugging Face id")
            if self.trust_remote_code and not _COMMIT.fullmatch(self.revision or ""):
                raise self.error(
                    "target.trust_remote_code=true runs code that its owner can change at any time",
                    "pin it with target.revision=COMMIT (40 hex digits), or set target.model to a local folder",
                )
            folder = self._download()
        if missing := list(_missing(folder, self.processor_class is not None, self.weights)):
            raise self.error(
                f"incomplete checkpoint: {', '.join(missing)} missing in {folder}",
                "download all of its files, or set target.model to a complete folder",
            )
        return folder

    def _download(self) -> Path:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

        option = "set target.model to a local checkpoint folder"
        patterns = [*_PATTERNS, "*.py"] if self.trust_remote_code else _PATTERNS
        others = ["*/*"] if self.weights else ["*/*", "*.safetensors"]  # folders hold other releases and other formats
        if must_be_fetched(self.name, self.revision):
            log.warning("fetching %s from the Hugging Face hub; this is done once and can take minutes", self.name)
        try:
            return Path(
                snapshot_download(self.name, revision=self.revision, allow_patterns=patterns, ignore_patterns=others)
            )
        except GatedRepoError as e:
            raise self.error("its owner asks for a login or consent", "run `hf auth login` once it is granted") from e
        except RepositoryNotFoundError as e:
            raise self.error("neither a local folder nor a model of the hub", option) from e
        except RevisionNotFoundError as e:
            raise self.error(f"has no revision {self.revision!r}", "set target.revision") from e
        except OSError as e:
            pinned = f" --revision {self.revision}" if self.revision else ""
            command = f"hf download {self.name}{pinned} --exclude '*/*' --local-dir FOLDER"
            raise self.error(
                "not in the local cache, and the hub cannot be reached",
                f"get it with `{command}` where there is a network, then set target.model=FOLDER",
            ) from e
        except ValueError as e:
            raise self.error(_first_line(e), option) from e

    # -- its parts

    @cached_property
    def description(self) -> dict[str, Any]:
        """config.json as it is."""

        def read() -> dict[str, Any]:
            read = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
            if not isinstance(read, dict):
                raise ValueError("not an object")
            return read

        return self.load("config.json", read)

    @property
    def model_type(self) -> str:
        """The architecture that config.json names."""
        return str(self.description.get("model_type"))

    @cached_property
    def remote_code(self) -> bool:
        """Whether to load it with the code it brings: only if there is no other. Raises `TargetError` where the user
        did not ask for that."""
        from transformers import CONFIG_MAPPING

        if self.register is not None:
            self.register()
        if self.model_class is not None or self.model_type in CONFIG_MAPPING or "auto_map" not in self.description:
            return False
        if not self.trust_remote_code:
            raise self.error(
                f"a {self.model_type} model that runs code of its own, and hsdkit runs none unasked",
                "read the .py files in it, then set target.trust_remote_code=true with a local folder or a pinned "
                "target.revision",
            )
        return True

    def config(self) -> Any:
        from transformers import AutoConfig

        loader = AutoConfig if self.model_class is None else self._class(self.model_class).config_class
        remote = self.remote_code
        return self.load("config.json", lambda: loader.from_pretrained(self.folder, trust_remote_code=remote))

    def tokenizer(self) -> Any:
        """The tokenizer, with the chat template wherever the checkpoint keeps it."""
        from transformers import AutoTokenizer

        remote = self.remote_code
        tokenizer = self.load(
            "the tokenizer", lambda: AutoTokenizer.from_pretrained(self.folder, trust_remote_code=remote)
        )
        legacy = self.folder / "chat_template.json"
        if not tokenizer.chat_template and legacy.exists():
            tokenizer.chat_template = self.load(
                legacy.name, lambda: json.loads(legacy.read_text(encoding="utf-8"))["chat_template"]
            )
        return tokenizer

    def image_processor(self) -> Any:
        """The PIL variant, the same with and without torchvision."""
        from transformers import AutoImageProcessor

        remote = self.remote_code
        return self.load(
            "its image processor",
            lambda: AutoImageProcessor.from_pretrained(self.folder, backend="pil", trust_remote_code=remote),
        )

    def processor(self) -> Any:
        """The processor of texts and images together, with the PIL variant of the image processor."""
        loader = self._class(self.processor_class or "AutoProcessor")
        remote = self.remote_code
        return self.load(
            "its processor", lambda: loader.from_pretrained(self.folder, backend="pil", trust_remote_code=remote)
        )

    def generation_config(self, config: Any) -> Any:
        """The model's generation settings; those of its config when it ships none."""
        from transformers import GenerationConfig

        if (self.folder / "generation_config.json").exists():
            return self.load("generation_config.json", lambda: GenerationConfig.from_pretrained(self.folder))
        return GenerationConfig.from_model_config(config)

    def model(self) -> Any:
        """The model in eval mode, on the CPU, in the type it is stored in."""
        loader = self._class(self.model_class or "AutoModelForImageTextToText")
        remote = self.remote_code
        loaded: Any = self.load(
            "the weights",
            lambda: loader.from_pretrained(
                self.folder,
                dtype="auto",
                attn_implementation="sdpa",
                use_safetensors=True,
                trust_remote_code=remote,
                output_loading_info=True,
            ),
        )
        model, info = loaded
        if missing := sorted(info["missing_keys"]):
            raise self.error(
                f"its weights lack {len(missing)} tensors of a {type(model).__name__} (first: {_few(missing)})",
                "download it again, or set target.model to a complete checkpoint",
            )
        if unexpected := sorted(info["unexpected_keys"]):  # without those that the class knows to be of no use
            log.warning(
                "target %r: %s: its weights have %d tensors that no %s has (first: %s); they are not used",
                self.target, self.name, len(unexpected), type(model).__name__, _few(unexpected),
            )  # fmt: skip
        return model.eval()

    def _class(self, name: str) -> Any:
        """Raises `TargetError` where the installed `transformers` has no such class."""
        import transformers

        found = getattr(transformers, name, None)
        if found is None:
            raise self.error(
                f"transformers {transformers.__version__} has no {name}", "run `pip install -U transformers`"
            )
        return found

    def error(self, cause: str, fix: str) -> TargetError:
        revision = f" at revision {self.revision}" if self.revision else ""
        return TargetError(f"target {self.target!r}: {self.name}{revision}: {cause}; {fix}")

    def load(self, what: str, load: Callable[[], T]) -> T:
        """What `load` gives: loaders fail in as many ways as there are broken files, so every failure of theirs is the
        checkpoint's."""
        from transformers.utils import logging

        try:
            with _quiet(logging):
                return load()
        except TargetError:
            raise
        except Exception as e:
            cause = f"cannot load {what}: {type(e).__name__}: {_first_line(e)}"
            raise self.error(cause, "set target.model to a checkpoint this target reads") from e


def _missing(folder: Path, processor: bool, weights: bool) -> Iterator[str]:
    """Names of the files a checkpoint cannot do without and `folder` does not have. Since `transformers` 5, settings of
    the image processor may stand in those of the processor."""
    for names in (
        ("config.json",),
        ("processor_config.json",) if processor else (),
        ("preprocessor_config.json", "processor_config.json"),
        ("tokenizer.json", "vocab.json", "tokenizer.model"),
    ):
        if names and not any((folder / name).is_file() for name in names):
            yield names[0]
    if not weights:
        return
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
    """Without the loaders' progress bars, warnings and tables of missing tensors: we report these ourselves."""
    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3])


def _first_line(e: Exception) -> str:
    text = str(e).strip()
    return text.splitlines()[0].rstrip(".:;") if text else "no reason given"
