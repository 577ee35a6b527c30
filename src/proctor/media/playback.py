"""A video as a browser plays it: an MP4 of its pictures alone, at times that are known to the tick.

Packets are copied wherever a browser can decode them; else the pictures are encoded. The first picture in the file
stands at 0, whatever its timestamp was, since players differ in what they make of a start that is not 0.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from proctor.core import InputError, Region
from proctor.media.messages import COPIED
from proctor.media.redaction import copy_pictures, encode_pictures
from proctor.media.redaction_plan import PlannedPictures, Redaction, outside_of
from proctor.media.sampling import check_size
from proctor.media.video import FrameIndex, open_video, probe, read_index

PLAYED = COPIED - {"hevc"}
"""The codecs that every browser decodes, of those that can be copied; HEVC plays on some systems alone."""
_PLANES = ("yuv420p", "yuvj420p")  # browsers decode neither 10 bits nor colour in full resolution everywhere
_FINEST = 1_000_000
_OFF = Fraction(1, _FINEST)


def write_playback(source: Path, index: FrameIndex, out: Path, region: Region | None = None) -> bool:
    """Writes the MP4 without sound, metadata and messages; the header comes first, so that it plays while it loads.
    All but the `region` is black in it: what lies there reaches no browser.
    The picture with timestamp `pts` is at (pts - index.pts[0]) * time_base after `playback_lead`, to the microsecond.
    Returns whether the packets were copied. Raises `InputError` where the video can't be read, or its pictures can't be
    given these times.
    """
    import av

    check_size(source)
    turned = _turn(source)
    if region is None and _may_copy(source, index):
        hidden = int(index.pts[0] - index.keys[0]) if index.edited else 0
        plan = _plan(source, index, hidden)
        try:
            copy_pictures(source, out, plan)
            if _holds(out, plan, hidden=bool(hidden)) and _turn(out) == turned:
                return True
        except (InputError, av.FFmpegError):
            pass  # what can't be copied exactly is encoded
        out.unlink(missing_ok=True)
    plan = _plan(source, index, 0, outside_of(region) if region is not None else ())
    encode_pictures(source, out, plan)
    if not _holds(out, plan, hidden=False):
        raise InputError(source, found="pictures that can't be given their times in an MP4", expected="another file")
    return False


def playback_lead(index: FrameIndex, played: FrameIndex) -> float:
    """How many seconds of a written MP4 come before the first picture of its source: those of pictures that an edit
    list hides and others need. They stand in front, since browsers disagree on what an MP4's own edit list hides."""
    first = len(played.pts) - len(index.pts)
    return float(int(played.pts[first]) * played.time_base)


def _plan(source: Path, index: FrameIndex, hidden: int, covered: tuple[Redaction, ...] = ()) -> PlannedPictures:
    base = Fraction(1, min(index.time_base.denominator, _FINEST))
    first, scale = int(index.pts[0]) - hidden, index.time_base / base
    end = index.zero + int(Fraction(probe(source).duration_s) / index.time_base)
    stamps = [round((int(pts) - first) * scale) for pts in [*index.pts, max(end, int(index.pts[-1]) + 1)]]
    return PlannedPictures(index, base, [int(pts) for pts in index.pts], stamps, [covered] * len(index.pts), ())


def _may_copy(source: Path, index: FrameIndex) -> bool:
    with open_video(source) as (_, stream):
        return index.stamped and stream.codec_context.name in PLAYED and stream.codec_context.pix_fmt in _PLANES


def _turn(path: Path) -> int:
    with open_video(path) as (container, stream):
        return next(container.decode(stream)).rotation % 360


def _holds(path: Path, plan: PlannedPictures, *, hidden: bool) -> bool:
    """Whether these are the pictures' times in the file, read back from it, and only hidden ones come before."""
    found = read_index(path)
    before = len(found.pts) - len(plan.kept)
    if before < 0 or (before > 0) != hidden or found.pts[0] != 0:
        return False
    pairs = zip(found.pts[before:].tolist(), plan.stamps, strict=False)
    return all(abs(pts * found.time_base - stamp * plan.base) < _OFF for pts, stamp in pairs)
