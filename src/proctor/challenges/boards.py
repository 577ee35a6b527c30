"""The boards of a phase, from the store of its answers: those of `proctor rank`, with an interval for each mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from proctor.stats import Estimate, RankingPlan, Resampling, ratio, sums_interval

_INTERVAL_DRAWS = 2000  # behind the interval of a mean; win rates and places have draws of their own
_CRUMB = 1e-12  # of rounding, which beats nobody


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
