"""`proctor score`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.judging import Answers, How, judge_answers, mark_rationales
from proctor.cli.media import MediaAsOption
from proctor.cli.models import BaseUrls, ModelOptions, PromptOption, Retries, Settings, Structured, Timeout
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
from proctor.cli.predicting import Marking, SimilarityOptions, mark_file
from proctor.cli.results import DEFAULT_STORE

__all__ = ["score"]

BERTSCORE = "bertscore"
"""In the place of a judge: texts are held against texts."""


class Invalid(StrEnum):
    """How an order counts that misses, repeats or invents a label."""

    WRONG = "wrong"
    PARTIAL = "partial"


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
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME [KEY=VALUE …]",
            help="The model that judges, provider:name, with settings of its own; several make a panel.",
            show_default=False,
        ),
    ] = None,
    fallback: Annotated[
        list[str] | None,
        typer.Option(
            "--fallback-model",
            metavar="NAME [KEY=VALUE …]",
            help="Judges what the others leave unresolved.",
            show_default=False,
        ),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            help="A judge (proctor list judges), or bertscore: rationales held against the references', without a model. "
            "[default: the benchmark's own]",
            show_default=False,
        ),
    ] = "",
    store: StoreUrl = DEFAULT_STORE,
    systems: Systems = None,
    conditions: Conditions = None,
    base_urls: BaseUrls = None,
    settings: Settings = None,
    timeout: Timeout = 180.0,
    retries: Retries = 6,
    structured: Structured = "auto",
    prompt: PromptOption = "",
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Answers judged at once.")] = 8,
    media: Annotated[
        Path | None,
        typer.Option("--media", help="Where the frames lie that a judge is to see.", show_default=False),
    ] = None,
    media_as: MediaAsOption = None,
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
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            help="The encoder of BERTScore, a folder or a model's id. [default: all-MiniLM-L6-v2]",
            show_default=False,
        ),
    ] = "",
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer",
            help="The encoder's layer. [default: the known best]",
            show_default=False,
        ),
    ] = None,
    rescale: Annotated[
        str,
        typer.Option(
            "--rescale",
            metavar="FILE|LANGUAGE",
            help="A baseline file for BERTScore, or the language of one of bert-score's own.",
            show_default=False,
        ),
    ] = "",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="With PREDICTIONS: an answer that is missing or not valid ends it with an error."
        ),
    ] = False,
    invalid: Annotated[
        Invalid,
        typer.Option("--invalid", help="With PREDICTIONS: how invalid orders count."),
    ] = Invalid.WRONG,
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
        if models or judge:
            raise typer.BadParameter("a file of predictions is marked by code", param_hint="--model")
        weights = {"alpha": alpha, "beta": beta}
        mark_file(
            benchmark,
            predictions,
            Marking(
                references,
                weights,
                draws,
                seed,
                strict,
                output,
                SimilarityOptions(encoder, layer, rescale),
                invalid.value,
            ),
        )
        return
    answers = Answers(store, benchmark, tuple(systems or ()), tuple(conditions or ()), all_items)
    how = How(judge, concurrency, draws, seed, output, media, prompt, media_as)
    if prompt and judge == BERTSCORE:
        raise typer.BadParameter("BERTScore asks no model", param_hint="--prompt")
    if judge == BERTSCORE:
        mark_rationales(answers, SimilarityOptions(encoder, layer, rescale), how)
        return
    if not models:
        raise typer.BadParameter("needed to judge the answers of a store", param_hint="--model")
    options = ModelOptions(None, tuple(settings or ()), timeout, retries, structured)
    clients = options.clients([*models, *(fallback or ())], base_urls or ())
    how = replace(how, fallback=clients[len(models) :])
    judge_answers(answers, clients[: len(models)], how)
