"""Files checked: your own questions (`check`), and what is handed in (`validate`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from proctor.api.exchange import form_of, read_foreign
from proctor.api.exchange_options import ImportOptions
from proctor.api.execution import as_lists, load
from proctor.api.options import Files, filled
from proctor.api.sources import media_at, recalled
from proctor.api.tables import FrameLike, Row
from proctor.core import (
    BENCHMARKS,
    VALIDATORS,
    PluginReport,
    UsageError,
    ValidationRequest,
    count_of,
    reader_of,
    reader_of_paths,
)

if TYPE_CHECKING:
    from proctor.runs import Store


@dataclass(frozen=True, repr=False)
class CheckTable(FrameLike):
    """A row for each fault: `file`, `row`, `column`, what was `found` and what was `expected`. `notes` say how the
    questions were understood."""

    report: PluginReport

    @property
    def rows(self) -> list[Row]:
        """One fault a row, in the order of the file."""
        return cast("list[Row]", self._told["faults"])

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.report.ok

    @property
    def items(self) -> int:
        """How many questions could be read."""
        return int(self._told["items"])

    @property
    def groups(self) -> int:
        """How many groups they are in."""
        return int(self._told["groups"])

    @property
    def title(self) -> str:
        """What was found, in a line."""
        return str(self.report.shown[-1])

    @property
    def notes(self) -> tuple[str, ...]:
        """How the questions were understood."""
        return tuple(self._told["notes"])

    @property
    def _told(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.report.json)


def check(
    path: str | Path,
    media: str | Path | None = None,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    out: str | Path | None = None,
) -> CheckTable:
    """Checks your own questions (a folder or a file, as in `load`) and their media files, and lists all faults at once.

    Where there are none, `out` is a page with ten questions as a model gets them, if it is named. Raises `InputError`
    where there is nothing at the path, or a file of another kind. The command is `proctor check`.
    """
    reader = reader_of_paths().with_columns(as_lists(columns))
    folder, page = media_at(media), None if out is None else Path(out)
    return CheckTable(reader.check(Path(path), folder, page))


def validate(
    benchmark: str,
    file: str | Path,
    *,
    store: Store | str | Path | None = None,
    media: str | Path | None = None,
    every: bool = False,
    options: Mapping[str, Any] | None = None,
    **files: Unpack[Files],
) -> PluginReport:
    """Checks a submission, or another file that a task knows, before it is sent. The store remembers the benchmark's
    own files. A benchmark without a check of its own has its recorded answers read (its own format, a table of ids and
    answers, or another program's), and nothing is kept. Raises `InputError` for what can't be read at all. The command
    is `proctor validate`."""
    given = filled("validate", Files, files)
    data, track, path, known = given["data"], given["track"], Path(file), None
    if data is None and benchmark in BENCHMARKS.names():
        with suppress(UsageError):  # a check may do without
            known, media, track = recalled(benchmark, store, None, media, track)
    folder, pictures, remembered = (
        None if data is None else Path(data),
        media_at(media),
        None if known is None else Path(known),
    )
    request = ValidationRequest(folder, pictures, track, every, dict(options or {}), remembered)
    if benchmark in VALIDATORS.names() or benchmark not in BENCHMARKS.names():
        return VALIDATORS.get(benchmark)(path, request)
    request.known_options()
    reader = reader_of(benchmark, track)
    loaded = load(benchmark, request.needed_data(f"the folder with the files of {benchmark}"), track=track)
    form = form_of(path, "", reader)
    how: ImportOptions = {"name": path.stem}
    found = (
        read_foreign(path, form, loaded, filled("validate", ImportOptions, how))
        if form
        else reader.read_recorded(path, loaded)
    )
    counts: dict[str, Any] = {"answers": len(found.answers), "items": len(loaded.items), "notes": [*found.notes]}
    counts["missing"] = len(loaded.items) - len({one.item_id for one in found.answers})
    answers, items = count_of(counts["answers"], "answer"), count_of(counts["items"], "item")
    line = f"{answers} to {items}, {counts['missing']} missing"
    return PluginReport(counts, (*found.notes, line))
