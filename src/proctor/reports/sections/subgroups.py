"""Results by subgroup: facets, and the positions of an order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.core import interval, plain_name, thousands, value, whole_percent
from proctor.metrics.ordering import place_confusion
from proctor.reports.blocks import Block, Cell, Column, Figure, Folded, Section, Table
from proctor.reports.figures import SLIM, Dot, Heat, Panel, draw_dots, draw_heat, value_axis
from proctor.reports.source import Key, Source
from proctor.reports.wording import score
from proctor.runs import OrderedRun, Result


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
        title="Results by subgroup",
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
    narrow = draw_dots(f"{anchor}-slim", title, systems, panels, axis, metric, width=SLIM)
    drawn = draw_dots(anchor, title, systems, panels, axis, metric)
    return Figure(drawn, f"{title}.", table, narrow=narrow)


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
    foot = ("chance", *(value(metric, chance) for chance in chances)) if any(chances) else ()
    caption = f"{source.label(key)} by {plain_name(facet)}, {condition}: score, below it the interval."
    return Table(caption, (Column("System"), *(Column(name, numeric=True) for name in values)), tuple(rows), foot)


_MOST_LABELS = 12  # of longer orders a table can't be read
_MOST_SYSTEMS = 24
_CHANCE = "chance"


def orders_section(source: Source) -> Section | None:
    """Under the first condition with orders: the share of each place that is right, where the frames of each place were
    put, and rationales beside orders. None where nothing is to be put in order."""
    found = source.orders
    condition = next((name for name in source.conditions if any(one.run.condition == name for one in found)), "")
    rank = {name: place for place, name in enumerate(source.systems)}
    shown = sorted((one for one in found if one.run.condition == condition), key=lambda one: rank[one.run.system])[
        :_MOST_SYSTEMS
    ]
    if not shown:
        return None
    blocks: list[Block | str] = []
    for frames in sorted({one.frames for run in shown for one in run.compared.values()}):
        if frames <= _MOST_LABELS:
            blocks += [f"{frames} to be put in order", *_places(shown, frames)]
    blocks += _rationales(source, shown)
    return Section(
        key="orders",
        title="Orders, position by position",
        lead="Which positions of an order are right, and where the frames were put instead. "
        f"Under the condition {condition}.",
        blocks=blocks,
    )


def _places(runs: Sequence[OrderedRun], frames: int) -> list[Block]:
    tables = {}
    for run in runs:
        of_size = place_confusion([one for one in run.compared.values() if one.frames == frames])
        if frames in of_size:
            tables[run.run.system] = of_size[frames]
    heads = [_ordinal(place) for place in range(1, frames + 1)]
    shares: list[list[float | None]] = [
        [float(one) for one in np.diagonal(counts) / counts.sum(axis=1)] for counts in tables.values()
    ]
    names = [*tables, _CHANCE]
    caption = (
        f"Of each place of {frames} the share of items, in percent, in which the right one stands there. The last line "
        f"is what random orders reach: one of {frames}."
    )
    drawn = draw_heat(
        f"places-{frames}", f"Right by place, of {frames}", Heat(names, heads, [*shares, [1 / frames] * frames])
    )
    numbers = Table(
        caption,
        (Column("System"), *(Column(head, numeric=True) for head in heads), Column("Items", numeric=True)),
        tuple(
            (system, *(whole_percent(one) for one in row), int(tables[system][0].sum()))
            for system, row in zip(tables, shares, strict=True)
        ),
        (_CHANCE, *([whole_percent(1 / frames)] * frames), ""),
    )
    instead = tuple(_instead(system, counts, heads) for system, counts in tables.items())
    return [
        Figure(drawn, caption, numbers),
        instead[0],
        *([Folded(f"{len(instead) - 1} more systems", instead[1:])] if instead[1:] else []),
    ]


def _instead(system: str, counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]], heads: list[str]) -> Table:
    caption = (
        f"{system}: true position (rows) and predicted position (columns), in items; on the "
        "diagonal it is right. Missing: it stands nowhere in the answer, or there is no order."
    )
    rows: list[tuple[Cell | str | int, ...]] = [
        (f"true {head}", *(Cell(str(int(one)), strong=place == row) for place, one in enumerate(counts[row])))
        for row, head in enumerate(heads)
    ]
    columns = (
        Column("Place"),
        *(Column(f"predicted {head}", numeric=True) for head in heads),
        Column("Missing", numeric=True),
    )
    return Table(caption, columns, tuple(rows))


def _rationales(source: Source, runs: Sequence[OrderedRun]) -> list[Block | str]:
    scorers = sorted({scorer for run in runs for scorer in run.f1})
    tables = [_reasons(source, [run for run in runs if scorer in run.f1], scorer) for scorer in scorers]
    return ["Rationales and orders", *tables] if tables else []


def _reasons(source: Source, runs: Sequence[OrderedRun], scorer: str) -> Table:
    options = source.options
    marks = [run.with_rationales(scorer, draws=options.draws, seed=options.seed) for run in runs]
    caption = (
        "Rationales beside orders: the mean F1, the overall score (0.8 of the order's part, which is 0.7 task and 0.3 "
        "pairwise accuracy, and 0.2 of F1), and whether better rationales go with better orders, item by item. Below "
        f"each its 95 % interval. Rationales by {scorer}."
    )
    columns = (
        Column("System"),
        *(Column(mark.metric.label, numeric=True) for mark in marks[0]),
        Column("Rationales", numeric=True),
    )
    rows: list[tuple[Cell | str | int, ...]] = [
        (
            run.run.system,
            *(
                Cell(
                    value(mark.metric, mark.estimate.value),
                    below=interval(mark.metric, mark.estimate.ci_low, mark.estimate.ci_high),
                )
                for mark in own
            ),
            len(run.f1[scorer]),
        )
        for run, own in zip(runs, marks, strict=True)
    ]
    return Table(caption, columns, tuple(rows))


def _ordinal(place: int) -> str:
    return f"{place}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(place, 'th') }"
