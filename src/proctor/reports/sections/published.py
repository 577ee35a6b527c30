"""What others published, beside one's own numbers and apart from them."""

from __future__ import annotations

from proctor.core import PublishedCrossing, PublishedRow, PublishedTable
from proctor.reports.blocks import Block, Cell, Column, Folded, Prose, Section, Table
from proctor.reports.source import Source
from proctor.reports.words import plain_name, value

__all__ = ["published_section"]


def published_section(source: Source) -> Section | None:
    """The published rows in their own order, then those of parts of the items, then tables of two conditions; None
    where the benchmark has none."""
    known = source.card.published
    if known is None:
        return None
    whole = [row for row in known.rows if not row.facets]
    parts = [row for row in known.rows if row.facets]
    blocks: list[Block | str] = [_rows(known, whole, f"{known.source}.")]
    if parts:
        blocks.append(_rows(known, parts, "By kind of question, as far as the text gives numbers."))
    if known.crossings:
        tables = tuple(_crossing(source, one) for one in known.crossings)
        blocks.append(Folded(f"Two conditions item by item: {len(tables)} published tables", tables))
    if known.note:
        blocks.append(Prose(known.note, quiet=True))
    return Section(
        key="published",
        title="Published results",
        lead="For orientation: these systems were not run here, so they have no interval and no rank.",
        blocks=blocks,
    )


def _rows(known: PublishedTable, shown: list[PublishedRow], caption: str) -> Table:
    conditions = any(row.condition for row in shown)
    facets = list(dict.fromkeys(name for row in shown for name in row.facets))
    columns = (
        Column("System"),
        *([Column("Condition")] if conditions else []),
        *(Column(plain_name(name).capitalize()) for name in facets),
        *(Column(metric.label, numeric=True) for metric in known.metrics),
    )
    rows: list[tuple[Cell | str | int, ...]] = [
        (
            Cell(row.system, badge="published"),
            *([row.condition] if conditions else []),
            *(row.facets.get(name, "") for name in facets),
            *(value(metric, row.values.get(metric.name)) for metric in known.metrics),
        )
        for row in shown
    ]
    return Table(caption, columns, tuple(rows))


def _crossing(source: Source, one: PublishedCrossing) -> Table:
    first, second = one.conditions
    sums = [sum(column) for column in zip(*one.counts, strict=True)]
    rows: list[tuple[Cell | str | int, ...]] = [
        (Cell(level), *map(str, line), sum(line)) for level, line in zip(one.levels, one.counts, strict=True)
    ]
    columns = (
        Column(f"{first} ↓  {second} →"),
        *(Column(level, numeric=True) for level in one.levels),
        Column("Total", numeric=True),
    )
    caption = f"{one.name}: {one.system}, {source.metric(one.metric).label}, as published."
    return Table(caption, columns, tuple(rows), ("Total", *sums, sum(sums)))
