"""Text overlays in videos: areas where the same strokes stay while the pictures change.

It detects strokes and reads nothing: it says where a person should look. Nothing is learned, and no weights are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proctor.core import Region, need_extra
from proctor.media.decode import SampledPicture, sampled

_MAX_SIDE = 960
_WINDOW = 6  # pictures that are compared with one another
_STEP = 3
_CONTRAST = 22  # levels of grey between a stroke and what is beside it
_SUPPORT = 0.6  # of a stroke's outline must stand still
_KERNELS = (7, 15, 31)  # pixels; a stroke narrower than this stands out
_MIN_HEIGHT, _MAX_HEIGHT = 6, 0.22  # of a letter: pixels, share of the picture's height
_MAX_LETTERS = 1500
_SAME_POSITION = 0.3
_SAME_TIME = 1e-6
_MARGIN = 0.4  # of a line's height

Grey = NDArray[np.uint8]
Rows = NDArray[np.float64]
Line = tuple[float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class TextOverlay:
    """Letter-like strokes that stay at one position from `start` to `end` (seconds of the video's clock); `score`, from 0
    to 1, is how much they look like a line of text."""

    region: Region
    start: float
    end: float
    score: float


def find_text(path: Path, *, fps: float = 2.0, least: float = 0.5) -> list[TextOverlay]:
    """The text-like overlays of a video with at least this score, by start, then from top to bottom.

    Pictures are compared in windows of six (3 s at 2 a second): a line shorter than about two thirds of a window may be
    missed. Raises `InputError` as `sampled`.
    """
    return text_in(sampled(path, fps, _MAX_SIDE), least=least)


def text_in(pictures: Iterable[SampledPicture], *, least: float = 0.5) -> list[TextOverlay]:
    """As `find_text`, for pictures in order, all of one size."""
    need_extra("vision", "finding text in videos", "cv2")
    found: list[TextOverlay] = []
    for window in _windows(pictures):
        height, width = window[0].pixels.shape[:2]
        start, end = window[0].time, window[-1].time
        for left, top, right, bottom, score in _lines([sampled_picture.pixels for sampled_picture in window]):
            if score >= least:
                region = _region(left / width, top / height, right / width, bottom / height)
                found.append(TextOverlay(region, start, end, score))
    return sorted(
        _joined(found), key=lambda text_overlay: (text_overlay.start, text_overlay.region.y, text_overlay.region.x)
    )


def _windows(pictures: Iterable[SampledPicture]) -> Iterator[list[SampledPicture]]:
    """Windows of six pictures, three apart; a shorter rest, or a shorter video, is a window as well."""
    held: list[SampledPicture] = []
    fresh = 0
    for picture in pictures:
        held.append(picture)
        fresh += 1
        if len(held) == _WINDOW:
            yield held
            held, fresh = held[_STEP:], 0
    if fresh:
        yield held


def _lines(window: Sequence[NDArray[np.uint8]]) -> list[Line]:
    """Left, top, right, bottom in pixels and score of each line of letters that stays in all pictures but one."""
    import cv2

    greys = [cv2.cvtColor(one, cv2.COLOR_RGB2GRAY) for one in window]
    box = np.ones((3, 3), np.uint8)
    edges = np.stack([cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, box) for grey in greys])
    allowed = 1 if len(window) >= 4 else 0
    still = np.partition(edges, allowed, axis=0)[allowed]
    middle = np.median(np.stack(greys), axis=0).astype(np.uint8)
    found = []
    for kernel in _KERNELS:
        for kind in (cv2.MORPH_TOPHAT, cv2.MORPH_BLACKHAT):
            shape = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (kernel, kernel))
            letters = _letters(np.asarray(cv2.morphologyEx(middle, kind, shape), np.uint8), still, middle)
            found += [_damped(line, still) for line in _in_lines(letters)]
    return _without_doubles(found)


def _letters(hat: Grey, still: Grey, middle: Grey) -> Rows:
    """For each letter-like stroke: left, top, right, bottom, stroke width, grey, share of its outline that stays."""
    import cv2

    strokes = (hat >= _CONTRAST).astype(np.uint8)
    _, marks, stats, _ = cv2.connectedComponentsWithStats(strokes, connectivity=8)
    labels = marks.astype(np.intp)
    inner = cv2.erode(strokes, np.ones((3, 3), np.uint8))
    outline = (strokes > inner) & (labels > 0)
    depth = cv2.distanceTransform(strokes, cv2.DIST_L2, 3)
    count = len(stats)
    where = labels[outline]
    around = np.bincount(where, minlength=count)
    held = np.bincount(where, weights=still[outline] >= _CONTRAST, minlength=count)
    inside = labels > 0
    grey = np.bincount(labels[inside], weights=middle[inside], minlength=count)
    deepest = np.zeros(count)
    np.maximum.at(deepest, labels[inside], depth[inside])
    left, top, width, height, area = (stats[:, k].astype(np.float64) for k in range(5))
    stroke = 2 * deepest - 1
    fill = area / (width * height)
    fits = (height >= _MIN_HEIGHT) & (height <= _MAX_HEIGHT * hat.shape[0]) & (width <= 5 * height) & (width >= 2)
    fits &= (fill > 0.12) & (fill < 0.97) & (stroke <= 0.5 * height) & (held >= _SUPPORT * np.maximum(around, 1))
    fits[0] = False
    rows = np.column_stack(
        [left, top, left + width, top + height, stroke, grey / np.maximum(area, 1), held / np.maximum(around, 1)]
    )
    kept: Rows = rows[fits]
    return np.asarray(kept[np.argsort(-kept[:, 6], kind="stable")][:_MAX_LETTERS])


def _in_lines(letters: Rows) -> list[Line]:
    """Joins three or more letters side by side, of similar height, stroke and grey, to a line."""
    from scipy.sparse.csgraph import connected_components

    if len(letters) < 3:
        return []
    left, top, right, bottom, stroke, grey, _ = letters.T
    height = bottom - top
    taller, lower = np.maximum.outer(height, height), np.minimum.outer(height, height)
    shared = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    gap = np.maximum.outer(left, left) - np.minimum.outer(right, right)
    wide, thin = np.maximum.outer(stroke, stroke), np.minimum.outer(stroke, stroke)
    near = (shared >= 0.5 * lower) & (taller <= 2.2 * lower) & (gap <= 0.9 * taller) & (gap >= -0.4 * lower)
    near &= (wide <= 2.2 * thin + 1) & (np.abs(np.subtract.outer(grey, grey)) <= 45)
    count, line = connected_components(near, directed=False)
    return [one for number in range(count) if (one := _scored(letters[line == number])) is not None]


def _scored(letters: Rows) -> Line | None:
    """The line's box and its score, by the number and stillness of its letters, the evenness of strokes and baseline."""
    if len(letters) < 3:
        return None
    left, top, right, bottom, stroke, grey, held = letters.T
    height = np.median(bottom - top)
    if right.max() - left.min() < 1.5 * height:
        return None
    number = 1 - np.exp(-(len(letters) - 1) / 2.5)
    even = np.exp(-np.std(stroke) / (np.mean(stroke) + 0.5))
    slope = np.polyfit(left, bottom, 1) if np.ptp(left) > 0 else np.zeros(2)
    feet = np.exp(-2 * np.median(np.abs(bottom - np.polyval(slope, left))) / height)
    alike = np.exp(-np.std(grey) / 60)
    score = float((number * even * feet * alike) ** 0.5 * np.mean(held))
    return float(left.min()), float(top.min()), float(right.max()), float(bottom.max()), score


def _damped(line: Line, still: Grey) -> Line:
    """Lowers the score of a line whose surroundings have as many static edges as itself (texture, not text)."""
    left, top, right, bottom, score = line
    wide = max(3, round(_MARGIN * (bottom - top)))
    x, y, right_, bottom_ = round(left), round(top), round(right), round(bottom)
    edges = still >= _CONTRAST
    inner = edges[y:bottom_, x:right_]
    outer = edges[max(0, y - wide) : bottom_ + wide, max(0, x - wide) : right_ + wide]
    around = (outer.sum() - inner.sum()) / max(1, outer.size - inner.size)
    return left, top, right, bottom, score * float(1 - min(1.0, around / max(inner.mean(), 1e-9)) ** 2)


def _without_doubles(lines: Sequence[Line]) -> list[Line]:
    """The lines by descending score, without those that mostly overlap a better one."""
    kept: list[Line] = []
    for one in sorted(lines, key=lambda line: (-line[4], line)):
        if all(_overlap(one, other) < _SAME_POSITION for other in kept):
            kept.append(one)
    return kept


def _overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """The common area as a share of the smaller box."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return max(0.0, across) * max(0.0, down) / max(min(areas), 1e-9)


def _joined(found: Sequence[TextOverlay]) -> list[TextOverlay]:
    """Merges overlays at the same position in windows that overlap or touch."""
    there: list[TextOverlay] = []
    done: list[TextOverlay] = []
    for text_overlay in sorted(found, key=lambda each: each.start):
        done += [other for other in there if other.end < text_overlay.start - _SAME_TIME]
        there = [other for other in there if other.end >= text_overlay.start - _SAME_TIME]
        same = [
            other
            for other in there
            if _overlap(_corners(other.region), _corners(text_overlay.region)) >= _SAME_POSITION
        ]
        there = [other for other in there if other not in same] + [reduce(_both, same, text_overlay)]
    return done + there


def _both(text_overlay: TextOverlay, other: TextOverlay) -> TextOverlay:
    corners = [*zip(_corners(text_overlay.region), _corners(other.region), strict=True)]
    (left, top), (right, bottom) = (map(min, corners[:2]), map(max, corners[2:]))
    region = _region(left, top, right, bottom)
    start, end = min(text_overlay.start, other.start), max(text_overlay.end, other.end)
    return TextOverlay(region, start, end, max(text_overlay.score, other.score))


def _corners(region: Region) -> tuple[float, float, float, float]:
    return region.x, region.y, region.x + region.width, region.y + region.height


def _region(left: float, top: float, right: float, bottom: float) -> Region:
    left, top = max(0.0, left), max(0.0, top)
    return Region(x=left, y=top, width=min(1.0, right) - left, height=min(1.0, bottom) - top)
