"""The boards of a phase, from the store of its answers: those of `proctor rank`, with an interval for each mean. What a phase has given away: how many results there are on the same hidden questions, and how far above its true
accuracy the best of them may stand because of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection, select

from proctor.challenges.schema import results, submissions
from proctor.challenges.settings import Phase, RankingChoice
from proctor.runs import (
    Board,
    Contest,
    Leaderboard,
    LeaderboardRow,
    Options,
    Store,
    board_rows,
    chosen_runs,
    compare_runs,
    leaderboard,
    rank_runs,
)
from proctor.stats import Estimate, HiddenSet, Optimism, RankingPlan, Resampling, boosting, luck, ratio, sums_interval

_INTERVAL_DRAWS = 2000  # behind the interval of a mean; win rates and places have draws of their own
_CRUMB = 1e-12  # of rounding, which beats nobody


class _Aggregate(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class BoardFigure(_Aggregate):
    """One board's mean of a submission with the ends of its interval; `above` says that it beats every baseline there
    (None without baselines)."""

    name: str
    title: str
    mean: float | None
    low: float | None
    high: float | None
    questions: int
    groups: int | None = None
    above: bool | None = None
    higher_is_better: bool = True


class AnswerSeconds(_Aggregate):
    """How long answers took: the half and nineteen of twenty were faster than `median` and `p95`. `measured` by us, or
    said by the file."""

    answers: int
    median: float
    p95: float
    longest: float
    measured: bool


class Figures(_Aggregate):
    """What is known of a submission outside the sealed part: aggregates, nothing of any question. `shown` says that its
    team is told the means: always, or where the ladder lets them through."""

    boards: tuple[BoardFigure, ...]
    statuses: dict[str, int]
    seconds: AnswerSeconds | None = None
    shown: bool = True


@dataclass(frozen=True)
class Counted:
    """The submission of a team that stands on the boards."""

    system: str
    submission: int
    number: int
    team: int
    team_name: str
    institution: str
    eligible: bool
    listed: bool
    figures: Figures


@dataclass(frozen=True)
class MadeBoard:
    """One board as programs read it: `facts` hold for all of it; `rows` are best first, baselines last, each with the
    ends of its mean's interval, `low` and `high`."""

    name: str
    title: str
    facts: dict[str, Any]
    rows: tuple[dict[str, Any], ...]

    def row(self, system: str) -> dict[str, Any]:
        """One system's. Raises `KeyError` where it is not on the board."""
        return {one["system"]: one for one in self.rows}[system]


@dataclass(frozen=True)
class BoardMaker:
    """Makes the boards of one phase of a benchmark that says which buckets it is ranked over; of another one its
    headline's leaderboard. `baselines` are shown and not ranked."""

    store: Store
    benchmark: str
    phase: Phase
    ranking: RankingChoice
    baselines: tuple[str, ...] = ()

    def made(self, systems: Sequence[str], *, quick: bool = False) -> list[MadeBoard]:
        """All boards of these systems, in whatever order they are named. `quick`: without win rates and probabilities
        of places, for the means and who beats the baselines."""
        if not self._in_buckets:
            return [self._led(systems)]
        choice = self.ranking
        plan = RankingPlan(alpha=choice.alpha, draws=choice.draws, stability=choice.stability, seed=choice.seed)
        if quick:
            plan = RankingPlan(alpha=choice.alpha, draws=1, seed=choice.seed)
        return [self._shown(one) for one in self._ranked(systems, plan)]

    def lead(self, system: str, other: str) -> Estimate:
        """How far a system is ahead of another on the first board (above 0: it is better) on the questions that both
        have a mark for, with the interval over whole groups."""
        if self._in_buckets:
            marks = self._ranked((system, other), RankingPlan(draws=1))[0].marks
            return self._mean(marks.right[system] - marks.right[other], marks, (-1.0, 1.0))
        runs = {one.system: one for one in chosen_runs(self.store, self.benchmark, (), (self.phase.condition,))}
        card = self.store.card(self.benchmark)
        options = Options(seed=self.ranking.seed, draws=_INTERVAL_DRAWS)
        pair = [(runs[system], runs[other])]
        found = compare_runs(self.store, self.benchmark, pair, options, metrics=(card.headline,))[0].difference
        if card.metric(card.headline).higher_is_better:
            return Estimate(found.value, found.ci_low, found.ci_high, found.n, found.groups)
        value, low, high = (None if one is None else -one for one in (found.value, found.ci_high, found.ci_low))
        return Estimate(value, low, high, found.n, found.groups)

    @property
    def _in_buckets(self) -> bool:
        return bool(self.store.card(self.benchmark).buckets)

    def _ranked(self, systems: Sequence[str], plan: RankingPlan) -> list[Board]:
        contest = Contest(
            condition=self.phase.condition,
            systems=tuple(systems),
            baselines=self.baselines or ("none",),
            latency=self.phase.budget.latency,
        )
        return rank_runs(self.store, self.benchmark, contest, plan=plan)

    def _shown(self, board: Board) -> MadeBoard:
        stable = {one.standing.name: one.standing.stability for one in board.runs}
        rows = []
        for row in board_rows(board):
            found = self._mean(board.marks.right[row["system"]], board.marks, (0.0, 1.0))
            spread = stable.get(row["system"])
            ends = {"low": found.ci_low, "high": found.ci_high}
            rows.append(row | ends | {"chances": None if spread is None else [*spread.chances]})
        standings = board.standings
        facts = {
            "questions": board.items,
            "groups": standings.groups,
            "buckets": list(standings.buckets),
            "rule": standings.rule,
            "alpha": board.alpha,
            "marked_by": board.judge,
            "left_out": board.left_out,
            "too_few_groups": list(board.powerless),
        }
        return MadeBoard(board.name, board.title, facts, tuple(rows))

    def _mean(self, right: NDArray[np.float64], marks: Any, bounds: tuple[float, float]) -> Estimate:
        """The mean over the buckets of the means in them, with its interval."""
        there = ~np.isnan(right)
        n_buckets = int(marks.bucket.max(initial=-1)) + 1
        inside = np.eye(n_buckets)[marks.bucket[there]]
        columns = np.hstack([inside * right[there, None], inside])

        def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            means = ratio(sums[:, :n_buckets], sums[:, n_buckets:])
            known = ~np.isnan(means)
            return ratio(np.where(known, means, 0.0).sum(axis=1), known.sum(axis=1))

        plan = Resampling(draws=_INTERVAL_DRAWS, seed=self.ranking.seed).within(*bounds)
        return sums_interval(columns, marks.group[there].tolist(), statistic, plan=plan)

    def _led(self, systems: Sequence[str]) -> MadeBoard:
        ranked = self._leaderboard(systems)
        shown = self._leaderboard(self.baselines).rows if self.baselines else []
        best = [one.value for one in shown if one.value is not None]
        sign = 1.0 if ranked.metric.higher_is_better else -1.0
        rows = []
        for one in ranked.rows:
            beats = one.value is not None and all(sign * (one.value - other) > _CRUMB for other in best)
            line = {"below_line": not beats, "advances": beats} if best else {"below_line": None, "advances": None}
            rows.append(_row(one) | line | {"baseline": False})
        rows += [_row(one) | {"place": None, "baseline": True} for one in shown]
        title = ranked.metric.label or ranked.metric.name
        facts = {"questions": ranked.items, "left_out": ranked.left_out, "marked_by": ranked.scorer}
        facts |= {"metric": ranked.metric.name, "higher_is_better": ranked.metric.higher_is_better}
        facts |= {"percent": ranked.metric.percent}
        return MadeBoard("technical", title, facts, tuple(rows))

    def _leaderboard(self, systems: Sequence[str]) -> Leaderboard:
        options = Options(systems=tuple(systems), draws=_INTERVAL_DRAWS, seed=self.ranking.seed)
        return leaderboard(self.store, self.benchmark, condition=self.phase.condition, options=options)


def _row(one: LeaderboardRow) -> dict[str, Any]:
    return {
        "system": one.system,
        "place": one.rank,
        "mean": one.value,
        "low": one.ci_low,
        "high": one.ci_high,
        "rank_by_mean": one.rank,
        "rank_low": one.rank_low,
        "rank_high": one.rank_high,
        "place_low": one.place_low,
        "place_high": one.place_high,
        "p_first": one.p_best,
        "mean_if_wrong": one.if_wrong,
        "mean_if_excluded": one.if_excluded,
    }


_MOST = 500  # results that are simulated; more change little
_DRAWS, _ATTACK_DRAWS = 400, 60
_MOST_ICC = 0.9


def attempts(connection: Connection, phase: str, version: int) -> dict[int, int]:
    """By team how many results it has been given in a phase."""
    query = select(submissions.c.team).join(results, results.c.submission == submissions.c.id)
    found = connection.scalars(query.where(submissions.c.phase == phase, results.c.scorer == version))
    return dict(Counter(found))


def given_away(phase: Phase, counted: Sequence[Counted], tried: dict[int, int], *, seed: int = 0) -> dict[str, Any]:
    """For the team with the most results, and for all teams together: how many results there are, and the optimism that
    this many allow, by `luck` alone (systems as good as the best one) and by the `attack` that needs no system
    (`proctor.stats.boosting`), each with its Monte Carlo error, by the phase's rule and by the other one."""
    hidden = hidden_set(max((one.figures.boards[0] for one in counted), key=lambda board: board.mean or 0.0))
    rows = []
    for who, results_seen in (("one team", max(tried.values())), ("all teams", sum(tried.values()))):
        row: dict[str, Any] = {"who": who, "results": results_seen}
        for rule in ("all", "ladder"):
            count = min(results_seen, _MOST)
            row[rule] = {
                "luck": _rounded_optimism(luck(hidden, count, rule, draws=_DRAWS, seed=seed)),
                "attack": _rounded_optimism(boosting(hidden, count, rule=rule, draws=_ATTACK_DRAWS, seed=seed)),
            }
        rows.append(row)
    return {
        "rule": phase.results.rule,
        "questions": hidden.size,
        "groups": hidden.groups,
        "icc": hidden.icc,
        "rows": rows,
    }


def hidden_set(board: BoardFigure) -> HiddenSet:
    """The hidden questions as they are simulated: groups of equal size, whose answers are as much alike as the width of
    a result's interval says (design effect = 1 + (m − 1) · icc for m questions a group: Kish 1965)."""
    groups = max(2, board.groups or board.questions)
    each = max(1, round(board.questions / groups))
    accuracy = min(0.99, max(0.01, board.mean or 0.5))
    if board.low is None or board.high is None or each == 1:
        return HiddenSet(groups, each, accuracy)
    error = (board.high - board.low) / (2 * 1.96)
    design = error**2 * board.questions / (accuracy * (1 - accuracy))
    return HiddenSet(groups, each, accuracy, icc=round(min(_MOST_ICC, max(0.0, (design - 1) / (each - 1))), 3))


def _rounded_optimism(found: Optimism) -> dict[str, float]:
    return {"optimism": round(found.value, 4), "error": round(found.error, 4)}
