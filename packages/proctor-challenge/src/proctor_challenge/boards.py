"""The figures of a submission and the boards of a phase, computed from the store of its answers: those of `proctor
rank`, with an interval for each mean. Also how much the results of a phase may have revealed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from proctor.core import FrozenModel
from proctor.metrics import chance_level, chance_of
from proctor.results import (
    Board,
    Contest,
    Leaderboard,
    LeaderboardRow,
    Options,
    RankedScores,
    board_rows,
    compare_runs,
    leaderboard,
    load_items,
    rank_runs,
)
from proctor.runs import Store, chosen_runs
from proctor.stats import (
    Estimate,
    Floats,
    HiddenSet,
    RankingPlan,
    Resampling,
    ShownMeans,
    bucket_mean_interval,
    least_squares,
    luck,
)
from proctor_challenge.schema import results, submissions, team_charges
from proctor_challenge.settings import Phase, RankingChoice

_INTERVAL_DRAWS = 2000  # for the interval of a mean; win rates and ranks have draws of their own
_ROUNDING = 1e-12  # a difference that is only rounding
_MAX_RESULTS = 500  # that are simulated; more change little
_LUCK_DRAWS, _ATTACK_DRAWS = 400, 60
_RULES: tuple[Literal["all", "ladder"], ...] = ("all", "ladder")


class BoardFigure(FrozenModel):
    """The mean of a submission on one board with its 95 % interval, a share where it is shown in `percent`. `above` says
    whether it beats every baseline there (None without baselines)."""

    name: str
    title: str
    mean: float | None
    low: float | None
    high: float | None
    questions: int
    groups: int | None = None
    above: bool | None = None
    higher_is_better: bool = True
    percent: bool = False


class AnswerSeconds(FrozenModel):
    """Response times in seconds: median, 95th percentile and maximum. `measured` by us, or reported by the file."""

    answers: int
    median: float
    p95: float
    longest: float
    measured: bool


class Figures(FrozenModel):
    """All that is known of a submission outside the sealed part: aggregates, nothing of any question. `shown` says
    whether its team sees the means: always, or when the ladder lets them through."""

    boards: tuple[BoardFigure, ...]
    statuses: dict[str, int]
    seconds: AnswerSeconds | None = None
    shown: bool = True


@dataclass(frozen=True)
class HiddenQuestions:
    """The questions of a phase, as far as the optimism of its results depends on them: how `alike` the answers of the best
    system are within a group, and what the means of each result are made of (`shown`)."""

    alike: HiddenSet
    shown: ShownMeans


@dataclass(frozen=True)
class MadeBoard:
    """One board as data. `facts` hold for the whole board; `rows` are best first and baselines last, each with the
    interval of its mean, `low` and `high`."""

    name: str
    title: str
    facts: dict[str, Any]
    rows: tuple[dict[str, Any], ...]

    def row(self, system: str) -> dict[str, Any]:
        """The row of a system. Raises `KeyError` for a system that is not on the board."""
        return {row["system"]: row for row in self.rows}[system]


@dataclass(frozen=True)
class BoardMaker:
    """Computes the boards of one phase: those over buckets if the benchmark declares buckets, else the leaderboard of
    its headline metric. `baselines` are listed and not ranked."""

    store: Store
    benchmark: str
    phase: Phase
    ranking: RankingChoice
    baselines: tuple[str, ...] = ()

    def made(self, systems: Sequence[str], *, quick: bool = False) -> list[MadeBoard]:
        """All boards of these systems, in any order. `quick` omits win rates and probabilities of ranks."""
        if not self._in_buckets:
            return [self._headline_board(systems)]
        choice = self.ranking
        plan = RankingPlan(
            alpha=choice.alpha, ties=choice.ties, draws=choice.draws, stability=choice.stability, seed=choice.seed,
            leave_out=True,
        )  # fmt: skip
        if quick:
            plan = RankingPlan(alpha=choice.alpha, ties=choice.ties, draws=1, seed=choice.seed)
        return [self._bucket_board(board) for board in self._ranked(systems, plan)]

    def lead(self, system: str, other: str) -> Estimate:
        """The difference between two systems on the first board (positive: the first one is better) on the questions
        that both have a score for, with its interval over whole groups."""
        if self._in_buckets:
            scores = self._ranked((system, other), RankingPlan(draws=1))[0].scores
            return self._mean(scores.right[system] - scores.right[other], scores, (-1.0, 1.0))
        runs = {run.system: run for run in chosen_runs(self.store, self.benchmark, (), (self.phase.condition,))}
        card = self.store.card(self.benchmark)
        options = Options(seed=self.ranking.seed, draws=_INTERVAL_DRAWS)
        pair = [(runs[system], runs[other])]
        found = compare_runs(self.store, self.benchmark, pair, options, metrics=(card.headline,), alone=True)[
            0
        ].difference
        if card.metric(card.headline).higher_is_better:
            return Estimate(found.value, found.ci_low, found.ci_high, found.n, found.groups)
        value, low, high = (None if end is None else -end for end in (found.value, found.ci_high, found.ci_low))
        return Estimate(value, low, high, found.n, found.groups)

    def hidden(self, system: str) -> HiddenQuestions | None:
        """What the results on this phase's questions may reveal, if `system` is the best one and means are shares of right
        answers; None without a score."""
        items = load_items(self.store, self.store.card(self.benchmark))
        if self._in_buckets:
            scores = [board.scores for board in self._ranked((system,), RankingPlan(draws=1)) if board.items]
            if not scores:
                return None
            right, group = scores[0].right[system], scores[0].group
            used, weights = np.unique(np.concatenate([one.item for one in scores])), _weights(scores)
        else:
            ranked = self._leaderboard((system,))
            run = chosen_runs(self.store, self.benchmark, (system,), (self.phase.condition,))[0]
            rows = self.store.score_rows(run, scorer=ranked.scorer, metric=ranked.metric.name)
            value = {row.item_id: row.value for row in rows}
            used = np.array([index for index, name in enumerate(items.ids) if value.get(name) is not None])
            right = np.array([value[items.ids[index]] for index in used.tolist()])
            group, weights = items.group[used], np.full((1, len(used)), 1 / max(1, len(used)))
        scored = ~np.isnan(right)
        if not scored.any():
            return None
        options = self._options([items.ids[index] for index in used.tolist()])
        shown = ShownMeans(options, weights, self.phase.results.digits)
        return HiddenQuestions(HiddenSet.of(right[scored], group[scored]), shown)

    def _options(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The number of answers to each of these items, of which one is right; 2 if there is no chance level."""
        chances = {item.id: chance_of(item) for item in self.store.items(self.benchmark)}
        return np.array([_options_at(chances[name]) for name in names], dtype=np.int64)

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

    def _bucket_board(self, board: Board) -> MadeBoard:
        stability = {run.standing.name: run.standing.stability for run in board.runs}
        rows = []
        for row in board_rows(board):
            mean = self._mean(board.scores.right[row["system"]], board.scores, (0.0, 1.0))
            ranks = stability.get(row["system"])
            more = {"low": mean.ci_low, "high": mean.ci_high, "chances": None if ranks is None else [*ranks.chances]}
            rows.append(row | more)
        standings = board.standings
        facts = {
            "questions": board.items,
            "groups": standings.groups,
            "buckets": list(standings.buckets),
            "shares": True,
            "percent": True,
            "chance": self._chance(board.scores) if board.items else None,
            "rule": standings.rule,
            "ties": standings.ties,
            "tie_orders": [asdict(order) for order in standings.tie_orders],
            "removals": [asdict(one) for one in standings.removals],
            "alpha": board.alpha,
            "scored_by": board.judge,
            "left_out": board.left_out,
            "too_few_groups": list(board.powerless),
        }
        return MadeBoard(board.name, board.title, facts, tuple(rows))

    def _chance(self, scores: RankedScores) -> float | None:
        """The mean over the buckets of the chance level in each; None if a question has none."""
        known = {item.id: chance_of(item) for item in self.store.items(self.benchmark)}
        ids = load_items(self.store, self.store.card(self.benchmark)).ids
        levels = [known[ids[row]] for row in scores.item.tolist()]
        if not levels or None in levels:
            return None
        _, bucket, size = np.unique(scores.bucket, return_inverse=True, return_counts=True)
        return float(np.mean(np.bincount(bucket, weights=np.array(levels, dtype=float)) / size))

    def _mean(self, right: NDArray[np.float64], scores: Any, bounds: tuple[float, float]) -> Estimate:
        """The mean over the buckets of the mean in each bucket, with its interval."""
        n_buckets = int(scores.bucket.max(initial=-1)) + 1
        plan = Resampling(draws=_INTERVAL_DRAWS, seed=self.ranking.seed).within(*bounds)
        return bucket_mean_interval(right, scores.bucket, scores.group.tolist(), n_buckets, plan)

    def _headline_board(self, systems: Sequence[str]) -> MadeBoard:
        ranked = self._leaderboard(systems)
        baselines = self._leaderboard(self.baselines).rows if self.baselines else []
        known = [row.value for row in baselines if row.value is not None]
        sign = 1.0 if ranked.metric.higher_is_better else -1.0
        rows = []
        for row in ranked.rows:
            above = row.value is not None and all(sign * (row.value - value) > _ROUNDING for value in known)
            verdict = {"below_line": not above, "advances": above} if known else {"below_line": None, "advances": None}
            rows.append(_row(row) | verdict | {"baseline": False})
        rows += [_row(row) | {"rank": None, "baseline": True} for row in baselines]
        facts = {
            "questions": ranked.items,
            "left_out": ranked.left_out,
            "scored_by": ranked.scorer,
            "metric": ranked.metric.name,
            "higher_is_better": ranked.metric.higher_is_better,
            "percent": ranked.metric.percent,
            "shares": self._are_shares(ranked),
            "chance": chance_level(ranked.metric, self.store.items(self.benchmark)),
        }
        return MadeBoard("technical", ranked.metric.label or ranked.metric.name, facts, tuple(rows))

    def _are_shares(self, ranked: Leaderboard) -> bool:
        """Whether the means are shares of right answers: each score is 0 or 1, and 1 is right."""
        systems = [row.system for row in ranked.rows]
        runs = chosen_runs(self.store, self.benchmark, systems, (self.phase.condition,)) if systems else []
        metric, scorer = ranked.metric, ranked.scorer
        rows = [row for run in runs for row in self.store.score_rows(run, scorer=scorer, metric=metric.name)]
        return metric.higher_is_better and bool(rows) and {row.value for row in rows} <= {0.0, 1.0}

    def _leaderboard(self, systems: Sequence[str]) -> Leaderboard:
        options = Options(systems=tuple(systems), draws=_INTERVAL_DRAWS, seed=self.ranking.seed)
        return leaderboard(self.store, self.benchmark, condition=self.phase.condition, options=options)


def _options_at(chance: float | None) -> int:
    return 2 if not chance else max(2, round(1 / chance))


def _weights(scores: Sequence[RankedScores]) -> Floats:
    """The weight of each item in the mean over the buckets of each board: boards × items in use."""
    rows = np.unique(np.concatenate([one.item for one in scores]))
    weights = np.zeros((len(scores), len(rows)))
    for row, one in zip(weights, scores, strict=True):
        _, bucket, size = np.unique(one.bucket, return_inverse=True, return_counts=True)
        row[np.searchsorted(rows, one.item)] = 1 / (len(size) * size[bucket])
    return weights


def _row(row: LeaderboardRow) -> dict[str, Any]:
    return {
        "system": row.system,
        "rank": row.rank,
        "mean": row.value,
        "low": row.ci_low,
        "high": row.ci_high,
        "rank_by_mean": row.rank,
        "rank_low": row.rank_low,
        "rank_high": row.rank_high,
        "resampled_rank_low": row.resampled_rank_low,
        "resampled_rank_high": row.resampled_rank_high,
        "p_first": row.p_best,
        "mean_if_wrong": row.if_wrong,
        "mean_if_excluded": row.if_excluded,
    }


def result_counts(connection: Connection, phase: str, version: int) -> dict[str, int]:
    """The number of results in a phase that the team with the most knows, also from its members' former teams, and that
    all teams know together."""
    in_phase = (submissions.c.phase == phase, results.c.scorer == version)
    query = select(submissions.c.team).join(results, results.c.submission == submissions.c.id).where(*in_phase)
    teams = list(connection.scalars(query))
    brought = (
        select(team_charges.c.team)
        .join(submissions, submissions.c.id == team_charges.c.submission)
        .join(results, results.c.submission == submissions.c.id)
    )
    known = Counter([*teams, *connection.scalars(brought.where(*in_phase))])
    return {"one team": max(known.values(), default=0), "all teams": len(teams)}


def given_away(
    phase: Phase, figures: Sequence[Figures], counts: Mapping[str, int], hidden: HiddenQuestions | None
) -> dict[str, Any]:
    """How far the best result may exceed its true accuracy because of the number of results on the same hidden
    questions (`counts`): for the team with the most results, and for all teams together.

    `luck` is the optimism among systems as good as the best one, with its Monte Carlo error. `attack` is what guesses
    get above chance that use each result and need no system: on average by least squares on the means, and its `bound`
    in 95 of 100 attacks if every number of a result revealed as much as a mean (`proctor.stats.least_squares`). So a phase
    has given away at least that much. Both are given for the phase's rule and for the other one, for shares of right
    answers. Of any other metric (`hidden` is None) they are not known (None).
    """
    best = best_figure(figures)
    rows: list[dict[str, Any]] = []
    for who, n_results in counts.items():
        by_rule = {str(rule): None if hidden is None else _optimism(hidden, n_results, rule) for rule in _RULES}
        rows.append({"who": who, "results": n_results} | by_rule)
    groups = best.groups or best.questions  # the simulated groups are of equal size
    icc = None if hidden is None else hidden.alike.icc
    facts = {"rule": phase.results.rule, "questions": best.questions, "groups": groups, "icc": icc}
    return facts | {"rows": rows}


def best_figure(figures: Sequence[Figures]) -> BoardFigure:
    """The best first board of several results."""
    return max((figure.boards[0] for figure in figures), key=lambda one: -math.inf if one.mean is None else one.mean)


def _optimism(hidden: HiddenQuestions, n_results: int, rule: Literal["all", "ladder"]) -> dict[str, dict[str, float]]:
    count = min(n_results, _MAX_RESULTS)
    lucky = luck(hidden.alike, count, rule, draws=_LUCK_DRAWS, seed=0)
    leak = least_squares(hidden.shown, n_results, rule, groups=hidden.alike.groups, draws=_ATTACK_DRAWS, seed=0)
    return {
        "luck": {"optimism": round(lucky.value, 4), "error": round(lucky.error, 4)},
        "attack": {"optimism": round(leak.value, 4), "bound": round(leak.high, 4)},
    }
