"""What the options of choice items give away by themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr
from scipy.stats import binom, chi2

from proctor.audits.items.features import FEATURES, OptionTable
from proctor.audits.items.records import Histogram, OptionAudit, OptionContrast
from proctor.core import InputError, Item, generator
from proctor.core.formats import option_letters
from proctor.stats import holm, mean_interval

_Floats = NDArray[np.float64]


def surplus_p(hits: NDArray[np.bool_], chance: _Floats, groups: NDArray[np.int64]) -> _Floats:
    """One-sided p of each guesser (a row of `hits`, guessers × items) against random guessing, where item
    i is right with probability `chance[i]`.

    It is the larger of two, since either may be too hopeful: the exact tail of the number of hits if
    all items were independent (with few groups the t-test knows too little of the spread), and a t-test of
    the groups' surplus (hits − chance, summed over the group) against 0 (items of a group may be
    alike). With a single group only the first can be had. NaN nowhere; no item at all gives 1.
    """
    exact = _tail(chance)[hits.sum(axis=1)]
    _, codes = np.unique(groups, return_inverse=True)
    if len(codes) == 0 or codes.max() < 1:
        return np.asarray(exact)
    surplus = _group_sums(hits - chance, codes)
    return np.asarray(np.maximum(exact, stdtr(surplus.shape[1] - 1, -_t(surplus))))


def difference_p(differences: _Floats, groups: NDArray[np.int64]) -> float | None:
    """Two-sided p of a t-test of the groups' summed differences against 0; None with one group."""
    _, codes = np.unique(groups, return_inverse=True)
    if len(codes) == 0 or codes.max() < 1:
        return None
    sums = _group_sums(differences[None, :], codes)
    return float(2 * stdtr(sums.shape[1] - 1, -abs(_t(sums)[0])))


def _tail(chance: _Floats) -> _Floats:
    """P(at least h hits), h = 0 to n, of independent tries with these probabilities."""
    mass = np.ones(1)
    for probability, tries in zip(*np.unique(chance, return_counts=True), strict=True):
        mass = np.convolve(mass, binom.pmf(np.arange(tries + 1), tries, probability))
    return np.minimum(1.0, np.cumsum(mass[::-1])[::-1])


def _group_sums(values: _Floats, codes: NDArray[np.int64]) -> _Floats:
    return np.stack([np.bincount(codes, row) for row in values])


def _t(sums: _Floats) -> _Floats:
    """The t statistic of each row against 0; 0 for rows of zeros, infinite where all agree otherwise."""
    mean = sums.mean(axis=1)
    error = sums.std(axis=1, ddof=1) / np.sqrt(sums.shape[1])
    error[error < 1e-12] = 0.0
    unlimited = np.where(np.abs(mean) < 1e-12, 0.0, np.copysign(np.inf, mean))
    return np.asarray(np.divide(mean, error, out=unlimited, where=error > 0))


_SIMULATIONS = 10_000


def right_options(table: OptionTable) -> NDArray[np.bool_]:
    """Items × options: which are right, accepted alternatives included.

    Raises `InputError` for a reference that names no option.
    """
    right = np.zeros_like(table.present)
    for row, item in enumerate(table.items):
        for place in _places(item):
            right[row, place] = True
    return right


def audit_options(table: OptionTable, right: NDArray[np.bool_], *, draws: int, seed: int) -> OptionAudit:
    """Histograms and contrasts of right against wrong options. Where several options are right, the
    histograms count the one that the reference names first."""
    key = np.array([_places(item)[0] for item in table.items])
    rows = np.arange(len(key))
    length = table.values[:, :, 0]
    own = length[rows, key]
    others = table.present.copy()
    others[rows, key] = False
    # Equally long options share no rank: the lot that settles all ties orders them.
    before = (length < own[:, None]) | ((length == own[:, None]) & (table.lots < table.lots[rows, key][:, None]))
    return OptionAudit(
        key_positions=_histograms(key, table.counts, "positions", seed),
        length_ranks=_histograms((before & others).sum(axis=1), table.counts, "ranks", seed),
        strictly_shortest=int((~others | (length > own[:, None])).all(axis=1).sum()),
        strictly_longest=int((~others | (length < own[:, None])).all(axis=1).sum()),
        contrasts=_contrasts(table, right, draws=draws, seed=seed),
    )


def _places(item: Item) -> list[int]:
    letters = option_letters(len(item.options))
    keys = (item.reference.answer, *item.reference.accepted) if item.reference else ()
    for key in keys:
        if key not in letters:
            raise InputError(
                None, f"item {item.id}, reference", found=repr(key), expected=f"one of {', '.join(letters)}"
            )
    return [letters.index(str(key)) for key in keys]


def _histograms(places: NDArray[np.int64], counts: NDArray[np.int64], what: str, seed: int) -> tuple[Histogram, ...]:
    found = []
    for options in np.unique(counts):
        seen = np.bincount(places[counts == options], minlength=options)
        p, test = _uniform_p(seen, generator(seed, "audit", what, str(options)))
        found.append(Histogram(int(options), tuple(int(count) for count in seen), p, test))
    return tuple(found)


def _uniform_p(seen: NDArray[np.int64], rng: np.random.Generator) -> tuple[float, str]:
    """Pearson's chi-square against all places alike; simulated where five or more are not expected."""
    total, places = int(seen.sum()), len(seen)
    expected = total / places
    statistic = float(((seen - expected) ** 2).sum() / expected)
    if expected >= 5:
        return float(chi2.sf(statistic, places - 1)), "chi-square"
    simulated = rng.multinomial(total, np.full(places, 1 / places), size=_SIMULATIONS)
    as_far = (((simulated - expected) ** 2).sum(axis=1) / expected >= statistic - 1e-9).sum()
    return float((1 + as_far) / (1 + _SIMULATIONS)), "simulated chi-square"


def _contrasts(table: OptionTable, right: NDArray[np.bool_], *, draws: int, seed: int) -> tuple[OptionContrast, ...]:
    wrong = table.present & ~right
    both = right.any(axis=1) & wrong.any(axis=1)
    if not both.any():
        return ()
    values, right, wrong = table.values[both], right[both], wrong[both]
    of_right = (values * right[:, :, None]).sum(axis=1) / right.sum(axis=1)[:, None]
    of_wrong = (values * wrong[:, :, None]).sum(axis=1) / wrong.sum(axis=1)[:, None]
    groups = np.unique([item.group for item in table.items], return_inverse=True)[1][both]
    apart = of_right - of_wrong
    p = [difference_p(apart[:, index], groups) for index in range(len(FEATURES))]
    adjusted = _adjusted(p)
    return tuple(
        OptionContrast(
            feature=feature.name,
            label=feature.label,
            right=float(of_right[:, index].mean()),
            wrong=float(of_wrong[:, index].mean()),
            difference=mean_interval(apart[:, index], groups, draws=draws, seed=seed),
            p=p[index],
            p_holm=adjusted[index],
        )
        for index, feature in enumerate(FEATURES)
    )


def _adjusted(p: Sequence[float | None]) -> list[float | None]:
    known = [value for value in p if value is not None]
    return [float(value) for value in holm(known)] if len(known) == len(p) else [None] * len(p)
