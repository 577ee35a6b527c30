"""What a stage writes for people: a table to fill in, and tracks for an annotation program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from proctor.core import InputError, UsageError, count_of, write_whole
from proctor_build.files import write_folder
from proctor_build.pipeline.project import Project

if TYPE_CHECKING:
    from proctor_build.pipeline.stage import Stage


@dataclass(frozen=True)
class StageFiles:
    """The files to write of a stage: its table (`out`), its tracks (a folder) and their format (None: the stage's)."""

    out: Path | None = None
    tracks: Path | None = None
    to: Literal["cvat", "coco", "json"] | None = None

    def check(self, stage: Stage[Any]) -> None:
        """Raises `UsageError` for a file that the stage does not have, and `InputError` for one that exists."""
        if self.out is not None and not stage.has_table:
            raise UsageError(f"The stage {stage.name} has no table for people. Leave --out out.")
        if self.tracks is not None and not stage.tracks_as:
            raise UsageError(f"The stage {stage.name} has no tracks. Leave --tracks out.")
        for path in (self.out, self.tracks):
            if path is not None and path.exists() and (path.is_file() or any(path.iterdir())):
                raise InputError(path, found="something there already", expected="a new file or folder")

    def write(self, project: Project, stage: Stage[Any]) -> list[str]:
        """Writes the files from the stage's records on disk; a line about each."""
        lines = []
        if self.tracks is not None and stage.tracks_as and (annotations := stage.tracks(project)):
            files = write_folder(annotations, self.to or stage.tracks_as, self.tracks)
            lines.append(f"{count_of(len(files), 'file')} in {self.tracks}")
        if self.out is not None:
            table = stage.table(project)
            write_whole(self.out, table.text)
            lines.append(f"{count_of(table.rows, table.what)} in {self.out}")
        return lines
