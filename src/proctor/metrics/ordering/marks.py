"""Orders over many items: shares with intervals, what chance would do, and where frames are put instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import factorial

import numpy as np
from numpy.typing import NDArray

from proctor.core import Answer, InputError, Item, Metric, Reference, Score, Status
from proctor.core.formats import OrderingFormat
from proctor.metrics.marks import MetricEstimate
from proctor.metrics.ordering.comparison import OrderComparison, compare_orders
from proctor.metrics.text import RATIONALE_F1
from proctor.stats import Floats, Groups, Resampling, correlation, mean_interval, sums_interval

PAIR_CHANCE = 0.5
"""The pairwise accuracy of a random order."""

_FORMATS = ("ordering",)
TASK = Metric("task_accuracy", "Task accuracy (exact order)", percent=True, formats=_FORMATS)
PAIR = Metric(
    "pairwise_accuracy", "Pairwise accuracy", percent=True, chance=PAIR_CHANCE, formats=_FORMATS, per="neighbours"
)
TAU = Metric("kendall_tau", "Kendall's tau", low=-1.0, chance=0.0, formats=_FORMATS)
RUN = Metric("longest_run", "Longest run in order, of all frames", percent=True, formats=_FORMATS)
FIRST = Metric("first_right", "First frame right", percent=True, formats=_FORMATS)
LAST = Metric("last_right", "Last frame right", percent=True, formats=_FORMATS)
EITHER_WAY = Metric("up_to_reversal", "Right up to reversal", percent=True, formats=_FORMATS)
PARTIAL = Metric(
    "pairwise_partial",
    "Pairwise accuracy, partial credit for invalid orders",
    percent=True,
    chance=PAIR_CHANCE,
    formats=_FORMATS,
    per="neighbours",
)
VALID = Metric(
    "valid_order",
    "Valid orders (each label once)",
    percent=True,
    formats=_FORMATS,
    levels=("valid", "invalid", "no order"),
)
ORDERING_METRICS = (TASK, PAIR, TAU, RUN, FIRST, LAST, EITHER_WAY)


def exact_chance(frames: Sequence[int]) -> float | None:
    """The task accuracy of random orders: the mean of 1/n! over items with these numbers of frames; None for no item.

    >>> exact_chance([4]), exact_chance([6])
    (0.041666666666666664, 0.001388888888888889)
    >>> exact_chance([4, 6]) == (1 / 24 + 1 / 720) / 2
    True
    """
    return sum(1 / factorial(count) for count in frames) / len(frames) if frames else None


def overall_score(
    task_accuracy: float, pairwise_accuracy: float, rationale_f1: float, *, alpha: float = 0.7, beta: float = 0.8
) -> float:
    """100 · [β · (α · task + (1 − α) · pairwise) + (1 − β) · F1], from 0 to 100; all parts from 0 to 1.

    The overall score of the ClinicalSkillQA 2026 shared task (its overview, section 4.4), where α = 0.7 and
    β = 0.8. Raises `InputError` for a part or weight outside 0 to 1.

    >>> round(overall_score(0.63, 0.86, 0.79), 2)
    71.72
    """
    given = {
        "task_accuracy": task_accuracy,
        "pairwise_accuracy": pairwise_accuracy,
        "rationale_f1": rationale_f1,
        "alpha": alpha,
        "beta": beta,
    }
    for name, value in given.items():
        if not 0 <= value <= 1:
            raise InputError(None, name, found=f"{value:g}", expected="a number from 0 to 1")
    ordering = alpha * task_accuracy + (1 - alpha) * pairwise_accuracy
    return 100 * (beta * ordering + (1 - beta) * rationale_f1)


def order_marks(
    comparisons: Sequence[OrderComparison], groups: Groups, plan: Resampling = Resampling()
) -> list[MetricEstimate]:
    """All `ORDERING_METRICS`, in this order, over many items, with intervals clustered by group.

    Pairwise accuracy is aggregated: neighbours in order over all neighbours of all items, so an item of six
    frames counts five times and one of four three times (the ClinicalSkillQA overview, section 4.2). The longest
    run is the mean of its share of the item's frames; every other one is the mean over items. Options: see
    `Resampling`. Edges: no items: values None. Raises `InputError` where lengths differ.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = [compare_orders("ABCD", "ABDC"), compare_orders("ABCDEF", "ABCDEF")]
    >>> marks = order_marks(found, ["v1", "v2"])
    >>> [(mark.metric.name, mark.estimate.value) for mark in marks[:2]]
    [('task_accuracy', 0.5), ('pairwise_accuracy', 0.875)]
    """
    if len(comparisons) != len(groups):
        found = f"{len(comparisons)} and {len(groups)}"
        raise InputError(None, "orders", found=found, expected="as many comparisons as groups")
    pairs = np.array([one.frames - 1 for one in comparisons], dtype=np.int64)
    right = np.array([one.adjacent_right / max(1, one.frames - 1) for one in comparisons])
    place = np.repeat(np.arange(len(pairs)), pairs)  # every pair of neighbours counts once, as in `results`
    of_pair = [groups[number] for number in place.tolist()]
    columns: tuple[tuple[Metric, list[float]], ...] = (
        (TASK, [float(one.exact) for one in comparisons]),
        (TAU, [one.tau for one in comparisons]),
        (RUN, [one.longest_run / one.frames for one in comparisons]),
        (FIRST, [float(one.first_right) for one in comparisons]),
        (LAST, [float(one.last_right) for one in comparisons]),
        (EITHER_WAY, [float(one.up_to_reversal) for one in comparisons]),
    )
    marks = [
        MetricEstimate(metric, mean_interval(values, groups, plan.within(metric.low, metric.high)))
        for metric, values in columns
    ]
    pairwise = replace(mean_interval(right[place], of_pair, plan.within(0, 1)), n=len(comparisons))
    marks.insert(1, MetricEstimate(PAIR, pairwise))
    return marks


def place_confusion(comparisons: Sequence[OrderComparison]) -> dict[int, NDArray[np.int64]]:
    """Where frames are put instead: per number of frames n a table of counts, n × (n + 1).

    Row: the place where a frame belongs. Column: the place where it was put (of the known labels at their
    first place); the last one: missing. Rows add up to the number of items of n frames.

    >>> from proctor.metrics.ordering import compare_orders
    >>> place_confusion([compare_orders("ABC", "ACB"), compare_orders("ABC", "AB")])[3].tolist()
    [[2, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]]
    """
    tables: dict[int, NDArray[np.int64]] = {}
    for one in sorted(comparisons, key=lambda one: one.frames):
        table = tables.setdefault(one.frames, np.zeros((one.frames, one.frames + 1), dtype=np.int64))
        for belongs, put in enumerate(one.places):
            table[belongs, one.frames if put is None else put] += 1
    return tables


WEIGHTS = (0.7, 0.8)
"""α and β of the overall score, as the ClinicalSkillQA 2026 shared task set them."""

OVERALL = Metric("overall", "Overall score (0–100)", high=100.0, formats=("ordering",))
TRACKING = Metric(
    "rationale_tracks_order", "Rationale F1 with share of pairs in order (Spearman)", low=-1.0, formats=("ordering",)
)


def rationale_marks(
    compared: Mapping[str, OrderComparison],
    groups: Sequence[str],
    f1: Mapping[str, float],
    *,
    weights: tuple[float, float] = WEIGHTS,
    plan: Resampling = Resampling(),
) -> list[MetricEstimate]:
    """The mean F1 of some items and their overall score (see `overall_score`; `weights` are α and β), with intervals
    clustered by `groups`; none where no item has an F1. Items without one count for their order alone.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = {"q1": compare_orders("ABCD", "ABCD"), "q2": compare_orders("ABCD", "ABDC")}
    >>> [round(one.estimate.value, 2) for one in rationale_marks(found, ["v1", "v2"], {"q1": 0.8, "q2": 0.6})]
    [0.7, 62.0]
    """
    scored = [(f1[name], group) for name, group in zip(compared, groups, strict=True) if name in f1]
    if not scored:
        return []
    values, theirs = zip(*scored, strict=True)
    mean = mean_interval(values, theirs, plan.within(0, 1))
    columns = np.array(
        [
            (one.exact, 1, one.adjacent_right, one.frames - 1, f1.get(name, 0.0), name in f1)
            for name, one in compared.items()
        ],
        dtype=np.float64,
    )

    def overall(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore"):  # a sample without any rationale has no score
            task, pair, f1_mean = (sums[:, k] / sums[:, k + 1] for k in (0, 2, 4))
        alpha, beta = weights
        return np.asarray(100 * (beta * (alpha * task + (1 - alpha) * pair) + (1 - beta) * f1_mean))

    whole = sums_interval(columns, groups, overall, plan=plan.within(0, 100))
    return [MetricEstimate(RATIONALE_F1, mean), MetricEstimate(OVERALL, whole)]


def tracking_mark(
    compared: Mapping[str, OrderComparison],
    groups: Sequence[str],
    f1: Mapping[str, float],
    plan: Resampling = Resampling(),
) -> MetricEstimate:
    """Whether better rationales go with better orders, over the answered items: Spearman's correlation of F1 and the
    share of pairs in order, −1 to 1. The task's paper remarks that they need not. Edges: the value is None with fewer
    than two items, and where all orders or all rationales are alike.

    >>> from proctor.metrics.ordering import compare_orders
    >>> found = {name: compare_orders("ABCD", said) for name, said in (("q1", "ABCD"), ("q2", "ABDC"), ("q3", "DCBA"))}
    >>> f1 = {"q1": 0.9, "q2": 0.6, "q3": 0.5}
    >>> round(tracking_mark(found, ["v1", "v2", "v3"], f1, plan=Resampling(draws=100)).estimate.value, 2)
    1.0
    """
    rows = [
        (f1[name], one.adjacent_right / (one.frames - 1), group)
        for (name, one), group in zip(compared.items(), groups, strict=True)
        if name in f1 and one.answered
    ]
    scores, orders, theirs = zip(*rows, strict=True) if rows else ((), (), ())
    return MetricEstimate(TRACKING, correlation(scores, orders, theirs, "spearman", plan=plan))


RUN_METRICS = (*ORDERING_METRICS[1:], PARTIAL, VALID)
"""What is marked beside accuracy, which is the task accuracy."""

NEIGHBOURS = "neighbours"
"""The tag of an item that says how many pairs of neighbours its order has: pairwise accuracy is the share of all of
them."""


class OrderingScorer:
    """`RUN_METRICS` for every answer to an item whose reference is an order.

    An answer without an order (too late, refused, unreadable) has nothing in order: 0, and tau −1; and so has an
    invalid one, which misses, repeats or invents a label. What its pairs are worth stands apart (`PARTIAL`). Of several orders
    that are accepted, the one counts that the answer is nearest to: most neighbours in order, then most pairs.

    >>> from proctor.core import Reference
    >>> item = Item(id="q1", group="v1", question="In which order?", answer=OrderingFormat(labels=("A", "B", "C")),
    ...             reference=Reference(answer=["B", "A", "C"]))
    >>> scores = OrderingScorer().mark(item, Answer(item_id="q1", text="B > C > A", parsed=["B", "C", "A"]))
    >>> [(score.metric, round(score.value, 2)) for score in scores[:3]]
    [('pairwise_accuracy', 0.5), ('kendall_tau', 0.33), ('longest_run', 0.67)]
    """

    @property
    def name(self) -> str:
        """ "code": no model is asked."""
        return "code"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All but the task accuracy, which is accuracy."""
        return RUN_METRICS

    def applies(self, item: Item) -> bool:
        """To orders with a reference."""
        return item.reference is not None and isinstance(item.answer, OrderingFormat)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The scores of `mark`, in the form that every scorer has."""
        return self.mark(item, answer)

    def mark(self, item: Item, answer: Answer) -> list[Score]:
        """Marks one answer. Raises `ValueError` for a failed one, and for an item that it does not apply to."""
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is no answer and is never scored")
        if item.reference is None or not self.applies(item):
            raise ValueError(f"item {item.id!r}: its answers (format {item.answer.kind}) are no orders")
        best = compared(item.reference, answer)
        return [
            Score(item_id=item.id, metric=metric.name, value=value, scorer=self.name, label=label)
            for metric, (value, label) in zip(RUN_METRICS, _values(best), strict=True)
        ]


def compared(reference: Reference, answer: Answer) -> OrderComparison:
    """An answer's order compared with the reference; of several that are accepted against the one that it is nearest to.
    What holds no order is held as none.

    >>> known = Reference(answer=["B", "A", "C"], accepted=[["A", "B", "C"]])
    >>> compared(known, Answer(item_id="q1", text="A > B > C", parsed=["A", "B", "C"])).exact
    True
    """
    said = answer.parsed if isinstance(answer.parsed, list) else []
    keys = [key for key in (reference.answer, *reference.accepted) if isinstance(key, list)]
    found = [compare_orders([*map(str, key)], [*map(str, said)]) for key in keys]
    return max(found, key=lambda one: (one.exact, one.adjacent_right, one.all_right))


def _values(said: OrderComparison) -> Sequence[tuple[float, str]]:
    """Value and label in the order of `RUN_METRICS`."""
    one = said.counted("wrong")
    pairs, frames = one.frames - 1, one.frames
    state = "valid" if said.valid else "invalid" if said.answered or said.unknown else "no order"
    return (
        (one.adjacent_right / pairs, f"{one.adjacent_right} of {pairs} pairs"),
        (one.tau, ""),
        (one.longest_run / frames, f"{one.longest_run} of {frames} frames"),
        *((float(given), "yes" if given else "no") for given in (one.first_right, one.last_right)),
        (float(one.up_to_reversal), "yes" if one.up_to_reversal else "no"),
        (said.adjacent_right / pairs, f"{said.adjacent_right} of {pairs} pairs"),
        (float(said.valid), state),
    )
