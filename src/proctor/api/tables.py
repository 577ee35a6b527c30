"""Numbers as tables: rows for programs, pandas frames, and what a notebook shows."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.api.plots import Mark, Scale, draw_intervals
from proctor.core import InputError, Metric, interval, p_value, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from proctor.api.sources import Stored
    from proctor.audits import AuditReport
    from proctor.runs import Analysis, Board, Comparison, Comparisons, Result, Results

Row = dict[str, Any]


class FrameLike(ABC):
    """A table: `rows` are dicts of plain values, `to_pandas()` is a frame of them, a notebook shows it with its
    `notes`. Values are shares of 1, not per cent; None (NaN in the frame) is a value that is not known."""

    @property
    @abstractmethod
    def rows(self) -> list[Row]:
        """One dict a row, the same keys in each."""

    @property
    def title(self) -> str:
        """What the table is of."""
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers should know."""
        return ()

    @property
    def shown(self) -> list[dict[str, str]]:
        """The rows as people read them: fewer columns, values with their intervals."""
        return [{key: _text(value) for key, value in row.items()} for row in self.rows]

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        """The rows."""
        return iter(self.rows)

    def __repr__(self) -> str:
        """The table in plain text."""
        import pandas as pd

        frame = pd.DataFrame(self.shown)
        table = frame.to_string(index=False) if self.shown else "no rows"
        return "\n".join(part for part in (self.title, table, *self.notes) if part)

    def _repr_html_(self) -> str:
        import pandas as pd

        table = pd.DataFrame(self.shown).to_html(index=False) if self.shown else "<p>no rows</p>"
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return f"<p><b>{html.escape(self.title)}</b></p>{table}{notes}"


@dataclass(frozen=True, repr=False)
class ResultsTable(FrameLike):
    """A row for each metric of each run, split by facets. `data` are the results as `proctor.runs` computes them; what
    the columns mean is said at `proctor.runs.Result`."""

    data: Results

    @cached_property
    def rows(self) -> list[Row]:
        """The fields of `Result`, and a column for each facet."""
        plain = [row.to_json() for row in self.data.rows]
        return [{**_without(row, "facets", "levels"), **row["facets"], "levels": row["levels"]} for row in plain]

    @property
    def title(self) -> str:
        """The benchmark's."""
        card = self.data.card
        said = not card.simulated or "simulated" in card.title.lower()
        return card.title if said else f"{card.title} (simulated)"

    @property
    def notes(self) -> tuple[str, ...]:
        """How the intervals were drawn, and what is lacking."""
        options = self.data.options
        drawn = f"{options.level:.0%} bootstrap intervals over groups, {options.draws} draws, seed {options.seed}."
        ranges = any(row.value is None and row.if_wrong is not None for row in self.data.rows)
        return (drawn, *(("A range: what the run lacks counted as wrong … left out.",) if ranges else ()))

    @property
    def shown(self) -> list[dict[str, str]]:
        """System, condition, facets, metric, value, interval, items, groups, and what is lacking."""
        return [self._shown(row) for row in self.data.rows]

    def plot(self, metric: str = "", *, ax: Any = None) -> Figure:
        """The values of one metric (the headline, where none is named) with their intervals: a line a system, a colour
        a condition; a dashed line at the chance level where there is one for all items."""
        card = self.data.card
        declared = card.metric(metric or card.headline)
        rows = [row for row in self.data.rows if row.metric == declared.name and row.scorer]
        if not rows:
            known = ", ".join(sorted({row.metric for row in self.data.rows})) or "none"
            raise InputError(None, "metric", found=repr(declared.name), expected=f"one with values: {known}")
        several = len({row.scorer for row in rows}) > 1
        marks = [
            Mark(
                ", ".join([row.system, *row.facets.values(), *([row.scorer] if several else [])]),
                row.condition,
                row.drawn,
                row.ci_low,
                row.ci_high,
            )
            for row in rows
        ]
        chance = None if self.data.options.by or several else card.chance.get(declared.name)
        return draw_intervals(marks, _scale(declared, chance), title=self.title, ax=ax)

    def _shown(self, row: Result) -> dict[str, str]:
        from proctor.reports import score

        metric = self.data.card.metric(row.metric)
        return {
            "system": row.system,
            "condition": row.condition,
            **row.facets,
            "metric": metric.label,
            "by": row.scorer or "not scored yet",
            "value": score(metric, row),
            "95 % CI" if self.data.options.level == 0.95 else "CI": interval(metric, row.ci_low, row.ci_high),
            "n": str(row.n),
            "groups": str(row.groups),
            "failed": str(row.failed),
            "missing": str(row.missing),
        }


@dataclass(frozen=True, repr=False)
class ComparisonTable(FrameLike):
    """A row for each metric of each pair of runs: the paired difference (first minus second), its interval, p and p
    adjusted by Holm. `data` is what `proctor.runs` computes (see `proctor.runs.Comparison`)."""

    data: Comparisons

    @cached_property
    def rows(self) -> list[Row]:
        """Both sides, the facets, and the numbers."""
        plain = [one.to_json() for one in self.data.comparisons]
        return [
            {
                **{f"{side}_{what}": row[side][what] for side in ("first", "second") for what in row[side]},
                **row["facets"],
                **_without(row, "first", "second", "facets", "levels", "table"),
            }
            for row in plain
        ]

    @property
    def title(self) -> str:
        """The benchmark's."""
        return f"{self.data.card.title}: paired differences"

    @property
    def shown(self) -> list[dict[str, str]]:
        """The pair, the metric, the difference with its interval, p and the number of items."""
        return [self._shown(one) for one in self.data.comparisons]

    def plot(self, metric: str = "", *, ax: Any = None) -> Figure:
        """The differences of one metric (the headline, where none is named) with their intervals."""
        card = self.data.card
        declared = card.metric(metric or card.headline)
        found = [one for one in self.data.comparisons if one.metric == declared.name]
        if not found:
            known = ", ".join(sorted({one.metric for one in self.data.comparisons})) or "none"
            raise InputError(None, "metric", found=repr(declared.name), expected=f"one that was compared: {known}")
        marks = [
            Mark(
                ", ".join([f"{one.first} minus {one.second}", *one.facets.values()]),
                one.scorer if len({other.scorer for other in found}) > 1 else "",
                one.drawn,
                one.difference.ci_low,
                one.difference.ci_high,
            )
            for one in found
        ]
        unit = " in percentage points" if declared.percent else ""
        scale = Scale(f"Difference in {declared.label}{unit}", 100.0 if declared.percent else 1.0, line=0.0)
        return draw_intervals(marks, scale, title=self.title, ax=ax)

    def _shown(self, one: Comparison) -> dict[str, str]:
        from proctor.reports import difference_of

        metric, difference = self.data.card.metric(one.metric), one.difference
        return {
            "first": str(one.first),
            "second": str(one.second),
            **one.facets,
            "metric": metric.label,
            "by": one.scorer,
            "difference": difference_of(metric, one),
            "95 % CI": interval(metric, difference.ci_low, difference.ci_high),
            "p": p_value(difference.p),
            "p (Holm)": p_value(one.p_holm),
            "n": str(difference.n),
            "groups": str(difference.groups),
        }


@dataclass(frozen=True, repr=False)
class RankingTable(FrameLike):
    """A row for each system of each leaderboard, best first; systems that can't be ranked and baselines last. `boards`
    are the leaderboards as `proctor.runs` computes them (see `proctor.runs.Board`)."""

    boards: tuple[Board, ...]

    @cached_property
    def rows(self) -> list[Row]:
        """The board, the system, its place, score, mean and rank, and what it lacks."""
        from proctor.runs import board_rows

        return [row for board in self.boards for row in board_rows(board)]

    @property
    def title(self) -> str:
        """The boards'."""
        return "; ".join(f"{board.title} ({board.items} in {board.standings.groups} groups)" for board in self.boards)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the boards should know."""
        from proctor.reports import board_notes

        return tuple(dict.fromkeys(line for board in self.boards for line in board_notes(board)))

    @property
    def shown(self) -> list[dict[str, str]]:
        """Place, system, mean accuracy, and its rank with the rank's confidence interval."""
        return [
            {
                **({"board": row["board"]} if len(self.boards) > 1 else {}),
                "place": "baseline" if row["baseline"] else _text(row["place"]),
                "system": row["system"],
                "mean": percent(row["mean"]),
                "rank": _text(row["rank_by_mean"]),
                "95 % CI of the rank": "–" if row["rank_low"] is None else f"{row['rank_low']} to {row['rank_high']}",
                "win rate": percent(row["win_rate"]),
            }
            for row in self.rows
        ]

    def plot(self, board: str = "", *, ax: Any = None) -> Figure:
        """The ranks of one board (the first, where none is named) with their confidence intervals."""
        named = {one.name: one for one in self.boards}
        chosen = named.get(board) if board else self.boards[0]
        if chosen is None:
            raise InputError(None, "board", found=repr(board), expected=f"one of {', '.join(named)}")
        standings = [one.standing for one in chosen.runs]
        marks = [Mark(one.name, "", one.mean_rank, one.rank_low, one.rank_high) for one in standings]
        scale = Scale("Rank by the mean over the buckets, 95 % CI", low=0.5, high=max(1, len(standings)) + 0.5)
        return draw_intervals(marks, scale, title=chosen.title, ax=ax)


@dataclass(frozen=True)
class AnalysisTables:
    """The tables of an analysis by name. `data` is what `proctor.runs` computes (see `proctor.runs.Analysis`)."""

    data: Analysis
    where: Stored | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.data.tables)

    def __getitem__(self, name: str) -> Any:
        """One table as a `pandas.DataFrame`. Raises `KeyError` that lists the names."""
        import pandas as pd

        if name not in self.data.tables:
            raise KeyError(f"{name!r}: expected one of {', '.join(self.names)}")
        return pd.DataFrame(self.data.tables[name])

    def to_pandas(self) -> dict[str, Any]:
        """All tables as frames, by name."""
        return {name: self[name] for name in self.names}

    def plot(self, *, ax: Any = None) -> Figure:
        """Accuracy by capability with its interval: a line a capability, a colour a system."""
        rows: list[dict[str, Any]] = [row for row in self.data.tables["capabilities"] if row["stratum"] == "all"]
        marks = [Mark(row["label"], row["system"], row["value"], row["ci_low"], row["ci_high"]) for row in rows]
        return draw_intervals(marks, Scale("Accuracy in per cent", 100.0, 0.0, 1.0), ax=ax)

    def write(self, folder: str | Path) -> list[Path]:
        """A CSV file for each table, as `proctor analyze --out`; returns them."""
        from proctor.runs import write_tables

        return write_tables(self.data, Path(folder))

    def write_pictures(self, folder: str | Path) -> list[Path]:
        """An SVG file for each picture; returns them."""
        from proctor.reports import Source, write_pictures
        from proctor.runs import Options

        source = Source(self.where.store, self.where.benchmark, Options()) if self.where else None
        return write_pictures(self.data, Path(folder), None if source is None else source.accuracy_chance)

    def __repr__(self) -> str:
        """The names of the tables with their sizes."""
        sizes = ", ".join(f"{name} ({len(rows)})" for name, rows in self.data.tables.items())
        return f"AnalysisTables: {sizes}"

    def _repr_html_(self) -> str:
        parts = [
            f"<details><summary>{html.escape(name)} ({len(self.data.tables[name])})</summary>"
            f"{self[name].to_html(index=False, na_rep='–', float_format='{:.3f}'.format)}</details>"
            for name in self.names
        ]
        return "".join(parts)


@dataclass(frozen=True, repr=False)
class AuditTable(FrameLike):
    """A row for each metric, dataset, language and dimension: correlations with the raters, and their intervals. `data`
    is all that can be said of these metrics and ratings (see `proctor.audits.AuditReport`)."""

    data: AuditReport

    @cached_property
    def rows(self) -> list[Row]:
        """As `proctor audit --format csv`."""
        from proctor.audits import agreement_rows

        return [row for one in self.data.each for row in agreement_rows(one)]

    @property
    def title(self) -> str:
        """How many metrics and ratings."""
        return f"{len(self.data.metrics)} metrics and {len(self.data.table.ratings)} ratings"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the readers of the scores found."""
        return tuple(f"{one.name}: {note}" for one in self.data.metrics for note in one.notes)


def _scale(metric: Metric, chance: float | None) -> Scale:
    label = f"{metric.label}{' in per cent' if metric.percent else ''}"
    return Scale(
        label, 100.0 if metric.percent else 1.0, metric.low, metric.high, chance, "chance" if chance is not None else ""
    )


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}
