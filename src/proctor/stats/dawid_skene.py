"""What is true of items that several annotators labelled, and how reliable each annotator is, without a reference:
the latent class model of Dawid and Skene (1979), fitted by expectation maximisation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.bootstrap import CHUNK, Estimate, Resampling
from proctor.stats.clusters import Floats, Ints, group_codes
from proctor.stats.correlation import Resamples
from proctor.stats.means import mean_interval

MOST_ITERATIONS = 500
"""Of expectation maximisation; a fit that needs more is reported as not converged."""

TOLERANCE = 1e-7
"""A fit has converged where no posterior probability changes by more than this from one iteration to the next."""


@dataclass(frozen=True, slots=True)
class LabelVotes:
    """Votes by position: each has an item, an annotator, a label, and its item's stratum and group (the video).

    Items of one stratum share the prior of the labels; annotators have one confusion matrix over all strata.

    >>> LabelVotes(["a", "a"], ["r1", "r2"], ["yes", "no"], ["x", "x"], ["v", "v"]).labels
    ['yes', 'no']
    """

    items: Sequence[Hashable]
    annotators: Sequence[Hashable]
    labels: Sequence[Hashable]
    strata: Sequence[Hashable]
    groups: Sequence[str]

    def __post_init__(self) -> None:
        sizes = {len(one) for one in (self.items, self.annotators, self.labels, self.strata, self.groups)}
        if len(sizes) > 1:
            raise InputError("votes", found=f"columns of {sorted(sizes)} entries", expected="one of each a vote")

    def without(self, *annotators: Hashable) -> LabelVotes:
        """The votes of all others.

        >>> LabelVotes(["a", "a"], ["r1", "r2"], [0, 1], ["", ""], ["v", "v"]).without("r1").labels
        [1]
        """
        kept = [place for place, one in enumerate(self.annotators) if one not in annotators]
        items, said, labels, strata = (
            [column[place] for place in kept] for column in (self.items, self.annotators, self.labels, self.strata)
        )
        return LabelVotes(items, said, labels, strata, [self.groups[place] for place in kept])


@dataclass(frozen=True, slots=True)
class LatentLabels:
    """A fitted model. `items`, `annotators` and `strata` stand in order of appearance, `levels` as they were given.

    `prior` is strata × levels. `confusion` is annotators × true level × level said, rows sum to 1. `posterior` is
    items × levels: the probability of each level given all votes; `low` and `high` are the ends of its percentile
    interval over the bootstrap samples (NaN with fewer than three groups), which tells how much of it is due to not
    knowing the annotators. `log_likelihood` is that of the votes, without the pseudo-counts.

    `reliability` has one estimate per annotator: (K · mean of the diagonal − 1) / (K − 1) for K levels, Youden's J for
    two: 1 is always right, 0 says nothing of the truth (always the same answer, or one at random), below 0 is
    inverted. Its interval is clustered by group (`Resamples`), `n` counts the annotator's votes.

    >>> votes = LabelVotes(list("aabbcc"), ["r", "s"] * 3, [1, 1, 0, 0, 0, 0], [""] * 6, ["v"] * 6)
    >>> found = dawid_skene(votes, [0, 1], smoothing=0, plan=None)
    >>> found.posterior.shape, found.reliability[0].value, found.converged
    ((3, 2), 1.0, True)
    """

    items: tuple[Hashable, ...]
    annotators: tuple[Hashable, ...]
    levels: tuple[Hashable, ...]
    strata: tuple[Hashable, ...]
    prior: Floats
    confusion: Floats
    posterior: Floats
    low: Floats
    high: Floats
    reliability: tuple[Estimate, ...]
    log_likelihood: float
    iterations: int
    converged: bool


def dawid_skene(
    votes: LabelVotes,
    levels: Sequence[Hashable],
    *,
    smoothing: float = 0.5,
    plan: Resampling | None = Resampling(draws=500),
) -> LatentLabels:
    """Fits the model of Dawid and Skene (1979, Applied Statistics 28:20) to votes.

    Given an item's true level the votes are independent, each by its annotator's confusion matrix. Parameters and
    true levels are estimated in turns from the shares of votes on, as in the paper, until no posterior changes by more
    than `TOLERANCE`, at most `MOST_ITERATIONS` times. `smoothing` pseudo-counts are added to each cell of a confusion
    matrix and of a prior (the mode under a Dirichlet prior), so that an annotator with few votes of a level is not
    said never to err; 0 is maximum likelihood, where a row without votes is uniform. An annotator may vote on an item
    several times. With `plan` the fit is repeated on every bootstrap sample of groups, from the full fit on.

    The labels are those of the majority: where most annotators are inverted, so is the result. Annotators who copy
    one another are taken for independent ones; `copying` finds them.

    Raises `InputError` for no votes, a level given twice, fewer than two levels, a label that is no level, an item in
    two strata or groups, and a negative smoothing.

    >>> votes = LabelVotes(list("aaabbbcccddd"), [1, 2, 3] * 4, [1, 1, 0, 0, 0, 0] * 2, [""] * 12, ["v"] * 12)
    >>> dawid_skene(votes, [0, 1], smoothing=0.1, plan=None).posterior[:2].round(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    table = _tabulated(votes, levels, smoothing)
    share = table.counts.sum(axis=1)
    fit = _fitted(table, table.weights, (share / share.sum(axis=1, keepdims=True))[None])
    posterior = fit.posterior[0][table.pattern]
    unknown = np.full_like(posterior, np.nan)
    low, high = unknown, unknown
    reliability = _reliability(fit.confusion)
    per_annotator = table.counts[table.pattern].sum(axis=(0, 2)).astype(int)
    estimates = [
        Estimate(float(one), None, None, int(n), table.groups[k])
        for k, (one, n) in enumerate(zip(reliability[0], per_annotator, strict=True))
    ]
    if plan is not None and len(table.labels) >= 3:
        samples = Resamples(table.labels, plan=plan)
        drawn, reliable = _resampled(table, samples, fit.posterior[0])
        tails = np.nanpercentile(drawn, [50 * (1 - plan.level), 50 * (1 + plan.level)], axis=0)
        low, high = tails[0][table.pattern], tails[1][table.pattern]
        units = samples.units(table.labels)
        estimates = [
            samples.sampled(reliable[:, k], units, n=one.n, groups=one.groups).estimate()
            for k, one in enumerate(estimates)
        ]
    return LatentLabels(
        table.items, table.annotators, tuple(levels), table.strata, fit.prior[0], fit.confusion[0], posterior, low,
        high, tuple(estimates), float(fit.log_likelihood[0]), fit.iterations, fit.converged,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _VoteTable:
    """Items with the same votes in the same stratum are one pattern: `counts` is patterns × annotators × levels,
    `weights` 1 × patterns how many items have it, `per_group` the same by group."""

    items: tuple[Hashable, ...]
    annotators: tuple[Hashable, ...]
    strata: tuple[Hashable, ...]
    labels: list[str]
    groups: list[int]
    pattern: Ints
    stratum: Ints
    counts: Floats
    per_group: Floats
    smoothing: float

    @property
    def weights(self) -> Floats:
        total: Floats = self.per_group.sum(axis=0, keepdims=True)
        return total


def _tabulated(votes: LabelVotes, levels: Sequence[Hashable], smoothing: float) -> _VoteTable:
    n = len(votes.labels)
    if not n:
        raise InputError("votes", found="none", expected="one or more")
    if not 0 <= smoothing < np.inf:
        raise InputError("smoothing", found=f"{smoothing:g}", expected="0 or more")
    place = {level: number for number, level in enumerate(levels)}
    if len(place) != len(levels) or len(place) < 2:
        raise InputError("levels", found=str(list(levels)), expected="two or more, each once")
    wrong = next((k for k, label in enumerate(votes.labels) if label not in place), None)
    if wrong is not None:
        expected = "one of " + ", ".join(map(str, levels))
        raise InputError(f"label of vote {wrong}", found=repr(votes.labels[wrong]), expected=expected)
    label = np.array([place[one] for one in votes.labels])
    item, annotator = group_codes(votes.items, n), group_codes(votes.annotators, n)
    stratum, group = group_codes(votes.strata, n), group_codes(votes.groups, n)
    own = np.zeros((int(item.max()) + 1, 2), dtype=np.int64)
    own[item] = np.stack([stratum, group], axis=1)
    for column, what in ((stratum, "stratum"), (group, "group")):
        found = own[item, 0 if what == "stratum" else 1] != column
        if found.any():
            at = int(np.flatnonzero(found)[0])
            raise InputError(f"item {votes.items[at]!r}", found=f"a second {what}", expected="one")
    cells = np.zeros((len(own), int(annotator.max()) + 1, len(levels)))
    np.add.at(cells, (item, annotator, label), 1.0)
    flat = np.concatenate([own[:, :1], cells.reshape(len(own), -1)], axis=1)
    kinds, pattern = np.unique(flat, axis=0, return_inverse=True)
    names = list(dict.fromkeys(votes.groups))
    per_group = np.zeros((len(names), len(kinds)))
    np.add.at(per_group, (own[:, 1], pattern.reshape(-1)), 1.0)
    annotators = tuple(dict.fromkeys(votes.annotators))
    in_groups = [len(set(group[annotator == k].tolist())) for k in range(len(annotators))]
    return _VoteTable(
        tuple(dict.fromkeys(votes.items)), annotators, tuple(dict.fromkeys(votes.strata)), names, in_groups,
        pattern.reshape(-1), kinds[:, 0].astype(np.int64), kinds[:, 1:].reshape(len(kinds), *cells.shape[1:]),
        per_group, smoothing,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Fits:
    """Fits to several weightings of the patterns (rows) at once; arrays as in `LatentLabels`, one more axis first."""

    prior: Floats
    confusion: Floats
    posterior: Floats
    log_likelihood: Floats
    iterations: int
    converged: bool


def _fitted(table: _VoteTable, weights: Floats, start: Floats) -> _Fits:
    """Expectation maximisation for every row of weights, from these posteriors (rows × patterns × levels) on."""
    posterior = np.broadcast_to(start, (len(weights), *start.shape[1:]))
    iteration = 0
    for iteration in range(1, MOST_ITERATIONS + 1):  # noqa: B007 - the number is told
        prior, confusion = _maximised(table, weights, posterior)
        likelihood = _log_joint(table, prior, confusion)
        peak = likelihood.max(axis=2, keepdims=True)
        terms = np.exp(likelihood - peak)
        before, posterior = posterior, terms / terms.sum(axis=2, keepdims=True)
        if np.abs(posterior - before).max() <= TOLERANCE:
            break
    total = ((np.log(terms.sum(axis=2)) + peak[:, :, 0]) * weights).sum(axis=1)
    return _Fits(prior, confusion, posterior, total, iteration, iteration < MOST_ITERATIONS)


def _maximised(table: _VoteTable, weights: Floats, posterior: Floats) -> tuple[Floats, Floats]:
    """Prior (rows × strata × levels) and confusion (rows × annotators × levels × levels)."""
    weighted = weights[:, :, None] * posterior
    n_strata = int(table.stratum.max()) + 1
    prior = np.stack([weighted[:, table.stratum == s].sum(axis=1) for s in range(n_strata)], axis=1)
    flat = table.counts.reshape(len(table.counts), -1)
    said = np.swapaxes(weighted, 1, 2) @ flat
    said = said.reshape(len(weights), posterior.shape[2], *table.counts.shape[1:]).swapaxes(1, 2)
    return _shares(prior + table.smoothing), _shares(said + table.smoothing)


def _shares(counts: Floats) -> Floats:
    """Counts as shares of their last axis, equal ones where there are none."""
    totals = counts.sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(counts, totals, out=np.full(counts.shape, 1 / counts.shape[-1]), where=totals > 0)
    return shares


def _log_joint(table: _VoteTable, prior: Floats, confusion: Floats) -> Floats:
    """The log of prior × likelihood of every pattern and level; what is impossible is −700 for each vote, so that an
    item that is impossible under all levels still has a posterior."""
    logs = np.log(np.maximum(confusion, 1e-304))
    flat = table.counts.reshape(len(table.counts), -1)
    rows, annotators, true, said = logs.shape
    per_level = logs.swapaxes(1, 2).reshape(rows, true, annotators * said)
    joint: Floats = np.swapaxes(per_level @ flat.T, 1, 2) + np.log(np.maximum(prior, 1e-304))[:, table.stratum]
    return joint


def _reliability(confusion: Floats) -> Floats:
    """Rows × annotators."""
    levels = confusion.shape[-1]
    right = np.diagonal(confusion, axis1=2, axis2=3).mean(axis=2)
    reliability: Floats = (levels * right - 1) / (levels - 1)
    return reliability


def _resampled(table: _VoteTable, samples: Resamples, start: Floats) -> tuple[Floats, Floats]:
    """Posteriors of every pattern in the bootstrap samples, and reliabilities under every row of weights; NaN for an
    annotator of whom a sample has no vote."""
    units = samples.units(table.labels)
    per_unit = np.zeros((samples.n_units, table.per_group.shape[1]))
    np.add.at(per_unit, units, table.per_group)
    votes = table.counts.sum(axis=2)
    step = max(1, CHUNK // (8 * table.counts.size))
    posteriors, reliable = [], []
    for first in range(0, len(samples.weights), step):
        weights = samples.weights[first : first + step] @ per_unit
        fit = _fitted(table, weights, start[None])
        posteriors.append(fit.posterior)
        reliable.append(np.where(weights @ votes > 0, _reliability(fit.confusion), np.nan))
    drawn = np.concatenate(posteriors)[1 : 1 + samples.plan.draws]
    return drawn, np.concatenate(reliable)


def entropy(probabilities: NDArray[Any]) -> Floats:
    """Bits of each row of probabilities (which sum to 1): 0 is certain, the log₂ of their number is knowing nothing.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    shares = np.asarray(probabilities, dtype=np.float64)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits: Floats = np.abs((shares * logs).sum(axis=-1))
    return bits


COPIED = 0.98
"""Two annotators who copy agree on at least this share of the items that both labelled."""

BEYOND = 0.02
"""By how much, at the low end of its interval, they agree more often than annotators who work alone would."""

_FEWEST_SHARED = 20


def copying(
    votes: LabelVotes, levels: Sequence[Hashable], plan: Resampling = Resampling(draws=500)
) -> list[tuple[Hashable, Hashable, Estimate]]:
    """Pairs of annotators who agree more than two who work alone would: each pair with how much more often (a share
    of the items that both labelled, with its clustered interval).

    For two who agree on at least `COPIED` of 20 or more items the model is fitted to the votes of all others, which
    copying can't have changed; against its posteriors each of the two has a confusion matrix, and so an expected
    agreement on every item. Reported are pairs where the interval of observed less expected agreement begins above
    `BEYOND`. At least two others are needed: else nothing can be said, and no pair is reported. Items that are hard
    for everybody make honest annotators agree on what is wrong: it is a reason to ask, not a proof.

    >>> copying(LabelVotes(["a"], ["r"], [0], [""], ["v"]), [0, 1])
    []
    """
    first: dict[Hashable, dict[Hashable, int]] = {}
    place = {level: number for number, level in enumerate(levels)}
    for item, annotator, label in zip(votes.items, votes.annotators, votes.labels, strict=True):
        first.setdefault(annotator, {}).setdefault(item, place[label])
    group = dict(zip(votes.items, votes.groups, strict=True))
    found = []
    for one, other in combinations(first, 2):
        shared = [item for item in first[one] if item in first[other]]
        same = np.array([first[one][item] == first[other][item] for item in shared], dtype=np.float64)
        if len(shared) < _FEWEST_SHARED or same.mean() < COPIED or len(first) < 4:
            continue
        rest = dawid_skene(votes.without(one, other), levels, plan=None)
        known = dict(zip(rest.items, rest.posterior, strict=True))
        kept = [place for place, item in enumerate(shared) if item in known]
        if len(kept) < _FEWEST_SHARED:
            continue
        posterior = np.array([known[shared[place]] for place in kept])
        said = [np.eye(len(levels))[[first[who][shared[place]] for place in kept]] for who in (one, other)]
        a, b = (_shares(posterior.T @ labels + 0.5) for labels in said)
        expected = posterior @ (a * b).sum(axis=1)
        groups = [group[shared[place]] for place in kept]
        beyond = mean_interval(same[kept] - expected, groups, plan.within(-1, 1))
        if beyond.ci_low is not None and beyond.ci_low > BEYOND:
            found.append((one, other, beyond))
    return found
