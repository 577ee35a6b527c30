"""The report's section on runs whose items were answered several times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from proctor.core import ACCURACY, Table, count_of, points, value
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section
from proctor.reports.consistency import consistency_notes, consistency_tables, judgement_tables
from proctor.reports.figures import ChartSeries, Dot, Panel, value_axis
from proctor.reports.report_numbers import Key, Source
from proctor.reports.subgroups import rows_figure
from proctor.results import Comparison, Consistency
from proctor.stats import Estimate


def repetitions_section(source: Source) -> Section | None:
    """How alike the answers of a run's repetitions are, how often all, any and most of them are right, and whether leads
    are larger than the noise between repetitions. None where nothing was answered twice."""
    found = source.results
    if not found.consistency and not found.judged:
        return None
    blocks = [*_answers(source), *judgement_tables(found)]
    lead = (
        "Each item was answered several times. Dots are shares of items, lines their intervals over groups. What is right "
        "in all repetitions can be relied on; what is right in any is within reach."
    )
    most = max((one.repetitions for one in found.consistency), default=0)
    judgements = max((one.judgements for one in found.judged), default=0)
    return Section(
        key="repetitions",
        title="Repetitions",
        lead=lead if found.consistency else "A judge was asked several times for each answer; the score is the mean.",
        blocks=blocks,
        finding=_finding(found.consistency),
        count=count_of(most, "repetition") if most else count_of(judgements, "judgement"),
    )


def _answers(source: Source) -> list[Block | str]:
    """The figures of systems that answered several times."""
    found = source.results
    if not found.consistency:
        return []
    keys = list(dict.fromkeys(Key(one.metric, one.scorer) for one in found.consistency))
    tables = dict(zip(keys, consistency_tables(found), strict=True))
    shown = [key for key in source.leading if key in tables] or keys[:1]
    blocks: list[Block | str] = []
    for number, key in enumerate(shown):
        own = [one for one in found.consistency if Key(one.metric, one.scorer) == key]
        blocks.append(_figure(source, key, own, f"repetitions-{number}", tables[key]))
    others = tuple(table for key, table in tables.items() if key not in shown)
    if others:
        blocks.append(Folded("Other metrics over repetitions", others))
    blocks += [Prose(note, quiet=True) for note in consistency_notes(found)]
    noise = [line for line in (_noise(source, one) for one in source.crossed) if line]
    if noise:
        blocks.append(Prose("Differences beside the noise between repetitions, on these items:", tuple(noise)))
    return blocks


def _figure(source: Source, key: Key, own: Sequence[Consistency], anchor: str, numbers: Table) -> Figure:
    most = max(one.repetitions for one in own)
    cells = {(one.system, one.condition): one for one in own}
    systems = [name for name in source.systems if any(system == name for system, _ in cells)]
    conditions = [name for name in source.conditions if any(condition == name for _, condition in cells)]

    figures: list[tuple[str, Callable[[Consistency], Estimate | None]]] = [
        ("Same answer in two", lambda one: one.alike),
        (f"Right in all {most}", lambda one: one.all_right.get(most)),
        (f"Right in any of {most}", lambda one: one.any_right.get(most)),
        *((f"Variance between {name}s", partial(_variance, part=name)) for name in ("group", "item", "repetition")),
    ]

    def dots(of: Callable[[Consistency], Estimate | None], system: str) -> list[Dot]:
        there = (cells.get((system, condition)) for condition in conditions)
        return [Dot() if one is None else _dot(of(one)) for one in there]

    panels = [Panel(name, [dots(of, system) for system in systems]) for name, of in figures]
    title = f"{source.label(key)} over {count_of(most, 'repetition')}"
    series = [ChartSeries(name, source.numbers[name]) for name in conditions]
    return rows_figure(
        anchor, title, systems, panels, value_axis(ACCURACY, 0.0, 1.0, lines=2), series=series, numbers=numbers
    )


def _variance(one: Consistency, part: str) -> Estimate | None:
    return None if one.variance is None else one.variance.shares.get(part)


def _dot(estimate: Estimate | None) -> Dot:
    return Dot() if estimate is None else Dot(estimate.value, estimate.ci_low, estimate.ci_high)


def _noise(source: Source, comparison: Comparison) -> str:
    noise = comparison.noise
    if noise is None:
        return ""
    a, b = comparison.first, comparison.second
    shown = points(source.metric(comparison.metric), noise.difference, noise.ci_low, noise.ci_high)
    more = "more than" if noise.exceeded else "no more than"
    return f"{a.system} ({a.condition}) − {b.system} ({b.condition}): {shown}, {more} the noise."


def _finding(found: Sequence[Consistency]) -> str:
    """How alike the answers are, from the least to the most alike run."""
    alike = [one.alike.value for one in found if one.alike.value is not None]
    if not alike:
        return ""
    low, high = value(ACCURACY, min(alike)), value(ACCURACY, max(alike))
    return f"two repetitions give the same answer in {low if low == high else f'{low} to {high}'} of cases"
