"""What a picture looks like, in 255 bits: near-duplicates differ in few of them, whatever their encoding."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["BITS", "CROPS", "Fingerprint", "Hashes", "distances", "fingerprint", "hashes"]

Hashes = NDArray[np.uint64]

_SIDE = 64
_WAVES = 16
BITS = _WAVES * _WAVES - 1
_WORDS = 4
_FLAT = 6.0  # standard deviation of brightness; below it there is nothing to know a picture by
CROPS = {"cropped by a twentieth": 0.05, "cropped by a tenth": 0.1}
"""How much is cut off at each side of the picture before it is hashed as well."""


@dataclass(frozen=True)
class Fingerprint:
    """The hashes of n pictures that tell something, n × 4 words each: as they are, mirrored left to right, and
    cropped. `places` are the numbers of these pictures among all."""

    plain: Hashes
    mirrored: Hashes
    cropped: dict[str, Hashes]
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places)


def fingerprint(jpegs: Sequence[bytes]) -> Fingerprint:
    """Of a video's sampled frames, or of one image. Flat pictures (black, a fade) are left out: they are like
    every other flat one."""
    places, plain, mirrored = [], [], []
    cropped: dict[str, list[Hashes]] = {name: [] for name in CROPS}
    for place, jpeg in enumerate(jpegs):
        light = _light(jpeg)
        if _points(light).std() < _FLAT:
            continue
        places.append(place)
        plain.append(_bits(_waves(light)))
        mirrored.append(_bits(_waves(light) * np.where(np.arange(_WAVES) % 2, -1.0, 1.0)))
        for name, edge in CROPS.items():
            cropped[name].append(_bits(_waves(_inner(light, edge))))
    return Fingerprint(
        _stacked(plain),
        _stacked(mirrored),
        {name: _stacked(rows) for name, rows in cropped.items()},
        np.array(places, dtype=np.int64),
    )


def hashes(jpeg: bytes) -> Hashes:
    """One picture's hash, four words: its 255 slowest waves of brightness (a cosine transform of 64 × 64
    points), a bit each, set where the wave is stronger than the median one.

    Brightness and contrast leave it as it is; encoding, scaling and a narrow border change little; a turn, a
    wide border or another shape change everything.
    """
    return _bits(_waves(_light(jpeg)))


def distances(first: Hashes, second: Hashes) -> NDArray[np.float64]:
    """Share of bits in which each of n hashes differs from each of m: n × m, from 0 (the same) to 1;
    unrelated pictures lie near a half."""
    different = np.zeros((len(first), len(second)), dtype=np.uint16)
    for word in range(_WORDS):
        different += np.bitwise_count(first[:, word, None] ^ second[None, :, word])
    return different / BITS


def _light(jpeg: bytes) -> Image:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        opened.draft("L", (4 * _SIDE, 4 * _SIDE))
        return opened.convert("L")


def _inner(light: Image, edge: float) -> Image:
    across, down = round(edge * light.width), round(edge * light.height)
    return light.crop((across, down, light.width - across, light.height - down))


def _points(light: Image) -> NDArray[np.float64]:
    from PIL.Image import Resampling

    return np.asarray(light.resize((_SIDE, _SIDE), Resampling.BOX), dtype=np.float64)


def _waves(light: Image) -> NDArray[np.float64]:
    from scipy.fft import dctn

    waves: NDArray[np.float64] = dctn(_points(light), norm="ortho")[:_WAVES, :_WAVES]
    return waves


def _bits(waves: NDArray[np.float64]) -> Hashes:
    slow = waves.ravel()[1:]
    bits = np.concatenate([slow > np.median(slow), [False]])
    return np.packbits(bits).view(np.uint64)


def _stacked(rows: Sequence[Hashes]) -> Hashes:
    return np.stack(rows) if rows else np.zeros((0, _WORDS), dtype=np.uint64)
