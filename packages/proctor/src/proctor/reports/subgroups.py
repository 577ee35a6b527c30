"""Results by subgroup: by facet, and by position in orderings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from proctor.core import Cell, Row, Table, columns, count_of, interval, percent, plain_name, thousands, value
from proctor.metrics.ordering import position_confusion
from proctor.reports.blocks import Block, Figure, Folded, Section
from proctor.reports.figures import Axis, ChartSeries, Dot, Matrix, Panel, draw_matrix, draw_rows, value_axis
from proctor.reports.figures.canvas import SLIM
from proctor.reports.leaderboard import score
from proctor.reports.report_numbers import Key, Source
from proctor.results import OrderedRun, Result

Cells = dict[tuple[str, str], Result]
"""Results by system and value of a facet."""


def dot_of(row: Result | None) -> Dot:
    """A result as a dot with its interval."""
    return Dot() if row is None else Dot(row.drawn, row.ci_low, row.ci_high)


def rows_figure(
    anchor: str,
    title: str,
    rows: Sequence[str],
    panels: Sequence[Panel],
    axis: Axis,
    *,
    series: Sequence[ChartSeries] = (),
    caption: str = "",
    numbers: Table | None = None,
) -> Figure:
    """A figure of named rows in both widths; the caption defaults to the title."""
    wide, narrow = both_widths(anchor, title, rows, panels, axis, series)
    return Figure(wide, caption or f"{title}.", numbers, narrow=narrow)


def both_widths(
    anchor: str,
    title: str,
    rows: Sequence[str],
    panels: Sequence[Panel],
    axis: Axis,
    series: Sequence[ChartSeries] = (),
) -> tuple[str, str]:
    """The drawing of named rows for screens, and for phones."""
    wide = draw_rows(anchor, title, rows, panels, axis, series=series)
    return wide, draw_rows(f"{anchor}-slim", title, rows, panels, axis, series=series, width=SLIM)


def facets_section(source: Source) -> Section | None:
    """For each facet and leading metric a figure and table under the first condition; folded tables of other conditions
    and metrics."""
    blocks: list[Block | str] = []
    for number, facet in enumerate(source.facets):
        rows = source.by(facet)
        figures: list[Block] = []
        tables: list[Block] = []
        for index, key in enumerate(source.keys):
            for condition in source.conditions:
                of = (key.metric, key.scorer, condition)
                own = [row for row in rows if (row.metric, row.scorer, row.condition) == of]
                cells = {(row.system, row.facets[facet]): row for row in own}
                if len({value for _, value in cells}) < 2:
                    continue  # not split
                table = _table(source, facet, key, condition, cells)
                if key in source.leading and condition == source.conditions[0]:
                    figures.append(_figure(source, facet, key, cells, table, f"facet-{number}-{index}"))
                else:
                    tables.append(table)
        if figures or tables:
            blocks += [plain_name(facet).capitalize(), *figures]
        if tables:
            blocks.append(Folded(f"Other conditions and metrics by {plain_name(facet)}", tuple(tables)))
    if not blocks:
        return None
    return Section(
        key="facets",
        title="Results by subgroup",
        lead="Each dot is a system's score on the items of one kind, the line its interval; short lines stand on many "
        f"groups, long ones on few. Drawn for the condition {source.conditions[0]}.",
        blocks=blocks,
        finding=_weakest(source),
        count=count_of(sum(isinstance(block, str) for block in blocks), "facet"),
    )


_LEAST_ITEMS = 10  # of a part that is named as the weakest


def _weakest(source: Source) -> str:
    """Where the first system by the headline scores least under the first condition; "" where parts are too small."""
    if not source.leading:
        return ""
    key, metric = source.leading[0], source.metric(source.leading[0].metric)
    names = [name for name in source.systems if not source.is_baseline(name)] or source.systems
    where = (names[0], source.conditions[0], key.metric, key.scorer)
    parts = [
        (row.drawn, f"{plain_name(facet)} {row.facets[facet]}")
        for facet in source.facets
        for row in source.by(facet)
        if (row.system, row.condition, row.metric, row.scorer) == where
        and row.drawn is not None
        and row.n >= _LEAST_ITEMS
    ]
    if len(parts) < 2:
        return ""
    least, name = (min if metric.higher_is_better else max)(parts)
    return f"{where[0]} is weakest in {name}: {value(metric, least)}"


def parts_of(source: Source, facet: str, cells: Mapping[tuple[str, str], object]) -> tuple[list[str], list[str]]:
    """The systems and the values of a facet that have cells, in order."""
    systems, values = ({key[row] for key in cells} for row in (0, 1))
    return [name for name in source.systems if name in systems], [
        name for name in source.values(facet) if name in values
    ]


def _figure(source: Source, facet: str, key: Key, cells: Cells, table: Table, anchor: str) -> Figure:
    systems, values = parts_of(source, facet, cells)
    metric, panels = source.metric(key.metric), []
    for name in values:
        counts = sorted({row.n for (_, own), row in cells.items() if own == name})
        many = " to ".join((*map(thousands, {counts[0]} - {counts[-1]}), count_of(counts[-1], "item")))
        chance = source.chance(key, facet, name)
        dots = [dot_of(cells.get((system, name))) for system in systems]
        line = None if chance is None else (chance, "chance")
        panels.append(Panel(f"{name} ({many})", dots, line, source.numbers[source.conditions[0]]))
    title = f"{source.label(key)} by {plain_name(facet)}, {source.conditions[0]}"
    axis = value_axis(metric, *source.axis(key), lines=2)
    condition = source.conditions[0]
    series = [ChartSeries(condition, source.numbers[condition])]
    return rows_figure(anchor, title, systems, panels, axis, series=series, numbers=table)


def _table(source: Source, facet: str, key: Key, condition: str, cells: Cells) -> Table:
    systems, values = parts_of(source, facet, cells)
    metric = source.metric(key.metric)

    def cell(result: Result | None) -> Cell | str:
        if result is None:
            return "–"
        failed = f", {result.failed} failed" if result.failed else ""
        ends = interval(metric, result.ci_low, result.ci_high)
        size = f"{count_of(result.n, 'item')}, {count_of(result.groups, 'group')}"
        return Cell(score(metric, result), below=f"{ends}; {size}{failed}")

    rows = tuple((Cell(system), *(cell(cells.get((system, name))) for name in values)) for system in systems)
    chances = [source.chance(key, facet, name) for name in values]
    foot = ("chance", *(value(metric, chance) for chance in chances)) if any(chances) else ()
    caption = f"{source.label(key)} by {plain_name(facet)}, {condition}: score, below it the interval."
    return Table(caption, columns("System", *(f">{name}" for name in values)), rows, foot)


_MAX_LABELS = 12  # tables of longer orderings are not readable
_MAX_SYSTEMS = 24
_CHANCE = "chance"


def orders_section(source: Source) -> Section | None:
    """Under the first condition with orderings: the accuracy by position, the confusion of positions, and rationales
    compared with orderings. None without ordering items."""
    runs = source.orders
    condition = next(
        (name for name in source.conditions if any(ordered_run.run.condition == name for ordered_run in runs)), ""
    )
    own = [run for run in runs if run.run.condition == condition]
    shown = sorted(own, key=lambda ordered_run: source.systems.index(ordered_run.run.system))[:_MAX_SYSTEMS]
    if not shown:
        return None
    blocks: list[Block | str] = []
    for frames in sorted({order_comparison.frames for run in shown for order_comparison in run.compared.values()}):
        if frames <= _MAX_LABELS:
            blocks += [f"{frames} to be put in order", *_rows(shown, frames)]
    scorers = sorted({scorer for run in shown for scorer in run.f1})
    tables = [_rationales(source, [run for run in shown if scorer in run.f1], scorer) for scorer in scorers]
    blocks += ["Rationales and orders", *tables] if tables else []
    return Section(
        key="orders",
        title="Orders, position by position",
        lead="Which positions of an order are right, and where the frames were put instead. "
        f"Under the condition {condition}.",
        blocks=blocks,
    )


def _rows(runs: Sequence[OrderedRun], frames: int) -> list[Block]:
    tables = {}
    for run in runs:
        of_size = position_confusion(
            [order_comparison for order_comparison in run.compared.values() if order_comparison.frames == frames]
        )
        if frames in of_size:
            tables[run.run.system] = of_size[frames]
    heads = [f"{index}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(index, 'th') }" for index in range(1, frames + 1)]
    shares = [[float(one) for one in np.diagonal(counts) / counts.sum(axis=1)] for counts in tables.values()]
    lines = [*shares, [1 / frames] * frames]
    caption = (
        f"Of each position of {frames} the share of items, in percent, in which the right one stands there. The last line "
        f"is what random orders reach: one of {frames}."
    )
    matrix = Matrix([*tables, _CHANCE], heads, lines, lambda share: f"{100 * share:.0f}")
    numbers = Table(
        caption,
        columns("System", *(f">{head}" for head in heads), ">Items"),
        tuple(
            (system, *map(percent, row), int(tables[system][0].sum()))
            for system, row in zip(tables, shares, strict=True)
        ),
        (_CHANCE, *([percent(1 / frames)] * frames), ""),
    )
    first, *others = (_instead(system, counts, heads) for system, counts in tables.items())
    more = [Folded(count_of(len(others), "more system"), tuple(others))] if others else []
    return [
        Figure(draw_matrix(f"positions-{frames}", f"Right by position, of {frames}", matrix), caption, numbers),
        first,
        *more,
    ]


def _instead(system: str, counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]], heads: list[str]) -> Table:
    caption = (
        f"{system}: true position (rows) and predicted position (columns), in items; on the "
        "diagonal it is right. Missing: it stands nowhere in the answer, or there is no order."
    )
    rows: list[Row] = [
        (f"true {head}", *(Cell(str(int(one)), strong=index == row) for index, one in enumerate(counts[row])))
        for row, head in enumerate(heads)
    ]
    return Table(caption, columns("Position", *(f">predicted {head}" for head in heads), ">Missing"), tuple(rows))


def _rationales(source: Source, runs: Sequence[OrderedRun], scorer: str) -> Table:
    options = source.options
    estimates = [run.with_rationales(scorer, draws=options.draws, seed=options.seed) for run in runs]
    caption = (
        "Rationales beside orders: the mean F1, the overall score (0.8 of the order's part, which is 0.7 task and 0.3 "
        "pairwise accuracy, and 0.2 of F1), and whether better rationales go with better orders, item by item. Below "
        f"each its 95 % interval. Rationales by {scorer}."
    )
    rows: list[Row] = []
    for run, own in zip(runs, estimates, strict=True):
        cells = [(metric_estimate.metric, metric_estimate.estimate) for metric_estimate in own]
        shown = (
            Cell(value(metric, one.value), below=interval(metric, one.ci_low, one.ci_high)) for metric, one in cells
        )
        rows.append((run.run.system, *shown, len(run.f1[scorer])))
    heads = columns("System", *(f">{estimate.metric.label}" for estimate in estimates[0]), ">Rationales")
    return Table(caption, heads, tuple(rows))
