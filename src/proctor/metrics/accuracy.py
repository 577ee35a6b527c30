"""Right or wrong by code, for every answer format whose answers can be compared without a judge."""

from __future__ import annotations

from pydantic import JsonValue

from proctor.core import ACCURACY, NO_ANSWER, Answer, Item, Metric, Score, Status
from proctor.core.formats import FreeTextFormat, RatingsFormat

__all__ = ["MISSING", "AccuracyScorer", "cause_of", "is_right"]

MISSING = "missing"
"""The label of the score for an answer that a submission lacks."""

_CAUSES = {Status.TIMED_OUT: "timed out", Status.REFUSED: "refused", Status.ERROR: "error"}


class AccuracyScorer:
    """1.0 for an answer that matches the reference or one of its accepted alternatives, else 0.0.

    Applies to every item that has a reference, but for free text and ratings, which need a judge or a
    measure of their own. The label says why: "right", "wrong", or, as 0.0 all the same, "timed out",
    "refused", "error" (the system's own fault), "missing" (a submission lacks it) and "unreadable" (no value could be read from the text).

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import ChoiceFormat
    >>> item = Item(id="q1", group="v1", question="Which?", options=("liver", "spleen"),
    ...             answer=ChoiceFormat(), reference=Reference(answer="B"))
    >>> scorer = AccuracyScorer()
    >>> scorer.mark(item, Answer(item_id="q1", text="Answer: B", parsed="B")).value
    1.0
    >>> scorer.mark(item, Answer(item_id="q1", text="both", problem="expected one option")).label
    'unreadable'
    """

    @property
    def name(self) -> str:
        """ "code": no model is asked."""
        return "code"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Accuracy alone."""
        return (ACCURACY,)

    def applies(self, item: Item) -> bool:
        """Whether answers to this item can be compared with a reference by code."""
        return item.reference is not None and not isinstance(item.answer, FreeTextFormat | RatingsFormat)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The one score of `mark`, in the form that every scorer has."""
        return [self.mark(item, answer)]

    def mark(self, item: Item, answer: Answer) -> Score:
        """Marks one answer. Raises `ValueError` for what must never be marked: an answer to another
        item, a failed one, or an item that this scorer does not apply to."""
        if answer.item_id != item.id:
            raise ValueError(f"the answer is to item {answer.item_id!r}, not to {item.id!r}")
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is no answer and is never scored")
        if not self.applies(item):
            raise ValueError(
                f"item {item.id!r}: its answers (format {item.answer.kind}) can't be marked by code"
            )
        label = cause_of(answer) or ("right" if is_right(item, answer.parsed) else "wrong")
        return Score(
            item_id=item.id,
            metric=ACCURACY.name,
            value=1.0 if label == "right" else 0.0,
            scorer=self.name,
            label=label,
        )


def cause_of(answer: Answer) -> str:
    """Why an answer holds no value to be compared: "timed out", "refused", "error" (the system's own fault), "missing"
    (a submission lacks it) or "unreadable"; empty where it holds one. All of them are the system's own doing, and wrong.

    Raises `ValueError` for a failed answer, which is nobody's.

    >>> cause_of(Answer(item_id="q1", problem="expected one option")), cause_of(Answer(item_id="q1", parsed="B"))
    ('unreadable', '')
    """
    if answer.status is Status.FAILED:
        raise ValueError(f"item {answer.item_id!r}: a failed answer is no answer and is never scored")
    if answer.status in _CAUSES:
        return _CAUSES[answer.status]
    if answer.parsed is None:
        return MISSING if answer.reason == NO_ANSWER else "unreadable"
    return ""


def is_right(item: Item, value: JsonValue) -> bool:
    """Whether a parsed value matches the item's reference or one of its accepted alternatives.

    Raises `ValueError` for an item without a reference.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import CountFormat
    >>> item = Item(id="q1", group="v1", question="How many?", answer=CountFormat(),
    ...             reference=Reference(answer=2, accepted=(3,)))
    >>> [is_right(item, number) for number in (1, 2, 3)]
    [False, True, True]
    """
    if item.reference is None:
        raise ValueError(f"item {item.id!r} has no reference to be right by")
    keys = (item.reference.answer, *item.reference.accepted)
    return any(item.answer.match(key, value) for key in keys)
