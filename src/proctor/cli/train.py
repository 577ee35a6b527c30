"""`proctor train`: judges and answerers that learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.api import BenchmarkName, ClassifierOptions, StoreUrl
from proctor.cli.output import note, print_blocks, say
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
