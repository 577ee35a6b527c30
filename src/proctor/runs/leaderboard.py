"""The leaderboard of one condition: systems ranked on the items that all of them were asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from proctor.core import InputError, Metric, Status
from proctor.runs.cards import BenchmarkCard
from proctor.runs.results import Options, chosen_runs
from proctor.runs.store import Run, Store
from proctor.runs.table import CODE, ItemTable, Series, load_items, load_outcomes, load_series
from proctor.stats import Estimate, mean_interval, rank_systems

__all__ = ["Leaderboard", "LeaderboardRow", "leaderboard"]


@dataclass(frozen=True)
class LeaderboardRow:
    """One system. `rank` is 1 + the number of systems significantly better (ties share it, and a lower score never
    has the better rank), None for a system that was not asked every item, or that is `disqualified`; `rank_low` to `rank_high` is its simultaneous
    confidence interval. `place_low` to `place_high` is how its place spreads over samples, and `p_best` how often it
    leads there: no confidence interval (see `proctor.stats.Rank`). `told_the_key` marks a baseline that knows the
    answers' distribution: a reference, not a contestant."""

    system: str
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    place_low: int | None
    place_high: int | None
    p_best: float | None
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    groups: int
    missing: int
    told_the_key: bool
    disqualified: bool = False


@dataclass(frozen=True)
class Leaderboard:
    """Ranked rows first, best first, then those that can't be ranked. `left_out` items have no score
    from at least one ranked system (failed, or not marked) and are left out for all, so that every
    system is ranked on the same items."""

    metric: Metric
    scorer: str
    condition: str
    rows: list[LeaderboardRow]
    items: int
    left_out: int


@dataclass(frozen=True)
class _Entry:
    run: Run
    series: Series
    missing: int
    disqualified: bool

    @property
    def contests(self) -> bool:
        return not self.missing and not self.disqualified

    @property
    def told_the_key(self) -> bool:
        return bool(self.run.settings.get("told_the_key", False))


def leaderboard(
    store: Store,
    benchmark: str,
    *,
    condition: str,
    metric: str | None = None,
    scorer: str | None = None,
    options: Options | None = None,
) -> Leaderboard:
    """Ranks the systems of one condition by a metric (the headline, if none is named).

    Failed answers under the policy `wrong` count as wrong, else the item is left out for all. Raises
    `InputError` where several scorers give the metric and none is named, and for an unknown condition.
    """
    options = options or Options()
    card = store.card(benchmark)
    declared = card.metric(metric or card.headline)
    items = load_items(store, card, all_items=options.all_items)
    markable = items.markable(declared, CODE if scorer is None else scorer)
    entries = [
        entry
        for run in chosen_runs(store, benchmark, options.systems, (condition,))
        for entry in _entries(store, run, card, declared, items, markable, options)
        if scorer is None or entry.series.scorer == scorer
    ]
    scorers = sorted({entry.series.scorer for entry in entries})
    if len(scorers) > 1:
        raise InputError(
            store.shown, found=f"{declared.name} by {', '.join(scorers)}", expected="one scorer, named"
        )
    ranked = [entry for entry in entries if entry.contests]
    common = markable.copy()
    for entry in ranked:
        common &= entry.series.marked
    asked = int(np.sum(markable)) if ranked else 0
    return Leaderboard(
        metric=declared,
        scorer=scorers[0] if scorers else "",
        condition=condition,
        rows=[
            *_ranked(ranked, items, np.flatnonzero(common), declared, options),
            *(_unranked(entry, items, declared, options) for entry in entries if not entry.contests),
        ],
        items=int(np.sum(common)) if ranked else 0,
        left_out=asked - int(np.sum(common)) if ranked else 0,
    )


def _entries(
    store: Store,
    run: Run,
    card: BenchmarkCard,
    metric: Metric,
    items: ItemTable,
    markable: Any,
    options: Options,
) -> list[_Entry]:
    outcomes = load_outcomes(store, run, items)
    missing = int(np.sum(markable & ~outcomes.asked))
    out = run.system in card.disqualified
    found = []
    for series in load_series(store, run, items):
        if series.metric != metric.name:
            continue
        values = series.values.copy()
        if options.failed == "wrong":
            values[outcomes.where(Status.FAILED) & markable] = metric.worst
        found.append(_Entry(run, Series(series.metric, series.scorer, values), missing, out))
    return found


def _ranked(
    entries: list[_Entry], items: ItemTable, common: Any, metric: Metric, options: Options
) -> list[LeaderboardRow]:
    if not entries:
        return []
    by_name = {entry.run.system: entry for entry in entries}
    common = np.repeat(common, items.units(metric, common))
    estimates = {name: _estimate(entry, common, items, metric, options) for name, entry in by_name.items()}
    ranks = rank_systems(
        np.stack([entry.series.values[common] for entry in entries]),
        list(by_name),
        items.group[common],
        higher_is_better=metric.higher_is_better,
        draws=options.draws,
        level=options.level,
        seed=options.seed,
        bounds=(metric.low, metric.high),
    )
    return [
        LeaderboardRow(
            system=rank.name,
            rank=rank.rank,
            rank_low=rank.rank_low,
            rank_high=rank.rank_high,
            place_low=rank.place_low,
            place_high=rank.place_high,
            p_best=rank.p_best,
            value=estimates[rank.name].value,
            ci_low=estimates[rank.name].ci_low,
            ci_high=estimates[rank.name].ci_high,
            n=estimates[rank.name].n,
            groups=estimates[rank.name].groups,
            missing=0,
            told_the_key=by_name[rank.name].told_the_key,
        )
        for rank in ranks
    ]


def _unranked(entry: _Entry, items: ItemTable, metric: Metric, options: Options) -> LeaderboardRow:
    marked = np.flatnonzero(entry.series.marked)
    estimate = _estimate(entry, np.repeat(marked, items.units(metric, marked)), items, metric, options)
    return LeaderboardRow(
        system=entry.run.system,
        rank=None,
        rank_low=None,
        rank_high=None,
        place_low=None,
        place_high=None,
        p_best=None,
        value=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        n=estimate.n,
        groups=estimate.groups,
        missing=entry.missing,
        told_the_key=entry.told_the_key,
        disqualified=entry.disqualified,
    )


def _estimate(entry: _Entry, places: Any, items: ItemTable, metric: Metric, options: Options) -> Estimate:
    """The same interval as in `results`, where the items are the same."""
    return mean_interval(
        entry.series.values[places],
        items.group[places],
        draws=options.draws,
        level=options.level,
        seed=options.seed,
        bounds=(metric.low, metric.high),
    )
