"""Results as tables: rows, pandas frames and notebook output."""

from __future__ import annotations

import html
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from proctor.core import InputError, count_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from proctor.audits import AuditReport
    from proctor.core import Table
    from proctor.results import Analysis, Board, Comparison, Comparisons, Leaderboard, Result, Results
    from proctor.runs import Store

Record = dict[str, Any]
R = TypeVar("R", "Result", "Comparison")

_WIDE = 160  # columns of a table in plain text


class FrameLike(ABC):
    """A table of results: `rows` are dicts of plain values, `to_pandas()` is a frame of them, and a notebook shows it
    with its `notes`. Percentages are fractions of 1. None (NaN in the frame) is an unknown value."""

    @property
    @abstractmethod
    def rows(self) -> list[Record]:
        """One dict for each row, all with the same keys."""

    @property
    def title(self) -> str:
        """The title of the table."""
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how to read the numbers."""
        return ()

    @property
    def tables(self) -> Sequence[Table]:
        """The tables that the terminal and reports show, with fewer columns and formatted values."""
        from proctor.reports import records_table

        return [records_table(self.title, self.rows)]

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def to_latex(self) -> str:
        """The tables for a paper (LaTeX with booktabs), as the terminal shows them."""
        from proctor.reports import latex

        return "\n".join(map(latex, self.tables))

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Record]:
        """The rows."""
        return iter(self.rows)

    def __repr__(self) -> str:
        """The tables in plain text."""
        from rich.console import Console

        from proctor.reports import show_block

        out = io.StringIO()
        console = Console(file=out, width=_WIDE, color_system=None, emoji=False, force_jupyter=False)
        for table in self.tables:
            show_block(console, table)
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        return "\n".join((*lines, *self.notes))

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(table.title)}</b></p>{_html(table)}" for table in self.tables]
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return "".join(parts) + notes


class DrawnTable(FrameLike):
    """A table of results that has a figure."""

    @abstractmethod
    def plot(self, *, ax: Any = None) -> Figure:
        """The figure, drawn into `ax` if it is given."""

    def write_figure(self, file: str | Path, **which: str) -> Path:
        """Write the figure as a .png, .pdf or .svg file, and return the file; `which` is what `plot` takes, such as
        `metric`. Raises `InputError` for another ending, and if the file can't be written."""
        from proctor.reports import write_picture

        return write_picture(self.plot(**which), Path(file))


@dataclass(frozen=True, repr=False)
class ResultsTable(DrawnTable):
    """A row for each metric of each run, split by facets. `data` are the results of `proctor.runs`; the columns are
    documented at `proctor.results.Result`."""

    data: Results

    @cached_property
    def rows(self) -> list[Record]:
        """The fields of `Result`, and a column for each facet."""
        plain = [row.to_json() for row in self.data.rows]
        return [{**_without(row, "facets", "levels"), **row["facets"], "levels": row["levels"]} for row in plain]

    @property
    def reliance(self) -> list[Record]:
        """What each system loses when the evidence is hidden, beyond what it loses when as much elsewhere is: the fields of
        `reliance` in the JSON of `proctor results`, with system and scorer. Empty where no system was run under
        `occlude-evidence` and `occlude-elsewhere`."""
        return [{"system": one.system, "scorer": one.scorer, **one.to_json()} for one in self.data.reliance]

    @property
    def title(self) -> str:
        """The benchmark's."""
        card = self.data.card
        said = not card.simulated or "simulated" in card.title.lower()
        return card.title if said else f"{card.title} (simulated)"

    @property
    def notes(self) -> tuple[str, ...]:
        """How the intervals were computed, and what is missing."""
        options = self.data.options
        how = f"exact for shares, bootstrap for other scores ({options.draws} draws, seed {options.seed})"
        drawn = f"Intervals: {100 * options.level:g} %, over groups: {how}."
        if options.two_level:
            how = f"{options.draws} draws, seed {options.seed}"
            drawn = f"Intervals: {100 * options.level:g} %, bootstrap over groups, and over items within each, {how}."
        ranges = any(row.value is None and row.if_wrong is not None for row in self.data.rows)
        from proctor.reports import RANGE, cost_lines, few_groups_line, outside_line, scarce_line, scarce_results

        few = few_groups_line(max((row.groups for row in self.data.rows), default=0), options.level)
        told = (scarce_line(scarce_results(self.data), "metrics="), drawn, "" if options.by else few)
        lacks = RANGE if ranges else ""
        outside = outside_line(self.data.outside, options.by)
        return tuple(line for line in (*told, outside, lacks, *self.data.served, *cost_lines(self.data.costs)) if line)

    @property
    def tables(self) -> Sequence[Table]:
        """Those of `proctor results`."""
        from proctor.reports import results_tables, scarce_results

        few = scarce_results(self.data)
        shown = replace(self.data, rows=[row for row in self.data.rows if row.metric not in few])
        tables = results_tables(shown)
        if self.data.reliance:
            from proctor.reports import reliance_tables

            tables += reliance_tables(self.data)
        return tables

    def plot(self, metric: str = "", *, ax: Any = None) -> Figure:
        """Plot one metric (by default the headline, else the first that has values) with intervals: a line for each
        system, a colour for each condition, and a dashed line at the chance level, if there is one for all items."""
        from proctor.reports.plots import Mark, Scale, draw_intervals

        card = self.data.card
        rows = _of_metric([row for row in self.data.rows if row.scorer], metric, card.headline, "one with values")
        declared = card.metric(rows[0].metric)
        several = len({row.scorer for row in rows}) > 1
        scores = [
            Mark(
                ", ".join([row.system, *row.facets.values(), *([row.scorer] if several else [])]),
                row.condition,
                row.drawn,
                row.ci_low,
                row.ci_high,
            )
            for row in rows
        ]
        from proctor.reports import condition_numbers

        chance = None if self.data.options.by or several else card.chance.get(declared.name)
        known = [name for name in card.conditions if any(row.condition == name for row in self.data.rows)]
        numbers = condition_numbers([*known, *sorted({row.condition for row in self.data.rows} - set(known))])
        scores.sort(key=lambda score: list(numbers).index(score.group))  # as in a report
        return draw_intervals(scores, Scale.of(declared, chance), title=self.title, ax=ax, numbers=numbers)


@dataclass(frozen=True, repr=False)
class ComparisonTable(DrawnTable):
    """A row for each metric of each pair of runs: the paired difference (first minus second), its interval, p and p
    adjusted by Holm, with what it is adjusted for. `right_wrong` counts items that the first run has right and the second
    wrong, and so on (None for metrics that are not right or wrong); `scored_only_first` items with a score of the first
    run only, which are left out. `data` is what `proctor.runs` computes (see `proctor.results.Comparison`)."""

    data: Comparisons

    @cached_property
    def rows(self) -> list[Record]:
        """Both sides, the facets, and the numbers."""
        plain = [comparison.to_json() for comparison in self.data.comparisons]
        return [
            {
                **{f"{side}_{what}": row[side][what] for side in ("first", "second") for what in row[side]},
                **row["facets"],
                **_without(row, "first", "second", "facets", "levels", "table"),
                **_two_by_two(comparison),
            }
            for comparison, row in zip(self.data.comparisons, plain, strict=True)
        ]

    @property
    def title(self) -> str:
        """The benchmark's."""
        return f"{self.data.card.title}: paired differences"

    @property
    def tables(self) -> Sequence[Table]:
        """A table for each metric and scorer."""
        from proctor.reports import differences_table

        few = self._scarce()
        found: dict[tuple[str, str], list[Comparison]] = {}
        for comparison in self.data.comparisons:
            if comparison.metric not in few:
                found.setdefault((comparison.metric, comparison.scorer), []).append(comparison)
        made = []
        for (name, scorer), own in found.items():
            lead: dict[str, Callable[[Comparison], str]] = {
                "First": lambda comparison: str(comparison.first),
                "Second": lambda comparison: str(comparison.second),
                **{facet: _facet(facet) for facet in own[0].facets},
            }
            metric = self.data.card.metric(name)
            made.append(differences_table(f"{self.data.card.title}: {metric.label} ({scorer})", metric, own, lead))
        return made

    def _scarce(self) -> list[str]:
        from proctor.reports import scarce_metrics

        counts = [
            (comparison.metric, comparison.difference.n)
            for comparison in self.data.comparisons
            if not comparison.facets
        ]
        return scarce_metrics(counts, self.data.card.headline)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which metrics are not shown, whether there are enough groups for a significant difference, and what is not
        adjusted."""
        from proctor.reports import few_groups_line, outside_line, scarce_line, unadjusted_line, without_line

        groups = [comparison.difference.groups for comparison in self.data.comparisons if not comparison.facets]
        few, outside = few_groups_line(max(groups, default=0)), outside_line(self.data.outside, self.data.by)
        without = without_line(self.data.without)
        unadjusted = unadjusted_line(self.data.comparisons)
        return tuple(filter(None, (scarce_line(self._scarce(), "metrics="), few, outside, without, unadjusted)))

    def plot(self, metric: str = "", *, ax: Any = None) -> Figure:
        """Plot the differences in one metric (by default the headline, else the first) with their intervals."""
        from proctor.reports.plots import Mark, Scale, draw_intervals

        card = self.data.card
        found = _of_metric(self.data.comparisons, metric, card.headline, "one that was compared")
        declared = card.metric(found[0].metric)
        scores = [
            Mark(
                ", ".join([f"{comparison.first} minus {comparison.second}", *comparison.facets.values()]),
                comparison.scorer if len({other.scorer for other in found}) > 1 else "",
                comparison.drawn,
                comparison.difference.ci_low,
                comparison.difference.ci_high,
            )
            for comparison in found
        ]
        unit = " in percentage points" if declared.percent else ""
        scale = Scale(f"Difference in {declared.label}{unit}", 100.0 if declared.percent else 1.0, line=0.0)
        return draw_intervals(scores, scale, title=self.title, ax=ax)


@dataclass(frozen=True, repr=False)
class RankingTable(DrawnTable):
    """A row for each system of each leaderboard, best first; unranked systems and baselines last. `boards` are the
    leaderboards of `proctor.runs` (see `proctor.results.Board`)."""

    boards: tuple[Board, ...]

    @cached_property
    def rows(self) -> list[Record]:
        """The board, the system, its rank by the rule, score, mean and rank by it, and what is missing."""
        from proctor.results import board_rows

        return [row for board in self.boards for row in board_rows(board)]

    @property
    def title(self) -> str:
        """The boards'."""
        return "; ".join(
            f"{board.title} ({board.items} in {count_of(board.standings.groups, 'group')})" for board in self.boards
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how to read the leaderboards."""
        from proctor.reports import board_notes

        return tuple(dict.fromkeys(line for board in self.boards for line in board_notes(board)))

    @property
    def tables(self) -> Sequence[Table]:
        """Those of `proctor rank`."""
        from proctor.reports import board_tables

        return [table for board in self.boards for table in board_tables(board)]

    def plot(self, board: str = "", *, ax: Any = None) -> Figure:
        """Plot the ranks of one board (by default the first) with their confidence intervals."""
        from proctor.reports.plots import Mark, Scale, draw_intervals

        named = {one.name: one for one in self.boards}
        chosen = named.get(board) if board else self.boards[0]
        if chosen is None:
            raise InputError("board", found=repr(board), expected=f"one of {', '.join(named)}")
        standings = [run.standing for run in chosen.runs]
        scores = [
            Mark(standing.name, "", standing.mean_rank, standing.rank_low, standing.rank_high) for standing in standings
        ]
        scale = Scale("Rank by the mean over the buckets, 95 % CI", low=0.5, high=max(1, len(standings)) + 0.5)
        return draw_intervals(scores, scale, title=chosen.title, ax=ax)


@dataclass(frozen=True, repr=False)
class LeaderboardTable(DrawnTable):
    """A row for each system, best first; unranked systems last. `data` is the leaderboard of `proctor.runs` (see
    `proctor.results.LeaderboardRow`)."""

    data: Leaderboard
    benchmark: str

    @cached_property
    def rows(self) -> list[Record]:
        """The fields of `LeaderboardRow`."""
        return [asdict(row) for row in self.data.rows]

    @property
    def title(self) -> str:
        """The benchmark's, with the metric."""
        board = self.data
        return f"{self.benchmark}: {board.metric.label} under {board.condition}, {count_of(board.items, 'item')}"

    @property
    def tables(self) -> Sequence[Table]:
        """That of `proctor rank --metric`."""
        from proctor.reports import leaderboard_table

        return [leaderboard_table(self.data, self.title)]

    @property
    def notes(self) -> tuple[str, ...]:
        """Why systems have no rank."""
        from proctor.reports import leaderboard_notes

        return tuple(leaderboard_notes(self.data))

    def plot(self, *, ax: Any = None) -> Figure:
        """Plot the values with their intervals."""
        from proctor.reports.plots import Mark, Scale, draw_intervals

        scores = [Mark(row.system, "", row.drawn, row.ci_low, row.ci_high) for row in self.data.rows]
        from proctor.reports import condition_numbers

        numbers = {"": condition_numbers([self.data.condition])[self.data.condition]}
        return draw_intervals(scores, Scale.of(self.data.metric), title=self.title, ax=ax, numbers=numbers)


@dataclass(frozen=True)
class AnalysisTables:
    """The tables of an analysis by name. `data` is the analysis of `proctor.runs` (see `proctor.results.Analysis`)."""

    data: Analysis
    store: Store | None = None
    benchmark: str = ""

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
        """Plot the accuracy by capability with intervals: a line for each capability, a colour for each system."""
        from proctor.reports.plots import Mark, Scale, draw_intervals

        rows: list[dict[str, Any]] = [row for row in self.data.tables["capabilities"] if row["stratum"] == "all"]
        scores = [Mark(row["label"], row["system"], row["value"], row["ci_low"], row["ci_high"]) for row in rows]
        return draw_intervals(scores, Scale("Accuracy in per cent", 100.0, 0.0, 1.0), ax=ax)

    def write(self, folder: str | Path) -> list[Path]:
        """Write a CSV file for each table, as `proctor analyze --out` does. Returns the files."""
        from proctor.results import write_tables

        return write_tables(self.data, Path(folder))

    def write_pictures(self, folder: str | Path, form: Literal["svg", "png", "pdf"] = "svg") -> list[Path]:
        """Write a file for each figure. Returns the files."""
        from proctor.reports import Source, write_pictures
        from proctor.results import Options

        source = None if self.store is None else Source(self.store, self.benchmark, Options())
        return write_pictures(self.data, Path(folder), None if source is None else source.accuracy_chance, form)

    def __repr__(self) -> str:
        """The names of the tables with their sizes."""
        sizes = ", ".join(f"{name} ({len(rows)})" for name, rows in self.data.tables.items())
        return f"AnalysisTables: {sizes}"

    def _repr_html_(self) -> str:
        from proctor.reports import records_table, table_units

        parts = []
        for name, rows in self.data.tables.items():
            shown = _html(records_table(name, rows, table_units(name)))
            parts.append(f"<details><summary>{html.escape(name)} ({len(rows)})</summary>{shown}</details>")
        return "".join(parts)


@dataclass(frozen=True, repr=False)
class AuditTable(FrameLike):
    """A row for each metric, dataset, language and dimension: correlations with the raters, and their intervals. `data`
    is the complete audit (see `proctor.audits.AuditReport`)."""

    data: AuditReport

    @cached_property
    def rows(self) -> list[Record]:
        """As `proctor audit --format csv`."""
        from proctor.audits import agreement_rows

        return [row for audit in self.data.each for row in agreement_rows(audit)]

    @property
    def title(self) -> str:
        """The numbers of metrics and ratings."""
        return f"{count_of(len(self.data.metrics), 'metric')} and {count_of(len(self.data.table.ratings), 'rating')}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes from reading the tables."""
        return self.data.table.notes + tuple(
            f"{metric.name}: {note}" for metric in self.data.metrics for note in metric.notes
        )


_OUTCOMES = ("right_right", "right_wrong", "wrong_right", "wrong_wrong")


def _two_by_two(comparison: Comparison) -> Record:
    """The counts of the table of right and wrong answers: the first run's outcome, then the second's."""
    table = comparison.table
    if table is None or comparison.levels != ("correct", "incorrect"):
        return dict.fromkeys(_OUTCOMES)
    return dict(zip(_OUTCOMES, (count for line in table for count in line), strict=True))


def _html(table: Table) -> str:
    """A table as HTML."""
    import pandas as pd

    kept = [position for position, column in enumerate(table.columns) if not column.drawn]
    cells = [[row[position] for position in kept] for row in table.texts]
    frame = pd.DataFrame(cells, columns=[table.columns[position].label for position in kept])
    return str(frame.to_html(index=False))


def _of_metric(rows: Sequence[R], name: str, headline: str, expected: str) -> list[R]:
    """The rows of the named metric; if none is named those of the headline, else of the first metric that is there."""
    names = [row.metric for row in rows]
    usual = headline if headline in names or not names else names[0]
    found = [row for row in rows if row.metric == (name or usual)]
    if not found:
        known = ", ".join(sorted({row.metric for row in rows})) or "none"
        raise InputError("metric", found=repr(name), expected=f"{expected}: {known}")
    return found


def _facet(name: str) -> Callable[[Comparison], str]:
    return lambda comparison: str(comparison.facets[name])


def _without(row: Record, *names: str) -> Record:
    return {name: value for name, value in row.items() if name not in names}
