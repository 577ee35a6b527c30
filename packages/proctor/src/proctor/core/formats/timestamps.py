"""The answer format for one or several times in a video, and parsing of times in clock format and in words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare, cell_quantity, listed
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.reply import Statement, json_fields, read_reply
from proctor.core.text import clock_text, deferred

_CLOCK = deferred(r"(?<![\d:.])(?:(?P<h>\d{1,3}):)?(?P<m>\d{1,3}):(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?(?!\d|:\d)")
_UNITS = deferred(
    r"(?<![A-Za-z0-9_.:])(?:(?P<h>\d{1,3})\s?(?:hours?|hrs?|h|stunden?|heures?|horas?|小时|時間|时)[\s,]{0,2}(?:(?:and|und|et|y|e) )?)?"
    r"(?:(?P<m>\d{1,4}(?:\.\d{1,3})?)\s?(?:minutes?|minuten|minutos?|minuti|mins?\.?|m|分钟?|′|')[\s,]{0,2}(?:(?:and|und|et|y|e) )?)?"
    r"(?:(?P<s>\d{1,6}(?:\.\d{1,9})?)\s?-?(?:seconds?|secs?\.?|sek\.?|sekunden?|secondes?|segundos?|secondi|s|秒钟?|″|\"))?(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_NEGATIVE = deferred(r"[\s(\[:=]{0,4}-\d")
_AT = deferred(
    r"\b(?:second|t ?=|timestamp|time)\s?[:=]?\s?(?P<s>\d{1,6}(?:\.\d{1,9})?)\b(?!\s?(?:%|:|m))", re.IGNORECASE
)
_RANGE = deferred(r"\s{0,2}(?:-{1,2}|~|\bto\b|\bthrough\b|\buntil\b|\btill\b|\.\.\.?|到|至)\s{0,2}", re.IGNORECASE)
_BETWEEN = deferred(r"\b(?:between|from)\s{1,2}(?:about |approximately |around )?\Z", re.IGNORECASE)
_LASTS = deferred(
    r"\b(?:lasts?|lasted|takes?|took|for|within|every|durations?(?: of| is|:)?|of|over|in)\s(?:about |around |the |a "
    r")?\Z",
    re.IGNORECASE,
)
_LONG = deferred(r"\s?-?(?:videos?|clips?|long|before|later|earlier|ago|from|until|of|apart|duration)\b", re.IGNORECASE)
_RANGE_BEFORE = deferred(r"(?<![:\d])\d{1,6}\s?(?:-|~|\bto\b|\bor\b|\band\b|到|至)\s?\Z", re.IGNORECASE)
_MOST_S = 10**7
_CELL_TIME = "a time as hh:mm:ss, mm:ss or seconds"


def cell_seconds(text: str) -> float:
    """Parse a time in seconds: a clock time, seconds, or hours, minutes and seconds in words. Raises `ParseError` for
    anything else.

    >>> cell_seconds("1:05"), cell_seconds("65,5 s"), cell_seconds("1 min 5 s")
    (65.0, 65.5, 65.0)
    """
    plain = unicodedata.normalize("NFKC", text).strip()
    whole = _CLOCK.fullmatch(plain) or _UNITS.fullmatch(plain)
    if whole is not None and any(whole.groups()):
        value = moments(plain)[0].seconds if moments(plain) else math.inf
    else:
        value = cell_quantity(re.sub(r"\s?(?:s|sec|seconds?)\.?$", "", plain, flags=re.IGNORECASE), _CELL_TIME)
    if not 0 <= value < _MOST_S:
        raise ParseError(expected=_CELL_TIME, found=text)
    return value


@dataclass(frozen=True)
class Moment:
    """A time in seconds, and its position in a text."""

    seconds: float
    start: int
    end: int


def moments(text: str) -> list[Moment]:
    """The times in a text: clock times (hh:mm:ss, mm:ss), or, without any, hours, minutes and seconds in words. Raises
    `ParseError` for an invalid clock time (00:01:75)."""
    if _NEGATIVE.match(text):
        raise ParseError(expected="a time of 0 or more", found=text)
    clocks = [_clock(hit) for hit in _CLOCK.finditer(text)]
    if clocks:
        return clocks
    units = [hit for hit in _UNITS.finditer(text) if any(hit.groups()) and not _is_span(text, hit)]
    hits = units or list(_AT.finditer(text))
    times = [Moment(_seconds(hit), hit.start(), hit.end()) for hit in hits]
    return [moment for moment in times if moment.seconds < _MOST_S]


def is_range(text: str, times: list[Moment]) -> bool:
    """Whether the times include a range ("00:10 to 00:20", "between 1:05 and 1:10")."""
    if _BETWEEN.search(text, max(0, times[0].start - 24), times[0].start):
        return len(times) > 1
    if any(_RANGE_BEFORE.search(text, max(0, moment.start - 24), moment.start) for moment in times):
        return True
    pairs = pairwise(times)
    return any(_RANGE.fullmatch(text, one.end, other.start) for one, other in pairs)


def _is_span(text: str, hit: re.Match[str]) -> bool:
    """Whether seconds are a duration ("lasts 5 s", "the 90-second video", "5 s before the end")."""
    before = _LASTS.search(text, max(0, hit.start() - 24), hit.start())
    return bool(before or _LONG.match(text, hit.end()) or re.search(r"\d-[a-z]", hit[0], re.IGNORECASE))


def _clock(hit: re.Match[str]) -> Moment:
    minutes, seconds = int(hit["m"]), int(hit["s"])
    if seconds > 59 or (hit["h"] and minutes > 59):
        raise ParseError(expected="a time as hh:mm:ss", found=hit[0])
    value = int(hit["h"] or 0) * 3600 + minutes * 60 + float(f"{seconds}.{hit['f'] or 0}")
    return Moment(value, hit.start(), hit.end())


def _seconds(hit: re.Match[str]) -> float:
    named = hit.groupdict()
    return 3600 * float(named.get("h") or 0) + 60 * float(named.get("m") or 0) + float(named["s"] or 0)


_BARE = deferred(r"(\d{2}):(\d{2}):(\d{2})")  # digits of any script, as in the toolkit
_NOT = deferred(
    r"\b(?:not|isn't|n't|neither|nor|by|before|after|earlier than|later than|until|at least|at most)\s(?:at |around "
    r"|about )?\Z",
    re.IGNORECASE,
)
_OR = deferred(
    r"\s{0,2}(?:,\s?)?(?:\bor\b|/|\bpossibly\b|或者?)\s(?:at |around |about |perhaps |maybe )?", re.IGNORECASE
)
_LISTED = deferred(r"[ \t]{0,2}(?:[,;&]|\n)?[ \t]{0,2}(?:and |& )?(?:again )?(?:at |then )?", re.IGNORECASE)
_HEAD = deferred(
    r"[\s\"'(\[{]{0,4}(?:(?:at|about|around|approximately|roughly|it is|it's|t|the time is|time|timestamp|probably"
    r"|likely|exactly|is|was|约|大约|在)"
    r"\b[\s:=~]{0,3}){0,4}[~\s]{0,2}",
    re.IGNORECASE,
)
_LINE = deferred(r"\s{0,8}(?:\(?\d{1,2}[.)]\s{1,4})?\W{0,2}\d{1,3}(?::\d|\s?(?:s|m|h|秒|分))")
_ALONE = deferred(r"[. \t]{0,4}\n\s{0,4}\n")
_ASIDE = deferred(r"\([^()]{0,200}\)")
_KEYS = ("timestamp", "timestamps", "time", "times", "moment", "moments", "seconds")


class TimestampsFormat(StrictFormat):
    """Times as hh:mm:ss, mm:ss, or hours, minutes and seconds ("1 min 5 s"), stored as seconds in ascending order.

    Right if there are as many times as in the reference, and each is within `tolerance` seconds of its counterpart in
    order. Strict: only times as hh:mm:ss, separated by commas; empty parts are ignored, and duplicates count.

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
        for field in json_fields(text):
            if (seconds := _of_object(field)) is not None:
                return self._checked([seconds], text)
        return read_reply(text, self._read, expected=self._expected(), keys=_KEYS)

    def _expected(self) -> str:
        return "times as hh:mm:ss" if self.several else "one time as hh:mm:ss"

    def _read(self, statement: Statement) -> JsonValue:
        value = statement.value
        if _is_time(value):
            return [float(str(value))]
        if isinstance(value, list) and all(map(_is_number, value)):
            return self._checked([float(str(one)) for one in value], statement.text)
        text = statement.text
        plain = statement.sure and not isinstance(value, list | dict)
        for part in (_listing(text) if self.several else first_sentence(text), text) if plain else (text,):
            if times := moments(part):
                return self._told(part, times, text, plain=plain)
        return None

    def _told(self, part: str, times: list[Moment], text: str, *, plain: bool) -> JsonValue:
        """The times in a part of a text; of a single one, what stands at its head. Raises `ParseError` if they may not be
        meant as the answer."""
        if is_range(part, times) or self._unclear(part, times):
            raise ParseError(expected=self._expected(), found=text)
        heads = plain or _ALONE.match(part, times[0].end)
        if heads and not self.several and len(times) > 1 and _HEAD.fullmatch(part, 0, times[0].start):
            return [times[0].seconds]
        seconds = sorted({moment.seconds for moment in moments(_ASIDE.sub(" ", part)) or times})
        if len(seconds) > 1 and not self.several:
            raise ParseError(expected=self._expected(), found=text)
        return [float(second) for second in seconds]

    def _checked(self, seconds: list[float], text: str) -> JsonValue:
        if (
            not seconds
            or not all(0 <= time < _MOST_S for time in seconds)
            or (len(set(seconds)) > 1 and not self.several)
        ):
            raise ParseError(expected=self._expected(), found=text)
        return [float(time) for time in sorted(set(seconds))]

    def _unclear(self, text: str, times: list[Moment]) -> bool:
        """Whether a time is denied, a bound ("after 1:05") or one of several alternatives ("1:05 or 1:10", or "1:05,
        1:10" for a single time)."""
        denied = any(_NOT.search(text, max(0, moment.start - 24), moment.start) for moment in times)
        pairs = [(text[one.end : other.start]) for one, other in pairwise(times)]
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

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse times as hh:mm:ss, mm:ss or seconds ("1:05", "65", "65.5 s", "1 min 5 s"), separated by commas or
        semicolons."""
        parts = listed(text) if self.several else [text]
        return self.check([cell_seconds(part) for part in parts], options)

    def write(self, value: JsonValue) -> str:
        """The times with milliseconds (strict: without fractions), separated by commas."""
        if not isinstance(value, list):
            return str(value)
        clocks = [clock_text(float(str(moment)), millis=True) for moment in value]
        return ", ".join(clock[:8] if self.strict else clock for clock in clocks)

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        error = self.distance(reference, prediction)
        return error is not None and error <= self.tolerance

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The largest absolute error in seconds, paired in order; None if the numbers of times differ."""
        if not isinstance(reference, list) or not isinstance(prediction, list):
            return None
        if len(reference) != len(prediction):
            return None
        return max(abs(float(str(a)) - float(str(b))) for a, b in zip(reference, prediction, strict=True))


def _of_object(value: JsonValue) -> float | None:
    """The time in an object of minutes and seconds."""
    if not isinstance(value, dict) or not {"minutes", "seconds"} <= value.keys():
        return None
    parts = [value.get(name, 0) for name in ("hours", "minutes", "seconds")]
    if not all(_is_number(part) and float(str(part)) >= 0 for part in parts):
        return None
    hours, minutes, seconds = (float(str(part)) for part in parts)
    return 3600 * hours + 60 * minutes + seconds


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: JsonValue) -> bool:
    return _is_number(value) and 0 <= float(str(value)) < _MOST_S


def _listing(text: str) -> str:
    """The first sentence, and the following lines that begin with a time."""
    lines = text.strip().split("\n")
    more = [line for line in lines[1:] if line.strip()]
    kept = list(takewhile(_LINE.match, more))
    return "\n".join([first_sentence(lines[0]), *kept])
