"""Which frames of a stretch are shown: spread over it, and visibly different."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from proctor.media.fingerprints import distances, hashes

__all__ = ["choose", "stretches"]

_TRIES = 12
_MIDDLE = 0.6  # of its slot: so that neighbours keep a distance in time

Grab = Callable[[Sequence[float]], list[bytes]]


def stretches(
    duration: float, seconds: float, count: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Up to `count` stretches of `seconds`, in order and apart from each other, each somewhere in its equal
    share of the video; fewer where the video is too short for so many, none where it is shorter than one.

    >>> [(round(start, 2), round(end, 2)) for start, end in stretches(10.0, 4.0, 5, np.random.default_rng(0))]
    [(0.64, 4.64), (5.27, 9.27)]
    """
    fitting = min(count, int(duration / seconds + 1e-9))
    if fitting < 1:
        return []
    share = duration / fitting
    starts = [number * share + rng.random() * (share - seconds) for number in range(fitting)]
    return [(start, start + seconds) for start in starts]


def choose(
    stretch: tuple[float, float], count: int, apart: float, grab: Grab, rng: np.random.Generator
) -> tuple[list[float], list[bytes]] | None:
    """`count` times of the stretch, one in each of as many equal slots, and their pictures; None where twelve
    draws do not find pictures that all differ.

    Two pictures differ visibly when at least the share `apart` of their perceptual hashes' bits does.
    """
    start, end = stretch
    slot = (end - start) / count
    for _ in range(_TRIES):
        inside = (1 - _MIDDLE) / 2 + _MIDDLE * rng.random(count)
        times = [float(start + slot * (number + inside[number])) for number in range(count)]
        pictures = grab(times)
        looks = np.stack([hashes(picture) for picture in pictures])
        between = distances(looks, looks)[np.triu_indices(count, 1)]
        if between.min() >= apart:
            return times, pictures
    return None
