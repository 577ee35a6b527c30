"""Streams without the messages that stand between their pictures: the encoder's settings, captions, times, places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.stream import VideoStream

ANNEX_B = {"h264": "filter_units=remove_types=6", "hevc": "filter_units=remove_types=39|40"}
"""FFmpeg's filter for packets whose units begin with start codes, by codec."""
COPIED = {*ANNEX_B, "vp9"}
"""The codecs whose packets are copied into an MP4 that browsers play (AV1 can't be by this library; VP9 has no
messages)."""
_TYPES = {"h264": (31, 0, {6}), "hevc": (63, 1, {39, 40})}  # mask and shift of a unit's type; those of messages
_LENGTHS = {"h264": 4, "hevc": 21}  # the byte of the header that says how long a unit's length is


def without_messages(stream: VideoStream) -> tuple[bytes | None, Callable[[Packet[Any]], Iterator[Packet[Any]]]]:
    """The header to write in place of the stream's (None: its own), and what makes of one packet the one without
    messages. Units with lengths (ISO/IEC 14496-15, as in MP4 and Matroska) are read here, since FFmpeg's filter gives
    them start codes, which an MP4 must not have."""
    from av.bitstream import BitStreamFilterContext

    name = stream.codec_context.codec.canonical_name
    header = stream.codec_context.extradata or b""
    if name in _TYPES and header[:1] == b"\x01" and len(header) > _LENGTHS[name]:
        size = (header[_LENGTHS[name]] & 3) + 1
        return (_hevc_header(header) if name == "hevc" else None), lambda packet: _shorter(packet, name, size)
    if name not in ANNEX_B:
        return None, lambda packet: iter([packet])
    context = BitStreamFilterContext(ANNEX_B[name], stream)
    return None, lambda packet: iter(context.filter(packet))


def _shorter(packet: Packet[Any], name: str, size: int) -> Iterator[Packet[Any]]:
    """The packet without its units that are messages; nothing where it held no others."""
    from av import Packet

    raw, place, kept = bytes(packet), 0, []
    mask, shift, messages = _TYPES[name]
    while place + size < len(raw):
        end = place + size + int.from_bytes(raw[place : place + size])
        if raw[place + size] >> shift & mask not in messages:
            kept.append(raw[place:end])
        place = end
    if kept:
        yield Packet(b"".join(kept))


def _hevc_header(header: bytes) -> bytes:
    """An `hvcC` header (ISO/IEC 14496-15, 8.3.3.1) without the arrays of messages, in which an encoder writes its
    settings. A broken one stays as it is."""
    kept, place = [], 23
    for _ in range(header[22] if len(header) > 22 else 0):
        end = place + 3
        for _ in range(int.from_bytes(header[place + 1 : place + 3])):
            end += 2 + int.from_bytes(header[end : end + 2])
        if end > len(header):
            return header
        if header[place] & 63 not in _TYPES["hevc"][2]:
            kept.append(header[place:end])
        place = end
    return header[:22] + bytes([len(kept)]) + b"".join(kept)
