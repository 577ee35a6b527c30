"""One order compared with the right one: counts first, so that every share can be made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise, permutations
from math import factorial
from typing import Literal

from proctor.core import InputError

InvalidOrders = Literal["wrong", "partial"]
"""What becomes of an order that misses, repeats or invents a label: it is wrong in every figure, or the pairs that it
has in order count."""


@dataclass(frozen=True, slots=True)
class OrderComparison:
    """What was counted on one order of `frames` labels.

    `places[i]` is where the label that belongs at place i was put (from 0, counting known labels at their
    first place only), None where it is missing. `adjacent_right` counts the neighbours of the right order
    that stand in the right order (of `frames` − 1), `all_right` the same of all pairs. `missing`, `repeated`
    and `unknown` are the labels at fault, in the order in which they are met.

    >>> compare_orders(["D", "B", "A", "C"], ["D", "A", "C"]).missing
    ('B',)
    """

    frames: int
    exact: bool
    backwards: bool
    places: tuple[int | None, ...]
    missing: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether any label was placed at all."""
        return any(place is not None for place in self.places)

    @property
    def valid(self) -> bool:
        """Whether each label stands in it once, and nothing else."""
        return not (self.missing or self.repeated or self.unknown)

    def counted(self, invalid: InvalidOrders) -> OrderComparison:
        """The same as it counts: with "wrong", an invalid order has nothing in order, as if there were none.

        >>> found = compare_orders("ABCD", "ABC")
        >>> found.counted("partial").adjacent_right, found.counted("wrong").adjacent_right
        (2, 0)
        """
        if self.valid or invalid == "partial":
            return self
        return replace(self, places=(None,) * self.frames)

    @property
    def adjacent_right(self) -> int:
        """Neighbours of the right order that are in order, however far apart they were put."""
        return sum(self._adjacent())

    @property
    def all_right(self) -> int:
        """Pairs of labels, of all n (n − 1) / 2, that are in order."""
        return sum(_in_order(a, b) for a, b in combinations(self.places, 2))

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
        """Whether the first frame was put first."""
        return self.places[0] == 0

    @property
    def last_right(self) -> bool:
        """Whether the last frame was put last, of the frames that were placed."""
        placed = [place for place in self.places if place is not None]
        return bool(placed) and self.places[-1] == max(placed)

    @property
    def up_to_reversal(self) -> bool:
        """Whether the order is right, or would be when read from last to first."""
        return self.exact or self.backwards

    def _adjacent(self) -> list[bool]:
        return [_in_order(a, b) for a, b in pairwise(self.places)]


def compare_orders(reference: Sequence[str], prediction: Sequence[str] | None) -> OrderComparison:
    """Holds a predicted order against the right one.

    `reference` holds two or more different labels, first to last; `prediction` any labels, None or empty for
    no answer. A label that is missing makes its pairs wrong, one that is repeated counts at its first place,
    one that is unknown is ignored for pairs and places; each of them makes the order wrong. The case of labels
    counts. Raises `InputError` for a reference with fewer than two labels or with one twice.

    >>> found = compare_orders(["D", "B", "A", "C"], ["D", "A", "X", "B", "A", "C"])
    >>> found.exact, found.adjacent_right, found.repeated, found.unknown
    (False, 2, ('A',), ('X',))
    """
    if len(reference) < 2 or len(set(reference)) != len(reference):
        shown = " > ".join(reference)
        raise InputError(None, "reference", found=repr(shown), expected="two or more different labels in an order")
    said = list(prediction or ())
    known = [label for label in dict.fromkeys(said) if label in reference]
    place = {label: number for number, label in enumerate(known)}
    times = Counter(said)
    return OrderComparison(
        frames=len(reference),
        exact=said == list(reference),
        backwards=said == list(reference)[::-1],
        places=tuple(place.get(label) for label in reference),
        missing=tuple(label for label in reference if label not in place),
        repeated=tuple(label for label in known if times[label] > 1),
        unknown=tuple(label for label in times if label not in reference),
    )


def _in_order(first: int | None, second: int | None) -> bool:
    return first is not None and second is not None and first < second


_MOST_COUNTED = 8  # frames: of more, no one counts the runs of all orders


def order_chance(metric: str, frames: Sequence[int]) -> float | None:
    """The mean that random orders reach on items with these numbers of frames, by the name of a metric of `ORDERING_METRICS`
    or of `RUN_METRICS`.

    1/n! for the exact order, 2/n! for it up to reversal, 1/n for the first and for the last frame, 1/2 for neighbours,
    0 for tau; for the longest run the mean over all n! orders, which is counted for up to 8 frames. None for another
    metric, without items, and where it is not counted.

    >>> order_chance("up_to_reversal", [4]) == 2 / 24, order_chance("first_right", [4, 6]) == (1 / 4 + 1 / 6) / 2
    (True, True)
    >>> round(order_chance("longest_run", [4]), 4), order_chance("longest_run", [9]), order_chance("accuracy", [])
    (0.5729, None, None)
    """
    found = [_of_one(metric, count) for count in frames]
    known = [one for one in found if one is not None]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _of_one(metric: str, frames: int) -> float | None:
    if metric == "longest_run":
        return _run(frames) if frames <= _MOST_COUNTED else None
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
def _run(frames: int) -> float:
    labels = range(frames)
    key = [str(one) for one in labels]
    runs = sum(compare_orders(key, [str(one) for one in order]).longest_run for order in permutations(labels))
    return runs / factorial(frames) / frames
