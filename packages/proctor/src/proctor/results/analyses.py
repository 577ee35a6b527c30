"""The analysis of a benchmark's runs: tables with clustered intervals, to read and to plot."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import ACCURACY, FailedPolicy, count_of, safe_cell, whole_file
from proctor.judges import JUDGEMENT_MISSING, TIE, UNRESOLVED
from proctor.results.arrays import ItemTable, load_items, load_labels, load_values
from proctor.results.performance import (
    AnalysisData,
    AnalysisRow,
    ParsedAnswers,
    ensemble_rows,
    failure_rows,
    group_rows,
    numbers,
    score_rows,
    video_rows,
)
from proctor.results.ranking import Board, Contest, Entry, boards_of, ranked_entries
from proctor.results.ranking_tables import (
    pairwise_win_rows,
    rank_chance_rows,
    ranking_rows,
    rule_rows,
    significance_rows,
    tau_rows,
)
from proctor.results.reliance import reliances
from proctor.results.results import Options
from proctor.results.run_scores import policies
from proctor.runs import CODE, Store, chosen_runs
from proctor.stats import (
    Difference,
    Estimate,
    Floats,
    RankingPlan,
    Resampling,
    can_decide,
    holm_known,
    logistic,
    paired_difference,
    paired_differences,
    ratio,
    slice_means,
    sums_interval,
)

_OPEN = {TIE, JUDGEMENT_MISSING}
_LABELS = "capabilities"
_FACTORS = ("distribution", "clinical", "context")


@dataclass(frozen=True)
class Analysis:
    """The tables by name, each a list of rows with the same columns, and the boards of the ranking. `labels` is the tag of
    capabilities, `reference` the reference category of each factor, and the reference system, in the regression;
    `condition` is the one that the systems answered under."""

    tables: dict[str, list[AnalysisRow]]
    boards: list[Board]
    labels: str
    reference: dict[str, str]
    condition: str = "video"


def analyse(
    store: Store,
    benchmark: str,
    contest: Contest = Contest(),
    *,
    stability: int = 1000,
    plan: Resampling = Resampling(),
) -> Analysis:
    """Analyses the systems that `rank_runs` would rank, and its baselines. A system's numbers leave out questions whose
    format it does not answer, or that have no scorer. Lacking items count by the policy, by default as wrong.

    Labels are the tag `capabilities`, else the benchmark's first facet, else the answer format; factors are
    `distribution`, `clinical` and `context`, else its other facets. `plan` is that of the intervals, `stability` the
    number of samples of the ranking. Raises `InputError` as `rank_runs` does.
    """
    card = store.card(benchmark)
    items = load_items(store, card, all_items=contest.all_items)
    ranked = ranked_entries(store, card, items, contest)
    ranking = RankingPlan(stability=stability, seed=plan.seed, leave_out=True)
    boards = boards_of(store, card, items, ranked, contest, plan=ranking)
    entries = [entry.supported() for entry in ranked]
    policy = policies(contest.failed, card)[0]
    labels, factors = _tags(items, card.facets)
    asked = {item.id: item for item in store.items(benchmark)}
    data = AnalysisData(
        items=items,
        asked=[asked[name] for name in items.ids],
        entries=entries,
        answers=_parsed_answers(store, items, entries),
        causes={entry.name: _causes(store, items, entry) for entry in entries},
        labels=labels,
        factors=factors,
        facets=tuple(dict.fromkeys((*factors, *(name for name in card.facets if name in items.facet_names())))),
        plan=plan,
        policy=policy,
    )
    data.scored()
    tables = {
        "capabilities": capability_rows(data),
        "regression": regression_rows(data),
        "factors": factor_rows(data),
        "gaps": gap_rows(data),
        "videos": video_rows(data),
        "groups": group_rows(data),
        "pairs": pair_rows(data),
        "ranking": ranking_rows(boards),
        "rank_chances": rank_chance_rows(boards),
        "rules": rule_rows(boards),
        "pairwise_wins": pairwise_win_rows(boards),
        "significance": significance_rows(boards),
        "tau": tau_rows(boards),
        "ensembles": ensemble_rows(data),
        "failures": failure_rows(data),
        "scores": score_rows(data),
        "reliance": reliance_rows(store, benchmark, contest, plan),
        "settings": _settings(plan, stability, boards[0], policy),
    }
    return Analysis(tables, boards, labels, reference_values(data), contest.condition)


def write_tables(analysis: Analysis, folder: Path) -> list[Path]:
    """Writes one CSV file per table. A text that a spreadsheet would take for a formula gets a leading apostrophe. Raises
    `InputError` if the folder can't be written."""
    written = []
    for name, rows in analysis.tables.items():
        file = folder / f"{name}.csv"
        with whole_file(file) as draft, draft.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(map(safe_cell, rows[0] if rows else ()))
            writer.writerows([[safe_cell(value) for value in row.values()] for row in rows])
        written.append(file)
    return written


def reliance_rows(store: Store, benchmark: str, contest: Contest, plan: Resampling) -> list[AnalysisRow]:
    """What each system loses when the evidence is hidden (see `Reliance`); empty where none was run under both conditions."""
    runs = chosen_runs(store, benchmark, contest.systems, ())
    asked = Options(failed=contest.failed, all_items=contest.all_items, draws=plan.draws, seed=plan.seed)
    found = reliances(store, benchmark, runs, replace(asked, level=plan.level))
    return [{"system": one.system, "scorer": one.scorer} | one.to_json() for one in found]


def _settings(plan: Resampling, stability: int, board: Board, policy: FailedPolicy) -> list[AnalysisRow]:
    """The settings of the other tables."""
    settings: AnalysisRow = {"draws": plan.draws, "two_level": plan.two_level, "stability": stability}
    settings |= {
        "seed": plan.seed,
        "alpha": board.alpha,
        "ties": board.standings.ties,
        "scored_by": board.judge,
        "failed": policy.value,
    }
    return [{"setting": name, "value": value} for name, value in settings.items()]


def _parsed_answers(store: Store, items: ItemTable, entries: Sequence[Entry]) -> ParsedAnswers:
    numbers: dict[str, int] = {}
    values: list[JsonValue] = []
    codes = {}
    for entry in entries:
        codes[entry.name] = np.full(len(items), -1, dtype=np.int64)
        for text, rows in load_values(store, entry.run, items):
            if text not in numbers:
                numbers[text] = len(values)
                values.append(json.loads(text))
            codes[entry.name][rows] = numbers[text]
    return ParsedAnswers(values, codes)


def _causes(store: Store, items: ItemTable, entry: Entry) -> list[str]:
    """How answers ended: by code, and where code can't tell, by the judge of the ranking."""
    found = load_labels(store, entry.run, items, ACCURACY.name, CODE)
    if entry.scorer != CODE:
        how = load_labels(store, entry.run, items, UNRESOLVED.name, entry.scorer)
        open_ones = dict.fromkeys((position for position, label in how.items() if label in _OPEN), UNRESOLVED.name)
        found = load_labels(store, entry.run, items, ACCURACY.name, entry.scorer) | open_ones | found
    return [found.get(position, "") for position in range(len(items))]


def _tags(items: ItemTable, facets: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    known = set(items.facet_names())
    labels = _LABELS if _LABELS in known else next((facet for facet in facets if facet in known), "format")
    factors = tuple(factor for factor in _FACTORS if factor in known)
    return labels, factors or tuple(facet for facet in facets if facet in known and facet != labels)


_MAX_VALUES = 24  # a tag with more values is a name, not a facet
_MIN_STRATUM = 10  # questions; smaller strata of two labels are not listed


def _estimates(data: AnalysisData, entry: Entry, masks: Sequence[NDArray[np.bool_]]) -> list[Estimate]:
    scored = np.flatnonzero(~np.isnan(entry.right))
    inside = np.stack([mask[scored] for mask in masks], axis=1)
    return slice_means(entry.right[scored], data.items.group[scored], inside, len(masks), data.plan.within(0, 1))


def capability_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Per system and label: accuracy on all questions with the label, on those with no other label, and on those with each
    other label beside it (if there are ten or more)."""
    carriers = data.carriers(data.labels)
    single = np.add.reduce([mask.astype(int) for mask in carriers.values()]) == 1
    slices: list[tuple[str, str, NDArray[np.bool_]]] = []
    for label, mask in carriers.items():
        slices += [(label, "all", mask), (label, "alone", mask & single)]
        slices += [
            (label, f"with {other}", mask & beside)
            for other, beside in carriers.items()
            if other != label and (mask & beside).sum() >= _MIN_STRATUM
        ]
    rows = []
    for entry in data.entries:
        found = _estimates(data, entry, [mask for _, _, mask in slices])
        for (label, stratum, _), one in zip(slices, found, strict=True):
            rows.append({"system": entry.name, "label": label, "stratum": stratum} | numbers(one))
    return rows


def factor_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Accuracy per system and value of every facet (context length, distribution, leaf of the taxonomy …)."""
    rows = []
    for factor in data.facets:
        carriers = data.carriers(factor)
        if not 1 < len(carriers) <= _MAX_VALUES:
            continue
        for entry in data.entries:
            found = _estimates(data, entry, list(carriers.values()))
            rows += [
                {"system": entry.name, "factor": factor, "value_of": value} | numbers(one)
                for value, one in zip(carriers, found, strict=True)
            ]
    return rows


def regression_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Logistic regression of right answers on labels, factors and systems, over the answers of all systems that are no
    baselines. (What is hard for a baseline that guesses says nothing about the systems.) Empty without such a system.

    The first value of each factor, and the first system, are the reference categories. Errors are clustered by group
    (CR2), over all systems at once.
    """
    own, entries = _columns(data), data.submissions
    if not entries:
        return []
    scored = [np.flatnonzero(~np.isnan(entry.right)) for entry in entries]
    joined = {name: np.concatenate([mask[here] for here in scored]) for name, mask in own.items()}
    for number, entry in enumerate(entries[1:], start=1):
        same = [np.full(len(here), position == number) for position, here in enumerate(scored)]
        joined[f"system = {entry.name}"] = np.concatenate(same)
    right = [entry.right[here] for entry, here in zip(entries, scored, strict=True)]
    groups = np.concatenate([data.items.group[here] for here in scored])
    found = logistic(np.concatenate(right), joined, groups)
    columns = ("odds_ratio", "ci_low", "ci_high", "log_odds", "error", "df", "p")
    rows: list[AnalysisRow] = [
        {"term": term.name} | {name: getattr(term, name) for name in columns} | {"note": ""} for term in found.terms
    ]
    empty: AnalysisRow = dict.fromkeys(columns)
    rows += [{"term": name} | empty | {"note": "adds nothing to the others"} for name in found.dropped]
    rows += [{"term": name} | empty | {"note": "decided by one group alone"} for name in found.single]
    if found.problem:
        rows.append({"term": "intercept"} | empty | {"note": found.problem})
    return rows


def reference_values(data: AnalysisData) -> dict[str, str]:
    """The reference categories of the regression: the first value of each factor, and the first system that is no
    baseline."""
    values = {factor: list(data.carriers(factor)) for factor in data.factors}
    values["system"] = [entry.name for entry in data.submissions]
    return {factor: some[0] for factor, some in values.items() if some and (len(some) > 1 or factor == "system")}


def _columns(data: AnalysisData) -> dict[str, NDArray[np.bool_]]:
    found = {f"{data.labels}: {label}": mask for label, mask in data.carriers(data.labels).items()}
    for factor in data.factors:
        for value, mask in list(data.carriers(factor).items())[1:]:
            found[f"{factor} = {value}"] = mask
    return found


def gap_rows(data: AnalysisData) -> list[AnalysisRow]:
    """Per system and factor of two values: accuracy on the second value minus accuracy on the first."""
    rows = []
    for factor in data.factors:
        carriers = data.carriers(factor)
        if len(carriers) != 2:
            continue
        (first, ones), (second, others) = carriers.items()
        for entry in data.entries:
            scored = np.flatnonzero(~np.isnan(entry.right) & (ones | others))
            right, inside, outside = entry.right[scored], ones[scored], others[scored]
            sums = np.stack([part * side for side in (inside, outside) for part in (right, 1 - right)], axis=1)
            outcomes = (((0,), (1,)), ((2,), (3,)))
            one = sums_interval(sums, data.items.group[scored], _gap, outcomes, plan=data.plan.within(-1.0, 1.0))
            rows.append({"system": entry.name, "factor": factor, "first": first, "second": second} | numbers(one))
    return rows


def _gap(sums: Floats) -> Floats:
    return ratio(sums[:, 2], sums[:, 2] + sums[:, 3]) - ratio(sums[:, 0], sums[:, 0] + sums[:, 1])


def pair_rows(data: AnalysisData) -> list[AnalysisRow]:
    """The difference of accuracies for every pair of systems, and of every system and baseline, on the questions that both
    have a score for. `p_holm` is adjusted within a `family`: comparisons of systems, and those with baselines;
    `adjusted_for` says it in words. `decides` is false if no p could be significant with so few groups."""
    ranked = data.submissions
    baselines = [entry for entry in data.entries if entry.baseline]
    families = {
        "systems": list(combinations(ranked, 2)),
        "baselines": [(entry, other) for entry in ranked for other in baselines],
    }
    known = _alike(data, [*ranked, *baselines])
    rows = []
    for family, pairs in families.items():
        found = [known.get((one.name, other.name)) or _difference(data, one, other) for one, other in pairs]
        adjusted = holm_known([difference.p for difference in found])
        size = sum(difference.p is not None for difference in found)
        whole = f"the {count_of(size, 'pair')} of {count_of(len(ranked), 'system')}"
        if family == "baselines":
            whole = f"the {count_of(size, 'pair')} of a system and a baseline"
        rows += [
            {
                "family": family,
                "first": first.name,
                "second": second.name,
                "n": one.n,
                "groups": one.groups,
                "difference": one.value,
                "ci_low": one.ci_low,
                "ci_high": one.ci_high,
                "p": one.p,
                "p_holm": p_holm,
                "adjusted_for": whole if size > 1 else "",
                "decides": can_decide(one.groups, data.plan.level),
                "only_first_right": one.wins,
                "only_second_right": one.losses,
            }
            for (first, second), one, p_holm in zip(pairs, found, adjusted, strict=True)
        ]
    return rows


def _alike(data: AnalysisData, entries: Sequence[Entry]) -> dict[tuple[str, str], Difference]:
    """The differences of systems with scores for the same questions, computed at once."""
    by_questions: dict[bytes, list[Entry]] = {}
    for entry in entries if not data.plan.two_level else ():  # two-level samples of pairs must be independent
        by_questions.setdefault(np.isnan(entry.right).tobytes(), []).append(entry)
    found = {}
    for some in by_questions.values():
        there = ~np.isnan(some[0].right)
        rights = np.array([entry.right[there] for entry in some])
        for difference in paired_differences(rights, data.items.group[there], data.plan.within(0, 1)):
            found[some[difference.first].name, some[difference.second].name] = difference.difference
    return found


def _difference(data: AnalysisData, first: Entry, second: Entry) -> Difference:
    both = np.flatnonzero(~np.isnan(first.right) & ~np.isnan(second.right))
    return paired_difference(first.right[both], second.right[both], data.items.group[both], data.plan.within(0, 1))
