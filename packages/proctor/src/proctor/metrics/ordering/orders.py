"""Metrics of orders: one answer against the right order, many over items with intervals, and the chance level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise, permutations
from math import factorial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import Answer, InputError, Item, Metric, Reference, Score, Status

InvalidOrders = Literal["wrong", "partial"]
"""How an order that misses, repeats or invents a label counts: as wrong in every metric, or by the pairs that it has in
order."""


@dataclass(frozen=True, slots=True)
class OrderComparison:
    """The counts of one order of `frames` labels.

    `positions[i]` is where the label that belongs at position i was put (from 0, counting known labels at their
    first position only), None where it is missing. `adjacent_right` counts the neighbours of the right order
    that stand in the right order (of `frames` − 1), `all_right` the same of all pairs. `missing`, `repeated`
    and `unknown` are the labels at fault, in the order in which they are met.

    >>> compare_orders(["D", "B", "A", "C"], ["D", "A", "C"]).missing
    ('B',)
    """

    frames: int
    exact: bool
    backwards: bool
    positions: tuple[int | None, ...]
    missing: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether any label has a position."""
        return any(position is not None for position in self.positions)

    @property
    def valid(self) -> bool:
        """Whether each label stands in it once, and nothing else."""
        return not (self.missing or self.repeated or self.unknown)

    def counted(self, invalid: InvalidOrders) -> OrderComparison:
        """The comparison under a policy: with "wrong", an invalid order counts as no order.

        >>> found = compare_orders("ABCD", "ABC")
        >>> found.counted("partial").adjacent_right, found.counted("wrong").adjacent_right
        (2, 0)
        """
        if self.valid or invalid == "partial":
            return self
        return replace(self, positions=(None,) * self.frames)

    @property
    def adjacent_right(self) -> int:
        """Neighbours of the right order that are in order, however far apart they were put."""
        return sum(self._adjacent())

    @property
    def all_right(self) -> int:
        """Pairs of labels, of all n (n − 1) / 2, that are in order."""
        return sum(_in_order(a, b) for a, b in combinations(self.positions, 2))

    @property
    def tau(self) -> float:
        """Kendall's tau: 1 for the right order, −1 for it backwards, 0 on average by chance; a pair with a
        missing label counts as wrong, so no answer is −1 (Kendall 1938, Biometrika 30:81).

        >>> compare_orders("ABCD", "BACD").tau
        0.6666666666666667
        """
        pairs = self.frames * (self.frames - 1) // 2
        return 2 * self.all_right / pairs - 1

    @property
    def longest_run(self) -> int:
        """The most successive frames of the right order that are in order: 1 to `frames`, 0 without an answer.

        >>> [compare_orders("ABCD", order).longest_run for order in ("ABCD", "BCDA", "DCBA", "")]
        [4, 3, 1, 0]
        """
        longest = run = 1
        for right in self._adjacent():
            run = run + 1 if right else 1
            longest = max(longest, run)
        return longest if self.answered else 0

    @property
    def first_right(self) -> bool:
        """Whether the first frame was put first. No position is known where a label is missing: one label alone would be
        first and last.

        >>> [compare_orders("ABCD", order).first_right for order in ("ABDC", "A", "ABC")]
        [True, False, False]
        """
        return not self.missing and self.positions[0] == 0

    @property
    def last_right(self) -> bool:
        """Whether the last frame was put last; as `first_right`.

        >>> [compare_orders("ABCD", order).last_right for order in ("BACD", "D", "BCD")]
        [True, False, False]
        """
        return not self.missing and self.positions[-1] == self.frames - 1

    @property
    def up_to_reversal(self) -> bool:
        """Whether the order is right, or would be when read from last to first."""
        return self.exact or self.backwards

    def _adjacent(self) -> list[bool]:
        return [_in_order(a, b) for a, b in pairwise(self.positions)]


def compare_orders(reference: Sequence[str], prediction: Sequence[str] | None) -> OrderComparison:
    """Compares a predicted order with the right one.

    `reference` holds two or more different labels, first to last; `prediction` any labels, None or empty for
    no answer. A label that is missing makes its pairs wrong, one that is repeated counts at its first position,
    one that is unknown is ignored for pairs and positions; each of them makes the order wrong. The case of labels
    counts. Raises `InputError` for a reference with fewer than two labels or with one twice.

    >>> found = compare_orders(["D", "B", "A", "C"], ["D", "A", "X", "B", "A", "C"])
    >>> found.exact, found.adjacent_right, found.repeated, found.unknown
    (False, 2, ('A',), ('X',))
    """
    if len(reference) < 2 or len(set(reference)) != len(reference):
        shown = " > ".join(reference)
        raise InputError("reference", found=repr(shown), expected="two or more different labels in an order")
    said = list(prediction or ())
    known = [label for label in dict.fromkeys(said) if label in reference]
    position = {label: number for number, label in enumerate(known)}
    times = Counter(said)
    return OrderComparison(
        frames=len(reference),
        exact=said == list(reference),
        backwards=said == list(reference)[::-1],
        positions=tuple(position.get(label) for label in reference),
        missing=tuple(label for label in reference if label not in position),
        repeated=tuple(label for label in known if times[label] > 1),
        unknown=tuple(label for label in times if label not in reference),
    )


def _in_order(first: int | None, second: int | None) -> bool:
    return first is not None and second is not None and first < second


_MAX_COUNTED = 8  # frames: the runs of all n! orders are enumerated


def order_chance(metric: str, frames: Sequence[int]) -> float | None:
    """The mean of a metric (of `ORDERING_METRICS` or `RUN_METRICS`, by name) for random orders of items with these
    numbers of frames.

    1/n! for the exact order, 2/n! for it up to reversal, 1/n for the first and for the last frame, 1/2 for neighbours,
    0 for tau; for the longest run the mean over all n! orders, enumerated for up to 8 frames. None for another
    metric, without items, and for longer runs.

    >>> order_chance("up_to_reversal", [4]) == 2 / 24, order_chance("first_right", [4, 6]) == (1 / 4 + 1 / 6) / 2
    (True, True)
    >>> round(order_chance("longest_run", [4]), 4), order_chance("longest_run", [9]), order_chance("accuracy", [])
    (0.5729, None, None)
    """
    found = [_chance_of_one(metric, count) for count in frames]
    known = [one for one in found if one is not None]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _chance_of_one(metric: str, frames: int) -> float | None:
    if metric == "longest_run":
        return _mean_run(frames) if frames <= _MAX_COUNTED else None
    shares = {
        "accuracy": 1 / factorial(frames),
        "task_accuracy": 1 / factorial(frames),
        "up_to_reversal": 2 / factorial(frames),
        "first_right": 1 / frames,
        "last_right": 1 / frames,
        "pairwise_accuracy": 0.5,
        "pairwise_partial": 0.5,
        "kendall_tau": 0.0,
    }
    return shares.get(metric)


@cache
def _mean_run(frames: int) -> float:
    labels = range(frames)
    key = [str(label) for label in labels]
    runs = sum(compare_orders(key, [str(one) for one in order]).longest_run for order in permutations(labels))
    return runs / factorial(frames) / frames


_FORMATS = ("ordering",)
TASK = Metric("task_accuracy", "Task accuracy (exact order)", percent=True, formats=_FORMATS)
PAIR = Metric("pairwise_accuracy", "Pairwise accuracy", percent=True, chance=0.5, formats=_FORMATS, per="neighbours")
TAU = Metric("kendall_tau", "Kendall's tau", low=-1.0, chance=0.0, formats=_FORMATS)
RUN = Metric("longest_run", "Longest run in order, of all frames", percent=True, formats=_FORMATS)
FIRST = Metric("first_right", "First frame right", percent=True, formats=_FORMATS)
LAST = Metric("last_right", "Last frame right", percent=True, formats=_FORMATS)
EITHER_WAY = Metric("up_to_reversal", "Correct or exactly reversed", percent=True, formats=_FORMATS)
PARTIAL = Metric(
    "pairwise_partial",
    "Pairwise accuracy, partial credit for invalid orders",
    percent=True,
    chance=0.5,
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
            raise InputError(name, found=f"{value:g}", expected="a number from 0 to 1")
    ordering = alpha * task_accuracy + (1 - alpha) * pairwise_accuracy
    return 100 * (beta * ordering + (1 - beta) * rationale_f1)


def position_confusion(comparisons: Sequence[OrderComparison]) -> dict[int, NDArray[np.int64]]:
    """Where frames are put instead: per number of frames n a table of counts, n × (n + 1).

    Row: the position where a frame belongs. Column: the position where it was put (of the known labels at their
    first position); the last one: missing. Rows add up to the number of items of n frames.

    >>> from proctor.metrics.ordering import compare_orders
    >>> position_confusion([compare_orders("ABC", "ACB"), compare_orders("ABC", "AB")])[3].tolist()
    [[2, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]]
    """
    tables: dict[int, NDArray[np.int64]] = {}
    for comparison in sorted(comparisons, key=lambda comparison: comparison.frames):
        table = tables.setdefault(
            comparison.frames, np.zeros((comparison.frames, comparison.frames + 1), dtype=np.int64)
        )
        for belongs, put in enumerate(comparison.positions):
            table[belongs, comparison.frames if put is None else put] += 1
    return tables


WEIGHTS = (0.7, 0.8)
"""α and β of the overall score, as the ClinicalSkillQA 2026 shared task set them."""

OVERALL = Metric("overall", "Overall score (0–100)", high=100.0, formats=("ordering",))
TRACKING = Metric(
    "rationale_tracks_order", "Rationale F1 with share of pairs in order (Spearman)", low=-1.0, formats=("ordering",)
)


RUN_METRICS = (*ORDERING_METRICS[1:], PARTIAL, VALID)
"""The metrics of `OrderingScorer`: all but the task accuracy, which is `accuracy`."""

NEIGHBOURS = "neighbours"
"""The tag of an item that says how many pairs of neighbours its order has: pairwise accuracy is the share of all of
them."""


class OrderingScorer:
    """`RUN_METRICS` for every answer to an item whose reference is an order.

    An answer without an order (too late, refused, unreadable) has nothing in order: 0, and tau −1; and so has an
    invalid one, which misses, repeats or invents a label. `PARTIAL` gives credit for its pairs. Of several accepted
    orders the nearest to the answer counts: most neighbours in order, then most pairs.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import OrderingFormat
    >>> item = Item(id="q1", group="v1", question="In which order?", answer=OrderingFormat(labels=("A", "B", "C")),
    ...             reference=Reference(answer=["B", "A", "C"]))
    >>> scores = OrderingScorer().compute(item, Answer(item_id="q1", text="B > C > A", parsed=["B", "C", "A"]))
    >>> [(score.metric, round(score.value, 2)) for score in scores[:3]]
    [('pairwise_accuracy', 0.5), ('kendall_tau', 0.33), ('longest_run', 0.67)]
    """

    name = "code"
    summary = "Orders: pairs, neighbours, runs and rank correlation"
    metrics = RUN_METRICS

    def applies(self, item: Item) -> bool:
        """To orders with a reference."""
        return item.has_answer and item.answer.kind == "ordering"

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The scores of `score`, as the `Scorer` protocol wants it."""
        return self.compute(item, answer)

    def compute(self, item: Item, answer: Answer) -> list[Score]:
        """Scores one answer. Raises `ValueError` for a failed one, and for an item that it does not apply to."""
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
    """An answer's order compared with the nearest of the accepted references. An answer without an order counts as
    an empty one.

    >>> known = Reference(answer=["B", "A", "C"], accepted=[["A", "B", "C"]])
    >>> compared(known, Answer(item_id="q1", text="A > B > C", parsed=["A", "B", "C"])).exact
    True
    """
    said = answer.parsed if isinstance(answer.parsed, list) else []
    keys = [key for key in (reference.answer, *reference.accepted) if isinstance(key, list)]
    found = [compare_orders([*map(str, key)], [*map(str, said)]) for key in keys]
    return max(
        found,
        key=lambda order_comparison: (
            order_comparison.exact,
            order_comparison.adjacent_right,
            order_comparison.all_right,
        ),
    )


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
