"""Options that several commands share, each declared once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proctor.core import BenchmarkReader, Briefing, FailedPolicy

__all__ = [
    "AllItems",
    "BenchmarkName",
    "Conditions",
    "Data",
    "Draws",
    "FailedOption",
    "Media",
    "Output",
    "OutputFormat",
    "Seed",
    "StoreUrl",
    "Systems",
    "TrackName",
    "TwoLevel",
    "briefing_of",
    "reader_of",
]


class OutputFormat(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


BenchmarkName = Annotated[
    str,
    typer.Argument(
        metavar="BENCHMARK", help="A benchmark's name (proctor list benchmarks).", show_default=False
    ),
]
StoreUrl = Annotated[
    str,
    typer.Option(
        "--store", envvar="PROCTOR_STORE", help="The store: a path of an SQLite file, or an SQLAlchemy URL."
    ),
]
Data = Annotated[
    Path, typer.Option("--data", help="The folder with the benchmark's own files.", show_default=False)
]
Media = Annotated[
    Path | None, typer.Option("--media", help="The folder with its videos or images.", show_default=False)
]
TrackName = Annotated[
    str,
    typer.Option(
        "--track",
        help="The track, where a benchmark comes in several (focus: frame, segment, procedure).",
        show_default=False,
    ),
]
Output = Annotated[OutputFormat, typer.Option("--format", help="For people or for programs.")]
Seed = Annotated[int, typer.Option("--seed", help="The seed of every draw; recorded.")]
Draws = Annotated[int, typer.Option("--draws", min=100, help="Bootstrap draws behind each interval.")]
TwoLevel = Annotated[
    bool,
    typer.Option(
        "--two-level",
        help="Intervals draw groups, and then questions within each: wider than whole groups need.",
    ),
]
AllItems = Annotated[
    bool, typer.Option("--all-items", help="Also the items that the benchmark does not count.")
]
FailedOption = Annotated[
    FailedPolicy | None,
    typer.Option(
        "--failed",
        help="Items without a score: wrong, or left out. [default: the benchmark's rule, else both]",
        show_default=False,
    ),
]
Systems = Annotated[
    list[str] | None, typer.Option("--system", help="Only this system; may be repeated.", show_default=False)
]
Conditions = Annotated[
    list[str] | None,
    typer.Option("--condition", help="Only this condition; may be repeated.", show_default=False),
]


def reader_of(benchmark: str, track: str = "") -> BenchmarkReader:
    """A benchmark's reader, on a track where one is named. Raises `InputError` where it knows no tracks."""
    from proctor.benchmarks import BENCHMARKS
    from proctor.core import HasTracks, InputError

    reader = BENCHMARKS.get(benchmark)
    if not track:
        return reader
    if not isinstance(reader, HasTracks):
        raise InputError(None, "--track", found=repr(track), expected=f"no track, {benchmark} has none")
    return reader.on_track(track)


def briefing_of(benchmark: str) -> Briefing | None:
    """What a benchmark has models and judges told, if anything."""
    from proctor.core import HasBriefing

    reader = reader_of(benchmark)
    return reader.briefing() if isinstance(reader, HasBriefing) else None
