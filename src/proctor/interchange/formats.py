"""All formats of other programs in one table: what is read, what is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from proctor.core import Benchmark, RecordedAnswers, UsageError, one_of
from proctor.interchange.export_source import ExportSource, Written
from proctor.interchange.recognition import TABLE, file_of
from proctor.interchange.recorded import RecordedFile, mapped

Writer = Callable[[ExportSource, Path], Written]


@dataclass(frozen=True)
class ForeignFormat:
    """One format. `reader` and `writer` are the functions that read and write it, as "module:function" of this room (""
    where there is none); `folder` says that a folder is written."""

    name: str
    title: str
    reader: str = ""
    writer: str = ""
    folder: bool = False

    @property
    def summary(self) -> str:
        """What it is and what is done with it, in one line."""
        export = f"exported{' as a folder' if self.folder else ''}" if self.writer else ""
        return f"{self.title}: {' and '.join(part for part in ('imported' * bool(self.reader), export) if part)}"

    def read(
        self, file: Path, benchmark: Benchmark, id_column: str = "", answer_column: str = "", name: str = ""
    ) -> RecordedAnswers:
        """Reads answers to a benchmark's items; see the function's own errors, and `mapped`."""
        file = file_of(file) if self.folder else file
        more = (answer_column, name) if self.name == TABLE else ()
        found: RecordedFile = _function(self.reader)(file, id_column, *more)
        read = mapped(file, self.name, found, benchmark, id_column)
        said = f"{file.name}: read as {self.name} ({self.title})"
        return replace(read, notes=(said, *read.notes))

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

    def read(self) -> list[str]:
        """The names of those that are read."""
        return [name for name, one in self._known.items() if one.reader]

    def get(self, name: str, choices: Sequence[str] = ()) -> ForeignFormat:
        """The format of a name, one of these (none named: of all). Raises `UsageError` that lists them."""
        known = choices or self.names()
        if name not in known:
            raise UsageError("format", one_of(known, name), found=repr(name))
        return self._known[name]

    def summary(self, name: str) -> str:
        """What a format says of itself in one line."""
        return self.get(name).summary


def _function(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"proctor.interchange.{module}"), name)


FORMATS = ForeignFormats(
    ForeignFormat(
        "lmms-eval", "Samples of lmms-eval", "lmms_eval:read_lmms_eval", "lmms_eval:write_lmms_eval", folder=True
    ),
    ForeignFormat("vlmevalkit", "Predictions of VLMEvalKit", "answer_tables:read_vlmevalkit"),
    ForeignFormat("inspect", "Log of Inspect", "inspect_logs:read_inspect", "inspect_logs:write_inspect"),
    ForeignFormat("openai-batch", "Output of OpenAI's batch API", "openai_batch:read_openai_batch"),
    ForeignFormat(TABLE, "Table of ids and answers", "answer_tables:read_table_of_answers"),
    ForeignFormat(
        "every-eval-ever",
        "Every Eval Ever 0.3, results and answers",
        writer="every_eval_ever:write_every_eval_ever",
        folder=True,
    ),
    ForeignFormat("hf-results", "Hugging Face .eval_results", writer="hugging_face:write_eval_results", folder=True),
    ForeignFormat("hf-eval", "Hugging Face eval.yaml", writer="hugging_face:write_eval_yaml"),
    ForeignFormat("hf-dataset", "Hugging Face dataset", writer="dataset_folder:write_dataset_folder", folder=True),
    ForeignFormat("croissant", "Croissant 1.1", writer="croissant:write_croissant", folder=True),
    ForeignFormat("inspect-task", "Task of Inspect", writer="task_folders:write_inspect_task", folder=True),
    ForeignFormat("lmms-eval-task", "Task of lmms-eval", writer="task_folders:write_lmms_eval_task", folder=True),
    ForeignFormat("model-card", "A table for a model's card, in Markdown", writer="model_card:write_model_card"),
)
"""The formats of other programs."""
