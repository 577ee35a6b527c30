"""Options that several commands share, each declared once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proctor.core import FailedPolicy


class OutputFormat(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def benchmark_names() -> list[str]:
    """For the shell's completion, as all functions of this kind here."""
    from proctor.core import BENCHMARKS

    return BENCHMARKS.names()


def system_names() -> list[str]:
    """The built-in systems and methods."""
    from proctor.systems import SYSTEMS

    return SYSTEMS.names()


def judge_names() -> list[str]:
    """The judges of stored answers."""
    from proctor.judges import JUDGES

    return JUDGES.names()


def condition_names() -> list[str]:
    """The conditions."""
    from proctor.media import CONDITIONS

    return CONDITIONS.names()


BenchmarkName = Annotated[
    str,
    typer.Argument(
        metavar="BENCHMARK",
        help="A benchmark's name (proctor list benchmarks).",
        show_default=False,
        autocompletion=benchmark_names,
    ),
]
StoreUrl = Annotated[
    str,
    typer.Option("--store", envvar="PROCTOR_STORE", help="The store: a path of an SQLite file, or an SQLAlchemy URL."),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", help="The folder with the benchmark's own files; the store remembers it.", show_default=False
    ),
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
        "--two-level", help="Intervals draw groups, and then questions within each: wider than whole groups need."
    ),
]
AllItems = Annotated[bool, typer.Option("--all-items", help="Also the items that the benchmark does not count.")]
FailedOption = Annotated[
    FailedPolicy | None,
    typer.Option(
        "--failed",
        help="Items without a score: wrong, or left out. [default: the benchmark's rule, else both]",
        show_default=False,
    ),
]
Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--system", help="Only this system; may be repeated.", show_default=False, autocompletion=system_names
    ),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--condition", help="Only this condition; may be repeated.", show_default=False, autocompletion=condition_names
    ),
]
