"""`proctor reproduce` and `proctor verify`: what was shown is made again, and published figures are computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.api import BenchmarkName, ReproduceOptions, StoreUrl
from proctor.cli.output import Output, OutputFormat, note, show
from proctor.cli.progress import show_steps
from proctor.core import Option


def reproduce(
    benchmark: BenchmarkName, options: ReproduceOptions, store: StoreUrl = None, output: Output = OutputFormat.TABLE
) -> None:
    """Make again what systems were shown.

    Every picture is made again from the media files, as the run's settings say, and compared with the record in the
    store: its time, and the SHA-256 of its bytes as the system got it. Kept frames are not used.

    Exit code 1 where something differs, or can't be compared. Example: proctor reproduce focus --media videos
    """
    from proctor import api

    opened = api.open_store(store, create=False)
    with show_steps("making again", 0) as progress:
        watched: ReproduceOptions = {**options, "on_change": progress}
        found = api.reproduce(opened, api.name_in(opened, benchmark), **watched)
    show(output, found.rows, *found.tables)
    note(*found.notes)
    if not found.ok:
        raise typer.Exit(1)


def verify(
    folder: Annotated[Path, Option("Holds recorded answers, or folders with them.", metavar="FOLDER", argument=True)],
    benchmarks: Annotated[list[str] | None, Option("Only this benchmark; may be repeated.", "--benchmark")] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Compare published figures with ours.

    Every benchmark that brings published figures computes them again from the recorded answers, as exactly as they were
    published. Figures that differ are listed; --format json and csv list all.

    Exit code 1 where one differs, or none could be compared. Example: proctor verify data
    """
    from proctor import api

    with show_steps("verifying", 0) as progress:
        found = api.verify(folder, benchmarks or (), on_change=progress)
    show(output, found.rows, *found.tables)
    note(*found.notes)
    if not found.ok:
        raise typer.Exit(1)
