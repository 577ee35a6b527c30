"""How often one system is preferred to another, from comparisons of two at a time: the model of Bradley and Terry, with
ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.bootstrap import CHUNK, Estimate, Resampling, sums_intervals
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes

Bools = NDArray[np.bool_]

_STEPS = 100
_HALVINGS = 30
_EXACT = 1e-10  # what one more step of the fit would add to the log likelihood
_FARTHEST = 5.0  # that a parameter moves in one step
_RIDGE = 1e-9  # so small that it tells in no digit shown, and keeps finite what nothing bounds


@dataclass(frozen=True, slots=True)
class PreferredSystem:
    """One system. `points` is the share of points that the model expects from comparisons with each of the others
    equally often (preferred 1, tie ½, other preferred 0): 0.5 is the average. `strength` is the log of Bradley and
    Terry's parameter, less the mean of its `part`; None where no finite one is the likeliest.

    >>> PreferredSystem("a", 0.7, 0, Estimate(0.66, 0.5, 0.8, n=30, groups=10)).points.value
    0.66
    """

    name: str
    strength: float | None
    part: int
    points: Estimate


@dataclass(frozen=True, slots=True)
class PreferenceModel:
    """The systems, most points first, then by name (those without points last); `wins` has for every two systems
    (first, second) the probability that the first is preferred, `ties` is Davidson's ν: two systems of equal strength
    tie in ν / (2 + ν) of comparisons; None where no finite one is the likeliest. `problems` say in one sentence each
    what the comparisons leave open.

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
    """Strengths and probabilities of preference from comparisons of two systems at a time, with clustered intervals.

    One entry per comparison: its two systems in any order, the points of the first (1: it is preferred, 0: the second
    is, 0.5: a tie) and its group. The model is that of Bradley and Terry (1952, Biometrika 39:324) with ties after
    Davidson (1970, Journal of the American Statistical Association 65:317): a is preferred to b with π_a / D, b to a
    with π_b / D, and they tie with ν √(π_a π_b) / D, D being the sum of the three; without any tie ν is 0. It is fitted
    by maximum likelihood.

    Identifiability (Ford 1957, American Mathematical Monthly 64:28): strengths can be compared within a `part`, a
    largest set of systems in which each was preferred to, or tied with, some other across every division in two. Where
    one part was always preferred to another the likeliest probability is 1, and no strength is finite: there are none
    across parts. Systems that no comparisons link, or that others link in no direction, have no probability (value
    None), and no points. Where no circle of comparisons has more preferences (all one way) than ties, no finite ν and
    strengths are the likeliest, and there are none; probabilities are the limits. `problems` names all of this.

    The intervals are those of `sums_interval`, each for itself (not simultaneous), over samples of groups; a preference
    that no group has shown may be a share of the pair's comparisons, by the number of groups that have any. Samples in
    which two systems can't be compared are left out. Time grows with samples × systems². What 95 % covers by simulation
    stands in docs/reference/statistics.md.

    Edges: no comparisons: no systems; fewer than three groups: no interval. Raises `InputError` for lengths that
    differ, points other than 1, 0.5 and 0, and a system compared with itself.

    >>> found = bradley_terry(list("aab"), list("bbc"), [1, 0, 0.5], ["v1", "v2", "v3"], Resampling(draws=50))
    >>> [(one.name, round(one.points.value, 3)) for one in found.systems]
    [('a', 0.5), ('b', 0.5), ('c', 0.5)]
    >>> bradley_terry(["a"], ["b"], [1], ["v1"]).problems[0]
    'a: preferred in every comparison with other systems, no finite strength beside theirs'
    """
    outcome = finite(points, "point")
    if not len(first) == len(second) == len(outcome):
        lengths = f"{len(first)}, {len(second)} and {len(outcome)}"
        raise InputError("comparisons", found=lengths, expected="two systems and points each")
    code = group_codes(groups, len(outcome))
    for place, pair in enumerate(zip(first, second, strict=True)):
        if pair[0] == pair[1]:
            raise InputError(f"comparison {place}", found=f"{pair[0]!r} twice", expected="two systems")
        if outcome[place] not in (0, 0.5, 1):
            raise InputError(f"point {place}", found=f"{outcome[place]:g}", expected="1, 0.5 or 0")
    names = sorted({*first, *second})
    if not names:
        return PreferenceModel((), {}, None, ("no comparisons",))
    counts = _Counts.of(first, second, outcome, names)
    found = sums_intervals(counts.table, code, counts.statistics, counts.trials(), plan.within(0, 1))
    return _model(names, counts, found)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Comparisons × outcomes that occur, and for each of these its two systems (the preferred one first, or in order)
    and whether it is a tie. Of every two systems that were compared both preferences have a column."""

    table: Floats
    one: Ints
    other: Ints
    tie: Bools
    systems: int

    @classmethod
    def of(cls, first: Sequence[str], second: Sequence[str], points: Floats, names: Sequence[str]) -> _Counts:
        place, k = {name: number for number, name in enumerate(names)}, len(names)
        a, b = (np.array([place[name] for name in some], dtype=np.int64) for some in (first, second))
        low, high, tied = np.minimum(a, b), np.maximum(a, b), points == 0.5
        swap = np.where(tied, a > b, points == 0)
        outcome = np.where(tied, k * k, 0) + np.where(swap, b * k + a, a * k + b)
        kinds = np.unique(np.concatenate([low * k + high, high * k + low, outcome]))
        table = (outcome[:, None] == kinds).astype(np.float64)
        return cls(table, kinds % (k * k) // k, kinds % k, kinds >= k * k, k)

    def trials(self) -> list[list[list[int]]]:
        """The columns of every two systems' comparisons."""
        pairs: dict[tuple[int, int], list[list[int]]] = {}
        for column, pair in enumerate(zip(self.one.tolist(), self.other.tolist(), strict=True)):
            pairs.setdefault((min(pair), max(pair)), []).append([column])
        return list(pairs.values())

    def tables(self, sums: Floats) -> tuple[Floats, Floats]:
        """Preferences (of the row over the column) and ties (both ways) of every sample."""
        shape = (len(sums), self.systems, self.systems)
        wins, ties = np.zeros(shape), np.zeros(shape)
        wins[:, self.one[~self.tie], self.other[~self.tie]] = sums[:, ~self.tie]
        ties[:, self.one[self.tie], self.other[self.tie]] = sums[:, self.tie]
        return wins, ties + ties.transpose(0, 2, 1)

    def statistics(self, sums: Floats) -> Floats:
        """Of every sample the points of every system, then the probability of every preference, row by row."""
        step = max(1, CHUNK // (8 * self.systems**2))
        parts = [_Fit.of(*self.tables(sums[k : k + step])).statistics() for k in range(0, len(sums), step)]
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class _Fit:
    """The likeliest parameters of every sample: differences of log strengths (within parts) and ν; `reach` says which
    systems a chain of preferences and ties leads to, from the row to the column."""

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
        """Of every two systems: that the row is preferred, and that they tie; NaN where nothing says so."""
        win, tie = _shares(self.strength[:, :, None] - self.strength[:, None, :], self.ties[:, None, None])
        there, back = self.reach, self.reach.transpose(0, 2, 1)
        apart = np.where(there == back, np.nan, there)
        return np.where(there & back, win, apart), np.where(there & back, tie, np.where(there == back, np.nan, 0.0))

    def statistics(self) -> Floats:
        """See `_Counts.statistics`."""
        win, tie = self.probabilities()
        off = ~np.eye(win.shape[1], dtype=np.bool_)
        points = np.where(off, win + tie / 2, 0.0).sum(axis=2) / max(1, win.shape[1] - 1)
        return np.concatenate([points, win[:, off]], axis=1)


def _shares(difference: Floats, ties: Floats) -> tuple[Floats, Floats]:
    """Davidson's probabilities of a preference and of a tie, from the difference of log strengths and ν."""
    half = np.exp(np.clip(difference, -600, 600) / 2)
    whole = half + 1 / half + ties
    return half / whole, np.broadcast_to(ties / whole, whole.shape)


def _likeliest(wins: Floats, ties: Floats, together: Bools) -> tuple[Floats, Floats]:
    """Log strengths, with mean 0 in every part, and ν of every sample; `wins` and `ties` are those within parts."""
    tied, n = ties.sum(axis=(1, 2)) / 2, wins.sum(axis=(1, 2)) + ties.sum(axis=(1, 2)) / 2
    likelihood = _Likelihood(wins, ties, together, tied)
    at = np.zeros((len(wins), wins.shape[1] + 1))
    at[:, -1] = np.where(tied > 0, np.log(np.maximum(2 * tied, 1) / np.maximum(n - tied, 0.25)), 0.0)
    active = np.arange(len(wins))
    for _ in range(_STEPS):
        some = likelihood.of(active)
        step, gain = some.step(at[active])
        at[active] = some.climbed(at[active], step)
        active = active[gain > _EXACT]
        if not len(active):
            break
    return at[:, :-1], np.where(tied > 0, np.exp(at[:, -1]), 0.0)


@dataclass(frozen=True, slots=True)
class _Likelihood:
    """The log likelihood of log strengths and log ν (last) in every sample; log ν says nothing without ties."""

    wins: Floats
    ties: Floats
    together: Bools
    tied: Floats

    def of(self, samples: Ints) -> _Likelihood:
        return _Likelihood(self.wins[samples], self.ties[samples], self.together[samples], self.tied[samples])

    def value(self, at: Floats) -> Floats:
        apart, nu = self._parameters(at)
        half = np.exp(np.clip(apart, -600, 600) / 2)
        both = self.wins + self.wins.transpose(0, 2, 1) + self.ties  # each pair stands twice
        said = (self.wins * apart - both * np.log(half + 1 / half + nu)).sum(axis=(1, 2)) / 2
        return np.asarray(said + self.tied * at[:, -1] - _RIDGE * (at**2).sum(axis=1) / 2)

    def step(self, at: Floats) -> tuple[Floats, Floats]:
        """Newton's step, no part of it longer than `_FARTHEST`, and what it promises to add."""
        apart, nu = self._parameters(at)
        win, tie = _shares(apart, nu)
        both, mean = self.wins + self.wins.transpose(0, 2, 1) + self.ties, win + tie / 2
        k, diagonal = win.shape[1], np.arange(win.shape[1] + 1)
        slope, bend = np.zeros((len(at), k + 1)), np.zeros((len(at), k + 1, k + 1))
        slope[:, :k] = (self.wins + self.ties / 2 - both * mean).sum(axis=2)
        slope[:, k] = self.tied - (both * tie).sum(axis=(1, 2)) / 2
        spread = both * (win + tie / 4 - mean**2)
        bend[:, :k, :k] = self.together - spread  # strengths of a part may all move by the same: they shall not
        bend[:, diagonal[:k], diagonal[:k]] += spread.sum(axis=2)
        bend[:, :k, k] = bend[:, k, :k] = (both * tie * (0.5 - mean)).sum(axis=2)
        bend[:, k, k] = np.where(self.tied > 0, (both * tie * (1 - tie)).sum(axis=(1, 2)) / 2, 1.0)
        slope -= _RIDGE * at
        bend[:, diagonal, diagonal] += _RIDGE
        step = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        gain = (slope * step).sum(axis=1)
        return step * np.minimum(1.0, _FARTHEST / np.maximum(np.abs(step).max(axis=1), 1e-12))[:, None], gain

    def climbed(self, at: Floats, step: Floats) -> Floats:
        """A step on, or half of it, or a quarter …: the first that does not go down."""
        before, share = self.value(at), np.ones((len(at), 1))
        for _ in range(_HALVINGS):
            down = self.value(at + share * step) < before - 1e-12 * np.abs(before)
            if not down.any():
                break
            share[down] /= 2
        return np.asarray(at + share * step, dtype=np.float64)

    def _parameters(self, at: Floats) -> tuple[Floats, Floats]:
        strength = at[:, :-1]
        nu = np.where(self.tied > 0, np.exp(np.minimum(at[:, -1], 600)), 0.0)
        return strength[:, :, None] - strength[:, None, :], nu[:, None, None]


def _model(names: Sequence[str], counts: _Counts, found: Sequence[Estimate]) -> PreferenceModel:
    wins, ties = counts.tables(counts.table.sum(axis=0, keepdims=True))
    fit, k = _Fit.of(wins, ties), len(names)
    reach = fit.reach[0]
    part = np.argmax(reach & reach.T, axis=1)  # the first system of it
    inside = part[:, None] == part
    bounded = _bounded(wins[0] * inside, ties[0] * inside)
    shared = np.bincount(part, minlength=k)[part] > 1
    number = {int(one): place for place, one in enumerate(dict.fromkeys(part.tolist()))}
    systems = [
        PreferredSystem(
            name=name,
            strength=float(fit.strength[0, place]) if shared[place] and bounded else None,
            part=number[int(part[place])],
            points=found[place],
        )
        for place, name in enumerate(names)
    ]
    pairs = [(one, other) for one in names for other in names if one != other]
    return PreferenceModel(
        systems=tuple(sorted(systems, key=_best_first)),
        wins=dict(zip(pairs, found[k:], strict=True)),
        ties=float(fit.ties[0]) if bounded else None,
        problems=tuple(_problems(names, reach, bounded=bounded)),
    )


def _best_first(one: PreferredSystem) -> tuple[float, str]:
    return 1.0 if one.points.value is None else -one.points.value, one.name


def _bounded(wins: Floats, ties: Floats) -> bool:
    """Whether a finite ν is the likeliest: without ties (0), or where some circle has more preferences, each of a
    system over the next, than ties. Else strengths can move apart, each preference by two at least and each tie by two
    at most, and ν with them, and every outcome only gets likelier. (Floyd and Warshall's shortest paths.)"""
    if not ties.any():
        return True
    path = np.where(wins > 0, -1.0, np.where(ties > 0, 1.0, np.inf))
    for middle in range(len(path)):
        path = np.minimum(path, path[:, middle, None] + path[middle])
        if (np.diag(path) < 0).any():
            return True
    return False


def _problems(names: Sequence[str], reach: Bools, *, bounded: bool) -> list[str]:
    found, beside = [], "no finite strength beside theirs"
    linked = reach | reach.T
    for _ in names:
        linked = np.matmul(linked, linked)
    sets = dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in linked)
    if len(sets) > 1:
        told = " | ".join(", ".join(names[one] for one in some) for some in sets)
        found.append(f"no comparisons link these: {told}")
    for part in dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in reach & reach.T):
        others = np.setdiff1d(np.flatnonzero(linked[part[0]]), part)
        above, below = reach[others, part[0]].any(), reach[part[0], others].any()
        told = ", ".join(names[one] for one in part)
        if below and not above:
            found.append(f"{told}: preferred in every comparison with other systems, {beside}")
        elif above and not below:
            found.append(f"{told}: neither preferred nor tied in any comparison with other systems, {beside}")
        elif above and below:
            found.append(f"{told}: preferred in every comparison with some systems, in none with others, {beside}")
    if not bounded:
        found.append("too few preferences beside ties: no finite strengths are the likeliest")
    return found
