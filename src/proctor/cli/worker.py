"""`proctor worker`: open runs are joined, or a challenge's submissions run; and `proctor challenge rerun`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from proctor.api import WorkOptions
from proctor.cli.challenge import ChallengeFolder, ChallengeStore, ExecutorName
from proctor.cli.output import note, say
from proctor.cli.progress import stopping
from proctor.cli.serve import check_extra
from proctor.core import ConfigurationError, Option, count_of

if TYPE_CHECKING:
    from proctor.challenges import WorkPlan


def worker(
    options: WorkOptions,
    folder: Annotated[Path | None, Option("A challenge's folder.", metavar="DIR", argument=True)] = None,
    executor: ExecutorName = "podman",
    gpu: Annotated[str, Option("The GPU of a challenge's containers (CDI).")] = "nvidia.com/gpu=all",
) -> None:
    """Join open runs, or work for a challenge.

    Without DIR: joins the runs that somebody started with --share, and waits for more. Items, settings and prompts come
    from the store; what this machine lacks it says. With DIR: runs and marks submissions, as the user who may open
    DIR/sealed; the executor `process` takes files of answers alone.

    Start any number, on any number of machines. One that dies loses its lease: another one goes on with what is
    missing. Ctrl-C lets the question under way come in.

    Example: proctor worker --store postgresql+psycopg://proctor@db/runs --media videos
    """
    if folder is None:
        asyncio.run(_join(options))
        return
    check_extra("challenge")
    from proctor.challenges import WorkPlan

    store = options["store"] or os.environ.get("PROCTOR_CHALLENGE_STORE")
    plan = WorkPlan(folder, str(store) if store else None, executor, gpu, options["once"])
    count = asyncio.run(_work(plan))
    note(f"{count_of(count, 'submission')} taken")


async def _join(options: WorkOptions) -> None:
    """Works on a store's runs, and says how it ended."""
    from proctor import api

    with stopping() as stop:
        given: dict[str, Any] = {**options, "stop": stop, "said": note}
        worked = await api.work_async(**given)
    if worked.refused and not worked.runs:
        raise ConfigurationError("nothing could be joined (see above)")
    counts = [f"{count} {status.value}" for status, count in worked.tally.by_status.items() if count]
    say(f"Asked {worked.tally.done}: {', '.join(counts) or 'nothing was open'}")


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
    say(f"Scorer version {version}: {count_of(count, 'submission')} waiting for workers (proctor worker {folder})")
