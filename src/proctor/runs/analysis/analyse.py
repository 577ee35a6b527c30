"""All tables of an analysis."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.core import ACCURACY, InputError
from proctor.metrics import AccuracyScorer
from proctor.runs.analysis.answers import failure_rows, mark_rows
from proctor.runs.analysis.ensembles import ensemble_rows
from proctor.runs.analysis.gathered import Gathered, Row
from proctor.runs.analysis.strata import (
    capability_rows,
    gap_rows,
    pair_rows,
    regression_rows,
    video_rows,
)
from proctor.runs.export import safe_cell
from proctor.runs.ranking import Board, rank_runs, ranked_entries
from proctor.runs.store import Store
from proctor.runs.table import ItemTable, load_items, load_labels

__all__ = ["Analysis", "analyse", "write_tables"]

_LABELS = "capabilities"
_FACTORS = ("distribution", "clinical", "context")


@dataclass(frozen=True)
class Analysis:
    """The tables by name, each a list of rows with the same columns, and the boards of the ranking."""

    tables: dict[str, list[Row]]
    boards: list[Board]


def analyse(
    store: Store,
    benchmark: str,
    *,
    condition: str = "video",
    systems: Sequence[str] = (),
    baselines: Sequence[str] = (),
    draws: int = 2000,
    stability: int = 1000,
    seed: int = 0,
) -> Analysis:
    """Analyses the systems that `rank_runs` would rank.

    Labels are the tag `capabilities`, else the benchmark's first facet; factors are `distribution`, `clinical` and
    `context`, else its other facets. Raises `InputError` as `rank_runs` does.
    """
    boards = rank_runs(
        store,
        benchmark,
        condition=condition,
        systems=systems,
        baselines=baselines,
        stability=stability,
        seed=seed,
    )
    items = load_items(store, store.card(benchmark))
    entries = ranked_entries(store, benchmark, items, condition, systems, baselines)
    labels, factors = _tags(items, store.card(benchmark).facets, store.shown)
    scorer = AccuracyScorer().name
    data = Gathered(
        items=items,
        whole={item.id: item for item in store.items(benchmark)},
        entries=entries,
        answers={entry.run.system: store.answers(entry.run) for entry in entries},
        causes={
            entry.run.system: load_labels(store, entry.run, items, ACCURACY.name, scorer) for entry in entries
        },
        labels=labels,
        factors=factors,
        draws=draws,
        seed=seed,
    )
    tables = {
        "capabilities": capability_rows(data),
        "regression": regression_rows(data),
        "gaps": gap_rows(data),
        "videos": video_rows(data),
        "pairs": pair_rows(data),
        "ranking": _ranking_rows(boards),
        "places": _place_rows(boards),
        "significance": _significance_rows(boards),
        "ensembles": ensemble_rows(data),
        "failures": failure_rows(data),
        "marks": mark_rows(data),
    }
    return Analysis(tables, boards)


def write_tables(analysis: Analysis, folder: Path) -> list[Path]:
    """One CSV file a table, named after it. A text that a spreadsheet would take for a formula gets a leading
    apostrophe. Raises `InputError` where the folder can't be written."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in analysis.tables.items():
            file = folder / f"{name}.csv"
            with file.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out)
                writer.writerow(list(rows[0]) if rows else [])
                writer.writerows([[safe_cell(value) for value in row.values()] for row in rows])
            written.append(file)
    except OSError as error:
        raise InputError(
            folder, found=error.strerror or "an error", expected="a folder to write to"
        ) from error
    return written


def _tags(items: ItemTable, facets: Sequence[str], shown: str) -> tuple[str, tuple[str, ...]]:
    known = set(items.facet_names())
    labels = _LABELS if _LABELS in known else next((facet for facet in facets if facet in known), None)
    if labels is None:
        raise InputError(shown, found="no facet", expected="one to analyse by")
    factors = tuple(factor for factor in _FACTORS if factor in known)
    return labels, factors or tuple(facet for facet in facets if facet in known and facet != labels)


def _ranking_rows(boards: Sequence[Board]) -> list[Row]:
    return [
        {
            "board": board.name,
            "system": one.standing.name,
            "place": one.standing.place,
            "score": one.standing.score,
            "mean": one.standing.mean,
            "win_rate": one.standing.win_rate,
            "place_low": one.standing.stability.place_low if one.standing.stability else None,
            "place_high": one.standing.stability.place_high if one.standing.stability else None,
            "baseline": one.baseline,
            "tau": board.standings.tau,
        }
        for board in boards
        for one in board.runs
    ]


def _place_rows(boards: Sequence[Board]) -> list[Row]:
    """The chance of every place, in long form: what a blob plot shows."""
    return [
        {"board": board.name, "system": one.standing.name, "place": place, "chance": chance}
        for board in boards
        for one in board.runs
        if one.standing.stability is not None
        for place, chance in enumerate(one.standing.stability.chances, start=1)
    ]


def _significance_rows(boards: Sequence[Board]) -> list[Row]:
    """The adjusted p of every pair in every bucket: what a significance map shows."""
    rows = []
    for board in boards:
        names = [one.standing.name for one in board.runs]
        for bucket, table in zip(board.standings.buckets, board.standings.p_values, strict=True):
            rows += [
                {
                    "board": board.name,
                    "bucket": bucket,
                    "first": first,
                    "second": second,
                    "p": float(table[i, j]),
                }
                for i, first in enumerate(names)
                for j, second in enumerate(names)
                if i < j
            ]
    return rows
