"""The ranking of systems over buckets of questions: who takes part, and the boards of all and of relevant questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, FailedPolicy, InputError, natural, one_of
from proctor.results.arrays import ItemTable, load_items, load_timed
from proctor.results.facets import facets_meant
from proctor.results.run_scores import Lacking, Mask, RunScores, load_accuracy, policies, readings
from proctor.runs import BASELINES, CODE, BenchmarkCard, Ruling, Run, Store, chosen_runs
from proctor.stats import BucketRankReadings, Correction, RankingPlan, Standing, Standings, rank_buckets

DEFAULT_BASELINES = ("random", "majority")
"""The baselines if none is named, as far as the store has them under `text-only`."""

NO_BASELINES = "none"
"""The name that stands for no baseline."""

_BLIND = "text-only"

Latency = Literal["required", "optional"]


@dataclass(frozen=True)
class Contest:
    """Who is ranked, and how lacking items count.

    `systems` have a run under `condition` (none named: all but Proctor's baselines). `baselines` are reference systems:
    they enter no test, no adjustment and no pairwise comparison; without a run under the condition their run under
    `text-only` counts. `failed` is the policy for lacking items, None for the benchmark's (`policies`). With `latency`
    "required" an answer without a latency is late, and so wrong; None means the same if the questions have a time limit
    and the latencies of some system are known: else leaving out latencies would pay.
    """

    condition: str = "video"
    systems: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    all_items: bool = False
    failed: FailedPolicy | None = None
    latency: Latency | None = None


@dataclass(frozen=True)
class Entry:
    """One system's scores under a policy: `right` is 1, 0, or NaN without a score. `missing`, `unsupported` and `untimed`
    are as in `Lacking`; if `timed`, untimed answers are wrong."""

    run: Run
    right: NDArray[np.float64]
    scored: RunScores
    missing: Mask
    unsupported: Mask
    untimed: Mask
    baseline: bool
    timed: bool = False

    @property
    def name(self) -> str:
        """The system's name."""
        return self.run.system

    @property
    def scorer(self) -> str:
        """The scorer of the answers that code can't compare, or "code"."""
        return self.scored.scorer

    def under(self, policy: FailedPolicy) -> Entry:
        """A copy under another policy."""
        right = self.scored.values(policy)
        if self.timed:
            right[self.untimed & ~np.isnan(right)] = ACCURACY.worst
        # Of a system a format that its run lacks is wrong, unless it says that it does not support it.
        right[self.unsupported & self.scored.scorable] = np.nan if self.baseline else ACCURACY.worst
        right[self.scored.unsupported] = np.nan
        return replace(self, right=right)

    def filled(self, value: float) -> NDArray[np.float64]:
        """The scores with one value for all lacking items."""
        return np.where(self.scored.lacking, value, self.right)

    def rankable(self, here: Mask, *, counting_lacking: bool) -> bool:
        """Whether any item `here` has a score (or lacks it, if that counts), none waits, and all are supported."""
        known = ~np.isnan(self.right) & (counting_lacking | ~self.scored.lacking)
        return bool(np.any(known & here)) and not np.any((self.scored.waiting | self.scored.unsupported) & here)

    def supported(self) -> Entry:
        """A copy without the items whose format the system does not answer."""
        return replace(self, right=np.where(self.unsupported, np.nan, self.right))

    def lacking(self, here: Mask) -> Lacking:
        """The counts of items without a score among those `here`."""
        own = (self.unsupported if self.baseline else self.scored.unsupported) & here
        return Lacking(
            missing=int(np.sum(self.missing & here & ~self.scored.not_asked & ~self.unsupported & ~own)),
            not_asked=int(np.sum(self.scored.not_asked & here & ~own)),
            failed=int(np.sum(self.scored.failed & here)),
            unresolved=int(np.sum(self.scored.unresolved & here)),
            unscored=int(np.sum(self.scored.waiting & here)),
            unsupported=int(np.sum(own)),
            untimed=int(np.sum(self.untimed & here)),
        )


def chosen_baselines(runs: Sequence[Run], named: Sequence[str]) -> tuple[str, ...]:
    """The names of the baselines: the named ones, none for `NO_BASELINES`, else the default ones that have a run."""
    if tuple(named) == (NO_BASELINES,):
        return ()
    blind = {run.system for run in runs if run.condition == _BLIND}
    return tuple(named) or tuple(name for name in DEFAULT_BASELINES if name in blind)


def ranked_entries(store: Store, card: BenchmarkCard, items: ItemTable, contest: Contest) -> list[Entry]:
    """The chosen systems and the baselines, by name, under the first policy (see `rank_runs`)."""
    all_runs = chosen_runs(store, card.name)
    runs = {(run.system, run.condition): run for run in all_runs}
    wanted = chosen_baselines(all_runs, contest.baselines)
    known = sorted({system for system, _ in runs})
    for name in (*contest.systems, *wanted):
        if name not in known:
            raise InputError(store.shown, found=f"no run of {name!r}", expected=one_of(known, name))
    chosen = {
        system: run
        for (system, under), run in runs.items()
        if under == contest.condition
        and (system in contest.systems if contest.systems else system not in BASELINES)
        and system not in card.disqualified
    }
    for name in wanted:
        run = runs.get((name, contest.condition)) or runs.get((name, _BLIND))
        if run is None:
            expected = f"one under {contest.condition} or {_BLIND}"
            raise InputError(store.shown, found=f"no such run of the baseline {name}", expected=expected)
        chosen[name] = run
    if not set(chosen) - set(wanted):
        raise InputError(store.shown, _nobody(runs, contest.condition))
    accuracy = load_accuracy(store, list(chosen.values()), items, card)
    entries = [
        _entry(store, run, items, accuracy[run.id], baseline=system in wanted) for system, run in sorted(chosen.items())
    ]
    timed = _latency_counts(entries, contest.latency)
    policy = policies(contest.failed, card)[0]
    return [replace(entry, timed=timed and not entry.baseline).under(policy) for entry in entries]


def disqualified(store: Store, card: BenchmarkCard, contest: Contest) -> tuple[Ruling, ...]:
    """The rulings on systems that would be on the board, by name."""
    asked = {run.system for run in chosen_runs(store, card.name) if run.condition == contest.condition}
    named = asked & set(contest.systems) if contest.systems else asked
    return tuple(card.disqualified[name] for name in sorted(named & card.disqualified.keys()))


def _nobody(runs: Mapping[tuple[str, str], Run], condition: str) -> str:
    """Why nobody is ranked under a condition, and under which somebody could be."""
    alone = any(under == condition for _, under in runs)
    others = sorted({under for system, under in runs if system not in BASELINES and under != condition})
    more = f"Choose one: --condition {' or '.join(others)}" if others else "Run a system under it first."
    return f"no run under {condition}{' but those of baselines' if alone else ''}. {more}"


def _entry(store: Store, run: Run, items: ItemTable, scored: RunScores, *, baseline: bool) -> Entry:
    outcomes = scored.outcomes
    never = np.bincount(items.format, outcomes.asked, minlength=len(items.formats)) == 0
    unsupported = never[items.format] if outcomes.asked.any() else np.zeros(len(items), dtype=np.bool_)
    judged = run.settings.get("budget_s") is not None
    untimed = outcomes.answered & outcomes.submitted & ~load_timed(store, run, items)
    return Entry(
        run=run,
        right=scored.scores,
        scored=scored,
        missing=~(outcomes.asked & outcomes.submitted),
        unsupported=unsupported | scored.unsupported,
        untimed=untimed if judged else np.zeros_like(untimed),
        baseline=baseline,
    )


def _latency_counts(entries: Sequence[Entry], chosen: Latency | None) -> bool:
    """Whether answers without a latency are late: as chosen, else if the latencies of some system are known."""
    if chosen is not None:
        return chosen == "required"
    limited = [entry for entry in entries if not entry.baseline and entry.run.settings.get("budget_s") is not None]
    return any(not np.all(entry.untimed | entry.missing) for entry in limited)


@dataclass(frozen=True)
class RankedRun:
    """One system on a board. `below`: its mean over the buckets is not above that of every baseline, on the questions that
    the baseline answers. `advances`: it is above all baselines on at least one board. Both are None without baselines."""

    standing: Standing
    below: bool | None
    lacking: Lacking = field(default_factory=Lacking)
    advances: bool | None = None


@dataclass(frozen=True)
class BaselineRun:
    """A baseline with its accuracies in the buckets (None without a score) and their mean: shown, not ranked."""

    name: str
    scores: tuple[float | None, ...]
    mean: float | None
    lacking: Lacking = field(default_factory=Lacking)


@dataclass(frozen=True)
class UnrankedRun:
    """A run without a rank, since lacking items may change a rank, or the system does not support some questions: its mean
    if lacking items are wrong (`low`) and if they are left out (`high`); unsupported ones are left out of both."""

    name: str
    low: float | None
    high: float | None
    lacking: Lacking


@dataclass(frozen=True)
class RankedScores:
    """The data of a board: `right` (1, 0, or NaN without a score) per system, baselines included, and the group and bucket
    number of each item, and its row in the table of all items."""

    right: dict[str, NDArray[np.float64]]
    group: NDArray[np.int64]
    bucket: NDArray[np.int64]
    item: NDArray[np.int64]


@dataclass(frozen=True)
class Board:
    """One leaderboard, best first. `left_out` questions have no scorer, `unbucketed` ones lack a tag of the buckets or have
    two values of it: neither counts. `alpha` and `correction` are those of the tests; `judge` is the scorer of the
    answers that code can't compare, the same for all systems, or "code". All ranks are the same under `policies`. If
    `timed`, answers without a latency are late. `disqualified` systems have a run under the condition and no rank."""

    name: str
    title: str
    standings: Standings
    runs: list[RankedRun]
    items: int
    left_out: int
    alpha: float
    scores: RankedScores = field(repr=False)
    judge: str = CODE
    baselines: tuple[BaselineRun, ...] = ()
    unranked: tuple[UnrankedRun, ...] = ()
    unbucketed: int = 0
    correction: Correction = "holm"
    policies: tuple[FailedPolicy, ...] = (FailedPolicy.WRONG,)
    timed: bool = False
    disqualified: tuple[Ruling, ...] = ()

    @property
    def names(self) -> list[str]:
        """All systems in the order of the board: ranked and unranked ones, baselines."""
        ranked = [run.standing.name for run in self.runs]
        return [*ranked, *(run.name for run in self.unranked), *(baseline.name for baseline in self.baselines)]

    @property
    def powerless(self) -> dict[str, float]:
        """The buckets in which no difference can be significant, with the smallest possible adjusted p."""
        return self.standings.powerless(self.alpha)


def rank_runs(
    store: Store,
    benchmark: str,
    contest: Contest = Contest(),
    *,
    by: Sequence[str] = (),
    plan: RankingPlan = RankingPlan(),
) -> list[Board]:
    """The boards of a benchmark: "technical" over all questions and, if the benchmark scores relevant questions, "clinical"
    over these.

    Buckets are all combinations of the values of the tags `by` (none named: the benchmark's). Lacking items count by the
    policy and do not affect other systems' scores. Unless the policy is `wrong`, an incomplete run is ranked only if its
    lacking items can't change any rank. Raises `InputError` for an unknown system, baseline or tag, and where nothing
    can be ranked.
    """
    card = store.card(benchmark)
    items = load_items(store, card, all_items=contest.all_items)
    return boards_of(store, card, items, ranked_entries(store, card, items, contest), contest, by=by, plan=plan)


def boards_of(
    store: Store,
    card: BenchmarkCard,
    items: ItemTable,
    entries: list[Entry],
    contest: Contest,
    *,
    by: Sequence[str] = (),
    plan: RankingPlan = RankingPlan(),
) -> list[Board]:
    """The boards of `rank_runs`, from loaded items and entries."""
    names, codes = _buckets(items, card, by, store.shown)
    boards = [("technical", "All questions", np.ones(len(items), dtype=np.bool_))]
    if card.relevance:
        relevant = [values == ("yes",) for values in items.facet(card.relevance)]
        boards.append(("clinical", f"Questions of {card.relevance} relevance", np.array(relevant)))
    maker = _Maker(entries, items.group, codes, names, policies(contest.failed, card), plan)
    out = disqualified(store, card, contest)
    made = [replace(maker.board(name, title, asked), disqualified=out) for name, title, asked in boards]
    return advancing(made)


@dataclass(frozen=True)
class _Maker:
    """What all boards of a benchmark share."""

    entries: list[Entry]
    group: NDArray[np.int64]
    codes: NDArray[np.int64]
    buckets: list[str]
    policies: tuple[FailedPolicy, ...]
    plan: RankingPlan

    def board(self, name: str, title: str, asked: Mask) -> Board:
        scorable = self.entries[0].scored.scorable
        here = asked & scorable & (self.codes >= 0)
        inside = np.flatnonzero(here)
        ranked = [entry for entry in self.entries if not entry.baseline]
        ranked, unranked = self._settled(ranked, here)
        entries = [entry.under(self.policies[0]) for entry in self.entries]
        right = {entry.name: entry.right[inside] for entry in entries}
        scores = RankedScores(right, self.group[inside], self.codes[inside], inside)
        names = [entry.name for entry in ranked]
        table = np.array([scores.right[name] for name in names]).reshape(len(names), len(inside))
        standings = rank_buckets(table, names, scores.group, scores.bucket, self.buckets, self.plan)
        baselines = sorted(
            (self._baseline(entry, scores, here) for entry in entries if entry.baseline),
            key=lambda baseline_run: (-(baseline_run.mean or 0.0), baseline_run.name),
        )
        lacking = {entry.name: entry.lacking(here) for entry in ranked}
        return Board(
            name=name,
            title=title,
            standings=standings,
            runs=[
                RankedRun(system, self._below(system.name, baselines, scores), lacking[system.name])
                for system in standings.systems
            ],
            items=len(inside),
            left_out=int(np.sum(asked & ~scorable & (self.codes >= 0))),
            alpha=self.plan.alpha,
            scores=scores,
            judge=next((entry.scorer for entry in entries if entry.scorer != CODE), CODE),
            baselines=tuple(baselines),
            unranked=tuple(self._range(entry, here) for entry in unranked),
            unbucketed=int(np.sum(asked & (self.codes < 0))),
            correction=self.plan.correction,
            policies=self.policies,
            timed=entries[0].timed,
        )

    def _settled(self, entries: list[Entry], here: Mask) -> tuple[list[Entry], list[Entry]]:
        """The systems that can be ranked, since lacking items can't change any rank, and the others: among these are those
        without any score, and those with answers that wait for the judge."""
        wrong = self.policies == (FailedPolicy.WRONG,)
        unranked = [entry for entry in entries if not entry.rankable(here, counting_lacking=wrong)]
        ranked = [entry for entry in entries if entry not in unranked]
        inside = np.flatnonzero(here)
        open_ones = {entry.name for entry in ranked if np.any(entry.scored.lacking & here)}
        if wrong or not open_ones:
            return ranked, unranked
        rows = _Rows(ranked, inside)
        ranks = BucketRankReadings(rows.right, self.group[inside], self.codes[inside], len(self.buckets), self.plan)
        while open_ones and (out := self._unsettled(ranks, rows, [entry.name for entry in ranked], open_ones)):
            unranked += [entry for entry in ranked if entry.name in out]
            ranked = [entry for entry in ranked if entry.name not in out]
            open_ones = open_ones - out
        return ranked, unranked

    @staticmethod
    def _unsettled(indices: BucketRankReadings, rows: _Rows, names: list[str], open_ones: set[str]) -> set[str]:
        """The open systems whose rank differs between the readings of lacking items (left out; wrong or right in all runs,
        or in one alone); all of them if only other systems' ranks differ."""
        in_order = [name for name in names if name in open_ones]
        left_out, *others = (rows.of(names, fill) for fill in ({}, *readings(in_order, ACCURACY)))
        expected = indices.of(left_out, left_out)
        moved: set[str] = set()
        changed = False
        for reading in others:
            if moved == open_ones:
                break
            asked = [row for name, row in zip(names, reading, strict=True) if name in open_ones - moved]
            found = indices.of(reading, asked if moved else reading)
            different = {names[k] for k, index in enumerate(found) if index != expected[k]}
            changed = changed or bool(different)
            moved |= different & (open_ones - moved)
        return moved or (open_ones if changed else set())

    def _baseline(self, entry: Entry, scores: RankedScores, here: Mask) -> BaselineRun:
        own = _scores(scores.right[entry.name], scores.bucket, len(self.buckets))
        return BaselineRun(entry.name, own, _mean(own), entry.lacking(here))

    def _below(self, name: str, baselines: Sequence[BaselineRun], scores: RankedScores) -> bool | None:
        if not baselines:
            return None
        for baseline in baselines:
            there = ~np.isnan(scores.right[baseline.name])
            own = _scores(scores.right[name][there], scores.bucket[there], len(self.buckets))
            if baseline.mean is not None and (_mean(own) or 0.0) <= baseline.mean + 1e-12:
                return True
        return False

    def _range(self, entry: Entry, here: Mask) -> UnrankedRun:
        means = [
            _mean(_scores(entry.under(policy).right[here], self.codes[here], len(self.buckets)))
            for policy in (FailedPolicy.WRONG, FailedPolicy.EXCLUDE)
        ]
        return UnrankedRun(entry.name, means[0], means[1], entry.lacking(here))


class _Rows:
    """The possible scores of every system on some items: with lacking items left out, wrong, or right."""

    def __init__(self, entries: Sequence[Entry], inside: NDArray[np.int64]) -> None:
        self._ranks: dict[tuple[str, float | None], int] = {}
        right: list[NDArray[np.float64]] = []
        for entry in entries:
            lacks = bool(np.any(entry.scored.lacking[inside]))
            for value in (None, ACCURACY.low, ACCURACY.high) if lacks else (None,):
                self._ranks[entry.name, value] = len(right)
                filled = entry.filled(np.nan if value is None else value)
                right.append(filled[inside])
        self.right = np.array(right)

    def of(self, names: Sequence[str], fill: Mapping[str, float]) -> list[int]:
        """The rows of these systems with these values for lacking items; without a value they are left out."""
        return [self._ranks[name, fill.get(name)] for name in names]


def _scores(right: NDArray[np.float64], bucket: NDArray[np.int64], n_buckets: int) -> tuple[float | None, ...]:
    there = ~np.isnan(right)
    count = np.bincount(bucket[there], minlength=n_buckets)
    total = np.bincount(bucket[there], right[there], minlength=n_buckets)
    return tuple(float(t / n) if n else None for t, n in zip(total, count, strict=True))


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None


def advancing(boards: list[Board]) -> list[Board]:
    """Sets `advances` on each board: whether a system is above all baselines on at least one of them."""
    ahead = {run.standing.name for board in boards for run in board.runs if run.below is False}
    return [
        replace(
            board,
            runs=[
                replace(run, advances=None if run.below is None else run.standing.name in ahead) for run in board.runs
            ],
        )
        for board in boards
    ]


def _buckets(
    items: ItemTable, card: BenchmarkCard, by: Sequence[str], shown: str
) -> tuple[list[str], NDArray[np.int64]]:
    """The names of all buckets, and the bucket of each item; −1 without a tag, or with two values of it."""
    known = items.facet_names()
    by = facets_meant(known, by)
    for tag in by:
        if tag not in known:
            raise InputError(shown, found=f"no facet {tag!r}", expected=one_of(known, tag))
    buckets, facets = ([tag for tag in tags if tag in known] for tags in (card.buckets, card.facets))
    tags = list(dict.fromkeys(by)) or buckets or facets[:1]
    if not tags:  # nothing to split by
        return ["all"], np.zeros(len(items), dtype=np.int64)
    columns = [items.facet(tag) for tag in tags]
    values = [sorted({name for names in column for name in names}, key=natural) for column in columns]
    cells = {cell: number for number, cell in enumerate(product(*values))}
    codes = [
        cells.get(tuple(names[0] if len(names) == 1 else "" for names in row), -1) for row in zip(*columns, strict=True)
    ]
    return [" / ".join(cell) for cell in cells], np.array(codes, dtype=np.int64)
