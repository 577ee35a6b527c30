"""`proctor score`: judges and metrics on a store's answers, and files of predictions."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.api import BenchmarkName, Draws, PreparedScorer, Scored, ScoreOptions, Seed, StoreUrl
from proctor.cli.output import Output, OutputFormat, note, print_blocks, print_json, say
from proctor.cli.plugins import show_plugin_report
from proctor.cli.progress import cost_of, show_judging
from proctor.cli.run import watched
from proctor.core import DASH, Option, UsageError, count_of, percent

if TYPE_CHECKING:
    from proctor.runs import JudgeAgreement

UNMARKED_EXIT = 3


def score(
    benchmark: BenchmarkName,
    options: ScoreOptions,
    predictions: Annotated[
        Path | None,
        Option("A file of predictions to mark by code, instead of a store.", metavar="PREDICTIONS", argument=True),
    ] = None,
    references: Annotated[Path | None, Option("With PREDICTIONS: the right answers.")] = None,
    store: StoreUrl = None,
    draws: Draws = 2000,
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Score stored answers by judges or metrics.

    A judge's replies are kept, so no call is repeated. A judge of dimensions rates on those that the benchmark, or a
    file, declares.

    The baselines (text-similarity answers free text) are judged only where --system names them.

    With PREDICTIONS, code marks that file against --references instead; no store and no model are needed. Its --option
    are strict=true, invalid=partial, the weights alpha and beta, and those of bertscore.

    Example: proctor score rexsonovqa --store runs.db --model openai:gpt-5.2
    """
    from proctor import api

    if predictions is not None:
        if options["model"] or options["judge"]:
            raise UsageError("--model and --judge", "none: a file of predictions is marked by code", found="one")
        how = options["options"]
        show_plugin_report(
            api.score_predictions(benchmark, predictions, references, options=how, draws=draws, seed=seed), output
        )
        return
    asyncio.run(_score(store, benchmark, options, (draws, seed), output))


async def _score(
    store: Any, benchmark: str, options: ScoreOptions, drawn: tuple[int, int], output: OutputFormat
) -> None:
    from proctor import api

    told: dict[str, int] = {}
    for one in await api.prepare_scorers(store, benchmark, options):
        if isinstance(one, Scored):
            told |= one.by
            continue
        note(*one.notes)
        scored = await watched(one.ask, show_judging(0, one.paid))
        if not options["metrics"]:
            _tell(one, scored, drawn, output)
            return
        told |= scored.by
        note(*(f"{one.scorer.name}: {line}" for line in one.scorer.notes()))  # type: ignore[attr-defined]
    _tell_metrics(api.open_store(store).shown, told, output)


def _tell_metrics(store: str, told: dict[str, int], output: OutputFormat) -> None:
    from proctor.core import Table, columns

    if output is OutputFormat.JSON:
        print_json([{"scorer": name, "scored": count} for name, count in told.items()])
        return
    rows = tuple((name, str(count)) for name, count in told.items())
    title = f"Answers scored in {store}"
    print_blocks(Table(title, columns("scorer", ">answers"), rows, title=title))


def _tell(one: PreparedScorer, scored: Scored, drawn: tuple[int, int], output: OutputFormat) -> None:
    """What came of it; exits with `UNMARKED_EXIT` where another pass would have something to ask."""
    tally, paid = scored.tally, one.paid
    if tally is None:
        raise ValueError("a judge without a tally")
    _tell_dimensions(one, scored, output) if one.dimensions else _tell_judge(one, scored, drawn, output)
    if output is not OutputFormat.JSON and paid.count:
        say(f"{count_of(paid.count, 'new judgement')}, {cost_of(paid.usage)}")
    if tally.left and one.options["limit"] is None:
        lack = "judgement" if tally.awaiting == tally.left else "verdict"
        if one.dimensions:  # an ensemble's score may stand without one of its members
            lack = "member's score" if tally.awaiting == tally.left else "score"
        reason = tally.last_reason or ("no reply came" if tally.awaiting else "stopped")
        note(f"{count_of(tally.left, 'answer')} without a {lack} ({reason}): run the same command again.")
        raise typer.Exit(UNMARKED_EXIT)
    if output is not OutputFormat.JSON:
        command = "audit" if one.dimensions else "results"
        note(f"Next: proctor {command} {one.where.benchmark} --store {one.where.store.shown}")


def _tell_dimensions(one: PreparedScorer, scored: Scored, output: OutputFormat) -> None:
    from proctor.core import Table, columns
    from proctor.runs import rating_summary

    store, tally, paid = one.where.store, scored.tally, one.paid
    rows, breaks, flags = rating_summary(store, one.where.benchmark, one.runs, one.scorer.name)
    if output is OutputFormat.JSON and tally is not None:
        counts = {"scored": tally.marked, "without_a_score": tally.unmarked, "left": tally.left}
        cost = {"new_votes": paid.count, "cost_usd": paid.usage.cost_usd if paid.count else 0.0}
        said = {"dimensions": [asdict(row) for row in rows], "rule_breaks": breaks, "flags": flags}
        print_json({"judge": one.scorer.name, "store": store.shown, **counts, **cost, **said})
        return
    title = f"Scores by {one.scorer.name} in {store.shown}"
    heads = columns("language", "dimension", ">scores", ">missing", ">mean", ">disagreement between members")
    cells = [
        (
            *(row.language, row.dimension, str(row.scores), str(row.missing)),
            *(DASH if value is None else f"{value:.2f}" for value in (row.mean, row.disagreement)),
        )
        for row in rows
    ]
    print_blocks(Table(title, heads, tuple(cells), title=title))
    for what, found in (("broken rules", breaks), ("flags", flags)):
        if found:
            note(f"{what}: {', '.join(f'{name} {count}' for name, count in sorted(found.items()))}")
    say(f"{count_of(scored.by[one.scorer.name], 'answer')} scored by {one.scorer.name}")


def _tell_judge(one: PreparedScorer, scored: Scored, drawn: tuple[int, int], output: OutputFormat) -> None:
    from proctor.runs import flagged_votes

    where, tally, paid = one.where, scored.tally, one.paid
    agreement, systems = _agreement(one, *drawn), {run.system for run in one.runs}
    flagged = flagged_votes(where.store, where.benchmark, where.systems, where.conditions)
    flagged = [vote for vote in flagged if vote.system in systems]
    if tally is None:
        return
    if output is OutputFormat.JSON:
        counts = {"answers": tally.total, "marked": tally.marked, "unresolved": tally.unresolved}
        counts |= {"unmarked": tally.total - tally.marked - tally.unresolved, "left": tally.left}
        cost = {"new_votes": paid.count, "usage": paid.usage.model_dump(mode="json")}
        said = {"agreement": agreement and agreement.to_json(), "flagged": [vote.to_json() for vote in flagged]}
        print_json({"judge": one.scorer.name, **counts, **cost, **said})
        return
    say(f"{count_of(tally.marked, 'answer')} marked by {one.scorer.name} in {where.store.shown}")
    if tally.unresolved:
        say(
            f"{count_of(tally.unresolved, 'answer')} unresolved (no majority among its judges: neither right nor wrong)"
        )
    if agreement is not None:
        _tell_agreement(agreement)
    if flagged:
        note(
            f"{count_of(len(flagged), 'judgement')} flagged for a person to look at: proctor results "
            f"{where.benchmark} --flags --store {where.store.shown}"
        )


def _agreement(one: PreparedScorer, draws: int, seed: int) -> JudgeAgreement | None:
    """How far the judges of a panel agree."""
    from proctor.judges import Panel
    from proctor.runs import judge_agreement

    if not isinstance(one.scorer, Panel) or len(one.scorer.judges) < 2:
        return None
    where, every = one.where, one.options["all_items"]
    judges = one.scorer.judges
    return judge_agreement(where.store, where.benchmark, one.runs, judges, all_items=every, draws=draws, seed=seed)


def _tell_agreement(agreement: JudgeAgreement) -> None:
    from proctor.core import Table, columns

    title = "How far the judges agree"
    heads = columns("judge", "and judge", ">both voted", ">agree", ">right by the first", ">by the second")
    rows = tuple(
        (pair.first, pair.second, pair.n, percent(pair.share), pair.right_by_first, pair.right_by_second)
        for pair in agreement.pairs
    )
    print_blocks(Table(title, heads, rows, title=title))
    alpha = agreement.alpha
    shown = DASH if alpha.value is None else f"{alpha.value:.2f}"
    ends = "" if alpha.ci_low is None or alpha.ci_high is None else f" ({alpha.ci_low:.2f} to {alpha.ci_high:.2f})"
    over = f"{count_of(alpha.n, 'answer')} in {count_of(alpha.groups, 'group')}"
    say(f"Krippendorff's alpha {shown}{ends} over {over}")
