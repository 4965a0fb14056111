"""Where a model's config.json comes from: a file, a folder, the name of a target, or a Hugging Face id. No weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hsdkit.errors import ConfigError, PluginError
from hsdkit.hub import is_hub_id
from hsdkit.plugins import plugins
from hsdkit.roofline.shape import Shape, read_shape

_WAYS = "give a config.json, a checkpoint folder, the name of a target, or a Hugging Face id"


def find_shape(name: str, revision: str | None = None) -> Shape:
    """Raises `ConfigError` where there is no such model, or its config does not say enough."""
    config = _config(name, revision)
    try:
        shape = read_shape(config, name)
        complete = shape.vision is not None or "vision_config" not in config
    except ConfigError as error:
        if (full := _with_defaults(config)) is None:
            raise
        try:
            return read_shape(full, name)
        except ConfigError:
            raise error from None
    full = None if complete else _with_defaults(config)
    return shape if full is None else read_shape(full, name)


def _config(name: str, revision: str | None) -> dict[str, Any]:
    path = Path(name).expanduser()
    if path.is_dir():
        path = path / "config.json"
    if path.is_file():
        return _read(path, name)
    if (path.parent.is_dir() and path.suffix == ".json") or name.startswith((".", "/", "~")):
        raise ConfigError(f"model={name}: no such file or folder; {_WAYS}")
    return _read(_download(name, revision), name) if is_hub_id(name) else _of_target(name)


def _of_target(name: str) -> dict[str, Any]:
    """The config of a target's default checkpoint."""
    try:
        options = plugins().component("target", name).config()
        model = getattr(options, "model", None)
        if model:
            return _config(model, getattr(options, "revision", None))
        found: dict[str, Any] = plugins().build("target", name).model_config.to_dict()
        return found
    except (PluginError, AttributeError) as e:
        raise ConfigError(f"model={name}: {e}; {_WAYS}") from None


def _download(name: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, "config.json", revision=revision))
    except Exception as e:  # the hub's errors, the network's, names it does not allow
        raise ConfigError(
            f"model={name}: its config.json is neither in the local cache nor to be had from the hub "
            f"({type(e).__name__}); {_WAYS}"
        ) from e


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise ConfigError(f"model={name}: {path} cannot be read: {e}") from e
    if not isinstance(found, dict):
        raise ConfigError(f"model={name}: {path} is no config.json: not an object")
    return found


def _with_defaults(config: dict[str, Any]) -> dict[str, Any] | None:
    """The config with the values that its class in `transformers` adds; None where there is no such class."""
    from transformers import CONFIG_MAPPING

    kind = str(config.get("model_type"))
    if kind not in CONFIG_MAPPING:
        return None
    try:
        found: dict[str, Any] = CONFIG_MAPPING[kind](**config).to_dict()
    except Exception:  # a class may refuse its own configs in as many ways as there are classes
        return None
    return found
