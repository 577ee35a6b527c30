"""The answer format for orderings of labels."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations, groupby
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import Format, listed, plain_words
from proctor.core.formats.reply import Statement, json_values, read_reply
from proctor.core.text import deferred

_KEYS = (
    "order",
    "ordering",
    "sequence",
    "predicted_order",
    "correct_order",
    "chronological_order",
    "ranking",
    "labels",
    "frames",
)
_THING = (
    r"(?:(?:the )?(?:图片?|pictures?|images?|frames?|key ?frames?|photos?|steps?|labels?|options?|scenes?"
    r"|panels?)\s?:?\s?)?"
)
_PREFIX = deferred(
    r"^(?:pictures?|images?|frames?|key ?frames?|photos?|steps?|labels?|options?|scenes?|panels?)\b[\s:]*",
    re.IGNORECASE,
)
_WORD = (
    r"(?:and|then|next|after that|afterwards|followed by|finally|lastly|last|first|second|third|fourth|fifth|sixth"
    r"|before|precedes|leads to|to"
    r"|comes?|is|goes|1st|2nd|3rd|[4-9]th|with|at (?:the )?end)"
)
_BETWEEN = deferred(
    rf"[\s\"'\])}}.*]{{0,4}}(?:\([^()\n]{{0,60}}\))?\s?(?:-{{1,3}}>|={{1,2}}>|>{{1,2}}|[,;|/&+-]|\.\s"
    rf"|[,;]?\s?\b{_WORD}\b[,:]?|[;,]?\n)?"
    rf"(?:[\s,:]{{0,3}}(?:\b{_WORD}\b|然后|接着|最后|再|之后)[,:]?){{0,3}}[\s\"'\[({{*]{{0,6}}(?:\(?\d{{1,2}}(?:st|nd"
    rf"|rd|th)?[.):]\s{{0,3}})?{_THING}[\s\"'\[({{*]{{0,4}}",
    re.IGNORECASE,
)
_BACKWARDS = deferred(
    r"\b(?:last to first|latest to earliest|from (?:the )?last|backwards|in reverse(?:d)? order)\b", re.IGNORECASE
)
_NOT_APPLICABLE = deferred(r"\bn/a\b", re.IGNORECASE)
_FILE = deferred(r"\.(?:jpe?g|png|webp)$", re.IGNORECASE)
_LONGEST = 120  # characters between two labels of a sequence


class OrderingFormat(Format):
    """A permutation of `labels`, first to last.

    Parsed is the first sequence of labels after the cue: labels separated only by signs (">", ",", "->"), list numbers
    and words such as "then". Without a cue it is the only sequence with all labels, or the only sequence. Sequences may
    miss, repeat or invent labels: they are wrong answers, which the ordering metrics grade. Text without a sequence of
    two labels is invalid.

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
        expected = f"the labels {', '.join(self.labels)} in an order"
        return read_reply(text, self._read, expected=expected, keys=_KEYS)

    def _read(self, statement: Statement) -> JsonValue:
        known = {label.casefold(): label for label in self.labels}
        listed = statement.value if isinstance(statement.value, list) else None
        if listed is None and statement.value is None:
            lists = (value for value in json_values(statement.text) if isinstance(value, list))
            listed = next((value for value in lists if len(value) > 1), None)
        if listed is not None and all(isinstance(entry, str | int) for entry in listed):
            names = [_FILE.sub("", _PREFIX.sub("", str(entry).strip())).strip(" .()\"'") for entry in listed]
            if any(name.casefold() in known for name in names):
                return [known.get(name.casefold(), name) for name in names]
        if _BACKWARDS.search(statement.text):
            raise ParseError(expected="an order from first to last", found=statement.text)
        runs = self._runs(statement.text)
        if " before " in statement.text:  # "B before A, A before C" is a chain
            runs = [[one for one, _ in groupby(run)] for run in runs]
        if not runs:
            return None
        if statement.sure:
            return list(runs[0])
        whole = [run for run in runs if sorted(run) == sorted(self.labels)] or runs
        if len({tuple(run) for run in whole}) > 1:
            raise ParseError(expected="one order", found=statement.text)
        return list(whole[0])

    def _runs(self, text: str) -> list[list[str]]:
        """The sequences of two or more labels that are separated only by signs and words of order."""
        known = {label.casefold(): label for label in self.labels}
        short = all(len(label) == 1 for label in self.labels)
        names = "|".join(re.escape(label) for label in sorted(self.labels, key=len, reverse=True))
        label = rf"(?:{names}|[A-Z])" if short and all(one.isalpha() for one in self.labels) else f"(?:{names})"
        joined = rf"[{''.join(map(re.escape, self.labels))}]{{{len(self.labels)}}}" if short else "(?!)"
        token = re.compile(
            rf"(?<![A-Za-z0-9])(?:(?P<joined>{joined})|(?P<label>{label}))(?:\.(?:jpe?g|png|webp))?(?!'?[A-Za-z0-9])",
            re.IGNORECASE,
        )
        runs: list[list[str]] = self._numbered(text, label)
        last, kind, missing = 0, "", set(self.labels)
        for hit in token.finditer(_NOT_APPLICABLE.sub("   ", text)):
            if hit["joined"]:
                if self._is_joined(hit["joined"], known):
                    runs.append([known[char.casefold()] for char in hit["joined"]])
                continue
            name = known.get(hit["label"].casefold(), hit["label"].upper())
            between = text[last : hit.start()] if last else ""
            joint = _kind(between) if last and len(between) <= _LONGEST else ""
            if joint and _follows(kind, joint, whole=not missing) and (joint != " " or hit["label"] == name):
                runs[-1].append(name)
                kind = joint
            else:
                runs.append([name])
                kind, missing = "", set(self.labels)
            missing.discard(name)
            last = hit.end()
        return [run for run in runs if sum(one in self.labels for one in run) > 1]

    def _numbered(self, text: str, label: str) -> list[list[str]]:
        """The labels at the start of the lines of a numbered list."""
        line = re.compile(
            rf"^\W{{0,4}}(?:step\s)?(\d{{1,2}})\s?[.):]\s{{0,3}}\W{{0,3}}{_THING}\W{{0,3}}({label})(?![A-Za-z0-9])",
            re.IGNORECASE | re.MULTILINE,
        )
        known = {label.casefold(): label for label in self.labels}
        hits = [(int(hit[1]), known.get(hit[2].casefold(), hit[2].upper())) for hit in line.finditer(text)]
        return (
            [[name for _, name in hits]] if len(hits) > 1 and [n for n, _ in hits] == [*range(1, len(hits) + 1)] else []
        )

    @staticmethod
    def _is_joined(text: str, known: dict[str, str]) -> bool:
        return len({char.casefold() for char in text} & known.keys()) == len(text) and text.isupper()

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
        place: dict[JsonValue, int] = {}
        for index, label in enumerate(prediction):
            place.setdefault(str(label), index)
        pairs = list(combinations(map(str, reference), 2))
        wrong = sum(not (a in place and b in place and place[a] < place[b]) for a, b in pairs)
        return wrong / len(pairs) if pairs else 0.0


def _kind(between: str) -> str:
    """The kind of separator between two labels: a sign, a list number ("1"), a word ("w"), a line ("\\n"), a space ("
    "), or invalid ("")."""
    if not _BETWEEN.fullmatch(between):
        return ""
    plain = re.sub(r"\([^()]*\)", "", between)
    if re.search(r"\d", plain):
        return "1"
    sign = re.search(r"[>,;|/&+-]", plain)
    if sign:
        return ">" if ">" in plain else sign[0]
    if re.search(r"[^\W\d_]", plain):
        return "w"
    if "." in plain or "(" in plain.strip():
        return ""
    return "\n" if "\n" in plain else " "


def _follows(before: str, kind: str, *, whole: bool) -> bool:
    """Whether a sequence continues with another kind of separator; not if it is already `whole`."""
    if not before or before == kind:
        return True
    return not whole and not {before, kind} & {" ", "\n"}
