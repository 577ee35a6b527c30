"""Which properties of a question go with a right answer, each with the others held fixed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes, scrambled
from proctor.stats.special import expit, stdtr, stdtrit

__all__ = ["Regression", "Term", "logistic"]

_ROUNDING = 1e-9
_FARTHEST = 20  # log odds


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
    and intervals from Student's t at G − 1 degrees of freedom. With few groups that is a little too sure: by
    simulation a column that says nothing has p < 0.05 in 7 to 9 % with 10 to 25 groups (5 % from about 100 on);
    p are not adjusted for the number of columns. Columns are taken in their order; one that adds
    nothing to those before is dropped and named.

    Answers with the same columns count together: statsmodels fits right ones of so many per distinct row, which
    has the same maximum, and errors come from the sums of scores per group, which are the same. Memory grows with
    distinct rows × columns and with answers, not with answers × columns.

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
    cells = _cells(len(outcome), columns)
    table, kept, dropped = _independent(cells.table, list(columns))
    n, n_groups = len(outcome), len(np.unique(code))
    if not n or outcome.min() == outcome.max():
        return Regression((), n, n_groups, dropped, "the answers are all right, or all wrong")
    if n_groups < 3:
        return Regression((), n, n_groups, dropped, "fewer than three groups")
    estimates = _fit(outcome, table, cells.of)
    errors = None if estimates is None else _clustered(outcome, table, cells.of, code, estimates)
    if estimates is None or errors is None:
        return Regression((), n, n_groups, dropped, "some columns tell right from wrong without fail")
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


@dataclass(frozen=True, slots=True)
class _Cells:
    """The distinct rows of the columns, an intercept before them, and which of them each answer has."""

    table: Floats
    of: Ints


def _cells(n: int, columns: Mapping[str, Values | NDArray[Any]]) -> _Cells:
    bits, checked = np.zeros(n, dtype=np.uint64), []
    for name, values in columns.items():
        column = np.asarray(values)
        if len(column) != n:
            raise InputError(None, f"column {name!r}", found=f"{len(column)}", expected=f"{n} values")
        numbers = finite(column, f"column {name!r}, value")
        bits = scrambled(bits ^ (numbers + 0.0).view(np.uint64))  # + 0.0 makes −0 the same as 0
        checked.append(column)
    _, first, of = np.unique(bits, return_index=True, return_inverse=True)
    rows = [np.ones(len(first)), *(column[first].astype(np.float64) for column in checked)]
    return _Cells(np.stack(rows, axis=1), of.astype(np.int64).reshape(-1))


def _independent(table: Floats, names: Sequence[str]) -> tuple[Floats, list[str], tuple[str, ...]]:
    """The columns that add something to those before them, the intercept first.

    Each is freed of what those before it say (Gram and Schmidt, twice, which is exact enough: Giraud, Langou
    and Rozložník 2005, Computers & Mathematics with Applications 50:1069); where it adds nothing, only rounding
    is left. Ranks of the growing table would take a decomposition for each column.
    """
    taken, kept, dropped = [0], ["intercept"], []
    basis = np.full((1, len(table)), 1 / np.sqrt(max(len(table), 1)))
    for place, name in enumerate(names, start=1):
        column = table[:, place]
        rest = column - (basis @ column) @ basis
        rest -= (basis @ rest) @ basis
        size = float(np.linalg.norm(rest))
        if size > _ROUNDING * float(np.linalg.norm(column)):
            taken.append(place)
            kept.append(name)
            basis = np.vstack([basis, rest / size])
        else:
            dropped.append(name)
    return table[:, taken], kept, tuple(dropped)


def _fit(outcome: Floats, table: Floats, of: Ints) -> Floats | None:
    """Log odds; None where the likelihood has no maximum."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    right = np.bincount(of, outcome, minlength=len(table))
    wrong = np.bincount(of, 1 - outcome, minlength=len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what matters of a fit that fails is tested below
        found = GLM(np.stack([right, wrong], axis=1), table, family=Binomial()).fit(maxiter=50, tol=1e-10)
    estimates = np.asarray(found.params, dtype=np.float64)
    settled = bool(found.converged) and bool(np.isfinite(estimates).all())
    # Odds of one in 500 million: no maximum.
    return estimates if settled and np.abs(table @ estimates).max() <= _FARTHEST else None


def _clustered(outcome: Floats, table: Floats, of: Ints, code: Ints, estimates: Floats) -> Floats | None:
    """The errors of the estimates, with one term a group; None where the groups say nothing of one of them."""
    n, k, n_groups = len(outcome), table.shape[1], int(code.max()) + 1
    if n <= k:
        return None
    chance = expit(table @ estimates)
    held = np.bincount(of, minlength=len(table)) * chance * (1 - chance)
    inverse = np.linalg.inv((table * held[:, None]).T @ table)
    rest = outcome - chance[of]
    scores = np.stack([np.bincount(code, rest * column[of], minlength=n_groups) for column in table.T])
    pulls = inverse @ scores
    spread = (pulls**2).sum(axis=1)
    found: Floats = np.sqrt(spread * n_groups / (n_groups - 1) * (n - 1) / (n - k))
    return found if (found > 0).all() else None
