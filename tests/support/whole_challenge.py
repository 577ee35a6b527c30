"""A whole challenge for one test: FOCUS on simulated procedures, images that are good, late, hanging, broken or
cheating, and what runs them."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from proctor.core import generator
from proctor_challenge.board_pages import publish
from proctor_challenge.boards import Figures
from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import ProcessExecutor
from proctor_challenge.containers.images import own_image
from proctor_challenge.folder import NewChallenge, new_challenge
from proctor_challenge.queue import Leased
from proctor_challenge.scorer import ScorerProcess
from proctor_challenge.scoring import score_submission, scorer_fingerprint
from tests.support.challenge_data import focus_answers, focus_data
from tests.support.clock_video import ClockVideo, write_clock_video

PRE, TEST = "pre-evaluation", "test"
_SETTINGS = {
    "question_s: 30.0": "question_s: 1.0\n    startup_s: 5.0",
    "- name: pre-evaluation\n": "- name: pre-evaluation\n  quota: {scored: 3, attempted: 6}\n",
    "baselines: []\n": "baselines:\n- name: plain\n  answers: {pre-evaluation: sealed/p.json, test: sealed/t.json}\n"
    "ranking: {draws: 200, stability: 20}\n",
}


def whole_folder_of(folder: Path, *, videos: bool = False) -> Path:
    """One procedure for training, three hidden for the pre-evaluation, nine for the test, ten questions each; a
    baseline that is no better than guessing. Every question has words of its own, so that an image can know its answer.
    With `videos` systems are shown these; without, all is text."""
    data, media = focus_data(folder / "data", videos=13, questions=10), folder / "videos" if videos else None
    if media is not None:
        media.mkdir()
        for number in range(13):
            write_clock_video(
                media / f"v{number:02d}.mp4", ClockVideo(range(0, 60_001 + number, 1000 + number), rate=1)
            )
    asked = json.loads((data / "requests.json").read_text())
    for one in asked:
        one["question"] = f"Is object {one['qID']} in view?"
    (data / "requests.json").write_text(json.dumps(asked))
    made = folder / "challenge"
    plan = NewChallenge("focus", data, media, track="procedure", training=1, pre_evaluation=3, test=9, title="Sponges")
    assert new_challenge(made, plan) == {"training": 10, PRE: 30, TEST: 90}
    text = (made / "challenge.yaml").read_text()
    for old, new in _SETTINGS.items():
        assert old in text, text
        text = text.replace(old, new)
    (made / "challenge.yaml").write_text(text)
    for phase, file in ((PRE, "p.json"), (TEST, "t.json")):
        focus_answers(made / "sealed" / phase, made / "sealed" / phase, made / "sealed" / file, 0.5, seed=9)
    return made


_SERVES = """import hashlib, json, os, re, sys, time
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer
KNOWN = {known}
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.said(200, {{}})
    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = re.search("v[0-9]+-q[0-9]+", question["question"])[0]
        answer = KNOWN[asked]
        for one in question["media"]:
            if open(one["path"], "rb").read(8)[4:] != b"ftyp": answer = "no video"
{code}
        self.said(201, {{"answer": answer}})
    def said(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
{before}
server = Server(os.environ["PROCTOR_SOCKET"], Handler)
os.chmod(os.environ["PROCTOR_SOCKET"], 0o666)
server.serve_forever()
"""

LATE = "if int(hashlib.sha256(asked.encode()).hexdigest(), 16) % 3 == 0: time.sleep(3600)"
HANGS = "time.sleep(3600)"
CRASHES = "sys.exit(3)"
CHEATS = """found = [str(question), str(dict(os.environ))]
for top in ("/input", "/sealed", "/uploads"):
    for folder, _, files in os.walk(top):
        for file in files:
            try:
                found.append(open(os.path.join(folder, file), errors="replace").read(10_000))
            except OSError:
                pass
if "ood" in "".join(found) or "references" in "".join(found):
    answer = "yes, and I know why"
"""


def program(folder: Path, name: str, skill: float, seed: int, *, code: str = "pass", before: str = "") -> Path:
    """A program for an image: it knows the answers of both hidden phases at this rate, as a good system would, and does
    `code` with each question, `before` it is ready."""
    known: dict[str, str] = {}
    rng = generator(seed, "what an image knows")
    keys = {one["qID"]: one["answer"] for one in json.loads((folder.parent / "data/references.json").read_text())}
    for key, answer in keys.items():
        right = rng.random() < skill
        known[key] = answer if right else {"yes": "no", "no": "yes"}[answer]
    inside = "".join(f"        {line}\n" for line in code.splitlines())
    file = folder.parent / f"{name}.py"
    file.write_text(_SERVES.format(known=json.dumps(known), code=inside, before=before))
    return file


class ArchivedPrograms(ProcessExecutor):
    """Runs the program in an archive as it is: only for tests, where no container runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def load(self, archive: Path) -> str:
        with tarfile.open(archive) as opened:
            source = opened.extractfile("program.py")
            assert source is not None
            (self._folder / f"{archive.name}.py").write_bytes(source.read())
        return str(self._folder / f"{archive.name}.py")


def archive_of(source: Path, *, podman: bool) -> Path:
    """An archive of an image that runs a program: by podman, or the least that is one."""
    made = source.with_suffix(".tar")
    if podman:
        digest = asyncio.run(own_image("podman", source))
        subprocess.run(["podman", "save", "-q", "-o", str(made), digest], check=True, capture_output=True)
        return made
    manifest = json.dumps([{"Config": "config.json", "Layers": []}]).encode()
    with tarfile.open(made, "w") as out:
        for name, content in {
            "config.json": b"{}",
            "manifest.json": manifest,
            "program.py": source.read_bytes(),
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return made


@dataclass
class OwnScorer(ScorerProcess):
    """Scores and publishes as the scorer's process does, in this one."""

    challenge: Challenge

    async def score(self, leased: Leased) -> tuple[Figures, str]:
        figures = await asyncio.to_thread(score_submission, self.challenge, leased)
        return figures, await self.fingerprint()

    async def publish(self, phase: str) -> None:
        await asyncio.to_thread(publish, self.challenge, phase)

    async def fingerprint(self) -> str:
        return await asyncio.to_thread(scorer_fingerprint, self.challenge.sealed)
