"""`proctor score`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from proctor.cli.rating import RatingOptions, read_pairs, score_by_dimension, score_by_text
from proctor.cli.results import DEFAULT_STORE
from proctor.core import reader_of

if TYPE_CHECKING:
    from proctor.models import ModelSpec

BERTSCORE = "bertscore"
"""In the place of a judge: texts are compared with texts."""


class Invalid(StrEnum):
    """How an order counts that misses, repeats or invents a label."""

    WRONG = "wrong"
    PARTIAL = "partial"


def score(
    benchmark: BenchmarkName,
    predictions: Annotated[
        Path | None,
        typer.Argument(
            metavar="PREDICTIONS", help="A file of predictions to mark by code, instead of a store.", show_default=False
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
            help="A judge (proctor list judges), or bertscore: rationales compared with the references', without a model. "
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
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="The judge's own: quorum=2, documents=FOLDER, calibration=FILE.",
            show_default=False,
        ),
    ] = None,
    dimensions: Annotated[
        Path | None,
        typer.Option(
            "--dimensions", help="A file (YAML) of dimensions to rate. [default: the benchmark's]", show_default=False
        ),
    ] = None,
    rated: Annotated[
        str,
        typer.Option(
            "--rated",
            help="The store with rated answers to show as few-shot examples. [default for few-shot-judge: --store]",
            show_default=False,
        ),
    ] = "",
    text_metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--text-metric",
            help="Score by this metric on text (all: by every one), without a model; may be repeated.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Judges of dimensions: only the first answers, for a trial.")
    ] = None,
    media: Annotated[
        Path | None,
        typer.Option("--media", help="Where the frames or images lie that a judge is to see.", show_default=False),
    ] = None,
    media_as: MediaAsOption = None,
    all_items: AllItems = False,
    references: Annotated[
        Path | None, typer.Option("--references", help="With PREDICTIONS: the right answers.", show_default=False)
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha", help="With PREDICTIONS: weight of exact orders (clinicalskillqa: 0.7).", show_default=False
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
        int | None, typer.Option("--layer", help="The encoder's layer. [default: the known best]", show_default=False)
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
        Invalid, typer.Option("--invalid", help="With PREDICTIONS: how invalid orders count.")
    ] = Invalid.WRONG,
    draws: Draws = 2000,
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Score stored answers by judges or metrics.

    A judge's replies are kept, so none is paid twice. A judge of dimensions rates on those that the benchmark, or a
    file, declares.

    The baselines (text-similarity answers free text) are judged only where --system names them.

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
    if text_metrics:
        score_by_text(answers, text_metrics, how)
        return
    name = _judge(benchmark, judge)
    options = ModelOptions(None, tuple(settings or ()), timeout, retries, structured)
    if not judge and not models:
        raise typer.BadParameter("name a model, or a judge that needs none: embedded:DIR", param_hint="--model")
    specs = options.specs([*(models or ()), *(fallback or ())], base_urls or ())
    rating = RatingOptions(read_pairs(option or ()), dimensions, rated, limit)
    _score(answers, specs, len(models or ()), replace(how, judge=name), rating, options)


def _score(
    answers: Answers, specs: Sequence[ModelSpec], judges: int, how: How, rating: RatingOptions, options: ModelOptions
) -> None:
    """By the judge that is named, whichever kind it is; the models after the first `judges` ones are fallbacks."""
    from proctor.judges import rates_dimensions

    if rates_dimensions(how.judge.partition(":")[0]):
        if len(specs) > judges:
            raise typer.BadParameter("a judge of dimensions has none", param_hint="--fallback-model")
        score_by_dimension(answers, specs, how, rating)
        return
    if rating != RatingOptions():
        taken = "--option, --dimensions, --rated and --limit"
        raise typer.BadParameter("they are for judges of dimensions", param_hint=taken)
    if not judges:
        raise typer.BadParameter("needed to judge the answers of a store", param_hint="--model")
    clients = [options.opened_client(one) for one in specs]
    judge_answers(answers, clients[:judges], replace(how, fallback=clients[judges:]))


def _judge(benchmark: str, judge: str) -> str:
    """The judge's name, or that of the benchmark's own."""
    name = judge or reader_of(benchmark).rubric_judge
    if name is None:
        raise typer.BadParameter(f"{benchmark} names no judge of its own", param_hint="--judge")
    return name
