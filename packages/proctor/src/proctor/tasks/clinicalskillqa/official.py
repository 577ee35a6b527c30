"""The task's own figures of stored runs: the overall score where their rationales are scored; and its published table
computed again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.core import DASH, FailedPolicy, PluginReport, Table, VerifiedFigure, count_of, interval, plain_table, value
from proctor.metrics import MetricEstimate
from proctor.metrics.ordering import OVERALL, overall_score
from proctor.metrics.text import RATIONALE_F1
from proctor.results import Options, OrderedRun, load_items, load_orders, policies, summary_title
from proctor.runs import Store, chosen_runs
from proctor.tasks.clinicalskillqa.scoring import NAMED_WEIGHTS, published

Scores = list[tuple[str, MetricEstimate]]

_ROUNDED_PARTS = 0.5


class SkillSummary:
    """The task's own figures of stored runs; it has no corrected ones (see `proctor.results.OfficialProgram`)."""

    protocols = ("official",)

    def official_summary(self, store: Store, benchmark: str, options: Options, *, corrected: bool) -> PluginReport:
        del corrected
        return order_summary(store, benchmark, options, NAMED_WEIGHTS)


SUMMARY = SkillSummary()


class SkillFigures:
    """The overall score of each team in the published table, computed from its published parts; the answers are not
    public. Parts are rounded to two decimals, which changes the overall score by up to 0.5."""

    files: tuple[str, ...] = ()

    async def verify(self, data: Path) -> list[VerifiedFigure]:
        del data
        return [
            VerifiedFigure(
                f"{team.team}, overall score from its parts",
                published().source,
                team.overall,
                overall_score(team.task_accuracy, team.pairwise_accuracy, team.bertscore_f1),
                _ROUNDED_PARTS,
                "more than rounding explains: the table itself does not fit its formula here"
                if team.team == "FBK"
                else "",
            )
            for team in published().teams
        ]


PUBLISHED = SkillFigures()


def order_summary(store: Store, benchmark: str, options: Options, weights: Mapping[str, float]) -> PluginReport:
    """The figures of every chosen run, under each policy that is asked for."""
    card = store.card(benchmark)
    table = load_items(store, card)
    items = {item.id: item for item in store.items(benchmark)}
    runs = chosen_runs(store, benchmark, options.systems, options.conditions)
    found = [
        order for policy in policies(options.failed, card) for order in load_orders(store, runs, table, items, policy)
    ]
    found = list({(ordered_run.run.id, ordered_run.policy): ordered_run for ordered_run in found}.values())
    found.sort(key=lambda ordered_run: (ordered_run.run.system, ordered_run.run.condition))
    both = (weights["alpha"], weights["beta"])
    scores = [_scores(ordered_run, both, options) for ordered_run in found]
    shown = list(zip(found, scores, strict=True))
    notes = [
        f"{_title(ordered_run)}: {line}" if len(found) > 1 else line
        for ordered_run in found
        for line in _notes(ordered_run)
    ]
    rows = [row for one, own in shown for row in _rows(one, own)]
    return PluginReport([*rows], tuple(_table(one, own) for one, own in shown), (*notes, *card.notes))


def _scores(ordered_run: OrderedRun, weights: tuple[float, float], options: Options) -> Scores:
    """Each with the scorer of the rationales that it stands on; task and pairwise accuracy stand on none."""
    draws, seed = options.draws, options.seed
    own = [("", score) for score in ordered_run.metrics(draws=draws, seed=seed)[:2]]
    if ordered_run.invalid:
        own.append(("", ordered_run.partial(draws=draws, seed=seed)))
    return own + [
        (scorer, score)
        for scorer in sorted(ordered_run.f1)
        for score in ordered_run.with_rationales(scorer, weights=weights, draws=draws, seed=seed)
    ]


def _table(ordered_run: OrderedRun, scores: Scores) -> Table:
    several = len(ordered_run.f1) > 1
    cells = [
        (
            score.metric.label,
            *([scorer] if several else []),
            value(score.metric, score.estimate.value),
            interval(score.metric, score.estimate.ci_low, score.estimate.ci_high),
            str(score.estimate.n),
        )
        for scorer, score in scores
    ]
    if not ordered_run.f1:
        cells += [(metric.label, DASH, DASH, DASH) for metric in (RATIONALE_F1, OVERALL)]
    heads = ("metric", *(["rationales by"] if several else []), ">value", ">interval", ">n")
    return plain_table(_title(ordered_run), heads, tuple(cells))


def _title(ordered_run: OrderedRun) -> str:
    return summary_title(ordered_run.run.system, ordered_run.run.condition, ordered_run.policy)


def _notes(ordered_run: OrderedRun) -> list[str]:
    notes = []
    if ordered_run.invalid:
        notes.append(
            f"Invalid: {ordered_run.invalid} of {count_of(len(ordered_run.compared), 'order')} (a label is missing, repeated or unknown), "
            "wrong in every figure but that with partial credit."
        )
    if ordered_run.lacking:
        counted = "counted as wrong" if ordered_run.policy == FailedPolicy.WRONG else "left out"
        notes.append(f"Failed or not asked, and {counted}: {count_of(ordered_run.lacking, 'item')}.")
    if len(ordered_run.f1) == 1:
        notes.append(f"Rationales by {next(iter(ordered_run.f1))}.")
    if not ordered_run.f1:
        notes.append(f"No rationale F1 and no overall score: {_unscored(ordered_run)}.")
    return notes


def _unscored(ordered_run: OrderedRun) -> str:
    """Why no rationale of a run has an F1."""
    if not ordered_run.has_rationales:
        return "no rationale was asked for or kept"
    if not ordered_run.references_have_them:
        return "no reference has a rationale"
    return "no rationale is scored yet (proctor score --judge bertscore)"


def _rows(ordered_run: OrderedRun, scores: Scores) -> list[dict[str, Any]]:
    """As programs read them; `reason` says why a value is not there."""
    run: dict[str, Any] = {
        "system": ordered_run.run.system,
        "condition": ordered_run.run.condition,
        "left_out": ordered_run.left_out,
    }
    run |= {"invalid": ordered_run.invalid, "policy": ordered_run.policy, "lacking": ordered_run.lacking}
    rows = []
    for scorer, score in scores:
        found = score.estimate
        values = {"value": found.value, "ci_low": found.ci_low, "ci_high": found.ci_high, "n": found.n, "reason": ""}
        rows.append(run | {"scorer": scorer, "name": score.metric.name} | values)
    missing: dict[str, Any] = {"value": None, "ci_low": None, "ci_high": None, "n": 0, "reason": _unscored(ordered_run)}
    unscored = () if ordered_run.f1 else (RATIONALE_F1, OVERALL)
    rows += [run | {"scorer": "", "name": metric.name} | missing for metric in unscored]
    return rows
