"""Accuracy by exact comparison, the chance level, and the best constant answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from proctor.core import ACCURACY, NO_ANSWER, Answer, Item, Metric, Reference, Score, Status, formats
from proctor.core.formats import AnswerFormat, Format
from proctor.metrics.ordering.orders import order_chance

MISSING = "missing"
"""The label of the score of an answer that is missing from a submission."""

_CAUSES = {
    Status.TIMED_OUT: "timed out",
    Status.REFUSED: "refused",
    Status.ERROR: "error",
    Status.ABSTAINED: "abstained",
}


class AccuracyScorer:
    """1.0 for an answer that matches the reference or an accepted alternative, 0.0 otherwise.

    Applies to all items with a reference, except free text and ratings, which need a judge or their own metrics. The
    label is "right", "wrong", or a cause of `cause_of`, which also scores 0.0. Of an `unanswerable` item, in free text too,
    abstaining is right and everything else wrong.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import ChoiceFormat
    >>> item = Item(id="q1", group="v1", question="Which?", options=("liver", "spleen"),
    ...             answer=ChoiceFormat(), reference=Reference(answer="B"))
    >>> scorer = AccuracyScorer()
    >>> scorer.compute(item, Answer(item_id="q1", text="Answer: B", parsed="B")).value
    1.0
    >>> scorer.compute(item, Answer(item_id="q1", text="both", problem="expected one option")).label
    'unreadable'
    """

    name = "code"
    metrics = (ACCURACY,)
    summary = "Right or wrong, by the format of the answer"

    def applies(self, item: Item) -> bool:
        """Whether answers to this item can be scored by comparison with a reference."""
        return item.unanswerable or (item.reference is not None and item.answer.kind not in {"free_text", "ratings"})

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The score of `score`, for the `Scorer` protocol."""
        return [self.compute(item, answer)]

    def compute(self, item: Item, answer: Answer) -> Score:
        """Score an answer. Raises `ValueError` for an answer to another item, a failed answer, and an item to which the
        scorer does not apply."""
        if answer.item_id != item.id:
            raise ValueError(f"the answer is to item {answer.item_id!r}, not to {item.id!r}")
        cause = cause_of(answer)
        if not self.applies(item):
            raise ValueError(f"item {item.id!r}: its answers (format {item.answer.kind}) can't be scored by code")
        if item.unanswerable and answer.status is Status.ABSTAINED:
            label = "right"
        else:
            label = cause or ("right" if is_right(item, answer.parsed) else "wrong")
        value = 1.0 if label == "right" else 0.0
        return Score(item_id=item.id, metric=ACCURACY.name, value=value, scorer=self.name, label=label)


def cause_of(answer: Answer) -> str:
    """The reason why an answer has no value: "timed out", "refused", "error" (the system's own), "abstained", "missing"
    (from a submission) or "unreadable"; "" if it has a value. All of these count as wrong, except for an abstention on an
    `unanswerable` item.

    Raises `ValueError` for a failed answer (an infrastructure error), which is never scored.

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
    """Whether a parsed value matches the item's reference or an accepted alternative; no value does so where the reference
    is `unanswerable`.

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
    keys = () if item.unanswerable else (item.reference.answer, *item.reference.accepted)
    return any(item.answer.match(key, value) for key in keys)


def chance_of(item: Item) -> float | None:
    """The expected accuracy of a random guess at an item; None if the format has no chance level (see `Format.chance`),
    and for a choice without a reference. A guess is never an abstention: 0 for an `unanswerable` item.

    >>> from proctor.core import Item, Reference
    >>> from proctor.core.formats import BinaryFormat
    >>> chance_of(Item(id="q", group="g", question="?", answer=BinaryFormat(), reference=Reference(answer=True)))
    0.5
    """
    if item.unanswerable:
        return 0.0
    accepted = () if item.reference is None else (item.reference.answer, *item.reference.accepted)
    return item.answer.chance(accepted, item.options)


def chance_level(metric: Metric, items: Sequence[Item]) -> float | None:
    """The expected mean of a metric under random guessing, over the items that it scores: as declared by the metric, by
    `order_chance` for ordering metrics, or by `chance_of` for accuracy. None without items, or if an item has no chance
    level.

    >>> from proctor.core import ACCURACY
    >>> chance_level(ACCURACY, []) is None
    True
    """
    scored = [item for item in items if metric.scores(item.answer.kind, item.tags.get("language", ""))]
    if not scored or metric.chance is not None:
        return metric.chance if scored else None
    if metric.name != ACCURACY.name:
        frames = [len(one.labels) for one in (item.answer for item in scored) if one.kind == "ordering"]
        return order_chance(metric.name, frames) if len(frames) == len(scored) else None
    chances = [chance_of(item) for item in scored]
    known = [chance for chance in chances if chance is not None]
    return float(np.mean(known)) if len(known) == len(scored) else None


_Slot = tuple[AnswerFormat, int]  # format and number of options, which items with a common constant share


class Constants:
    """The best constant answers for some items.

    Items with equal formats (including classes and tolerance) and numbers of options share a constant. For orderings
    the constant is an order of positions ("third, first, second"), since labels differ between items.

    >>> from proctor.core.formats import BinaryFormat
    >>> items = [Item(id=f"q{number}", group="v1", question="Is a clip visible?", answer=BinaryFormat(),
    ...               reference=Reference(answer=right)) for number, right in enumerate((True, False, True))]
    >>> constants = Constants(items)
    >>> constants.knows(items[1]), constants.answer(items[1])
    (True, True)
    """

    def __init__(self, items: Sequence[Item]) -> None:
        known: dict[_Slot, list[Reference]] = {}
        for item in items:
            if item.reference is not None and not item.unanswerable:
                known.setdefault(_slot(item), []).append(_by_position(item, item.reference))
        self._constants = {slot: best_constant(slot[0], references) for slot, references in known.items()}

    def knows(self, item: Item) -> bool:
        """Whether there is a constant for this kind of item."""
        return _slot(item) in self._constants

    def answer(self, item: Item) -> JsonValue:
        """The constant, with the item's labels. Raises `KeyError` if there is none."""
        constant = self._constants[_slot(item)]
        if item.answer.kind == "ordering" and isinstance(constant, list):
            return [item.answer.labels[int(str(location))] for location in constant]
        return constant


def best_constant(form: AnswerFormat, references: Sequence[Reference]) -> JsonValue:
    """The best constant answer for these references (at least one), which have the format `form`.

    For timestamps, intervals, boxes, points and quantities it is the median (of lists: at each position, among the
    references of the most frequent length). For ratings it is the median of each dimension. Otherwise it is the
    reference answer that is right for most items, including accepted alternatives; ties are resolved to the smallest,
    so that the order of items does not matter.

    >>> from proctor.core.formats import CountFormat
    >>> best_constant(CountFormat(), [Reference(answer=number) for number in (2, 0, 2, 3)])
    2
    """
    if form.kind == "timestamps":
        return _median_moments([reference.answer for reference in references])
    if form.kind in {"intervals", "boxes"}:
        return median_positions([reference.answer for reference in references])
    if form.kind == "point":
        return _median_point([reference.answer for reference in references])
    if form.kind == "quantity":
        return _median([float(str(reference.answer)) for reference in references])
    if form.kind == "ratings":
        return {name: _median([_field(reference.answer, name) for reference in references]) for name in form.dimensions}
    return _most_matched(form, references)


def _most_matched(form: AnswerFormat, references: Sequence[Reference]) -> JsonValue:
    kinds = Counter(
        tuple(dict.fromkeys(json.dumps(key) for key in (reference.answer, *reference.accepted)))
        for reference in references
    )
    values: dict[str, JsonValue] = {key: json.loads(key) for keys in kinds for key in keys}
    hits: Counter[str] = Counter()
    for keys, times in kinds.items():
        if type(form).match is Format.match:  # matching is equality: counting is enough
            hits.update(dict.fromkeys(keys, times))
            continue
        for said, value in values.items():
            hits[said] += times * any(form.match(values[key], value) for key in keys)
    return values[min(values, key=lambda said: (-hits[said], _size(values[said]), said))]


def _slot(item: Item) -> _Slot:
    if item.answer.kind == "ordering":
        positions = tuple(str(position) for position in range(len(item.answer.labels)))
        return type(item.answer)(labels=positions), len(item.options)
    return item.answer, len(item.options)


def _by_position(item: Item, reference: Reference) -> Reference:
    """The reference with the labels of an ordering replaced by their positions in the item."""
    if item.answer.kind != "ordering":
        return reference
    position = {label: str(index) for index, label in enumerate(item.answer.labels)}

    def moved(order: JsonValue) -> JsonValue:
        return [position[str(label)] for label in order] if isinstance(order, list) else order

    accepted = tuple(moved(order) for order in reference.accepted)
    return Reference(answer=moved(reference.answer), accepted=accepted)


def _size(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def median_positions(answers: Sequence[JsonValue]) -> JsonValue:
    """The median of each end at each position, among the lists of intervals or boxes of the most frequent length.

    >>> median_positions([[[0, 10]], [[2, 14]], [[1, 11], [20, 30]]])
    [[1.0, 12.0]]
    """
    return _median_list([formats.extents(answer) for answer in answers])


def _median_moments(answers: Sequence[JsonValue]) -> JsonValue:
    return _median_list([[float(str(time)) for time in answer] for answer in answers if isinstance(answer, list)])


def _median_list(lists: Sequence[Sequence[object]]) -> JsonValue:
    """The median at each position, among the lists of the most frequent length (ties: the shortest)."""
    lengths = Counter(map(len, lists))
    usual = min(lengths, key=lambda length: (-lengths[length], length))
    found: JsonValue = np.median(np.array([one for one in lists if len(one) == usual], np.float64), axis=0).tolist()
    return found


def _median_point(answers: Sequence[JsonValue]) -> JsonValue:
    """The medians of x and y, for boxes those of the centres."""
    ends = [[float(str(end)) for end in answer] for answer in answers if isinstance(answer, list)]
    middles = np.array([[(end[0] + end[-2]) / 2, (end[1] + end[-1]) / 2] for end in ends])
    return [float(end) for end in np.median(middles, axis=0)]


def _field(answer: JsonValue, name: str) -> float:
    if not isinstance(answer, dict):
        raise ValueError(f"a reference of ratings is an object, not {answer!r}")
    return float(str(answer[name]))


def _median(numbers: Sequence[float]) -> float:
    return float(np.median(numbers))
