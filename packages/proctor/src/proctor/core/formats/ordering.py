"""The answer format for orderings of labels: which orders are valid, their chance level, and how far two lie apart
(Kendall's tau)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import Format, listed, plain_words
from proctor.core.formats.orders import ORDER_KEYS, order_reader
from proctor.core.formats.reply import json_fields, read_reply


class OrderingFormat(Format):
    """A permutation of `labels`, first to last.

    Parsed is the first sequence of labels after the cue: labels separated only by signs (">", ",", "->"), list numbers
    and words such as "then", or the labels at the start of parts with words ("B (a rescuer kneels) > D - pads"), of a
    list or a table, or sentences from "first" to "last". Without a cue it is the only sequence with all labels, or the
    only sequence. Sequences may miss, repeat or invent labels: they are wrong answers, which the ordering metrics
    grade. Text without a sequence of two labels is invalid, as are several sequences, and labels that belong to none.

    >>> OrderingFormat(labels=("A", "B", "C")).parse("The order is C > A > B.")
    ['C', 'A', 'B']
    """

    kind: Literal["ordering"] = "ordering"
    labels: tuple[str, ...] = Field(min_length=2)

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        # There is no example ordering: models repeat it, and an alphabetical one would be a hint.
        return (
            f"Give all {len(self.labels)} labels ({', '.join(self.labels)}) from first to last, "
            'joined by ">": "Answer: first > … > last".'
        )

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        reader = order_reader(self.labels)
        for field in json_fields(text):
            if isinstance(field, list | dict) and (found := reader.of_json(field)):
                return [*found]
        expected = f"the labels {', '.join(self.labels)} in an order"
        return read_reply(text, reader.read, expected=expected, keys=ORDER_KEYS)

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, list) and sorted(map(str, value)) == sorted(self.labels):
            return [str(label) for label in value]
        raise ParseError(expected=f"a permutation of {', '.join(self.labels)}", found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse all labels from first to last, separated by ">", "->", arrows, commas or semicolons."""
        known = {plain_words(label): label for label in self.labels}
        parts = listed(re.sub(r"[-=]?>|[→⇒➔➜]", ";", text))
        return self.check([known.get(plain_words(part), part) for part in parts], options)

    def write(self, value: JsonValue) -> str:
        """The labels from first to last, joined by ">"."""
        return " > ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """The number of right orderings divided by n! for n labels."""
        del options
        right = {tuple(map(str, order)) for order in accepted if isinstance(order, list)}
        return max(1, len(right)) / math.factorial(len(self.labels))

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The normalised Kendall tau distance: the share of label pairs that are not in the order of the reference, 0
        to 1. Pairs with a missing label count as not in order; repeated labels count at their first position."""
        if not isinstance(reference, list) or not isinstance(prediction, list):
            return None
        position: dict[JsonValue, int] = {}
        for index, label in enumerate(prediction):
            position.setdefault(str(label), index)
        pairs = list(combinations(map(str, reference), 2))
        wrong = sum(not (a in position and b in position and position[a] < position[b]) for a, b in pairs)
        return wrong / len(pairs) if pairs else 0.0
