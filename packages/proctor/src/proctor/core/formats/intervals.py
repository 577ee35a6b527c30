"""The answer format for one or several time intervals of a video."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, alone, listed
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.overlap import MOST_NAMED, covered, matching
from proctor.core.formats.reply import Statement, json_fields, read_reply
from proctor.core.formats.timestamps import cell_seconds
from proctor.core.text import clock_text, deferred

_MOST_S = 10**7
_ABOUT = (
    r"(?:(?:about|around|approximately|approx\.?|roughly|circa|ca\.|the|at|exactly|second|frame time|time(?:stamp)?"
    r"|timecode|mark|t|第|约|大约|ungefähr|etwa|environ)"
    r"(?![a-zA-Z])[\s:=]{0,3}|[~\s]){0,5}"
)
_UNIT = r"(?:seconds?|secs?\.?|s(?![a-zA-Z])|秒钟?|minutes?|mins?\.?|m(?![a-zA-Z])|分钟?|″|\")"
_TIME = (
    r"(?:\d{1,3}:\d{1,3}(?::\d{2})?(?:[.,]\d{1,9})?(?:\s?(?:min(?:utes)?|s|h)\b)?"
    rf"|(?:\d{{1,3}}\s?(?:hours?|hrs?|h|小时)[\s,]{{0,2}}(?:and )?)?(?:\d{{1,4}}\s?(?:minutes?|mins?\.?|m(?![a-zA-Z])"
    rf"|分钟?|'|′)[\s,]{{0,2}}(?:and )?)"
    rf"(?:\d{{1,6}}(?:\.\d{{1,9}})?\s?(?:seconds?|secs?\.?|s(?![a-zA-Z])|秒钟?|″|\"))?"
    rf"|\d{{1,9}}(?:\.\d{{1,9}})?(?:\s?-?{_UNIT})?)"
)
_FREE = r"(?<![\dA-Za-z/-])(?<!\d[:.,])"
_ENDS_FREE = r"(?![\d:]|[.,]\d|\s?(?:%|percent|cm|mm|ml|frames?|fps|bpm)|[A-Za-z_/])"
_MARK = r"(?:\s?\((?:[^()\n]{0,40})\))?(?: mark)?"
_SIGN = (
    r"\s{0,3}(?:-{1,3}>?|~|={1,2}>|>|\.{2,3}|\bto\b|\buntil\b|\btill\b|\bthrough\b|\bthru\b|\bup to\b|\bbis\b|\bhasta\b"
    r"|\bà\b|\bal\b|\balle\b|\baté\b|到|至|直到|から)\s{0,3}"
)
_JOINED = deferred(
    rf"{_FREE}(?P<start>{_TIME}){_MARK}(?:{_SIGN}|(?P<comma>\s?,\s?))(?:and |,? ?ending |it ends "
    rf")?{_ABOUT}(?P<end>{_TIME}){_ENDS_FREE}",
    re.IGNORECASE,
)
_BETWEEN = deferred(
    rf"\bbetween\s{{1,2}}{_ABOUT}(?P<start>{_TIME}){_MARK}\s(?:and|&)\s{_ABOUT}(?P<end>{_TIME}){_ENDS_FREE}",
    re.IGNORECASE,
)
_NAMED = deferred(
    r"\b(?:start|begin|onset|from|commenc)[a-z]{0,6}(?:[ _]?times?)?\W{0,4}(?:(?:is|was|at|around|about|approximately"
    r"|time|of|the|=|:)\W{0,3}){0,4}"
    rf"(?P<start>{_TIME}){_MARK}(?![\d:])[^\d\n]{{0,40}}?\n?[^\d\n]{{0,20}}?\b(?:end|stop|finish|offset|complet|conclud"
    rf"|last(?:s|ing)? (?:until|till|to))[a-z]{{0,6}}(?:[ _]?times?)?"
    rf"\W{{0,4}}(?:(?:is|was|at|around|about|approximately|time|of|the|until|="
    rf"|:)\W{{0,3}}){{0,4}}(?P<end>{_TIME}){_ENDS_FREE}",
    re.IGNORECASE,
)
_NOT = deferred(
    r"\b(?:not|isn't|nor|rather than|instead of|except|excluding)\s(?:at |from |between |during |in )?[\[(]?\Z",
    re.IGNORECASE,
)
_OR = deferred(r"[\])\s.,;]{0,4}(?:\bor\b|\bpossibly\b|\bor else\b|或者?|\boder\b)", re.IGNORECASE)
_FROM = deferred(r"\b(?:from|between|during|over)\s{1,2}(?:about |around |the |second )?\Z", re.IGNORECASE)
_LINE = deferred(
    r"\W{0,6}(?:\(?\d{1,2}[.):]\s{1,3})?\W{0,4}(?:(?:interval|segment|window|event|occurrence|from"
    r"|between)\b[\s#]{0,2}(?:\d{1,2}\s?[:.-])?\s{0,2})?\W{0,3}\d"
)
_KEYS = ("interval", "intervals", "segment", "segments", "window", "windows", "span", "spans", "time", "times", "timestamp", "timestamps", "range", "ranges", "events")  # fmt: skip
_STARTS = ("start", "start_time", "begin", "from", "t_start", "start_s", "onset", "start_sec", "start_seconds")
_ENDS = ("end", "end_time", "stop", "to", "t_end", "end_s", "offset", "end_sec", "end_seconds")
_EXPECTED = "a start and an end, such as 00:01:05-00:01:20"


class OverlapFormat(StrictFormat):
    """A format for extents: one interval or box, or `several`. Right if there are as many as in the reference, and they
    can be matched one to one with an intersection over union of at least `iou`."""

    iou: float = Field(default=0.5, gt=0, le=1)
    several: bool = False

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        keys, given = extents(reference), extents(prediction)
        return len(keys) == len(given) == matching(keys, given, self.iou)

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """1 − the intersection over union of the covered times or areas."""
        return 1 - covered(extents(reference), extents(prediction))


class IntervalsFormat(OverlapFormat):
    """One interval, or `several`, as [start, end] in seconds, in the given order (most certain first).

    Right if there are as many intervals as in the reference, and they can be matched one to one with an intersection
    over union of at least `iou` (0.5: Anne Hendricks et al. 2017, ICCV, 5803; Gao et al. 2017, ICCV, 5267). Times are
    hh:mm:ss, mm:ss, seconds, or hours, minutes and seconds in words. Single times, and intervals that do not end after
    their start, are invalid. Strict: only hh:mm:ss-hh:mm:ss, with intervals separated by commas.

    >>> IntervalsFormat().parse("It runs from 1:05 to 1:20.")
    [[65.0, 80.0]]
    >>> IntervalsFormat(iou=0.5).match([[65.0, 80.0]], [[60.0, 78.0]])
    True
    """

    kind: Literal["intervals"] = "intervals"

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            named = (
                "intervals as hh:mm:ss-hh:mm:ss, separated by commas,"
                if self.several
                else "interval as hh:mm:ss-hh:mm:ss"
            )
            return f"Reply with the {named} and nothing else."
        times = (
            "start and end of each time that it happens, the surest first, separated by commas"
            if self.several
            else "start and end"
        )
        return f'Start your reply with "Answer: " and the {times}, as hh:mm:ss-hh:mm:ss.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            return self._checked([_cell_interval(part) for part in listed(alone(text))], text)
        for value in json_fields(text):
            intervals = _of_json(value)
            if intervals:
                return self._checked(intervals, text)
        return read_reply(text, self._read, expected=_EXPECTED, keys=_KEYS)

    def _read(self, statement: Statement) -> JsonValue:
        if isinstance(statement.value, list):
            intervals = _of_json(statement.value)
            return self._checked(intervals, statement.text) if intervals else None
        start = _listing(statement.text) if self.several else first_sentence(statement.text)
        for part in (start, statement.text) if statement.sure else (statement.text,):
            intervals = _intervals(part)
            if intervals:
                return self._checked(intervals, statement.text)
        return None

    def _checked(self, intervals: Sequence[tuple[float, float]], text: str) -> JsonValue:
        distinct = list(dict.fromkeys(intervals))
        if len(distinct) > (MOST_NAMED if self.several else 1):
            raise ParseError(
                expected="one interval" if not self.several else f"at most {MOST_NAMED} intervals", found=text
            )
        if not distinct:
            raise ParseError(expected=_EXPECTED, found=text)
        if not all(0 <= start < end < _MOST_S for start, end in distinct):
            raise ParseError(expected="an end after the start", found=text)
        return [[float(start), float(end)] for start, end in distinct]

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        given = value if isinstance(value, list) else []
        given = [given] if given and not isinstance(given[0], list) else given
        pairs = [tuple(one) for one in given if isinstance(one, list) and len(one) == 2 and all(map(_is_time, one))]
        if not pairs or len(pairs) < len(given):
            raise ParseError(expected="a list of [start, end] in seconds", found=str(value))
        return self._checked([(float(str(a)), float(str(b))) for a, b in pairs], str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse start and end, separated by a hyphen or "to", as hh:mm:ss, mm:ss or seconds ("1:05-1:20", "65 to 80
        s"); intervals are separated by commas or semicolons."""
        del options
        parts = listed(text) if self.several else [text]
        return self._checked([_cell_interval(part) for part in parts], text)

    def write(self, value: JsonValue) -> str:
        """hh:mm:ss.mmm-hh:mm:ss.mmm (strict: without fractions), separated by commas."""
        pairs = extents(value)
        clocks = [[clock_text(time, millis=True) for time in pair] for pair in pairs]
        return ", ".join("-".join(clock[:8] if self.strict else clock for clock in pair) for pair in clocks)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """None: the chance level depends on the lengths of video and reference. The baseline `random` shows it."""
        del accepted, options
        return None


def extents(value: JsonValue) -> list[tuple[float, ...]]:
    """A canonical list of intervals or boxes as tuples of numbers.

    >>> extents([[65.0, 80.0]])
    [(65.0, 80.0)]
    """
    return (
        [tuple(float(str(end)) for end in one) for one in value if isinstance(one, list)]
        if isinstance(value, list)
        else []
    )


def _is_time(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_S


def _cell_interval(text: str) -> tuple[float, float]:
    hit = _JOINED.fullmatch(text.strip(" []()").translate({0x2013: "-", 0x2014: "-", 0x2212: "-", 0x2192: ">"}))
    if hit is None:
        raise ParseError(expected=_EXPECTED, found=text)
    return _pair(hit)


def _intervals(text: str) -> list[tuple[float, float]]:
    """The intervals in a text, in order, except denied ones. Raises `ParseError` for alternatives ("1:05-1:10 or
    2:05-2:10") and for invalid clock times."""
    by_start: dict[int, re.Match[str]] = {}
    taken = bytearray(len(text))
    for pattern in (_BETWEEN, _NAMED, _JOINED):
        for hit in pattern.finditer(text):
            position = slice(*hit.span())
            if not any(taken[position]):
                by_start[hit.start()] = hit
                taken[position] = b"\1" * len(hit[0])
    hits = [by_start[start] for start in sorted(by_start)]
    kept = [hit for hit in hits if _states(hit, text) and not _NOT.search(text, max(0, hit.start() - 24), hit.start())]
    pairs = itertools.pairwise(kept)
    if any(_OR.match(text, one.end(), min(other.start(), one.end() + 12)) for one, other in pairs):
        raise ParseError(expected="no alternatives", found=text)
    return [_pair(hit) for hit in kept]


def _states(hit: re.Match[str], text: str) -> bool:
    """Whether two times are an interval. Times separated by a comma must be in brackets; bare numbers must be in
    brackets, after "from", or alone."""
    named = hit.groupdict()
    if "comma" not in named:  # only the pattern for two joined times has one
        return True
    opens, closes = text[: hit.start()].rstrip()[-1:], text[hit.end() :].lstrip()[:1]
    bracketed = opens in {"[", "("} and closes in {"]", ")"}
    if named["comma"]:
        return bracketed
    bare_numbers = not re.search(r"[^\d.]", hit["start"]) and not re.search(r"[^\d.]", hit["end"])
    alone = not text[: hit.start()].strip(" \n[(~") and not re.match(r"\s?[a-zA-Z]", text[hit.end() :])
    return not bare_numbers or bracketed or alone or bool(_FROM.search(text, max(0, hit.start() - 30), hit.start()))


def _pair(hit: re.Match[str]) -> tuple[float, float]:
    """Start and end in seconds; in "1-2 min" both are minutes."""
    start, end = hit["start"], hit["end"]
    unit = re.search(r"\s?(?:minutes?|mins?\.?|分钟?)$", end, re.IGNORECASE)
    if unit and not re.search(r"[^\d.]", start) and not re.search(r"[^\d.]", end[: unit.start()]):
        return 60 * float(start), 60 * float(end[: unit.start()])
    return _seconds(start), _seconds(end)


def _seconds(text: str) -> float:
    plain = re.sub(r"(?<=\d)\s?-(?=[a-z])", " ", text, flags=re.IGNORECASE).strip(" ,")
    plain = re.sub(r"(:\d{2}(?:\.\d+)?)\s?(?:min(?:utes)?|s|h)$", r"\1", plain, flags=re.IGNORECASE)
    plain = (
        re.sub(r"\s?(?:秒钟?|secs\.?|sec\.|″|\")$", " s", plain, flags=re.IGNORECASE) if "分" not in plain else plain
    )
    return cell_seconds(plain)


def _of_json(value: JsonValue, depth: int = 0) -> list[tuple[float, float]]:
    """The intervals in a JSON value: objects with a start and an end, pairs of times, and lists of these."""
    if isinstance(value, dict):
        named = {str(key).strip().lower().replace(" ", "_").replace("-", "_"): one for key, one in value.items()}
        start, end = (next((named[key] for key in keys if key in named), None) for keys in (_STARTS, _ENDS))
        return _of_two(start, end)
    if not isinstance(value, list) or depth > 1:
        return []
    if len(value) == 2 and (pair := _of_two(*value)):
        return pair
    parts = [
        _of_json(one, depth + 1) if isinstance(one, dict | list) else _said(one) for one in value[: MOST_NAMED + 1]
    ]
    return [one for part in parts for one in part] if all(parts) else []


def _of_two(start: JsonValue, end: JsonValue) -> list[tuple[float, float]]:
    """The interval between two times; none if one of them is none."""
    begins, ends = _time(start), _time(end)
    return [] if begins is None or ends is None else [(begins, ends)]


def _said(value: JsonValue) -> list[tuple[float, float]]:
    return _intervals(value) if isinstance(value, str) else []


def _time(value: JsonValue) -> float | None:
    if _is_time(value):
        return float(str(value))
    if isinstance(value, str) and len(value) < 40:
        try:
            return _seconds(value)
        except ParseError:
            return None
    return None


def _listing(text: str) -> str:
    """The first line, and the following lines that begin with an interval."""
    lines = [line for line in text.strip().split("\n") if line.strip()]
    kept = lines[:1]
    for line in lines[1:]:
        if not _LINE.match(line):
            break
        kept.append(line)
    return "\n".join(kept)
