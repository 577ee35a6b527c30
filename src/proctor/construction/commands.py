"""`proctor build convert`, and what commands share that read annotated videos."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proctor.construction.annotation import ReadDefaults
from proctor.construction.checks import Completion, complete
from proctor.construction.files import files_of, read_annotations, write_folder
from proctor.core import PluginReport, Steps, count_of


class TracksAs(StrEnum):
    """What tracks are written as."""

    CVAT = "cvat"
    COCO = "coco"
    JSON = "json"


TrackFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACKS",
        help="CVAT for video 1.1, COCO or Proctor's own files, or folders of them.",
        show_default=False,
    ),
]
Fps = Annotated[
    float | None, typer.Option("--fps", help="Frames per second, where a file does not say (CVAT).", show_default=False)
]
ProcedureName = Annotated[
    str, typer.Option("--procedure", help="The kind of procedure, where a file does not say.", show_default=False)
]


def convert(
    tracks: TrackFiles,
    out: Annotated[Path, typer.Option("--out", help="A new folder.", show_default=False)],
    to: Annotated[TracksAs, typer.Option("--to", help="What to write.", show_default=False)],
    steps: Steps,
    fill: Annotated[
        int, typer.Option("--fill", min=0, max=60, help="Fill gaps of up to this many seconds in a track.")
    ] = 0,
    fps: Fps = None,
    procedure: ProcedureName = "",
) -> PluginReport:
    """Convert tracks: CVAT, COCO, JSON.

    CVAT for video 1.1, COCO, or Proctor's own JSON.

    Example: proctor build convert simulated/tracks --to cvat --out for-cvat
    """
    completions = completed(tracks, ReadDefaults(fps, procedure), fill, steps)
    annotations = [one.annotation for one in completions]
    files = write_folder(annotations, to.value, out)
    filled = sum(len(one.filled) for one in completions)
    line = f"{count_of(len(annotations), 'video')} in {count_of(len(files), 'file')} in {out}"
    line += f"; {count_of(filled, 'gap')} filled" if filled else ""
    return PluginReport({"videos": len(annotations), "files": [*files], "filled": filled}, (line,))


def completed(tracks: Sequence[Path], defaults: ReadDefaults, fill: int, steps: Steps) -> list[Completion]:
    """The videos of track files, checked, their short gaps filled."""
    files = files_of(tracks)
    with steps("reading tracks", len(files)) as progress:
        annotations = read_annotations(files, defaults, progress=progress)
    with steps("checking tracks", len(annotations)) as progress:
        completions = []
        for number, one in enumerate(annotations, start=1):
            completions.append(complete(one, fill))
            progress(number, len(annotations))
    return completions
