"""`proctor challenge try` and `proctor challenge doctor`: an image, and a machine, tried before it counts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from proctor.api import Seed
from proctor.cli.challenge import ExecutorName
from proctor.cli.output import Output, OutputFormat
from proctor.cli.plugins import show_plugin_report
from proctor.cli.progress import at_work
from proctor.core import Option, UsageError


def try_image(
    image: Annotated[str, Option("An image, or an archive of one.", metavar="IMAGE", argument=True)],
    folder: Annotated[Path, Option("A challenge's public folder.", metavar="DIR", argument=True)],
    phase: Annotated[str, Option("Whose questions. [default: the first public ones]")] = "",
    benchmark: Annotated[str, Option("Which, where DIR holds its own files.")] = "",
    track: Annotated[str, Option("A track of the benchmark.")] = "",
    media: Annotated[Path | None, Option("The folder with videos or images.")] = None,
    limit: Annotated[int | None, Option("Ask the first questions only.", low=1)] = None,
    gpu: Annotated[str, Option("A GPU by its CDI name.", metavar="DEVICE")] = "",
    executor: ExecutorName = "podman",
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Try an image as the challenge runs it.

    On public questions, with the same gateway, deadlines and limits, and without a network. What it prints is shown.
    With --executor process IMAGE is a program, which nothing keeps away from this machine.

    Example: proctor challenge try my-algorithm my-challenge --limit 20
    """
    from proctor.challenges import Trial
    from proctor.challenges import try_image as tried
    from proctor.containers import executor_of

    trial = Trial(folder, phase, benchmark, track, media, limit, seed, gpu or None)
    with at_work("asking"):
        report = asyncio.run(tried(trial, executor_of(executor), image))
    show_plugin_report(report, output)


def doctor(
    folder: Annotated[Path | None, Option("The challenge whose limits count.", metavar="[DIR]", argument=True)] = None,
    gpu: Annotated[str, Option("A GPU by its CDI name.", metavar="DEVICE")] = "",
    executor: ExecutorName = "podman",
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check that this machine can run images.

    Starts containers and tries from inside what they must not be able to do: rights, network, files, and each limit;
    measures the way of a question and the deadlines. Exit code 1 where something fails.

    Example: proctor challenge doctor my-challenge
    """
    from proctor.challenges import examine_machine
    from proctor.containers import executor_of

    if executor == "process":
        raise UsageError("--executor", "podman or docker: a process has no limits to check", found="'process'")
    with at_work("trying"):
        report = asyncio.run(examine_machine(executor_of(executor), folder, gpu or None))
    show_plugin_report(report, output)
