"""How asking ended, every item of every run once."""

from __future__ import annotations

from proctor.reports.blocks import Cell, Column, Figure, Section, Table
from proctor.reports.figures import Bars, draw_bars
from proctor.reports.source import Source
from proctor.runs.report_data import status_counts

__all__ = ["statuses_section"]

_NAMES = {
    "readable": "answered",
    "unreadable": "answered, unreadable",
    "not_submitted": "not submitted",
    "refused": "refused",
    "timed_out": "timed out",
    "error": "error",
    "failed": "failed",
    "not_asked": "not asked",
}


def statuses_section(source: Source) -> Section | None:
    """One bar a run, with its numbers in a table."""
    rows: list[str] = []
    counts: list[list[int]] = []
    cells: list[tuple[Cell | str | int, ...]] = []
    for system in source.systems:
        for condition in source.conditions:
            for run in source.runs:
                if (run.system, run.condition) == (system, condition):
                    found = list(status_counts(source.store, run, source.table).values())
                    rows.append(system if len(source.conditions) == 1 else f"{system} / {condition}")
                    counts.append(found)
                    cells.append((Cell(system), condition, *found, sum(found)))
    if not rows:
        return None
    parts = list(_NAMES.values())
    columns = (
        Column("System"),
        Column("Condition"),
        *(Column(name.capitalize(), numeric=True) for name in parts),
        Column("Items", numeric=True),
    )
    title = "How asking ended"
    table = Table("Items by how asking ended.", columns, tuple(cells))
    return Section(
        key="statuses",
        title=title,
        lead="Unreadable, refused and timed-out answers, errors of the system, and answers that a submission lacks are the "
        "system's own failures and count as wrong. Failed ones are infrastructure errors: they are not answers, and are "
        "asked again when the run is resumed.",
        blocks=[Figure(draw_bars("statuses-0", title, Bars(rows, parts, counts)), "Items by run.", table)],
    )
