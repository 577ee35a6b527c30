"""Scores split by facet: where a system is good and where it fails."""

from __future__ import annotations

from proctor.reports.blocks import Block, Cell, Column, Figure, Folded, Section, Table
from proctor.reports.figures import Dot, Panel, draw_dots, value_axis
from proctor.reports.source import Key, Source
from proctor.reports.words import interval, plain_name, score, thousands, value
from proctor.runs import Result

__all__ = ["facets_section"]


def facets_section(source: Source) -> Section | None:
    """For each facet and leading metric a drawing under the first condition with its table; the other
    conditions and metrics as tables, folded."""
    blocks: list[Block | str] = []
    for number, facet in enumerate(source.facets):
        rows = source.by(facet)
        found: list[Block] = []
        beside: list[Block] = []
        for place, key in enumerate(source.keys):
            for condition in source.conditions:
                cells = _cells(rows, facet, key, condition)
                if len({value for _, value in cells}) < 2:
                    continue  # split into one part is not split
                table = _table(source, facet, key, condition, cells)
                if key in source.leading and condition == source.conditions[0]:
                    found.append(_figure(source, facet, key, cells, table, f"facet-{number}-{place}"))
                else:
                    beside.append(table)
        if found or beside:
            blocks += [plain_name(facet).capitalize(), *found]
        if beside:
            blocks.append(Folded(f"Other conditions and metrics by {plain_name(facet)}", tuple(beside)))
    if not blocks:
        return None
    return Section(
        key="facets",
        title="Where systems are good, and where they fail",
        lead="Each dot is a system's score on the items of one kind, the line its interval; short lines stand on many "
        f"groups, long ones on few. Drawn for the condition {source.conditions[0]}.",
        blocks=blocks,
    )


_Cells = dict[tuple[str, str], Result]


def _cells(rows: list[Result], facet: str, key: Key, condition: str) -> _Cells:
    return {
        (row.system, row.facets[facet]): row
        for row in rows
        if (row.metric, row.scorer, row.condition) == (key.metric, key.scorer, condition)
    }


def _shown(source: Source, facet: str, cells: _Cells) -> tuple[list[str], list[str]]:
    systems = [name for name in source.systems if any(system == name for system, _ in cells)]
    values = [name for name in source.values(facet) if any(value == name for _, value in cells)]
    return systems, values


def _figure(source: Source, facet: str, key: Key, cells: _Cells, table: Table, anchor: str) -> Figure:
    systems, values = _shown(source, facet, cells)
    metric = source.metric(key.metric)
    panels = [
        Panel(
            name=f"{name} ({_items(cells, name)} items)",
            dots=[_dot(cells.get((system, name))) for system in systems],
            chance=source.chance(key, facet, name),
        )
        for name in values
    ]
    title = f"{source.label(key)} by {plain_name(facet)}, {source.conditions[0]}"
    axis = value_axis(metric, *source.axis(key), lines=2)
    return Figure(draw_dots(anchor, title, systems, panels, axis, metric), f"{title}.", table)


def _items(cells: _Cells, value_name: str) -> str:
    counts = {row.n for (_, name), row in cells.items() if name == value_name}
    low, high = min(counts), max(counts)
    return thousands(low) if low == high else f"{thousands(low)} to {thousands(high)}"


def _dot(row: Result | None) -> Dot:
    return Dot() if row is None else Dot(row.drawn, row.ci_low, row.ci_high)


def _table(source: Source, facet: str, key: Key, condition: str, cells: _Cells) -> Table:
    systems, values = _shown(source, facet, cells)
    metric = source.metric(key.metric)
    rows: list[tuple[Cell | str | int, ...]] = []
    for system in systems:
        row: list[Cell | str | int] = [Cell(system)]
        for name in values:
            one = cells.get((system, name))
            if one is None:
                row.append("–")
                continue
            failed = f", {one.failed} failed" if one.failed else ""
            below = f"{interval(metric, one.ci_low, one.ci_high)}; {one.n} items, {one.groups} groups{failed}"
            row.append(Cell(score(metric, one), below=below))
        rows.append(tuple(row))
    chances = [source.chance(key, facet, name) for name in values]
    foot = ("by lot", *(value(metric, chance) for chance in chances)) if any(chances) else ()
    caption = f"{source.label(key)} by {plain_name(facet)}, {condition}: score, below it the interval."
    return Table(
        caption, (Column("System"), *(Column(name, numeric=True) for name in values)), tuple(rows), foot
    )
