"""Whether a redacted video holds what it should and nothing else: by decoding it and the original side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from proctor.core import InputError, count_of
from proctor.media.decode import VideoSource, decode_at
from proctor.media.inspection import metadata_of
from proctor.media.pictures import upright
from proctor.media.redaction_plan import (
    BLOCKS,
    Pixels,
    PlannedPictures,
    Redaction,
    hidden_box,
    in_layers,
    mosaic,
    shown_pictures,
)
from proctor.media.video import FrameIndex, read_index

LEAST_PSNR = 30.0
"""Decibels of the worst picture against the original, outside what is hidden."""
MOST_DETAIL = 0.02
"""Share of the original's detail (what its blocks don't show) that may be left where it is hidden."""
_MARGIN = 16  # pixels beside a hidden region that an encoder may change a little
_RIM = 2
_DETAIL = 1.0  # standard deviation below which there was no detail to hide
_WRITERS = (b"x264 - core", b"x265 (build", b"Lavf", b"Lavc")
_LEAST_TAG = 6  # bytes; shorter values may stand in pixels by chance
_CHUNK = 2**20


class RedactionCheck(BaseModel):
    """What decoding the result showed. `pictures` were compared, `hidden` of them had something hidden; `worst_psnr`
    (dB) is that of the worst picture outside what is hidden, None where all are the same to the bit or nothing is
    outside; `detail_left` is the largest share of the original's detail found where it is hidden, from 0 to 1, None
    where nothing is hidden or it had no detail."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pictures: int
    hidden: int
    worst_psnr: float | None
    detail_left: float | None


def verify_redaction(source: Path, result: Path, plan: PlannedPictures, *, exact: bool = False) -> RedactionCheck:
    """Decodes both in step. Raises `InputError`, naming the result, where it has another stream than the one video,
    chapters, metadata or an encoder's signature, other timestamps or another number of pictures, a picture that is
    not like the original's outside what is hidden (with `exact`: the same to the bit), or detail inside it.
    """
    _check_container(source, result)
    index = read_index(result)
    _check_times(result, index, plan)
    worst, left, detailed = np.inf, 0.0, False
    for place, (before, after) in enumerate(_pairs(source, result, index, plan)):
        time = index.seconds(int(index.pts[place]))
        redactions = plan.touched[place]
        outside = _psnr(before, after, redactions)
        if outside < (np.inf if exact else LEAST_PSNR):
            found = f"a picture {outside:.1f} dB from the original"
            raise InputError(result, f"at {time:.3f} s", found=found, expected="the same picture")
        worst = min(worst, outside)
        layers = in_layers(redactions)
        for layer, one in enumerate(layers):
            share = _detail_left(before, after, one, layers[layer + 1 :])
            detailed |= share is not None
            left = max(left, share or 0.0)
            if left > MOST_DETAIL:
                found = f"{100 * left:.1f} % of the detail that should be hidden"
                raise InputError(result, f"at {time:.3f} s", found=found, expected="none")
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
    values = {value.encode() for value in metadata_of(source).values}
    for value in sorted({value for value in values if len(value) >= _LEAST_TAG}.union(_WRITERS)):
        if _holds(result, value):
            found.append(f"the text {value.decode(errors='replace')[:40]!r}")
    if found:
        raise InputError(result, found=", ".join(found), expected="one video stream without metadata")


def _holds(file: Path, value: bytes) -> bool:
    tail = b""
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            if value in tail + chunk:
                return True
            tail = chunk[-len(value) :]
    return False


def _check_times(result: Path, index: FrameIndex, plan: PlannedPictures) -> None:
    expected = [float(stamp * plan.base) for stamp in plan.stamps[:-1]]
    found = [index.seconds(int(pts)) for pts in index.pts]
    if len(found) != len(expected):
        raise InputError(result, found=count_of(len(found), "picture"), expected=str(len(expected)))
    apart = np.abs(np.subtract(found, expected))
    if apart.max() > float(plan.base) / 2 + 1e-9:
        place = int(apart.argmax())
        raise InputError(
            result, f"picture {place + 1}", found=f"{found[place]:.6f} s", expected=f"{expected[place]:.6f} s"
        )


def _pairs(source: Path, result: Path, index: FrameIndex, plan: PlannedPictures) -> Iterator[tuple[Pixels, Pixels]]:
    """Each picture before and after, of the same size: the result's may be padded to even sides."""
    with VideoSource(result) as opened:
        after = decode_at(opened, index, [int(pts) for pts in index.pts])
        for (_, before), shot in zip(shown_pictures(source, plan), after, strict=True):
            pixels = np.asarray(upright(shot.frame, shot.aspect, None, None))
            height, width = before.shape[:2]
            if pixels.shape[0] - height not in {0, 1} or pixels.shape[1] - width not in {0, 1}:
                found = f"pictures of {pixels.shape[1]} × {pixels.shape[0]}"
                raise InputError(result, found=found, expected=f"{width} × {height}")
            yield before, pixels[:height, :width]


def _psnr(before: Pixels, after: Pixels, redactions: Sequence[Redaction]) -> float:
    """Decibels outside what is hidden and its margin; infinite where the two are the same, or nothing is outside."""
    import cv2

    apart = cv2.absdiff(before, after)
    outside = np.ones(before.shape[:2], dtype=bool) if redactions else None
    for one in redactions:
        top, bottom, left, right = hidden_box(one.region, *before.shape[:2])
        place = slice(max(0, top - _MARGIN), bottom + _MARGIN), slice(max(0, left - _MARGIN), right + _MARGIN)
        apart[place] = 0
        if outside is not None:
            outside[place] = False
    square = cv2.norm(apart, cv2.NORM_L2SQR)
    size = apart.size if outside is None else apart.shape[2] * int(outside.sum())
    return float("inf") if square == 0 else float(10 * np.log10(255**2 * size / square))


def _detail_left(before: Pixels, after: Pixels, one: Redaction, above: Sequence[Redaction]) -> float | None:
    """How much of what blocks don't show is still there: the slope of the result's detail on the original's, which is 1
    for the original itself and 0 for what has nothing to do with it; without what lies under others. None where the
    original had no detail."""
    top, bottom, left, right = hidden_box(one.region, *before.shape[:2])
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
    return float(abs((first * second).sum()) / (first**2).sum())


def _detail(pixels: Pixels) -> NDArray[np.float32]:
    import cv2

    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    apart: NDArray[np.float32] = grey - mosaic(grey)
    return apart
