"""`proctor train`: judges and answerers that learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.api import AnswererOptions, BenchmarkName, BenchmarkSource, ClassifierOptions, StoreUrl
from proctor.cli.output import Output, OutputFormat, note, print_blocks, say, show
from proctor.cli.progress import show_steps
from proctor.core import Option


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
    dry_run: Annotated[bool, Option("Say what would be learned and how long it is; train nothing.")] = False,
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
        say(plan.measure())
        return
    made = plan.make()
    show(output, made.rows, *made.tables)
    note(*made.notes)
    if output is OutputFormat.TABLE:
        say(f"{made.data.weights}")
