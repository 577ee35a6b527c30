"""Which properties of a question go with a right answer, each with the others held fixed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from proctor.core import InputError
from proctor.stats.clusters import Groups, Values, finite, group_codes

__all__ = ["Regression", "Term", "logistic"]

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Term:
    """One column of the model: its log odds, standard error and p, and the odds ratio with its interval.

    >>> Term("hard", -0.7, 0.2, 0.001, odds_ratio=0.5, ci_low=0.3, ci_high=0.7).odds_ratio
    0.5
    """

    name: str
    log_odds: float
    error: float
    p: float
    odds_ratio: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True, slots=True)
class Regression:
    """The terms in the order of the columns, the intercept first. `dropped` columns say nothing beyond the
    others (constant, or a sum of others); `problem` says why there are no terms, if there are none.

    >>> Regression((), 0, 0, (), "no answers").terms
    ()
    """

    terms: tuple[Term, ...]
    n: int
    groups: int
    dropped: tuple[str, ...] = ()
    problem: str = ""


def logistic(
    right: Values, columns: Mapping[str, Values | NDArray[Any]], groups: Groups, *, level: float = 0.95
) -> Regression:
    """Logistic regression of right (1) or wrong (0) on the columns, with errors that are robust to clusters.

    The errors are the sandwich with one term a group and the small-sample factor G/(G − 1) · (n − 1)/(n − k)
    (Liang and Zeger 1986, Biometrika 73:13; Cameron and Miller 2015, Journal of Human Resources 50:317), p
    and intervals from Student's t at G − 1 degrees of freedom. Fitted by statsmodels. Columns are taken in
    their order; one that adds nothing to those before is dropped and named.

    Edges: answers all right or all wrong, fewer than three groups, or columns that tell right from wrong
    without fail: no terms, and `problem` says so. Raises `InputError` for values other than 0 and 1, values
    that are not finite, and lengths that differ.

    >>> right, hard = [1, 1, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> found = logistic(right, {"hard": hard, "twice hard": [2 * one for one in hard]}, list("aabbccdd"))
    >>> [(term.name, round(term.odds_ratio, 3)) for term in found.terms], found.dropped
    ([('intercept', 3.0), ('hard', 0.111)], ('twice hard',))
    """
    outcome = finite(right, "answer")
    code = group_codes(groups, len(outcome))
    if not np.isin(outcome, (0, 1)).all():
        raise InputError(None, "answers", found="other values", expected="0 or 1")
    table, kept, dropped = _independent(outcome, columns)
    n, n_groups = len(outcome), len(np.unique(code))
    if not n or outcome.min() == outcome.max():
        return Regression((), n, n_groups, dropped, "the answers are all right, or all wrong")
    if n_groups < 3:
        return Regression((), n, n_groups, dropped, "fewer than three groups")
    fitted = _fit(outcome, table, code)
    if fitted is None:
        return Regression((), n, n_groups, dropped, "some columns tell right from wrong without fail")
    estimates, errors = fitted
    t = float(stdtrit(n_groups - 1, (1 + level) / 2))
    terms = tuple(
        Term(
            name,
            float(one),
            float(error),
            float(2 * stdtr(n_groups - 1, -abs(one / error))),
            float(np.exp(one)),
            float(np.exp(one - t * error)),
            float(np.exp(one + t * error)),
        )
        for name, one, error in zip(kept, estimates, errors, strict=True)
    )
    return Regression(terms, n, n_groups, dropped)


def _independent(
    outcome: NDArray[np.float64], columns: Mapping[str, Values | NDArray[Any]]
) -> tuple[NDArray[np.float64], list[str], tuple[str, ...]]:
    """The columns that add something to those before them, after an intercept.

    Each is freed of what those before it say (Gram and Schmidt, twice, which is exact enough: Giraud, Langou
    and Rozložník 2005, Computers & Mathematics with Applications 50:1069); where it adds nothing, only rounding
    is left. Ranks of the growing table would take a decomposition for each column.
    """
    n = len(outcome)
    taken, kept, dropped = [np.ones(n)], ["intercept"], []
    basis = np.full((1, n), 1 / np.sqrt(max(n, 1)))
    for name, values in columns.items():
        column = finite(np.asarray(values, dtype=np.float64), f"column {name!r}, value")
        if len(column) != n:
            raise InputError(None, f"column {name!r}", found=f"{len(column)}", expected=f"{n} values")
        rest = column - (basis @ column) @ basis
        rest -= (basis @ rest) @ basis
        size = float(np.linalg.norm(rest))
        if size > _ROUNDING * float(np.linalg.norm(column)):
            taken.append(column)
            kept.append(name)
            basis = np.vstack([basis, rest / size])
        else:
            dropped.append(name)
    return np.stack(taken, axis=1), kept, tuple(dropped)


def _fit(
    outcome: NDArray[np.float64], table: NDArray[np.float64], code: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Log odds and their errors; None where the likelihood has no maximum."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what matters of a fit that fails is tested below
        found = GLM(outcome, table, family=Binomial()).fit(
            cov_type="cluster", cov_kwds={"groups": code, "use_correction": True}, maxiter=50
        )
    estimates, errors = np.asarray(found.params), np.asarray(found.bse)
    settled = bool(found.converged) and np.isfinite(errors).all() and (errors > 0).all()
    if not settled or np.abs(table @ estimates).max() > 20:  # odds of one in 500 million: no maximum
        return None
    return estimates, errors
