"""One or several moments of a video."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare
from proctor.core.formats.clocks import Moment, is_range, moments
from proctor.core.formats.reply import Statement, first_sentence, read_reply

__all__ = ["TimestampsFormat"]

_BARE = re.compile(r"(\d{2}):(\d{2}):(\d{2})")  # digits of any script, as in the toolkit
_NOT = re.compile(
    r"\b(?:not|isn't|n't|neither|nor|by|before|after|earlier than|later than|until|at least|at most)\s(?:at |around |about )?\Z",
    re.IGNORECASE,
)
_OR = re.compile(
    r"\s{0,2}(?:,\s?)?(?:\bor\b|/|\bpossibly\b|或者?)\s(?:at |around |about |perhaps |maybe )?", re.IGNORECASE
)
_LISTED = re.compile(r"[ \t]{0,2}(?:[,;&]|\n)?[ \t]{0,2}(?:and |& )?(?:again )?(?:at |then )?", re.IGNORECASE)
_HEAD = re.compile(
    r"[\s\"'(\[{]{0,4}(?:(?:at|about|around|approximately|roughly|it is|it's|t|the time is|time|timestamp|probably|likely|exactly|is|was|约|大约|在)"
    r"\b[\s:=~]{0,3}){0,4}[~\s]{0,2}",
    re.IGNORECASE,
)
_LINE = re.compile(r"\s{0,8}(?:\(?\d{1,2}[.)]\s{1,4})?\W{0,2}\d{1,3}(?::\d|\s?(?:s|m|h|秒|分))")
_ALONE = re.compile(r"[. \t]{0,4}\n\s{0,4}\n")
_ASIDE = re.compile(r"\([^()]{0,200}\)")
_KEYS = ("timestamp", "timestamps", "time", "times", "moment", "moments", "seconds")


class TimestampsFormat(StrictFormat):
    """Times as hh:mm:ss or mm:ss, or in hours, minutes and seconds ("1 min 5 s"), kept as seconds in ascending order.

    Right when there are as many as in the reference and, both in order, each lies within
    `tolerance` seconds of its counterpart. Strict: times as hh:mm:ss alone, separated by commas, empty
    parts not counted; a time that is named twice counts twice.

    >>> TimestampsFormat(tolerance=2, several=True).parse("First at 00:01:05, then at 00:00:30.")
    [30.0, 65.0]
    """

    kind: Literal["timestamps"] = "timestamps"
    tolerance: float = Field(default=1.0, ge=0)
    several: bool = False

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            named = "times as hh:mm:ss, separated by commas," if self.several else "time as hh:mm:ss"
            return f"Reply with the {named} and nothing else."
        times = "times, separated by commas," if self.several else "time"
        return f'Start your reply with "Answer: " and the {times} as hh:mm:ss.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            return self._listed(text)
        return read_reply(text, self._read, expected=self._expected(), keys=_KEYS)

    def _expected(self) -> str:
        return "times as hh:mm:ss" if self.several else "one time as hh:mm:ss"

    def _read(self, statement: Statement) -> JsonValue:
        value = statement.value
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**7:
            return [float(value)]
        if isinstance(value, list) and all(isinstance(one, int | float) for one in value):
            return self._checked([float(str(one)) for one in value], statement.text)
        text = statement.text
        plain = statement.sure and not isinstance(value, list | dict)
        for part in (_listing(text) if self.several else first_sentence(text), text) if plain else (text,):
            found = moments(part)
            if not found:
                continue
            if is_range(part, found) or self._unclear(part, found):
                raise ParseError(expected=self._expected(), found=text)
            heads = plain or _ALONE.match(part, found[0].end)
            if heads and not self.several and len(found) > 1 and _HEAD.fullmatch(part, 0, found[0].start):
                return [found[0].seconds]
            seconds = sorted({one.seconds for one in moments(_ASIDE.sub(" ", part)) or found})
            if len(seconds) > 1 and not self.several:
                raise ParseError(expected=self._expected(), found=text)
            return [float(one) for one in seconds]
        return None

    def _checked(self, seconds: list[float], text: str) -> JsonValue:
        if (
            not seconds
            or not all(0 <= one < 10**7 for one in seconds)
            or (len(set(seconds)) > 1 and not self.several)
        ):
            raise ParseError(expected=self._expected(), found=text)
        return [float(one) for one in sorted(set(seconds))]

    def _unclear(self, text: str, found: list[Moment]) -> bool:
        """Whether a time is denied or only a bound ("after 1:05"), or another one may be meant ("1:05 or 1:10",
        "1:05, 1:10" where one is asked)."""
        denied = any(_NOT.search(text, max(0, one.start - 24), one.start) for one in found)
        pairs = [(text[one.end : other.start]) for one, other in pairwise(found)]
        listed = not self.several and any(_LISTED.fullmatch(between) for between in pairs)
        return denied or listed or any(_OR.fullmatch(between) for between in pairs)

    def _listed(self, text: str) -> JsonValue:
        parts = [part.strip() for part in bare(text).split(",") if part.strip()]
        found = [tuple(map(int, one.groups())) for part in parts if (one := _BARE.fullmatch(part))]
        clear = len(found) == len(parts) and all(minute < 60 and second < 60 for _, minute, second in found)
        if not found or not clear or (len(found) > 1 and not self.several):
            times = "times as hh:mm:ss, separated by commas," if self.several else "one time as hh:mm:ss"
            raise ParseError(expected=f"{times} and nothing else", found=text)
        return [float(one) for one in sorted(3600 * h + 60 * m + s for h, m, s in found)]

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, list) and value and all(_is_time(moment) for moment in value):
            return [float(str(moment)) for moment in sorted(value, key=lambda moment: float(str(moment)))]
        raise ParseError(expected="a list of times in seconds", found=str(value))

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        error = self.distance(reference, prediction)
        return error is not None and error <= self.tolerance

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The largest absolute error in seconds of the two in order; None where their numbers differ."""
        if not isinstance(reference, list) or not isinstance(prediction, list):
            return None
        if len(reference) != len(prediction):
            return None
        return max(abs(float(str(a)) - float(str(b))) for a, b in zip(reference, prediction, strict=True))


def _is_time(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _listing(text: str) -> str:
    """The first sentence, and the lines after it that begin with a time, too."""
    lines = text.strip().split("\n")
    more = [line for line in lines[1:] if line.strip()]
    kept = list(takewhile(_LINE.match, more))
    return "\n".join([first_sentence(lines[0]), *kept])
