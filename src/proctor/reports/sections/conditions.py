"""The same items under several conditions: whether the video is used, on which questions, and item by item."""

from __future__ import annotations

from proctor.core import Metric, plain_name, thousands
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section, Table
from proctor.reports.figures import (
    MOST_SERIES,
    SLIM,
    Dot,
    Panel,
    Slopes,
    draw_dots,
    draw_slopes,
    signed_axis,
    value_axis,
)
from proctor.reports.source import BASELINE, Key, Paired, Source
from proctor.reports.tables import comparison_blocks, differences_table
from proctor.reports.wording import condition_line
from proctor.runs import Comparison, Result


def conditions_section(source: Source) -> Section | None:
    """A drawing of all conditions and one of the differences, for each leading metric."""
    if len(source.conditions) < 2:
        return None
    pairs = source.paired
    blocks: list[Block | str] = [Prose("The conditions:", tuple(condition_line(name) for name in source.conditions))]
    for place, key in enumerate(source.leading):
        blocks.append(source.label(key))
        blocks.append(_scores(source, key, f"conditions-{place}"))
        if pairs is not None and pairs.of(key):
            blocks.append(_differences(source, key, pairs, f"differences-{place}"))
    if pairs is not None and pairs.without:
        blocks.append(Prose(f"Not compared, as no scorer scored both sides: {', '.join(pairs.without)}."))
    baseline = pairs.baseline if pairs else BASELINE
    return Section(
        key="conditions",
        title="Is the video used?",
        lead="A system that uses the video scores less when the video is taken away; one that guesses from the words "
        f"keeps its score. A difference to {baseline} whose interval reaches zero is no evidence that the video is used.",
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
        dots=[[_result_dot(cells.get((system, condition))) for condition in conditions] for system in systems],
        mark=None if chance is None else (chance, "chance"),
    )
    title = f"{source.label(key)} by condition"
    axis = value_axis(metric, *source.axis(key))
    narrow = draw_slopes(f"{anchor}-slim", title, slopes, axis, metric, width=SLIM)
    drawn = draw_slopes(anchor, title, slopes, axis, metric)
    return Figure(drawn, f"{title}, with intervals. The leaderboard has the numbers.", narrow=narrow)


def _result_dot(row: Result | None) -> Dot:
    return Dot() if row is None else Dot(row.drawn, row.ci_low, row.ci_high)


def _differences(source: Source, key: Key, pairs: Paired, anchor: str) -> Figure:
    metric = source.metric(key.metric)
    found = pairs.of(key)
    conditions = [name for name in source.conditions if any(one.first.condition == name for one in found)]
    systems = [name for name in source.systems if any(one.first.system == name for one in found)]
    compared = {(one.first.system, one.first.condition): one for one in found}
    ends = [
        end for one in found for end in (one.drawn, one.difference.ci_low, one.difference.ci_high) if end is not None
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
    table = _conditions_table(source, metric, pairs, found, (axis.limits[0], axis.limits[1]))
    caption = f"{title}, on the items that both have a score for. Right of zero, the value is higher than under {pairs.baseline}."
    narrow = draw_slopes(f"{anchor}-slim", title, slopes, axis, metric, width=SLIM)
    return Figure(draw_slopes(anchor, title, slopes, axis, metric), caption, table, narrow=narrow)


def _conditions_table(
    source: Source, metric: Metric, pairs: Paired, found: list[Comparison], axis: tuple[float, float]
) -> Table:
    order = {name: place for place, name in enumerate(source.systems)}
    return differences_table(
        f"Paired differences to {pairs.baseline}. Holm's p is adjusted for the {len(found)} comparisons of this "
        "table; differences that hold then are set in bold.",
        metric,
        sorted(found, key=lambda one: order[one.first.system]),
        {"System": lambda one: one.first.system, "Condition": lambda one: one.first.condition},
        what=f"Minus {pairs.baseline}",
        level=source.options.level,
        axis=axis,
    )


def gains_section(source: Source) -> Section | None:
    """For each facet and leading metric a drawing of the first condition minus the baseline, with its table; the
    other metrics as tables, folded. None where no system was run under both."""
    condition, pairs = source.conditions[0], source.paired
    if pairs is None or condition == pairs.baseline:
        return None
    blocks: list[Block | str] = []
    for number, facet in enumerate(source.facets):
        found = source.gains(facet)
        drawn: list[Block] = []
        beside: list[Block] = []
        for place, key in enumerate(source.keys):
            of_key = [one for one in found if (one.metric, one.scorer) == (key.metric, key.scorer)]
            if len({one.facets[facet] for one in of_key}) < 2:
                continue
            table = _gains_table(source, facet, key, of_key)
            leading = key in source.leading
            anchor = f"gain-{number}-{place}"
            (drawn if leading else beside).append(
                _figure(source, facet, key, of_key, table, anchor) if leading else table
            )
        if drawn:
            blocks += [plain_name(facet).capitalize(), *drawn]
        if beside:
            blocks.append(Folded(f"Other metrics by {plain_name(facet)}", tuple(beside)))
    if not blocks:
        return None
    return Section(
        key="gains",
        title=f"What {condition} gains over {pairs.baseline}, by kind of question",
        lead=f"Each dot is the mean over the same items of the score under {condition} minus that under "
        f"{pairs.baseline}, the line its interval. Holm's p counts all differences of one metric and facet together.",
        blocks=blocks,
    )


def _figure(source: Source, facet: str, key: Key, found: list[Comparison], table: Table, anchor: str) -> Figure:
    metric = source.metric(key.metric)
    of = {(one.first.system, one.facets[facet]): one for one in found}
    systems = [name for name in source.systems if any(system == name for system, _ in of)]
    values = [name for name in source.values(facet) if any(value == name for _, value in of)]
    panels = [
        Panel(
            name=f"{name} ({thousands(max(one.difference.n for (_, value), one in of.items() if value == name))} items)",
            dots=[_gain_dot(of.get((system, name))) for system in systems],
            chance=0.0,
            mark="no gain",
        )
        for name in values
    ]
    ends = [end for one in found for end in _ends(one) if end is not None]
    axis = signed_axis(metric, min(ends, default=0.0), max(ends, default=0.0), lines=2)
    title = f"{source.label(key)}: gain by {plain_name(facet)}"
    narrow = draw_dots(f"{anchor}-slim", title, systems, panels, axis, metric, width=SLIM)
    drawn = draw_dots(anchor, title, systems, panels, axis, metric)
    return Figure(drawn, f"{title}.", table, narrow=narrow)


def _ends(one: Comparison) -> tuple[float | None, ...]:
    return one.difference.value, one.difference.ci_low, one.difference.ci_high


def _gain_dot(one: Comparison | None) -> Dot:
    return Dot() if one is None else Dot(*_ends(one))


def _gains_table(source: Source, facet: str, key: Key, found: list[Comparison]) -> Table:
    order = {name: place for place, name in enumerate(source.systems)}
    return differences_table(
        f"{source.label(key)}: paired differences by {plain_name(facet)}.",
        source.metric(key.metric),
        sorted(found, key=lambda one: order[one.first.system]),
        {"System": lambda one: one.first.system, plain_name(facet).capitalize(): lambda one: one.facets[facet]},
        what="Gain",
        level=source.options.level,
    )


_MOST_TABLES = 60


def crossings_section(source: Source) -> Section | None:
    """The tables of the paired conditions; where there is one condition alone, of few systems."""
    found = [one for one in source.crossed if one.table is not None]
    if not found:
        return None
    blocks: list[Block | str] = []
    left = _MOST_TABLES
    for key in source.keys:
        of_key = [one for one in found if (one.metric, one.scorer) == (key.metric, key.scorer)]
        tables = tuple(
            block
            for one in of_key[: max(left, 0)]
            for block in comparison_blocks(one, source.metric(one.metric), turned=source.paired is not None)
        )
        left -= len(of_key)
        if not tables:
            continue
        if key in source.leading and len(of_key) <= 6:
            blocks += [source.label(key), *tables]
        else:
            blocks.append(Folded(f"{source.label(key)}: {len(of_key)} pairs", tables))
    if left < 0:
        blocks.append(Prose(f"{-left} more tables are left out here; proctor compare gives them all."))
    return Section(
        key="crossings",
        title="Item by item: two runs compared",
        lead="Rows say how an item went in the one run (of two conditions: the baseline), columns how it went in the "
        "other; on the diagonal both agree. Off it stands what one run could do and the other could not.",
        blocks=blocks,
    )
