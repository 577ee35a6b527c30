"""The formats of other programs, and recognising them by a file's content."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile, ZipFile

from proctor.core import SHEET_SUFFIXES, Benchmark, InputError, RecordedAnswers, UsageError, one_of, read_sheet
from proctor.interchange.export_source import ExportSource, Written
from proctor.interchange.recorded import RecordedFile, mapped
from proctor.results import EXPORT_COLUMNS

TABLE = "table"
"""The format of a plain table of ids and answers."""

_HEAD = 2**20
_SIGNS: tuple[tuple[str, frozenset[str]], ...] = (
    ("openai-batch", frozenset({"custom_id", "response"})),
    ("lmms-eval", frozenset({"doc_id", "filtered_resps"})),
    ("vlmevalkit", frozenset({"index", "prediction"})),
)
_INSPECT = ('"version"', '"status"', '"eval"')
_SAMPLES = "*_samples_*.jsonl"  # in a folder by lmms-eval or `proctor export`


def recognised(path: Path) -> str:
    """The name of a file's or folder's format; "" for an unknown one."""
    try:
        if path.is_dir() and (samples := next(path.glob(_SAMPLES), None)) is not None:
            return recognised(samples)
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return ""
    if head.startswith(b"PK"):
        return _archive(path)
    if path.suffix.lower() in {".parquet", ".arrow"}:
        return TABLE
    text = head.decode("utf-8-sig", "replace")
    start = text.lstrip()
    if start.startswith("{"):
        return _object(start, path)
    return _columns(_names(start), path)


def file_of(path: Path) -> Path:
    """The file with the answers: the path itself, or the only file of samples in a folder. Raises `InputError` for a
    folder with none or several."""
    if not path.is_dir():
        return path
    found = sorted(path.glob(_SAMPLES))
    if len(found) != 1:
        several = f"{len(found)} ({', '.join(one.name for one in found[:5])})" if found else "none"
        raise InputError(path, f"files of samples ({_SAMPLES})", found=several, expected="one, or the path of one")
    return found[0]


def is_export(path: Path) -> bool:
    """Whether a file is a table of `proctor export`."""
    try:
        return set(EXPORT_COLUMNS[:6]) <= set(read_sheet(path).columns)
    except InputError:
        return False


def _archive(path: Path) -> str:
    try:
        with ZipFile(path) as archive:
            names = set(archive.namelist())
    except (BadZipFile, OSError, ValueError):
        return ""
    if "header.json" in names or "_journal/start.json" in names:
        return "inspect"
    if not any(name.startswith("xl/") for name in names):
        return ""
    return _columns(set(read_sheet(path).columns), path)


def _object(text: str, path: Path) -> str:
    try:
        first = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        first = None
    if isinstance(first, Mapping):
        return _columns(set(first), path)
    return "inspect" if all(name in text for name in _INSPECT) else ""


def _names(text: str) -> set[str]:
    """The columns of JSON objects, or of separated values."""
    if text.startswith("["):
        try:
            first: Any = json.JSONDecoder().raw_decode(text[1:].lstrip())[0]
        except (ValueError, RecursionError):
            return set()
        return set(first) if isinstance(first, dict) else set()
    line = text.split("\n", 1)[0].rstrip("\r")
    delimiter = max(",;\t|", key=line.count)
    try:
        return set(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return set()


def _columns(names: set[str], path: Path) -> str:
    if {"version", "status", "eval"} <= names:
        return "inspect"
    for form, signs in _SIGNS:
        if signs <= names:
            return form
    return TABLE if names and path.suffix.lower() in SHEET_SUFFIXES else ""


Writer = Callable[[ExportSource, Path], Written]


@dataclass(frozen=True)
class ForeignFormat:
    """One format. `reader` and `writer` are functions as "module:function" of this room, or ""; `folder` means that a
    folder is written, `epochs` that a file may have several answers of the system to an item, `leaves_out` that the program
    leaves failed answers out of its own score; others count them as wrong."""

    name: str
    title: str
    reader: str = ""
    writer: str = ""
    folder: bool = False
    epochs: bool = False
    leaves_out: bool = False

    @property
    def summary(self) -> str:
        """The title, and whether the format is imported and exported, in one line."""
        uses = ["imported"] if self.reader else []
        uses += [f"exported{' as a folder' if self.folder else ''}"] if self.writer else []
        return f"{self.title}: {' and '.join(uses)}"

    def read(
        self,
        file: Path,
        benchmark: Benchmark,
        id_column: str = "",
        answer_column: str = "",
        name: str = "",
        epoch: int | None = None,
    ) -> RecordedAnswers:
        """Reads answers to a benchmark's items, of all repetitions or of one `epoch` alone. Raises `UsageError` for an epoch
        of a format without epochs, and what the reader and `mapped` raise."""
        file = file_of(file) if self.folder else file
        if epoch is not None and not self.epochs:
            raise UsageError(f"{self.name} has one answer of a system to an item. Leave --epoch {epoch} out.")
        more: dict[str, Any] = {} if epoch is None else {"epoch": epoch}
        more |= {"answer_column": answer_column, "name": name} if self.name == TABLE else {}
        found: RecordedFile = _function(self.reader)(file, id_column, **more)
        answers = mapped(file, self.name, found, benchmark, id_column)
        note = f"{file.name}: read as {self.name} ({self.title})"
        return replace(answers, notes=(note, *answers.notes))

    def write(self, source: ExportSource, out: Path) -> Written:
        """Writes an export. Raises what the writer raises."""
        return cast("Writer", _function(self.writer))(source, out)


class ForeignFormats:
    """The formats, by name."""

    def __init__(self, *formats: ForeignFormat) -> None:
        self._known = {foreign_format.name: foreign_format for foreign_format in formats}

    def names(self) -> list[str]:
        """All names."""
        return list(self._known)

    def written(self) -> list[str]:
        """The names of the formats that are written."""
        return [name for name, one in self._known.items() if one.writer]

    def read(self) -> list[str]:
        """The names of the formats that are read."""
        return [name for name, one in self._known.items() if one.reader]

    def get(self, name: str, choices: Sequence[str] = ()) -> ForeignFormat:
        """The format with this name, of `choices` or all. Raises `UsageError` with the choices."""
        known = choices or self.names()
        if name not in known:
            raise UsageError(f"The format {name!r} is unknown: choose {one_of(known, name)}")
        return self._known[name]

    def summary(self, name: str) -> str:
        """The summary of the format with this name."""
        return self.get(name).summary


def _function(location: str) -> Any:
    module, _, name = location.partition(":")
    return getattr(import_module(f"proctor.interchange.{module}"), name)


FORMATS = ForeignFormats(
    ForeignFormat(
        "lmms-eval",
        "Samples of lmms-eval",
        "lmms_eval:read_lmms_eval",
        "lmms_eval:write_lmms_eval",
        folder=True,
        epochs=True,
    ),
    ForeignFormat("vlmevalkit", "Predictions of VLMEvalKit", "answer_files:read_vlmevalkit"),
    ForeignFormat(
        "inspect",
        "Log of Inspect",
        "inspect_logs:read_inspect",
        "inspect_logs:write_inspect",
        epochs=True,
        leaves_out=True,
    ),
    ForeignFormat("openai-batch", "Output of OpenAI's batch API", "answer_files:read_openai_batch"),
    ForeignFormat(TABLE, "Table of ids and answers", "answer_files:read_table_of_answers", epochs=True),
    ForeignFormat(
        "every-eval-ever",
        "Every Eval Ever 0.3, results and answers",
        writer="every_eval_ever:write_every_eval_ever",
        folder=True,
    ),
    ForeignFormat("hf-results", "Hugging Face .eval_results", writer="hugging_face:write_eval_results", folder=True),
    ForeignFormat("hf-eval", "Hugging Face eval.yaml", writer="hugging_face:write_eval_yaml"),
    ForeignFormat("hf-dataset", "Hugging Face dataset", writer="hugging_face:write_dataset_folder", folder=True),
    ForeignFormat("croissant", "Croissant 1.1", writer="croissant:write_croissant", folder=True),
    ForeignFormat("inspect-task", "Task of Inspect", writer="tasks:write_inspect_task", folder=True),
    ForeignFormat("lmms-eval-task", "Task of lmms-eval", writer="tasks:write_lmms_eval_task", folder=True),
    ForeignFormat("model-card", "A table for a model's card, in Markdown", writer="hugging_face:write_model_card"),
)
