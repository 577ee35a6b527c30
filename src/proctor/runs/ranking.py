"""The ranking of a store's systems over buckets of questions: all of them, and the relevant ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from proctor.core import ACCURACY, FailedPolicy, InputError
from proctor.runs.cards import BenchmarkCard, Ruling
from proctor.runs.missing import Marked, load_marked_accuracy, policies
from proctor.runs.results import chosen_runs, natural
from proctor.runs.store import Run, Store
from proctor.runs.table import CODE, ItemTable, load_items, load_outcomes, load_timed
from proctor.stats import Correction, RankingOptions, RankingPlan, Standing, Standings, rank_buckets

__all__ = [
    "BASELINES",
    "NO_BASELINES",
    "BaselineRun",
    "Board",
    "Contest",
    "Entry",
    "Lacking",
    "Latency",
    "Marks",
    "RankedRun",
    "UnrankedRun",
    "advancing",
    "chosen_baselines",
    "rank_runs",
    "ranked_entries",
]

BASELINES = ("random", "majority")
"""Where no baseline is named, these, as far as the store has them under `text-only`."""

NO_BASELINES = "none"
"""Named instead of a baseline: there is none."""

_BLIND = "text-only"

Latency = Literal["required", "optional"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Contest:
    """Who is ranked, and how what they lack counts.

    `systems` are those with a run under `condition` (all, where none are named). `baselines` are reference systems: they
    enter no test, no adjustment and no duel; one that has no run under the condition is taken from `text-only`. `failed`
    is the policy for what a run lacks, None for the benchmark's own (`proctor.runs.missing`). `latency` "required"
    counts an answer without a latency as late, so as wrong; None means so where the questions have a time limit and
    somebody's latencies are known, since a file without them would be in time by saying nothing.
    """

    condition: str = "video"
    systems: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    all_items: bool = False
    failed: FailedPolicy | None = None
    latency: Latency | None = None


@dataclass(frozen=True)
class Lacking:
    """What a run lacks on the questions of a board. To `missing` ones its file has no answer, which is wrong; `not_asked`
    were not asked; `failed` ended with an infrastructure error; `unresolved` have no verdict from the judge, which was asked, `unmarked` wait for
    it; `unsupported` are of a format that a baseline does not answer; `untimed` have no latency, where it is judged."""

    missing: int = 0
    not_asked: int = 0
    failed: int = 0
    unresolved: int = 0
    unmarked: int = 0
    unsupported: int = 0
    untimed: int = 0

    @property
    def incomplete(self) -> bool:
        """Whether its score depends on the policy."""
        return bool(self.not_asked or self.failed or self.unresolved)


@dataclass(frozen=True)
class RankedRun:
    """One system on a board. `below` says that it does not beat every baseline by its mean over the buckets, on the
    questions that the baseline answers; `advances` that it beats them all on at least one board. Both are None without
    baselines."""

    standing: Standing
    below: bool | None
    lacking: Lacking = Lacking()
    advances: bool | None = None


@dataclass(frozen=True)
class BaselineRun:
    """A baseline with its own accuracies in the buckets (None where it has none) and their mean: shown, not ranked."""

    name: str
    scores: tuple[float | None, ...]
    mean: float | None
    lacking: Lacking = Lacking()


@dataclass(frozen=True)
class UnrankedRun:
    """An incomplete run that can't be ranked, since what it lacks may change a place: its mean if that is wrong (`low`)
    and if it is left out (`high`)."""

    name: str
    low: float | None
    high: float | None
    lacking: Lacking


@dataclass(frozen=True)
class Marks:
    """What a board was made from: `right` (1, 0, or NaN where there is no mark) per system, baselines included, each
    item's group, and the number of its bucket."""

    right: dict[str, NDArray[np.float64]]
    group: NDArray[np.int64]
    bucket: NDArray[np.int64]


@dataclass(frozen=True)
class Board:
    """One leaderboard, best first. `left_out` questions can be marked by no scorer that there is, `unbucketed` ones lack
    a tag of the buckets or have two values of it: neither counts for anybody. `alpha` and `correction` are those of its
    tests; `judge` is the scorer behind the marks that code can't give, the same for all systems, or "code". `policies`
    are those that all places are the same under. `timed` says that answers without a latency count as late.
    `disqualified` systems have answers under the condition and are not ranked."""

    name: str
    title: str
    standings: Standings
    runs: list[RankedRun]
    items: int
    left_out: int
    alpha: float
    marks: Marks = field(repr=False)
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
        """All systems in the order of the board: ranked ones, those without a rank, baselines."""
        ranked = [one.standing.name for one in self.runs]
        return [*ranked, *(one.name for one in self.unranked), *(one.name for one in self.baselines)]

    @property
    def powerless(self) -> dict[str, float]:
        """The buckets in which no difference can be significant, with the smallest adjusted p that they could reach."""
        return self.standings.powerless(self.alpha)


@dataclass(frozen=True)
class Entry:
    """One system's marks under a policy: `right` is 1, 0, or NaN where an item has none. `missing`, `unsupported` and
    `untimed` are as in `Lacking`; `timed` says that untimed answers are wrong."""

    run: Run
    right: NDArray[np.float64]
    marked: Marked
    missing: Mask
    unsupported: Mask
    untimed: Mask
    baseline: bool
    timed: bool = False

    @property
    def name(self) -> str:
        """The system."""
        return self.run.system

    @property
    def scorer(self) -> str:
        """Who gave the marks that code can't give, or "code"."""
        return self.marked.scorer

    def under(self, policy: FailedPolicy) -> Entry:
        """The same under another policy."""
        right = self.marked.values(policy)
        if self.timed:
            right[self.untimed & ~np.isnan(right)] = ACCURACY.worst
        # A contestant that does not answer a format has chosen so; a baseline is shown on what it answers.
        here = self.unsupported & self.marked.markable
        right[here] = np.nan if self.baseline else ACCURACY.worst
        return replace(self, right=right)

    def filled(self, value: float) -> NDArray[np.float64]:
        """The marks with one value for all that it lacks."""
        return np.where(self.marked.lacking, value, self.right)

    def supported(self) -> Entry:
        """The same without the items whose format the system does not answer."""
        return replace(self, right=np.where(self.unsupported, np.nan, self.right))

    def lacking(self, here: Mask) -> Lacking:
        """What it lacks there."""
        own = self.unsupported & here if self.baseline else np.zeros_like(here)
        return Lacking(
            missing=int(np.sum(self.missing & here & ~self.marked.not_asked & ~self.unsupported & ~own)),
            not_asked=int(np.sum((self.marked.not_asked | self.marked.unsupported) & here & ~own)),
            failed=int(np.sum(self.marked.failed & here)),
            unresolved=int(np.sum(self.marked.unresolved & here)),
            unmarked=int(np.sum(self.marked.waiting & here)),
            unsupported=int(np.sum(own)),
            untimed=int(np.sum(self.untimed & here)),
        )


def rank_runs(
    store: Store,
    benchmark: str,
    contest: Contest | None = None,
    *,
    by: Sequence[str] = (),
    **options: Unpack[RankingOptions],
) -> list[Board]:
    """The boards of a benchmark: "technical" over all questions and, where the benchmark says which are
    relevant, "clinical" over these.

    Buckets are all combinations of the values of the tags `by` (the benchmark's own, if none are named). What a run
    lacks counts by the policy; it takes nothing from the scores of others. Unless that is `wrong`, an incomplete run is
    ranked only where what it lacks can't change any place. Raises `InputError` for an unknown system,
    baseline or tag, and where nothing can be ranked.
    """
    contest = contest or Contest()
    card = store.card(benchmark)
    items = load_items(store, card, all_items=contest.all_items)
    entries = ranked_entries(store, card, items, contest)
    names, codes = _buckets(items, card, by, store.shown)
    boards = [("technical", "All questions", np.ones(len(items.ids), dtype=np.bool_))]
    if card.relevance:
        relevant = [values == ("yes",) for values in items.facet(card.relevance)]
        boards.append(("clinical", f"Questions of {card.relevance} relevance", np.array(relevant)))
    maker = _Maker(entries, items.group, codes, names, policies(contest.failed, card), options)
    out = _disqualified(store, card, contest)
    made = [replace(maker.board(name, title, asked), disqualified=out) for name, title, asked in boards]
    return advancing(made)


@dataclass(frozen=True)
class _Maker:
    """What all boards of a benchmark are made from."""

    entries: list[Entry]
    group: NDArray[np.int64]
    codes: NDArray[np.int64]
    buckets: list[str]
    policies: tuple[FailedPolicy, ...]
    options: RankingOptions

    def board(self, name: str, title: str, asked: Mask) -> Board:
        markable = self.entries[0].marked.markable
        here = asked & markable & (self.codes >= 0)
        inside = np.flatnonzero(here)
        ranked = [entry for entry in self.entries if not entry.baseline]
        ranked, unranked = self._settled(ranked, here)
        entries = [one.under(self.policies[0]) for one in self.entries]
        marks = Marks(
            {one.name: one.right[inside] for one in entries}, self.group[inside], self.codes[inside]
        )
        standings = self._standings(ranked, inside, self.policies[0])
        baselines = sorted(
            (self._baseline(one, marks, here) for one in entries if one.baseline),
            key=lambda one: (-(one.mean or 0.0), one.name),
        )
        plan = RankingPlan(**self.options)
        lacking = {one.name: one.lacking(here) for one in ranked}
        return Board(
            name=name,
            title=title,
            standings=standings,
            runs=[
                RankedRun(one, self._below(one.name, baselines, marks), lacking[one.name])
                for one in standings.systems
            ],
            items=len(inside),
            left_out=int(np.sum(asked & ~markable & (self.codes >= 0))),
            alpha=plan.alpha,
            marks=marks,
            judge=next((one.scorer for one in entries if one.scorer != CODE), CODE),
            baselines=tuple(baselines),
            unranked=tuple(self._range(one, here) for one in unranked),
            unbucketed=int(np.sum(asked & (self.codes < 0))),
            correction=plan.correction,
            policies=self.policies,
            timed=entries[0].timed,
        )

    def _settled(self, ranked: list[Entry], here: Mask) -> tuple[list[Entry], list[Entry]]:
        """Who can be ranked, since what runs lack can't change any place, and who can't."""
        unranked: list[Entry] = []
        inside = np.flatnonzero(here)
        while self.policies != (FailedPolicy.WRONG,):
            open_ones = [one for one in ranked if np.any(one.marked.lacking & here)]
            if not open_ones:
                break
            first, *others = self._readings(ranked, open_ones, inside)
            if all(one == first for one in others):
                break
            moved = {
                one.name for one in open_ones if any(places[one.name] != first[one.name] for places in others)
            }
            out = moved or {one.name for one in open_ones}
            unranked += [one for one in ranked if one.name in out]
            ranked = [one for one in ranked if one.name not in out]
        return ranked, unranked

    def _readings(
        self, entries: list[Entry], open_ones: list[Entry], inside: NDArray[np.int64]
    ) -> list[dict[str, int]]:
        """The places under every reading of what runs lack: left out, wrong or right in all of them, and wrong or right
        in one alone."""
        quick = RankingOptions(**{**self.options, "stability": 0})
        fills = [{one.name: np.nan for one in open_ones}]
        for most, least in ((ACCURACY.worst, ACCURACY.high), (ACCURACY.high, ACCURACY.worst)):
            everyone = {one.name: most for one in open_ones}
            alone = [everyone | {one.name: least} for one in open_ones] if len(open_ones) > 1 else []
            fills += [everyone, *alone]
        found = []
        for fill in fills:
            right = [one.filled(fill[one.name]) if one.name in fill else one.right for one in entries]
            standings = self._ranked(
                [row[inside] for row in right], [one.name for one in entries], inside, quick
            )
            found.append({one.name: one.place for one in standings.systems})
        return found

    def _standings(self, entries: list[Entry], inside: NDArray[np.int64], policy: FailedPolicy) -> Standings:
        right = [one.under(policy).right[inside] for one in entries]
        return self._ranked(right, [one.name for one in entries], inside, self.options)

    def _ranked(
        self,
        right: list[NDArray[np.float64]],
        names: list[str],
        inside: NDArray[np.int64],
        options: RankingOptions,
    ) -> Standings:
        table = np.array(right).reshape(len(names), len(inside))
        return rank_buckets(table, names, self.group[inside], self.codes[inside], self.buckets, **options)

    def _baseline(self, entry: Entry, marks: Marks, here: Mask) -> BaselineRun:
        scores = _scores(marks.right[entry.name], marks.bucket, len(self.buckets))
        return BaselineRun(entry.name, scores, _mean(scores), entry.lacking(here))

    def _below(self, name: str, baselines: Sequence[BaselineRun], marks: Marks) -> bool | None:
        if not baselines:
            return None
        for one in baselines:
            there = ~np.isnan(marks.right[one.name])
            own = _scores(marks.right[name][there], marks.bucket[there], len(self.buckets))
            if one.mean is not None and (_mean(own) or 0.0) <= one.mean + 1e-12:
                return True
        return False

    def _range(self, entry: Entry, here: Mask) -> UnrankedRun:
        means = [
            _mean(_scores(entry.under(policy).right[here], self.codes[here], len(self.buckets)))
            for policy in (FailedPolicy.WRONG, FailedPolicy.EXCLUDE)
        ]
        return UnrankedRun(entry.name, means[0], means[1], entry.lacking(here))


def _scores(
    right: NDArray[np.float64], bucket: NDArray[np.int64], n_buckets: int
) -> tuple[float | None, ...]:
    there = ~np.isnan(right)
    count = np.bincount(bucket[there], minlength=n_buckets)
    total = np.bincount(bucket[there], right[there], minlength=n_buckets)
    return tuple(float(t / n) if n else None for t, n in zip(total, count, strict=True))


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [one for one in scores if one is not None]
    return sum(known) / len(known) if known else None


def advancing(boards: list[Board]) -> list[Board]:
    """Who beats all baselines on at least one board, said on each."""
    ahead = {one.standing.name for board in boards for one in board.runs if one.below is False}
    return [
        replace(
            board,
            runs=[
                replace(one, advances=None if one.below is None else one.standing.name in ahead)
                for one in board.runs
            ],
        )
        for board in boards
    ]


def chosen_baselines(runs: Sequence[Run], named: Sequence[str]) -> tuple[str, ...]:
    """The names of the baselines: those named, none for `NO_BASELINES`, else the default ones that are there."""
    if tuple(named) == (NO_BASELINES,):
        return ()
    blind = {run.system for run in runs if run.condition == _BLIND}
    return tuple(named) or tuple(name for name in BASELINES if name in blind)


def ranked_entries(store: Store, card: BenchmarkCard, items: ItemTable, contest: Contest) -> list[Entry]:
    """The chosen systems and the baselines, by name, under the first policy (see `rank_runs`)."""
    all_runs = chosen_runs(store, card.name)
    runs = {(run.system, run.condition): run for run in all_runs}
    wanted = chosen_baselines(all_runs, contest.baselines)
    known = sorted({system for system, _ in runs})
    for name in (*contest.systems, *wanted):
        if name not in known:
            raise InputError(
                store.shown, found=f"no run of {name!r}", expected=f"one of {', '.join(known) or 'none'}"
            )
    chosen = {
        system: run
        for (system, under), run in runs.items()
        if under == contest.condition
        and (not contest.systems or system in contest.systems)
        and system not in card.disqualified
    }
    for name in wanted:
        run = runs.get((name, contest.condition)) or runs.get((name, _BLIND))
        if run is None:
            expected = f"one under {contest.condition} or {_BLIND}"
            raise InputError(store.shown, found=f"no such run of the baseline {name}", expected=expected)
        chosen[name] = run
    if not set(chosen) - set(wanted):
        found = f"no run under {contest.condition}"
        raise InputError(store.shown, found=found, expected="a system to rank")
    accuracy = load_marked_accuracy(store, list(chosen.values()), items, card)
    entries = [
        _entry(store, run, items, accuracy[run.id], baseline=system in wanted)
        for system, run in sorted(chosen.items())
    ]
    timed = _latency_counts(entries, contest.latency)
    policy = policies(contest.failed, card)[0]
    return [replace(one, timed=timed and not one.baseline).under(policy) for one in entries]


def _disqualified(store: Store, card: BenchmarkCard, contest: Contest) -> tuple[Ruling, ...]:
    """The decisions on systems that the board would have, by name."""
    asked = {run.system for run in chosen_runs(store, card.name) if run.condition == contest.condition}
    named = asked & set(contest.systems) if contest.systems else asked
    return tuple(card.disqualified[name] for name in sorted(named & card.disqualified.keys()))


def _entry(store: Store, run: Run, items: ItemTable, marked: Marked, *, baseline: bool) -> Entry:
    outcomes = load_outcomes(store, run, items)
    never = np.bincount(items.format, outcomes.asked, minlength=len(items.formats)) == 0
    unsupported = never[items.format] if outcomes.asked.any() else np.zeros(len(items.ids), dtype=np.bool_)
    judged = run.settings.get("budget_s") is not None
    untimed = outcomes.answered & outcomes.submitted & ~load_timed(store, run, items)
    return Entry(
        run=run,
        right=marked.scores,
        marked=marked,
        missing=~(outcomes.asked & outcomes.submitted),
        unsupported=unsupported | marked.unsupported,
        untimed=untimed if judged else np.zeros_like(untimed),
        baseline=baseline,
    )


def _latency_counts(entries: Sequence[Entry], chosen: Latency | None) -> bool:
    """Whether answers without a latency are late: as chosen, else where some contestant's latencies are known."""
    if chosen is not None:
        return chosen == "required"
    limited = [one for one in entries if not one.baseline and one.run.settings.get("budget_s") is not None]
    return any(not np.all(one.untimed | one.missing) for one in limited)


def _buckets(
    items: ItemTable, card: BenchmarkCard, by: Sequence[str], shown: str
) -> tuple[list[str], NDArray[np.int64]]:
    """The names of all buckets, and which one each item is in; −1 for an item that lacks one of the tags, or has two
    values of it."""
    tags = list(by) or list(card.buckets) or list(card.facets[:1])
    for tag in tags:
        if tag not in items.facet_names():
            known = ", ".join(items.facet_names())
            raise InputError(shown, found=f"no facet {tag!r}", expected=f"one of {known}")
    columns = [items.facet(tag) for tag in tags]
    values = [sorted({name for names in column for name in names}, key=natural) for column in columns]
    cells = {cell: number for number, cell in enumerate(product(*values))}
    codes = [
        cells.get(tuple(names[0] if len(names) == 1 else "" for names in row), -1)
        for row in zip(*columns, strict=True)
    ]
    return [" / ".join(cell) for cell in cells], np.array(codes, dtype=np.int64)
