"""Times as models write them: clocks, and hours, minutes and seconds in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from proctor.core.errors import ParseError

__all__ = ["Moment", "is_range", "moments"]

_CLOCK = re.compile(
    r"(?<![\d:.])(?:(?P<h>\d{1,3}):)?(?P<m>\d{1,3}):(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?(?!\d|:\d)"
)
_UNITS = re.compile(
    r"(?<![A-Za-z0-9_.:])(?:(?P<h>\d{1,3})\s?(?:hours?|hrs?|h|小时|时)[\s,]{0,2}(?:and )?)?"
    r"(?:(?P<m>\d{1,4})\s?(?:minutes?|mins?|min\.|m|分钟?|′|')[\s,]{0,2}(?:and )?)?"
    r"(?:(?P<s>\d{1,6}(?:\.\d{1,9})?)\s?-?(?:seconds?|secs?|sec\.|s|秒钟?|″|\"))?(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_AT = re.compile(
    r"\b(?:second|t ?=|timestamp|time)\s?[:=]?\s?(?P<s>\d{1,6}(?:\.\d{1,9})?)\b(?!\s?(?:%|:|m))",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"\s{0,2}(?:-{1,2}|~|\bto\b|\bthrough\b|\buntil\b|\btill\b|\.\.\.?|到|至)\s{0,2}", re.IGNORECASE
)
_BETWEEN = re.compile(r"\b(?:between|from)\s{1,2}(?:about |approximately |around )?\Z", re.IGNORECASE)
_LASTS = re.compile(
    r"\b(?:lasts?|lasted|takes?|took|for|within|every|durations?(?: of| is|:)?|of|over|in)\s(?:about |around |the |a )?\Z",
    re.IGNORECASE,
)
_LONG = re.compile(
    r"\s?-?(?:videos?|clips?|long|before|later|earlier|ago|from|until|of|apart|duration)\b", re.IGNORECASE
)
_RANGE_BEFORE = re.compile(r"(?<![:\d])\d{1,6}\s?(?:-|~|\bto\b|\bor\b|\band\b|到|至)\s?\Z", re.IGNORECASE)
_MOST_S = 10**7


@dataclass(frozen=True)
class Moment:
    """A time in seconds, and where it stands in a text."""

    seconds: float
    start: int
    end: int


def moments(text: str) -> list[Moment]:
    """The times of a text: clocks (hh:mm:ss, mm:ss), or, where there are none, hours, minutes and seconds in
    words. Raises `ParseError` for a clock that does not exist (00:01:75)."""
    clocks = [_clock(hit) for hit in _CLOCK.finditer(text)]
    if clocks:
        return clocks
    units = [hit for hit in _UNITS.finditer(text) if any(hit.groups()) and not _is_span(text, hit)]
    hits = units or list(_AT.finditer(text))
    found = [Moment(_seconds(hit), hit.start(), hit.end()) for hit in hits]
    return [one for one in found if one.seconds < _MOST_S]


def is_range(text: str, found: list[Moment]) -> bool:
    """Whether two of the times are the ends of a range ("00:10 to 00:20", "between 1:05 and 1:10")."""
    if _BETWEEN.search(text, max(0, found[0].start - 24), found[0].start):
        return len(found) > 1
    if any(_RANGE_BEFORE.search(text, max(0, one.start - 24), one.start) for one in found):
        return True
    pairs = pairwise(found)
    return any(_RANGE.fullmatch(text, one.end, other.start) for one, other in pairs)


def _is_span(text: str, hit: re.Match[str]) -> bool:
    """Whether seconds say how long, not when ("lasts 5 s", "the 90-second video", "5 s before the end")."""
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
