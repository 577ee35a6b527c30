"""The report's leaderboard: for each metric all systems and conditions on one axis."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from proctor import core
from proctor.reports.blocks import Block, Folded, Prose, Section
from proctor.reports.charts import ChartRow, ChartWords, Lane, LeaderboardChart, metric_axis, rank_ends
from proctor.reports.leaderboard import condition_line, levels_table, remarks, row_badge, score, section_notes
from proctor.results import BOTH, Lacking

if TYPE_CHECKING:
    from proctor.reports.report_numbers import Key, Source
    from proctor.results import Comparison, Leaderboard, LeaderboardRow, Result

_FEW_GROUPS = 20  # with fewer, intervals are wide
_NEAR = 0.01  # of the axis: a baseline as near to chance has no line of its own

_RANKS = (
    "The rank is 1 plus the number of systems that are significantly better, and never better than that of a system with a "
    "higher score. Under it stands its confidence interval: all of them together hold the true ranks with {level} confidence "
    "(paired tests, Holm). “Rank in 95 % of resamples” is the spread of a system's rank over bootstrap samples of the groups, not a "
    "confidence interval."
)


def headline_section(source: Source) -> Section:
    """A chart of all systems and conditions for each leading metric; the other metrics folded below."""
    blocks: list[Block | str] = []
    folded: list[Block] = []
    for key in source.keys:
        own = _Board(source, key).blocks
        if key in source.leading:
            blocks += own
        else:
            folded.append(Folded(source.label(key), tuple(own)))
    blocks += [Prose(line) for line in _unscored_lines(source)]
    level = f"{100 * source.options.level:g} %"
    how = Folded("How to read ranks", (Prose(_RANKS.format(level=level)), *_rows(source)))
    ranked = f" Ranked under {source.conditions[0]}." if len(source.conditions) > 1 else ""
    return Section(
        key="leaderboard",
        title="Leaderboard",
        lead=f"Each score with its {level} confidence interval (CI) over whole groups.{ranked} Rank 1 includes every "
        "system that no other significantly outperforms.",
        blocks=(*blocks, *folded, how),
        opened=True,
    )


def _unscored_lines(source: Source) -> list[str]:
    """What waits for a judge: one line a metric."""
    lines = []
    for key in source.unscored:
        waiting = {
            row.system: row.unscored
            for row in source.overall
            if (row.metric, row.scorer, row.condition) == (key.metric, key.scorer, source.conditions[0])
        }
        counts = ", ".join(f"{core.count_of(count, 'answer')} of {name}" for name, count in waiting.items() if count)
        if counts:
            lines.append(f"{source.metric(key.metric).label}: not scored yet are {counts} (proctor score scores them).")
    return lines


def _rows(source: Source) -> list[core.Table]:
    if not source.leading:
        return []
    board = source.board(source.leading[0], source.conditions[0])
    rows = [
        (core.Cell(row.system), core.rank_range(row.resampled_rank_low, row.resampled_rank_high))
        for row in board.rows
        if row.resampled_rank_low is not None
    ]
    heads = core.heads("system", "resampled_ranks")
    caption = f"{board.metric.label}, {board.condition}."
    return [core.Table(caption, heads, tuple(rows), title=caption)] if rows else []


@dataclass(frozen=True)
class _Board:
    """All systems and conditions by one metric and scorer."""

    source: Source
    key: Key

    @cached_property
    def results(self) -> dict[str, dict[str, Result]]:
        """By condition and system."""
        found = {name: self.source.results_of(self.key, name) for name in self.source.conditions}
        return {name: own for name, own in found.items() if own}

    @cached_property
    def boards(self) -> dict[str, Leaderboard]:
        return {name: self.source.board(self.key, name) for name in self.results}

    @cached_property
    def ranked(self) -> dict[str, dict[str, LeaderboardRow]]:
        return {name: {row.system: row for row in board.rows} for name, board in self.boards.items()}

    @cached_property
    def systems(self) -> list[str]:
        """As the first condition ranks them; then systems that were run under others alone, then baselines, best
        first."""
        locations = [row.system for row in self.boards[self.first].rows] if self.results else []
        names = dict.fromkeys([*locations, *self.source.systems])
        there = [name for name in names if any(name in own for own in self.results.values())]
        return [
            *(name for name in there if not self.source.is_baseline(name)),
            *sorted(filter(self.source.is_baseline, there), key=self._best),
        ]

    def _best(self, name: str) -> float:
        """The best score of a system under any condition; the less, the better."""
        sign = -1.0 if self.source.metric(self.key.metric).higher_is_better else 1.0
        drawn = [own[name].drawn for own in self.results.values() if name in own]
        return min((sign * value for value in drawn if value is not None), default=math.inf)

    @property
    def first(self) -> str:
        return next(iter(self.results))

    @cached_property
    def size(self) -> tuple[int, int]:
        """The items and groups of most scores."""
        sizes = Counter(self._size(row) for own in self.results.values() for row in own.values() if row.n)
        return sizes.most_common(1)[0][0] if sizes else (0, 0)

    def _size(self, result: Result) -> tuple[int, int]:
        row = self.ranked[result.condition].get(result.system)
        return (result.n, result.groups) if row is None else (row.n, row.groups)

    @cached_property
    def every(self) -> list[Result]:
        """All results, system by system."""
        return [own[system] for system in self.systems for own in self.results.values() if system in own]

    @property
    def blocks(self) -> list[Block]:
        if not self.results:
            return []
        notes = dict.fromkeys(
            note
            for name, board in self.boards.items()
            for note in section_notes(self.source, board, self.results[name])
        )
        levels = self._levels()
        folded = [Folded("Answers at each level", (levels,))] if levels else []
        return [self.chart, *folded, *([Prose(" ".join(notes), quiet=True)] if notes else [])]

    @property
    def chart(self) -> LeaderboardChart:
        metric, baseline = self.source.metric(self.key.metric), self._baseline()
        words = ChartWords(
            score=metric.label if len(metric.label) <= 12 else "Score",
            ends=f"{100 * self.source.options.level:g} % CI",
            beside=f"Minus {baseline}" if baseline else "",
            more="{count} more under other conditions",
        )
        return LeaderboardChart(
            self._caption(),
            metric_axis(metric, *self.source.axis(self.key)),
            tuple(map(self._row, self.systems)),
            self._lines(),
            words,
            self._numbers(),
        )

    def _caption(self) -> str:
        items, groups = self.size
        answered = "" if any(map(_remarks, self.every)) else " All answered."
        wide = " Few groups: intervals are wide." if 0 < groups < _FEW_GROUPS else ""
        where = f", {condition_line(self.first)}" if len(self.results) == 1 else ""
        size = f"{core.count_of(items, 'item')} in {core.count_of(groups, 'group')}"
        return f"{self.source.label(self.key)} on {size}{where}.{answered}{wide}"

    def _row(self, name: str) -> ChartRow:
        top = self.ranked[self.first].get(name)
        known = [rows[name] for rows in self.ranked.values() if name in rows]
        badge = next(filter(None, map(row_badge, known)), "")
        if not badge and self.source.is_baseline(name):
            badge = "baseline"
        lanes = [self._lane(name, condition) for condition, own in self.results.items() if name in own]
        return ChartRow(
            name,
            tuple(lanes),
            core.DASH if top is None or top.rank is None else str(top.rank),
            "" if top is None else rank_ends(top.rank, top.rank_low, top.rank_high),
            self._below(name),
            (badge,) if badge else (),
            is_baseline=self.source.is_baseline(name),
        )

    def _below(self, name: str) -> str:
        """What differs from the caption, by condition where it differs between them."""
        told = {}
        for condition, own in self.results.items():
            if name in own:
                n, groups = self._size(own[name])
                whole = f"{core.count_of(n, 'item')} in {core.count_of(groups, 'group')}"
                size = [whole] if (n, groups) != self.size else []
                told[condition] = ", ".join([*size, *_remarks(own[name])])
        if len(set(told.values())) == 1:
            return next(iter(told.values()))
        return "; ".join(f"{condition}: {text}" for condition, text in told.items() if text)

    def _lane(self, name: str, condition: str) -> Lane:
        metric, result = self.source.metric(self.key.metric), self.results[condition][name]
        row = self.ranked[condition].get(name)
        named = condition if len(self.results) > 1 else ""
        mark = self.source.numbers[condition]
        if row is None:
            return Lane(named, None, mark=mark, score="no score")
        # A score over the same items is shown as everywhere else, so that its interval has the same draws.
        shown = result if (result.n, result.drawn) == (row.n, row.drawn) else row
        return Lane(
            named,
            shown.drawn,
            shown.ci_low,
            shown.ci_high,
            mark,
            score(metric, row),
            core.interval(metric, shown.ci_low, shown.ci_high),
            self._beside(name, condition),
            is_open=row.policy == BOTH,
        )

    def _baseline(self) -> str:
        pairs = self.source.paired
        return pairs.baseline if pairs is not None and len(self.results) > 1 and pairs.of(self.key) else ""

    @cached_property
    def _compared(self) -> dict[tuple[str, str], Comparison]:
        pairs = self.source.paired
        found = [] if pairs is None else pairs.of(self.key)
        return {(comparison.first.system, comparison.first.condition): comparison for comparison in found}

    def _beside(self, name: str, condition: str) -> str:
        comparison = self._compared.get((name, condition))
        if comparison is None or not self._baseline():
            return ""
        metric, each = self.source.metric(self.key.metric), comparison.difference
        ends = core.interval(metric, each.ci_low, each.ci_high)
        shown = core.difference(metric, comparison.drawn)
        return shown if ends == core.DASH else f"{shown} ({ends})"

    def _lines(self) -> tuple[tuple[float, str], ...]:
        """Chance, and the best baseline where it stands apart from it."""
        metric, chance = self.source.metric(self.key.metric), self.source.chance(self.key)
        lines = [] if chance is None else [(chance, f"chance {core.value(metric, chance)}")]
        known = [
            (result.drawn, f"best baseline: {name} {core.value(metric, result.drawn)}")
            for own in self.results.values()
            for name, result in own.items()
            if result.drawn is not None and self.source.is_baseline(name) and not self._knows_answers(name)
        ]
        if known:
            best = (max if metric.higher_is_better else min)(known)
            if chance is None or abs(best[0] - chance) > _NEAR * (metric.high - metric.low):
                lines.append(best)
        return tuple(lines)

    def _knows_answers(self, name: str) -> bool:
        return any(name in rows and rows[name].oracle_baseline for rows in self.ranked.values())

    def _numbers(self) -> core.Table:
        """The chart as a table; what is missing has a column where anything is."""
        metric = self.source.metric(self.key.metric)
        sizes = len(set(map(self._size, self.every))) > 1
        decided = any(result.decided for result in self.every)
        missing = any(map(_remarks, self.every))
        units = core.plain_name(metric.per).capitalize() if metric.per else "Items"
        heads = (
            *core.heads("system", "condition", "rank", "rank_ci"),
            core.Column(metric.label, numeric=True, name="value"),
            core.Column(f"{100 * self.source.options.level:g} % CI", numeric=True),
            *(
                [core.Column(units, numeric=True, name="n"), core.Column("Groups", numeric=True, name="groups")]
                if sizes
                else []
            ),
            *([core.Column("Decided by a person", numeric=True, name="decided")] if decided else []),
            *([core.Column("Missing", name="missing", wrapped=True)] if missing else []),
        )
        rows: list[core.Row] = []
        for result in self.every:
            row, lane = self.ranked[result.condition].get(result.system), self._lane(result.system, result.condition)
            rows.append(
                (
                    core.Cell(result.system, badge=row_badge(row) if row else ""),
                    result.condition,
                    core.DASH if row is None or row.rank is None else str(row.rank),
                    core.DASH if row is None else core.rank_range(row.rank_low, row.rank_high),
                    core.Cell(lane.score, strong=True, raw=row.value if row else None),
                    lane.ends,
                    *(self._size(result) if sizes else ()),
                    *((result.decided,) if decided else ()),
                    *((", ".join(_remarks(result)) or core.DASH,) if missing else ()),
                )
            )
        return core.Table(self._caption(), heads, tuple(rows), title=self.source.label(self.key))

    def _levels(self) -> core.Table | None:
        where: Sequence[core.Row] = [(core.Cell(row.system), row.condition) for row in self.every]
        caption = f"{self.source.label(self.key)}: answers at each level."
        return levels_table(caption, self.source.metric(self.key.metric), self.every, ["System", "Condition"], where)


def _remarks(result: Result) -> list[str]:
    """What a result lacks."""
    lacking = Lacking(
        not_asked=result.missing,
        failed=result.failed,
        unresolved=result.unresolved,
        unscored=result.unscored,
        unsupported=result.unsupported,
    )
    return remarks(lacking)
