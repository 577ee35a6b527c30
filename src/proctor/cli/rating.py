"""Judges of dimensions and metrics on text, run on the answers of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from proctor.cli.judging import UNMARKED_EXIT, Answers, How
from proctor.cli.models import check_servers
from proctor.cli.options import OutputFormat
from proctor.cli.output import console, note, print_json, print_table
from proctor.cli.progress import cost_of, show_judging, stopping
from proctor.core import reader_or_default

if TYPE_CHECKING:
    from proctor.core import RatingScheme, Scorer
    from proctor.judges.dimensions import JudgeSetup, RatedCase, RecordedBy
    from proctor.models import ModelSpec
    from proctor.runs import JudgeTally, PaidVotes, Run, Store

_FEW_SHOT = "few-shot-judge"


@dataclass(frozen=True)
class RatingOptions:
    """What a judge of dimensions takes beside its models: its own options, a file of dimensions, the store with rated
    answers for few-shot examples, and how many answers are scored at most."""

    options: Mapping[str, str] = field(default_factory=dict)
    dimensions: Path | None = None
    rated: str = ""
    limit: int | None = None


def read_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE pairs, each key once."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in found:
            raise typer.BadParameter(f"expected each KEY=VALUE once, found {pair!r}", param_hint="--option")
        found[key] = value
    return found


def ratings_in(store: Store, benchmark: str) -> tuple[RatingScheme, dict[tuple[str, str], RatedCase]]:
    """What a benchmark's answers are rated on, and those that people rated. Raises `InputError` where there are none."""
    from proctor.core import InputError
    from proctor.runs import rated_cases

    scheme = store.card(benchmark).rating
    found = {} if scheme is None else rated_cases(store, benchmark, scheme)
    if scheme is None or not found:
        raise InputError(
            store.shown, f"ratings of {benchmark}", found="none by people", expected="some: proctor import"
        )
    return scheme, found


def score_by_dimension(answers: Answers, specs: Sequence[ModelSpec], how: How, rating: RatingOptions) -> None:
    """Scores what has no score yet, prints what came of it, and exits with `UNMARKED_EXIT` where another pass would have
    something to ask."""
    from proctor.judges import build_dimension_judge
    from proctor.judges.dimensions import ClientPool, JudgeSetup
    from proctor.runs import PaidVotes, Store

    store = Store(answers.store, create=False)
    scheme, prompts = _scheme(store, answers.benchmark, rating.dimensions)
    paid, pool = PaidVotes(store), ClientPool(specs)
    name, _, folder = how.judge.partition(":")
    options = {**({"folder": folder} if folder else {}), **rating.options}
    setup = JudgeSetup(
        pool,
        paid,
        options,
        rated=_examples(name, store, answers.benchmark, rating.rated),
        recorded=None if scheme is None else _recorded(store, answers.benchmark, scheme, how.media),
        prompts=prompts,
        own=_own_judge(answers.benchmark),
    )
    _check_images(how.media)
    scorer = build_dimension_judge(name, setup, scheme, store, how.media)
    check_servers(pool.opened)
    runs = _runs(store, answers)
    tally = _scored(store, runs, scorer, paid, answers, how, rating, setup)
    _tell(store, answers, runs, scorer, tally, paid, how)
    if tally.left and rating.limit is None:
        note(f"{tally.left} answers lack a score ({tally.last_reason or 'stopped'}): run the same command again.")
        raise typer.Exit(UNMARKED_EXIT)


def score_by_text(answers: Answers, names: Sequence[str], how: How) -> None:
    """Scores a store's answers by metrics on text; no model is asked."""
    from proctor.metrics.text import SimilarityScorer, text_metrics
    from proctor.runs import PaidVotes, Store

    store = Store(answers.store, create=False)
    runs, scheme = _runs(store, answers), store.card(answers.benchmark).rating
    told = []
    for metric in text_metrics(names):
        scorer = SimilarityScorer(metric, scheme)
        store.declare_metrics(answers.benchmark, scorer.metrics)
        paid = PaidVotes(store)
        tally = _scored(store, runs, scorer, paid, answers, how, RatingOptions(), None)
        told.append([metric.name, str(tally.marked)])
        for line in scorer.notes():
            note(f"{metric.name}: {line}")
    if how.output is OutputFormat.JSON:
        print_json([{"scorer": name, "scored": int(count)} for name, count in told])
    else:
        print_table(f"Answers scored in {store.shown}", ["scorer", ">answers"], told)


def _scheme(store: Store, benchmark: str, file: Path | None) -> tuple[RatingScheme | None, Path | None]:
    """What is rated, by a file or as the store knows it, and the folder of the task's own prompts."""
    from proctor.judges.dimensions.case import read_scheme

    if file is None:
        return store.card(benchmark).rating, judge_prompts_of(benchmark)
    scheme = read_scheme(file)
    store.change_card(benchmark, lambda card: card.with_metrics(scheme.metrics).model_copy(update={"rating": scheme}))
    prompts = file.parent / "prompts"
    return scheme, prompts if prompts.is_dir() else None


def judge_prompts_of(benchmark: str) -> Path | None:
    """The folder of a benchmark's own prompts for judges, if it has one."""
    return reader_or_default(benchmark).judge_prompts


def refuse_unwritable(out: Path) -> None:
    """Raises where a file could not be written, before anything is paid for."""
    from proctor.core import InputError

    if out.is_dir():
        raise InputError(out, found="a folder", expected="a file to write")
    if not out.parent.is_dir():
        raise InputError(out.parent, found="no such folder", expected="a folder to write to")


def _own_judge(benchmark: str) -> str:
    """The name of the benchmark's own judge of dimensions, which an ensemble asks too."""
    from proctor.judges import rates_dimensions

    name = reader_or_default(benchmark).rubric_judge
    return name if name and rates_dimensions(name) else "rating-judge"


def _examples(judge: str, store: Store, benchmark: str, rated: str) -> Sequence[RatedCase]:
    """Rated answers to show as examples: of the store that is named, for few-shot-judge else of the one that is scored."""
    from proctor.runs import Store as Opened

    if not rated and judge != _FEW_SHOT:
        return ()
    return list(ratings_in(Opened(rated, create=False) if rated else store, benchmark)[1].values())


def _recorded(store: Store, benchmark: str, scheme: RatingScheme, images: Path | None) -> RecordedBy:
    from proctor.runs import scored_cases

    return lambda scorer: scored_cases(store, benchmark, scheme, scorer, images=images)


def _check_images(folder: Path | None) -> None:
    from proctor.core import InputError

    if folder is not None and not folder.is_dir():
        raise InputError(folder, found="no such folder", expected="the folder of images")


def _runs(store: Store, answers: Answers) -> list[Run]:
    from proctor.runs import BASELINES, chosen_runs

    runs = chosen_runs(store, answers.benchmark, answers.systems, answers.conditions)
    return runs if answers.systems else [run for run in runs if run.system not in BASELINES]


def _scored(
    store: Store,
    runs: Sequence[Run],
    scorer: Scorer,
    paid: PaidVotes,
    answers: Answers,
    how: How,
    rating: RatingOptions,
    setup: JudgeSetup | None,
) -> JudgeTally:
    from proctor.runs import JudgeLimits, judge_all

    limits = JudgeLimits(how.concurrency, most=rating.limit)

    async def judging() -> JudgeTally:
        try:
            with stopping() as stop, show_judging(0, paid) as update:
                return await judge_all(
                    store, runs, scorer, limits, all_items=answers.all_items, stop=stop, on_change=update
                )
        finally:
            if setup is not None:
                await setup.clients.aclose()

    return asyncio.run(judging())


def _tell(
    store: Store, answers: Answers, runs: Sequence[Run], scorer: Scorer, tally: JudgeTally, paid: PaidVotes, how: How
) -> None:
    from dataclasses import asdict

    from proctor.runs import rating_summary

    rows, breaks, flags = rating_summary(store, answers.benchmark, runs, scorer.name)
    if how.output is OutputFormat.JSON:
        counts = {"scored": tally.marked, "without_a_score": tally.unmarked, "left": tally.left}
        cost = {"new_votes": paid.count, "cost_usd": paid.usage.cost_usd if paid.count else 0.0}
        said = {"dimensions": [asdict(one) for one in rows], "rule_breaks": breaks, "flags": flags}
        print_json({"judge": scorer.name, "store": store.shown, **counts, **cost, **said})
        return
    print_table(
        f"Scores by {scorer.name} in {store.shown}",
        ["language", "dimension", ">scores", ">missing", ">mean", ">members apart"],
        [
            [
                *(one.language, one.dimension, str(one.scores), str(one.missing)),
                *("–" if value is None else f"{value:.2f}" for value in (one.mean, one.disagreement)),
            ]
            for one in rows
        ],
    )
    for what, found in (("broken rules", breaks), ("flags", flags)):
        listed = ", ".join(f"{name} {count}" for name, count in sorted(found.items()))
        if listed:
            note(f"{what}: {listed}")
    console.print(f"{tally.marked} answers scored by {scorer.name}", markup=False, highlight=False)
    if paid.count:
        console.print(f"{paid.count} new votes, {cost_of(paid.usage)}", markup=False, highlight=False)
