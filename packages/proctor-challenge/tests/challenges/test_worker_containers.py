"""A worker with real containers: an uploaded image, a worker that is killed while it is asked, and nothing left
behind."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import PodmanExecutor
from proctor_challenge.schema import events
from proctor_challenge.submissions import submission_row
from proctor_challenge.worker import Worker
from tests.support.boxes import image_of, podman
from tests.support.forked import _context
from tests.support.hosted import opened, team
from tests.support.hosted_work import ASKED, COUNTING, SERVES, DirectScorer, asked_folder, queued
from tests.support.killed_workers import StandbyScorer

pytestmark = pytest.mark.podman
SMALL = "{memory: 256m, cpus: 1, processes: 32, shared_memory: 1m, scratch: 1m, log: 64k}"


def killed_worker(folder: Path) -> None:
    """A worker's process."""
    scorer = StandbyScorer(folder, None, COUNTING, 1)
    worker = Worker(Challenge.open(folder, "worker"), PodmanExecutor(), scorer, ("image",), lease_s=1.0, poll_s=0.05)
    asyncio.run(worker.work(asyncio.Event()))


def uploaded(folder: Path, program: str) -> str:
    """An image that runs a program, as `podman save` writes it, as an upload; its hash."""
    file, archive = folder / "program.py", folder / "uploads" / "image.tar"
    file.write_text(program)
    subprocess.run(["podman", "save", "-q", "-o", archive, image_of(file)], check=True, capture_output=True)
    name = hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.rename(folder / "uploads" / name)
    return name


def test_a_killed_workers_container_is_removed_and_its_submission_goes_on(tmp_path: Path) -> None:
    executor = podman()
    folder = asked_folder(tmp_path / "trays", settings=ASKED.replace("{log: 64k}", SMALL))
    challenge = opened(folder)
    mine = team(challenge)
    slow = SERVES.format(python=sys.executable, code="        time.sleep(0.15)\n", before="os.umask(0)")
    made = queued(challenge, mine, "image", uploaded(folder, slow))
    process = _context().Process(target=killed_worker, args=(folder,))
    process.start()
    while not answered(challenge):  # the first answers are there
        process.join(0.05)
        assert process.is_alive()
    process.kill()
    process.join()
    before = answered(challenge)
    assert 0 < before < 10
    worker = Worker(Challenge.open(folder, "worker"), executor, DirectScorer(challenge), ("image",), poll_s=0.05)
    asyncio.run(until_scored(worker, challenge, made))
    with challenge.reading() as connection:
        row = submission_row(connection, made)
        told = connection.execute(select(events.c.reason).order_by(events.c.id)).scalars().all()
    assert (row["state"], row["attempted"], row["scored"], row["fence"]) == ("scored", 1, 1, 2)
    assert row["image_digest"].startswith("sha256:")
    assert row["log"]["counts"] == {"answered": 10}
    assert "requeued" in told
    assert asyncio.run(executor.remove_left(challenge.label)) == 0


def answered(challenge: Challenge) -> int:
    with challenge.sealed.store("test") as store:
        runs = store.runs("focus") if store.benchmark_names() else []
        return sum(store.count_answers(run)[0] for run in runs)


async def until_scored(worker: Worker, challenge: Challenge, submission: int) -> None:
    """Works until this one has a result: its lease has to end first."""
    stop = asyncio.Event()

    def said(line: str) -> None:
        if line == f"submission {submission}: scored":
            stop.set()

    worker.log = said
    await worker.work(stop)
