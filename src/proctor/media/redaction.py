"""A video without what must not be seen, heard or read in it: a new file beside the original, proved by decoding it.

Pixels are re-encoded only where some must change or the file can't be copied exactly; else the packets are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from proctor.core import InputError, whole_file
from proctor.media.messages import ANNEX_B, COPIED, without_messages
from proctor.media.redaction_check import RedactionCheck, verify_redaction
from proctor.media.redaction_plan import (
    Masking,
    Pixels,
    PlannedPictures,
    Redaction,
    VideoPiece,
    planned,
    shown_pictures,
)
from proctor.media.sampling import check_size
from proctor.media.video import decoding_times, open_video

if TYPE_CHECKING:
    from av.bitstream import BitStreamFilterContext
    from av.container import OutputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

_X264 = {"preset": "veryfast", "crf": "16", "bf": "0"}  # in order: the last picture keeps its duration
_MP4 = {"movflags": "+faststart", "fflags": "+bitexact"}


class RedactedVideo(BaseModel):
    """What `redact` wrote: whether packets were `copied` or pictures `encoded`, which part of the original stands
    where, and what the check found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    how: Literal["copied", "encoded"]
    pieces: tuple[VideoPiece, ...]
    check: RedactionCheck


def redact(source: Path, out: Path, redactions: Sequence[Redaction] = ()) -> RedactedVideo:
    """Writes the video without sound, other streams, chapters and metadata, with what the redactions say hidden, as an
    MP4; the file appears only after `verify_redaction` has passed.

    Raises `InputError` where the original can't be read, the result would replace it, or the check fails.
    """
    import av

    check_size(source)
    if out.exists() and out.samefile(source):
        raise InputError(out, found="the original", expected="another file: originals are never changed")
    plan = planned(source, redactions)
    copied = not any(plan.touched) and _may_copy(source, plan)
    with whole_file(out) as draft:
        if copied:
            try:
                copy_pictures(source, draft, plan)
                return RedactedVideo(
                    how="copied", pieces=plan.pieces, check=verify_redaction(source, draft, plan, exact=True)
                )
            except (InputError, av.FFmpegError):
                draft.unlink(missing_ok=True)  # what can't be copied exactly is encoded
        encode_pictures(source, draft, plan)
        try:
            return RedactedVideo(how="encoded", pieces=plan.pieces, check=verify_redaction(source, draft, plan))
        except InputError as error:
            raise InputError(str(error).replace(str(draft), str(out))) from error


def _may_copy(source: Path, plan: PlannedPictures) -> bool:
    """Whether all packets of a file may stand in another as they are."""
    with open_video(source) as (container, stream):
        name = stream.codec_context.name
        turned = next(container.decode(stream)).rotation
    if name not in COPIED or not plan.index.stamped or turned or len(plan.kept) < len(plan.index.pts):
        return False
    with open_video(source) as (container, stream):
        return not any(one.is_discard or one.dts is None for one in container.demux(stream) if one.size)


def copy_pictures(source: Path, draft: Path, plan: PlannedPictures) -> None:
    """Writes an MP4 with the source's packets, without messages in them, at the plan's timestamps. A packet that the
    source's edit list hides is kept, since others may need it, as far as there is time before the first timestamp."""
    times = _times(source, plan)
    with open_video(source) as (container, stream), _opened(draft, plan) as target:
        copy = target.add_stream_from_template(stream)
        copy.metadata.clear()
        copy.time_base = plan.base
        header, without = without_messages(stream)
        if header is not None:
            copy.codec_context.extradata = header
        packets = (one for one in container.demux(stream) if one.size and one.pts is not None)
        for packet, (pts, dts, lasting) in zip(packets, times, strict=True):
            if pts < 0:
                continue
            is_key = packet.is_keyframe
            for one in without(packet):
                one.pts, one.dts, one.duration = pts, dts, lasting
                one.time_base, one.is_keyframe = plan.base, is_key
                one.stream = copy
                target.mux(one)


def _times(source: Path, plan: PlannedPictures) -> list[tuple[int, int, int]]:
    """Of each packet, in the order of decoding: when it is shown (below 0: not kept) and decoded, and how long it
    stays."""
    index, scale = plan.index, plan.index.time_base / plan.base
    lasting = np.diff(plan.stamps)
    times, early = [], []
    with open_video(source) as (container, stream):
        for packet in container.demux(stream):
            if not packet.size or packet.pts is None:
                continue
            if packet.is_discard:
                pts = plan.stamps[0] + round((packet.pts - int(index.pts[0])) * scale)
                lasts = round((packet.duration or 0) * scale)
            else:
                place = int(index.pts.searchsorted(packet.pts))
                pts, lasts = plan.stamps[place], int(lasting[place])
            times.append((pts, lasts))
            early += [] if packet.dts is None else [pts + round((packet.dts - packet.pts) * scale)]
    if len(early) < len(times):
        early = decoding_times([pts for pts, _ in times])
    return [(pts, dts, lasts) for (pts, lasts), dts in zip(times, early, strict=True)]


def _opened(draft: Path, plan: PlannedPictures) -> OutputContainer:
    import av

    options = {**_MP4, "video_track_timescale": str(plan.base.denominator)}
    container: OutputContainer = av.open(str(draft), "w", format="mp4", options=options)
    return container


def encode_pictures(source: Path, draft: Path, plan: PlannedPictures) -> None:
    """Writes an MP4 in H.264 with the plan's pictures, upright and as the redactions that touch them say, at its
    timestamps."""
    import av
    from av.bitstream import BitStreamFilterContext

    without = BitStreamFilterContext(ANNEX_B["h264"], "h264")
    lasting = dict(zip(plan.stamps, np.diff(plan.stamps).tolist(), strict=False))
    with _opened(draft, plan) as target:
        stream: VideoStream | None = None
        for place, pixels in enumerate(_hidden(source, plan)):
            if stream is None:
                stream = _stream(target, pixels, plan.base)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(
                format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG"
            )
            frame.pts, frame.time_base = plan.stamps[place], plan.base
            _mux(target, _without(without, stream.encode(frame)), lasting)
        if stream is not None:
            _mux(target, _without(without, stream.encode(None)), lasting)


def _mux(target: OutputContainer, packets: Iterable[Packet[Any]], lasting: Mapping[int, int]) -> None:
    for packet in packets:
        packet.duration = lasting.get(packet.pts or 0, 0)
        target.mux(packet)


def _without(filters: BitStreamFilterContext, packets: Iterable[Packet[Any]]) -> Iterator[Any]:
    for packet in packets:
        yield from filters.filter(packet)


def _hidden(source: Path, plan: PlannedPictures) -> Iterator[Pixels]:
    """The result's pictures, with sides made even, as H.264 wants them, by repeating the last line."""
    masking = Masking()
    for (pts, pixels), redactions in zip(shown_pictures(source, plan), plan.touched, strict=True):
        hidden = masking.hide(pixels, redactions, plan.index.seconds(pts)) if redactions else pixels
        odd = [(0, side % 2) for side in hidden.shape[:2]]
        yield np.pad(hidden, [*odd, (0, 0)], mode="edge") if any(hidden.shape[k] % 2 for k in (0, 1)) else hidden


def _stream(target: OutputContainer, pixels: Pixels, base: Fraction) -> VideoStream:
    from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc

    stream = target.add_stream("libx264", options=_X264)
    stream.height, stream.width = pixels.shape[:2]
    stream.pix_fmt, stream.time_base, stream.codec_context.time_base = "yuv420p", base, base
    context = stream.codec_context
    context.colorspace, context.color_range = int(Colorspace.ITU709), int(ColorRange.MPEG)
    context.color_primaries, context.color_trc = int(ColorPrimaries.BT709), int(ColorTrc.BT709)
    stream.thread_type = "AUTO"
    return stream
