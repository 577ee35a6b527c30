"""What scoring did, for people and for programs: the reports that `proctor score` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from proctor.core import PluginReport, Table, count_of, number, number_interval, store_word
from proctor.shell.scorers import PreparedScorer, Scored

if TYPE_CHECKING:
    from proctor.results import JudgeAgreement


def metrics_report(store: str, scored: Mapping[str, int], there: Mapping[str, int]) -> PluginReport:
    """The answers that each scorer of texts scored now, and those that it had scored before."""
    from proctor.reports import scored_table

    json: list[JsonValue] = [
        {"scorer": name, "scored": n, "there_already": there.get(name, 0)} for name, n in scored.items()
    ]
    return PluginReport(json, (scored_table(store, scored, there),))


def judge_report(scorer: PreparedScorer, scored: Scored, *, draws: int, seed: int) -> PluginReport:
    """What a judge scored, with the agreement of a panel's judges (`draws`, `seed`) and flagged judgements; or, of a
    judge of dimensions, the means of each."""
    return _of_dimensions(scorer, scored) if scorer.dimensions else _of_verdicts(scorer, scored, draws, seed)


def _of_dimensions(scorer: PreparedScorer, scored: Scored) -> PluginReport:
    from proctor.reports import dimensions_table
    from proctor.results import rating_summary

    store, tally, paid, name = scorer.where.store, scored.tally, scorer.paid, scorer.scorer.name
    rows, breaks, flags = rating_summary(store, scorer.where.benchmark, scorer.runs, name)
    counts = {} if tally is None else {"scored": tally.scored, "without_a_score": tally.unscored, "left": tally.left}
    cost = {"new_judgements": paid.count, "cost_usd": paid.usage.cost_usd if paid.count or paid.lost else 0.0}
    said: dict[str, Any] = {"dimensions": [asdict(row) for row in rows], "rule_breaks": breaks, "flags": flags}
    notes = [
        f"{what}: {', '.join(f'{name} {count}' for name, count in sorted(found.items()))}"
        for what, found in (("broken rules", breaks), ("flags", flags))
        if found
    ]
    done = f"{_counted(scorer, scored.by[name])} scored by {name}"
    shown = (dimensions_table(name, store.shown, rows), done)
    return PluginReport({"judge": name, "store": store.shown, **counts, **cost, **said}, shown, tuple(notes))


def _of_verdicts(scorer: PreparedScorer, scored: Scored, draws: int, seed: int) -> PluginReport:
    from proctor.results import flagged_judgements

    where, tally, paid, name = scorer.where, scored.tally, scorer.paid, scorer.scorer.name
    if tally is None:
        raise ValueError("a judge without a tally")
    agreement, systems = _agreement(scorer, draws, seed), {run.system for run in scorer.runs}
    flagged = flagged_judgements(where.store, where.benchmark, where.systems, where.conditions)
    flagged = [judgement for judgement in flagged if judgement.system in systems]
    counts = {"answers": tally.total, "scored": tally.scored, "unresolved": tally.unresolved}
    counts |= {"unscored": tally.total - tally.scored - tally.unresolved, "left": tally.left}
    said: dict[str, Any] = {
        "agreement": agreement and agreement.to_json(),
        "flagged": [judgement.to_json() for judgement in flagged],
    }
    cost: dict[str, Any] = {"new_judgements": paid.count, "usage": paid.usage.model_dump(mode="json")}
    shown: list[Table | str] = [f"{_counted(scorer, tally.scored)} scored by {name} in {where.store.shown}"]
    if tally.unresolved:
        why = "no majority among its judges: neither right nor wrong"
        shown.append(f"{count_of(tally.unresolved, 'answer')} unresolved ({why})")
    if agreement is not None:
        from proctor.reports import judges_table

        shown += [judges_table(agreement), _alpha_line(agreement)]
    look = "flagged for a person to look at: proctor results"
    notes = (
        f"{count_of(len(flagged), 'judgement')} {look} {where.benchmark} --flags --store {store_word(where.store.shown)}",
    )
    return PluginReport({"judge": name, **counts, **cost, **said}, tuple(shown), notes if flagged else ())


def _counted(scorer: PreparedScorer, count: int) -> str:
    """How many answers were scored; of a judge that is asked several times for each, how many times."""
    repeats = scorer.options["repeats"]
    return count_of(count, "answer") if repeats < 2 else f"{count_of(count, 'time')} (up to {repeats} an answer)"


def _agreement(scorer: PreparedScorer, draws: int, seed: int) -> JudgeAgreement | None:
    """The agreement of the judges of a panel; None for a single judge."""
    from proctor.judges import Panel
    from proctor.results import judge_agreement

    if not isinstance(scorer.scorer, Panel) or len(scorer.scorer.judges) < 2:
        return None
    where, every = scorer.where, scorer.options["all_items"]
    judges = scorer.scorer.judges
    return judge_agreement(where.store, where.benchmark, scorer.runs, judges, all_items=every, draws=draws, seed=seed)


def _alpha_line(agreement: JudgeAgreement) -> str:
    alpha = agreement.alpha
    ends = "" if alpha.ci_low is None else f" ({number_interval(alpha.ci_low, alpha.ci_high)})"
    over = f"{count_of(alpha.n, 'answer')} in {count_of(alpha.groups, 'group')}"
    return f"Krippendorff's alpha {number(alpha.value)}{ends} over {over}"
