"""Logistic regression of right answers on properties of questions, with cluster-robust standard errors.

With the usual clustered errors, a column that says nothing was significant in 8 to 22 of 100 benchmarks with 10 groups.
So they are CR2, whose degrees of freedom can be shown; a wild bootstrap has none, and needs draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.stats.clusters import Floats, Groups, Ints, Values, finite, group_codes, splitmix64
from proctor.stats.special import expit, stdtr, stdtrit

_ROUNDING = 1e-9
_MAX_LOG_ODDS = 20  # beyond it the likelihood has no maximum: odds of one in 500 million
_MAX_SINGLE = 1e-6  # share of an estimate that may come from a single group


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the model: log odds, standard error, degrees of freedom, p, and the odds ratio with its interval.

    >>> Term("hard", -0.7, 0.2, 12.5, 0.004, odds_ratio=0.5, ci_low=0.3, ci_high=0.7).odds_ratio
    0.5
    """

    name: str
    log_odds: float
    error: float
    df: float
    p: float
    odds_ratio: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True, slots=True)
class Regression:
    """A fitted model, with terms in the order of the columns, the intercept first. `dropped` are the columns that are
    constant or linear combinations of others. `single` are columns that one group alone determines, so that they have
    no standard error. `problem` is the reason why there are no terms, or empty.

    >>> Regression((), 0, 0, (), "no answers").terms
    ()
    """

    terms: tuple[Term, ...]
    n: int
    groups: int
    dropped: tuple[str, ...] = ()
    problem: str = ""
    single: tuple[str, ...] = ()


def logistic(
    right: Values, columns: Mapping[str, Values | NDArray[Any]], groups: Groups, *, level: float = 0.95
) -> Regression:
    """Logistic regression of right (1) or wrong (0) on the columns, with cluster-robust standard errors. An answer that was
    given several times may have the share that is right, 0 to 1: the same log odds, by quasi-likelihood (Papke and
    Wooldridge 1996, Journal of Applied Econometrics 11:619), whose errors the sandwich gives as well.

    Standard errors are those of the sandwich estimator with one term per group (Liang and Zeger 1986, Biometrika 73:13)
    and the bias correction CR2 (Bell and McCaffrey 2002, Survey Methodology 28:169; applied to the weighted least
    squares of the last step with its weights as the working model: Pustejovsky and Tipton 2018, Journal of Business &
    Economic Statistics 36:672). p and intervals use Student's t with Satterthwaite's degrees of freedom, which are few
    for a column that few groups carry. In simulations an irrelevant column has p < 0.05 in 4 to 6 % with 10, 24 and 100
    groups if half of them carry it, and in fewer if a fifth does (docs/reference/statistics.md). p are not adjusted for
    the number of columns. Columns that add nothing to those before them, and columns that a single group determines,
    are excluded and named in the result.

    Answers with equal columns are grouped: statsmodels fits successes and totals per distinct row, which has the same
    maximum, and standard errors need only sums per group. Memory grows with distinct rows × columns and with answers,
    time with groups × columns³.

    Edges: no terms, with the reason in `problem`, if answers are all right or all wrong, or all are the same share, with
    fewer than three groups, or under perfect separation. Raises `InputError` for answers outside 0 to 1, values that are
    not finite, and unequal lengths.

    >>> right, hard = [1, 1, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> fit = logistic(right, {"hard": hard, "twice hard": [2 * value for value in hard]}, list("aabbccdd"))
    >>> [(term.name, round(term.odds_ratio, 3)) for term in fit.terms], fit.dropped
    ([('intercept', 3.0), ('hard', 0.111)], ('twice hard',))
    """
    outcome = finite(right, "answer")
    code = group_codes(groups, len(outcome))
    if np.any((outcome < 0) | (outcome > 1)):
        raise InputError("answers", found="other values", expected="0 to 1")
    cells = _cells(len(outcome), columns)
    table, kept, dropped = _independent(cells.table, list(columns))
    n, n_groups = len(outcome), len(np.unique(code))
    if not n or outcome.min() == outcome.max():
        same = n and 0 < outcome[0] < 1
        problem = "all answers have the same share right" if same else "the answers are all right, or all wrong"
        return Regression((), n, n_groups, dropped, problem)
    if n_groups < 3:
        return Regression((), n, n_groups, dropped, "fewer than three groups")
    with _threads().limit(limits=1):  # with small matrices threads only wait for each other
        estimates = _fit(outcome, table, cells.of)
        if estimates is None:
            return Regression((), n, n_groups, dropped, "some columns tell right from wrong without fail")
        errors, degrees = _clustered(outcome, table, cells.of, code, estimates)
    rows = list(zip(kept, estimates.tolist(), errors.tolist(), degrees.tolist(), strict=True))
    single = tuple(name for name, _, error, _ in rows if np.isnan(error))
    terms = tuple(_term(*row, level) for row in rows if row[0] not in single)
    problem = "" if terms else "single groups decide all columns"
    return Regression(terms, n, n_groups, dropped, problem, single)


@cache
def _threads() -> Any:
    """The controller of the linear algebra libraries, which is slow to create."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def _term(name: str, log_odds: float, error: float, df: float, level: float) -> Term:
    reach = float(stdtrit(df, (1 + level) / 2)) * error
    return Term(
        name,
        log_odds,
        error,
        df,
        p=float(2 * stdtr(df, -abs(log_odds / error))),
        odds_ratio=float(np.exp(log_odds)),
        ci_low=float(np.exp(log_odds - reach)),
        ci_high=float(np.exp(log_odds + reach)),
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """The distinct rows of the columns, with an intercept first, and the row of each answer."""

    table: Floats
    of: Ints


def _cells(n: int, columns: Mapping[str, Values | NDArray[Any]]) -> _Cells:
    bits, checked = np.zeros(n, dtype=np.uint64), []
    for name, values in columns.items():
        column = np.asarray(values)
        if len(column) != n:
            raise InputError(f"column {name!r}", found=f"{len(column)}", expected=f"{n} values")
        numbers = finite(column, f"column {name!r}, value")
        bits = splitmix64(bits ^ (numbers + 0.0).view(np.uint64))  # + 0.0 makes −0 the same as 0
        checked.append(column)
    _, first, of = np.unique(bits, return_index=True, return_inverse=True)
    rows = [np.ones(len(first)), *(column[first].astype(np.float64) for column in checked)]
    return _Cells(np.stack(rows, axis=1), of.astype(np.int64).reshape(-1))


def _independent(table: Floats, names: Sequence[str]) -> tuple[Floats, list[str], tuple[str, ...]]:
    """The columns that are linearly independent of those before them, the intercept first.

    Uses Gram-Schmidt orthogonalisation, applied twice for accuracy (Giraud, Langou and Rozložník 2005, Computers &
    Mathematics with Applications 50:1069). This needs no decomposition per column.
    """
    taken, kept, dropped = [0], ["intercept"], []
    basis = np.full((1, len(table)), 1 / np.sqrt(max(len(table), 1)))
    for position, name in enumerate(names, start=1):
        column = table[:, position]
        rest = column - (basis @ column) @ basis
        rest -= (basis @ rest) @ basis
        size = float(np.linalg.norm(rest))
        if size > _ROUNDING * float(np.linalg.norm(column)):
            taken.append(position)
            kept.append(name)
            basis = np.vstack([basis, rest / size])
        else:
            dropped.append(name)
    return table[:, taken], kept, tuple(dropped)


def _fit(outcome: Floats, table: Floats, of: Ints) -> Floats | None:
    """The log odds; None if the likelihood has no maximum."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    right = np.bincount(of, outcome, minlength=len(table))
    wrong = np.bincount(of, 1 - outcome, minlength=len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # failed fits are detected below
        fit = GLM(np.stack([right, wrong], axis=1), table, family=Binomial()).fit(maxiter=50, tol=1e-10)
    estimates = np.asarray(fit.params, dtype=np.float64)
    converged = bool(fit.converged) and bool(np.isfinite(estimates).all())
    return estimates if converged and np.abs(table @ estimates).max() <= _MAX_LOG_ODDS else None


def _clustered(outcome: Floats, table: Floats, of: Ints, code: Ints, estimates: Floats) -> tuple[Floats, Floats]:
    """The CR2 standard errors of the estimates and their degrees of freedom; NaN if a single group determines an
    estimate.

    Let X and e be the columns and residuals of the last weighted least squares step (columns multiplied, and residuals
    divided, by the root of the weight p(1 − p)), and M = (X'X)⁻¹ = L L'. The contribution of a group to the estimates
    is M X_g' (I − X_g M X_g')^(−1/2) e_g. The inner matrix has one row per answer of the group, but shares its nonzero
    eigenvalues λ with V = L' X_g' X_g L = Q diag(λ) Q', which has one row per column. So the contribution equals
    L (I − V)^(−1/2) L' X_g' e_g, where X_g' e_g is the group's score.
    """
    n_cells, n_groups = len(table), int(code.max()) + 1
    chance = expit(table @ estimates)
    weight = chance * (1 - chance)
    held = np.bincount(of, minlength=n_cells) * weight
    root = np.linalg.cholesky(np.linalg.inv((table * held[:, None]).T @ table))
    rest = outcome - chance[of]
    scores = np.stack([np.bincount(code, rest * column[of], minlength=n_groups) for column in table.T], axis=1)
    pair, count = np.unique(code * n_cells + of, return_counts=True)
    starts = np.searchsorted(pair, np.arange(n_groups + 1) * n_cells)
    # Satterthwaite: under independent answers the squared error is Σ (p_g' e)², with the products p_g' p_h below.
    mean, spread, together = np.zeros(len(root)), np.zeros(len(root)), np.zeros((len(root),) * 3)
    squared = np.zeros(len(root))
    for group in range(n_groups):
        here = slice(starts[group], starts[group + 1])
        cell = pair[here] % n_cells
        information = (table[cell] * (count[here] * weight[cell])[:, None]).T @ table[cell]
        share, axes = np.linalg.eigh(root.T @ information @ root)
        share = np.clip(share, 0.0, 1.0)
        left = np.where(share < 1 - _ROUNDING, 1 - share, np.inf)  # determined by the group alone: no residual
        turned = root @ axes
        squared += ((turned * left**-0.5) @ turned.T @ scores[group]) ** 2
        alone = turned**2 @ (share / left)  # p_g' p_g before the correction for the fit
        taken = (turned * (share * left**-0.5)) @ axes.T  # rows whose products are the correction of p_g' p_h
        both = (taken**2).sum(axis=1)
        mean += alone - both
        spread += alone**2 - 2 * alone * both
        together += taken[:, :, None] * taken[:, None, :]
    known = (mean > (1 - _MAX_SINGLE) * (root**2).sum(axis=1)) & (squared > 0)
    spread += (together**2).sum(axis=(1, 2))
    return np.where(known, np.sqrt(squared), np.nan), mean**2 / spread
