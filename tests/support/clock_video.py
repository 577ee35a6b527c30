"""Small videos whose pixels tell which frame they are, so that a test can say what it was shown.

The frame's number stands in twelve columns, a bit each: white over black is 1, black over white is 0.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

BITS = 12
WIDTH, HEIGHT = BITS * 16, 96
_MILLISECOND = Fraction(1, 1000)


@dataclass(frozen=True)
class ClockVideo:
    """How to make one: `times_ms` are the frames' presentation times in milliseconds."""

    times_ms: Sequence[int]
    codec: str = "libx264"
    keyint: int = 250
    b_frames: int = 0
    audio_s: float = 0.0
    rate: int = 25
    rotation: int = 0
    pixel_aspect: Fraction = Fraction(1)
    options: dict[str, str] = field(default_factory=dict)


_MADE: dict[str, bytes] = {}


def write_clock_video(path: Path, video: ClockVideo) -> Path:
    """Writes the video, which is encoded once; the container follows from the file's extension."""
    key = f"{path.suffix} {video}"
    if key in _MADE:
        path.write_bytes(_MADE[key])
    else:
        _MADE[key] = _encode(path, video).read_bytes()
    return path


def _encode(path: Path, video: ClockVideo) -> Path:
    with av.open(str(path), "w") as container:
        options = {"g": str(video.keyint), "bf": str(video.b_frames), **_speed(video.codec), **video.options}
        stream = container.add_stream(video.codec, rate=video.rate, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        constant = path.suffix == ".avi" or video.codec == "mpeg2video"
        base = Fraction(1, video.rate) if constant else _MILLISECOND
        stream.codec_context.time_base = base
        if video.pixel_aspect != 1:
            stream.codec_context.sample_aspect_ratio = video.pixel_aspect
        if video.rotation:
            stream.set_display_rotation(video.rotation)
        sound = container.add_stream("aac", rate=16000) if video.audio_s else None
        for number, time_ms in enumerate(video.times_ms):
            frame = av.VideoFrame.from_ndarray(_clock(number), format="rgb24")
            frame.pts, frame.time_base = (number if constant else time_ms), base
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if sound is not None:
            assert isinstance(sound, av.AudioStream)
            _write_silence(container, sound, video.audio_s)
    return path


def read_clock(jpeg: bytes) -> int:
    """The number that a picture shows. Fails where the picture shows none."""
    with Image.open(io.BytesIO(jpeg)) as opened:
        return number_in(np.asarray(opened.convert("L")))


def number_in(grey: NDArray[np.uint8]) -> int:
    """The same of the grey values of a picture."""
    top, bottom = np.asarray(Image.fromarray(grey).resize((BITS, 2), Image.Resampling.BOX), dtype=int)
    assert (np.abs(top - bottom) > 100).all(), f"no clock in the picture: {top} over {bottom}"
    return int(sum(1 << bit for bit in range(BITS) if top[bit] > bottom[bit]))


def shown_by_decoding(path: Path) -> list[tuple[Fraction, int]]:
    """All frames by plain decoding from the start: seconds since the file's first timestamp, and number."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        start = Fraction(container.start_time or 0, 1_000_000)
        shown = []
        for frame in container.decode(stream):
            assert frame.pts is not None
            assert frame.time_base is not None
            out = io.BytesIO()
            Image.fromarray(frame.to_ndarray(format="rgb24")).save(out, "JPEG", quality=90)
            shown.append((frame.pts * frame.time_base - start, read_clock(out.getvalue())))
        return shown


def _clock(number: int) -> NDArray[np.uint8]:
    bits = np.array([(number >> bit) & 1 for bit in range(BITS)], dtype=np.uint8) * 255
    rows = np.stack([bits, 255 - bits])
    grey = rows.repeat(HEIGHT // 2, axis=0).repeat(WIDTH // BITS, axis=1)
    return np.repeat(grey[:, :, None], 3, axis=2)


def _speed(codec: str) -> dict[str, str]:
    return {
        "libx264": {"preset": "ultrafast", "sc_threshold": "0", "b-pyramid": "normal"},
        "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "lag-in-frames": "8"},
    }.get(codec, {})


def _write_silence(container: av.container.OutputContainer, sound: av.AudioStream, seconds: float) -> None:
    done = 0
    while done < seconds * 16000:
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), dtype=np.float32), format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = 16000, done, Fraction(1, 16000)
        container.mux(sound.encode(frame))
        done += 1024
    container.mux(sound.encode(None))
