"""Document-parsing vision-language models, several times faster, saying exactly the same.

    import hsdkit
    print(hsdkit.parse("report.pdf").markdown)

The names below are the public face. They are imported when first used: `import hsdkit` loads no model library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hsdkit.components import Component, Requirement
    from hsdkit.config import RunConfig, compose
    from hsdkit.document_result import DocumentResult
    from hsdkit.errors import ConfigError, DocumentError, DrafterError, HsdkitError, PluginError, TargetError
    from hsdkit.hookspecs import hookimpl
    from hsdkit.pipeline import Pipeline, parse
    from hsdkit.regions import Box, Draft, Label, Region
    from hsdkit.results import PageResult

_HOME = {
    "Box": "regions",
    "Component": "components",
    "ConfigError": "errors",
    "DocumentError": "errors",
    "DocumentResult": "document_result",
    "Draft": "regions",
    "DrafterError": "errors",
    "HsdkitError": "errors",
    "Label": "regions",
    "PageResult": "results",
    "Pipeline": "pipeline",
    "PluginError": "errors",
    "Region": "regions",
    "Requirement": "components",
    "RunConfig": "config",
    "TargetError": "errors",
    "compose": "config",
    "hookimpl": "hookspecs",
    "parse": "pipeline",
}

__all__ = [
    "Box",
    "Component",
    "ConfigError",
    "DocumentError",
    "DocumentResult",
    "Draft",
    "DrafterError",
    "HsdkitError",
    "Label",
    "PageResult",
    "Pipeline",
    "PluginError",
    "Region",
    "Requirement",
    "RunConfig",
    "TargetError",
    "compose",
    "hookimpl",
    "parse",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hsdkit' has no attribute {name!r}")
    return getattr(import_module(f"hsdkit.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
