"""What others published, beside one's own numbers and apart from them."""

from __future__ import annotations

from proctor.reports.blocks import Cell, Column, Prose, Section, Table
from proctor.reports.source import Source
from proctor.reports.words import value

__all__ = ["published_section"]


def published_section(source: Source) -> Section | None:
    """The published rows in their own order; None where the benchmark has none."""
    known = source.card.published
    if known is None:
        return None
    columns = (Column("System"), *(Column(metric.label, numeric=True) for metric in known.metrics))
    rows: list[tuple[Cell | str | int, ...]] = [
        (
            Cell(row.system, badge="published"),
            *(value(metric, row.values.get(metric.name)) for metric in known.metrics),
        )
        for row in known.rows
    ]
    return Section(
        key="published",
        title="Published results",
        lead="For orientation: these systems were not run here, so they have no interval and no rank.",
        blocks=(
            Table(f"{known.source}.", columns, tuple(rows)),
            *([Prose(known.note, quiet=True)] if known.note else []),
        ),
    )
