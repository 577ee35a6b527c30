"""Your own questions checked: `check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from proctor.api.execution import as_lists
from proctor.api.tables import FrameLike, Row
from proctor.core import reader_of_paths

if TYPE_CHECKING:
    from proctor.core import PluginReport


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
    folder, page = None if media is None else Path(media), None if out is None else Path(out)
    return CheckTable(reader.check(Path(path), folder, page))
