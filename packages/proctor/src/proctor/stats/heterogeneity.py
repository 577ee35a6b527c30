"""How much a difference varies between sites: Q, I², τ² and the interval in which a new site's lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proctor.core import InputError
from proctor.stats.clusters import Floats, finite
from proctor.stats.special import chdtrc, chdtri, stdtrit

_STEPS = 200  # of a bisection


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """`q` is Cochran's Q with `sites` − 1 degrees of freedom and its `p`; `i2` the share of the variation that is not chance; `tau2`
    the variance of the sites' true values (DerSimonian and Laird), `tau2_low` and `tau2_high` its interval (Q profile); `mean` the
    mean over sites (random effects); `predicted_low` and `predicted_high` the interval of a new site's true value (None for two
    sites).

    >>> heterogeneity([0.0, 0.2, 0.4], [0.01, 0.01, 0.01]).sites
    3
    """

    sites: int
    q: float
    p: float
    i2: float
    tau2: float
    tau2_low: float
    tau2_high: float
    mean: float
    error: float
    predicted_low: float | None
    predicted_high: float | None


def site_variance(totals: Floats, counts: Floats) -> float | None:
    """The variance of a site's mean by its groups' sums, Σ(tᵢ − m·nᵢ)² / N² · G / (G − 1); None with fewer than two groups, or if
    nothing varies.

    >>> site_variance(np.array([2.0, 0.0]), np.array([2.0, 2.0]))
    0.25
    """
    groups = len(counts)
    if groups < 2:
        return None
    whole = counts.sum()
    off = totals - totals.sum() / whole * counts
    found = float((off**2).sum() / whole**2 * groups / (groups - 1))
    return found if found > 1e-18 else None


def heterogeneity(values: Sequence[float], variances: Sequence[float], level: float = 0.95) -> Heterogeneity:
    """The heterogeneity of the sites' values, whose sampling variances are known (Higgins and Thompson 2002, Statistics in Medicine
    21:1539; DerSimonian and Laird 1986, Controlled Clinical Trials 7:177; Viechtbauer 2007, Statistics in Medicine 26:37; prediction:
    Higgins, Thompson and Spiegelhalter 2009, Journal of the Royal Statistical Society A 172:137).

    Variances are estimates: with few groups in a site Q is too large, and its p too small. Raises `InputError` for fewer than two
    sites, unequal lengths, and a variance that is not above 0.

    >>> found = heterogeneity([0.0, 0.2], [0.01, 0.01])
    >>> round(found.q, 9), round(found.i2, 9), round(found.tau2, 9)
    (2.0, 0.5, 0.01)
    """
    effect, variance = finite(values, "value"), finite(variances, "variance")
    sites = len(effect)
    if sites < 2 or len(variance) != sites:
        raise InputError("sites", found=f"{sites} values, {len(variance)} variances", expected="two sites or more")
    if np.any(variance <= 0):
        raise InputError("variance", found=f"{variance.min():g}", expected="numbers above 0")
    weight, degrees = 1 / variance, sites - 1
    q = _q(effect, variance, 0.0)
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    tau2 = max(0.0, (q - degrees) / float(scale))
    low, high = (
        _profiled(effect, variance, float(chdtri(degrees, beyond))) for beyond in ((1 - level) / 2, (1 + level) / 2)
    )
    own = 1 / (variance + tau2)
    mean, error = float((own * effect).sum() / own.sum()), float(own.sum() ** -0.5)
    reach = None
    if sites > 2:
        reach = float(stdtrit(sites - 2, (1 + level) / 2)) * (tau2 + error**2) ** 0.5
    return Heterogeneity(
        *(
            sites,
            q,
            float(chdtrc(degrees, q)),
            max(0.0, (q - degrees) / q) if q > 0 else 0.0,
            tau2,
            low,
            high,
            mean,
            error,
        ),
        *((None, None) if reach is None else (mean - reach, mean + reach)),
    )


def _q(effect: Floats, variance: Floats, tau2: float) -> float:
    weight = 1 / (variance + tau2)
    mean = (weight * effect).sum() / weight.sum()
    return float((weight * (effect - mean) ** 2).sum())


def _profiled(effect: Floats, variance: Floats, wanted: float) -> float:
    """The τ² at which Q is `wanted`; 0 if it is smaller without any."""
    if _q(effect, variance, 0.0) <= wanted:
        return 0.0
    low, high = 0.0, float(variance.max())
    while _q(effect, variance, high) > wanted:
        low, high = high, high * 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _q(effect, variance, middle) > wanted else (low, middle)
    return high
