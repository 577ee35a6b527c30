"""Margins and interactions of comparisons in words, tables and forest plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.core import (
    DASH,
    Metric,
    Row,
    Table,
    columns,
    count_of,
    difference,
    head,
    interval,
    p_value,
    percent,
    points,
)
from proctor.reports.blocks import Figure
from proctor.reports.figures import Dot, Panel, signed_axis, write_picture
from proctor.reports.subgroups import rows_figure
from proctor.results import Comparison, CriticalErrors, FacetInteraction, MarginRecord
from proctor.stats import MOST_P, Difference, MarginTest


def critical_table(found: Sequence[CriticalErrors]) -> Table:
    """Errors on critical items, with their one-sided limit."""
    heads = columns(
        "System",
        "Condition",
        found[0].facet,
        ">Errors",
        ">Items",
        ">Groups",
        ">Share",
        ">At most (95 %)",
        ">Effective items",
    )
    rows: list[Row] = [
        (
            *(
                one.system,
                one.condition,
                one.value,
                f"{one.errors:.1f}".removesuffix(".0"),
                one.n,
                one.groups,
                percent(one.share),
            ),
            DASH if one.limit is None else percent(one.limit),
            DASH if one.effective is None else f"{one.effective:.0f}",
        )
        for one in found
    ]
    title = f"Errors by {found[0].facet}, with a one-sided 95 % upper limit over groups"
    return Table(title, heads, tuple(rows), title=title)


def record_line(record: MarginRecord) -> str:
    """The margin as it was recorded before the figures."""
    kind = "neither run better by" if record.equivalence else "the first run not worse by"
    return f"Margin {record.points:g} ({kind} it), recorded {record.at}, sha256 {record.sha256}."


def margin_line(comparison: Comparison) -> str:
    """What a comparison shows about its margin, with p; empty without a margin."""
    test = comparison.margin
    if test is None:
        return ""
    width = difference(comparison.declared, test.margin.width).removeprefix("+")
    first, second = comparison.first, comparison.second
    said = {
        "not worse": f"{first} is not worse than {second} by {width} or more",
        "worse": f"{first} is worse than {second} by more than {width}",
        "equivalent": f"{first} and {second} are equivalent within {width}",
        "different": f"{first} and {second} differ by more than {width}",
        "undecided": f"undecided at a margin of {width}",
    }[test.finding]
    return f"Margin: {said} ({margin_p(test, comparison.difference)}, one-sided at {test.alpha:g}, not adjusted)."


def margin_p(test: MarginTest, of: Difference) -> str:
    """p of a margin for a difference, in words."""
    if test.p is not None:
        return f"p {p_value(test.p)}"
    return "no p without an interval" if of.ci_low is None else f"p above {MOST_P:g}"


def interaction_line(one: FacetInteraction) -> str:
    """The global test in one sentence."""
    missing = {"wrong": ", missing = wrong", "exclude": ", missing left out"}.get(one.policy, "")
    found = one.found
    if found.p is None:
        return f"Interaction{missing}: no p, {found.why}."
    if found.f is None:
        return f"Interaction{missing}: p {p_value(found.p)}, the smallest adjusted p of the parts ({found.why})."
    parts = count_of(len(found.parts), "part")
    return (
        f"Interaction{missing}: p {p_value(found.p)} that the difference is the same in {parts} "
        f"(F {found.f:.2f} with {found.between} and {found.within:.1f} degrees of freedom)."
    )


def interaction_table(one: FacetInteraction) -> Table:
    """The difference in each part, and its difference from the others."""
    metric = one.metric
    heads = (
        *columns(*one.parts[0], ">Difference", ">Minus that of the others"),
        head("ci", one.level),
        *(head(name) for name in ("p", "p_holm", "n", "groups")),
    )
    rows: list[Row] = []
    for facets, part in zip(one.parts, one.found.parts, strict=True):
        estimate = part.estimate
        rows.append(
            (
                *facets.values(),
                difference(metric, part.difference),
                difference(metric, estimate.value),
                interval(metric, estimate.ci_low, estimate.ci_high),
                *(p_value(part.p), p_value(part.p_holm), part.n, part.groups),
            )
        )
    title = f"{metric.label} ({one.scorer}): {_pair(one)}, by part"
    return Table(title, heads, tuple(rows), title=title)


def forest_figure(one: FacetInteraction, anchor: str = "forest") -> Figure:
    """A forest plot: the difference of each part from the others, with its interval."""
    parts = one.found.parts
    dots = [Dot(part.estimate.value, part.estimate.ci_low, part.estimate.ci_high) for part in parts]
    ends = [end for dot in dots for end in dot.ends]
    axis = signed_axis(one.metric, min([0.0, *ends]), max([0.0, *ends]))
    names = [", ".join(facets.values()) for facets in one.parts]
    title = f"{one.metric.label}: {_pair(one)}, each part against the others"
    panel = Panel("", dots, (0.0, "as the others"))
    return rows_figure(anchor, title, names, [panel], axis, caption=f"{title}. {interaction_line(one)}")


def write_forest(one: FacetInteraction, file: Path) -> Path:
    """Writes the forest plot as a .png, .pdf or .svg file. Raises `InputError` for another ending."""
    return write_picture(forest_figure(one).svg, file)


_CELLS = 41


def forest_text(one: FacetInteraction) -> list[str]:
    """The forest plot for a terminal: a line for each part, `o` the value, `-` the interval, `|` no difference from the others."""
    parts = one.found.parts
    ends = [0.0] + [
        end
        for part in parts
        for end in (part.estimate.value, part.estimate.ci_low, part.estimate.ci_high)
        if end is not None
    ]
    low, high = min(ends), max(ends)
    names = [", ".join(facets.values()) for facets in one.parts]
    wide = max(map(len, names))
    return [
        f"{name:<{wide}} {_drawn(part.estimate.value or 0.0, part.estimate.ci_low, part.estimate.ci_high, low, high)} "
        f"{_shown(one.metric, part.estimate.value, part.estimate.ci_low, part.estimate.ci_high)}"
        for name, part in zip(names, parts, strict=True)
    ]


def _shown(metric: Metric, value: float | None, low: float | None, high: float | None) -> str:
    return points(metric, value, low, high)


def _drawn(value: float, ci_low: float | None, ci_high: float | None, low: float, high: float) -> str:
    def at(number: float) -> int:
        return round((number - low) / (high - low) * (_CELLS - 1)) if high > low else 0

    cells = [" "] * _CELLS
    if ci_low is not None and ci_high is not None:
        for number in range(at(ci_low), at(ci_high) + 1):
            cells[number] = "-"
    cells[at(0.0)] = "|"
    cells[at(value)] = "o"
    return "".join(cells)


def _pair(one: FacetInteraction) -> str:
    return f"{' / '.join(one.first)} minus {' / '.join(one.second)}"


def margin_notes(compared: Sequence[Comparison]) -> list[str]:
    """`margin_line` of each comparison in a part, led by the part."""
    return [
        f"{', '.join(one.facets.values())}: {margin_line(one)}" if one.facets else margin_line(one)
        for one in compared
        if one.margin is not None
    ]
