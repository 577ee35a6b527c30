"""`proctor train`: judges and answerers that learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.api import (
    AnswererOptions,
    BenchmarkName,
    BenchmarkSource,
    ClassifierOptions,
    GenerativeOptions,
    ParityOptions,
    StoreUrl,
)
from proctor.cli.output import Output, OutputFormat, note, print_blocks, say, show
from proctor.cli.progress import at_work, show_steps
from proctor.core import InputError, Option, count_of


def classifier_judge(
    benchmark: BenchmarkName,
    out: Annotated[Path, Option("The folder of the training; the same call goes on with it.")],
    options: ClassifierOptions,
    store: StoreUrl = None,
) -> None:
    """Train a classifier on people's ratings.

    An encoder with a head for each dimension, from several seeds. First figures on encounters that are left out in turn,
    then the judge that learns from all of them: proctor score BENCHMARK --judge classifier-judge:OUT/judge.

    Example: proctor train classifier-judge mediqa-eval --references --out classifier --store runs.db
    """
    from proctor import api

    opened = api.open_store(store, create=False)
    with show_steps("training", 1) as on_change:
        options["on_change"] = on_change
        made = api.train_classifier_judge(opened, benchmark, out=out, **options)
    print_blocks(*made.tables)
    note(*made.notes)
    say(made.done)


def answerer(
    benchmark: BenchmarkSource,
    options: AnswererOptions,
    base: Annotated[Path, Option("The folder of the weights to fine-tune.")],
    out: Annotated[Path, Option("A new folder, or that of a training to go on with.")],
    dry_run: Annotated[bool, Option("Tell lengths, memory and what is to beat; train nothing.")] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Fine-tune a model on a benchmark.

    It is asked with the same prompt, pictures and times as proctor run asks, and examined by it after each epoch on a
    validation part without a video of the training part. The best checkpoint is kept. Run the same command again to go
    on after a stop.

    Example: proctor train answerer focus --data training --media videos --base llava --out tuned
    """
    from proctor import api

    plan = api.arrange_answerer(benchmark, base, out, **options)
    note(*plan.notes)
    if dry_run:
        told = plan.rehearse()
        show(output, told.rows, *told.tables)
        note(*told.notes)
        return
    made = plan.make()
    show(output, made.rows, *made.tables)
    note(*made.notes)
    if output is OutputFormat.TABLE:
        say(f"{made.data.weights}")


def generative_judge(
    benchmark: BenchmarkName,
    base: Annotated[Path, Option("The folder of the weights to fine-tune.")],
    out: Annotated[Path, Option("The folder of the training; the same call goes on with it.")],
    options: GenerativeOptions,
    dry_run: Annotated[bool, Option("Tell lengths, memory and what is to beat; train nothing.")] = False,
    store: StoreUrl = None,
) -> None:
    """Fine-tune a model to judge as people do.

    It learns to fill in all dimensions in one reply, with the prompt and pictures that it is later asked with. The
    checkpoint is chosen on encounters that it did not learn from, its agreement is that on others. Then: proctor score
    BENCHMARK --judge generative-judge:OUT.

    Example: proctor train generative-judge mediqa-eval --base qwen --out judge --store runs.db
    """
    from proctor import api

    opened = api.open_store(store, create=False)
    with at_work("training"):
        made = api.train_generative_judge(opened, benchmark, base=base, out=out, dry_run=dry_run, **options)
    print_blocks(*made.tables)
    note(*made.notes)
    say(made.done)


def check_parity(
    run: Annotated[Path, Option("The folder of a trained judge.", metavar="DIR", argument=True)], options: ParityOptions
) -> None:
    """Compare a trained judge along all its paths.

    Its scores of up to 50 items must be the same in the trainer's memory, with the adapter loaded again, merged, and
    served over HTTP, and others than its base's: an adapter that is not loaded, another chat template or tokenizer and
    lower precision are found. With --export the judge is written where others can use it, unless a path has a fault.

    Example: proctor train check-parity judge --export judge-for-others
    """
    from proctor import api

    with at_work("comparing"):
        checked = api.check_parity(run, **options)
    print_blocks(checked.table)
    note(*checked.faults)
    if checked.faults:
        raise InputError(
            run, found=count_of(len(checked.faults), "fault"), expected="the same judge on every path: no export"
        )
    say(f"the same judge on every path{f': {checked.exported}' if checked.exported else ''}")
