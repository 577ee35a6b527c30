"""The sound of one file: what its track holds, any stretch as a WAV, exact to the sample, and parts for speech recognition.

Times are those of the file's own clock, as of videos: it shows 0 at the file's first timestamp. A sound that begins
later than its pictures stays later; where the track holds nothing, there is silence.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.media.container import audio_track, reason_of, seek
from proctor.media.pyav import exact, open_input
from proctor.media.shown import MAX_SOUND_S, Sound

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer

RATE = 16_000
"""Samples a second that systems get, in one channel, as speech models expect."""

_FORMATS = "aiff,asf,avi,flac,flv,matroska,mov,mp3,mpeg,mpegts,ogg,wav,w64"
_SEEKS_EXACTLY = ("flac", "mov,mp4", "mp3", "ogg", "wav")
_DECLARE_DURATION = ("flac", "matroska,webm", "mov,mp4", "mp3", "wav")
_FAR_S, _RUN_UP_S = 20.0, 1.0  # seek for later starts; decoders need a run-up to be in step
_STEP_S = 0.02  # timestamps that jump less are rounding (Matroska counts milliseconds)
_TRUNCATED_S = 0.5
_GAP_S = 0.1
_HIGHEST_RATE = 192_000
SILENT = 16 / 32768  # −66 dB: no microphone is as quiet, and no encoder's silence as loud
_LOST = 8  # parts of a track that may be broken before the file counts as broken


def audio_duration(path: Path) -> float:
    """The duration of an audio file in seconds on its own clock, from all its packets. Raises `InputError` where it
    can't be read, holds no sound, or ends more than half a second before its header says."""
    import av

    with _opened(path) as (container, stream):
        base, zero, there = exact(stream.time_base, Fraction(1)), _zero(container), Fraction(0)
        with suppress(av.FFmpegError):  # where it breaks off
            for packet in container.demux(stream):
                if packet.pts is not None:
                    there = max(there, (packet.pts + (packet.duration or 0)) * base - zero)
        claimed = _claimed(container, path, there)
    if claimed is not None and claimed - there > _TRUNCATED_S:
        raise InputError(
            path,
            found=f"a truncated sound: it ends at {float(there):.1f} s",
            expected=f"{float(claimed):.1f} s as its header says",
        )
    return float(there if claimed is None else min(there, claimed))


def cut_sound(path: Path, span: tuple[float, float], *, whole: bool = False) -> bytes:
    """The span (seconds of the file's clock) as a WAV (see `Sound`).

    Raises `InputError` where the file can't be read, holds no sound in the span, or only silence, where the span is
    longer than `MAX_SOUND_S`, and with `whole` where more than 0.1 s of it can't be decoded (the track of a video may
    begin after its pictures and end before them).
    """
    start, end = span
    if end - start > MAX_SOUND_S:
        expected = f"at most {MAX_SOUND_S:g} s: cut it with start and end"
        raise InputError(path, found=f"{end - start:.1f} s of sound", expected=expected)
    rate, samples, heard, _ = _samples(path, start, end)
    if not heard:
        raise InputError(path, found=f"no sound from {start:g} s to {end:g} s", expected="a stretch of its sound")
    if whole and len(samples) - heard > _GAP_S * rate:
        found = f"{heard / rate:.1f} s that can be decoded of {len(samples) / rate:.1f} s"
        raise InputError(path, found=found, expected="a recording without gaps")
    peak = float(np.max(np.abs(samples), initial=0.0))
    if peak < SILENT:
        raise InputError(path, found=f"silence from {start:g} s to {end:g} s", expected="sound that can be heard")
    return as_wav(_resampled(samples, rate, round((end - start) * RATE)))


def sound_samples(path: Path, span: tuple[float, float]) -> tuple[NDArray[np.float32], float]:
    """The samples of a span in one channel, `RATE` a second, full scale 1, and the second of the file's clock at which
    the sound in it ends (the span's start without any). Samples are 0 where the file holds nothing. Raises `InputError`
    where the file can't be read or has no audio track."""
    start, end = span
    rate, samples, _, until = _samples(path, start, end)
    return _resampled(samples, rate, round((end - start) * RATE)), until


@contextmanager
def _opened(path: Path) -> Iterator[tuple[InputContainer, AudioStream]]:
    """The container and the audio track that is heard (see `audio_track`). Playlists are refused, whatever their names."""
    import av

    try:
        with open_input(path, format_whitelist=_FORMATS) as container:
            stream = audio_track(container)
            if stream is None:
                raise InputError(path, found="no audio track", expected="sound")
            if not 0 < stream.codec_context.sample_rate <= _HIGHEST_RATE:
                found = f"{stream.codec_context.sample_rate:,} samples a second"
                raise InputError(path, found=found, expected=f"1 to {_HIGHEST_RATE:,}")
            yield container, stream
    except (av.FFmpegError, OSError) as error:
        raise InputError(path, found=f"a sound that can't be read ({reason_of(error)})") from error


def _zero(container: InputContainer) -> Fraction:
    """The file's own timestamp, in seconds, at which its clock shows 0."""
    start: int | None = getattr(container, "start_time", None)  # None where no stream tells
    return Fraction(start or 0, 1_000_000)


def _claimed(container: InputContainer, path: Path, there: Fraction) -> Fraction | None:
    """The length that the header states; None without one. For a WAV the library reports what is there instead."""
    if container.format.name == "wav":
        with path.open("rb") as file:
            stated, size = int.from_bytes(file.read(8)[4:], "little") + 8, path.stat().st_size
        return there * stated / size if size < stated < 2**32 - 1 else there
    told = container.duration is not None and container.format.name.startswith(_DECLARE_DURATION)
    return Fraction(container.duration or 0, 1_000_000) if told else None


def _samples(
    path: Path, start: float, end: float, *, sought: bool = True
) -> tuple[int, NDArray[np.float32], int, float]:
    """The rate, all samples of the span in one channel, how many of them the file holds (the others are 0), and when
    the last of those ends."""
    with _opened(path) as (container, stream):
        rate = stream.codec_context.sample_rate
        first, last = round(start * rate), round(end * rate)
        if sought and start > _FAR_S and container.format.name.startswith(_SEEKS_EXACTLY):
            target = (Fraction(start - _RUN_UP_S) + _zero(container)) / exact(stream.time_base, Fraction(1))
            if not seek(container, int(target), stream):
                return _samples(path, start, end, sought=False)
        found = np.zeros(last - first, dtype=np.float32)
        heard, until = 0, first
        for at, part in _positioned(container, stream, path, rate):
            low, high = max(at, first), min(at + len(part), last)
            if low < high:
                found[low - first : high - first] = part[low - at : high - at]
                heard, until = heard + high - low, max(until, high)
            if at + len(part) >= last:
                break
    return rate, found, heard, until / rate


def _positioned(
    container: InputContainer, stream: AudioStream, path: Path, rate: int
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The decoded parts in one channel, each with the number of its first sample on the file's clock: where the part
    before ends, unless the timestamps show a gap."""
    zero, step = _zero(container), round(_STEP_S * rate)
    expected: int | None = None
    for frame, mono in _decoded(container, stream, path):
        if frame.sample_rate != rate:
            raise InputError(path, found=f"a track that changes from {rate} to {frame.sample_rate} samples a second")
        at = expected
        if frame.pts is not None:
            told = round((frame.pts * exact(frame.time_base, Fraction(1)) - zero) * rate)
            at = told if expected is None or abs(told - expected) > step else expected
        yield at or 0, mono
        expected = (at or 0) + len(mono)


def _decoded(
    container: InputContainer, stream: AudioStream, path: Path
) -> Iterator[tuple[AudioFrame, NDArray[np.float32]]]:
    import av

    mixer, form, lost = None, None, 0
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.FFmpegError as error:
            lost += 1
            if lost > _LOST:
                raise InputError(path, found="a broken sound: more than 8 parts can't be decoded") from error
            continue
        for frame in frames:
            if mixer is None or form != (frame.format.name, frame.layout.name, frame.sample_rate):
                form = (frame.format.name, frame.layout.name, frame.sample_rate)
                mixer = av.AudioResampler(format="fltp", layout="mono", rate=frame.sample_rate)
            parts = [one.to_ndarray()[0] for one in mixer.resample(frame)]
            mono = np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)
            yield frame, np.nan_to_num(mono, nan=0.0, posinf=1.0, neginf=-1.0)


def _resampled(samples: NDArray[np.float32], rate: int, count: int) -> NDArray[np.float32]:
    """`count` samples at `RATE` (zero-phase filter, Kaiser window: `scipy.signal.resample_poly`)."""
    if rate == RATE:
        return samples[:count]
    from scipy.signal import resample_poly

    shared = gcd(rate, RATE)
    found: NDArray[np.float32] = resample_poly(samples, RATE // shared, rate // shared)[:count]
    return np.pad(found, (0, count - len(found)))


def as_wav(samples: NDArray[np.float32]) -> bytes:
    """Samples at `RATE`, full scale 1, as a WAV of 16 bits."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes())
    return out.getvalue()


def silenced(wav: bytes, start: float, stretches: Sequence[tuple[float, float]]) -> bytes:
    """A WAV of `cut_sound` that begins at `start`, with silence in these stretches (seconds of its file); the same bytes
    without any."""
    if not stretches:
        return wav
    with wave.open(io.BytesIO(wav)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").copy()
    for first, last in stretches:
        rows = [min(max(0, round((time - start) * RATE)), len(samples)) for time in (first, last)]
        samples[rows[0] : rows[1]] = 0
    return as_wav(samples.astype(np.float32) / np.float32(32768))


_LOUDNESS_STEP = RATE // 50  # samples of one value of loudness
_PAUSE = 20  # such values: a cut lies in the middle of the quietest 0.4 s
_MARGIN_S = 1.0  # a part is never shorter, but the last one of a short recording
_FAR_BELOW = 100.0  # 40 dB below speech: nothing is said
_CLOSE_BELOW = 10.0  # 20 dB below it: a pause


@dataclass(frozen=True, slots=True)
class SpeechPart:
    """A part of a recording. `sound` is for the recogniser, `until` is when the file's sound ends in it (seconds of the
    file's clock), `loudness` the root mean square of each 20 ms, full scale 1; `cut_short`: it ends at a cut where
    somebody may be speaking."""

    sound: Sound
    until: float
    loudness: NDArray[np.float32]
    cut_short: bool = False

    @property
    def silent(self) -> bool:
        """Whether the part is silent."""
        return bool(np.max(self.loudness, initial=0.0) < SILENT)

    def heard(self, start: float, end: float) -> bool:
        """Whether anything is heard from `start` to `end`, in seconds from the part's own start: louder than −66 dB,
        and not 40 dB below what is loud here (the 95th percentile)."""
        first, last = max(0, int(start * RATE / _LOUDNESS_STEP)), int(np.ceil(end * RATE / _LOUDNESS_STEP))
        floor = max(SILENT, float(np.percentile(self.loudness, 95)) / _FAR_BELOW)
        return bool(np.max(self.loudness[first : max(last, first + 1)], initial=0.0) >= floor)


def speech_parts(path: Path, span: tuple[float, float], longest_s: float) -> Iterator[SpeechPart]:
    """The sound of a span (seconds of the file's clock) in consecutive parts of at most `longest_s` seconds (more than
    2). Each is cut in the middle of the last of the quietest 0.4 s of its second half. Raises `InputError` as
    `sound_samples`."""
    at, end = span
    while at < end:
        ends = min(at + longest_s, end)
        samples, until = sound_samples(path, (at, ends))
        loudness = _loudness(samples)
        cut_short = False
        if ends < end:
            position = _quietest(loudness)
            around = loudness[position - _PAUSE // 2 : position + _PAUSE // 2]
            cut_short = bool(np.max(around) >= max(SILENT, float(np.percentile(loudness, 95)) / _CLOSE_BELOW))
            samples, loudness = samples[: position * _LOUDNESS_STEP], loudness[:position]
            ends = at + len(samples) / RATE
        yield SpeechPart(Sound(as_wav(samples), "", (at, ends)), min(until, ends), loudness, cut_short)
        at = ends


def _loudness(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    padded = np.pad(samples, (0, -len(samples) % _LOUDNESS_STEP)).reshape(-1, _LOUDNESS_STEP)
    found: NDArray[np.float32] = np.sqrt(np.mean(padded * padded, axis=1))
    return found


def _quietest(loudness: NDArray[np.float32]) -> int:
    """The index of the loudness value before which a part ends."""
    low, high = len(loudness) // 2, len(loudness) - int(_MARGIN_S * RATE / _LOUDNESS_STEP)
    energy = np.convolve(loudness.astype(np.float64) ** 2, np.ones(_PAUSE), mode="valid")
    starts = energy[low - _PAUSE // 2 : high - _PAUSE // 2]
    quiet = np.flatnonzero(starts <= max(2 * float(starts.min()), _PAUSE * SILENT**2))
    return low + int(quiet[-1])
