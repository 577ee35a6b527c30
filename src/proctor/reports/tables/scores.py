"""Scores, leaderboards and paired differences in tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from proctor.core import DASH, Metric, interval, p_value, plain_name, rank_range, value
from proctor.reports.blocks import Block, Cell, Column, Prose, Row, Span, Table, columns
from proctor.reports.wording import badge_of, difference_of, score
from proctor.runs import CODE, Comparison, Leaderboard, LeaderboardRow, Result, Results

_COUNTS = {
    "answered": "Answered",
    "failed": "Failed",
    "timed_out": "Timed out",
    "refused": "Refused",
    "error": "Error",
    "unreadable": "Unreadable",
    "not_submitted": "Not submitted",
    "unresolved": "Unresolved",
    "decided": "Decided by a person",
    "unmarked": "Unmarked",
    "missing": "Not asked",
    "unsupported": "Unsupported format",
}
_ALWAYS = {"answered", "failed"}


def span_of(
    axis: tuple[float, float], low: float | None, number: float | None, high: float | None, mark: float | None
) -> Span | None:
    """The drawn form of a value with its interval on an axis; None where there is no value."""
    if number is None or axis[1] <= axis[0]:
        return None

    def place(at: float) -> float:
        return min(1.0, max(0.0, (at - axis[0]) / (axis[1] - axis[0])))

    return Span(
        low=None if low is None else place(low),
        value=place(number),
        high=None if high is None else place(high),
        mark=None if mark is None else place(mark),
    )


def axis_words(metric: Metric, axis: tuple[float, float]) -> str:
    """The ends of an axis in the metric's unit."""
    scale, unit = (100, " %") if metric.percent else (1, "")
    return f"{scale * axis[0]:.3g} to {scale * axis[1]:.3g}{unit}"


def _counts(rows: Sequence[Result]) -> list[str]:
    """The counts that tell something of these rows."""
    return [name for name in _COUNTS if name in _ALWAYS or any(getattr(row, name) for row in rows)]


def _count_columns(names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(_COUNTS[name], numeric=True, name=name) for name in names)


def _units(metric: Metric) -> str:
    return plain_name(metric.per) if metric.per else "Items"


def _levels(metric: Metric, rows: Sequence[Result]) -> list[str]:
    """The named levels, best first, then those that occur without being declared."""
    return list(dict.fromkeys([*metric.levels, *(level for row in rows for level in row.levels)]))


def results_tables(found: Results) -> list[Table]:
    """A table for each metric and scorer, with what others published below; of a metric with named levels a second one
    with the answers at each."""
    tables = []
    # The chance level is that of all items that count, not of a part of them.
    split = bool(found.options.by or (found.options.all_items and found.card.only))
    for name, scorer in dict.fromkeys((row.metric, row.scorer) for row in found.rows):
        rows = [row for row in found.rows if (row.metric, row.scorer) == (name, scorer)]
        tables.append(_results_table(found, found.card.metric(name), scorer, rows, split=split))
        metric = found.card.metric(name)
        if any(row.levels for row in rows):
            tables.append(_results_levels(found, metric, rows))
    return tables


def _results_table(found: Results, metric: Metric, scorer: str, rows: list[Result], *, split: bool) -> Table:
    card, by = found.card, found.options.by
    whose = "" if scorer == CODE else f", by {scorer}" if scorer else ", not marked yet (proctor score)"
    chance = None if split or scorer != CODE else card.chance.get(metric.name)
    title = f"{card.title}{' (simulated)' if card.simulated else ''}: {metric.label}{whose}"
    title += "" if chance is None else f" (chance {value(metric, chance)})"
    names = _counts(rows)
    heads = (
        Column("System", name="system"),
        Column("Condition", name="condition"),
        *(Column(plain_name(facet).capitalize(), name=facet) for facet in by),
        Column("Score", numeric=True, name="value"),
        Column(f"{100 * found.options.level:g} % CI", numeric=True),
        Column(_units(metric), numeric=True, name="n"),
        Column("Groups", numeric=True, name="groups"),
        *_count_columns(names),
    )
    cells: list[Row] = [
        (
            Cell(row.system),
            row.condition,
            *(row.facets[facet] for facet in by),
            Cell(score(metric, row), strong=True, raw=row.value),
            interval(metric, row.ci_low, row.ci_high),
            row.n,
            row.groups,
            *(int(getattr(row, name)) for name in names),
        )
        for row in rows
    ]
    rest = [DASH] * (len(heads) - 3 - len(by))
    for one in card.published.split(metric.name, by) if card.published else ():
        where = f"{one.condition}, published" if one.condition else "published"
        cells.append(
            (
                Cell(one.system),
                where,
                *(one.facets[facet] for facet in by),
                value(metric, one.values[metric.name]),
                *rest,
            )
        )
    return Table(f"{title}.", heads, tuple(cells), title=title)


def _results_levels(found: Results, metric: Metric, rows: list[Result]) -> Table:
    by, levels = found.options.by, _levels(metric, rows)
    heads = columns(
        "System", "Condition", *(plain_name(facet).capitalize() for facet in by), *(f">{one}" for one in levels)
    )
    cells: list[Row] = [
        (
            Cell(row.system),
            row.condition,
            *(row.facets[facet] for facet in by),
            *(row.levels.get(level, 0) for level in levels),
        )
        for row in rows
    ]
    title = f"{metric.label}: answers at each level"
    return Table(f"{title}.", heads, tuple(cells), title=title)


def leaderboard_table(
    board: Leaderboard,
    results: Mapping[str, Result],
    *,
    level: float,
    axis: tuple[float, float],
    chance: float | None,
    caption: str,
) -> Table:
    """The systems of one condition: rank, score, and how many answers stand behind it (`results`, by system; systems of
    `results` without a score come last)."""
    metric = board.metric
    names = _counts(list(results.values()))
    heads = (
        *columns("System", ">Rank", ">95 % CI of the rank", ">Places in samples"),
        Column(metric.label, numeric=True, name="value"),
        Column(f"{100 * level:g} % CI", numeric=True),
        Column(axis_words(metric, axis), drawn=True),
        Column(_units(metric), numeric=True, name="n"),
        Column("Groups", numeric=True, name="groups"),
        *_count_columns(names),
    )
    rows = [
        _ranked_row(board, one, results[one.system], names, axis, chance) for one in board.rows if one.system in results
    ]
    ranked = {row.system for row in board.rows}
    rows += [_unscored_row(results[name], names) for name in sorted(results) if name not in ranked]
    return Table(caption, heads, tuple(rows), title=caption)


def _ranked_row(
    board: Leaderboard,
    row: LeaderboardRow,
    result: Result,
    names: Sequence[str],
    axis: tuple[float, float],
    chance: float | None,
) -> Row:
    """A score over the same items is shown as everywhere else, so that its interval has the same draws."""
    metric = board.metric
    shown = result if (result.n, result.drawn) == (row.n, row.drawn) else row
    return (
        Cell(row.system, badge=badge_of(row)),
        DASH if row.rank is None else str(row.rank),
        rank_range(row.rank_low, row.rank_high),
        rank_range(row.place_low, row.place_high),
        Cell(score(metric, row), strong=True, raw=row.value),
        interval(metric, shown.ci_low, shown.ci_high),
        Cell("", span=span_of(axis, shown.ci_low, shown.drawn, shown.ci_high, chance)),
        row.n,
        row.groups,
        *(int(getattr(result, name)) for name in names),
    )


def _unscored_row(result: Result, names: Sequence[str]) -> Row:
    counts = [int(getattr(result, name)) for name in names]
    return (Cell(result.system), DASH, DASH, DASH, Cell(DASH), DASH, Cell("no score"), 0, 0, *counts)


def levels_table(caption: str, metric: Metric, results: Sequence[Result]) -> Table | None:
    """How many answers of each system reached each named level; None where the metric has none."""
    levels = _levels(metric, results)
    if not any(row.levels for row in results):
        return None
    rows: tuple[Row, ...] = tuple(
        (Cell(row.system), *(row.levels.get(level, 0) for level in levels)) for row in results
    )
    return Table(caption, columns("System", *(f">{level}" for level in levels)), rows)


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
    """Paired differences, a row each; `lead` names the columns that say which. Bold where Holm's p holds at the level;
    drawn where there is an axis, and then with the items that one side alone has a score for."""
    better = "left: worse, right: better" if metric.higher_is_better else "left: better, right: worse"
    heads = (
        *(Column(name) for name in lead),
        Column(what, numeric=True, name="difference"),
        Column(f"{100 * level:g} % CI", numeric=True),
        *([Column(better, drawn=True)] if axis else []),
        *columns(">p", ">p (Holm)", ">Items", ">Groups"),
        *([Column("One side only", numeric=True)] if axis else []),
    )
    rows: list[Row] = []
    for one in compared:
        each = one.difference
        sure = one.p_holm is not None and one.p_holm <= 1 - level
        drawn = span_of(axis, each.ci_low, one.drawn, each.ci_high, 0.0) if axis else None
        first, *others = (show(one) for show in lead.values())
        rows.append(
            (
                Cell(first),
                *others,
                Cell(difference_of(metric, one), strong=sure, raw=each.value),
                interval(metric, each.ci_low, each.ci_high),
                *([Cell("", span=drawn)] if axis else []),
                p_value(each.p),
                p_value(one.p_holm),
                each.n,
                each.groups,
                *([one.only_first + one.only_second] if axis else []),
            )
        )
    return Table(caption, heads, tuple(rows), title=caption)


def comparison_blocks(one: Comparison, metric: Metric, *, turned: bool = False) -> list[Block]:
    """The contingency table of one pair, where there is one, the difference in a sentence, and what is left out;
    `turned`: its second run, the baseline, in the rows, as papers print it."""
    blocks: list[Block] = []
    if one.table is not None:
        blocks.append(_contingency(one, metric, turned=turned))
    named = "" if one.table is not None else f"{metric.label} ({one.scorer}): "
    blocks.append(Prose(named + _difference_words(one, metric)))
    notes = []
    if one.recovered is not None and one.recovered[1]:
        right, wrong = one.recovered
        notes.append(
            f"Recovery rate {right / wrong:.0%}: of {wrong} wrong without the media, {right} are right with them."
        )
    if one.other_levels:
        notes.append(
            f"{one.other_levels} items with an outcome outside these levels (contradictory verdicts) are not in the table."
        )
    if one.only_first or one.only_second:
        notes.append(
            f"Only one side has a score for {one.only_first + one.only_second} items ({one.only_first} / {one.only_second}); "
            "they are left out."
        )
    return [*blocks, *([Prose(" ".join(notes), quiet=True)] if notes else [])]


def _difference_words(one: Comparison, metric: Metric) -> str:
    each = one.difference
    holm = p_value(one.p_holm)
    if one.policy and each.value is None and each.p is None:
        holm += ", undecided: the two readings point different ways"
    return (
        f"{one.first} minus {one.second} {difference_of(metric, one)} "
        f"(95 % CI {interval(metric, each.ci_low, each.ci_high)}), p {p_value(each.p)}, Holm {holm}; "
        f"{each.n} items in {each.groups} groups."
    )


def _contingency(one: Comparison, metric: Metric, *, turned: bool) -> Table:
    counts = [list(line) for line in zip(*(one.table or []), strict=True)] if turned else one.table or []
    down, across = (one.second, one.first) if turned else (one.first, one.second)
    sums = [sum(column) for column in zip(*counts, strict=True)]
    rows: list[Row] = [
        (
            Cell(level),
            *(Cell(str(count), strong=row == column, raw=count) for column, count in enumerate(line)),
            sum(line),
        )
        for row, (level, line) in enumerate(zip(one.levels, counts, strict=True))
    ]
    first, second = _sides(one)[:: -1 if turned else 1]
    heads = columns(f"{first} ↓  {second} →", *(f">{level}" for level in one.levels), ">Total")
    caption = f"{down} (rows) and {across} (columns): items by outcome."
    title = f"{metric.label} ({one.scorer}): {one.first} compared with {one.second}"
    return Table(caption, heads, tuple(rows), ("Total", *sums, sum(sums)), title=title)


def _sides(one: Comparison) -> tuple[str, str]:
    if one.first.system == one.second.system:
        return one.first.condition, one.second.condition
    return one.first.system, one.second.system
