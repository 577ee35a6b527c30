"""`proctor judge fit` and `judge compare`, and `proctor train`: fit, compare and train judges; fine-tune answerers."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from proctor.cli import (
    Output,
    OutputFormat,
    at_work,
    cost_of,
    print_blocks,
    print_line,
    print_note,
    show,
    show_steps,
    show_trials,
    spent,
    watched,
)
from proctor.core import Option, Usage, UsageError, count_of, output_file
from proctor.shell import BenchmarkName, BenchmarkSource, GridOptions, StoreUrl, declared
from proctor_train.answerer_training import AnswererOptions
from proctor_train.judge_comparison import AgreementOptions
from proctor_train.judge_fit import FitMethod, FitOptions
from proctor_train.judge_training import ClassifierOptions, GenerativeOptions

if TYPE_CHECKING:
    from proctor.shell import JudgeGrid
    from proctor_train.judge_fit import FittedJudge


def fit(
    benchmark: BenchmarkName,
    method: Annotated[
        FitMethod,
        Option(
            "calibration: curves for a judge's scores; choice: the best scorer of each dimension; examples: few-shot "
            "examples for a model; pipeline: weights of encoders' signals; embedded: a judge that asks none."
        ),
    ],
    out: Annotated[Path, Option("The result to be written: a JSON file; of embedded a new folder.")],
    options: FitOptions,
    store: StoreUrl = None,
) -> None:
    """Fit a judge to people's ratings.

    The result is used by logprob-judge with calibration=FILE, per-dimension with choice=FILE, few-shot-judge with
    examples=FILE, local-pipeline with fit=FILE, or embedded:FOLDER. An encounter that was used for fitting is later
    judged by what was learned without it, and performance is reported on held-out encounters.

    With examples, the model is asked sets × held-out times in each language; the number is shown before it starts.

    Example: proctor judge fit mediqa-eval --method choice --out choice.json --store runs.db
    """
    import proctor_train
    from proctor import api

    opened = api.open_store(store, create=False)
    prepared = proctor_train.prepare_fit(opened, benchmark, method, out, **options)
    print_note(*prepared.notes)
    paid = prepared.paid

    async def fitting() -> FittedJudge:
        if paid is None:
            return await prepared.make(None, lambda _: None)
        return await watched(prepared.make, show_trials(prepared.calls, paid))

    made = asyncio.run(fitting())
    print_blocks(*made.tables)
    print_note(*made.notes)
    print_line(made.done)
    print_note(*(f"{line}, kept in {opened.shown}" for line in (spent(paid) if paid is not None else ())))


class JudgeComparison(AgreementOptions, GridOptions, total=False):
    """The options of `proctor judge compare`: those of `judge_agreement`, or with a model those of `judge_grid`."""


def compare(
    benchmark: BenchmarkName,
    options: JudgeComparison,
    out: Annotated[Path | None, Option("Also write everything as JSON, with intervals.")] = None,
    store: StoreUrl = None,
) -> None:
    """Compare judges, or settings of one judge.

    Compares all metrics on text, the embedded judge (out of fold), scorers of the store, and mixtures of them with
    people's ratings, as leads over chosen metrics: by dimension, between and within encounters, with bounds. Scorers
    trained on these ratings are shown with out-of-fold scores. It takes minutes.

    With --model, runs the benchmark's own judge under every combination of prompt, references, reason, images and
    documents instead: each combination's lead over the first, and the effect of each factor. Each combination is a
    scorer of the store, so a second call repeats no request.

    Example: proctor judge compare mediqa-eval --curve --keep compared --out compared.json --store runs.db
    """
    if options["model"]:
        if out is not None:
            raise UsageError("--out writes the comparison of all judges. Leave it or --model out.")
        _compare_settings(benchmark, _part(options, GridOptions, AgreementOptions, "--model"), store)
        return
    import proctor_train
    from proctor import api

    chosen: Any = _part(options, AgreementOptions, GridOptions, "a comparison without --model")
    if out is not None:
        output_file(out, (".json",))
    opened = api.open_store(store, create=False)
    with at_work("learning and comparing"):
        found = proctor_train.judge_agreement(opened, benchmark, **chosen)
        tables = found.tables
    print_blocks(*tables, apart=True)
    print_note(*found.notes)
    for name, ahead in found.ahead.items():
        print_note(f"Ahead of {name} by the adjusted test: {', '.join(ahead) or 'nothing'}")
    if out is not None:
        print_line(f"written to {found.write(out)}")


def _part(given: Any, kind: Any, other: Any, what: str) -> Any:
    """The options of one kind. Raises `UsageError` for one of the other kind."""
    own, strange = declared(kind), declared(other)
    for name, (_, option) in strange.items():
        if name not in own and option.help and given[name] != option.default:
            raise UsageError(f"{what} does without {option.name or '--' + name.replace('_', '-')}. Leave it out.")
    return {name: value for name, value in given.items() if name in own}


def _compare_settings(benchmark: str, options: GridOptions, store: StoreUrl) -> None:
    from proctor import api

    opened = api.open_store(store, create=False)

    async def asked(stop: asyncio.Event, on_change: Any) -> JudgeGrid:
        how: GridOptions = {**options, "stop": stop, "on_change": on_change}
        return await api.judge_grid_async(opened, benchmark, **how)

    with at_work("judging"):
        found = asyncio.run(watched(asked, nullcontext(lambda _: None)))
    print_blocks(*found.tables, apart=True)
    count, usage = sum(cell.judgements for cell in found.cells), sum((cell.usage for cell in found.cells), Usage())
    print_note(
        f"{count_of(count, 'new judgement')}, {cost_of(usage)}, kept in {opened.shown}"
        if count or usage.requests
        else "no new judgements"
    )


def classifier_judge(
    benchmark: BenchmarkName,
    out: Annotated[Path, Option("The folder of the training; the same call continues it.")],
    options: ClassifierOptions,
    store: StoreUrl = None,
) -> None:
    """Train a classifier on people's ratings.

    Trains an encoder with a head for each dimension, from several seeds: first with cross-validation over encounters,
    then on all of them. Use the judge by proctor score BENCHMARK --judge classifier-judge:OUT/judge.

    Example: proctor train classifier-judge mediqa-eval --references --out classifier --store runs.db
    """
    import proctor_train
    from proctor import api

    opened = api.open_store(store, create=False)
    with show_steps("training", 1) as on_change:
        options["on_change"] = on_change
        made = proctor_train.train_classifier_judge(opened, benchmark, out=out, **options)
    print_blocks(*made.tables)
    print_note(*made.notes)
    print_line(made.done)


def answerer(
    benchmark: BenchmarkSource,
    options: AnswererOptions,
    base: Annotated[Path, Option("The folder of the weights to fine-tune.")],
    out: Annotated[Path, Option("A new folder, or that of a training to continue.")],
    dry_run: Annotated[bool, Option("Report lengths, memory and baselines; train nothing.")] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Fine-tune a model on a benchmark.

    Training uses the same prompt, pictures and times as proctor run. After each epoch, the checkpoint is evaluated on a
    validation part that shares no video with the training part. The best checkpoint is kept. Run the same command again
    to continue after a stop.

    Example: proctor train answerer focus --data training --media videos --base llava --out tuned
    """
    import proctor_train

    plan = proctor_train.arrange_answerer(benchmark, base, out, **options)
    print_note(*plan.notes)
    if dry_run:
        told = plan.rehearse()
        show(output, told.rows, *told.tables)
        print_note(*told.notes)
        return
    made = plan.make()
    show(output, made.rows, *made.tables)
    print_note(*made.notes)
    if output is OutputFormat.TABLE:
        print_line(f"{made.data.weights}")


def generative_judge(
    benchmark: BenchmarkName,
    base: Annotated[Path, Option("The folder of the weights to fine-tune.")],
    out: Annotated[Path, Option("The folder of the training; the same call continues it.")],
    options: GenerativeOptions,
    dry_run: Annotated[bool, Option("Report lengths, memory and baselines; train nothing.")] = False,
    store: StoreUrl = None,
) -> None:
    """Fine-tune a model to judge as people do.

    It learns to fill in all dimensions in one reply, with the prompt and pictures that it is later asked with. The
    checkpoint is chosen on encounters that it did not learn from, its agreement is that on others. Then: proctor score
    BENCHMARK --judge generative-judge:OUT.

    Example: proctor train generative-judge mediqa-eval --base qwen --out judge --store runs.db
    """
    import proctor_train
    from proctor import api

    opened = api.open_store(store, create=False)
    with at_work("training"):
        made = proctor_train.train_generative_judge(opened, benchmark, base=base, out=out, dry_run=dry_run, **options)
    print_blocks(*made.tables)
    print_note(*made.notes)
    print_line(made.done)
