"""Uploaded images, from the archive to the result, in real containers: one answers, one is late, one crashes, one
cheats, one is no image."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import RowMapping, select

from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import CHEAT_ORACLE, PodmanExecutor
from proctor_challenge.schema import results
from proctor_challenge.submissions import submission_row
from proctor_challenge.worker import Worker
from tests.support.boxes import image_of, podman
from tests.support.doubles_of_boxes import TEMPLATE, program
from tests.support.hosted import StandingClock, opened, team
from tests.support.hosted_work import ASKED, DirectScorer, asked_folder, queued, upload

pytestmark = pytest.mark.podman

SMALL = ASKED.replace("{log: 64k}", "{memory: 128m, cpus: 1, processes: 32, shared_memory: 1m, scratch: 1m, log: 64k}")
LATE = """
import time
box = Box()
def reply(asked, connection):
    if box.number % 3 == 0:
        connection.recv(1)  # until the other side has gone
    return http({"answer": "yes"})
box.serve(reply)
"""
CRASHES = 'def reply(asked, connection):\n    raise KeyError("weights")\nBox().serve(reply)\n'


def archive_of(challenge: Challenge, image: str, folder: Path) -> str:
    """An upload of what `podman save` writes."""
    file = folder / "image.tar"
    subprocess.run(["podman", "save", "--quiet", "--output", file, image], check=True, capture_output=True)
    content = file.read_bytes()
    file.unlink()
    return upload(challenge.folder, content)


def row(challenge: Challenge, submission: int) -> RowMapping:
    with challenge.reading() as connection:
        return submission_row(connection, submission)


def share(challenge: Challenge, submission: int) -> float:
    """Of its answers, those that are right."""
    with challenge.reading() as connection:
        figures = connection.execute(select(results.c.figures).where(results.c.submission == submission)).scalar_one()
    return float(figures["boards"][0]["mean"])


def uploaded() -> set[str]:
    listed = ["podman", "images", "--format={{.Repository}}:{{.Tag}}"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    return {name for name in names if "proctor-upload" in name}


def test_images_are_run_and_scored_as_they_behave(tmp_path: Path) -> None:
    podman()
    before = uploaded()
    settings = SMALL.replace("question_s: 30", "question_s: 3")
    challenge = opened(asked_folder(tmp_path / f"trays-{os.getpid()}", settings=settings), now=StandingClock())
    mine = team(challenge)
    images = {
        "answers": image_of(TEMPLATE),
        "is late": image_of(Path(program(tmp_path, LATE, "late.py"))),
        "crashes": image_of(Path(program(tmp_path, CRASHES, "crashes.py"))),
        "cheats": image_of(CHEAT_ORACLE),
    }
    made = {
        name: queued(challenge, mine, "image", archive_of(challenge, image, tmp_path)) for name, image in images.items()
    }
    made["is none"] = queued(challenge, mine, "image", upload(challenge.folder, b"nothing"))
    worker = Worker(challenge, PodmanExecutor(), DirectScorer(challenge), ("image",))
    asyncio.run(worker.work(asyncio.Event(), once=True))

    rows = {name: row(challenge, submission) for name, submission in made.items()}
    assert {name: (one["state"], one["fault"], one["attempted"], one["scored"]) for name, one in rows.items()} == {
        "answers": ("scored", "nobody", 1, 1),
        "is late": ("scored", "nobody", 1, 1),
        "crashes": ("crashed", "participant", 1, 0),
        "cheats": ("scored", "nobody", 1, 1),
        "is none": ("crashed", "participant", 1, 0),
    }
    assert rows["answers"]["log"]["counts"] == {"answered": 10}
    assert rows["is late"]["log"]["counts"] == {"answered": 7, "timed_out": 3}
    assert rows["crashes"]["log"]["counts"] == {"error": 2}
    assert rows["crashes"]["log"]["errors"] == {"KeyError": 1}
    assert "weights" not in json.dumps([dict(one["log"]) for one in rows.values() if one["log"]])
    assert rows["cheats"]["log"]["errors"] == {}
    assert {name: one["image_digest"] for name, one in rows.items() if one["state"] == "scored"} == {
        name: images[name] for name in ("answers", "is late", "cheats")
    }
    always_yes = share(challenge, made["answers"])
    assert 0 < always_yes < 1
    assert share(challenge, made["cheats"]) < 1
    assert uploaded() == before
    listed = subprocess.run(
        ["podman", "ps", "--all", "--format={{.Labels}}"], capture_output=True, text=True, check=True
    )
    assert f"{challenge.name}/" not in listed.stdout
