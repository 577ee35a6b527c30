"""The Bradley-Terry model with ties: strengths and win probabilities of systems from pairwise comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.bootstrap import CHUNK, Estimate, Resampling, sums_intervals
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes

Bools = NDArray[np.bool_]

_MAX_STEPS = 100
_MAX_HALVINGS = 30
_TOLERANCE = 1e-10  # expected gain in log likelihood below which the fit has converged
_MAX_STEP = 5.0  # largest change of a parameter in one step
_RIDGE = 1e-9  # keeps unbounded parameters finite; too small to change any digit shown


@dataclass(frozen=True, slots=True)
class PreferredSystem:
    """One system. `points` is its expected share of points (win 1, tie ½, loss 0) if it is compared with each other
    system equally often; 0.5 is average. `strength` is the log of its Bradley-Terry parameter, centred within its
    `part`; None if there is no finite maximum likelihood estimate.

    >>> PreferredSystem("a", 0.7, 0, Estimate(0.66, 0.5, 0.8, n=30, groups=10)).points.value
    0.66
    """

    name: str
    strength: float | None
    part: int
    points: Estimate


@dataclass(frozen=True, slots=True)
class PreferenceModel:
    """A fitted model. `systems` are ordered by points, descending, then by name (those without points last). `wins` has
    the probability that the first system is preferred to the second for every ordered pair. `ties` is Davidson's ν: two
    systems of equal strength tie in ν / (2 + ν) of comparisons; None if there is no finite estimate. `problems` has one
    sentence for each quantity that the comparisons do not identify.

    >>> PreferenceModel((), {}, None, ("no comparisons",)).problems
    ('no comparisons',)
    """

    systems: tuple[PreferredSystem, ...]
    wins: Mapping[tuple[str, str], Estimate]
    ties: float | None
    problems: tuple[str, ...] = ()


def bradley_terry(
    first: Sequence[str], second: Sequence[str], points: Values, groups: Groups, plan: Resampling = Resampling()
) -> PreferenceModel:
    """Strengths and preference probabilities from pairwise comparisons, with clustered intervals.

    One entry per comparison: its two systems in any order, the points of the first (1: preferred, 0: the second is
    preferred, 0.5: tie) and its group. The model is that of Bradley and Terry (1952, Biometrika 39:324) with ties as in
    Davidson (1970, Journal of the American Statistical Association 65:317): a is preferred with probability π_a / D, b
    with π_b / D, and they tie with ν √(π_a π_b) / D, where D is the sum of the three numerators; ν is 0 without ties.
    It is fitted by maximum likelihood.

    Identifiability (Ford 1957, American Mathematical Monthly 64:28): strengths are comparable within a `part`, a
    strongly connected component of the graph with an edge from a to b if a was preferred to, or tied with, b. If one
    part was always preferred to another, the estimated probability is 1 and there is no finite strength. Systems that
    no comparisons link, or link in neither direction, have no probability (value None) and no points. If no cycle has
    more preferences (all in one direction) than ties, ν and the strengths have no finite estimate, and probabilities
    are limits. `problems` describes all of these cases.

    Intervals are those of `sums_interval`, for each quantity alone (not simultaneous). For a preference that no group
    shows, the interval includes its upper limit given the number of groups that compare the pair. Samples in which two
    systems are not comparable are excluded. Time grows with samples × systems². For the simulated coverage see
    docs/reference/statistics.md.

    Edges: no systems without comparisons; no interval with fewer than three groups. Raises `InputError` for unequal
    lengths, points other than 1, 0.5 and 0, and a system compared with itself.

    >>> model = bradley_terry(list("aab"), list("bbc"), [1, 0, 0.5], ["v1", "v2", "v3"], Resampling(draws=50))
    >>> [(system.name, round(system.points.value, 3)) for system in model.systems]
    [('a', 0.5), ('b', 0.5), ('c', 0.5)]
    >>> bradley_terry(["a"], ["b"], [1], ["v1"]).problems[0]
    'a: preferred in every comparison with other systems, no finite strength beside theirs'
    """
    outcome = finite(points, "point")
    if not len(first) == len(second) == len(outcome):
        lengths = f"{len(first)}, {len(second)} and {len(outcome)}"
        raise InputError("comparisons", found=lengths, expected="two systems and points each")
    code = group_codes(groups, len(outcome))
    for position, pair in enumerate(zip(first, second, strict=True)):
        if pair[0] == pair[1]:
            raise InputError(f"comparison {position}", found=f"{pair[0]!r} twice", expected="two systems")
        if outcome[position] not in (0, 0.5, 1):
            raise InputError(f"point {position}", found=f"{outcome[position]:g}", expected="1, 0.5 or 0")
    names = sorted({*first, *second})
    if not names:
        return PreferenceModel((), {}, None, ("no comparisons",))
    counts = _Counts.of(first, second, outcome, names)
    estimates = sums_intervals(counts.table, code, counts.statistics, counts.trials(), plan.within(0, 1))
    return _model(names, counts, estimates)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Comparisons × outcomes. Each outcome has two systems (`preferred` is preferred to `other`, or they are in order
    and `tie` is true). Every pair that was compared has a column for the preference in either direction."""

    table: Floats
    preferred: Ints
    other: Ints
    tie: Bools
    systems: int

    @classmethod
    def of(cls, first: Sequence[str], second: Sequence[str], points: Floats, names: Sequence[str]) -> _Counts:
        position, k = {name: number for number, name in enumerate(names)}, len(names)
        a, b = (np.array([position[name] for name in side], dtype=np.int64) for side in (first, second))
        low, high, tied = np.minimum(a, b), np.maximum(a, b), points == 0.5
        swap = np.where(tied, a > b, points == 0)
        outcome = np.where(tied, k * k, 0) + np.where(swap, b * k + a, a * k + b)
        kinds = np.unique(np.concatenate([low * k + high, high * k + low, outcome]))
        table = (outcome[:, None] == kinds).astype(np.float64)
        return cls(table, kinds % (k * k) // k, kinds % k, kinds >= k * k, k)

    def trials(self) -> list[list[list[int]]]:
        """The columns of each pair of systems."""
        pairs: dict[tuple[int, int], list[list[int]]] = {}
        for column, pair in enumerate(zip(self.preferred.tolist(), self.other.tolist(), strict=True)):
            pairs.setdefault((min(pair), max(pair)), []).append([column])
        return list(pairs.values())

    def tables(self, sums: Floats) -> tuple[Floats, Floats]:
        """Preferences (of the row over the column) and ties (symmetric) in each sample."""
        shape = (len(sums), self.systems, self.systems)
        wins, ties = np.zeros(shape), np.zeros(shape)
        wins[:, self.preferred[~self.tie], self.other[~self.tie]] = sums[:, ~self.tie]
        ties[:, self.preferred[self.tie], self.other[self.tie]] = sums[:, self.tie]
        return wins, ties + ties.transpose(0, 2, 1)

    def statistics(self, sums: Floats) -> Floats:
        """For each sample the points of each system, then the probability of each preference, row by row."""
        step = max(1, CHUNK // (8 * self.systems**2))
        parts = [_Fit.of(*self.tables(sums[k : k + step])).statistics() for k in range(0, len(sums), step)]
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class _Fit:
    """The maximum likelihood estimates in each sample: log strengths (within parts) and ν. `reach` is true if a chain
    of preferences and ties leads from the row to the column."""

    reach: Bools
    strength: Floats
    ties: Floats

    @classmethod
    def of(cls, wins: Floats, ties: Floats) -> _Fit:
        reach = (wins + ties > 0) | np.eye(wins.shape[1], dtype=np.bool_)
        for _ in range(int(np.ceil(np.log2(max(2, wins.shape[1]))))):
            reach = np.matmul(reach, reach)
        together = reach & reach.transpose(0, 2, 1)
        return cls(reach, *_likeliest(wins * together, ties * together, together))

    def probabilities(self) -> tuple[Floats, Floats]:
        """The probabilities that the row is preferred to the column, and that they tie; NaN if not identified."""
        win, tie = _shares(self.strength[:, :, None] - self.strength[:, None, :], self.ties[:, None, None])
        there, back = self.reach, self.reach.transpose(0, 2, 1)
        apart = np.where(there == back, np.nan, there)
        return np.where(there & back, win, apart), np.where(there & back, tie, np.where(there == back, np.nan, 0.0))

    def statistics(self) -> Floats:
        """See `_Counts.statistics`."""
        win, tie = self.probabilities()
        off_diagonal = ~np.eye(win.shape[1], dtype=np.bool_)
        points = np.where(off_diagonal, win + tie / 2, 0.0).sum(axis=2) / max(1, win.shape[1] - 1)
        return np.concatenate([points, win[:, off_diagonal]], axis=1)


def _shares(difference: Floats, ties: Floats) -> tuple[Floats, Floats]:
    """Davidson's probabilities of a preference and of a tie, given the difference of log strengths and ν."""
    half = np.exp(np.clip(difference, -600, 600) / 2)
    whole = half + 1 / half + ties
    return half / whole, np.broadcast_to(ties / whole, whole.shape)


def _likeliest(wins: Floats, ties: Floats, together: Bools) -> tuple[Floats, Floats]:
    """Log strengths, centred in each part, and ν of each sample; `wins` and `ties` are those within parts."""
    tied, n = ties.sum(axis=(1, 2)) / 2, wins.sum(axis=(1, 2)) + ties.sum(axis=(1, 2)) / 2
    likelihood = _Likelihood(wins, ties, together, tied)
    at = np.zeros((len(wins), wins.shape[1] + 1))
    at[:, -1] = np.where(tied > 0, np.log(np.maximum(2 * tied, 1) / np.maximum(n - tied, 0.25)), 0.0)
    active = np.arange(len(wins))
    for _ in range(_MAX_STEPS):
        subset = likelihood.of(active)
        step, gain = subset.step(at[active])
        at[active] = subset.climbed(at[active], step)
        active = active[gain > _TOLERANCE]
        if not len(active):
            break
    return at[:, :-1], np.where(tied > 0, np.exp(at[:, -1]), 0.0)


@dataclass(frozen=True, slots=True)
class _Likelihood:
    """The log likelihood of log strengths and log ν (last) in each sample; without ties log ν has no effect."""

    wins: Floats
    ties: Floats
    together: Bools
    tied: Floats

    def of(self, samples: Ints) -> _Likelihood:
        return _Likelihood(self.wins[samples], self.ties[samples], self.together[samples], self.tied[samples])

    def value(self, at: Floats) -> Floats:
        apart, nu = self._parameters(at)
        half = np.exp(np.clip(apart, -600, 600) / 2)
        both = self.wins + self.wins.transpose(0, 2, 1) + self.ties  # each pair occurs twice
        total = (self.wins * apart - both * np.log(half + 1 / half + nu)).sum(axis=(1, 2)) / 2
        return np.asarray(total + self.tied * at[:, -1] - _RIDGE * (at**2).sum(axis=1) / 2)

    def step(self, at: Floats) -> tuple[Floats, Floats]:
        """The Newton step, scaled down to at most `_MAX_STEP` in every coordinate, and its expected gain."""
        apart, nu = self._parameters(at)
        win, tie = _shares(apart, nu)
        both, mean = self.wins + self.wins.transpose(0, 2, 1) + self.ties, win + tie / 2
        k, diagonal = win.shape[1], np.arange(win.shape[1] + 1)
        slope, bend = np.zeros((len(at), k + 1)), np.zeros((len(at), k + 1, k + 1))
        slope[:, :k] = (self.wins + self.ties / 2 - both * mean).sum(axis=2)
        slope[:, k] = self.tied - (both * tie).sum(axis=(1, 2)) / 2
        spread = both * (win + tie / 4 - mean**2)
        bend[:, :k, :k] = self.together - spread  # fixes the mean of each part, which the likelihood leaves open
        bend[:, diagonal[:k], diagonal[:k]] += spread.sum(axis=2)
        bend[:, :k, k] = bend[:, k, :k] = (both * tie * (0.5 - mean)).sum(axis=2)
        bend[:, k, k] = np.where(self.tied > 0, (both * tie * (1 - tie)).sum(axis=(1, 2)) / 2, 1.0)
        slope -= _RIDGE * at
        bend[:, diagonal, diagonal] += _RIDGE
        step = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        gain = (slope * step).sum(axis=1)
        return step * np.minimum(1.0, _MAX_STEP / np.maximum(np.abs(step).max(axis=1), 1e-12))[:, None], gain

    def climbed(self, at: Floats, step: Floats) -> Floats:
        """Backtracking: the step, halved until the likelihood does not decrease."""
        before, share = self.value(at), np.ones((len(at), 1))
        for _ in range(_MAX_HALVINGS):
            decreases = self.value(at + share * step) < before - 1e-12 * np.abs(before)
            if not decreases.any():
                break
            share[decreases] /= 2
        return np.asarray(at + share * step, dtype=np.float64)

    def _parameters(self, at: Floats) -> tuple[Floats, Floats]:
        strength = at[:, :-1]
        nu = np.where(self.tied > 0, np.exp(np.minimum(at[:, -1], 600)), 0.0)
        return strength[:, :, None] - strength[:, None, :], nu[:, None, None]


def _model(names: Sequence[str], counts: _Counts, estimates: Sequence[Estimate]) -> PreferenceModel:
    wins, ties = counts.tables(counts.table.sum(axis=0, keepdims=True))
    fit, k = _Fit.of(wins, ties), len(names)
    reach = fit.reach[0]
    part = np.argmax(reach & reach.T, axis=1)  # the first system of the part
    inside = part[:, None] == part
    bounded = _bounded(wins[0] * inside, ties[0] * inside)
    shared = np.bincount(part, minlength=k)[part] > 1
    number = {int(first): position for position, first in enumerate(dict.fromkeys(part.tolist()))}
    systems = [
        PreferredSystem(
            name=name,
            strength=float(fit.strength[0, position]) if shared[position] and bounded else None,
            part=number[int(part[position])],
            points=estimates[position],
        )
        for position, name in enumerate(names)
    ]
    pairs = list(permutations(names, 2))
    return PreferenceModel(
        systems=tuple(sorted(systems, key=_best_first)),
        wins=dict(zip(pairs, estimates[k:], strict=True)),
        ties=float(fit.ties[0]) if bounded else None,
        problems=tuple(_problems(names, reach, bounded=bounded)),
    )


def _best_first(system: PreferredSystem) -> tuple[float, str]:
    return 1.0 if system.points.value is None else -system.points.value, system.name


def _bounded(wins: Floats, ties: Floats) -> bool:
    """Whether ν has a finite estimate: there are no ties, or some cycle has more preferences, each of a system over the
    next, than ties. Otherwise strengths can move apart together with ν so that every outcome gets more likely. Finds a
    negative cycle by the Floyd-Warshall algorithm."""
    if not ties.any():
        return True
    path = np.where(wins > 0, -1.0, np.where(ties > 0, 1.0, np.inf))
    for middle in range(len(path)):
        path = np.minimum(path, path[:, middle, None] + path[middle])
        if (np.diag(path) < 0).any():
            return True
    return False


def _problems(names: Sequence[str], reach: Bools, *, bounded: bool) -> list[str]:
    problems, beside = [], "no finite strength beside theirs"
    linked = reach | reach.T
    for _ in names:
        linked = np.matmul(linked, linked)
    sets = dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in linked)
    if len(sets) > 1:
        listed = " | ".join(", ".join(names[system] for system in members) for members in sets)
        problems.append(f"no comparisons link these: {listed}")
    for part in dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in reach & reach.T):
        others = np.setdiff1d(np.flatnonzero(linked[part[0]]), part)
        above, below = reach[others, part[0]].any(), reach[part[0], others].any()
        listed = ", ".join(names[system] for system in part)
        if below and not above:
            problems.append(f"{listed}: preferred in every comparison with other systems, {beside}")
        elif above and not below:
            problems.append(f"{listed}: neither preferred nor tied in any comparison with other systems, {beside}")
        elif above and below:
            problems.append(f"{listed}: preferred in every comparison with some systems, in none with others, {beside}")
    if not bounded:
        problems.append("too few preferences beside ties: no finite strengths are the likeliest")
    return problems
