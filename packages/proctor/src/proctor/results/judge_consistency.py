"""Judges that were asked several times for each answer: how often they give the same score again, how far two judgements of
an answer lie apart, and which part of the variance lies between answers, judges and judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from proctor import stats
from proctor.core import Metric
from proctor.judges import JUDGE_FLAGS
from proctor.results.arrays import ItemTable
from proctor.runs import Run, Store, driver_rows, schema
from proctor.stats import Estimate, JudgeVariance

if TYPE_CHECKING:
    from proctor.results.results import Options

_NO_JUDGEMENT = -1


@dataclass(frozen=True)
class JudgeConsistency:
    """One metric of a run by a judge that gave up to `judgements` scores to each of `answers` answers.

    `alike` is the share of pairs of judgements of an answer with the same score, and `spread` the standard deviation
    between two judgements of one answer, in the metric's unit (None with no answer that was judged twice). `variance` are
    the parts of the variance of all judges of the metric that were asked as often, the same for each of them; None where
    fewer than three answers have all judgements."""

    system: str
    condition: str
    metric: str
    scorer: str
    answers: int
    judgements: int
    alike: Estimate
    spread: float | None
    variance: JudgeVariance | None

    def to_json(self) -> dict[str, Any]:
        """The row as plain data."""
        shares = {} if self.variance is None else self.variance.shares
        return {
            "answers": self.answers,
            "judgements": self.judgements,
            "alike": _json(self.alike),
            "spread": self.spread,
            "judges": None if self.variance is None else self.variance.judges,
            "variance": None if self.variance is None else self.variance.total,
            "variance_shares": {name: _json(one) for name, one in shares.items()},
        }


def _json(one: Estimate) -> dict[str, Any]:
    return {"value": one.value, "ci_low": one.ci_low, "ci_high": one.ci_high, "n": one.n, "groups": one.groups}


def judge_consistency(
    store: Store, run: Run, items: ItemTable, metrics: Sequence[Metric], options: Options
) -> list[JudgeConsistency]:
    """Each metric and judge of a run with several judgements of an answer; empty where each answer was judged once."""
    found = []
    by_judge = _judgements(store, run, items)
    for metric in dict.fromkeys(metrics):
        own = {scorer: scores for (name, scorer), scores in by_judge.items() if name == metric.name}
        if not own or metric.name in JUDGE_FLAGS:
            continue
        most = max(scores.shape[2] for scores in own.values())
        plan = options.plan(metric)
        groups = np.repeat(items.group, next(iter(own.values())).shape[1])
        flat = {scorer: scores.reshape(-1, scores.shape[2]) for scorer, scores in own.items()}
        together = [scores for scores in flat.values() if scores.shape[1] == most]
        variance = stats.judge_variance(np.stack(together, axis=1), groups, plan)
        shares = replace(plan, bounds=(0.0, 1.0), shares=True)
        for scorer, scores in flat.items():
            judged = ~np.isnan(scores).all(axis=1)
            alike = stats.same_answers(_codes(scores))
            known = ~np.isnan(alike)
            found.append(
                JudgeConsistency(
                    system=run.system,
                    condition=run.condition,
                    metric=metric.name,
                    scorer=scorer,
                    answers=int(judged.sum()),
                    judgements=scores.shape[1],
                    alike=stats.mean_interval(alike[known], groups[known], shares),
                    spread=_spread(scores),
                    variance=variance if scores.shape[1] == most else None,
                )
            )
    return found


def _judgements(store: Store, run: Run, items: ItemTable) -> dict[tuple[str, str], NDArray[np.float64]]:
    """By metric and scorer the single scores (items × repetitions of the system × judgements); NaN for none."""
    table = schema.judge_scores
    fields = (table.c.metric, table.c.scorer, table.c.item, table.c.repetition, table.c.judge_repetition, table.c.value)
    with store.reading() as connection:
        rows = driver_rows(connection, select(*fields).where(table.c.run == run.id))
    by: dict[tuple[str, str], list[tuple[int, int, int, float]]] = {}
    for metric, scorer, *row in rows:
        by.setdefault((metric, scorer), []).append(tuple(row))
    repetitions = 1 + max((row[3] for row in rows), default=0)
    found = {}
    for key, own in by.items():
        item, repetition, judgement, value = (np.array(column) for column in zip(*own, strict=True))
        row = items.row_of[item]
        kept = row >= 0
        scores = np.full((len(items), repetitions, int(judgement.max()) + 1), np.nan)
        scores[row[kept], repetition[kept], judgement[kept]] = value[kept]
        if scores.shape[2] > 1:
            found[key] = scores
    return found


def _codes(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Equal codes for equal scores."""
    codes = np.full(scores.shape, _NO_JUDGEMENT, dtype=np.int64)
    known = ~np.isnan(scores)
    codes[known] = np.unique(scores[known], return_inverse=True)[1]
    return codes


def _spread(scores: NDArray[np.float64]) -> float | None:
    """The pooled standard deviation between judgements of one answer; None where none was judged twice."""
    known = ~np.isnan(scores)
    count = known.sum(axis=1)
    several = count >= 2
    if not np.any(several):
        return None
    mean = np.nansum(scores[several], axis=1) / count[several]
    squares = np.where(known[several], (scores[several] - mean[:, None]) ** 2, 0.0).sum()
    return float(np.sqrt(squares / (count[several] - 1).sum()))
