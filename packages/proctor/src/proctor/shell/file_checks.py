"""A check of one's own questions and their media files: all faults at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from proctor.core import PluginReport, check_path
from proctor.reports import FrameLike, Record
from proctor.shell.benchmarks import as_lists, media_at


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
