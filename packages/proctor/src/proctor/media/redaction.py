"""Redaction: what is hidden in a video, which pictures are left, and the proof by decoding the result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from proctor.core import FrozenModel, InputError, Region, count_of, need_extra
from proctor.media.decode import VideoSource, decode_at
from proctor.media.pictures import upright
from proctor.media.video import metadata_of, probe
from proctor.media.video_clock import FrameIndex, read_index

BLOCKS = 8
"""A blurred picture or region keeps this many blocks along its longer side."""

Pixels = NDArray[np.uint8]


class Redaction(FrozenModel):
    """Hides the whole picture or a region of it from `start` up to `end` (seconds of the video's clock; None: to its
    end).

    `blur` leaves at most 8 × 8 blocks of mean colour that change once a second, so that neither one picture nor many
    together hold any detail; `black` leaves nothing (use it for text: mean colours can reveal characters of a known
    alphabet, Hill et al. 2016, doi 10.1515/popets-2016-0047); `remove` cuts the pictures out.

    >>> Redaction(start=3.0, end=7.5).how
    'blur'
    """

    start: float = Field(default=0.0, ge=0)
    end: float | None = None
    region: Region | None = None
    how: Literal["blur", "black", "remove"] = "blur"

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.end is not None and self.end <= self.start:
            raise ValueError("the end is not after the start")
        if self.how == "remove" and self.region is not None:
            raise ValueError("a region can't be removed: blur or black")
        return self


class VideoPiece(FrozenModel):
    """The part from `start` to `end` of the original, shown from `at` on in the result; seconds of each one's clock."""

    start: float
    end: float
    at: float


@dataclass(frozen=True)
class PlannedPictures:
    """The pictures of the result: which of the original (`kept`, ascending), their timestamps in ticks of `base` from 0
    on (`stamps`, with the end of the last one), and for each the redactions that touch it.

    The first picture is shown from 0 on even if the original begins with sound: all other times stay.
    """

    index: FrameIndex
    base: Fraction
    kept: list[int]
    stamps: list[int]
    touched: list[tuple[Redaction, ...]]
    pieces: tuple[VideoPiece, ...]


@dataclass(frozen=True)
class Masking:
    """Applies redactions to pictures in order."""

    _held: dict[tuple[Redaction, int], Pixels] = field(default_factory=dict)

    def hide(self, pixels: Pixels, redactions: Iterable[Redaction], time: float) -> Pixels:
        """A picture (height × width × 3) with the redactions applied, black on top."""
        shown = pixels.copy()
        for layer in in_layers(redactions):
            top, bottom, left, right = hidden_box(layer.region, *pixels.shape[:2])
            if layer.how == "black":
                shown[top:bottom, left:right] = 0
                continue
            key = (layer, int(time))
            if key not in self._held:
                for old in [each for each in self._held if each[0] == layer]:
                    del self._held[old]
                self._held[key] = mosaic(pixels[top:bottom, left:right])
            shown[top:bottom, left:right] = self._held[key]
        return shown


def in_layers(redactions: Iterable[Redaction]) -> list[Redaction]:
    """The redactions in the order in which they are applied: black last."""
    return sorted(redactions, key=lambda redaction: redaction.how == "black")


def hidden_box(region: Region | None, height: int, width: int) -> tuple[int, int, int, int]:
    """Top, bottom, left and right of a region in pixels, extended to even ones: in a video two pixels share colour."""
    if region is None:
        return 0, height, 0, width
    top, left = int(region.y * height) // 2 * 2, int(region.x * width) // 2 * 2
    bottom = min(height, -int(-(region.y + region.height) * height // 2) * 2)
    right = min(width, -int(-(region.x + region.width) * width // 2) * 2)
    return top, max(bottom, top + 1), left, max(right, left + 1)


def mosaic(pixels: NDArray[Any]) -> NDArray[Any]:
    """The picture as blocks of its mean colour, at most 8 along its longer side. Blocks begin at even pixels, since in a
    video two pixels share colour; so the mosaic of a mosaic is itself."""
    import cv2

    shown, longer = np.empty_like(pixels), max(pixels.shape[:2])
    rows, columns = (_block_edges(side, max(1, round(BLOCKS * side / longer))) for side in pixels.shape[:2])
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            position = slice(top, bottom), slice(left, right)
            mean = np.array(cv2.mean(pixels[position])[: pixels.shape[2] if pixels.ndim == 3 else 1])
            shown[position] = np.rint(mean) if pixels.dtype == np.uint8 else mean
    return shown


def _block_edges(side: int, count: int) -> list[int]:
    inner = {round(side * k / count / 2) * 2 for k in range(1, count)}
    return sorted({0, side, *(edge for edge in inner if edge < side)})


def outside_of(region: Region) -> tuple[Redaction, ...]:
    """Black over everything but this region, for the whole video.

    >>> [one.region.width for one in outside_of(Region(x=0.25, y=0, width=0.75, height=1))]
    [0.25]
    """
    right, bottom = region.x + region.width, region.y + region.height
    parts = [(0.0, 0.0, 1.0, region.y), (0.0, bottom, 1.0, 1 - bottom), (0.0, region.y, region.x, region.height)]
    parts.append((right, region.y, 1 - right, region.height))
    return tuple(
        Redaction(region=Region(x=x, y=y, width=width, height=height), how="black")
        for x, y, width, height in parts
        if width > 1e-6 and height > 1e-6
    )


def planned(source: Path, redactions: Sequence[Redaction]) -> PlannedPictures:
    """Plans a redacted video. A redaction affects every picture that is shown at any moment of it.

    Raises `InputError` where the video can't be read, a redaction begins after its end, or nothing would be left.
    """
    need_extra("vision", "hiding areas of a video", "cv2")
    index = read_index(source)
    end = max(probe(source).duration_s, index.seconds(int(index.pts[-1])))
    for redaction in redactions:
        if redaction.start >= end:
            found = f"a redaction that begins at {redaction.start:g} s"
            raise InputError(source, found=found, expected=f"one within the video's {end:.2f} s")
    ends = [*index.pts[1:].tolist(), index.zero + int(Fraction(end) / index.time_base)]
    ends[-1] = max(ends[-1], int(index.pts[-1]) + 1)
    base = Fraction(1, index.time_base.denominator)
    kept: list[int] = []
    pieces: list[VideoPiece] = []
    stamps, touched = [0], []
    first = index.at([0.0])[0]  # those before it are over when the video's clock begins
    for pts, after in zip(index.pts.tolist(), ends, strict=True):
        if pts < first:
            continue
        from_ = index.seconds(pts) if kept or pts != first else min(0.0, index.seconds(pts))
        to = index.seconds(after)
        here = [
            redaction
            for redaction in redactions
            if redaction.start < to and (redaction.end is None or redaction.end > from_)
        ]
        if any(redaction.how == "remove" for redaction in here):
            continue
        begins = index.zero if pts == first else pts
        if not pieces or abs(pieces[-1].end - index.seconds(begins)) > 1e-9:
            pieces.append(VideoPiece(start=index.seconds(begins), end=to, at=float(stamps[-1] * base)))
        else:
            pieces[-1] = pieces[-1].model_copy(update={"end": to})
        kept.append(pts)
        touched.append(tuple(here))
        stamps.append(stamps[-1] + (after - begins) * index.time_base.numerator)
    if not kept:
        raise InputError(source, found="redactions that remove every picture", expected="at least one that is left")
    return PlannedPictures(index, base, kept, stamps, touched, tuple(pieces))


def shown_pictures(source: Path, plan: PlannedPictures) -> Iterator[tuple[int, Pixels]]:
    """The original's kept pictures, upright, in order."""
    with VideoSource(source) as opened:
        for pts, frame, display in decode_at(opened, plan.index, plan.kept):
            yield pts, np.asarray(upright(frame, display, None, None))


MIN_PSNR = 30.0
"""Decibels against the original, for every picture outside the hidden areas."""
MAX_DETAIL = 0.02
"""Share of the original's detail (what its blocks don't show) that may be left in a hidden area."""
_MARGIN = 16  # pixels beside a hidden region that an encoder may change a little
_RIM = 2
_DETAIL = 1.0  # standard deviation below which there was no detail to hide
_ROUNDING = 0.15  # standard deviation of detail that is left: half of what rounding to whole levels has
_WRITERS = rb"x264 - core|x265 \(build|Lav[fc]\d+\.\d"  # with a version: four bytes alone are in every long video
_MIN_TAG = 6  # bytes; shorter values may stand in pixels by chance
_CHUNK = 2**20
_REACH = 32  # bytes that a signature of a writer may take


class CoarseError(InputError):
    """Pictures that the encoder changed too much: it smooths what is shown and the edges of what is hidden."""


class RedactionCheck(FrozenModel):
    """The result of `verify_redaction`. `pictures` were compared, `hidden` of them have something hidden. `worst_psnr`
    (dB) is the minimum over pictures outside the hidden areas, None where all are equal to the bit or nothing is
    outside. `detail_left` is the largest share of the original's detail found in a hidden area, from 0 to 1, None where
    nothing is hidden or it had no detail."""

    pictures: int
    hidden: int
    worst_psnr: float | None
    detail_left: float | None


def verify_redaction(source: Path, result: Path, plan: PlannedPictures, *, exact: bool = False) -> RedactionCheck:
    """Decodes both files in step. Raises `InputError`, naming the result, where it has further streams, chapters,
    metadata or an encoder's signature, other timestamps or another number of pictures, a picture that differs from the
    original's outside the hidden areas (with `exact`: in any bit), or detail inside them.
    """
    _check_container(source, result)
    index = read_index(result)
    _check_timestamps(result, index, plan)
    worst, left, detailed = np.inf, 0.0, False
    for position, (before, after) in enumerate(_pairs(source, result, index, plan)):
        time = index.seconds(int(index.pts[position]))
        redactions = plan.touched[position]
        outside = _psnr(before, after, redactions)
        if outside < (np.inf if exact else MIN_PSNR):
            found = f"a picture {outside:.1f} dB from the original"
            expected = "the same picture" if exact else f"at least {MIN_PSNR:g} dB"
            raise CoarseError(result, f"at {time:.3f} s", found=found, expected=expected)
        worst = min(worst, outside)
        layers = in_layers(redactions)
        for layer, one in enumerate(layers, start=1):
            share = _detail_left(before, after, one, layers[layer:])
            detailed |= share is not None
            left = max(left, share or 0.0)
            if left > MAX_DETAIL:
                found = f"{100 * left:.1f} % of the detail that should be hidden"
                expected = f"at most {100 * MAX_DETAIL:g} %"
                raise CoarseError(result, f"at {time:.3f} s", found=found, expected=expected)
    return RedactionCheck(
        pictures=len(plan.kept),
        hidden=sum(1 for one in plan.touched if one),
        worst_psnr=None if np.isinf(worst) else round(float(worst), 2),
        detail_left=round(left, 4) if detailed else None,
    )


def _check_container(source: Path, result: Path) -> None:
    held = metadata_of(result)
    found = [*(f"a stream of {kind}" for kind in held.other_streams), *(f"metadata {name!r}" for name in held.tags)]
    found += [count_of(held.audio_tracks, "audio track")] if held.audio_tracks else []
    found += [count_of(held.chapters, "chapter")] if held.chapters else []
    values = {re.escape(value.encode()) for value in metadata_of(source).values if len(value.encode()) >= _MIN_TAG}
    for pattern in sorted(values | {_WRITERS}):
        text = _text_in(result, re.compile(pattern))
        if text is not None:
            found.append(f"the text {text.decode(errors='replace')[:40]!r}")
    if found:
        raise InputError(result, found=", ".join(found), expected="one video stream without metadata")


def _text_in(file: Path, pattern: re.Pattern[bytes]) -> bytes | None:
    """The first text in a file that the pattern finds, also across two chunks."""
    tail, reach = b"", max(_REACH, len(pattern.pattern))
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            found = pattern.search(tail + chunk)
            if found is not None:
                return found[0]
            tail = chunk[-reach:]
    return None


def _check_timestamps(result: Path, index: FrameIndex, plan: PlannedPictures) -> None:
    expected = [float(stamp * plan.base) for stamp in plan.stamps[:-1]]
    found = [index.seconds(int(pts)) for pts in index.pts]
    if len(found) != len(expected):
        raise InputError(result, found=count_of(len(found), "picture"), expected=str(len(expected)))
    apart = np.abs(np.subtract(found, expected))
    if apart.max() > float(plan.base) / 2 + 1e-9:
        position = int(apart.argmax())
        raise InputError(
            result, f"picture {position + 1}", found=f"{found[position]:.6f} s", expected=f"{expected[position]:.6f} s"
        )


def _pairs(source: Path, result: Path, index: FrameIndex, plan: PlannedPictures) -> Iterator[tuple[Pixels, Pixels]]:
    """Each picture before and after, in the same size: the result's may be padded to even sides."""
    with VideoSource(result) as opened:
        after = decode_at(opened, index, [int(pts) for pts in index.pts])
        for (_, before), shot in zip(shown_pictures(source, plan), after, strict=True):
            pixels = np.asarray(upright(shot.frame, shot.display, None, None))
            height, width = before.shape[:2]
            if pixels.shape[0] - height not in {0, 1} or pixels.shape[1] - width not in {0, 1}:
                found = f"pictures of {pixels.shape[1]} × {pixels.shape[0]}"
                raise InputError(result, found=found, expected=f"{width} × {height}")
            yield before, pixels[:height, :width]


def _psnr(before: Pixels, after: Pixels, redactions: Sequence[Redaction]) -> float:
    """PSNR in dB outside the hidden areas and their margin; infinite if both are equal there, or nothing is outside."""
    import cv2

    apart = cv2.absdiff(before, after)
    outside = np.ones(before.shape[:2], dtype=bool) if redactions else None
    for redaction in redactions:
        top, bottom, left, right = hidden_box(redaction.region, *before.shape[:2])
        position = slice(max(0, top - _MARGIN), bottom + _MARGIN), slice(max(0, left - _MARGIN), right + _MARGIN)
        apart[position] = 0
        if outside is not None:
            outside[position] = False
    square = cv2.norm(apart, cv2.NORM_L2SQR)
    size = apart.size if outside is None else apart.shape[2] * int(outside.sum())
    return float("inf") if square == 0 else float(10 * np.log10(255**2 * size / square))


def _detail_left(before: Pixels, after: Pixels, redaction: Redaction, above: Sequence[Redaction]) -> float | None:
    """The share of the original's detail (what the blocks don't show) that is left: the slope of the result's detail on
    the original's, 1 for the original itself and 0 for unrelated content, without areas under other redactions. 0 where
    what is left is a tenth of a level or less: in nearly flat areas rounding alone resembles the original by chance.
    None where the original had no detail."""
    top, bottom, left, right = hidden_box(redaction.region, *before.shape[:2])
    first, second = _detail(before[top:bottom, left:right]), _detail(after[top:bottom, left:right])
    for edge in (first, second):  # an encoder smooths what is next to another picture
        edge[:_RIM] = edge[-_RIM:] = edge[:, :_RIM] = edge[:, -_RIM:] = 0
    beside = max(_MARGIN, -(-max(first.shape) // BLOCKS))  # a block that is partly under another has another mean
    for other in above:
        ends = [
            edge + sign * beside
            for edge, sign in zip(hidden_box(other.region, *before.shape[:2]), (-1, 1, -1, 1), strict=True)
        ]
        rows, columns = (slice(max(0, ends[k] - zero), max(0, ends[k + 1] - zero)) for k, zero in ((0, top), (2, left)))
        first[rows, columns] = second[rows, columns] = 0
    if first.std() < _DETAIL:
        return None
    share = float(abs((first * second).sum()) / (first**2).sum())
    return share if share * first.std() > _ROUNDING else 0.0


def _detail(pixels: Pixels) -> NDArray[np.float32]:
    import cv2

    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    apart: NDArray[np.float32] = grey - mosaic(grey)
    return apart
