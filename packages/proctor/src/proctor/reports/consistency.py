"""Tables of runs whose items were answered several times."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import ACCURACY, DASH, Cell, Column, Metric, Row, Table, count_of, heads, interval, points, value
from proctor.results import Comparison, Consistency, JudgeConsistency, Results
from proctor.stats import Estimate


def consistency_tables(found: Results) -> list[Table]:
    """Of each metric and scorer with repetitions a table: how alike a run's answers are, how often all, any and most are
    right, and where the variance lies; none where nothing was answered twice."""
    pairs = dict.fromkeys((one.metric, one.scorer) for one in found.consistency)
    return [_table(found, [one for one in found.consistency if (one.metric, one.scorer) == pair]) for pair in pairs]


def _table(found: Results, rows: Sequence[Consistency]) -> Table:
    metric = found.card.metric(rows[0].metric)
    most = max(row.repetitions for row in rows)
    columns = (
        *heads("system", "condition"),
        Column("Figure", name="figure"),
        *heads("value", "ci", level=found.options.level),
    )
    cells: list[Row] = []
    for row in rows:
        for label, shown, estimate in _figures(metric, row):
            known = estimate is not None and estimate.value is not None
            score = value(shown, estimate.value) if estimate is not None else DASH
            ends = interval(shown, estimate.ci_low, estimate.ci_high) if estimate is not None and known else DASH
            cells.append((Cell(row.system), row.condition, label, Cell(score, strong=True), ends))
    return Table(f"{metric.label} over {count_of(most, 'repetition')}", columns, tuple(cells))


def _figures(metric: Metric, row: Consistency) -> list[tuple[str, Metric, Estimate | None]]:
    """The figures of a run, each with the metric by which it is shown: shares are shown as accuracies are."""
    k, parts = row.repetitions, {} if row.variance is None else row.variance.shares
    return [
        ("Same answer in two repetitions", ACCURACY, row.alike),
        (f"Right in all {k}", ACCURACY, row.all_right.get(k)),
        (f"Right in any of {k}", ACCURACY, row.any_right.get(k)),
        ("Most frequent answer", metric, row.majority),
        ("Variance between groups", ACCURACY, parts.get("group")),
        ("Variance between items", ACCURACY, parts.get("item")),
        ("Variance between repetitions", ACCURACY, parts.get("repetition")),
    ]


_PARTS = {
    "answer": "Variance between answers",
    "judge": "Variance between judges",
    "judge_by_answer": "Variance of judges by answer",
    "judgement": "Variance between judgements",
}


def judgement_tables(found: Results) -> list[Table]:
    """Of each metric with judges that were asked several times a table: how often two judgements of an answer are alike,
    how far they lie apart, and where the variance lies."""
    names = dict.fromkeys(one.metric for one in found.judged)
    return [_judgements(found, [one for one in found.judged if one.metric == name]) for name in names]


def _judgements(found: Results, rows: Sequence[JudgeConsistency]) -> Table:
    metric = found.card.metric(rows[0].metric)
    columns = (
        *heads("system", "condition"),
        Column("Judge", name="scorer"),
        Column("Figure", name="figure"),
        *heads("value", "ci", level=found.options.level),
    )
    cells: list[Row] = []
    for row in rows:
        where = (Cell(row.system), row.condition, row.scorer)
        cells.append((*where, "Same score in two judgements", *_value_and_ends(row.alike)))
        spread = DASH if row.spread is None else points(metric, row.spread).removeprefix("+")
        cells.append((*where, "Spread of judgements of an answer", spread, DASH))
        parts = {} if row.variance is None else row.variance.shares
        cells += [(*where, _PARTS[name], *_value_and_ends(one)) for name, one in parts.items()]
    most = max(row.judgements for row in rows)
    return Table(f"{metric.label}: {count_of(most, 'judgement')} of an answer", columns, tuple(cells))


def _value_and_ends(one: Estimate) -> tuple[Cell, str]:
    ends = interval(ACCURACY, one.ci_low, one.ci_high) if one.value is not None else DASH
    return Cell(value(ACCURACY, one.value), strong=True), ends


def consistency_notes(found: Results) -> list[str]:
    """What the tables of repetitions rest on, in sentences; none without repetitions."""
    if not found.consistency:
        return []
    notes = [
        "An item's score is the mean over its repetitions; intervals resample groups, never repetitions.",
        "How answers ended (answered, failed, refused and so on) is counted over the answers of all repetitions.",
    ]
    fewer = {(one.system, one.condition): one for one in found.consistency if one.fewer}
    notes += [
        f"{one.system} / {one.condition}: {count_of(one.fewer, 'item')} with fewer than {one.repetitions} repetitions, "
        "left out where all of them count."
        for one in fewer.values()
    ]
    if found.over_items:
        named = ", ".join(found.over_items)
        notes.append(f"Over the answers of the first repetition alone: {named}.")
    return notes


def noise_line(comparison: Comparison) -> str:
    """Whether a difference is larger than the noise between repetitions, in a sentence; empty without repetitions."""
    noise, metric = comparison.noise, comparison.declared
    if noise is None:
        return ""
    shown = points(metric, noise.difference, noise.ci_low, noise.ci_high)
    says = "exceeds" if noise.exceeded else "does not exceed"
    return f"The difference {says} the noise between repetitions: on these items it is {shown}."
