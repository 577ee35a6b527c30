"""Orders: which places are right, where frames are put instead, and whether reasons go with orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.metrics.ordering import place_confusion
from proctor.reports.blocks import Block, Cell, Column, Figure, Folded, Section, Table
from proctor.reports.figures import Heat, draw_heat
from proctor.reports.source import Source
from proctor.reports.words import interval, value
from proctor.runs import OrderedRun, load_orders, policies

__all__ = ["orders_section"]

_MOST_LABELS = 12  # of longer orders a table can't be read
_MOST_SYSTEMS = 24
_BY_LOT = "by lot"


def orders_section(source: Source) -> Section | None:
    """Under the first condition with orders: the share of each place that is right, where the frames of each place were
    put, and rationales beside orders. None where nothing is to be put in order."""
    known = {item.id: item for item in source.items}
    if all(item.answer.kind != "ordering" for item in known.values()):
        return None
    policy = policies(source.options.failed, source.card)[0]
    found = load_orders(source.store, source.runs, source.table, known, policy)
    condition = next(
        (name for name in source.conditions if any(one.run.condition == name for one in found)), ""
    )
    rank = {name: place for place, name in enumerate(source.systems)}
    shown = sorted(
        (one for one in found if one.run.condition == condition), key=lambda one: rank[one.run.system]
    )[:_MOST_SYSTEMS]
    if not shown:
        return None
    blocks: list[Block | str] = []
    for frames in sorted({one.frames for run in shown for one in run.compared.values()}):
        if frames <= _MOST_LABELS:
            blocks += [f"{frames} to be put in order", *_places(shown, frames)]
    blocks += _rationales(source, shown)
    return Section(
        key="orders",
        title="Orders, place by place",
        lead="Which places of an order are filled rightly, and where what belongs there was put instead. "
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
    names = [*tables, _BY_LOT]
    caption = (
        f"Of each place of {frames} the share of items, in percent, in which the right one stands there. The last line "
        f"is what orders by lot reach: one of {frames}."
    )
    drawn = draw_heat(
        f"places-{frames}",
        f"Right by place, of {frames}",
        Heat(names, heads, [*shares, [1 / frames] * frames]),
    )
    numbers = Table(
        caption,
        (Column("System"), *(Column(head, numeric=True) for head in heads), Column("Items", numeric=True)),
        tuple(
            (system, *(_percent(one) for one in row), int(tables[system][0].sum()))
            for system, row in zip(tables, shares, strict=True)
        ),
        (_BY_LOT, *([_percent(1 / frames)] * frames), ""),
    )
    instead = tuple(_instead(system, counts, heads) for system, counts in tables.items())
    return [
        Figure(drawn, caption, numbers),
        instead[0],
        *([Folded(f"Where {len(instead) - 1} more systems put them", instead[1:])] if instead[1:] else []),
    ]


def _instead(system: str, counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]], heads: list[str]) -> Table:
    caption = (
        f"{system}: the place where one belongs (rows) and the place where it was put (columns), in items; on the "
        "diagonal it is right. Missing: it stands nowhere in the answer, or there is no order."
    )
    rows: list[tuple[Cell | str | int, ...]] = [
        (
            f"belongs {head}",
            *(Cell(str(int(one)), strong=place == row) for place, one in enumerate(counts[row])),
        )
        for row, head in enumerate(heads)
    ]
    columns = (
        Column("Place"),
        *(Column(f"put {head}", numeric=True) for head in heads),
        Column("Missing", numeric=True),
    )
    return Table(caption, columns, tuple(rows))


def _rationales(source: Source, runs: Sequence[OrderedRun]) -> list[Block | str]:
    scorers = sorted({scorer for run in runs for scorer in run.f1})
    tables = [_reasons(source, [run for run in runs if scorer in run.f1], scorer) for scorer in scorers]
    return ["Do better reasons go with better orders?", *tables] if tables else []


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


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
