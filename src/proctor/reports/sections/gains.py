"""What a condition gains over the baseline on each kind of item, with intervals: paired differences by facet."""

from __future__ import annotations

from dataclasses import replace

from proctor.reports.blocks import Block, Cell, Column, Figure, Folded, Section, Table
from proctor.reports.figures import Dot, Panel, draw_dots, signed_axis
from proctor.reports.sections.conditions import Paired
from proctor.reports.source import Key, Source
from proctor.reports.words import difference, interval, p_value, plain_name, thousands
from proctor.runs import Comparison, compare_runs

__all__ = ["gains_section"]


def gains_section(source: Source, pairs: Paired | None) -> Section | None:
    """For each facet and leading metric a drawing of the first condition minus the baseline, with its table; the
    other metrics as tables, folded. None where no system was run under both."""
    condition = source.conditions[0]
    if pairs is None or condition == pairs.baseline:
        return None
    runs = {(run.system, run.condition): run for run in source.runs}
    both = [
        (runs[system, condition], runs[system, pairs.baseline])
        for system in source.systems
        if (system, condition) in runs and (system, pairs.baseline) in runs
    ]
    blocks: list[Block | str] = []
    for number, facet in enumerate(source.facets):
        options = replace(source.options, by=(facet,))
        found = compare_runs(source.store, source.benchmark, both, options)
        drawn: list[Block] = []
        beside: list[Block] = []
        for place, key in enumerate(source.keys):
            of_key = [one for one in found if (one.metric, one.scorer) == (key.metric, key.scorer)]
            if len({one.facets[facet] for one in of_key}) < 2:
                continue
            table = _table(source, facet, key, of_key)
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


def _figure(
    source: Source, facet: str, key: Key, found: list[Comparison], table: Table, anchor: str
) -> Figure:
    metric = source.metric(key.metric)
    of = {(one.first.system, one.facets[facet]): one for one in found}
    systems = [name for name in source.systems if any(system == name for system, _ in of)]
    values = [name for name in source.values(facet) if any(value == name for _, value in of)]
    panels = [
        Panel(
            name=f"{name} ({thousands(max(one.difference.n for (_, value), one in of.items() if value == name))} items)",
            dots=[_dot(of.get((system, name))) for system in systems],
            chance=0.0,
            mark="no gain",
        )
        for name in values
    ]
    ends = [end for one in found for end in _ends(one) if end is not None]
    axis = signed_axis(metric, min(ends, default=0.0), max(ends, default=0.0), lines=2)
    title = f"{source.label(key)}: gain by {plain_name(facet)}"
    return Figure(draw_dots(anchor, title, systems, panels, axis, metric), f"{title}.", table)


def _ends(one: Comparison) -> tuple[float | None, ...]:
    return one.difference.value, one.difference.ci_low, one.difference.ci_high


def _dot(one: Comparison | None) -> Dot:
    return Dot() if one is None else Dot(*_ends(one))


def _table(source: Source, facet: str, key: Key, found: list[Comparison]) -> Table:
    metric = source.metric(key.metric)
    order = {name: place for place, name in enumerate(source.systems)}
    rows: list[tuple[Cell | str | int, ...]] = [
        (
            Cell(one.first.system),
            one.facets[facet],
            Cell(
                difference(metric, one.difference.value),
                strong=one.p_holm is not None and one.p_holm <= 1 - source.options.level,
            ),
            interval(metric, one.difference.ci_low, one.difference.ci_high),
            p_value(one.difference.p),
            p_value(one.p_holm),
            one.difference.n,
            one.difference.groups,
        )
        for one in sorted(found, key=lambda one: order[one.first.system])
    ]
    columns = (
        Column("System"),
        Column(plain_name(facet).capitalize()),
        Column("Gain", numeric=True),
        Column("95 % interval", numeric=True),
        Column("p", numeric=True),
        Column("p (Holm)", numeric=True),
        Column("Items", numeric=True),
        Column("Groups", numeric=True),
    )
    return Table(f"{source.label(key)}: paired differences by {plain_name(facet)}.", columns, tuple(rows))
