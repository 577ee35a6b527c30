"""The same items under several conditions: who really looks."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.core import Metric
from proctor.reports.blocks import Block, Cell, Column, Figure, Prose, Section, Table
from proctor.reports.figures import MOST_SERIES, Dot, Slopes, draw_slopes, signed_axis, value_axis
from proctor.reports.sections.headline import condition_line, span_of
from proctor.reports.source import BASELINE, Key, Source
from proctor.reports.words import difference_of, interval, p_value, score
from proctor.runs import Comparison, Result, Run, compare_runs

__all__ = ["Paired", "conditions_section", "paired"]


@dataclass(frozen=True)
class Paired:
    """Every system's runs against its run under `baseline`. `without` names runs that have no metric in
    common with it."""

    baseline: str
    comparisons: list[Comparison]
    without: list[str]

    def of(self, key: Key) -> list[Comparison]:
        """The comparisons of one metric."""
        return [one for one in self.comparisons if (one.metric, one.scorer) == (key.metric, key.scorer)]


def paired(source: Source) -> Paired | None:
    """All conditions against text-only (or, where nobody ran it, against the first one); None where no
    system was run under two conditions."""
    if len(source.conditions) < 2:
        return None
    baseline = BASELINE if BASELINE in source.conditions else source.conditions[0]
    runs = {(run.system, run.condition): run for run in source.runs}
    marked = {
        (row.system, row.condition, row.metric, row.scorer)
        for row in source.overall
        if row.if_excluded is not None
    }
    pairs: list[tuple[Run, Run]] = []
    without: list[str] = []
    for system in source.systems:
        for condition in source.conditions:
            sides = runs.get((system, condition)), runs.get((system, baseline))
            if condition == baseline or sides[0] is None or sides[1] is None:
                continue
            if any(
                (system, condition, *key) in marked and (system, baseline, *key) in marked
                for key in _plain(source)
            ):
                pairs.append((sides[0], sides[1]))
            else:
                without.append(f"{system} / {condition}")
    if not pairs:
        return None
    found = compare_runs(source.store, source.benchmark, pairs, source.options)
    return Paired(baseline, found, without)


def _plain(source: Source) -> list[tuple[str, str]]:
    return [(key.metric, key.scorer) for key in source.keys]


def conditions_section(source: Source, pairs: Paired | None) -> Section | None:
    """A drawing of all conditions and one of the differences, for each leading metric."""
    if len(source.conditions) < 2:
        return None
    blocks: list[Block | str] = [
        Prose("The conditions:", tuple(condition_line(name) for name in source.conditions))
    ]
    for place, key in enumerate(source.leading):
        blocks.append(source.label(key))
        blocks.append(_scores(source, key, f"conditions-{place}"))
        if pairs is not None and pairs.of(key):
            blocks.append(_differences(source, key, pairs, f"differences-{place}"))
    if pairs is not None and pairs.without:
        blocks.append(Prose(f"Not compared, as no marker marked both sides: {', '.join(pairs.without)}."))
    baseline = pairs.baseline if pairs else BASELINE
    return Section(
        key="conditions",
        title="Does it look?",
        lead="A system that looks at the video loses its lead when the video is taken away; one that guesses from the "
        f"words keeps its score. A difference to {baseline} whose interval reaches zero is no evidence of looking.",
        blocks=blocks,
    )


def _scores(source: Source, key: Key, anchor: str) -> Figure:
    metric = source.metric(key.metric)
    conditions = source.conditions[:MOST_SERIES]
    cells = {
        (row.system, row.condition): row
        for row in source.overall
        if (row.metric, row.scorer) == (key.metric, key.scorer)
    }
    systems = [name for name in source.systems if any(system == name for system, _ in cells)]
    chance = source.chance(key)
    slopes = Slopes(
        rows=systems,
        series=conditions,
        looks=range(len(conditions)),
        dots=[[_dot(cells.get((system, condition))) for condition in conditions] for system in systems],
        mark=None if chance is None else (chance, "chance"),
    )
    title = f"{source.label(key)} by condition"
    axis = value_axis(metric, *source.axis(key))
    rows = tuple(
        (Cell(system), *(_cell(metric, cells.get((system, name))) for name in source.conditions))
        for system in systems
    )
    columns = (Column("System"), *(Column(name, numeric=True) for name in source.conditions))
    table = Table(f"{title}: score, below it the interval.", columns, rows)
    return Figure(draw_slopes(anchor, title, slopes, axis, metric), f"{title}, with intervals.", table)


def _dot(row: Result | None) -> Dot:
    return Dot() if row is None else Dot(row.drawn, row.ci_low, row.ci_high)


def _cell(metric: Metric, row: Result | None) -> Cell | str:
    if row is None:
        return "–"
    below = f"{interval(metric, row.ci_low, row.ci_high)}; {row.n} items"
    return Cell(score(metric, row), below=below)


def _differences(source: Source, key: Key, pairs: Paired, anchor: str) -> Figure:
    metric = source.metric(key.metric)
    found = pairs.of(key)
    conditions = [name for name in source.conditions if any(one.first.condition == name for one in found)]
    systems = [name for name in source.systems if any(one.first.system == name for one in found)]
    compared = {(one.first.system, one.first.condition): one for one in found}
    ends = [
        end
        for one in found
        for end in (one.drawn, one.difference.ci_low, one.difference.ci_high)
        if end is not None
    ]
    axis = signed_axis(metric, min(ends, default=0.0), max(ends, default=0.0))
    slopes = Slopes(
        rows=systems,
        series=[f"{name} − {pairs.baseline}" for name in conditions],
        looks=[source.conditions.index(name) for name in conditions],
        dots=[
            [
                Dot(each.drawn, each.difference.ci_low, each.difference.ci_high)
                if (each := compared.get((system, name)))
                else Dot()
                for name in conditions
            ]
            for system in systems
        ],
        mark=(0.0, "no difference"),
    )
    title = f"{source.label(key)}: difference to {pairs.baseline}"
    table = _table(source, metric, pairs, found, (axis.limits[0], axis.limits[1]))
    caption = f"{title}, on the items that both have a score for. Right of zero, the value is higher than under {pairs.baseline}."
    return Figure(draw_slopes(anchor, title, slopes, axis, metric), caption, table)


def _table(
    source: Source, metric: Metric, pairs: Paired, found: list[Comparison], axis: tuple[float, float]
) -> Table:
    order = {name: place for place, name in enumerate(source.systems)}
    rows: list[tuple[Cell | str | int, ...]] = []
    for one in sorted(found, key=lambda one: order[one.first.system]):
        each = one.difference
        surely = one.p_holm is not None and one.p_holm <= 1 - source.options.level
        rows.append(
            (
                Cell(one.first.system),
                one.first.condition,
                Cell(difference_of(metric, one), strong=surely),
                interval(metric, each.ci_low, each.ci_high),
                Cell("", span=span_of(axis, each.ci_low, one.drawn, each.ci_high, 0.0)),
                p_value(each.p),
                p_value(one.p_holm),
                each.n,
                each.groups,
                one.only_first + one.only_second,
            )
        )
    columns = (
        Column("System"),
        Column("Condition"),
        Column(f"Minus {pairs.baseline}", numeric=True),
        Column("95 % interval", numeric=True),
        Column("left: worse, right: better" if metric.higher_is_better else "left: better, right: worse"),
        Column("p", numeric=True),
        Column("p (Holm)", numeric=True),
        Column("Items", numeric=True),
        Column("Groups", numeric=True),
        Column("One side only", numeric=True),
    )
    return Table(
        f"Paired differences to {pairs.baseline}. Holm's p is adjusted for the {len(found)} comparisons of this "
        "table; differences that hold then are set in bold.",
        columns,
        tuple(rows),
    )
