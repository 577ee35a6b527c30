"""All labels in an order."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import Format, final_answer

__all__ = ["OrderingFormat"]


class OrderingFormat(Format):
    """A permutation of `labels`, first to last.

    What is read may miss, repeat or invent labels: a wrong order is an answer, and the metrics on
    orderings say how wrong it is. Only a text without two labels states no order.

    >>> OrderingFormat(labels=("A", "B", "C")).parse("The order is C > A > B.")
    ['C', 'A', 'B']
    """

    kind: Literal["ordering"] = "ordering"
    labels: tuple[str, ...] = Field(min_length=2)

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        # No order stands here as an example: models repeat it, and in alphabetical order it is a hint.
        return (
            f"Give all {len(self.labels)} labels ({', '.join(self.labels)}) from first to last, "
            'joined by ">": "Answer: first > … > last".'
        )

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        said = final_answer(text)
        listed = _json_list(said)
        known = {label.casefold(): label for label in self.labels}
        if listed is None:
            pattern = "|".join(re.escape(label) for label in sorted(self.labels, key=len, reverse=True))
            hits = re.findall(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", said)
            listed = hits or re.findall(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", said, re.IGNORECASE)
        if len(listed) < 2:
            raise ParseError(expected=f"the labels {', '.join(self.labels)} in an order", found=text)
        return [known.get(label.casefold(), label) for label in listed]

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, list) and sorted(map(str, value)) == sorted(self.labels):
            return value
        raise ParseError(expected=f"a permutation of {', '.join(self.labels)}", found=str(value))

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """Share of label pairs not in the reference's order (Kendall's tau distance, 0 to 1);
        a pair with a missing label counts as not in order, a repeated label at its first place."""
        if not isinstance(reference, list) or not isinstance(prediction, list):
            return None
        place: dict[JsonValue, int] = {}
        for index, label in enumerate(prediction):
            place.setdefault(str(label), index)
        pairs = list(combinations(map(str, reference), 2))
        wrong = sum(not (a in place and b in place and place[a] < place[b]) for a, b in pairs)
        return wrong / len(pairs) if pairs else 0.0


def _json_list(text: str) -> list[str] | None:
    start, end = text.find("["), text.rfind("]")
    if start < 0 or end < start:
        return None
    try:
        value = json.loads(text[start : end + 1])
    except ValueError:
        return None
    return [str(entry) for entry in value] if isinstance(value, list) else None
