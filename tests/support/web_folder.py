"""A review folder, and a server of it in a process of its own."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.support.forked import Program
from tests.support.program import proctor, start_proctor
from tests.support.web_site import PASSWORD, csrf_of

REVIEW = """title: Simulated procedures, first round
media: videos
studies:
  - name: questions
    form: question
    items: items.jsonl
    plan: {readings: 2, readers: [anna, ben], adjudicators: [cleo], seed: 1}
"""


def review_folder(folder: Path, items: int = 6, more: str = "") -> Path:
    """`review.yaml` with one study of questions, without media."""
    (folder / "videos").mkdir(parents=True)
    (folder / "review.yaml").write_text(more + REVIEW)
    body = {"stem": "What does the operator do next?", "options": ["slides", "rotates", "freezes"], "key": 0}
    lines = [{"id": f"q{number}", "group": f"video {number // 2}", "body": body} for number in range(items)]
    (folder / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def invitations(folder: Path) -> dict[str, str]:
    """Adds Anna, Ben and Cleo; the path of each one's invitation."""
    people = {"anna": "reviewer", "ben": "reviewer", "cleo": "adjudicator"}
    paths = {}
    for name, role in people.items():
        done = proctor("serve", "users", "add", folder, name, "--role", role)
        assert done.returncode == 0, done.stderr
        paths[name] = "/invitation/" + done.stdout.strip().rpartition("/")[2]
    return paths


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[tuple[Program, str]]:
    """A server on a free port, and its address."""
    process = start_proctor("serve", folder, "--port", "0", *more)
    line = ""
    while not line.startswith("Serving"):
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate(60)[1])
    try:
        yield process, line.split(" at ")[1].split(" ")[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        if not process.stdout.closed:
            process.communicate(60)


def come_in(client: httpx2.Client, invitation: str) -> None:
    """Takes up an invitation: the client is logged in."""
    data = {"csrf": csrf_of(client.get(invitation)), "password": PASSWORD, "again": PASSWORD}
    assert client.post(invitation, data=data).status_code == 303
