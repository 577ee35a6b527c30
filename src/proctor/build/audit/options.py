"""What the options of choice items give away by themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from proctor.build.audit.features import FEATURES, OptionTable
from proctor.build.audit.records import Contrast, Histogram, OptionAudit
from proctor.build.audit.significance import difference_p
from proctor.core import InputError, Item, generator
from proctor.core.formats import option_letters
from proctor.stats import holm, mean_interval

__all__ = ["audit_options", "right_options"]

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
    before = (length < own[:, None]) | (
        (length == own[:, None]) & (table.lots < table.lots[rows, key][:, None])
    )
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


def _histograms(
    places: NDArray[np.int64], counts: NDArray[np.int64], what: str, seed: int
) -> tuple[Histogram, ...]:
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


def _contrasts(
    table: OptionTable, right: NDArray[np.bool_], *, draws: int, seed: int
) -> tuple[Contrast, ...]:
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
        Contrast(
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
