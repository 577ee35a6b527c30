"""The interval of a share (accuracy) of trials in groups, without draws, monotone in every trial: also of few groups,
and of all right or all wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from proctor.stats.clusters import Floats, Ints
from proctor.stats.special import betaincinv, ndtr, ndtri

_FEW = 64  # groups up to which ends are corrected by the integral; with more, its expansion is as good
_NODES = np.arange(21) * 0.3  # of the integral
_MOST = 50_000  # groups handled at once, to limit memory
_STEPS = 50  # of a search; about six are needed
_ROUNDING = 1e-12  # of weighted trials
_NEAR, _CLOSE = 1e-2, 1e-7  # how exactly it ends, on the scale of normal quantiles
_SADDLE = 1e-5  # the same for a saddle point: the next of Newton's steps would be of the order of its square


@dataclass(frozen=True, slots=True)
class Share:
    """The statistic hits / trials of sums (samples × columns), where `hits` and `trials` weight the columns.

    Every trial is a hit or a miss. With `f1` it is F1 (Dice), 2 · hits / (hits + trials), where the trials are all that is
    in either of two sets, and the hits what is in both: an increasing function of the share (the Jaccard index).
    `sums_interval` gives it the interval of a share (`share_ends`); its `n` is the number of trials, and its `groups` are
    those with a trial.

    >>> precision, f1 = Share((1, 0, 0), (1, 1, 0)), Share((1, 0, 0), (1, 1, 1), f1=True)
    >>> sums = np.array([[3.0, 1.0, 2.0]])  # true positives, false positives, false negatives
    >>> precision(sums).tolist(), f1(sums).tolist()
    ([0.75], [0.6666666666666666])
    """

    hits: tuple[float, ...]
    trials: tuple[float, ...]
    f1: bool = False

    def __call__(self, sums: Floats) -> Floats:
        """The value of each row of sums; NaN without trials."""
        hits, trials = self.counted(sums)
        if self.f1:
            hits, trials = 2 * hits, hits + trials
        found: Floats = np.divide(hits, trials, out=np.full(len(sums), np.nan), where=trials > 0)
        return found

    def counted(self, sums: Floats) -> tuple[Floats, Floats]:
        """The hits and the trials of each row of sums."""
        return sums @ np.array(self.hits, dtype=np.float64), sums @ np.array(self.trials, dtype=np.float64)

    def of_share(self, share: float) -> float:
        """The value for a share of hits among the trials."""
        return 2 * share / (1 + share) if self.f1 else share


def share_ends(hits: Floats, trials: Floats, slices: Ints, n_slices: int, level: float) -> tuple[Floats, Floats]:
    """The ends of the interval of the share of hits in each slice; NaN for a slice with fewer than two groups.

    `hits` and `trials` (above 0) are those of each group in a slice, `slices` is its slice (0 to `n_slices` − 1).

    Each group g has an independent random weight E_g with a standard exponential distribution. One group is added, of the
    root mean square size M and with nothing but hits. The upper end is the quantile (1 + level) / 2 of the weighted
    share, (Σ E_g hits_g + E_0 M) / (Σ E_g trials_g + E_0 M). The lower end mirrors it, with misses for hits (Gaffke 2005,
    Mathematical Methods of Statistics 14:451; Learned-Miller and Thomas 2019, arXiv:1905.06208). If each group has one
    trial, or all are of equal size and wholly hits or misses, this is the interval of Clopper and Pearson (1934,
    Biometrika 26:404) with groups as trials.

    Turning a hit into a miss lowers every weighted share, so it raises neither end. No property of the sample (variance,
    correlation within groups, number of groups with a miss) switches a rule on or off. Nothing is drawn, and the order of
    groups does not matter. Ends are exact to 1e-8; with more than 64 groups in a slice, to 1e-4.

    >>> low, high = share_ends(np.array([1.0, 0, 0, 0]), np.ones(4), np.zeros(4, dtype=np.int64), 1, 0.95)
    >>> [round(float(end[0]), 4) for end in (low, high)]  # Clopper and Pearson for 1 of 4
    [0.0063, 0.8059]
    """
    low, high = np.full(n_slices, np.nan), np.full(n_slices, np.nan)
    beyond = (1 - level) / 2
    for part in _parts(hits, trials, slices, n_slices):
        high[part.named], missed = np.split(part.with_mirrored().upper(beyond), 2)
        low[part.named] = 1 - missed
    return low, high


@dataclass(frozen=True, slots=True)
class _Part:
    """The groups of several slices, whose numbers are `named`, ordered by slice, trials and hits. `starts` are the first
    of each slice; `times` counts equal groups, which are merged in slices that are not `few`."""

    few: bool
    named: Ints
    starts: Ints
    slice_: Ints
    trials: Floats
    hits: Floats
    times: Floats

    def with_mirrored(self) -> _Part:
        """The slices, and then the same with misses for hits."""
        hits = np.concatenate([self.hits, self.trials - self.hits])
        starts = np.concatenate([self.starts, self.starts + len(self.hits)])
        slice_ = np.concatenate([self.slice_, self.slice_ + len(self.starts)])
        trials, times = np.tile(self.trials, 2), np.tile(self.times, 2)
        return replace(self, starts=starts, slice_=slice_, trials=trials, hits=hits, times=times)

    def added(self, values: Floats) -> Floats:
        """The sum over the groups of each slice."""
        return np.asarray(np.add.reduceat(self.times * values, self.starts), dtype=np.float64)

    def upper(self, beyond: float) -> Floats:
        """The upper end of each slice, which the weighted share exceeds with probability `beyond`."""
        groups, trials, hits = (self.added(values) for values in (np.ones_like(self.hits), self.trials, self.hits))
        full = trials - hits <= _ROUNDING * trials  # their end is 1; solved for as if nothing were a hit
        other = replace(self, hits=np.where(full[self.slice_], 0.0, self.hits)) if full.any() else self
        return np.where(full, 1.0, other.solved(np.where(full, 0.0, hits / trials), groups, -float(ndtri(beyond))))

    def solved(self, share: Floats, groups: Floats, aim: float) -> Floats:
        """Where the probability that the weighted share exceeds it has the normal quantile −`aim`. The search is along the
        quantiles x of Clopper and Pearson's distribution with groups as trials: there the curve is nearly straight."""
        size, misses = np.sqrt(self.added(self.trials**2) / groups), np.maximum(groups * (1 - share), 0.5)
        saddle = np.full_like(share, 0.5)

        def rest(x: Floats) -> Floats:
            return np.maximum(betaincinv(misses, share * groups + 1, ndtr(-x)), 1e-100)

        def height(x: Floats, exact: bool) -> Floats:
            chance = self._exceeding(rest(x), size, saddle, exact)
            return np.asarray(-ndtri(np.clip(chance, 1e-300, 0.5)), dtype=np.float64)

        x, slope = _met(lambda x: height(x, False), aim, np.full_like(share, aim), None, _NEAR if self.few else _CLOSE)
        if self.few:
            x, _ = _met(lambda x: height(x, True), aim, x, slope, _CLOSE)
        return 1 - rest(x)

    def _exceeding(self, rest: Floats, size: Floats, saddle: Floats, exact: bool) -> Floats:
        """The probability that the weighted share of each slice exceeds 1 − `rest`: that Σ λ E > 0, with λ = rest · trials −
        misses of a group, and λ = rest · size of the additional one. Where Σ λ, the mean, is not negative, the result is
        0.5. `saddle` is where to look for the saddle point, and afterwards where it is."""
        reach, extra = rest[self.slice_] * self.trials - (self.trials - self.hits), size * rest
        scale = np.maximum(np.maximum.reduceat(reach, self.starts), extra)
        reach, extra = reach / scale[self.slice_], extra / scale
        saddle[:] = self._saddle(reach, extra, saddle)
        found = (self._integral if exact else self._expansion)(reach, extra, saddle)
        return np.where(self.added(reach) + extra < 0, found, 0.5)

    def _saddle(self, reach: Floats, extra: Floats, saddle: Floats) -> Floats:
        """The point s from 0 to 1 at which the cumulant function K(s) = −Σ log(1 − λ s), with λ of at most 1, is least."""
        low, high = np.zeros_like(extra), np.ones_like(extra)
        searched = self.added(reach) + extra < 0  # where the mean is not negative, nothing is
        open_ones = searched.copy()
        for _ in range(_STEPS):  # Newton's method within a bracket; no slice depends on others
            pull, alone = reach / (1 - saddle[self.slice_] * reach), extra / (1 - saddle * extra)
            slope, curve = self.added(pull) + alone, self.added(pull * pull) + alone**2
            low, high = np.where(slope < 0, saddle, low), np.where(slope < 0, high, saddle)
            step = -slope / curve
            open_ones &= np.abs(step) > _SADDLE * saddle
            if not open_ones.any():
                return np.where(searched, saddle + step, saddle)
            inside = (saddle + step > low) & (saddle + step < high)
            saddle = np.where(open_ones, np.where(inside, saddle + step, (low + high) / 2), saddle)
        return saddle

    def _integral(self, reach: Floats, extra: Floats, saddle: Floats) -> Floats:
        """The integral of exp(K(z)) / z along a path through the saddle point, a hyperbola with the curvature of steepest
        descent, by the trapezoidal rule (Daniels 1987, International Statistical Review 55:37)."""
        pull, alone = reach / (1 - saddle[self.slice_] * reach), extra / (1 - saddle * extra)
        second, third = self.added(pull * pull) + alone**2, 2 * (self.added(pull * pull * pull) + alone**3)
        width, tilt = (1 / np.sqrt(second))[:, None], (third / second**1.5 / 3)[:, None]
        z = saddle[:, None] + width * (1j * np.sinh(_NODES) + tilt * (np.cosh(_NODES) - 1))
        along = width * (1j * np.cosh(_NODES) + tilt * np.sinh(_NODES))
        factors = np.multiply.reduceat(1 - reach[:, None] * z[self.slice_], self.starts)
        values = (along / (factors * (1 - extra[:, None] * z) * z)).imag
        values[:, 0] /= 2
        return np.asarray(values.sum(axis=1) * _NODES[1] / np.pi, dtype=np.float64)

    def _expansion(self, reach: Floats, extra: Floats, saddle: Floats) -> Floats:
        """The same by the formula of Lugannani and Rice with its second term (Daniels 1987, section 4)."""
        pull, alone = reach / (1 - saddle[self.slice_] * reach), extra / (1 - saddle * extra)
        squared = pull * pull
        second, third = self.added(squared) + alone**2, 2 * (self.added(squared * pull) + alone**3)
        fourth = 6 * (self.added(squared * squared) + alone**4)
        cumulants = self.added(np.log1p(-saddle[self.slice_] * reach)) + np.log1p(-saddle * extra)
        w = np.sqrt(np.maximum(2 * cumulants, 1e-12))
        u, skew, peak = np.maximum(saddle * np.sqrt(second), 1e-6), third / second**1.5, fourth / second**2
        more = (peak / 8 - 5 * skew**2 / 24) / u - skew / (2 * u**2) - 1 / u**3 + 1 / w**3
        found = ndtr(-w) + np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi) * (1 / u - 1 / w + more)
        return np.asarray(np.where(w < 0.1, 0.5, found), dtype=np.float64)


def _met(
    height: Callable[[Floats], Floats], aim: float, x: Floats, slope: Floats | None, close: float
) -> tuple[Floats, Floats]:
    """Where each `height` is `aim`, and the slope there. It is searched from `x` by secants within a bracket, until a step
    is at most `close`; the first step uses `slope`, or a line through the origin."""
    low, high = np.full_like(x, -4.0), np.full_like(x, 8.0)
    found = height(x)
    slope = np.maximum(found / aim, 0.2) if slope is None else slope
    open_ones = np.ones(len(x), dtype=np.bool_)  # no slice depends on others
    for _ in range(_STEPS):
        low, high = np.where(found < aim, x, low), np.where(found < aim, high, x)
        step = (aim - found) / slope
        open_ones &= np.abs(step) > close
        if not open_ones.any():
            return x + step, slope
        inside = (x + step > low) & (x + step < high)
        step = np.where(inside, step, (low + high) / 2 - x)
        x, before = np.where(open_ones, x + step, x), found
        found = np.where(open_ones, height(x), found)
        slope = np.where(open_ones, np.maximum((found - before) / np.where(step, step, 1), 0.2), slope)
    return x, slope


def _parts(hits: Floats, trials: Floats, slices: Ints, n_slices: int) -> Iterator[_Part]:
    """The slices with two or more groups, those with few groups apart, in parts of limited size."""
    groups = np.bincount(slices, minlength=n_slices)
    for few, chosen in ((True, (groups >= 2) & (groups <= _FEW)), (False, groups > _FEW)):
        named = np.flatnonzero(chosen)
        if not named.size:
            continue
        inside = np.flatnonzero(chosen[slices])
        inside = inside[np.lexsort((hits[inside], trials[inside], slices[inside]))]
        of, size, right = slices[inside], trials[inside], hits[inside]
        new = np.ones(len(inside), dtype=np.bool_)
        if not few:
            new[1:] = (np.diff(of) != 0) | (np.diff(size) != 0) | (np.diff(right) != 0)
        first = np.flatnonzero(new)
        times = np.diff(first, append=len(inside)).astype(np.float64)
        of, size, right = of[first], size[first], right[first]
        starts = np.append(np.flatnonzero(np.diff(of, prepend=-1)), len(of))
        begin = 0
        while begin < len(named):
            end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + _MOST, side="right")) - 1)
            here = slice(int(starts[begin]), int(starts[end]))
            own = starts[begin:end] - starts[begin]
            position = np.repeat(np.arange(end - begin), np.diff(starts[begin : end + 1]))
            yield _Part(few, named[begin:end], own, position, size[here], right[here], times[here])
            begin = end
