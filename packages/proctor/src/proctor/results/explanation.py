"""Why two scores of the same benchmark differ: each difference with its share of the gap, and what can't be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from proctor.core import InputError, Metric, count_of
from proctor.results.arrays import Ints, ItemTable, Mask
from proctor.results.explained_run import ExplainedRun, Floats
from proctor.results.gap_game import ITEMS, JUDGE, MISSING, READER, GapGame
from proctor.results.gap_plan import RunBetween
from proctor.results.run_differences import RunDifference, differences_of
from proctor.stats import Estimate, Resampling, mean_interval, paired_difference, ratio, shapley_values, sums_intervals

NO_CHANGE = "no item's value depends on it"
ALIKE = "it is the same in every group"
FEW = "too few groups"

_ROUNDING = 1e-12  # of a metric's range: a gap below is 0, but for the order in which scores were added


@dataclass(frozen=True)
class ExplainedScore:
    """A side's own score. `scorer` gave it, `form` is the other program's format ("" for a run of a store), `policy` the
    treatment of its `missing` answers; `items` were asked."""

    name: str
    form: str
    scorer: str
    policy: str
    items: int
    missing: int
    estimate: Estimate


@dataclass(frozen=True)
class GapPart:
    """What one difference contributes to the gap (first minus second side): the parts add up to it. `why` says why there is
    no interval; `share` of the gap is None where the gap is 0. `changed` items have another value with it."""

    player: str
    estimate: Estimate
    share: float | None
    changed: int
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data, flat."""
        figures = asdict(self.estimate)
        return {
            "part": self.player,
            "difference": figures["value"],
            "ci_low": figures["ci_low"],
            "ci_high": figures["ci_high"],
            "share": self.share,
            "items_changed": self.changed,
            "n": figures["n"],
            "groups": figures["groups"],
            "why_no_interval": self.why,
        }


@dataclass(frozen=True)
class Explanation:
    """The gap between two sides and its parts. `common` items (in `groups`) have an answer of both. `fixed` are
    differences that can't be swapped, each with the reason; `runs` would tell apart, or have told apart, what was asked. `values` are the scores of all
    combinations on the common items (see `GapGame.values`)."""

    benchmark: str
    metric: Metric
    first: ExplainedScore
    second: ExplainedScore
    gap: Estimate
    parts: tuple[GapPart, ...]
    common: int
    groups: int
    differences: tuple[RunDifference, ...]
    fixed: tuple[tuple[str, str], ...]
    runs: tuple[RunBetween, ...]
    players: tuple[str, ...]
    values: tuple[float | None, ...]
    notes: tuple[str, ...]
    draws: int
    seed: int
    level: float

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric.name,
            "first": _flat(self.first),
            "second": _flat(self.second),
            "gap": self.gap.value,
            "ci_low": self.gap.ci_low,
            "ci_high": self.gap.ci_high,
            "common_items": self.common,
            "common_groups": self.groups,
            "parts": [part.to_json() for part in self.parts],
            "differences": [one.to_json() for one in self.differences],
            "cannot_be_swapped": [{"difference": what, "why": why} for what, why in self.fixed],
            "runs_between": [run.to_json() for run in self.runs],
            "combinations": {"players": list(self.players), "scores": list(self.values)},
            "notes": list(self.notes),
            "settings": {"draws": self.draws, "seed": self.seed, "level": self.level},
        }


def _flat(score: ExplainedScore) -> dict[str, Any]:
    found = asdict(score)
    figures = found.pop("estimate")
    return found | {"score": figures["value"], "ci_low": figures["ci_low"], "ci_high": figures["ci_high"]}


def explain_gap(
    game: GapGame,
    plan: Resampling = Resampling(),
    *,
    differences: tuple[RunDifference, ...] | None = None,
    runs: Sequence[RunBetween] = (),
    fixed: Sequence[tuple[str, str]] = (),
) -> Explanation:
    """Explain the gap between the two sides of a game: all that differs, and what each difference contributes.

    The score of a side is its mean over the items that it counts. The part of the items is what the items of one side
    alone add to that side's own score; the other parts are Shapley values of the scores of all combinations on the common
    items, so that they do not depend on an order. All parts add up to the gap. Intervals are those of paired differences where
    every figure counts the same items (then the gap has the interval that `compare` gives), else bootstrap intervals over groups
    of the items of either side, drawn together for all parts. `differences` are those of `differences_of`, if they are
    known. `runs` are those that split, or would split, what was asked, and `fixed` what of it no run can swap, with the reason.

    Raises `InputError` if no item has an answer of both sides, or a figure is undefined on them (all answers missing and
    left out).
    """
    first, second, metric, items = game.first, game.second, game.first.metric, game.first.shared.table
    common = game.common
    if not common.any():
        raise InputError(
            f"{first.name} and {second.name}", found="no item that both have a score of", expected="common items"
        )
    mine = [side.values(side.own, side.policy) for side in game.sides]
    columns = _Columns.of(game, mine)
    rows = np.flatnonzero(columns.used)
    rows = np.repeat(rows, items.units(metric, rows))
    estimates = _estimates(columns, rows, items.group[rows], game, plan)
    if any(one.value is None for one in estimates):
        raise InputError(
            f"{first.name} and {second.name}", found="all answers to common items missing", expected="--failed wrong"
        )
    one, other = (_own_score(side, own, items, plan) for side, own in zip(game.sides, mine, strict=True))
    gap, *parts = estimates
    n, n_groups = _counts(common, items, metric)
    changed = _changed_items(game, mine)
    found = [
        _part(name, one, gap, changed[name], n_groups, metric.high - metric.low)
        for name, one in zip((ITEMS, *game.players), parts, strict=True)
    ]
    values = columns.scores(columns.table[rows].sum(axis=0, keepdims=True))[0]
    return Explanation(
        first.shared.card.name,
        metric,
        one,
        other,
        gap,
        tuple(part for part in found if part.player != ITEMS or _items_differ(game)),
        n,
        n_groups,
        differences_of(game) if differences is None else differences,
        (*_fixed(game), *fixed),
        tuple(runs),
        game.players,
        tuple(float(one) if np.isfinite(one) else None for one in values),
        _notes(game),
        plan.draws,
        plan.seed,
        plan.level,
    )


@dataclass(frozen=True, eq=False)
class _Columns:
    """Sums whose quotients are all scores: of each combination on the common items, and of each side on its own items.
    `table` is items × (numerators of combinations, their denominators, the sides' numerators, their denominators)."""

    table: Floats
    combinations: int

    @classmethod
    def of(cls, game: GapGame, mine: Sequence[Floats]) -> _Columns:
        rows = np.stack([*game.values, *mine])
        known = ~np.isnan(rows)
        filled = np.where(known, rows, 0.0)
        count = len(game.values)
        parts = (filled[:count], known[:count], filled[count:], known[count:])
        return cls(np.concatenate([part.astype(np.float64) for part in parts]).T, count)

    @property
    def paired(self) -> bool:
        """Whether all figures count the same items: then each is a mean of differences by item."""
        counts = self._counts
        return bool(np.all(counts == counts[:, :1]))

    @property
    def _counts(self) -> Floats:
        count = self.combinations
        return np.concatenate([self.table[:, count : 2 * count], self.table[:, -2:]], axis=1)

    @property
    def used(self) -> Mask:
        """The items in any figure."""
        found: Mask = np.any(self._counts != 0, axis=1)
        return found

    def scores(self, sums: Floats) -> Floats:
        """The score of each combination, for each row of sums."""
        return ratio(sums[:, : self.combinations], sums[:, self.combinations : 2 * self.combinations])

    def statistics(self, sums: Floats) -> Floats:
        """The gap, the part of the items and those of the players, for each row of sums."""
        count, scores = self.combinations, self.scores(sums)
        own = ratio(sums[:, 2 * count : 2 * count + 2], sums[:, 2 * count + 2 :])
        by_items = (own[:, 0] - scores[:, -1]) - (own[:, 1] - scores[:, 0])
        found: Floats = np.column_stack([own[:, 0] - own[:, 1], by_items, shapley_values(scores)])
        return found


def _estimates(columns: _Columns, rows: Ints, groups: Ints, game: GapGame, plan: Resampling) -> list[Estimate]:
    """The gap, the part of the items and those of the players, with intervals: those of paired differences (as `compare`
    has them) where all figures count the same items, else bootstrap intervals of the quotients of sums."""
    metric, table = game.first.metric, columns.table[rows]
    width = metric.high - metric.low
    if not columns.paired:
        return sums_intervals(table, groups, columns.statistics, plan=plan.within(-width, width))
    by_item = columns.statistics(table)  # a statistic of one item's sums is its difference
    found = []
    for number in range(by_item.shape[1]):
        change = by_item[:, number]
        most = max(width, float(np.abs(change).max(initial=0.0)))
        over, under = np.maximum(change, 0.0), np.maximum(-change, 0.0)
        one = paired_difference(over, under, groups, plan.within(0.0, most))
        found.append(Estimate(one.value, one.ci_low, one.ci_high, one.n, one.groups))
    return found


def _own_score(side: ExplainedRun, values: Floats, items: ItemTable, plan: Resampling) -> ExplainedScore:
    rows = np.flatnonzero(~np.isnan(values))
    units = np.repeat(rows, items.units(side.metric, rows))
    bounded = plan.within(side.metric.low, side.metric.high)
    estimate = mean_interval(values[units], items.group[units], bounded)
    asked, missing = int(side.items.sum()), int(side.own.missing.sum())
    return ExplainedScore(side.name, side.form, side.scorer, side.policy.value, asked, missing, estimate)


def _counts(kept: Mask, items: ItemTable, metric: Metric) -> tuple[int, int]:
    rows = np.flatnonzero(kept)
    return int(items.units(metric, rows).sum()), len(np.unique(items.group[rows]))


def _part(player: str, estimate: Estimate, gap: Estimate, changed: int, groups: int, width: float) -> GapPart:
    value = estimate.value or 0.0
    why = ""
    if estimate.ci_low is None:
        why = NO_CHANGE if not changed else FEW if groups < 3 else ALIKE
    share = None if abs(gap.value or 0.0) <= _ROUNDING * width else value / gap.value  # type: ignore[operator]
    return GapPart(player, replace(estimate, value=value), share, changed, why)


def _changed_items(game: GapGame, mine: Sequence[Floats]) -> dict[str, int]:
    """The number of items whose value some swap of a player changes."""
    values, found = game.values, {}
    for j, name in enumerate(game.players):
        inside = np.array([subset >> j & 1 == 1 for subset in range(len(values))])
        with_it, without = values[inside], values[~inside]
        same = (with_it == without) | (np.isnan(with_it) & np.isnan(without))
        found[name] = int((~same).any(axis=0).sum())
    found[ITEMS] = int(sum((~np.isnan(own) & ~game.common).sum() for own in mine))
    return found


def _items_differ(game: GapGame) -> bool:
    return bool(np.any(game.first.items != game.second.items) or np.any(game.first.items & ~game.common))


def _fixed(game: GapGame) -> tuple[tuple[str, str], ...]:
    """What differs and can't be swapped with what is stored."""
    found = []
    judged = game.common & ~game.first.by_code
    if game.first.scorer != game.second.scorer and judged.any() and not game.judges_meet:
        why = f"neither {game.first.scorer} nor {game.second.scorer} has scored answers of both (proctor score)"
        found.append((JUDGE, why))
    return tuple(found)


def _notes(game: GapGame) -> tuple[str, ...]:
    """What a reader has to know of the figures."""
    notes = []
    for side in game.sides:
        if READER in game.players and side.form:
            count = int((side.read_otherwise & game.common).sum())
            what = count_of(int((game.common & side.by_code).sum()), "common item")
            notes.append(
                f"{side.name}: the score of {count} of {what} is another one by its own program than by Proctor's reader. "
                "What that program would read in other replies is not known: its effect is measured on its own."
            )
    if MISSING in game.players:
        notes.append("Items that a side was not asked are no missing answers: they are a difference of the items.")
    return tuple(notes)
