"""Answer formats for locations in a picture: boxes and points."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, alone
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.intervals import OverlapFormat, extents
from proctor.core.formats.overlap import MOST_NAMED
from proctor.core.formats.reply import Statement, json_fields, read_reply
from proctor.core.text import deferred

_LABEL = r"(?:\b(?P<{0}>x_?min|y_?min|x_?max|y_?max|[xy]\s?_?[0-9]?|left|top|right|bottom|width|height|w|h)\s?[:=]\s?)?"
_NUMBER = r"-?\d{1,7}(?:\.\d{1,9})?"
_SEP = r"\s{0,2}(?:px|pixels)?[\s)\]}>]{0,3}(?:[,;x×]|\bto\b|\band\b|\s|->?|>)[\s(\[{<]{0,3}"
_PLAIN_LABEL = _LABEL.replace("(?P<{0}>", "(?:")
_RUN = deferred(
    rf"(?<![\w.,:/%-]){_PLAIN_LABEL}{_NUMBER}(?:{_SEP}(?:and )?{_PLAIN_LABEL}{_NUMBER})*(?![\w%]|[.,:]\d|\s?%)",
    re.IGNORECASE,
)
_PART = deferred(rf"{_LABEL.format('label')}(?P<number>{_NUMBER})", re.IGNORECASE)
_CLOCK = deferred(r"\b\d{1,3}:\d{2}(?::\d{2})?(?:\.\d+)?")
_MARK = deferred(
    r"^\W{0,4}\(?\d{1,2}[.):]\s+|\b(?:frame|picture|image|box|step|figure|fig\.)\s?#?\d{1,6}\b:?",
    re.IGNORECASE | re.MULTILINE,
)
_PIXELS = deferred(r"(?<=\d)\s?(?:px|pixels?)\b", re.IGNORECASE)
_PAIR = rf"[^\d\n]{{0,25}}({_NUMBER})\s?,\s?({_NUMBER})\)?"
_NAMED_CORNERS = deferred(
    rf"\b(?:top|upper)[\s-]?left\b{_PAIR}[^\d]{{0,25}}\b(?:bottom|lower)[\s-]?right\b{_PAIR}", re.IGNORECASE
)
_OR = deferred(r"[\])}\s.,;]{0,4}(?:\bor\b|\bpossibly\b|或者?)", re.IGNORECASE)
_SAID = deferred(
    r"\W{0,12}(?:(?:the |a |it |its |is |at |about |around |box|bounding|point|coordinates?|centre|center|located"
    r"|position|roughly|approximately|answer|be|are|x|y|around)\W{0,3}){0,8}",
    re.IGNORECASE,
)
_BOX_KEYS = ("box", "boxes", "bbox", "bboxes", "bbox_2d", "box_2d", "bounding_box", "coordinates")
_POINT_KEYS = ("point", "points", "point_2d", "coordinates", "position", "location", "center", "centre")
_CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("left", "top", "right", "bottom"), ("x0", "y0", "x1", "y1"))  # fmt: skip
_SIZES = (("x", "y", "width", "height"), ("x", "y", "w", "h"), ("left", "top", "width", "height"))
_MOST_NUMBERS = 4 * (MOST_NAMED + 1)


class _LocatedBox(StrictFormat):
    """A format for locations in a picture of `width` × `height` units, with the origin at the top left. The default
    units are thousandths of the picture, which are independent of the displayed size."""

    width: float = Field(default=1000, gt=0, le=1e6)
    height: float = Field(default=1000, gt=0, le=1e6)

    @property
    def _scale(self) -> str:
        return f"x runs from 0 (left) to {self.width:g} (right), y from 0 (top) to {self.height:g} (bottom)"

    def _within(self, numbers: Sequence[float]) -> bool:
        limits = (self.width, self.height) * (len(numbers) // 2)
        return all(0 <= number <= limit for number, limit in zip(numbers, limits, strict=True))


class BoxesFormat(OverlapFormat, _LocatedBox):
    """One box, or `several`, as [left, top, right, bottom], in the given order (most certain first).

    Right if there are as many boxes as in the reference, and they can be matched one to one with an intersection over
    union of at least `iou` (0.5: Everingham et al. 2010, International Journal of Computer Vision 88:303). Boxes that
    exceed the picture or end before they begin are invalid. Strict: only the numbers, with boxes separated by
    semicolons.

    >>> BoxesFormat().parse("The stapler is at [120, 80, 460, 300].")
    [[120.0, 80.0, 460.0, 300.0]]
    >>> BoxesFormat().match([[120, 80, 460, 300]], [[100, 80, 460, 300]])
    True
    """

    kind: Literal["boxes"] = "boxes"

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        what = (
            "[left, top, right, bottom] of each box, the surest first, separated by semicolons"
            if self.several
            else "[left, top, right, bottom] of the box"
        )
        if self.strict:
            return f"Reply with {what} and nothing else; {self._scale}."
        return f'Start your reply with "Answer: " and {what}; {self._scale}.'

    def _expected(self) -> str:
        return "boxes as [left, top, right, bottom]" if self.several else "one box as [left, top, right, bottom]"

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        if self.strict:
            return self.from_cell(alone(text), options)
        for value in json_fields(text):
            groups = _json_groups(value, 4)
            if groups:
                return self._checked(groups, text)
        return read_reply(text, self._read, expected=self._expected(), keys=_BOX_KEYS)

    def _read(self, statement: Statement) -> JsonValue:
        if isinstance(statement.value, list | dict):
            groups = _json_groups(statement.value, 4)
            return self._checked(groups, statement.text) if groups else None
        groups = _stated(statement, 4, several=self.several)
        return self._checked(groups, statement.text) if groups else None

    def _checked(self, boxes: Sequence[tuple[float, ...]], text: str) -> JsonValue:
        distinct = list(dict.fromkeys(boxes))
        if len(distinct) > (MOST_NAMED if self.several else 1):
            raise ParseError(expected=f"at most {MOST_NAMED} boxes" if self.several else "one box", found=text)
        if not all(left < right and top < bottom for left, top, right, bottom in distinct):
            raise ParseError(expected="left before right and top above bottom", found=text)
        if not all(map(self._within, distinct)):
            raise ParseError(expected=f"a box inside the picture ({self.width:g} × {self.height:g})", found=text)
        return [[float(end) for end in box] for box in distinct]

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        groups = _numbers(value, 4)
        if not groups:
            raise ParseError(expected="a list of [left, top, right, bottom]", found=str(value))
        return self._checked(groups, str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse left, top, right and bottom, separated by commas; boxes are separated by semicolons or lines."""
        del options
        parts = [part for part in re.split(r"[;\n]", text) if part.strip()] if self.several else [text]
        group = [_cell_group(part, 4) for part in parts]
        if not group or None in group:
            raise ParseError(expected=self._expected(), found=text)
        return self._checked([one for one in group if one is not None], text)

    def write(self, value: JsonValue) -> str:
        """[left, top, right, bottom], several separated by semicolons."""
        return "; ".join(f"[{', '.join(_plain(end) for end in extent)}]" for extent in extents(value))

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """None: the chance level depends on the distribution of random boxes. The baseline `random` shows it."""
        del accepted, options
        return None


class PointFormat(_LocatedBox):
    """A point as [x, y]. Right within `tolerance` units of a reference point, or inside a reference box [left, top,
    right, bottom], including its edges (the pointing game: Zhang et al. 2018, International Journal of Computer Vision
    126:1084). Strict: only the two numbers.

    >>> PointFormat(tolerance=20).parse("It is at (512, 300).")
    [512.0, 300.0]
    >>> PointFormat(tolerance=20).match([500, 300], [512, 300]), PointFormat().match([0, 0, 400, 400], [512, 300])
    (True, False)
    """

    kind: Literal["point"] = "point"
    tolerance: float = Field(default=0.0, ge=0)

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            return f"Reply with [x, y] and nothing else; {self._scale}."
        return f'Start your reply with "Answer: [x, y]"; {self._scale}.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            return self._inside(_cell_group(alone(text), 2), text)
        for value in json_fields(text):
            groups = _json_groups(value, 2)
            if groups:
                return self._only(groups, text)
        return read_reply(text, self._read, expected="one point as [x, y]", keys=_POINT_KEYS)

    def _read(self, statement: Statement) -> JsonValue:
        if isinstance(statement.value, list | dict):
            groups = _json_groups(statement.value, 2)
        else:
            groups = _stated(statement, 2, several=False)
        return self._only(groups, statement.text) if groups else None

    def _only(self, points: Sequence[tuple[float, ...]], text: str) -> JsonValue:
        if len(set(points)) > 1:
            raise ParseError(expected="one point", found=text)
        return self._inside(points[0], text)

    def _inside(self, numbers: Sequence[float] | None, text: str) -> JsonValue:
        if numbers is None:
            raise ParseError(expected="one point as [x, y]", found=text)
        if not self._within(numbers):
            raise ParseError(expected=f"a point inside the picture ({self.width:g} × {self.height:g})", found=text)
        return [float(number) for number in numbers]

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        for size in (2, 4):
            groups = _numbers(value, size)
            if len(groups) == 1 and (size == 2 or (groups[0][0] < groups[0][2] and groups[0][1] < groups[0][3])):
                return self._inside(groups[0], str(value))
        raise ParseError(expected="[x, y], or the box [left, top, right, bottom] that it lies in", found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse x and y, or left, top, right and bottom of a reference box, separated by commas."""
        group = _cell_group(text, 2) or _cell_group(text, 4)
        return self.check(text if group is None else [*group], options)

    def write(self, value: JsonValue) -> str:
        """[x, y]."""
        numbers = value if isinstance(value, list) else []
        return f"[{', '.join(_plain(float(str(number))) for number in numbers)}]"

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        far = self.distance(reference, prediction)
        limit = self.tolerance if isinstance(reference, list) and len(reference) == 2 else 0.0
        return far is not None and far <= limit + 1e-9

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The Euclidean distance to the reference point, or to the nearest edge of the reference box (0 inside)."""
        if not isinstance(reference, list) or not isinstance(prediction, list) or len(prediction) != 2:
            return None
        key, point = [float(str(one)) for one in reference], [float(str(one)) for one in prediction]
        low, high = key[:2], key[-2:]
        apart = [max(a - one, 0.0, one - b) for a, one, b in zip(low, point, high, strict=True)]
        return math.hypot(*apart)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """The share of the picture's area in the reference boxes and the tolerance circles around reference points."""
        del options
        keys = tuple(tuple(float(str(end)) for end in one) for one in accepted if isinstance(one, list))
        return (
            _covered_area(keys, self.tolerance, self.width, self.height) / (self.width * self.height) if keys else None
        )


_STEPS = 400  # columns between two edges


@lru_cache(maxsize=100_000)
def _covered_area(keys: tuple[tuple[float, ...], ...], tolerance: float, width: float, height: float) -> float:
    """The area, within the picture, of the boxes and of the tolerance circles around points. Cached, since reports need
    it for every facet."""
    columns = sorted({0.0, width, *(min(max(end, 0.0), width) for key in keys for end in _sides(key, tolerance))})
    area = 0.0
    for start, end in pairwise(columns):
        here = [key for key in keys if _sides(key, tolerance)[0] < end and _sides(key, tolerance)[1] > start]
        if here:
            step = (end - start) / _STEPS
            area += step * sum(_chord(here, tolerance, height, start + (k + 0.5) * step) for k in range(_STEPS))
    return area


def _sides(key: Sequence[float], tolerance: float) -> tuple[float, float]:
    return (key[0], key[2]) if len(key) == 4 else (key[0] - tolerance, key[0] + tolerance)


def _chord(keys: Sequence[Sequence[float]], tolerance: float, height: float, x: float) -> float:
    """The length of the vertical line at `x` that is right."""
    parts = []
    for key in keys:
        start, end = _sides(key, tolerance)
        if start <= x <= end:
            half = 0.0 if len(key) == 4 else math.sqrt(max(0.0, tolerance**2 - (x - key[0]) ** 2))
            parts.append((max(0.0, key[1] - half), min(height, key[-1] + half)))
    length, last = 0.0, 0.0
    for low, high in sorted(parts):
        length += max(0.0, high - max(low, last))
        last = max(last, high)
    return length


def _plain(number: float) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".")


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e7


def _numbers(value: JsonValue, size: int) -> list[tuple[float, ...]]:
    """The groups of `size` numbers in a list or a list of lists; empty for anything else."""
    given = value if isinstance(value, list) else []
    groups = given if given and isinstance(given[0], list) else [given]
    whole = [
        group for group in groups if isinstance(group, list) and len(group) == size and all(map(_is_number, group))
    ]
    return [tuple(float(str(end)) for end in group) for group in whole] if len(whole) == len(groups) else []


def _json_groups(value: JsonValue, size: int) -> list[tuple[float, ...]]:
    """The boxes or points in a JSON value: lists of numbers, objects with named numbers, and lists of these."""
    if isinstance(value, dict):
        return _of_object(value, size)
    if isinstance(value, list):
        corners = _numbers(value, 2) if size == 4 else []
        if len(corners) == 2 and isinstance(value[0], list):
            return [(*corners[0], *corners[1])]
        groups = _numbers(value, size)
        if groups or not all(isinstance(one, dict) for one in value):
            return groups
        parts = [_of_object(one, size) for one in value[: MOST_NAMED + 1] if isinstance(one, dict)]
        return [one for part in parts for one in part] if all(parts) else []
    return []


def _of_object(value: dict[str, JsonValue], size: int) -> list[tuple[float, ...]]:
    named = {str(key).strip().lower().replace("_", "").replace(" ", ""): one for key, one in value.items()}
    inner = next((named[key] for key in (_plain_key(one) for one in (*_BOX_KEYS, *_POINT_KEYS)) if key in named), None)
    if isinstance(inner, list) and (groups := _json_groups(inner, size)):
        return groups
    return _of_names({key: float(str(one)) for key, one in named.items() if _is_number(one)}, size)


def _plain_key(key: str) -> str:
    return key.replace("_", "")


def _of_names(named: dict[str, float], size: int) -> list[tuple[float, ...]]:
    if size == 2:
        return [(named["x"], named["y"])] if {"x", "y"} <= named.keys() and not {"width", "w"} & named.keys() else []
    for names in _CORNERS:
        if all(name in named for name in names):
            return [tuple(named[name] for name in names)]
    for left, top, width, height in _SIZES:
        if all(name in named for name in (left, top, width, height)):
            return [(named[left], named[top], named[left] + named[width], named[top] + named[height])]
    return []


def _cell_group(text: str, size: int) -> tuple[float, ...] | None:
    """The numbers of a cell that has exactly `size` numbers."""
    plain = text.strip().removeprefix("[").removesuffix("]").removeprefix("(").removesuffix(")").strip()
    hit = _RUN.fullmatch(plain)
    groups = _group(hit[0], size) if hit else []
    return groups[0] if len(groups) == 1 else None


def _group(run: str, size: int) -> list[tuple[float, ...]]:
    """The groups in a sequence of numbers, which may be named ("x1: 10, y1: 20 …")."""
    parts = list(_PART.finditer(run))
    numbers = [float(part["number"]) for part in parts]
    labels = [re.sub(r"[\s_]", "", (part["label"] or "").lower()) for part in parts]
    if any(labels) and len(set(labels)) == len(parts):
        return _of_names(dict(zip(labels, numbers, strict=True)), size)
    if not numbers or len(numbers) % size or len(numbers) > _MOST_NUMBERS:
        return []
    return [tuple(numbers[at : at + size]) for at in range(0, len(numbers), size)]


def _stated(statement: Statement, size: int, *, several: bool) -> list[tuple[float, ...]]:
    """The groups of numbers in the first sentence of a statement, or else in all of it. Raises `ParseError` for
    alternatives."""
    start = statement.text.split("\n\n", 1)[0] if several else first_sentence(statement.text)
    for part in (start, statement.text) if statement.sure else (statement.text,):
        plain = _PIXELS.sub("", part)
        plain = _NAMED_CORNERS.sub(r"[\g<1>, \g<2>, \g<3>, \g<4>]", plain) if size == 4 else plain
        for pattern in (_CLOCK, _MARK):
            plain = pattern.sub(lambda hit: " \x00" * (len(hit[0]) // 2) + " " * (len(hit[0]) % 2), plain)
        hits = [hit for hit in _RUN.finditer(plain) if _group(hit[0], size) and _located(hit, plain)]
        if any(_OR.match(plain, hit.end()) for hit in hits):
            raise ParseError(expected="no alternatives", found=statement.text)
        if hits:
            return [one for hit in hits for one in _group(hit[0], size)]
    return []


def _located(hit: re.Match[str], text: str) -> bool:
    """Whether a sequence of numbers is a location: in brackets, with names, or at the start of the text."""
    bracketed = text[: hit.start()].rstrip()[-1:] in {"[", "(", "{", "<", ">"} and "(" not in hit[0]
    named = "=" in hit[0] or ":" in hit[0] or re.match(r"[a-z]", hit[0], re.IGNORECASE) is not None
    corners = ")" in hit[0] and "(" in hit[0]
    return bracketed or named or corners or _SAID.fullmatch(text, 0, hit.start()) is not None
