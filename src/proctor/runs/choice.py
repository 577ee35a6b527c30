"""Which of several runs is the best by the mean over buckets, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import FailedPolicy, InputError, count_of, percent
from proctor.runs.ranking import Board, rank_runs
from proctor.runs.run_scores import Contest
from proctor.runs.store import Run, Store
from proctor.stats import Estimate, Floats, RankingPlan, Resampling, Standing, sums_difference, sums_interval

CHOICE_RULE = (
    "the highest mean over buckets of the accuracy in each; of equal ones the highest mean over buckets of the share of "
    "samples of groups in which a system is best; of those the first by name"
)


@dataclass(frozen=True)
class Candidate:
    """One run that may be chosen. `mean` is over the buckets that have questions, `buckets` the accuracy in each (None: no
    question). Intervals are clustered by group, and None where there are too few groups. `win_rate` is how often it is
    best in samples of groups, `duel_rate` how often among those of the same mean, `lead` how far the chosen one's mean is above its own (None: it is the chosen one)."""

    name: str
    settings: dict[str, JsonValue]
    mean: float
    ci_low: float | None
    ci_high: float | None
    buckets: dict[str, float | None]
    win_rate: float | None
    duel_rate: float | None
    rank_low: int | None
    rank_high: int | None
    lead: float | None = None
    lead_low: float | None = None
    lead_high: float | None = None
    lead_p: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self)


@dataclass(frozen=True)
class ModelChoice:
    """The candidates, the chosen one first; `by` says what decided: its "mean", its "win rate" among equals, or its
    "name". `left_out` questions have no mark for anybody."""

    benchmark: str
    fingerprint: str
    condition: str
    candidates: tuple[Candidate, ...]
    by: str
    buckets: tuple[str, ...]
    items: int
    groups: int
    left_out: int
    draws: int
    seed: int

    @property
    def chosen(self) -> Candidate:
        """The one."""
        return self.candidates[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """How sure the choice is, a sentence each."""
        told = []
        if self.by != "mean":
            told.append(f"{self.chosen.name} has the highest mean with others: its {self.by} decided.")
        for one in self.candidates[1:]:
            between = "no interval" if one.lead_low is None else f"{percent(one.lead_low)} to {percent(one.lead_high)}"
            shown = "" if one.lead_p is not None and one.lead_p <= 0.05 else ": not shown to be better"
            p = "no p" if one.lead_p is None else f"p {one.lead_p:.3g}"
            told.append(f"Lead over {one.name}: {percent(one.lead)} ({between}, {p}){shown}.")
        if self.left_out:
            told.append(f"Not counted: {count_of(self.left_out, 'question')} that no scorer can mark.")
        told.append("On these questions the chosen one was lucky, too: its figure on others is expected to be lower.")
        return tuple(told)

    def to_json(self) -> dict[str, Any]:
        """The whole evidence, as programs read it."""
        return {"chosen": self.chosen.name, "rule": CHOICE_RULE, "notes": list(self.notes), **asdict(self)}


def choose_run(store: Store, benchmark: str, contest: Contest, plan: RankingPlan) -> ModelChoice:
    """The best of the runs of a contest by `CHOICE_RULE`. What a run lacks is wrong, as the benchmark's policy may say;
    runs with failed or unasked answers can't be compared. Raises `InputError` for these, and for fewer than two runs."""
    board = rank_runs(store, benchmark, contest, plan=plan)[0]
    incomplete = [one.name for one in board.unranked]
    incomplete += [one.standing.name for one in board.runs if one.lacking.incomplete]
    if incomplete:
        raise InputError(store.shown, found=f"incomplete answers of {incomplete[0]}", expected="all of them")
    if len(board.runs) < 2:
        raise InputError(store.shown, found=f"{len(board.runs)} run", expected="two or more to choose from")
    runs = {run.system: run for run in store.runs(benchmark) if run.condition == contest.condition}
    standings = [one.standing for one in board.runs]
    first, second = standings[0], standings[1]
    by = "mean" if first.score > second.score else "win rate" if first.place < second.place else "name"
    return ModelChoice(
        benchmark=benchmark,
        fingerprint=store.fingerprint(benchmark),
        condition=contest.condition,
        candidates=tuple(_candidate(board, one, first, runs, plan) for one in standings),
        by=by,
        buckets=board.standings.buckets,
        items=board.items,
        groups=board.standings.groups,
        left_out=board.left_out,
        draws=plan.draws,
        seed=plan.seed,
    )


def bucket_mean(store: Store, benchmark: str, contest: Contest, plan: Resampling = Resampling()) -> Estimate:
    """The mean over buckets of the accuracy of the one system of a contest, with its interval over groups. What it
    lacks is wrong. Raises `InputError` where there is no run."""
    contest = replace(contest, failed=FailedPolicy.WRONG, baselines=("none",))
    board = rank_runs(store, benchmark, contest, plan=RankingPlan(rule="mean", draws=1))[0]
    return sums_interval(
        _columns(board, contest.systems[0]), board.marks.group, _mean_over(board), plan=plan.within(0, 1)
    )


def _mean_over(board: Board) -> Callable[[Floats], Floats]:
    size = len(board.standings.buckets)
    return lambda sums: _mean_of(sums, size)


def _candidate(board: Board, one: Standing, best: Standing, runs: dict[str, Run], plan: RankingPlan) -> Candidate:
    drawn = Resampling(draws=plan.draws, seed=plan.seed, level=plan.level, bounds=(0, 1))
    own, group, mean = _columns(board, one.name), board.marks.group, _mean_over(board)
    found = sums_interval(own, group, mean, plan=drawn)
    lead: dict[str, float | None] = {}
    if one is not best:
        apart = sums_difference(_columns(board, best.name), own, group, mean, plan=drawn)
        lead = {"lead": apart.value, "lead_low": apart.ci_low, "lead_high": apart.ci_high, "lead_p": apart.p}
    return Candidate(
        name=one.name,
        settings=runs[one.name].settings,
        mean=one.mean or 0.0,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        buckets=dict(zip(board.standings.buckets, one.scores, strict=True)),
        win_rate=one.win_rate,
        duel_rate=one.duel_rate,
        rank_low=one.rank_low,
        rank_high=one.rank_high,
        **lead,
    )


def _columns(board: Board, name: str) -> NDArray[np.float64]:
    """Items × (right in each bucket, and whether it is in it)."""
    marks = board.marks
    inside = np.eye(len(board.standings.buckets))[marks.bucket]
    right = np.nan_to_num(marks.right[name])[:, None] * inside
    return np.concatenate([right, inside * ~np.isnan(marks.right[name])[:, None]], axis=1)


def _mean_of(sums: Floats, size: int) -> Floats:
    """The mean over the buckets that have items, of each row of sums."""
    right, count = sums[:, :size], sums[:, size:]
    there = count > 0
    means = np.divide(right, count, out=np.zeros_like(right), where=there)
    number = there.sum(axis=1)
    found: Floats = np.divide(means.sum(axis=1), number, out=np.full(len(sums), np.nan), where=number > 0)
    return found
