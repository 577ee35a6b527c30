"""A worker and a rerun for the shell: the folder opened, the executor chosen by name, all closed at the end."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proctor.challenges.challenge import Challenge
from proctor.challenges.queue import KINDS
from proctor.challenges.rerun import rerun_all
from proctor.challenges.scorer import ScorerProcess
from proctor.challenges.sealed import SealedPart
from proctor.challenges.settings import Kind
from proctor.challenges.worker import Worker
from proctor.containers import Executor, executor_of
from proctor.core import ConfigurationError
from proctor.runs import delete_runs, revise_benchmark

_ASKED = "order_seed"  # a setting of runs that the engine asked in a submission's own order


@dataclass(frozen=True)
class WorkPlan:
    """How a worker works: `process` takes files of answers alone, since it could not keep an uploaded image away from
    the machine; `once` ends it when nothing waits."""

    folder: Path
    store: str | None = None
    executor: str = "podman"
    gpu: str = "nvidia.com/gpu=all"
    once: bool = False


async def work_on(plan: WorkPlan, stop: asyncio.Event, said: Callable[[str], None]) -> int:
    """Works for a challenge until it is told to stop; how many submissions it had. Raises `InputError` for a folder
    that does not fit or can't be opened, `ConfigurationError` without the executor's program, `ScorerChangedError`."""
    executor, kinds = executor_named(plan.executor)
    challenge = Challenge.open(plan.folder, "worker", store=plan.store)
    scorer = ScorerProcess(plan.folder, plan.store)
    try:
        worker = Worker(challenge, executor, scorer, kinds, gpu=plan.gpu, said=said)
        return await worker.work(stop, once=plan.once)
    finally:
        scorer.close()
        challenge.close()


def rerun(folder: Path, why: str, store: str | None = None) -> tuple[int, int]:
    """Has all submissions that this program's scorer has not marked marked by it; its version, and how many wait.
    References that were corrected come into the stores of answers, and files are read again. Workers of the former
    version end."""
    scorer, challenge = ScorerProcess(folder, store), Challenge.open(folder, "organiser", store=store)
    try:
        fingerprint = asyncio.run(scorer.fingerprint())
        for phase in challenge.settings.phases:
            _bring_up_to_date(challenge.sealed, phase.name)
        with challenge.writing() as connection:
            return rerun_all(connection, fingerprint, why, challenge.now())
    finally:
        scorer.close()
        challenge.close()


def _bring_up_to_date(sealed: SealedPart, phase: str) -> None:
    """Corrected references into the store of a phase. Only what was asked stays: answers of files are read again, since
    how a reader takes them may have changed, and baselines that were told the references answer again."""
    benchmark = sealed.benchmark(phase)
    with sealed.store(phase) as store:
        if benchmark.name in store.benchmark_names():
            delete_runs(store, [one for one in store.runs(benchmark.name) if _ASKED not in one.settings])
            revise_benchmark(store, benchmark)


def executor_named(name: str) -> tuple[Executor, tuple[Kind, ...]]:
    """An executor, and which submissions it can run. Raises `UsageError` for an unknown name, and `ConfigurationError`
    where its program is not there."""
    executor = executor_of(name)
    if name == "process":
        return executor, ("file",)
    if shutil.which(name) is None:
        raise ConfigurationError(f"found no {name}, expected it in PATH; --executor process takes answer files alone")
    return executor, KINDS
