"""Workers that share a run: `proctor worker`, and the workers that `proctor run` starts."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from proctor.cli.output import ATTACHED, print_line, print_note, show_asking, stopping
from proctor.core import ConfigurationError, Option, Status, count_of, extension
from proctor.shell import WorkOptions

if TYPE_CHECKING:
    from proctor.runs import Outcome, Tally
    from proctor.shell import PreparedRun, StoredRuns

_LOOK_S = 0.5

_FINE = {0, 3, 130}  # done, some answers failed, stopped by hand


def shared_command(words: Sequence[str], count: int = 1) -> list[str]:
    """The command line of each of `count` workers of a run: each may spend an equal part of --max-cost.

    >>> shared_command(["run", "focus", "--workers", "4", "--store", "runs.db", "--workers=2"])
    ['run', 'focus', '--store', 'runs.db', '--share']
    >>> shared_command(["run", "focus", "--max-cost", "5", "--share"], 4)
    ['run', 'focus', '--max-cost', '1.25', '--share']
    """
    kept, former = [], ""
    for word in words:
        name, equals, value = word.partition("=")
        if former == "--max-cost" or (name == "--max-cost" and equals):
            part = f"{float(value if equals else word) / count:g}"
            kept.append(f"--max-cost={part}" if equals else part)
        elif former != "--workers" and name != "--workers":
            kept.append(word)
        former = word
    return kept if "--share" in kept else [*kept, "--share"]


async def ask_with_workers(prepared: PreparedRun, count: int) -> StoredRuns:
    """Start worker processes, show progress from the store, and return the result. The first Ctrl-C completes running
    requests. Raises `ConfigurationError` with the error of the first worker that failed."""
    before, begun = _counts(prepared), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="proctor-") as folder, show_asking(prepared.plan.to_ask) as update:
        logs = [Path(folder) / f"{number}.log" for number in range(count)]
        with stopping() as stop:
            workers = [await _started(log, count) for log in logs]
            try:
                while not await _ended(workers):
                    update(_tally(prepared, before, begun))
                    if stop.is_set():
                        _signal(workers, signal.SIGTERM)
                        await asyncio.gather(*(one.wait() for one in workers))
            finally:  # at the second Ctrl-C
                _signal(workers, signal.SIGKILL)
        codes = [await one.wait() for one in workers]
        told = [log.read_text("utf-8", "replace").strip() for log in logs]
    tally = _tally(prepared, before, begun)
    _report_workers(codes, told, asked=bool(tally.done))
    return prepared.stored_runs(_outcome(prepared, tally))


def _report_workers(codes: Sequence[int], told: Sequence[str], *, asked: bool) -> None:
    """Note which workers ended early, and why. Raises `ConfigurationError` if one says why nothing was `asked`."""
    broken = [(code, text) for code, text in zip(codes, told, strict=True) if code not in _FINE]
    killed = [code for code, _ in broken if code < 0]
    said = [text.splitlines()[-1] for code, text in broken if code > 0 and text]
    if said and not asked:
        raise ConfigurationError(said[0].removeprefix("proctor: "))
    print_note(*dict.fromkeys(f"a worker ended: {line}" for line in said))
    print_note(*(f"a worker {line}" for text in told for line in text.splitlines() if line.startswith("stopped ")))
    print_note(*([f"workers killed: {len(killed)} of {len(codes)}; the others went on"] if killed else []))


async def ask_on_ray(prepared: PreparedRun, count: int, address: str) -> StoredRuns:
    """The same with actors of the Ray cluster at `address`, or ("") of a local one."""
    from proctor.shell import RayWorkers, worker_options

    before, begun = _counts(prepared), time.monotonic()
    if not prepared.plan.to_ask:
        return prepared.stored_runs(_outcome(prepared, _tally(prepared, before, begun)))
    with show_asking(prepared.plan.to_ask) as update:
        workers = RayWorkers(count, address, worker_options(prepared), gpu=prepared.arranged.needs_gpu)
        try:
            with stopping() as stop:

                def settled() -> bool:
                    update(tally := _tally(prepared, before, begun))
                    return tally.remaining <= 0

                await workers.wait(settled, stop)
        finally:
            await asyncio.to_thread(workers.close)
    tally = _tally(prepared, before, begun)
    refused = [line for line in dict.fromkeys(workers.reports) if line.startswith("not joined")]
    if refused and not tally.done:
        raise ConfigurationError(refused[0])
    print_note(*refused, *([f"workers lost: {workers.lost}; others went on"] if workers.lost else []))
    return prepared.stored_runs(_outcome(prepared, tally))


def _counts(prepared: PreparedRun) -> dict[int, dict[Status, int]]:
    return {run.id: prepared.store.count_by_status(run) for run in prepared.plan.runs}


def _outcome(prepared: PreparedRun, tally: Tally) -> Outcome:
    from proctor.runs import Outcome

    failed = sum(prepared.store.count_answers(run)[1] for run in prepared.plan.runs)
    return Outcome(tally, failed, tally.remaining)


async def _started(log: Path, count: int) -> asyncio.subprocess.Process:
    with log.open("wb") as file:
        command = [sys.executable, "-m", "proctor", *shared_command(sys.argv[1:], count)]
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env={**os.environ, ATTACHED: "1"},
        )


async def _ended(workers: Sequence[asyncio.subprocess.Process]) -> bool:
    """Wait a moment. Returns whether all have ended."""
    waits = [asyncio.ensure_future(one.wait()) for one in workers]
    _, pending = await asyncio.wait(waits, timeout=_LOOK_S)
    for one in pending:
        one.cancel()
    return not pending


def _signal(workers: Sequence[asyncio.subprocess.Process], number: signal.Signals) -> None:
    for one in workers:
        if one.returncode is None:
            with suppress(ProcessLookupError):
                one.send_signal(number)


def _tally(prepared: PreparedRun, before: dict[int, dict[Status, int]], begun: float) -> Tally:
    """The tally since the start, from the store. What others answered between the plan and the start is not open."""
    from proctor.runs import Tally

    there = {run: sum(counts.values()) - counts.get(Status.FAILED, 0) for run, counts in before.items()}
    tally = Tally(total=sum(answers - there[run.id] for run, answers in prepared.plan.expected), started=begun)
    for run in prepared.plan.runs:
        for status, found in prepared.store.count_by_status(run).items():
            known = 0 if status is Status.FAILED else before[run.id].get(status, 0)  # failed ones are asked again
            tally.by_status[status] += found - known
    return tally


def worker(
    options: WorkOptions,
    folder: Annotated[Path | None, Option("A challenge's folder.", metavar="DIR", argument=True)] = None,
    executor: Annotated[str, Option("Of a challenge: podman, docker, or process.", metavar="NAME")] = "podman",
    gpu: Annotated[str, Option("The GPU of a challenge's containers (CDI).")] = "nvidia.com/gpu=all",
) -> None:
    """Join open runs, or work for a challenge.

    Without DIR: joins runs that were started with --share, and waits for more. Items, settings and prompts come from
    the store; what this machine lacks is reported. With DIR: runs and scores submissions, as the user who can open
    DIR/sealed; the executor `process` takes only files of answers.

    Start any number of workers on any number of machines. If one dies, its lease expires and another one continues.
    Ctrl-C completes the running question.

    Example: proctor worker --store postgresql+psycopg://proctor@db/runs --media videos
    """
    if folder is None:
        asyncio.run(_join_runs(options))
        return
    work = extension("worker.challenge", "proctor_challenge", "proctor worker DIR")
    store = options["store"]
    count = asyncio.run(_work_on_folder(work, folder, str(store) if store else None, executor, gpu, options["once"]))
    print_note(f"{count_of(count, 'submission')} taken")


async def _join_runs(options: WorkOptions) -> None:
    """Work on a store's open runs, and print the result."""
    from proctor import shell

    with stopping() as stop:
        given: dict[str, Any] = {**options, "stop": stop, "report": print_note}
        worked = await shell.work_async(**given)
    if worked.refused and not worked.runs:
        raise ConfigurationError("nothing could be joined (see above)")
    counts = [f"{count} {status.value}" for status, count in worked.tally.by_status.items() if count]
    print_line(f"Asked {worked.tally.done}: {', '.join(counts) or 'nothing was open'}")


async def _work_on_folder(work: Callable[..., Awaitable[int]], *given: Any) -> int:
    with stopping() as stop:
        return await work(*given, stop, print_line)
