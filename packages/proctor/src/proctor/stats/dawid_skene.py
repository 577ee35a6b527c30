"""The latent class model of Dawid and Skene (1979), fitted by expectation maximisation: true labels of items and the
reliability of annotators, without reference labels."""

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
"""The maximum number of EM iterations; a fit that needs more is reported as not converged."""

TOLERANCE = 1e-7
"""A fit has converged if no posterior probability changes by more than this in an iteration."""


@dataclass(frozen=True, slots=True)
class LabelVotes:
    """Votes as parallel columns: item, annotator, label, and the item's stratum and group (such as its video).

    Items of a stratum share a prior of the labels; each annotator has one confusion matrix over all strata. Raises
    `InputError` for columns of unequal length.

    >>> LabelVotes(["a", "a"], ["r1", "r2"], ["yes", "no"], ["x", "x"], ["v", "v"]).labels
    ['yes', 'no']
    """

    items: Sequence[Hashable]
    annotators: Sequence[Hashable]
    labels: Sequence[Hashable]
    strata: Sequence[Hashable]
    groups: Sequence[str]

    def __post_init__(self) -> None:
        sizes = {len(column) for column in (self.items, self.annotators, self.labels, self.strata, self.groups)}
        if len(sizes) > 1:
            raise InputError("votes", found=f"columns of {sorted(sizes)} entries", expected="one of each a vote")

    def without(self, *annotators: Hashable) -> LabelVotes:
        """The votes of all other annotators.

        >>> LabelVotes(["a", "a"], ["r1", "r2"], [0, 1], ["", ""], ["v", "v"]).without("r1").labels
        [1]
        """
        kept = [position for position, annotator in enumerate(self.annotators) if annotator not in annotators]
        items, others, labels, strata = (
            [column[position] for position in kept]
            for column in (self.items, self.annotators, self.labels, self.strata)
        )
        return LabelVotes(items, others, labels, strata, [self.groups[position] for position in kept])


@dataclass(frozen=True, slots=True)
class LatentLabels:
    """A fitted model. `items`, `annotators` and `strata` are in order of appearance, `levels` in the given order.

    `prior` is strata × levels. `confusion` is annotators × true level × reported level; rows sum to 1. `posterior` is
    items × levels: the probability of each level given all votes. `low` and `high` are its percentile interval over the
    bootstrap samples (NaN with fewer than three groups), which reflects the uncertainty about the annotators.
    `log_likelihood` is that of the votes, without the pseudo-counts.

    `reliability` has one estimate per annotator: (K · mean of the diagonal − 1) / (K − 1) for K levels, which is
    Youden's J for K = 2. 1 is always right, 0 is uninformative (a constant or random answer), below 0 is inverted. Its
    interval is clustered by group (`Resamples`); `n` counts the annotator's votes.

    >>> votes = LabelVotes(list("aabbcc"), ["r", "s"] * 3, [1, 1, 0, 0, 0, 0], [""] * 6, ["v"] * 6)
    >>> fit = dawid_skene(votes, [0, 1], smoothing=0, plan=None)
    >>> fit.posterior.shape, fit.reliability[0].value, fit.converged
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
    """Fit the model of Dawid and Skene (1979, Applied Statistics 28:20) to votes.

    Given the true level of an item, votes are independent and follow the confusion matrix of their annotator. EM starts
    from the vote shares, as in the paper, and stops if no posterior changes by more than `TOLERANCE`, or after
    `MOST_ITERATIONS` iterations. `smoothing` pseudo-counts are added to each cell of the confusion matrices and priors
    (the mode under a Dirichlet prior), so that annotators with few votes for a level are not estimated as infallible;
    0 is maximum likelihood, with uniform rows where there are no votes. An annotator may vote on an item several times.
    With `plan`, the fit is repeated on each bootstrap sample of groups, starting from the full fit.

    The model follows the majority: if most annotators are inverted, so is the result. Annotators are assumed to be
    independent; `copying` finds those who copy each other.

    Raises `InputError` for no votes, a duplicate level, fewer than two levels, a label that is not in `levels`, an item
    in two strata or groups, and negative smoothing.

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
        Estimate(float(value), None, None, int(n), table.groups[k])
        for k, (value, n) in enumerate(zip(reliability[0], per_annotator, strict=True))
    ]
    if plan is not None and len(table.labels) >= 3:
        samples = Resamples(table.labels, plan=plan)
        drawn, reliable = _resampled(table, samples, fit.posterior[0])
        tails = np.nanpercentile(drawn, [50 * (1 - plan.level), 50 * (1 + plan.level)], axis=0)
        low, high = tails[0][table.pattern], tails[1][table.pattern]
        units = samples.units(table.labels)
        estimates = [
            samples.sampled(reliable[:, k], units, n=estimate.n, groups=estimate.groups).estimate()
            for k, estimate in enumerate(estimates)
        ]
    return LatentLabels(
        table.items, table.annotators, tuple(levels), table.strata, fit.prior[0], fit.confusion[0], posterior, low,
        high, tuple(estimates), float(fit.log_likelihood[0]), fit.iterations, fit.converged,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _VoteTable:
    """Votes by pattern: items with equal votes in the same stratum are one pattern. `counts` is patterns × annotators ×
    levels; `weights` (1 × patterns) is the number of items with a pattern, `per_group` that in each group."""

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
    position = {level: number for number, level in enumerate(levels)}
    if len(position) != len(levels) or len(position) < 2:
        raise InputError("levels", found=str(list(levels)), expected="two or more, each once")
    wrong = next((k for k, label in enumerate(votes.labels) if label not in position), None)
    if wrong is not None:
        expected = "one of " + ", ".join(map(str, levels))
        raise InputError(f"label of vote {wrong}", found=repr(votes.labels[wrong]), expected=expected)
    label = np.array([position[label] for label in votes.labels])
    item, annotator = group_codes(votes.items, n), group_codes(votes.annotators, n)
    stratum, group = group_codes(votes.strata, n), group_codes(votes.groups, n)
    own = np.zeros((int(item.max()) + 1, 2), dtype=np.int64)
    own[item] = np.stack([stratum, group], axis=1)
    for column, what in ((stratum, "stratum"), (group, "group")):
        differs = own[item, 0 if what == "stratum" else 1] != column
        if differs.any():
            at = int(np.flatnonzero(differs)[0])
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
    """Fits for several weightings of the patterns; arrays as in `LatentLabels`, with the weightings as first axis."""

    prior: Floats
    confusion: Floats
    posterior: Floats
    log_likelihood: Floats
    iterations: int
    converged: bool


def _fitted(table: _VoteTable, weights: Floats, start: Floats) -> _Fits:
    """EM for each row of weights, starting from these posteriors (rows × patterns × levels)."""
    posterior = np.broadcast_to(start, (len(weights), *start.shape[1:]))
    iteration = 0
    for iteration in range(1, MOST_ITERATIONS + 1):  # noqa: B007 - reported below
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
    reported = np.swapaxes(weighted, 1, 2) @ flat
    reported = reported.reshape(len(weights), posterior.shape[2], *table.counts.shape[1:]).swapaxes(1, 2)
    return _shares(prior + table.smoothing), _shares(reported + table.smoothing)


def _shares(counts: Floats) -> Floats:
    """Counts divided by their sum over the last axis; uniform where the sum is 0."""
    totals = counts.sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(counts, totals, out=np.full(counts.shape, 1 / counts.shape[-1]), where=totals > 0)
    return shares


def _log_joint(table: _VoteTable, prior: Floats, confusion: Floats) -> Floats:
    """The log of prior × likelihood of each pattern and level. log 0 is replaced by −700, so that an item that is
    impossible under all levels still has a posterior."""
    logs = np.log(np.maximum(confusion, 1e-304))
    flat = table.counts.reshape(len(table.counts), -1)
    rows, annotators, true, reported = logs.shape
    per_level = logs.swapaxes(1, 2).reshape(rows, true, annotators * reported)
    joint: Floats = np.swapaxes(per_level @ flat.T, 1, 2) + np.log(np.maximum(prior, 1e-304))[:, table.stratum]
    return joint


def _reliability(confusion: Floats) -> Floats:
    """The reliability of each annotator: rows × annotators."""
    levels = confusion.shape[-1]
    right = np.diagonal(confusion, axis1=2, axis2=3).mean(axis=2)
    reliability: Floats = (levels * right - 1) / (levels - 1)
    return reliability


def _resampled(table: _VoteTable, samples: Resamples, start: Floats) -> tuple[Floats, Floats]:
    """The posteriors of each pattern in the bootstrap samples, and the reliabilities for each row of weights; NaN for
    an annotator without votes in a sample."""
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
    """The entropy in bits of each row of probabilities (which sum to 1): from 0 (certain) to log₂ K (uniform).

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    shares = np.asarray(probabilities, dtype=np.float64)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits: Floats = np.abs((shares * logs).sum(axis=-1))
    return bits


COPIED = 0.98
"""The minimum observed agreement of a pair that is checked for copying, as a share of their shared items."""

BEYOND = 0.02
"""The minimum excess agreement of a reported pair, at the lower end of its confidence interval."""

_MIN_SHARED = 20


def copying(
    votes: LabelVotes, levels: Sequence[Hashable], plan: Resampling = Resampling(draws=500)
) -> list[tuple[Hashable, Hashable, Estimate]]:
    """Pairs of annotators who agree more often than independent annotators would, each with its excess agreement (a
    share of the items that both labelled, with a clustered interval).

    Pairs that agree on at least `COPIED` of 20 or more shared items are checked. The model is fitted to the votes of
    all other annotators, which copying can't have affected. Its posteriors give each of the two a confusion matrix and
    so an expected agreement on each item. A pair is reported if the interval of observed minus expected agreement
    begins above `BEYOND`. Without at least two other annotators no pair is reported. Independent annotators may also
    agree on wrong labels of hard items, so a reported pair is a reason to ask, not a proof.

    >>> copying(LabelVotes(["a"], ["r"], [0], [""], ["v"]), [0, 1])
    []
    """
    first: dict[Hashable, dict[Hashable, int]] = {}
    position = {level: number for number, level in enumerate(levels)}
    for item, annotator, label in zip(votes.items, votes.annotators, votes.labels, strict=True):
        first.setdefault(annotator, {}).setdefault(item, position[label])
    group = dict(zip(votes.items, votes.groups, strict=True))
    pairs = []
    for a, b in combinations(first, 2):
        shared = [item for item in first[a] if item in first[b]]
        same = np.array([first[a][item] == first[b][item] for item in shared], dtype=np.float64)
        if len(shared) < _MIN_SHARED or same.mean() < COPIED or len(first) < 4:
            continue
        rest = dawid_skene(votes.without(a, b), levels, plan=None)
        known = dict(zip(rest.items, rest.posterior, strict=True))
        kept = [position for position, item in enumerate(shared) if item in known]
        if len(kept) < _MIN_SHARED:
            continue
        posterior = np.array([known[shared[position]] for position in kept])
        labels = [np.eye(len(levels))[[first[who][shared[position]] for position in kept]] for who in (a, b)]
        a_confusion, b_confusion = (_shares(posterior.T @ own + 0.5) for own in labels)
        expected = posterior @ (a_confusion * b_confusion).sum(axis=1)
        groups = [group[shared[position]] for position in kept]
        beyond = mean_interval(same[kept] - expected, groups, plan.within(-1, 1))
        if beyond.ci_low is not None and beyond.ci_low > BEYOND:
            pairs.append((a, b, beyond))
    return pairs
