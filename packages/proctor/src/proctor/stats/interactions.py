"""Is a difference between two systems the same in all parts of the items? Differences of differences, and one test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proctor.core import InputError
from proctor.stats.bootstrap import Estimate
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes
from proctor.stats.paired import holm_known
from proctor.stats.special import fdtrc, stdtr, stdtrit

_FEWEST = 3  # groups that must differ from the mean of their part, on each side of a contrast


@dataclass(frozen=True, slots=True)
class PartContrast:
    """One part against all others: the difference within it minus the difference in the others (`estimate`), its p, p
    adjusted by Holm for all parts, and the degrees of freedom. Without an interval and p, if too few groups differ.

    >>> found = interaction([0, 1, 0, 1, 1, 2, 1, 2], ["a"] * 4 + ["b"] * 4, list("12345678"))
    >>> found.parts[0].part, found.parts[0].n, found.parts[0].difference
    ('a', 4, 0.5)
    """

    part: str
    n: int
    groups: int
    difference: float
    estimate: Estimate
    p: float | None
    p_holm: float | None
    degrees: float


@dataclass(frozen=True, slots=True)
class Interaction:
    """The parts of the items, and the test that the difference is the same in all: F with (`between`, `within`) degrees of
    freedom and its p. With too few groups for it, which `why` says, there is no F, and p is the smallest of the parts' p,
    adjusted by Holm; None where no part has one.

    >>> interaction([0, 1, 1, 0], list("aabb"), list("1212")).why
    'too few groups in a, b'
    """

    parts: tuple[PartContrast, ...]
    f: float | None
    p: float | None
    between: int
    within: float
    why: str = ""


def interaction(differences: Values, parts: Sequence[str], groups: Groups, level: float = 0.95) -> Interaction:
    """Compares the mean of `differences` (a − b of each item) between the parts of the items.

    Groups may lie in several parts or in one. Covariances of the parts' means are those of the delete-one-group jackknife
    (CR3: Bell and McCaffrey 2002, Survey Methodology 28:169) without its factor (G − 1) / G: scores that are right or wrong would
    otherwise be called different a little too often (5.4 % with 20 groups). A
    part against the others is tested by t, with (Σw)² / Σw² − 2 degrees of freedom, where w are the groups' shares of the
    variance if items were independent (Satterthwaite 1946, Biometrics Bulletin 2:110): G − 2 for G groups of equal size. All
    parts are tested at once by Hotelling's T² with the smallest degrees of freedom of any part. With two parts it is the
    square of t: p and p of the parts are equal. A part's interval contains 0 if and only if its p > 1 − level.

    Edges: no p where fewer than three groups of a part, or of all others, differ from their mean; no F
    with fewer degrees of freedom than parts. Raises `InputError` for fewer than two parts, and for values that are not finite.

    >>> found = interaction([0, 1, 0, 1, 1, 2, 1, 2], ["a"] * 4 + ["b"] * 4, list("12345678"))
    >>> found.parts[1].estimate.value, round(found.p, 4)  # both variances 1/12 · 4/3: t = √4.5, 6 degrees
    (1.0, 0.0781)
    >>> found.parts[1].p == found.p
    True
    """
    values = finite(differences, "difference")
    names = list(dict.fromkeys(parts))
    if len(names) < 2:
        raise InputError("parts", found=", ".join(names) or "none", expected="two or more")
    if not len(values) == len(parts) == len(groups):
        raise InputError("values", found=f"{len(values)}, {len(parts)} and {len(groups)}", expected="as many of each")
    codes = group_codes(groups, len(values))
    numbered = {name: number for number, name in enumerate(names)}
    part = np.array([numbered[one] for one in parts])
    n_groups = int(codes.max()) + 1
    totals, counts = np.zeros((n_groups, len(names))), np.zeros((n_groups, len(names)))
    np.add.at(totals, (codes, part), values)
    np.add.at(counts, (codes, part), 1.0)
    found = [_against_others(names[k], _two(totals, k), _two(counts, k), level) for k in range(len(names))]
    adjusted = holm_known([one.p for one in found])
    rows = tuple(
        PartContrast(one.part, one.n, one.groups, one.difference, one.estimate, one.p, holm, one.degrees)
        for one, holm in zip(found, adjusted, strict=True)
    )
    return _overall(rows, totals, counts)


def _two(sums: Floats, part: int) -> Floats:
    return np.stack([sums[:, part], np.delete(sums, part, axis=1).sum(axis=1)], axis=1)


def _means(totals: Floats, counts: Floats) -> Floats:
    return np.asarray(totals.sum(axis=0) / counts.sum(axis=0))


def _jackknifed(totals: Floats, counts: Floats) -> Floats | None:
    """The covariance of the parts' means; None if a part has one group only."""
    there = counts.sum(axis=1) > 0
    totals, counts = totals[there], counts[there]
    left = counts.sum(axis=0) - counts
    if np.any(left <= 0):
        return None
    moved = (totals.sum(axis=0) - totals) / left - _means(totals, counts)
    return np.asarray(moved.T @ moved)


def _telling(totals: Floats, counts: Floats) -> Ints:
    """How many groups of each part differ from its mean."""
    off = np.abs(totals - _means(totals, counts) * counts) > 1e-9 * np.maximum(1.0, counts)
    return np.asarray(off.sum(axis=0))


def _against_others(name: str, totals: Floats, counts: Floats, level: float) -> PartContrast:
    means, covariance = _means(totals, counts), _jackknifed(totals, counts)
    n, groups = counts[:, 0].sum(), int((counts[:, 0] > 0).sum())
    every = int((counts.sum(axis=1) > 0).sum())
    value = float(means[0] - means[1])
    sizes = counts / counts.sum(axis=0) ** 2
    weights = sizes.sum(axis=1)
    degrees = float(weights.sum() ** 2 / (weights**2).sum()) - 2
    low = high = p = None
    if covariance is not None and degrees >= 1 and _telling(totals, counts).min() >= _FEWEST:
        error = float(np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]))
        if error > 1e-12:
            reach = error * float(stdtrit(degrees, (1 + level) / 2))
            low, high = value - reach, value + reach
            p = float(2 * stdtr(degrees, -abs(value) / error))
    estimate = Estimate(value, low, high, int(counts.sum()), every)
    return PartContrast(name, int(n), groups, float(means[0]), estimate, p, None, degrees)


def _overall(rows: tuple[PartContrast, ...], totals: Floats, counts: Floats) -> Interaction:
    between = len(rows) - 1
    within = min(row.degrees for row in rows) - between + 1
    silent = [row.part for row in rows if row.p is None]
    covariance = _jackknifed(totals, counts)
    apart = np.eye(len(rows))[1:] - np.eye(len(rows))[0]
    if not silent and covariance is not None and within >= 1:
        spread = apart @ covariance @ apart.T
        if np.linalg.matrix_rank(spread) == between:
            means = apart @ _means(totals, counts)
            wald = float(means @ np.linalg.solve(spread, means))
            f = wald * within / ((within + between - 1) * between)
            return Interaction(rows, f, float(fdtrc(between, within, f)), between, within)
    adjusted = [row.p_holm for row in rows if row.p_holm is not None]
    why = (
        f"too few groups in {', '.join(silent)}" if silent else f"too few groups for a common test of {len(rows)} parts"
    )
    return Interaction(rows, None, min(adjusted, default=None), between, max(0.0, within), why)
