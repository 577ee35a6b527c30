"""The constant answer that serves best: what the distribution of the answers alone is worth."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from proctor.core import Item, Reference
from proctor.core.formats import AnswerFormat, Format, OrderingFormat, RatingsFormat, TimestampsFormat

_Slot = tuple[AnswerFormat, int]  # items that share a slot can share a constant: format, number of options


class Constants:
    """The best constant answers of some items.

    Items share a constant where they share the whole format (classes, tolerance) and the number of
    options. Labels to be ordered are names of the item's own, as options are: there the constant is an
    order of places, such as "third, first, second".

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
            if item.reference is not None:
                known.setdefault(_slot(item), []).append(_by_place(item, item.reference))
        self._constants = {slot: best_constant(slot[0], references) for slot, references in known.items()}

    def knows(self, item: Item) -> bool:
        """Whether there is a constant for such an item."""
        return _slot(item) in self._constants

    def answer(self, item: Item) -> JsonValue:
        """The constant, in the item's own labels. Raises `KeyError` where there is none."""
        constant = self._constants[_slot(item)]
        if isinstance(item.answer, OrderingFormat) and isinstance(constant, list):
            return [item.answer.labels[int(str(place))] for place in constant]
        return constant


def best_constant(form: AnswerFormat, references: Sequence[Reference]) -> JsonValue:
    """The constant for these references, at least one, all of the format `form`.

    Timestamps: the median (where several may be named: of each place, among the references with the
    most frequent number of moments). Ratings: the median of each dimension. All others: that
    reference answer which is right for the most items, accepted alternatives included; of equals the
    smallest, so that the order of the items does not matter.

    >>> from proctor.core.formats import CountFormat
    >>> best_constant(CountFormat(), [Reference(answer=number) for number in (2, 0, 2, 3)])
    2
    """
    if isinstance(form, TimestampsFormat):
        return _median_moments([reference.answer for reference in references])
    if isinstance(form, RatingsFormat):
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
        if type(form).match is Format.match:  # equality: no need to try every value on every reference
            hits.update(dict.fromkeys(keys, times))
            continue
        for said, value in values.items():
            hits[said] += times * any(form.match(values[key], value) for key in keys)
    return values[min(values, key=lambda said: (-hits[said], _size(values[said]), said))]


def _slot(item: Item) -> _Slot:
    if isinstance(item.answer, OrderingFormat):
        places = tuple(str(place) for place in range(len(item.answer.labels)))
        return OrderingFormat(labels=places), len(item.options)
    return item.answer, len(item.options)


def _by_place(item: Item, reference: Reference) -> Reference:
    """The reference with labels to be ordered replaced by their places in the item."""
    if not isinstance(item.answer, OrderingFormat):
        return reference
    place = {label: str(index) for index, label in enumerate(item.answer.labels)}

    def moved(order: JsonValue) -> JsonValue:
        return [place[str(label)] for label in order] if isinstance(order, list) else order

    accepted = tuple(moved(order) for order in reference.accepted)
    return Reference(answer=moved(reference.answer), accepted=accepted)


def _size(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _median_moments(answers: Sequence[JsonValue]) -> JsonValue:
    lists = [[float(str(moment)) for moment in answer] for answer in answers if isinstance(answer, list)]
    lengths = Counter(len(moments) for moments in lists)
    usual = min(lengths, key=lambda length: (-lengths[length], length))
    table = np.array([moments for moments in lists if len(moments) == usual])
    return [float(moment) for moment in np.median(table, axis=0)]


def _field(answer: JsonValue, name: str) -> float:
    if not isinstance(answer, dict):
        raise ValueError(f"a reference of ratings is an object, not {answer!r}")
    return float(str(answer[name]))


def _median(numbers: Sequence[float]) -> float:
    return float(np.median(numbers))
