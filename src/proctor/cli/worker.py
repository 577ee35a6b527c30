"""`proctor worker` and `proctor challenge rerun`: submissions are run and marked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from proctor.cli.challenge import ChallengeFolder, ChallengeStore, ExecutorName
from proctor.cli.output import note, say
from proctor.cli.progress import stopping
from proctor.cli.serve import check_extra
from proctor.core import Option

if TYPE_CHECKING:
    from proctor.challenges import WorkPlan


def worker(
    folder: ChallengeFolder,
    executor: ExecutorName = "podman",
    gpu: Annotated[str, Option("The GPU of its containers (CDI).")] = "nvidia.com/gpu=all",
    once: Annotated[bool, Option("Stop when nothing waits.", "--once")] = False,
    store: ChallengeStore = None,
) -> None:
    """Run and mark submissions of a challenge.

    Start one for each submission that should run at a time, on any number of machines, as the user who may open
    DIR/sealed. One that dies loses its lease: another one goes on with what is missing. Ctrl-C lets the question under
    way come in. The executor `process` takes files of answers alone.

    Example: proctor worker sponges --store postgresql+psycopg://scorer@db/sponges --gpu nvidia.com/gpu=0
    """
    check_extra("challenge")
    from proctor.challenges import WorkPlan

    plan = WorkPlan(folder, store, executor, gpu, once)
    count = asyncio.run(_work(plan))
    note(f"{count} submissions taken")


async def _work(plan: WorkPlan) -> int:
    from proctor.challenges import work_on

    with stopping() as stop:
        return await work_on(plan, stop, say)


def rerun(
    folder: ChallengeFolder, why: Annotated[str, Option("Why, for the record.")], store: ChallengeStore = None
) -> None:
    """Mark again what another scorer marked.

    After the code, the judge or the references changed, or a judge was away: workers mark by the scorer as it is now
    what has no result by it. Nothing is asked again. Boards stay as they are until all is marked.

    Example: proctor challenge rerun sponges --why "the key of q17 was wrong"
    """
    check_extra("challenge")
    from proctor.challenges import rerun as run

    version, count = run(folder, why, store)
    say(f"Scorer version {version}: {count} submissions wait for workers (proctor worker {folder})")
