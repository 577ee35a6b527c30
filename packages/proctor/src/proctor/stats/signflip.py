"""The sign-flip test of paired differences of groups, with p values that are computed rather than drawn, and the
interval of the shifts that it accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from math import ceil, comb, log2

import numpy as np
from numpy.typing import NDArray

from proctor.core import generator
from proctor.stats.bootstrap import CHUNK
from proctor.stats.clusters import Floats, Ints
from proctor.stats.special import expit, gammaln, ndtr

_ROUNDING = 1e-9  # share of the sum of all sizes up to which sums count as equal
_MAX_TOTAL = 2**22  # largest sum of sizes, in units of their common divisor, for an exact distribution
_MAX_ENUMERATED = 28  # groups up to which all sign patterns are enumerated if there is no common divisor
_MAX_EXACT_COINS = 512
_MAX_FINE = 1000  # groups up to which differences are rounded finely, with a bounded error
_MAX_HALVINGS = 500  # coins whose patterns are counted before they are converted to shares: 2^500 fits a float
_MAX_CACHED = 200_000  # cached tests, which take about 30 MB
_CACHE: dict[bytes, float] = {}
_BERRY_ESSEEN = 0.56
_FOURIER_COST = 2000  # multiplications of the Fourier transform per value and unit of spread
_MAX_SPLIT = 12  # groups up to which all 2,048 splits in two are enumerated
_SLACK = 1e-12  # a level such as 1 − 0.95 has a rounding error


def sign_flip(differences: Floats, open_between: tuple[float, float] = (0.0, 1.0)) -> Floats:
    """The two-sided p of each column of `differences` (groups × pairs: the sum of a − b over the items of a group).

    If the two systems are exchangeable within each group, the signs of the groups' differences are fair coins. p is the
    share of all sign patterns whose |sum| is at least the observed one (Fisher 1935, The Design of Experiments, section
    21, with groups as units). It is computed, not drawn. It is equal for a − b and b − a, and never 0: the minimum is
    2 / 2^(groups that differ), within the precision of a float.

    If the differences are multiples of a number (whole scores, halves, thirds), the distribution of the sum is computed
    by convolution, which is exact for any number of groups (Pagano and Tritchler 1983, Journal of the American
    Statistical Association 78:435), or by its Fourier transform if that is faster, exponentially tilted to keep small p
    precise. Otherwise all patterns of up to 28 groups are enumerated. With more groups, differences are rounded to 300
    steps per group, and p is conservative for the rounding error: it is about 1 % too large (relative) at p = 0.05.
    With more than 1,000 groups there are 12 steps per group, and p is about 5 % too large.

    `open_between` is for callers that need only to know on which side of a level p lies: if p is certainly at most the
    lower number, or certainly above the higher one, a bound may be returned instead, which is much faster.

    >>> sign_flip(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])).tolist()
    [0.25, 1.0]
    """
    ahead = np.where(differences.sum(axis=0) < 0, -differences, differences)
    columns = np.sort(ahead, axis=0).T
    exact = open_between == (0.0, 1.0)
    return np.array([_cached_p(column) if exact else _p(column, open_between) for column in columns], dtype=np.float64)


def _cached_p(ordered: Floats) -> float:
    """`_p` with a cache: rankings under alternative scores repeat most tests."""
    key = blake2b(ordered.tobytes(), digest_size=16).digest()
    if (p := _CACHE.get(key)) is None:
        if len(_CACHE) >= _MAX_CACHED:
            _CACHE.clear()
        p = _CACHE[key] = _p(ordered)
    return p


def least_p(groups: int) -> float:
    """The smallest possible p of `sign_flip` with this many groups, 2 / 2^groups.

    >>> least_p(3), least_p(6)
    (0.25, 0.03125)
    """
    return float(2.0 ** (1 - max(1, groups)))


def fewest_groups(alpha: float = 0.05) -> int:
    """The minimum number of groups with which a difference can be significant at `alpha`.

    >>> fewest_groups(), fewest_groups(0.01)
    (6, 8)
    """
    return ceil(1 - log2(alpha))


def can_decide(groups: int, level: float = 0.95) -> bool:
    """Whether any outcome of the test with this many groups has a p of at most 1 − `level`.

    >>> can_decide(5), can_decide(6), can_decide(6, level=0.99)
    (False, True, False)
    """
    return least_p(groups) <= 1 - level + _SLACK


def rejects(p: Floats, level: float) -> NDArray[np.bool_]:
    """Whether each p is at most 1 − `level`. NaN, no test, rejects nothing.

    >>> rejects(np.array([0.05, 0.0500001, np.nan]), 0.95).tolist()
    [True, False, False]
    """
    return np.asarray(p <= 1 - level + _SLACK)


def accepted_shifts(
    apart: Floats, sizes: Floats, p: Floats, level: float, draws: int, seed: int
) -> tuple[Floats, Floats]:
    """The lowest and the highest difference per item that the sign-flip test accepts at 1 − `level`, for each pair.

    `apart` (groups × pairs) are summed differences a − b with a sum of at least 0, `sizes` the numbers of items, and `p`
    is `sign_flip(apart)`. The test of a true difference δ flips the signs of apart − δ · size. The pattern that flips the
    groups F reaches the observed sum if and only if δ lies between the difference on F and that on all other groups. So p
    is the share of all splits of the groups in two whose differences have δ between them, and the ends are order
    statistics of these differences (the typical values of Hartigan 1969, Journal of the American Statistical
    Association 64:1303). All splits of up to 12 groups are enumerated. Of more, `draws` splits are drawn with the seed.

    `p` is exact and decides about 0: it lies inside if and only if p > 1 − `level`. The ends are NaN if there are
    too few groups to decide (`can_decide`).
    """
    n_groups = len(apart)
    whole, items = apart.sum(axis=0), sizes.sum(axis=0)
    value = whole / items
    if not can_decide(n_groups, level):
        return np.full(len(value), np.nan), np.full(len(value), np.nan)
    low, high = np.empty_like(value), np.empty_like(value)
    n_splits = 2 ** (n_groups - 1) - 1 if n_groups <= _MAX_SPLIT else draws
    needed = min(n_splits, max(1, int((1 - level + _SLACK) * (n_splits + 1))))
    step = max(1, CHUNK // n_splits)
    for start in range(0, len(value), step):
        part = slice(start, start + step)
        both = np.concatenate([apart[:, part], sizes[:, part]], axis=1)
        total, size = np.split(np.concatenate([splits @ both for splits in _splits(n_groups, draws, seed)]), 2, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = total / size, (whole[part] - total) / (items[part] - size)
        one[size == 0], other[size == items[part]] = -np.inf, np.inf
        lesser, greater = np.minimum(one, other), np.maximum(one, other)
        low[part] = np.partition(lesser, needed - 1, axis=0)[needed - 1]
        high[part] = np.partition(greater, n_splits - needed, axis=0)[n_splits - needed]
        nil = 1e-12 * np.abs(apart[:, part]).max(axis=0)
        for column in np.flatnonzero(rejects(p[part], level) & (low[part] <= nil)):
            above = lesser[lesser[:, column] > nil[column], column]
            low[start + column] = above.min(initial=value[start + column])
    return np.minimum(low, np.where(rejects(p, level), value, np.minimum(value, 0.0))), np.maximum(high, value)


def _splits(n_groups: int, draws: int, seed: int) -> Iterable[Floats]:
    """Splits of groups in two parts, without that in all and none, in chunks: 1 for the groups of the first part."""
    if n_groups <= _MAX_SPLIT:
        return [(np.arange(1, 2 ** (n_groups - 1))[:, None] >> np.arange(n_groups) & 1).astype(np.float64)]
    if draws * n_groups <= 2 * CHUNK:
        return _cached_splits(n_groups, draws, seed)
    return _drawn_splits(n_groups, draws, seed)


@lru_cache(maxsize=2)
def _cached_splits(n_groups: int, draws: int, seed: int) -> tuple[Floats, ...]:
    return tuple(_drawn_splits(n_groups, draws, seed))


def _drawn_splits(n_groups: int, draws: int, seed: int) -> Iterator[Floats]:
    rng = generator(seed, "splits of groups")
    step = max(1, CHUNK // n_groups)
    for start in range(0, draws, step):
        splits = rng.integers(0, 2, (min(step, draws - start), n_groups)).astype(np.float64)
        splits.flags.writeable = False
        yield splits


def common_measures(differences: Floats) -> Floats:
    """The greatest common divisor of the differences of each column; 0 if there is none.

    >>> common_measures(np.array([[2.0, 0.5, 0.0], [-4.0, 1.5, 0.0]])).tolist()
    [2.0, 0.5, 0.0]
    """
    whole = (differences == np.rint(differences)).all(axis=0)
    sizes = np.where(whole, np.abs(differences), 0.0).astype(np.int64)
    divisors = np.zeros(differences.shape[1])
    divisors[:] = np.gcd.reduce(sizes, axis=0)
    for column in np.flatnonzero(~whole):
        size = np.sort(np.abs(differences[:, column]))
        reach = float(size.sum())
        multiples = _multiples(size[size > _ROUNDING * reach / len(size)], reach)
        divisors[column] = 0.0 if multiples is None else reach / float(multiples.sum())
    return divisors


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
    if multiples is None and len(size) <= _MAX_ENUMERATED:
        return _all_patterns(size, observed - _ROUNDING * reach)
    if multiples is None:
        few = len(size) <= _MAX_FINE
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
    """A lower and an upper bound of twice `_at_most`: the Berry-Esseen bound (with the constant of Shevtsova 2010,
    Doklady Mathematics 82:862) and Hoeffding's inequality (1963)."""
    size = multiples.astype(np.float64)
    squared = float(size @ size)
    z = (float(size.sum()) - 2 * most) / np.sqrt(squared)
    off = _BERRY_ESSEEN * float((size**3).sum()) / squared**1.5
    return 2 * (float(ndtr(-z)) - off), 2 * float(np.exp(-(z**2) / 2))


def _rounded_by(errors: Floats, squared_z: float) -> float:
    """A bound of Σ ± errors that is exceeded in at most a thousandth of the patterns as extreme as the observed one, by
    Hoeffding's inequality (1963, Journal of the American Statistical Association 58:13), 2 exp(−z² / 2)."""
    by_chance = np.sqrt((2 * np.log(1000) + squared_z) * float(errors @ errors))
    return float(min(by_chance, np.abs(errors).sum()))


def _multiples(size: Floats, reach: float) -> Ints | None:
    """The sizes as multiples of their greatest common divisor (Euclid's algorithm); None if there is none."""
    if (size == np.rint(size)).all() and reach < _MAX_TOTAL:
        whole = size.astype(np.int64)
        return np.asarray(whole // np.gcd.reduce(whole), dtype=np.int64)
    measure = float(size[0])
    while reach / measure <= _MAX_TOTAL:
        rest = np.abs(size - measure * np.rint(size / measure))
        larger = rest[rest > _ROUNDING * reach / _MAX_TOTAL * 100]
        if not larger.size:
            multiples = np.rint(size / measure)
            measure = reach / float(multiples.sum())
            fits = np.abs(size - measure * multiples).max() <= 1e-12 * reach
            return multiples.astype(np.int64) if fits else None
        measure = float(larger.min())
    return None


def _all_patterns(size: Floats, target: float) -> float:
    """The share of all sign patterns whose |sum| is at least `target`, by combining the sorted sums of two halves."""
    left, right = (np.sort(_signed_sums(half)) for half in (size[::2], size[1::2]))
    enough = len(left) - np.searchsorted(left, target - right, side="left")
    return float(min(1.0, 2 * enough.sum() / 2.0 ** len(size)))


def _signed_sums(size: Floats) -> Floats:
    sums = np.zeros(1)
    for value in size:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _at_most(multiples: Ints, most: int) -> float:
    """P(Σ b · multiple ≤ most) for fair coins b in {0, 1}, which select the groups on the lesser side."""
    value, times = np.unique(multiples, return_counts=True)
    value, times = value[value > 0], times[value > 0]
    length = np.minimum(value * times, most) + 1  # of the array that is convolved with a value's coins
    one_by_one = 3 * times + 3000 * times // (most + 1) < length
    work = (most + 1) * np.where(one_by_one, 3 * times, length).sum()
    if most > 0 and work > _FOURIER_COST * len(value) * np.sqrt((times * value.astype(np.float64) ** 2).sum()):
        return _tilted(value.astype(np.float64), times.astype(np.float64), most)
    chance, spare, reach = np.zeros(most + 1), np.zeros(most + 1), 0
    chance[0], halved = 1.0, 0
    for multiple, count, alone in zip(value.tolist(), times.tolist(), one_by_one.tolist(), strict=True):
        if not alone:
            coins = _coins(count)[: most // multiple + 1]
            spaced = np.zeros((len(coins) - 1) * multiple + 1)
            spaced[::multiple] = coins
            product = np.convolve(chance[: reach + 1], spaced)[: most + 1]
            chance[: len(product)] = product
            spare[:] = 0.0
            reach = min(most, reach + count * multiple)
            continue
        for _ in range(count):  # all mass is up to `reach`; halvings are collected, since they are exact
            reach = min(most, reach + multiple)
            spare[: min(multiple, reach + 1)] = chance[: min(multiple, reach + 1)]
            if multiple <= most:
                np.add(chance[multiple : reach + 1], chance[: reach + 1 - multiple], out=spare[multiple : reach + 1])
            chance, spare, halved = spare, chance, halved + 1
            if halved == _MAX_HALVINGS:
                chance *= 2.0**-halved
                halved = 0
    return float(chance.sum() * 2.0**-halved)


@lru_cache(maxsize=4096)
def _coins(count: int) -> Floats:
    """The probabilities of 0, 1, … heads in `count` fair coins."""
    if count <= _MAX_EXACT_COINS:
        return np.array([comb(count, heads) / 2**count for heads in range(count + 1)])
    heads = np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(heads + 1) - gammaln(count - heads + 1)
    return np.asarray(np.exp(ways - count * np.log(2)), dtype=np.float64)


def _tilted(value: Floats, times: Floats, most: int) -> float:
    """`_at_most` by Fourier inversion of the exponentially tilted distribution, whose mean is `most`.

    The tilted distribution has full relative precision around `most`, and undoing the tilt multiplies by
    exp(−tilt · distance), so that small probabilities are as precise as large ones.
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
    start = max(0, most - n // 2)  # start of the window of sums that the transform resolves
    log_wave = np.zeros(n // 2 + 1, dtype=np.complex128)
    angle = 2 * np.pi * np.arange(n // 2 + 1) / n
    with np.errstate(divide="ignore"):
        for multiple, count, heads in zip(value, times, chance, strict=True):
            log_wave += count * np.log(1 - heads + heads * np.exp(-1j * (multiple * angle)))
    biased = np.fft.irfft(np.exp(log_wave + 1j * (start * angle)), n)[: most - start + 1]
    weight = np.exp(-tilt * np.arange(most - start, -1, -1))
    log_all = float((times * np.log((1 + np.exp(-tilt * value)) / 2)).sum()) + tilt * most
    return float(np.exp(log_all) * max(0.0, float(weight @ biased)))
