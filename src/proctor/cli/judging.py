"""Letting judges mark the answers of a store, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from proctor.cli.media import MediaAs, excerpts_of
from proctor.cli.models import check_servers, closing
from proctor.cli.options import OutputFormat
from proctor.cli.output import console, note, print_json, print_table
from proctor.cli.predicting import SimilarityOptions
from proctor.cli.progress import cost_of, show_judging, stopping
from proctor.core import InputError, reader_or_default

if TYPE_CHECKING:
    from proctor.core import Frame, Item, Scorer
    from proctor.judges import FramesOf
    from proctor.media import Excerpts
    from proctor.models import ModelClient
    from proctor.runs import JudgeAgreement, JudgeTally, PaidVotes, Run, Store

UNMARKED_EXIT = 3


@dataclass(frozen=True)
class Answers:
    """Which answers of a store are judged."""

    store: str
    benchmark: str
    systems: tuple[str, ...]
    conditions: tuple[str, ...]
    all_items: bool


@dataclass(frozen=True)
class How:
    """By which judge, who stands in where it has no verdict, how many answers at once, and
    how the end is printed."""

    judge: str
    concurrency: int
    draws: int
    seed: int
    output: OutputFormat
    media: Path | None = None
    prompt: str = ""
    media_as: MediaAs | None = None
    fallback: Sequence[ModelClient] = ()


def mark_rationales(answers: Answers, similarity: SimilarityOptions, how: How) -> None:
    """Holds the rationales of a store's answers against the references' by BERTScore; no model is asked."""
    from proctor.metrics.text import RationaleScorer, load_bertscore
    from proctor.runs import PaidVotes, Store, chosen_runs

    store = Store(answers.store, create=False)
    scorer = RationaleScorer(load_bertscore(similarity.settings()))
    items = [item for item in store.items(answers.benchmark) if scorer.applies(item)]
    if not items:
        raise InputError(
            store.shown, f"benchmark {answers.benchmark}", found="no reference with a rationale", expected="some"
        )
    runs = _with_rationales(store, chosen_runs(store, answers.benchmark, answers.systems, answers.conditions))
    for run in runs:
        given = store.answers(run)
        scorer.prepare([(item, given[item.id]) for item in items if item.id in given])
    store.declare_metrics(answers.benchmark, scorer.metrics)
    paid = PaidVotes(store)
    tally = _judged(store, runs, scorer, paid, answers.all_items, how.concurrency)
    _show(_Outcome(store, answers, runs, scorer, tally, paid), how)


def judge_answers(answers: Answers, clients: Sequence[ModelClient], how: How) -> None:
    """Judges what is not judged yet, prints what came of it, and exits with `UNMARKED_EXIT` where another pass
    would have something to ask."""
    from proctor.judges import RATIONALE_METRICS, WithFallback, build_judge, judge_prompt
    from proctor.runs import BASELINES, PaidVotes, Store, chosen_runs

    name = how.judge
    store = Store(answers.store, create=False)
    paid = PaidVotes(store)
    frames = None
    if how.media is not None:
        excerpts = excerpts_of(store.card(answers.benchmark).excerpts, how.media_as)
        frames = _frames_of(how.media, excerpts)
    briefing = reader_or_default(answers.benchmark).briefing
    prompt = judge_prompt(name, how.prompt) if how.prompt else None
    scorer = build_judge(name, clients, paid, prompt=prompt, briefing=briefing, frames=frames)
    check_servers([*clients, *how.fallback])
    asked = scorer
    if how.fallback:
        other = build_judge(name, how.fallback, paid, prompt=prompt, briefing=briefing, frames=frames)
        asked = WithFallback(scorer, other)
    runs = chosen_runs(store, answers.benchmark, answers.systems, answers.conditions)
    if not answers.systems:
        runs = [run for run in runs if run.system not in BASELINES]  # nobody pays a judge for baselines unasked
    if set(scorer.metrics) <= set(RATIONALE_METRICS):
        runs = _with_rationales(store, runs)
    store.declare_metrics(answers.benchmark, scorer.metrics)
    tally = _judged(store, runs, asked, paid, answers.all_items, how.concurrency, [*clients, *how.fallback])
    _show(_Outcome(store, answers, runs, scorer, tally, paid), how)
    if tally.left:
        lack = "lack a judge's vote" if tally.awaiting == tally.left else "have no verdict"
        reason = tally.last_reason or ("no reply came" if tally.awaiting else "stopped")
        note(f"{tally.left} answers {lack} ({reason}): run the same command again.")
        raise typer.Exit(UNMARKED_EXIT)


def _with_rationales(store: Store, runs: Sequence[Run]) -> list[Run]:
    """The runs whose rationales can be marked; the others are named, since a mark of theirs would be made up."""
    from proctor.metrics.text import gives_rationales

    kept = [run for run in runs if gives_rationales(store.answers(run).values())]
    without = [f"{run.system} / {run.condition}" for run in runs if run not in kept]
    if without:
        note(f"No mark for {', '.join(without)}: no rationale was asked for or kept.")
    return kept


def _frames_of(media: Path, excerpts: Excerpts) -> FramesOf:
    """An item's frames as a system gets them under the condition `video`."""
    from proctor.media import MediaLibrary, view

    library = MediaLibrary(media, excerpts=excerpts)

    async def frames(item: Item) -> Sequence[Frame]:
        return await view(item, "video", library).frames()

    return frames


@dataclass(frozen=True)
class _Outcome:
    store: Store
    answers: Answers
    runs: list[Run]
    scorer: Scorer
    tally: JudgeTally
    paid: PaidVotes


def _judged(
    store: Store,
    runs: Sequence[Run],
    scorer: Scorer,
    paid: PaidVotes,
    all_items: bool,
    concurrency: int,
    clients: Sequence[ModelClient] = (),
) -> JudgeTally:
    from proctor.runs import JudgeLimits, judge_all

    async def judging() -> JudgeTally:
        async with closing(clients):
            with stopping() as stop, show_judging(0, paid) as update:
                return await judge_all(
                    store, runs, scorer, JudgeLimits(concurrency), all_items=all_items, stop=stop, on_change=update
                )

    return asyncio.run(judging())


def _show(outcome: _Outcome, how: How) -> None:
    from proctor.judges import Panel
    from proctor.runs import flagged_votes, judge_agreement

    store, answers, tally, paid = outcome.store, outcome.answers, outcome.tally, outcome.paid
    agreement = None
    if isinstance(outcome.scorer, Panel) and len(outcome.scorer.judges) > 1:
        agreement = judge_agreement(
            store,
            answers.benchmark,
            outcome.runs,
            outcome.scorer.judges,
            all_items=answers.all_items,
            draws=how.draws,
            seed=how.seed,
        )
    systems = {run.system for run in outcome.runs}
    flagged = flagged_votes(store, answers.benchmark, answers.systems, answers.conditions)
    flagged = [one for one in flagged if one.system in systems]
    if how.output is OutputFormat.JSON:
        print_json(_json(outcome, agreement, [one.to_json() for one in flagged]))
        return
    console.print(
        f"{tally.marked} answers marked by {outcome.scorer.name} in {store.shown}", markup=False, highlight=False
    )
    if tally.unresolved:
        ties = "no majority among its judges: neither right nor wrong"
        console.print(f"{tally.unresolved} answers unresolved ({ties})", markup=False, highlight=False)
    if paid.count:
        console.print(f"{paid.count} new votes, {cost_of(paid.usage)}", markup=False, highlight=False)
    if agreement is not None:
        _show_agreement(agreement)
    if flagged:
        where = f"proctor results {answers.benchmark} --flags"
        note(f"{len(flagged)} votes are flagged for a person to look at: {where}")


def _json(outcome: _Outcome, agreement: JudgeAgreement | None, flagged: list[dict[str, Any]]) -> dict[str, Any]:
    tally, paid = outcome.tally, outcome.paid
    return {
        "judge": outcome.scorer.name,
        "answers": tally.total,
        "marked": tally.marked,
        "unresolved": tally.unresolved,
        "unmarked": tally.total - tally.marked - tally.unresolved,
        "left": tally.left,
        "new_votes": paid.count,
        "usage": paid.usage.model_dump(mode="json"),
        "agreement": None if agreement is None else agreement.to_json(),
        "flagged": flagged,
    }


def _show_agreement(agreement: JudgeAgreement) -> None:
    rows = [
        [
            pair.first,
            pair.second,
            str(pair.n),
            "–" if pair.share is None else f"{100 * pair.share:.1f} %",
            str(pair.right_by_first),
            str(pair.right_by_second),
        ]
        for pair in agreement.pairs
    ]
    columns = ["judge", "and judge", ">both voted", ">agree", ">right by the first", ">by the second"]
    print_table("How far the judges agree", columns, rows)
    alpha = agreement.alpha
    shown = "–" if alpha.value is None else f"{alpha.value:.2f}"
    ends = "" if alpha.ci_low is None or alpha.ci_high is None else f" ({alpha.ci_low:.2f} to {alpha.ci_high:.2f})"
    console.print(
        f"Krippendorff's alpha {shown}{ends} over {alpha.n} answers in {alpha.groups} groups",
        markup=False,
        highlight=False,
    )
