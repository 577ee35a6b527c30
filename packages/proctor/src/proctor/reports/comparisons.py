"""Paired comparisons of runs as tables and text, and the report's sections on conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from proctor.core import (
    ACCURACY,
    DASH,
    Cell,
    Column,
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
    plain_name,
)
from proctor.judges import DECIDED_BY_A_PERSON, HALF_UNNAMED, RUBRIC, is_decided
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section, span_of
from proctor.reports.consistency import noise_line
from proctor.reports.figures import MAX_SERIES, ChartSeries, Dot, Panel, signed_axis, value_axis
from proctor.reports.leaderboard import condition_line, counts_table
from proctor.reports.margins import margin_line
from proctor.reports.report_numbers import BASELINE, Key, Paired, Source
from proctor.reports.subgroups import dot_of, parts_of, rows_figure
from proctor.results import BOTH, Comparison
from proctor.stats import can_decide


def difference_of(metric: Metric, comparison: Comparison, *, short: bool = False) -> str:
    """The difference of two runs, or its range if a run is incomplete and no policy is chosen; in a table a short one."""
    if comparison.policy != BOTH:
        return difference(metric, comparison.difference.value)
    wrong, excluded = (difference(metric, one.value) for one in (comparison.if_wrong, comparison.if_excluded))
    return f"{wrong} … {excluded}" if short else f"{wrong} (missing = wrong), {excluded} (missing left out)"


def significance_words(comparison: Comparison) -> str:
    """p, and p adjusted with the comparisons that it is adjusted for; or why there is none."""
    each = comparison.difference
    if comparison.undecided:
        return "no p: the two figures point different ways"
    if each.p is not None and not comparison.decides:
        return p_words(each.p, each.groups, comparison.level)
    adjusted = f"; {p_value(comparison.p_holm)} adjusted for {comparison.family}" if comparison.family else ""
    return f"p {p_value(each.p)}{adjusted}"


def p_words(p: float | None, groups: int, level: float = 0.95) -> str:
    """p; or words, where no p can be at most 1 − `level` with so few groups."""
    return p_value(p) if p is None or can_decide(groups, level) else f"{count_of(groups, 'group')} can't decide"


def unadjusted_line(compared: Sequence[Comparison]) -> str:
    """What p (Holm) is adjusted for, of several families by which metric, and that intervals are not; empty for
    comparisons that stand alone."""
    scorers = Counter(metric for metric, _ in {(one.metric, one.scorer) for one in compared})
    families: dict[str, dict[str, None]] = {}
    for one in filter(lambda one: one.family, compared):
        by = f" by {one.scorer}" if scorers[one.metric] > 1 else ""
        families.setdefault(one.family, {})[one.declared.label + by] = None
    if not families:
        return ""
    named = [family if len(families) == 1 else f"{family} ({', '.join(of)})" for family, of in families.items()]
    shown = "; ".join(named[:_MAX_NAMED]) + (" …" if len(named) > _MAX_NAMED else "")
    return f"p (Holm) is adjusted for {shown}. Intervals are not adjusted."


def without_line(pairs: Sequence[tuple[object, object]]) -> str:
    """Which pairs of runs are not compared; empty for none."""
    shown = [f"{first} and {second}" for first, second in pairs]
    more = f"; and {len(shown) - _MAX_NAMED} more" if len(shown) > _MAX_NAMED else ""
    return f"Not compared, as no scorer scored both sides: {'; '.join(shown[:_MAX_NAMED])}{more}." if shown else ""


_MAX_NAMED = 5


def differences_table(
    caption: str,
    metric: Metric,
    compared: Sequence[Comparison],
    lead: Mapping[str, Callable[[Comparison], str]],
    *,
    what: str = "Difference",
    level: float = 0.95,
    axis: tuple[float, float] | None = None,
) -> Table:
    """Paired differences, one per row; `lead` are the columns that identify them. Significant differences (by Holm's p)
    are bold. With an axis, intervals are drawn, and items with a score on one side only are counted."""
    better = "left: worse, right: better" if metric.higher_is_better else "left: better, right: worse"
    heads = (
        *columns(*lead),
        Column(what, numeric=True, name="difference"),
        head("ci", level),
        *([Column(better, drawn=True)] if axis else []),
        *(head(name) for name in ("p", "p_holm", "n", "groups")),
        *columns(*([">One side only"] if axis else [])),
    )
    rows: list[Row] = []
    for comparison in compared:
        each = comparison.difference
        significant = comparison.p_holm is not None and comparison.p_holm <= 1 - level
        drawn = span_of(axis, each.ci_low, comparison.drawn, each.ci_high, 0.0) if axis else None
        first, *others = (show(comparison) for show in lead.values())
        rows.append(
            (
                Cell(first),
                *others,
                Cell(difference_of(metric, comparison, short=True), strong=significant, raw=each.value),
                interval(metric, each.ci_low, each.ci_high),
                *([Cell("", span=drawn)] if axis else []),
                p_words(each.p, each.groups, level),
                *(p_value(comparison.p_holm) if comparison.decides else DASH, each.n, each.groups),
                *([comparison.only_first + comparison.only_second] if axis else []),
            )
        )
    return Table(caption, heads, tuple(rows), title=caption)


def comparison_blocks(comparison: Comparison, metric: Metric, *, turned: bool = False) -> list[Block]:
    """The contingency table of a pair (if it has one), the difference in a sentence, and what is excluded. With
    `turned` the second run, the baseline, is in the rows, as usual in papers."""
    blocks: list[Block] = [] if comparison.table is None else [_contingency(comparison, metric, turned=turned)]
    each = comparison.difference
    named = "" if comparison.table is not None else f"{metric.label} ({comparison.scorer}): "
    blocks.append(
        Prose(
            f"{named}{comparison.first} minus {comparison.second} {difference_of(metric, comparison)} "
            f"({100 * comparison.level:g} % CI {interval(metric, each.ci_low, each.ci_high)}), {significance_words(comparison)}; "
            f"{count_of(each.n, 'item')} in {count_of(each.groups, 'group')}."
        )
    )
    notes = [margin_line(comparison)] if comparison.margin is not None else []
    if comparison.recovered is not None and comparison.recovered[1]:
        (right, wrong), share = comparison.recovered, comparison.recovery
        rate = f"Recovery rate {percent(right / wrong)}"
        if share is not None and share.ci_low is not None:
            rate += f" ({interval(ACCURACY, share.ci_low, share.ci_high)})"
        where = "" if share is None else f" in {count_of(share.groups, 'group')}"
        notes.append(f"{rate}: of {wrong} wrong without the media{where}, {right} are right with them.")
    if comparison.other_levels:
        outcomes = sorted({_outcome(comparison.metric, name) for name in comparison.other_outcomes})
        what = f"with another outcome ({', '.join(outcomes)})"
        notes.append(f"Not in the table: {count_of(comparison.other_levels, 'item')} {what}.")
    if comparison.counted_wrong:
        what = "without an outcome on one side or both, which counts as wrong"
        notes.append(f"Not in the table: {count_of(comparison.counted_wrong, 'item')} {what}.")
    if comparison.only_first or comparison.only_second:
        where = (
            f"The second figure is on {count_of(comparison.if_excluded.n, 'item')}; left out"
            if comparison.policy == BOTH
            else "Left out"
        )
        sides = ((comparison.only_first, comparison.first), (comparison.only_second, comparison.second))
        alone = " and ".join(
            f"{count_of(count, 'item')} with a score of {side} alone" for count, side in sides if count
        )
        notes.append(f"{where}: {alone}.")
    if said := noise_line(comparison):
        notes.insert(0, said)
    return [*blocks, *([Prose(" ".join(notes), quiet=True)] if notes else [])]


def _outcome(metric: str, name: str) -> str:
    if metric == RUBRIC.name and name == HALF_UNNAMED:
        return f"{name}: score and error type contradict each other"
    return DECIDED_BY_A_PERSON if is_decided(name) else name or "not named"


def _contingency(comparison: Comparison, metric: Metric, *, turned: bool) -> Table:
    counts = [list(line) for line in zip(*(comparison.table or []), strict=True)] if turned else comparison.table or []
    down, across = (comparison.second, comparison.first) if turned else (comparison.first, comparison.second)
    same = comparison.first.system == comparison.second.system
    heads = [run.condition if same else run.system for run in (down, across)]
    caption = f"{down} (rows) and {across} (columns): items by outcome."
    title = f"{metric.label} ({comparison.scorer}): {comparison.first} compared with {comparison.second}"
    return counts_table(caption, heads[0], heads[1], comparison.levels, counts, title=title)


def conditions_section(source: Source) -> Section | None:
    """For each leading metric figures of all conditions and of the differences."""
    if len(source.conditions) < 2:
        return None
    pairs = source.paired
    blocks: list[Block | str] = [Prose("The conditions:", tuple(condition_line(name) for name in source.conditions))]
    for row, key in enumerate(source.leading):
        blocks += [source.label(key), _scores(source, key, f"conditions-{row}")]
        if pairs is not None and pairs.of(key):
            blocks.append(_differences(source, key, pairs, f"differences-{row}"))
    if pairs is not None and pairs.without:
        blocks.append(Prose(f"Not compared, as no scorer scored both sides: {', '.join(pairs.without)}."))
    baseline = pairs.baseline if pairs else BASELINE
    return Section(
        key="conditions",
        title="Is the video used?",
        lead="A system that uses the video scores less when the video is taken away; one that guesses from the words "
        f"keeps its score. A difference to {baseline} whose interval reaches zero is no evidence that the video is "
        f"used.",
        blocks=blocks,
        finding=_used(source),
    )


def _used(source: Source) -> str:
    """How many systems score significantly better under the first condition than under the baseline."""
    pairs, first = source.paired, source.conditions[0]
    if pairs is None or first == pairs.baseline or not source.leading:
        return ""
    key, level = source.leading[0], source.options.level
    own = [one for one in pairs.of(key) if one.first.condition == first and not source.is_baseline(one.first.system)]
    sign = 1 if source.metric(key.metric).higher_is_better else -1
    higher = [
        one for one in own if one.p_holm is not None and one.p_holm <= 1 - level and sign * (one.drawn or 0.0) > 0
    ]
    better = "higher" if sign > 0 else "lower"
    return f"{len(higher)} of {count_of(len(own), 'system')} significantly {better} with {first}" if own else ""


def _scores(source: Source, key: Key, anchor: str) -> Figure:
    conditions = source.conditions[:MAX_SERIES]
    cells = {condition: source.results_of(key, condition) for condition in source.conditions}
    systems = [name for name in source.systems if any(name in rows for rows in cells.values())]
    chance = source.chance(key)
    dots = [[dot_of(cells[condition].get(system)) for condition in conditions] for system in systems]
    title = f"{source.label(key)} by condition"
    return rows_figure(
        anchor,
        title,
        systems,
        [Panel("", dots, None if chance is None else (chance, "chance"))],
        value_axis(source.metric(key.metric), *source.axis(key)),
        series=[ChartSeries(name, source.numbers[name]) for name in conditions],
        caption=f"{title}, with intervals. The leaderboard has the numbers.",
    )


def _differences(source: Source, key: Key, pairs: Paired, anchor: str) -> Figure:
    metric, comparisons = source.metric(key.metric), pairs.of(key)
    compared = {
        (comparison.first.system, comparison.first.condition): Dot(
            comparison.drawn, comparison.difference.ci_low, comparison.difference.ci_high
        )
        for comparison in comparisons
    }
    conditions = [name for name in source.conditions if any(condition == name for _, condition in compared)]
    systems = [name for name in source.systems if any(system == name for system, _ in compared)]
    ends = [end for dot in compared.values() for end in dot.ends]
    axis = signed_axis(metric, min(ends, default=0.0), max(ends, default=0.0))
    dots = [[compared.get((system, name), Dot()) for name in conditions] for system in systems]
    title = f"{source.label(key)}: difference to {pairs.baseline}"
    table = differences_table(
        f"Paired differences to {pairs.baseline}. {unadjusted_line(comparisons)} Differences that hold then are set in "
        "bold.",
        metric,
        sorted(comparisons, key=lambda comparison: source.systems.index(comparison.first.system)),
        {
            "System": lambda comparison: comparison.first.system,
            "Condition": lambda comparison: comparison.first.condition,
        },
        what=f"Minus {pairs.baseline}",
        level=source.options.level,
        axis=axis.limits,
    )
    return rows_figure(
        anchor,
        title,
        systems,
        [Panel("", dots, (0.0, "no difference"))],
        axis,
        series=[ChartSeries(f"{name} − {pairs.baseline}", source.numbers[name]) for name in conditions],
        caption=f"{title}, on the items that both have a score for. Right of zero, the value is higher than under "
        f"{pairs.baseline}.",
        numbers=table,
    )


def gains_section(source: Source) -> Section | None:
    """For each facet and leading metric a figure and table of the first condition minus the baseline; folded tables of
    other metrics. None if no system was run under both conditions."""
    condition, pairs = source.conditions[0], source.paired
    if pairs is None or condition == pairs.baseline:
        return None
    blocks: list[Block | str] = []
    every: list[Comparison] = []
    for number, facet in enumerate(source.facets):
        comparisons = source.gains(facet)
        every += comparisons
        drawn: list[Block] = []
        beside: list[Block] = []
        for row, key in enumerate(source.keys):
            of_key = [
                comparison
                for comparison in comparisons
                if (comparison.metric, comparison.scorer) == (key.metric, key.scorer)
            ]
            if len({comparison.facets[facet] for comparison in of_key}) < 2:
                continue
            table = differences_table(
                f"{source.label(key)}: paired differences by {plain_name(facet)}.",
                source.metric(key.metric),
                sorted(of_key, key=lambda comparison: source.systems.index(comparison.first.system)),
                {
                    "System": lambda comparison: comparison.first.system,
                    plain_name(facet).capitalize(): lambda comparison, facet=facet: comparison.facets[facet],  # type: ignore[misc]
                },
                what="Gain",
                level=source.options.level,
            )
            if key in source.leading:
                drawn.append(_gains(source, facet, key, of_key, table, f"gain-{number}-{row}"))
            else:
                beside.append(table)
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
        f"{pairs.baseline}, the line its interval. p (Holm) is adjusted for all differences of one metric and facet.",
        blocks=blocks,
        finding=_most_and_least(source, every),
        count=count_of(sum(isinstance(block, str) for block in blocks), "facet"),
    )


def _most_and_least(source: Source, comparisons: Sequence[Comparison]) -> str:
    """The kinds of questions in which the first system gains most and least by the first leading metric."""
    if not source.leading:
        return ""
    key, names = source.leading[0], [name for name in source.systems if not source.is_baseline(name)]
    own = [one for one in comparisons if (one.metric, one.scorer) == (key.metric, key.scorer) and one.drawn is not None]
    system = next((name for name in names if any(one.first.system == name for one in own)), "")
    gains = [
        (one.drawn or 0.0, f"{plain_name(facet)} {part}")
        for one in own
        if one.first.system == system
        for facet, part in one.facets.items()
    ]
    if len(gains) < 2:
        return ""
    metric = source.metric(key.metric)
    (most, where), (least, elsewhere) = max(gains), min(gains)
    return f"{system}: {difference(metric, most)} in {where}, {difference(metric, least)} in {elsewhere}"


def _gains(source: Source, facet: str, key: Key, comparisons: list[Comparison], table: Table, anchor: str) -> Figure:
    of = {(comparison.first.system, comparison.facets[facet]): comparison.difference for comparison in comparisons}
    systems, values = parts_of(source, facet, of)
    dots = {where: Dot(one.value, one.ci_low, one.ci_high) for where, one in of.items()}
    panels = []
    for name in values:
        items = count_of(max(one.n for (_, own), one in of.items() if own == name), "item")
        own = [dots.get((system, name), Dot()) for system in systems]
        panels.append(Panel(f"{name} ({items})", own, (0.0, "no gain")))
    ends = [end for dot in dots.values() for end in dot.ends]
    axis = signed_axis(source.metric(key.metric), min([0.0, *ends]), max([0.0, *ends]), lines=2)
    title = f"{source.label(key)}: gain by {plain_name(facet)}"
    return rows_figure(anchor, title, systems, panels, axis, numbers=table)


_MAX_TABLES = 60


def crossings_section(source: Source) -> Section | None:
    """The contingency tables of the paired conditions, or, with one condition, of pairs of systems if these are few."""
    found = [comparison for comparison in source.crossed if comparison.table is not None]
    if not found:
        return None
    blocks: list[Block | str] = []
    left = _MAX_TABLES
    for key in source.keys:
        of_key = [
            comparison for comparison in found if (comparison.metric, comparison.scorer) == (key.metric, key.scorer)
        ]
        tables = tuple(
            block
            for comparison in of_key[: max(left, 0)]
            for block in comparison_blocks(
                comparison, source.metric(comparison.metric), turned=source.paired is not None
            )
        )
        left -= len(of_key)
        if not tables:
            continue
        if key in source.leading and len(of_key) <= 6:
            blocks += [source.label(key), *tables]
        else:
            blocks.append(Folded(f"{source.label(key)}: {count_of(len(of_key), 'pair')}", tables))
    if left < 0:
        blocks.append(Prose(f"{count_of(-left, 'more table')} left out here; proctor compare gives all."))
    return Section(
        key="crossings",
        title="Item by item: two runs compared",
        lead="Rows say how an item went in the one run (of two conditions: the baseline), columns how it went in the "
        "other; on the diagonal both agree. Off it stands what one run could do and the other could not.",
        blocks=blocks,
        finding=_off_diagonal(found[0]),
        count=count_of(len(found), "pair"),
    )


def _off_diagonal(comparison: Comparison) -> str:
    """What the first pair of a section differs in, if its outcomes are two."""
    if comparison.table is None or len(comparison.table) != 2:
        return ""
    same = comparison.first.system == comparison.second.system
    first, second = (run.condition if same else run.system for run in (comparison.first, comparison.second))
    who, best = f"{comparison.first.system}: " if same else "", comparison.levels[0]
    (_, only_first), (only_second, _) = comparison.table
    return (
        f"{who}{only_first} {best} under {first} alone, {only_second} under {second} alone"
        if same
        else (f"{only_first} {best} by {first} alone, {only_second} by {second} alone")
    )
