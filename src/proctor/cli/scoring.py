"""`proctor score`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.models import BaseUrl, ModelOptions, Retries, Settings, Structured, Timeout
from proctor.cli.options import (
    AllItems,
    BenchmarkName,
    Conditions,
    Draws,
    Output,
    OutputFormat,
    Seed,
    StoreUrl,
    Systems,
)
from proctor.cli.output import console, note
from proctor.cli.predicting import Marking, mark_file
from proctor.cli.progress import show_judging, stopping
from proctor.cli.results import DEFAULT_STORE

if TYPE_CHECKING:
    from proctor.models import ModelClient

__all__ = ["score"]

UNMARKED_EXIT = 3


def score(
    benchmark: BenchmarkName,
    predictions: Annotated[
        Path | None,
        typer.Argument(
            metavar="PREDICTIONS",
            help="A file of predictions to mark by code, instead of a store.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="The model that judges, provider:name.", show_default=False)
    ] = "",
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            help="A judge (proctor list judges). [default: the benchmark's own]",
            show_default=False,
        ),
    ] = "",
    store: StoreUrl = DEFAULT_STORE,
    systems: Systems = None,
    conditions: Conditions = None,
    base_url: BaseUrl = None,
    settings: Settings = None,
    timeout: Timeout = 180.0,
    retries: Retries = 6,
    structured: Structured = "auto",
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Answers judged at once.")] = 8,
    all_items: AllItems = False,
    references: Annotated[
        Path | None,
        typer.Option("--references", help="With PREDICTIONS: the right answers.", show_default=False),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            help="With PREDICTIONS: weight of exact orders (clinicalskillqa: 0.7).",
            show_default=False,
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(
            "--beta",
            help="With PREDICTIONS: weight of orders against rationales (clinicalskillqa: 0.8).",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="With PREDICTIONS: an answer that is missing or not valid ends it with an error."
        ),
    ] = False,
    draws: Draws = 2000,
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """A judge marks the answers that code can't; votes are kept, so none is ever paid twice.

    The floor's systems (text-similarity answers free text) are judged only where --system names them.

    With PREDICTIONS, code marks that file against --references instead; no store and no model are needed.

    Example: proctor score rexsonovqa --store runs.db --model openai:gpt-5.2
    """
    if predictions is not None:
        if model or judge:
            raise typer.BadParameter("a file of predictions is marked by code", param_hint="--model")
        weights = {"alpha": alpha, "beta": beta}
        mark_file(benchmark, predictions, Marking(references, weights, draws, seed, strict, output))
        return
    if not model:
        raise typer.BadParameter("needed to judge the answers of a store", param_hint="--model")
    options = ModelOptions(base_url, tuple(settings or ()), timeout, retries, structured)
    answers = Answers(store, tuple(systems or ()), tuple(conditions or ()), all_items)
    _judge(benchmark, judge, options.client, model, answers, concurrency)


@dataclass(frozen=True)
class Answers:
    """Which answers of a store are judged."""

    store: str
    systems: tuple[str, ...]
    conditions: tuple[str, ...]
    all_items: bool


def _judge(
    benchmark: str,
    judge: str,
    client: Callable[[str], ModelClient],
    model: str,
    answers: Answers,
    concurrency: int,
) -> None:
    from proctor.benchmarks import BENCHMARKS
    from proctor.judges import JUDGES
    from proctor.runs import FLOOR, JudgeTally, Store, chosen_runs, judge_all

    name = judge or BENCHMARKS.get(benchmark).rubric_judge()
    if name is None:
        raise typer.BadParameter(f"{benchmark} names no judge of its own", param_hint="--judge")
    opened = Store(answers.store, create=False)
    scorer = JUDGES.get(name)(client(model), opened)
    runs = chosen_runs(opened, benchmark, answers.systems, answers.conditions)
    if not answers.systems:
        runs = [run for run in runs if run.system not in FLOOR]  # nobody pays a judge for the floor unasked
    opened.declare_metrics(benchmark, scorer.metrics)

    async def judging() -> JudgeTally:
        with stopping() as stop, show_judging(0) as update:
            return await judge_all(
                opened,
                runs,
                scorer,
                all_items=answers.all_items,
                concurrency=concurrency,
                stop=stop,
                on_change=update,
            )

    tally = asyncio.run(judging())
    console.print(
        f"{tally.marked} answers marked by {scorer.name} in {opened.shown}", markup=False, highlight=False
    )
    left = tally.total - tally.marked
    if left:
        note(f"{left} answers have no mark ({tally.last_reason or 'stopped'}): run the same command again.")
        raise typer.Exit(UNMARKED_EXIT)
