"""The sound of a long recording in parts that a recogniser of speech takes, cut where it is quietest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proctor.media.audio import RATE, SILENT, Sound, as_wav, sound_samples

_STEP = RATE // 50  # samples of one value of loudness
_PAUSE = 20  # such values: a cut lies in the middle of the quietest 0.4 s
_MARGIN_S = 1.0  # a part is never shorter, but the last one of a short recording
_FAR_BELOW = 100.0  # 40 dB below speech: nothing that anybody says
_CLOSE_BELOW = 10.0  # 20 dB below it: a pause


@dataclass(frozen=True, slots=True)
class SpeechPart:
    """A stretch of a recording. `sound` is what a recogniser gets, `until` when the file's sound ends in it (seconds of
    the file's clock), `loudness` the root mean square of each 20 ms, full scale 1; `cut_short` says that it ends at a
    cut where somebody may be speaking."""

    sound: Sound
    until: float
    loudness: NDArray[np.float32]
    cut_short: bool = False

    @property
    def silent(self) -> bool:
        """Whether nothing at all can be heard."""
        return bool(np.max(self.loudness, initial=0.0) < SILENT)

    def heard(self, start: float, end: float) -> bool:
        """Whether anything is heard from `start` to `end`, in seconds from the part's own start: louder than −66 dB,
        and not 40 dB below what is loud here (the 95th percentile)."""
        first, last = max(0, int(start * RATE / _STEP)), int(np.ceil(end * RATE / _STEP))
        floor = max(SILENT, float(np.percentile(self.loudness, 95)) / _FAR_BELOW)
        return bool(np.max(self.loudness[first : max(last, first + 1)], initial=0.0) >= floor)


def speech_parts(path: Path, span: tuple[float, float], longest_s: float) -> Iterator[SpeechPart]:
    """The sound from the first to the second time (seconds of the file's clock) in parts of at most `longest_s` (more
    than 2), on end: a part begins with the sample after the last one of the part before. Each is cut in the middle of
    the last of the quietest 0.4 s of its second half. Raises `InputError` as `sound_samples`."""
    at, end = span
    while at < end:
        ends = min(at + longest_s, end)
        samples, until = sound_samples(path, (at, ends))
        loudness = _loudness(samples)
        cut_short = False
        if ends < end:
            place = _quietest(loudness)
            around = loudness[place - _PAUSE // 2 : place + _PAUSE // 2]
            cut_short = bool(np.max(around) >= max(SILENT, float(np.percentile(loudness, 95)) / _CLOSE_BELOW))
            samples, loudness = samples[: place * _STEP], loudness[:place]
            ends = at + len(samples) / RATE
        yield SpeechPart(Sound(as_wav(samples), "", (at, ends)), min(until, ends), loudness, cut_short)
        at = ends


def _loudness(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    padded = np.pad(samples, (0, -len(samples) % _STEP)).reshape(-1, _STEP)
    found: NDArray[np.float32] = np.sqrt(np.mean(padded * padded, axis=1))
    return found


def _quietest(loudness: NDArray[np.float32]) -> int:
    """The number of the value before which a part ends."""
    low, high = len(loudness) // 2, len(loudness) - int(_MARGIN_S * RATE / _STEP)
    energy = np.convolve(loudness.astype(np.float64) ** 2, np.ones(_PAUSE), mode="valid")
    starts = energy[low - _PAUSE // 2 : high - _PAUSE // 2]
    quiet = np.flatnonzero(starts <= max(2 * float(starts.min()), _PAUSE * SILENT**2))
    return low + int(quiet[-1])
