"""What workers of tests need: a challenge with FOCUS questions, programs instead of images, and simple scoring."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import func, insert, select

from proctor.core import reader_of
from proctor_challenge.boards import BoardFigure, Figures
from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import BoxLimits, ProcessExecutor
from proctor_challenge.containers.executors import StartedBox
from proctor_challenge.queue import Leased
from proctor_challenge.schema import boards, scorers
from proctor_challenge.scorer import ScorerError, ScorerProcess, Scoring
from proctor_challenge.settings import Kind
from proctor_challenge.submissions import HandIn, hand_in, settle
from proctor_web import utc_text
from tests.support.challenge_data import focus_answers, focus_data
from tests.support.hosted import challenge_folder

ASKED = """
title: Trays
benchmark: focus
track: procedure
resources: {log: 64k}
phases:
  - name: test
    questions: public/test
    sealed: sealed/test
    condition: text-only
    accepts: [file, image]
    quota: {scored: 10, attempted: 30}
    budget: {question_s: 30, startup_s: 60}
"""


def asked_folder(folder: Path, videos: int = 1, questions: int = 10, settings: str = ASKED) -> Path:
    """A challenge with questions: those with references in the sealed part, the same without in the public one."""
    challenge_folder(folder, settings)
    (folder / "sealed/test").rmdir()
    focus_data(folder / "sealed/test", videos, questions)
    shutil.copy(folder / "sealed/test/requests.json", folder / "public/test")
    return folder


def upload(folder: Path, content: bytes, *, program: bool = False) -> str:
    """Keeps bytes as an upload; their hash."""
    name = hashlib.sha256(content).hexdigest()
    file = folder / "uploads" / name
    file.write_bytes(content)
    file.chmod(0o755 if program else 0o644)
    return name


def answer_file(folder: Path, skill: float = 1.0, seed: int = 0) -> str:
    """An upload of answers to the phase `test`, right at this rate."""
    file = folder / f"answers-{seed}.json"
    focus_answers(folder / "public/test", folder / "sealed/test", file, skill, seed=seed)
    return upload(folder, file.read_bytes())


SERVES = """#!{python} -S
import json, os, time
from http.server import BaseHTTPRequestHandler
from socketserver import UnixStreamServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
{code}
        body = json.dumps({{"answer": "yes"}}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
{before}
UnixStreamServer(os.environ["PROCTOR_SOCKET"], Handler).serve_forever()
"""


def image(folder: Path, code: str = "pass", before: str = "") -> str:
    """An upload of a program that answers yes, and does `code` with each question and `before` it listens."""
    inside = "".join(f"        {line}\n" for line in code.splitlines())
    return upload(folder, SERVES.format(python=sys.executable, code=inside, before=before).encode(), program=True)


class TrustingExecutor(ProcessExecutor):
    """Runs uploaded programs as they are: only for tests."""

    def __init__(self) -> None:
        self._loaded: dict[str, Path] = {}

    async def load(self, archive: Path) -> str:
        self._loaded[archive.name] = archive
        return archive.name

    async def start(self, image: str, limits: BoxLimits, *, label: str) -> StartedBox:
        return await super().start(str(self._loaded[image]), limits, label=label)


def score_by_count(challenge: Challenge, leased: Leased) -> Figures:
    """The share of right answers. Each call leaves a line in `scores.log` of the folder."""
    benchmark = challenge.sealed.benchmark(leased.phase)
    if leased.kind == "file":
        recorded = reader_of("focus", "procedure").read_recorded(challenge.uploads / leased.upload, benchmark)
        answers = {one.item_id: one for one in recorded.answers}
    else:
        with challenge.sealed.store(leased.phase) as store:
            run = next(one for one in store.runs(benchmark.name) if one.system == leased.system)
            answers = store.answers(run)
    keys = {item.id: item.reference.answer for item in benchmark.items if item.reference is not None}
    with (challenge.folder / "scores.log").open("a") as log:
        log.write(f"{leased.submission} {leased.fence}\n")
    mean = sum(name in answers and answers[name].parsed == key for name, key in keys.items()) / len(keys)
    board = BoardFigure(name="all", title="All", mean=mean, low=None, high=None, questions=len(answers))
    return Figures(boards=(board,), statuses=dict(Counter(one.status.value for one in answers.values())))


def publish_count(challenge: Challenge, phase: str) -> None:
    """A board that says nothing."""
    with challenge.writing() as connection:
        scorer, at = connection.execute(select(func.max(scorers.c.version))).scalar_one(), utc_text(challenge.now())
        connection.execute(
            insert(boards).values(phase=phase, scorer=scorer, content={"phase": phase, "boards": []}, at=at)
        )


def same_code(challenge: Challenge) -> str:
    return "f" * 64


COUNTING = Scoring(score_by_count, publish_count, same_code)


@dataclass
class DirectScorer(ScorerProcess):
    """Scores in this process; what is in `faults` fails to be scored."""

    challenge: Challenge
    version: str = "f" * 64
    faults: set[int] = field(default_factory=set)

    async def score(self, leased: Leased) -> tuple[Figures, str]:
        if leased.submission in self.faults:
            raise ScorerError("the judge is away")
        return score_by_count(self.challenge, leased), self.version

    async def publish(self, phase: str) -> None:
        publish_count(self.challenge, phase)

    async def fingerprint(self) -> str:
        return self.version


def queued(challenge: Challenge, team: int, kind: Kind, name: str) -> int:
    """An upload of a team in the queue."""
    with challenge.writing() as connection:
        suffix = ".json" if kind == "file" else ""
        made = hand_in(connection, challenge, HandIn(team, 1, "test", kind, name, 1, "entry", suffix))
        assert settle(connection, challenge, made) == ""
    return made
