"""How far a scorer's scores move when answers are changed, in standard deviations of its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from proctor.audits.perturbations import PERTURBATIONS, Perturbation
from proctor.stats import Estimate, Floats, Resampling, sums_intervals

SMALL = 0.2
"""Standard deviations: a shift below this is small (Cohen 1988, Statistical Power Analysis, section 2.2.3)."""

_LEAST_GROUPS = 5  # with fewer nothing is said
_NONE = Estimate(None, None, None, 0, 0)


@dataclass(frozen=True, slots=True)
class ProbedAnswer:
    """One answer and its scores by metric, higher is better: `original` as it stands, `changed` by perturbation. What a
    scorer did not score is left out; `missing` says why, by perturbation ("" for the answer itself)."""

    item: str
    system: str
    group: str
    language: str
    original: Mapping[str, float]
    changed: Mapping[str, Mapping[str, float]]
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shift:
    """What one perturbation does to a scorer's scores in one language; of `dimension` "" to the mean over all.

    `shift` is the mean change and `moved` the mean absolute change, in standard deviations of the scores of the answers
    as they stand; `fell` is the share of answers that scored lower. All with intervals over groups. `finding` says in
    words how that fits what is expected: "as expected", "unclear", or the fault. `answers` were changed and scored,
    `missing` changed and not scored; `reason` says why there is no figure.
    """

    scorer: str
    language: str
    perturbation: str
    expected: str
    dimension: str
    shift: Estimate
    moved: Estimate
    fell: Estimate
    answers: int
    groups: int
    missing: int
    finding: str
    reason: str = ""


@dataclass(frozen=True)
class Sensitivity:
    """What perturbations do to one scorer. `asked` names them in order; `notes` is what a person should know."""

    scorer: str
    probed: tuple[ProbedAnswer, ...]
    asked: tuple[str, ...]
    plan: Resampling = Resampling()
    notes: tuple[str, ...] = ()

    @cached_property
    def shifts(self) -> tuple[Shift, ...]:
        """By language and perturbation: the mean over the dimensions first, then each."""
        found: list[Shift] = []
        for language in sorted({one.language for one in self.probed}):
            own = [one for one in self.probed if one.language == language and one.original]
            for name in self.asked:
                found += _shifts(self.scorer, language, PERTURBATIONS[name], own, self.plan)
        return tuple(found)

    @property
    def faults(self) -> tuple[tuple[str, str], ...]:
        """(language, fault), each once."""
        known = {one.fault for one in PERTURBATIONS.values() if one.fault}
        given = [(one.language, one.finding) for one in self.shifts if not one.dimension and one.finding in known]
        return tuple(dict.fromkeys(given))


def _shifts(
    scorer: str, language: str, how: Perturbation, probed: Sequence[ProbedAnswer], plan: Resampling
) -> list[Shift]:
    dimensions = list(dict.fromkeys(name for one in probed for name in one.original))
    whole = [one for one in probed if all(name in one.original for name in dimensions)]
    pairs = [one for one in whole if all(name in one.changed.get(how.name, {}) for name in dimensions)]
    missing = sum(how.name in one.missing for one in probed)
    before = np.array([[one.original[name] for name in dimensions] for one in whole]).reshape(len(whole), -1)
    spread = before.std(axis=0) if whole else np.zeros(len(dimensions))
    varied = [place for place, one in enumerate(spread) if one > 1e-9]
    reason = (
        next(iter(one.missing[how.name] for one in probed if how.name in one.missing), "no answer can be changed so")
        if not pairs
        else "all scores are the same"
        if not varied
        else ""
    )
    groups = len({one.group for one in pairs})
    blank = Shift(
        *(scorer, language, how.name, how.expected, "", _NONE, _NONE, _NONE, len(pairs), groups, missing, "", reason)
    )
    if reason:
        return [blank]
    names = [dimensions[place] for place in varied]
    table = _table(whole, before[:, varied], spread[varied], names, how.name)
    found = sums_intervals(table, [one.group for one in whole], lambda sums: _statistics(sums, len(names)), plan=plan)
    rows = []
    for place, name in enumerate(["", *names]):
        shift, moved, fell = (_counted(found[3 * place + k], len(pairs), groups) for k in range(3))
        row = replace(blank, dimension=name, shift=shift, moved=moved, fell=_share(fell))
        rows.append(replace(row, finding=_finding(how, row)))
    return rows


def _table(whole: Sequence[ProbedAnswer], before: Floats, spread: Floats, names: Sequence[str], how: str) -> Floats:
    """Of each answer what the statistics are sums of: 1, whether it was changed, whether it fell, and of each dimension
    the score and its square (about the mean, so that little is lost), the change, its size, and whether it fell."""
    rows = []
    middle = before.mean(axis=0)
    for one, scores in zip(whole, before - middle, strict=True):
        there = all(name in one.changed.get(how, {}) for name in names)
        change = np.array([one.changed[how][name] - one.original[name] if there else 0.0 for name in names])
        change[np.abs(change) < 1e-9] = 0.0
        fell = [float((change / spread).mean() < -1e-9), *(change < 0).astype(float)]
        rows.append([1.0, float(there), *fell, *scores, *scores**2, *change, *np.abs(change)])
    return np.array(rows)


def _statistics(sums: Floats, many: int) -> Floats:
    """Samples × (shift, moved, fell) of the mean over the dimensions, then of each."""
    with np.errstate(divide="ignore", invalid="ignore"):
        n, there = sums[:, :1], sums[:, 1:2]
        fell = sums[:, 2 : 3 + many] / there
        parts = [sums[:, 3 + many + many * k : 3 + many + many * (k + 1)] for k in range(4)]
        spread = np.sqrt(np.maximum(parts[1] / n - (parts[0] / n) ** 2, 0.0))
        spread[spread < 1e-9] = np.nan
        shift, moved = (part / there / spread for part in parts[2:])
        each = [np.column_stack([one.mean(axis=1), one]) for one in (shift, moved)]
    return np.stack([*each, fell], axis=2).reshape(len(sums), -1)


def _counted(one: Estimate, n: int, groups: int) -> Estimate:
    """With the answers that were changed, not all that the spread comes from; no interval of fewer than five groups."""
    if groups < _LEAST_GROUPS:
        return Estimate(one.value, None, None, n, groups)
    return replace(one, n=n, groups=groups)


def _share(one: Estimate) -> Estimate:
    """With the ends of its interval cut at 0 and 1."""
    if one.ci_low is None or one.ci_high is None:
        return one
    return replace(one, ci_low=max(0.0, one.ci_low), ci_high=min(1.0, one.ci_high))


def _finding(how: Perturbation, row: Shift) -> str:
    """What the shift's interval allows to say. A scorer notices where scores fall for sure, and by `SMALL` or more; it
    does not where the whole interval is above that. Without any change at all in five groups or more it does not either."""
    if how.expected == "any":
        return ""
    measured = row.moved if how.expected == "same" else row.shift
    low, high, value = measured.ci_low, measured.ci_high, measured.value
    if low is None or high is None or value is None:
        if value == 0.0 and row.moved.value == 0.0 and row.groups >= _LEAST_GROUPS:
            low = high = 0.0
        else:
            return "unclear"
    if how.expected in {"lower", "higher"}:
        sign = 1.0 if how.expected == "higher" else -1.0
        low, high = sorted((sign * low, sign * high))
        good, bad = low > 0 and sign * value >= SMALL, high < SMALL
    else:
        good, bad = high < SMALL, low > 0 and value >= SMALL
    return "as expected" if good else how.fault if bad else "unclear"
