"""`proctor plan`: how large a study has to be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.cli.output import Output, OutputFormat, at_work, print_line, print_note, show
from proctor.core import Option
from proctor.shell import StudyPlanOptions


def plan(
    options: StudyPlanOptions,
    benchmark: Annotated[str, Option("The pilot's benchmark, if the store has several.", argument=True)] = "",
    pilot: Annotated[str | None, Option("The store of a pilot.", "--from", metavar="STORE")] = None,
    figure: Annotated[Path | None, Option("Also draw power curves: a .png, .pdf or .svg file.", "--figure")] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Plan how large a study has to be.

    Shows how many groups (videos, patients) detect a difference, or show a system not worse by a margin, for each number of
    questions per group and of repetitions, with the uncertainty of the pilot.

    Example: proctor plan --from runs.db --system A --system B --margin 3 --questions 5 --repeats 1 --repeats 5
    """
    from proctor import api

    with at_work("planning"):
        table = api.plan(source=pilot, benchmark=benchmark, **options)
        rows = table.rows
    if figure is not None:
        print_note(f"figure: {table.write_figure(figure)}")
    show(output, rows, *table.tables)
    if output is OutputFormat.TABLE:
        print_line("\n".join(table.curve_text()))
        print_note(*table.notes)
