"""How fast `proctor serve` answers many reviewers at once, and whether it keeps what it acknowledged when it is killed.

python bench/web.py                                   # 200 reviewers for a minute, on SQLite
python bench/web.py --store postgresql+psycopg://…    # the same on PostgreSQL (an empty database)
python bench/web.py --kills 50 --reviewers 40 --every 0.5

Each reviewer does one thing every few seconds: opens the next item, keeps two drafts, seals. Who is cut off sends the
same save again. In the end every acknowledged draft and seal must be in the database. The server runs in a process of
its own; this program, which plays the reviewers, has the other core.

On the open internet, beside those who want it to end: `bench/storm.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from itsdangerous import Signer
from sqlalchemy import select

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor_web.accounts import Changed, add_account
from proctor_web.review import KEY_FILE, ReviewSite
from proctor_web.schema import readings, sessions, versions
from proctor_web.sessions import start_session
from proctor_web.settings import open_store, review_store
from proctor_web.site import signing_key

WANTED_MS = 150.0
CHECKS = {"pictures": True, "one_right": True, "distractors": False, "clinical": True}
BODY = {"stem": "What does the operator do next?", "options": ["Slides on", "Rotates", "Freezes"], "key": 0}


@dataclass
class Said:
    """What one reviewer was told is kept of one item, and what was sent after that."""

    revision: int = 0
    text: str = ""
    sealed: bool = False
    sent: set[str] = field(default_factory=set)


@dataclass
class Load:
    """What was measured: seconds by kind of request, what went wrong, and what is acknowledged by (account, item)."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    said: dict[tuple[int, int], Said] = field(default_factory=lambda: defaultdict(Said))
    cut_off: int = 0
    cpu_s: float = 0.0


@dataclass(frozen=True)
class Reviewer:
    """Somebody who is logged in."""

    account: int
    cookie: str
    csrf: str


def prepare(folder: Path, store: str | None, count: int, items: int) -> list[Reviewer]:
    """A review with its people, who are logged in; the server brings in the items."""
    names = [f"reader{number:03d}" for number in range(count)]
    lines = [json.dumps({"id": f"q{number}", "group": f"v{number // 5}", "body": BODY}) for number in range(items)]
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plan = {"readings": 2, "readers": names}
    study = {"name": "load", "form": "question", "items": "items.jsonl", "plan": plan}
    (folder / "review.yaml").write_text(json.dumps({"title": "Load", "studies": [study]}), encoding="utf-8")
    engine = open_store(review_store(folder, store))
    review = ReviewSite(folder=folder, title="Load", engine=engine, key=signing_key(folder / KEY_FILE), media=folder)
    found = []
    with review.writing() as connection:
        for name in names:
            row = add_account(connection, name, "reviewer", "en", Changed(None, review.now()))
            token = start_session(connection, row["id"], review.now())
            query = select(sessions.c.csrf).where(sessions.c.account == row["id"])
            signed = Signer(review.key, salt="session").sign(token).decode()
            found.append(Reviewer(row["id"], signed, connection.execute(query).scalar_one()))
    engine.dispose()
    return found


class Server:
    """`proctor serve` in a process of its own, on one port for all of its lives."""

    def __init__(self, folder: Path, store: str | None, *more: str, files: int = 0) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        more = (*more, "--store", store) if store else more
        self._command = [sys.executable, "-m", "proctor", "serve", str(folder), "--port", str(self.port), *more]
        if files:
            self._command = ["bash", "-c", f'ulimit -n {files}; exec "$@"', "serve", *self._command]
        self.base = f"{'https' if '--tls-cert' in more else 'http'}://127.0.0.1:{self.port}"
        self._log = folder / "server.log"

    def start(self) -> None:
        """Returns when it answers."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)
        for _ in range(1200):
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"{self.base}/login", timeout=30, verify=False).status_code == 200:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise SystemExit(self._log.read_text(encoding="utf-8")[-2000:])

    def cpu_s(self) -> float:
        """Seconds of the processor that this life has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """Without a word, as a power cut does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> str:
        """As an administrator does; returns what it wrote to its log."""
        self.process.terminate()
        self.process.wait(30)
        return self._log.read_text(encoding="utf-8")


@contextlib.asynccontextmanager
async def browsing(server: Server, who: Reviewer) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"accept": "text/html", "x-csrf-token": who.csrf, "cookie": f"proctor={who.cookie}"}
    base = f"http://127.0.0.1:{server.port}"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=30, verify=False) as client:
        yield client


async def ask(load: Load, client: httpx2.AsyncClient, kind: str, path: str, body: Any = None) -> httpx2.Response | None:
    """The answer, timed; None where the server went away."""
    start = time.perf_counter()
    try:
        answer = await (client.get(path) if body is None else client.post(path, json=body))
    except httpx2.TransportError:
        load.cut_off += 1
        return None
    load.seconds[kind].append(time.perf_counter() - start)
    if answer.status_code >= 400:
        load.wrong[f"{kind} {answer.status_code}"] += 1
    return answer


async def work(load: Load, server: Server, who: Reviewer, every: float, until: float) -> None:
    """One reviewer: an action every `every` seconds until the time is over. The first comes at a random moment of the
    four actions that an item takes, so that people are not all at the same one."""
    async with browsing(server, who) as client:
        due = time.monotonic() + 4 * every * random.Random(who.account).random()
        item, step = 0, 0
        while due < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + every, time.monotonic())
            if step == 0:
                item = await opened(load, client)
                step = 1 if item else 0
            elif await kept(load, client, who, item, seal=step == 3):
                step = (step + 1) % 4


async def opened(load: Load, client: httpx2.AsyncClient) -> int:
    """The next item, whose page was shown; 0 where there is none."""
    answer = await ask(load, client, "next", "/study/load/next")
    found = re.fullmatch(r"/item/(\d+)", answer.headers.get("location", "")) if answer is not None else None
    if found is None:
        return 0
    page = await ask(load, client, "page", found[0])
    return int(found[1]) if page is not None and page.status_code == 200 else 0


async def kept(load: Load, client: httpx2.AsyncClient, who: Reviewer, item: int, *, seal: bool) -> bool:
    """Whether a draft or a seal was acknowledged. Where it was not, the same is sent next time."""
    said = load.said[who.account, item]
    text = f"{who.account}-{item}-{said.revision + 1}"
    payload = {"decision": "reject", "checks": CHECKS, "reason": text}
    said.sent.add(text)
    body = {"version": 1, "revision": said.revision, "payload": payload, "seconds": 5.0}
    kind = "seal" if seal else "draft"
    answer = await ask(load, client, kind, f"/item/{item}/{kind}", body)
    if answer is None or answer.status_code != 200:
        return False
    said.revision, said.text, said.sealed = said.revision + 1, text, seal
    return True


def lost(load: Load, folder: Path, store: str | None) -> list[str]:
    """What was acknowledged and is not in the database."""
    engine = open_store(review_store(folder, store))
    query = select(readings, versions.c.item).join(versions, versions.c.id == readings.c.version)
    with engine.connect() as connection:
        rows = {(row["account"], row["item"]): row for row in connection.execute(query).mappings()}
    engine.dispose()
    found = []
    for key, said in load.said.items():
        if not said.revision:
            continue
        row = rows.get(key)
        later = row is not None and row["revision"] > said.revision and row["payload"]["reason"] in said.sent
        same = row is not None and row["revision"] == said.revision and row["payload"]["reason"] == said.text
        if not (same or later) or (said.sealed and (row is None or row["sealed"] is None)):
            found.append(f"account {key[0]}, item {key[1]}: revision {said.revision} was acknowledged")
    return found


async def run(load: Load, server: Server, people: list[Reviewer], options: argparse.Namespace) -> None:
    """All reviewers at once, and, where wanted, a server that is killed under them."""
    until = time.monotonic() + (3600.0 if options.kills else options.seconds)
    tasks = [asyncio.create_task(work(load, server, who, options.every, until)) for who in people]
    rng = random.Random(0)
    for _ in range(options.kills):
        await asyncio.sleep(0.3 + rng.random())
        server.kill()
        await asyncio.to_thread(server.start)
    if options.kills:
        await asyncio.sleep(1.0)
        for task in tasks:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=bool(options.kills))


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000


def report(load: Load, log: str, missing: list[str], options: argparse.Namespace) -> dict[str, Any]:
    rows = [
        {
            "request": kind,
            "times": len(some),
            "median_ms": quantile(some, 0.5),
            "p95_ms": quantile(some, 0.95),
            "max_ms": max(some) * 1000,
        }
        for kind, some in load.seconds.items()
    ]
    sealed = sum(one.sealed for one in load.said.values())
    return {
        "reviewers": options.reviewers,
        "every_s": options.every,
        "store": (options.store or "sqlite").partition(":")[0].partition("+")[0],
        "kills": options.kills,
        "requests": rows,
        "cpu_ms": load.cpu_s * 1000 / max(1, sum(len(some) for some in load.seconds.values())),
        "acknowledged": sum(one.revision for one in load.said.values()),
        "sealed": sealed,
        "cut_off": load.cut_off,
        "wrong": dict(load.wrong),
        "locked": log.count("locked"),
        "tracebacks": log.count("Traceback"),
        "lost": missing,
    }


def show(found: dict[str, Any]) -> None:
    print(f"{found['reviewers']} reviewers, one action every {found['every_s']:g} s each, on {found['store']}")
    for row in found["requests"]:
        print(
            f"  {row['request']:6} {row['times']:6} times   median {row['median_ms']:6.1f} ms   "
            f"p95 {row['p95_ms']:6.1f} ms   longest {row['max_ms']:6.1f} ms"
        )
    if found["cpu_ms"]:
        print(f"  {found['cpu_ms']:.1f} ms of the processor a request")
    print(f"  {found['acknowledged']} saves acknowledged, {found['sealed']} of them seals; {len(found['lost'])} lost")
    print(f"  killed {found['kills']} times, {found['cut_off']} requests cut off")
    print(f"  refused or failed: {found['wrong'] or 'none'}; in the log: {found['locked']} × locked, "
          f"{found['tracebacks']} tracebacks")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviewers", type=int, default=200)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two actions of a reviewer")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, without --kills")
    parser.add_argument("--kills", type=int, default=0, help="how often the server is killed")
    parser.add_argument("--store", help="an SQLAlchemy URL of an empty database instead of SQLite")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        busy_s = 1.5 * options.kills or options.seconds
        items = max(100, int(options.reviewers * busy_s / options.every / 4 / 2 * 1.5))  # two read each; some to spare
        people = prepare(folder, options.store, options.reviewers, items)
        server, load = Server(folder, options.store), Load()
        server.start()
        before = server.cpu_s()
        asyncio.run(run(load, server, people, options))
        load.cpu_s = 0.0 if options.kills else server.cpu_s() - before
        log = server.stop()
        found = report(load, log, lost(load, folder, options.store), options)
    if options.format == "json":
        print(json.dumps(found, indent=1))
    else:
        show(found)
    late = [row["p95_ms"] for row in found["requests"] if row["request"] == "page"]
    bad = found["lost"] or found["locked"] or found["tracebacks"] or found["wrong"]
    sys.exit(1 if bad or (late and late[0] > WANTED_MS and not options.kills) else 0)


if __name__ == "__main__":
    main()
