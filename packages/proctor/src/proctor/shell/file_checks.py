"""Checks of one's own questions and their media files (all faults at once), of a store's rows, and of the documents that
judges read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, JsonValue

from proctor.core import FrozenModel, InputError, PluginReport, ValidationRequest, check_path, count_of, validated
from proctor.reports import FrameLike, Record
from proctor.shell.benchmarks import as_lists, media_at
from proctor.shell.stores import open_store

_SHOWN = 100
"""How many damaged rows of a store are listed."""


@dataclass(frozen=True, repr=False)
class CheckTable(FrameLike):
    """A row for each fault: `file`, `row`, `column`, what was `found` and what was `expected`. `notes` say how the
    questions were read."""

    report: PluginReport

    @property
    def rows(self) -> list[Record]:
        """One fault a row, in the order of the file."""
        return cast("list[Record]", self._json["faults"])

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.report.ok

    @property
    def items(self) -> int:
        """How many questions could be read."""
        return int(self._json["items"])

    @property
    def groups(self) -> int:
        """How many groups they are in."""
        return int(self._json["groups"])

    @property
    def title(self) -> str:
        """What was found, in a line."""
        return str(self.report.shown[-1])

    @property
    def notes(self) -> tuple[str, ...]:
        """How the questions were understood."""
        return tuple(self._json["notes"])

    @property
    def _json(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.report.json)


def check(
    path: str | Path,
    media: str | Path | None = None,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    out: str | Path | None = None,
) -> CheckTable:
    """Check your own questions (a folder or a file, as in `load`) and their media files, and list all faults at once.

    If there are none, a page with ten questions as a model gets them is written to `out`. Raises `InputError` if there
    is nothing at the path, or a file of another kind. The command is `proctor check`.
    """
    folder, page = media_at(media), None if out is None else Path(out)
    return CheckTable(check_path(Path(path), folder, page, columns=as_lists(columns)))


def validate_store(file: Path, request: ValidationRequest) -> PluginReport:
    """Check that every row of a store can be read, and change nothing. The report's JSON has the lines on damaged rows as
    `damaged`; it is not `ok` if there are any. Raises `InputError` where there is no store."""
    from proctor.runs import DamagedStoreError, check_file, check_store

    request.known_options()
    advice = "restore a copy, or run the affected items again into another --store"
    try:
        lines = list(check_store(open_store(request.given or file, create=False)))
    except DamagedStoreError as error:
        if error.path is None:
            raise
        lines = list(check_file(error.path)) or [error.found]
        advice += "; `sqlite3 OLD.db .recover | sqlite3 NEW.db` copies what can be read"
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    last = f"{len(lines)} damaged: {advice}" if lines else "Every row can be read."
    damaged: list[JsonValue] = [*lines]
    return PluginReport({"damaged": damaged}, (*lines[:_SHOWN], *more, last), ok=not lines)


class _DocumentOptions(FrozenModel):
    """The options of `validate_documents`."""

    query: str = ""
    top: Annotated[int, Field(ge=1)] = 5
    out: Path | None = None
    encoder: str = "all-MiniLM-L6-v2"
    size: Annotated[int, Field(ge=8, le=2000)] = 160
    overlap: Annotated[int, Field(ge=0)] | None = None


def validate_documents(folder: Path, request: ValidationRequest) -> PluginReport:
    """Read a folder with text, Markdown and PDF as `retrieval-judge` and `evidence-judge` do: its index is built if it is
    missing, and a current one is not built again.

    Options: `query` shows the `top` (5) passages that are found for it; `out` is the index's folder (default: beside the
    documents), `encoder` the embedded one or a folder with one of sentence-transformers, `size` (8 to 2000, default 160)
    the words of a passage at most, and `overlap` those that it shares with the one before (at most half of `size`,
    default a fifth). Raises `InputError` for documents that can't be read and for such options.
    """
    from proctor.judges import Chunking, IndexSettings, default_folder, open_index
    from proctor.reports import passages_table

    given = validated(_DocumentOptions, dict(request.known_options(*_DocumentOptions.model_fields)), None, "--option")
    if given.overlap is not None and given.overlap > given.size // 2:
        raise InputError(
            "--option", found=f"overlap={given.overlap}", expected=f"at most half of size, {given.size // 2}"
        )
    where = given.out or default_folder(folder)
    chunking = Chunking.of(given.size, given.overlap)
    opened = open_index(folder, where, IndexSettings(chunking=chunking, encoder=given.encoder))
    passages, read = count_of(len(opened.index.passages), "passage"), count_of(len(opened.documents), "document")
    said = f"{passages} of {read}, {'built' if opened.built else 'current'}: {where}"
    json: dict[str, JsonValue] = {
        "passages": len(opened.index.passages),
        "documents": len(opened.documents),
        "built": opened.built,
        "index": str(where),
    }
    if not given.query:
        return PluginReport(json, (said,))
    found = passages_table(given.query, opened.index.search([given.query], given.top))
    return PluginReport(json | {"found": cast("JsonValue", [*found.records])}, (said, found))
