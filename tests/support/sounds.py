"""Files with known sound: tones at known samples, in every format, and videos whose sound begins late."""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.stream import Disposition
from numpy.typing import NDArray

Samples = NDArray[np.float32]
CODECS = {
    ".wav": "pcm_s16le",
    ".mp3": "libmp3lame",
    ".m4a": "aac",
    ".flac": "flac",
    ".ogg": "libopus",
    ".opus": "libopus",
}


def tones(seconds: float, bursts: Sequence[tuple[float, float, float]], rate: int = 48_000) -> Samples:
    """Silence with sines of half the full scale: (from, to, hertz), in seconds."""
    found = np.zeros(round(seconds * rate), dtype=np.float32)
    for start, end, hertz in bursts:
        first, last = round(start * rate), round(end * rate)
        found[first:last] = 0.5 * np.sin(2 * np.pi * hertz * np.arange(last - first) / rate)
    return found


def write_sound(path: Path, samples: Samples, rate: int = 48_000, codec: str = "", channels: int = 1) -> Path:
    """An audio file; the format by its name's ending."""
    with av.open(str(path), "w") as out:
        _encode(out, [(codec or CODECS[path.suffix], samples, 0.0)], rate, channels)
    return path


def write_video(
    path: Path,
    seconds: float,
    samples: Samples | None,
    *,
    codec: str = "aac",
    offset: float = 0.0,
    rate: int = 48_000,
    grey: int = 128,
) -> Path:
    """A grey video of ten pictures a second whose sound, if any, begins at `offset` seconds."""
    with av.open(str(path), "w") as out:
        pictures = out.add_stream("libx264" if path.suffix != ".webm" else "libvpx", rate=10)
        pictures.width, pictures.height, pictures.pix_fmt = 64, 48, "yuv420p"
        stream = _stream(out, codec, rate, 1) if samples is not None else None
        for number in range(round(seconds * 10)):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), grey, np.uint8), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 10)
            out.mux(pictures.encode(frame))
        out.mux(pictures.encode(None))
        if samples is not None and stream is not None:
            _feed(out, stream, samples, offset, rate, 1)
    return path


def write_sounds(path: Path, *tracks: tuple[Samples, int, bool], rate: int = 48_000) -> Path:
    """A file of several audio tracks in AAC: the samples of each, its channels, and whether it is flagged as default."""
    with av.open(str(path), "w") as out:
        streams = []
        for _, channels, default in tracks:
            stream = _stream(out, "aac", rate, channels)
            stream.disposition = Disposition.default if default else Disposition(0)
            streams.append(stream)
        for stream, (samples, channels, _) in zip(streams, tracks, strict=True):
            _feed(out, stream, samples, 0.0, rate, channels)
    return path


def _encode(
    out: av.container.OutputContainer, tracks: Sequence[tuple[str, Samples, float]], rate: int, channels: int
) -> None:
    streams = [(_stream(out, codec, rate, channels), samples, offset) for codec, samples, offset in tracks]
    for stream, samples, offset in streams:
        _feed(out, stream, samples, offset, rate, channels)


def _stream(out: av.container.OutputContainer, codec: str, rate: int, channels: int) -> av.AudioStream:
    stream = out.add_stream(codec, rate=rate)
    assert isinstance(stream, av.AudioStream)
    stream.codec_context.layout = "mono" if channels == 1 else "stereo"
    return stream


def _feed(
    out: av.container.OutputContainer, stream: av.AudioStream, samples: Samples, offset: float, rate: int, channels: int
) -> None:
    context = stream.codec_context
    layout = "mono" if channels == 1 else "stereo"
    frame = av.AudioFrame.from_ndarray(np.repeat(samples[None, :], channels, axis=0), format="fltp", layout=layout)
    frame.sample_rate, frame.pts, frame.time_base = rate, round(offset * rate), Fraction(1, rate)
    mixer = av.AudioResampler(context.format, layout, rate, frame_size=context.frame_size or 1024)
    for part in [*mixer.resample(frame), *mixer.resample(None)]:
        out.mux(stream.encode(part))
    out.mux(stream.encode(None))


def heard(wav: bytes) -> Samples:
    """The samples of a WAV as systems get it; fails where it is of another form."""
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16_000)
        samples: Samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32)
        return samples / np.float32(32768)


def sounding(samples: Samples, above: float = 0.05) -> tuple[float, float]:
    """From when to when it is loud, in seconds."""
    loud = np.flatnonzero(np.abs(samples) > above)
    return float(loud[0]) / 16_000, float(loud[-1] + 1) / 16_000


def hertz(samples: Samples) -> float:
    """The strongest frequency."""
    spectrum = np.abs(np.fft.rfft(samples))
    return float(np.argmax(spectrum)) * 16_000 / len(samples)
