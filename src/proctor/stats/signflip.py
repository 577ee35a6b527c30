"""The paired test: the signs of the groups' differences are flipped."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from math import ceil, comb, log2

import numpy as np

from proctor.stats.clusters import Floats, Ints
from proctor.stats.special import expit, gammaln, ndtr

_ROUNDING = 1e-9  # of the sum of all sizes: sums that lie nearer are equal
_FINEST = 2**22  # steps that all sizes together may have for a common measure to be one
_ALL_UP_TO = 28  # groups up to which all sign patterns are counted where there is no common measure
_EXACT_COINS = 512
_FINELY_UP_TO = 1000  # groups up to which the rounding of their differences is bounded
_HALVES = 500  # coins whose patterns are counted before they are made shares: 2^500 is a float
_MOST_KNOWN = 200_000  # tests that are kept, in some 30 MB
_KNOWN: dict[bytes, float] = {}
_BERRY_ESSEEN = 0.56
_WAVE = 2000  # multiplications that the Fourier transform takes per value and unit of spread


def sign_flip(differences: Floats, open_between: tuple[float, float] = (0.0, 1.0)) -> Floats:
    """Two-sided p per column of `differences` (groups × pairs: a group's sum of a − b over its items).

    If the two systems' names could be exchanged within any group, the sign of each group's difference is a
    fair coin. p is the share of all sign patterns whose |sum| is at least the observed one (Fisher 1935, The
    Design of Experiments, section 21, with the group as the unit). It is computed, not drawn: each column
    alone, the same for a − b and b − a, and never 0 (at least 2 / 2^(groups that differ), as far as a float
    can tell).

    Where the differences are multiples of some number (whole marks, halves, thirds), the distribution of the
    sum is built up group by group, which is exact for any number of groups (Pagano and Tritchler 1983, Journal
    of the American Statistical Association 78:435); where that is long, it comes from its Fourier transform,
    tilted so that small p keep their digits. Where they aren't, all patterns of up to 28 groups are counted, half
    against half. The differences of more groups are rounded to 300 steps a group and p is that of a sum nearer
    to 0 by what the rounding can do, so it errs upwards, by about 1 % of itself at p = 0.05; with more than 1,000
    groups to 12 steps, nearer by the standard error of the rounding, by about 5 %.

    Who only asks on which side of a level p lies says so by `open_between`: a p that is certainly at most the lower number,
    or certainly above the higher one, may be given by its bound, which takes a fraction of the time.

    >>> sign_flip(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])).tolist()
    [0.25, 1.0]
    """
    ahead = np.where(differences.sum(axis=0) < 0, -differences, differences)
    columns = np.sort(ahead, axis=0).T
    exact = open_between == (0.0, 1.0)
    return np.array([_known(one) if exact else _p(one, open_between) for one in columns], dtype=np.float64)


def _known(ordered: Floats) -> float:
    """`_p`, kept by its differences: rankings under many readings of what runs lack test most pairs again."""
    key = blake2b(ordered.tobytes(), digest_size=16).digest()
    if (known := _KNOWN.get(key)) is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[key] = _p(ordered)
    return known


def least_p(groups: int) -> float:
    """The smallest p that `sign_flip` can give with this many groups, 2 / 2^groups: all of them differ the same way.

    >>> least_p(3), least_p(6)
    (0.25, 0.03125)
    """
    return float(2.0 ** (1 - max(1, groups)))


def fewest_groups(alpha: float = 0.05) -> int:
    """As many groups as it takes for one difference of two systems to be significant at all.

    >>> fewest_groups(), fewest_groups(0.01)
    (6, 8)
    """
    return ceil(1 - log2(alpha))


def common_measures(differences: Floats) -> Floats:
    """The greatest number that all differences of a column are multiples of, 0 where there is none.

    >>> common_measures(np.array([[2.0, 0.5, 0.0], [-4.0, 1.5, 0.0]])).tolist()
    [2.0, 0.5, 0.0]
    """
    whole = (differences == np.rint(differences)).all(axis=0)
    sizes = np.where(whole, np.abs(differences), 0.0).astype(np.int64)
    found = np.zeros(differences.shape[1])
    found[:] = np.gcd.reduce(sizes, axis=0)
    for column in np.flatnonzero(~whole):
        size = np.sort(np.abs(differences[:, column]))
        reach = float(size.sum())
        multiples = _multiples(size[size > _ROUNDING * reach / len(size)], reach)
        found[column] = 0.0 if multiples is None else reach / float(multiples.sum())
    return found


def _p(differences: Floats, open_between: tuple[float, float] = (0.0, 1.0)) -> float:
    size = np.sort(np.abs(differences))
    reach = float(size.sum())
    size = size[size > _ROUNDING * reach / max(1, len(size))]
    positive, negative = np.sort(differences[differences > 0]), np.sort(-differences[differences < 0])
    lesser = min(float(positive.sum()), float(negative.sum()))
    observed = reach - 2 * lesser
    if observed <= _ROUNDING * reach:
        return 1.0
    multiples = _multiples(size, reach)
    if multiples is None and len(size) <= _ALL_UP_TO:
        return _all_patterns(size, observed - _ROUNDING * reach)
    if multiples is None:
        few = len(size) <= _FINELY_UP_TO
        step = reach / (len(size) * (300 if few else 12))
        multiples = np.rint(size / step).astype(np.int64)
        errors = size - step * multiples
        spread = float(np.sqrt(errors @ errors))
        nearer = _rounded_by(errors, observed**2 / float(size @ size)) if few else spread
        most = int((multiples.sum() - (observed - nearer) / step) / 2)
    else:
        most = round(lesser * int(multiples.sum()) / reach)
    floor = max(2.0 ** (1 - len(size)), float(np.finfo(np.float64).tiny))
    least, highest = _bounds(multiples, most)
    if max(highest, floor) <= open_between[0]:
        return max(highest, floor)
    if least > open_between[1]:
        return least
    return min(1.0, max(2 * _at_most(multiples, most), floor))


def _bounds(multiples: Ints, most: int) -> tuple[float, float]:
    """What twice `_at_most` is at least and at most: by the normal distribution less all that it can be off (Berry and
    Esseen, with the constant of Shevtsova 2010, Doklady Mathematics 82:862), and by Hoeffding (1963)."""
    size = multiples.astype(np.float64)
    squared = float(size @ size)
    z = (float(size.sum()) - 2 * most) / np.sqrt(squared)
    off = _BERRY_ESSEEN * float((size**3).sum()) / squared**1.5
    return 2 * (float(ndtr(-z)) - off), 2 * float(np.exp(-(z**2) / 2))


def _rounded_by(errors: Floats, squared_z: float) -> float:
    """What a sum of ± errors exceeds in at most a thousandth of the patterns as extreme as the observed one.

    Both by Hoeffding's bounds (1963, Journal of the American Statistical Association 58:13), 2 exp(−z² / 2).
    """
    by_chance = np.sqrt((2 * np.log(1000) + squared_z) * float(errors @ errors))
    return float(min(by_chance, np.abs(errors).sum()))


def _multiples(size: Floats, reach: float) -> Ints | None:
    """The sizes as multiples of their greatest common measure (Euclid), None where there is none."""
    if (size == np.rint(size)).all() and reach < _FINEST:
        whole = size.astype(np.int64)
        return np.asarray(whole // np.gcd.reduce(whole), dtype=np.int64)
    measure = float(size[0])
    while reach / measure <= _FINEST:
        rest = np.abs(size - measure * np.rint(size / measure))
        larger = rest[rest > _ROUNDING * reach / _FINEST * 100]
        if not larger.size:
            multiples = np.rint(size / measure)
            measure = reach / float(multiples.sum())
            fits = np.abs(size - measure * multiples).max() <= 1e-12 * reach
            return multiples.astype(np.int64) if fits else None
        measure = float(larger.min())
    return None


def _all_patterns(size: Floats, target: float) -> float:
    """The share of all ± whose |sum| is at least `target`: every pattern of one half meets every one of the other."""
    left, right = (np.sort(_signed_sums(half)) for half in (size[::2], size[1::2]))
    enough = len(left) - np.searchsorted(left, target - right, side="left")
    return float(min(1.0, 2 * enough.sum() / 2.0 ** len(size)))


def _signed_sums(size: Floats) -> Floats:
    sums = np.zeros(1)
    for one in size:
        sums = np.concatenate([sums + one, sums - one])
    return sums


def _at_most(multiples: Ints, most: int) -> float:
    """P(Σ b · multiple ≤ most), each b a fair coin of 0 or 1: what the groups on the lesser side weigh."""
    value, times = np.unique(multiples, return_counts=True)
    value, times = value[value > 0], times[value > 0]
    length = np.minimum(value * times, most) + 1  # of what a value's coins are convolved with
    one_by_one = 3 * times + 3000 * times // (most + 1) < length
    work = (most + 1) * np.where(one_by_one, 3 * times, length).sum()
    if most > 0 and work > _WAVE * len(value) * np.sqrt((times * value.astype(np.float64) ** 2).sum()):
        return _tilted(value.astype(np.float64), times.astype(np.float64), most)
    chance, spare, reach = np.zeros(most + 1), np.zeros(most + 1), 0
    chance[0], halved = 1.0, 0
    for one, count, alone in zip(value.tolist(), times.tolist(), one_by_one.tolist(), strict=True):
        if not alone:
            coins = _coins(count)[: most // one + 1]
            spaced = np.zeros((len(coins) - 1) * one + 1)
            spaced[::one] = coins
            found = np.convolve(chance[: reach + 1], spaced)[: most + 1]
            chance[: len(found)] = found
            spare[:] = 0.0
            reach = min(most, reach + count * one)
            continue
        for _ in range(count):  # nothing is beyond `reach` yet, and halves are taken all at once: they are exact
            reach = min(most, reach + one)
            spare[: min(one, reach + 1)] = chance[: min(one, reach + 1)]
            if one <= most:
                np.add(chance[one : reach + 1], chance[: reach + 1 - one], out=spare[one : reach + 1])
            chance, spare, halved = spare, chance, halved + 1
            if halved == _HALVES:
                chance *= 2.0**-halved
                halved = 0
    return float(chance.sum() * 2.0**-halved)


@lru_cache(maxsize=4096)
def _coins(count: int) -> Floats:
    """The chances of 0, 1, … heads in n fair coins."""
    if count <= _EXACT_COINS:
        return np.array([comb(count, heads) / 2**count for heads in range(count + 1)])
    heads = np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1)
    return np.asarray(np.exp(ways - count * np.log(2)), dtype=np.float64)


def _tilted(value: Floats, times: Floats, most: int) -> float:
    """`_at_most` from the characteristic function, under coins so biased that the mean of the sum is `most`.

    The biased distribution is concentrated there, so it is known to a float's precision around `most`, and
    unbiasing it multiplies by exp(−tilt · distance): small chances are as precise as large ones.
    """
    low, high = 0.0, 1.0
    while (times * value * expit(-high * value)).sum() > most:
        high *= 2
    for _ in range(100):
        tilt = (low + high) / 2
        above = (times * value * expit(-tilt * value)).sum() > most
        low, high = (tilt, high) if above else (low, tilt)
    chance = expit(-tilt * value)
    spread = float(np.sqrt((times * value**2 * chance * (1 - chance)).sum()))
    n = 2 ** int(np.ceil(np.log2(min(times @ value + 1, 40 * spread + 4 * value.max()))))
    start = max(0, most - n // 2)  # the window of sums that the transform tells apart
    log_wave = np.zeros(n // 2 + 1, dtype=np.complex128)
    angle = 2 * np.pi * np.arange(n // 2 + 1) / n
    with np.errstate(divide="ignore"):
        for one, count, heads in zip(value, times, chance, strict=True):
            log_wave += count * np.log(1 - heads + heads * np.exp(-1j * (one * angle)))
    biased = np.fft.irfft(np.exp(log_wave + 1j * (start * angle)), n)[: most - start + 1]
    weight = np.exp(-tilt * np.arange(most - start, -1, -1))
    log_all = float((times * np.log((1 + np.exp(-tilt * value)) / 2)).sum()) + tilt * most
    return float(np.exp(log_all) * max(0.0, float(weight @ biased)))
