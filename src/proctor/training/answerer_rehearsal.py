"""What the fine-tuning of an answerer would take, what it has to beat, and what its parts have in common, told before it
starts."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from proctor.core import NeedsReferences
from proctor.media import find_leaks, look_at_items
from proctor.metrics import code_scorers
from proctor.models import Weights
from proctor.runs import BASELINES, Contest, Limits, PlanOptions, Store, add_baselines, bucket_mean, execute, plan
from proctor.stats import Estimate, Resampling
from proctor.systems import Renamed, build_system
from proctor.training.answerer import AnswererTraining
from proctor.training.chat_examples import measure
from proctor.training.footprint import footprint

COMMONEST = "commonest-in-training"
"""The best constant answers of the training part, by format: what learning nothing of pictures earns."""
PICTURES = 16
"""So many pictures of each video are compared across the parts."""


@dataclass(frozen=True)
class AnswererRehearsal:
    """`lengths` of the examples and the `memory`, for people. `baselines` are the means over buckets of systems that
    never look, on the validation part, by name. `alike` are pairs of media, one of each part, that look the same."""

    lengths: str
    memory: str
    baselines: dict[str, Estimate]
    alike: tuple[tuple[str, str], ...]


def rehearse_answerer(what: AnswererTraining) -> AnswererRehearsal:
    """Trains nothing, and loads no weights, only their form. Raises `InputError` for examples that are longer than the
    base reads."""
    client = what.client()
    weights = Weights(client.name, str(what.base), what.lora.device, what.lora.dtype)
    try:
        weights.load(empty=True)
        lengths = measure(weights, what.examples(client))
    finally:
        asyncio.run(client.aclose())
    memory = footprint(weights, lengths, what.lora).told()
    return AnswererRehearsal(lengths.told(), memory, _without_looking(what), alike_across(what))


def alike_across(what: AnswererTraining) -> tuple[tuple[str, str], ...]:
    """The pairs of media that look the same, the surest first: of the training part and of the validation part. Media
    that are the same file are refused elsewhere; what is cut or begins otherwise may be missed."""
    training, validation = (
        look_at_items(part.counted(), what.library, PICTURES)[0] for part in (what.training, what.validation)
    )
    return tuple((leak.first.source, leak.second.source) for leak in find_leaks(training, validation))


def _without_looking(what: AnswererTraining) -> dict[str, Estimate]:
    benchmark = what.validation
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "baselines.db")
        try:
            store.add_benchmark(benchmark)
            asyncio.run(_answered(what, store))
            known = {run.system for run in store.runs(benchmark.name)}
            drawn = Resampling(draws=what.draws, seed=what.seed)
            return {
                name: bucket_mean(store, benchmark.name, Contest("text-only", (name,)), drawn)
                for name in (COMMONEST, *BASELINES)
                if name in known
            }
        finally:
            store.close()


async def _answered(what: AnswererTraining, store: Store) -> None:
    benchmark, commonest = what.validation, build_system("majority")
    scorers = code_scorers(benchmark)
    await add_baselines(store, benchmark, scorers, seed=what.seed)
    if isinstance(commonest, NeedsReferences):
        commonest.learn(what.training.counted())
    if any(commonest.supports(item) for item in benchmark.counted()):
        asked = [Renamed(commonest, COMMONEST)]
        options = PlanOptions(seed=what.seed)
        planned = plan(store, benchmark, asked, ["text-only"], what.library, scorers=scorers, options=options)
        await execute(store, planned, Limits())
