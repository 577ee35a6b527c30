"""All tables of an analysis."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from proctor.core import ACCURACY, FailedPolicy, InputError, whole_file
from proctor.judges import TIE, UNRESOLVED, VOTE_MISSING
from proctor.runs.analysis.boards import duel_rows, place_rows, ranking_rows, rule_rows, significance_rows, tau_rows
from proctor.runs.analysis.performance import (
    Gathered,
    Row,
    Said,
    ensemble_rows,
    failure_rows,
    group_rows,
    mark_rows,
    video_rows,
)
from proctor.runs.analysis.strata import (
    capability_rows,
    factor_rows,
    gap_rows,
    pair_rows,
    reference_values,
    regression_rows,
)
from proctor.runs.contestants import Contest, Entry, Latency, ranked_entries
from proctor.runs.export import safe_cell
from proctor.runs.missing import policies
from proctor.runs.ranking import Board, rank_runs
from proctor.runs.store import Run, Store
from proctor.runs.table import CODE, ItemTable, load_items, load_labels
from proctor.stats import RankingPlan, Resampling

_OPEN = {TIE, VOTE_MISSING}
_LABELS = "capabilities"
_FACTORS = ("distribution", "clinical", "context")


@dataclass(frozen=True)
class Analysis:
    """The tables by name, each a list of rows with the same columns, and the boards of the ranking. `labels` is the
    tag that stands for capabilities, `reference` the values that the regression holds the others against (of
    each factor, and the system)."""

    tables: dict[str, list[Row]]
    boards: list[Board]
    labels: str
    reference: dict[str, str]


class AnalysisOptions(TypedDict, total=False):
    """Precision: `draws` behind the intervals (2000), samples for the `stability` of the ranking (1000), `seed` (0);
    `two_level` intervals draw questions within the drawn groups, too (see `proctor.stats.mean_interval`). What a run
    lacks counts by `failed`, else by the benchmark's policy, else as wrong; `latency` is that of `Contest`."""

    draws: int
    stability: int
    seed: int
    two_level: bool
    failed: FailedPolicy | None
    latency: Latency | None


def analyse(
    store: Store,
    benchmark: str,
    *,
    condition: str = "video",
    systems: Sequence[str] = (),
    baselines: Sequence[str] = (),
    all_items: bool = False,
    **options: Unpack[AnalysisOptions],
) -> Analysis:
    """Analyses the systems that `rank_runs` would rank, and its baselines. Questions whose format a system does not
    answer, or that no scorer can mark, are in none of its numbers.

    Labels are the tag `capabilities`, else the benchmark's first facet; factors are `distribution`, `clinical` and
    `context`, else its other facets. Raises `InputError` as `rank_runs` does.
    """
    stability, seed = options.get("stability", 1000), options.get("seed", 0)
    drawn = Resampling(draws=options.get("draws", 2000), seed=seed, two_level=options.get("two_level", False))
    contest = Contest(
        condition=condition,
        systems=tuple(systems),
        baselines=tuple(baselines),
        all_items=all_items,
        failed=options.get("failed"),
        latency=options.get("latency"),
    )
    boards = rank_runs(store, benchmark, contest, plan=RankingPlan(stability=stability, seed=seed))
    card = store.card(benchmark)
    items = load_items(store, card, all_items=all_items)
    entries = [entry.supported() for entry in ranked_entries(store, card, items, contest)]
    policy = policies(contest.failed, card)[0]
    labels, factors = _tags(items, card.facets, store.shown)
    data = Gathered(
        items=items,
        whole={item.id: item for item in store.items(benchmark)},
        entries=entries,
        answers={entry.name: _said(store, entry.run) for entry in entries},
        causes={entry.name: _causes(store, items, entry) for entry in entries},
        labels=labels,
        factors=factors,
        facets=tuple(dict.fromkeys((*factors, *(name for name in card.facets if name in items.facet_names())))),
        plan=drawn,
        policy=policy,
    )
    data.marked()
    tables = {
        "capabilities": capability_rows(data),
        "regression": regression_rows(data),
        "factors": factor_rows(data),
        "gaps": gap_rows(data),
        "videos": video_rows(data),
        "groups": group_rows(data),
        "pairs": pair_rows(data),
        "ranking": ranking_rows(boards),
        "places": place_rows(boards),
        "rules": rule_rows(boards),
        "duels": duel_rows(boards),
        "significance": significance_rows(boards),
        "tau": tau_rows(boards),
        "ensembles": ensemble_rows(data),
        "failures": failure_rows(data),
        "marks": mark_rows(data),
        "settings": _settings(drawn, stability, boards[0], policy),
    }
    return Analysis(tables, boards, labels, reference_values(data))


def write_tables(analysis: Analysis, folder: Path) -> list[Path]:
    """One CSV file a table, named after it. A text that a spreadsheet would take for a formula gets a leading
    apostrophe. Raises `InputError` where the folder can't be written."""
    written = []
    for name, rows in analysis.tables.items():
        file = folder / f"{name}.csv"
        with whole_file(file) as draft, draft.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(list(rows[0]) if rows else [])
            writer.writerows([[safe_cell(value) for value in row.values()] for row in rows])
        written.append(file)
    return written


def _settings(drawn: Resampling, stability: int, board: Board, policy: FailedPolicy) -> list[Row]:
    """What the numbers of the other tables were drawn with."""
    said: Row = {"draws": drawn.draws, "two_level": drawn.two_level, "stability": stability}
    said |= {"seed": drawn.seed, "alpha": board.alpha, "marked_by": board.judge, "failed": policy.value}
    return [{"setting": name, "value": value} for name, value in said.items()]


def _said(store: Store, run: Run) -> dict[str, Said]:
    return {name: Said(one.status, one.parsed) for name, one in store.answers(run).items()}


def _causes(store: Store, items: ItemTable, entry: Entry) -> dict[int, str]:
    """How answers ended, by their place: as code says, and where code can't say, the judge behind the ranking."""
    found = load_labels(store, entry.run, items, ACCURACY.name, CODE)
    if entry.scorer == CODE:
        return found
    how = load_labels(store, entry.run, items, UNRESOLVED.name, entry.scorer)
    open_ones = dict.fromkeys((place for place, label in how.items() if label in _OPEN), UNRESOLVED.name)
    return load_labels(store, entry.run, items, ACCURACY.name, entry.scorer) | open_ones | found


def _tags(items: ItemTable, facets: Sequence[str], shown: str) -> tuple[str, tuple[str, ...]]:
    known = set(items.facet_names())
    labels = _LABELS if _LABELS in known else next((facet for facet in facets if facet in known), None)
    if labels is None:
        raise InputError(shown, found="no facet", expected="one to analyse by")
    factors = tuple(factor for factor in _FACTORS if factor in known)
    return labels, factors or tuple(facet for facet in facets if facet in known and facet != labels)
