"""Orders in a run, marked by code beyond right or wrong."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import Answer, Item, Metric, Reference, Score, Status
from proctor.core.formats import OrderingFormat
from proctor.metrics.ordering.comparison import Comparison, compare_orders
from proctor.metrics.ordering.marks import ORDERING_METRICS, PARTIAL, VALID

__all__ = ["NEIGHBOURS", "RUN_METRICS", "OrderingScorer", "compared"]

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


def compared(reference: Reference, answer: Answer) -> Comparison:
    """An answer's order held against the reference; of several that are accepted against the one that it is nearest to.
    What holds no order is held as none.

    >>> known = Reference(answer=["B", "A", "C"], accepted=[["A", "B", "C"]])
    >>> compared(known, Answer(item_id="q1", text="A > B > C", parsed=["A", "B", "C"])).exact
    True
    """
    said = answer.parsed if isinstance(answer.parsed, list) else []
    keys = [key for key in (reference.answer, *reference.accepted) if isinstance(key, list)]
    found = [compare_orders([*map(str, key)], [*map(str, said)]) for key in keys]
    return max(found, key=lambda one: (one.exact, one.adjacent_right, one.all_right))


def _values(said: Comparison) -> Sequence[tuple[float, str]]:
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
