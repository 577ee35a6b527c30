"""Videos written as MP4: clips for models, whole videos for browsers, and redacted copies.

Packets are copied wherever that is exact; else the pictures are encoded. Sound is left out.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from proctor.core import FrozenModel, InputError, Region, whole_file
from proctor.media.container import ContainerFacts, open_video, reason_of
from proctor.media.pictures import open_picture, upright
from proctor.media.redaction import (
    CoarseError,
    Masking,
    Pixels,
    PlannedPictures,
    Redaction,
    RedactionCheck,
    VideoPiece,
    outside_of,
    planned,
    shown_pictures,
    verify_redaction,
)
from proctor.media.sampling import fitted
from proctor.media.timestamps import decoding_times
from proctor.media.video import check_size, probe, read_container
from proctor.media.video_clock import FrameIndex, read_index

if TYPE_CHECKING:
    from av.bitstream import BitStreamFilterContext
    from av.container import OutputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

ANNEX_B = {"h264": "filter_units=remove_types=6", "hevc": "filter_units=remove_types=39|40"}
"""FFmpeg's filter for packets whose units begin with start codes, by codec."""
COPIED = {*ANNEX_B, "vp9"}
"""The codecs whose packets can be copied into an MP4 (AV1 can't with this library; VP9 has no messages)."""
_UNIT_TYPES = {"h264": (31, 0, {6}), "hevc": (63, 1, {39, 40})}  # mask and shift of a unit's type; those of messages
_LENGTH_BYTES = {"h264": 4, "hevc": 21}  # the byte of the header that says how long a unit's length is


def without_messages(stream: VideoStream) -> tuple[bytes | None, Callable[[Packet[Any]], Iterator[Packet[Any]]]]:
    """Removes SEI messages, which hold encoder settings, captions, times and places: the stream header to write (None:
    unchanged), and a function that filters packets. Units with lengths (ISO/IEC 14496-15, as in MP4 and Matroska) are
    parsed here, since FFmpeg's filter gives them start codes, which an MP4 must not have."""
    from av.bitstream import BitStreamFilterContext

    name = stream.codec_context.codec.canonical_name
    header = stream.codec_context.extradata or b""
    if name in _UNIT_TYPES and header[:1] == b"\x01" and len(header) > _LENGTH_BYTES[name]:
        size = (header[_LENGTH_BYTES[name]] & 3) + 1
        return (_hevc_header(header) if name == "hevc" else None), lambda packet: _shortened(packet, name, size)
    if name not in ANNEX_B:
        return None, lambda packet: iter([packet])
    context = BitStreamFilterContext(ANNEX_B[name], stream)
    return None, lambda packet: iter(context.filter(packet))


def _shortened(packet: Packet[Any], name: str, size: int) -> Iterator[Packet[Any]]:
    """The packet without its message units; nothing if it holds no others."""
    from av import Packet

    raw, position, kept = bytes(packet), 0, []
    mask, shift, messages = _UNIT_TYPES[name]
    while position + size < len(raw):
        end = position + size + int.from_bytes(raw[position : position + size])
        if raw[position + size] >> shift & mask not in messages:
            kept.append(raw[position:end])
        position = end
    if kept:
        yield Packet(b"".join(kept))


def _hevc_header(header: bytes) -> bytes:
    """An `hvcC` header (ISO/IEC 14496-15, 8.3.3.1) without its arrays of messages. A broken header is unchanged."""
    kept, position = [], 23
    for _ in range(header[22] if len(header) > 22 else 0):
        end = position + 3
        for _ in range(int.from_bytes(header[position + 1 : position + 3])):
            end += 2 + int.from_bytes(header[end : end + 2])
        if end > len(header):
            return header
        if header[position] & 63 not in _UNIT_TYPES["hevc"][2]:
            kept.append(header[position:end])
        position = end
    return header[:22] + bytes([len(kept)]) + b"".join(kept)


_TICKS = 90_000
_CLIP_X264 = {"preset": "veryfast", "crf": "23"}


def cut(path: Path, index: FrameIndex, span: tuple[float, float], region: Region | None, max_side: int | None) -> bytes:
    """The clip's pictures at their own times, from 0 on: packets are copied where that is exact (see `_may_copy_clip`
    and `_begins_at`), else pictures are encoded. Raises `InputError` where the file can't be read."""
    first, end = index.at([span[0]])[0], index.end_tick(span[1])
    with _written(path):
        if (
            region is None
            and first in index.keys
            and _may_copy_clip(path, index, end, max_side)
            and _begins_at(path, first)
        ):
            return _copied_clip(path, first, end)
        return _encoded_clip(path, index, first, end, region, max_side)


@contextmanager
def _written(source: Path | str) -> Iterator[None]:
    """Raises `InputError` where FFmpeg refuses to write what was made of this file, such as times that an MP4 can't
    hold. A disk's own errors stay what they are."""
    import av

    try:
        yield
    except (av.FFmpegError, OverflowError) as error:
        if isinstance(error, OSError):
            raise
        found = f"pictures or times that a video file can't hold ({reason_of(error)})"
        raise InputError(source, found=found, expected="another file") from error


def from_jpegs(pictures: Iterable[tuple[float, bytes]]) -> bytes:
    """A video of JPEGs at times in seconds, ascending, from 0 on."""
    import av

    def frames() -> Iterable[tuple[int, VideoFrame]]:
        for time, jpeg in pictures:
            pixels = np.asarray(open_picture(jpeg))
            yield round(time * _TICKS), av.VideoFrame.from_ndarray(pixels, format="rgb24")

    with _written("clip"):
        return _h264(frames(), Fraction(1, _TICKS))


def _may_copy_clip(path: Path, index: FrameIndex, end: int, max_side: int | None) -> bool:
    """H.264, displayed as it is, unscaled, and no picture before the end depends on one after it."""
    if not index.stamped or not read_container(path).display.plain:
        return False
    with open_video(path) as (_, stream):
        size = stream.width, stream.height
        in_order = not stream.has_b_frames or end > int(index.pts[-1])
        return stream.codec_context.name == "h264" and fitted(*size, max_side, Fraction(1)) == size and in_order


def _begins_at(path: Path, first: int) -> bool:
    """Whether a decoder that starts at this keyframe shows it: with intra refresh it shows only later pictures."""
    with open_video(path) as (container, stream):
        packets = dropwhile(lambda packet: packet.pts != first, container.demux(stream))
        stamps = (frame.pts for packet in packets for frame in packet.decode())
        return next((pts for pts in stamps if pts is not None and pts >= first), None) == first


def _copied_clip(path: Path, first: int, end: int) -> bytes:
    import av

    out = io.BytesIO()
    with open_video(path) as (container, stream), av.open(out, "w", format="mp4") as target:
        copy = target.add_stream_from_template(stream)
        # Reading from the start costs little, and is exact where seeking may not be.
        packets = [packet for packet in container.demux(stream) if packet.pts is not None and first <= packet.pts < end]
        shown = [(packet.pts or 0) - first for packet in packets]
        told = [packet.dts - first for packet in packets if packet.dts is not None]
        decoded = told if len(told) == len(packets) else decoding_times(shown)
        for packet, pts, dts in zip(packets, shown, decoded, strict=True):
            packet.pts, packet.dts = pts, dts
            packet.stream = copy
            target.mux(packet)
    return out.getvalue()


def _encoded_clip(
    path: Path, index: FrameIndex, first: int, end: int, region: Region | None, max_side: int | None
) -> bytes:
    import av

    from proctor.media.decode import VideoSource, decode_at

    wanted = [int(pts) for pts in index.pts if first <= pts < max(end, first + 1)]

    def frames() -> Iterable[tuple[int, VideoFrame]]:
        with VideoSource(path) as source:
            for pts, frame, display in decode_at(source, index, wanted):
                picture = upright(frame, display, region, max_side)
                yield pts - first, av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")

    return _h264(frames(), index.time_base)


def _h264(frames: Iterable[tuple[int, VideoFrame]], base: Fraction) -> bytes:
    import av

    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as target:
        stream: VideoStream | None = None
        for pts, frame in frames:
            if stream is None:
                stream = _clip_stream(target, frame, base)
            shown = frame.reformat(stream.width, stream.height, "yuv420p")
            shown.pts, shown.time_base = pts, base
            target.mux(stream.encode(shown))
        if stream is None:
            raise InputError("clip", found="no picture", expected="at least one")
        target.mux(stream.encode(None))
    return out.getvalue()


def _clip_stream(target: OutputContainer, frame: VideoFrame, base: Fraction) -> VideoStream:
    """An H.264 stream in a pixel format that every reader supports, with even sides."""
    stream = target.add_stream("libx264", options=_CLIP_X264)
    stream.width, stream.height = max(2, frame.width // 2 * 2), max(2, frame.height // 2 * 2)
    stream.pix_fmt, stream.codec_context.time_base = "yuv420p", base
    stream.thread_type = "AUTO"
    return stream


_X264 = {"preset": "veryfast", "crf": "16", "bf": "0"}  # in order: the last picture keeps its duration
_FINER, _NEAR_LOSSLESS = {**_X264, "crf": "8"}, {**_X264, "crf": "2"}
_TRIES = ((_X264, "yuv420p"), (_FINER, "yuv420p"), (_NEAR_LOSSLESS, "yuv420p"))
_MP4 = {"movflags": "+faststart", "fflags": "+bitexact"}


class RedactedVideo(FrozenModel):
    """The result of `redact`: whether packets were `copied` or pictures `encoded`, which parts of the original are
    where, and the check."""

    how: Literal["copied", "encoded"]
    pieces: tuple[VideoPiece, ...]
    check: RedactionCheck


def redact(source: Path, out: Path, redactions: Sequence[Redaction] = ()) -> RedactedVideo:
    """Writes the video as an MP4 without sound, other streams, chapters and metadata, with the redactions applied; the
    file appears only after `verify_redaction` has passed.

    Raises `InputError` where the original can't be read, the result would replace it, or the check fails.
    """
    check_size(source)
    if out.exists() and out.samefile(source):
        raise InputError(out, found="the original", expected="another file: originals are never changed")
    plan = planned(source, redactions)
    copied = not any(plan.touched) and _may_copy_all(source, plan)
    with whole_file(out) as draft:
        if copied:
            try:
                with _written(source):
                    copy_pictures(source, draft, plan)
                check = verify_redaction(source, draft, plan, exact=True)
                return RedactedVideo(how="copied", pieces=plan.pieces, check=check)
            except InputError:
                draft.unlink(missing_ok=True)  # what can't be copied exactly is encoded
        try:
            with _written(source):
                return RedactedVideo(how="encoded", pieces=plan.pieces, check=_encoded(source, draft, plan))
        except InputError as error:
            raise InputError(str(error).replace(str(draft), str(out))) from error


def _encoded(source: Path, draft: Path, plan: PlannedPictures) -> RedactionCheck:
    """Encodes the pictures, again and finer where the check finds that the encoder changed too much: it smooths the
    edges of a small blurred area's blocks, which then resemble what they hide. The last copy has colour for every
    pixel, which not every browser decodes; in the others four pixels share one."""
    for quality, planes in _TRIES:
        encode_pictures(source, draft, plan, quality, planes)
        with suppress(CoarseError):
            return verify_redaction(source, draft, plan)
    encode_pictures(source, draft, plan, _NEAR_LOSSLESS, "yuv444p")
    return verify_redaction(source, draft, plan)


def _may_copy_all(source: Path, plan: PlannedPictures) -> bool:
    """Whether all packets of a file can be copied unchanged."""
    facts = read_container(source)
    plain = facts.display._replace(aspect=Fraction(1)).plain and not facts.alpha
    if not plain or not plan.index.stamped or len(plan.kept) < len(plan.index.pts):
        return False
    with open_video(source) as (_, stream):
        if stream.codec_context.name not in COPIED:
            return False
    with open_video(source) as (container, stream):
        return not any(one.is_discard or one.dts is None for one in container.demux(stream) if one.size)


def copy_pictures(source: Path, draft: Path, plan: PlannedPictures) -> None:
    """Writes an MP4 of the source's packets, without messages, at the plan's timestamps. A packet that the source's edit
    list hides is kept, since others may depend on it, if there is time before the first timestamp."""
    times = _packet_times(source, plan)
    with open_video(source) as (container, stream), _mp4(draft, plan) as target:
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


def _packet_times(source: Path, plan: PlannedPictures) -> list[tuple[int, int, int]]:
    """For each packet, in the order of decoding: presentation time (below 0: not kept), decoding time and duration."""
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
                position = int(index.pts.searchsorted(packet.pts))
                pts, lasts = plan.stamps[position], int(lasting[position])
            times.append((pts, lasts))
            early += [] if packet.dts is None else [pts + round((packet.dts - packet.pts) * scale)]
    if len(early) < len(times):
        early = decoding_times([pts for pts, _ in times])
    return [(pts, dts, lasts) for (pts, lasts), dts in zip(times, early, strict=True)]


def _mp4(draft: Path, plan: PlannedPictures) -> OutputContainer:
    import av

    options = {**_MP4, "video_track_timescale": str(plan.base.denominator)}
    container: OutputContainer = av.open(str(draft), "w", format="mp4", options=options)
    return container


def encode_pictures(
    source: Path, draft: Path, plan: PlannedPictures, quality: dict[str, str] = _X264, planes: str = "yuv420p"
) -> None:
    """Writes an MP4 in H.264 of the plan's pictures, upright and redacted, at its timestamps."""
    import av
    from av.bitstream import BitStreamFilterContext

    without = BitStreamFilterContext(ANNEX_B["h264"], "h264")
    lasting = dict(zip(plan.stamps, np.diff(plan.stamps).tolist(), strict=False))
    with _mp4(draft, plan) as target:
        stream: VideoStream | None = None
        for position, pixels in enumerate(_result_pictures(source, plan)):
            if stream is None:
                stream = _picture_stream(target, pixels, plan.base, quality, planes)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(
                format=planes, dst_colorspace="ITU709", dst_color_range="MPEG"
            )
            frame.pts, frame.time_base = plan.stamps[position], plan.base
            _mux(target, _filtered(without, stream.encode(frame)), lasting)
        if stream is not None:
            _mux(target, _filtered(without, stream.encode(None)), lasting)


def _mux(target: OutputContainer, packets: Iterable[Packet[Any]], lasting: Mapping[int, int]) -> None:
    for packet in packets:
        packet.duration = lasting.get(packet.pts or 0, 0)
        target.mux(packet)


def _filtered(filters: BitStreamFilterContext, packets: Iterable[Packet[Any]]) -> Iterator[Any]:
    for packet in packets:
        yield from filters.filter(packet)


def _result_pictures(source: Path, plan: PlannedPictures) -> Iterator[Pixels]:
    """The result's pictures; odd sides are made even, as H.264 requires, by repeating the last line."""
    masking = Masking()
    for (pts, pixels), redactions in zip(shown_pictures(source, plan), plan.touched, strict=True):
        hidden = masking.hide(pixels, redactions, plan.index.seconds(pts)) if redactions else pixels
        odd = [(0, side % 2) for side in hidden.shape[:2]]
        yield np.pad(hidden, [*odd, (0, 0)], mode="edge") if any(hidden.shape[k] % 2 for k in (0, 1)) else hidden


def _picture_stream(
    target: OutputContainer, pixels: Pixels, base: Fraction, quality: dict[str, str], planes: str
) -> VideoStream:
    from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc

    stream = target.add_stream("libx264", options=quality)
    stream.height, stream.width = pixels.shape[:2]
    stream.pix_fmt, stream.time_base, stream.codec_context.time_base = planes, base, base
    context = stream.codec_context
    context.colorspace, context.color_range = int(Colorspace.ITU709), int(ColorRange.MPEG)
    context.color_primaries, context.color_trc = int(ColorPrimaries.BT709), int(ColorTrc.BT709)
    stream.thread_type = "AUTO"
    return stream


PLAYED = COPIED - {"hevc"}
"""The codecs of these that every browser decodes; HEVC plays on some systems only."""
_PLANES = ("yuv420p", "yuvj420p")  # browsers decode neither 10 bits nor colour in full resolution everywhere
_FINEST = 1_000_000
_OFF = Fraction(1, _FINEST)


def write_playback(source: Path, index: FrameIndex, out: Path, region: Region | None = None) -> bool:
    """Writes a video for browsers, without sound, metadata and messages; the header comes first, so that it plays while
    it loads.

    All but the `region` is black. The picture with timestamp `pts` is at (pts - index.pts[0]) * time_base after
    `playback_lead`, to the microsecond; the first picture in the file is at 0, since players differ in how they treat
    another start. Returns whether the packets were copied. Raises `InputError` where the video can't be read, or an MP4
    can't hold these times.
    """
    check_size(source)
    facts = read_container(source)
    if region is None and _plays_as_it_is(source, index, facts):
        hidden = int(index.pts[0] - index.keys[0]) if index.edited else 0
        plan = _playback_plan(source, index, hidden)
        try:
            with _written(source):
                copy_pictures(source, out, plan)
            if _has_times(out, plan, hidden=bool(hidden)) and read_container(out).display == facts.display:
                return True
        except InputError:
            pass  # what can't be copied exactly is encoded
        out.unlink(missing_ok=True)
    plan = _playback_plan(source, index, 0, outside_of(region) if region is not None else ())
    with _written(source):
        encode_pictures(source, out, plan)
    if not _has_times(out, plan, hidden=False):
        raise InputError(source, found="pictures that can't be given their times in an MP4", expected="another file")
    return False


def playback_lead(index: FrameIndex, played: FrameIndex) -> float:
    """The seconds of a written MP4 before the first picture of its source: pictures that an edit list hides and others
    depend on. They are kept, since browsers disagree on what an MP4's own edit list hides."""
    first = len(played.pts) - len(index.pts)
    return float(int(played.pts[first]) * played.time_base)


def _playback_plan(
    source: Path, index: FrameIndex, hidden: int, covered: tuple[Redaction, ...] = ()
) -> PlannedPictures:
    base = Fraction(1, min(index.time_base.denominator, _FINEST))
    first, scale = int(index.pts[0]) - hidden, index.time_base / base
    end = index.zero + int(Fraction(probe(source).duration_s) / index.time_base)
    stamps = [round((int(pts) - first) * scale) for pts in [*index.pts, max(end, int(index.pts[-1]) + 1)]]
    return PlannedPictures(index, base, [int(pts) for pts in index.pts], stamps, [covered] * len(index.pts), ())


def _plays_as_it_is(source: Path, index: FrameIndex, facts: ContainerFacts) -> bool:
    """Whether browsers decode the packets, and display the pictures as they are or after a quarter turn: they differ in
    what they make of mirrors, other rotations, cropping and transparency."""
    display = facts.display
    if display.turn.mirrored or display.turn.degrees or any(display.cropping) or facts.alpha:
        return False
    with open_video(source) as (_, stream):
        return index.stamped and stream.codec_context.name in PLAYED and stream.codec_context.pix_fmt in _PLANES


def _has_times(path: Path, plan: PlannedPictures, *, hidden: bool) -> bool:
    """Whether the file, read back, has the plan's timestamps, and only hidden pictures before them."""
    found = read_index(path)
    before = len(found.pts) - len(plan.kept)
    if before < 0 or (before > 0) != hidden or found.pts[0] != 0:
        return False
    pairs = zip(found.pts[before:].tolist(), plan.stamps, strict=False)
    return all(abs(pts * found.time_base - stamp * plan.base) < _OFF for pts, stamp in pairs)
