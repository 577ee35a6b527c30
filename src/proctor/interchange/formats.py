"""All formats of other programs in one table: what is read, what is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from proctor.core import UsageError, one_of
from proctor.interchange.export_source import ExportSource, Written

Writer = Callable[[ExportSource, Path], Written]


@dataclass(frozen=True)
class ForeignFormat:
    """One format. `writer` is the function that writes it, as "module:function" of this room ("" where it is not
    written); `folder` says that it is a folder."""

    name: str
    title: str
    writer: str = ""
    folder: bool = False

    @property
    def summary(self) -> str:
        """What it is and what is done with it, in one line."""
        return f"{self.title}: exported{' as a folder' if self.folder else ''}"

    def write(self, source: ExportSource, out: Path) -> Written:
        """Writes it; see the function's own errors."""
        return cast("Writer", _function(self.writer))(source, out)


class ForeignFormats:
    """The formats, by name."""

    def __init__(self, *formats: ForeignFormat) -> None:
        self._known = {one.name: one for one in formats}

    def names(self) -> list[str]:
        """All names."""
        return list(self._known)

    def written(self) -> list[str]:
        """The names of those that are written."""
        return [name for name, one in self._known.items() if one.writer]

    def get(self, name: str) -> ForeignFormat:
        """The format of a name. Raises `UsageError` that lists them."""
        if name not in self._known:
            raise UsageError("format", one_of(self._known, name), found=repr(name))
        return self._known[name]


def _function(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"proctor.interchange.{module}"), name)


FORMATS = ForeignFormats(
    ForeignFormat(
        "every-eval-ever",
        "Every Eval Ever 0.3, results and answers",
        "every_eval_ever:write_every_eval_ever",
        folder=True,
    ),
    ForeignFormat("hf-results", "Hugging Face .eval_results", "hugging_face:write_eval_results", folder=True),
    ForeignFormat("hf-eval", "Hugging Face eval.yaml", "hugging_face:write_eval_yaml"),
    ForeignFormat("model-card", "A table for a model's card, in Markdown", "model_card:write_model_card"),
)
"""The formats of other programs."""
