"""Whether `proctor serve` may face the internet: how fast it answers 200 people beside those who want it to end.

python bench/storm.py                                 # a minute

A challenge by https, with 1,024 file descriptors. Beside the people, who log in, read pages and submit, are 1,100 slow
sockets from 50 addresses, opened over 10 s (some send a byte of a header every 5 s, some of a form, some end in the middle of a TLS
handshake; each comes again when it was closed), 6 teams that upload 30 MB and 4 MB of `[1,1,…]` again and again, and
another program that locks the database for 5 s every 20 s. Wanted: p95 of a page under 300 ms, nobody refused but
changes while the database is locked (503), and a log under 1 MB without a traceback. All who ask are in this one
process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import resource
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from itsdangerous import Signer

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from bench.web import Load, Server, quantile
from proctor_challenge.pages.site import KEY_FILE
from proctor_challenge.teams import TeamEntry, register_team
from proctor_web.accounts import Changed, add_account, hashed, invite, take_up
from proctor_web.sessions import start_session
from proctor_web.site import signing_key
from tests.support.challenge_site import answers, challenge_site
from tests.support.guarded_server import without_checks
from tests.support.web_site import PASSWORD
from tests.web.test_serve import certificate

WANTED_MS, WANTED_LOG = 300.0, 1_000_000
PAGES = ("/", "/phase/pre-evaluation", "/submissions", "/team", "/terms")
OPENED_S = 10.0  # the slow sockets are opened over this time
CONTEXT = without_checks()


@dataclass
class Storm:
    """What was measured, beside the load: when the database was locked, and what became of those who are slow or
    hostile."""

    load: Load = field(default_factory=Load)
    locked: list[tuple[float, float]] = field(default_factory=list)
    refused_while_locked: int = 0
    slow_closed: int = 0
    slow_open: int = 0
    slow_longest_s: float = 0.0
    hostile: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def person(address: str, server: Server) -> httpx2.AsyncClient:
    """A browser at an address of its own."""
    transport = httpx2.AsyncHTTPTransport(verify=CONTEXT, local_address=address)
    return httpx2.AsyncClient(base_url=server.base, transport=transport, headers={"accept": "text/html"}, timeout=60)


async def token_of(storm: Storm, client: httpx2.AsyncClient, path: str = "/") -> str:
    """The token of the visitor's forms, from a page."""
    answer = await timed(storm, client, "page", path)
    found = re.search(r'name="csrf-token" content="([^"]+)"', answer.text if answer else "")
    return found[1] if found else ""


async def timed(storm: Storm, client: httpx2.AsyncClient, kind: str, path: str, **given: Any) -> httpx2.Response | None:
    """The answer to an honest request, None without one. A change that was refused while the database was locked is no
    wrong."""
    load, start = storm.load, time.monotonic()
    try:
        answer = await (client.post(path, **given) if given else client.get(path))
    except httpx2.TransportError as error:
        load.wrong[f"{kind} {type(error).__name__}"] += 1
        return None
    end = time.monotonic()
    load.seconds[kind].append(end - start)
    if answer.status_code == 503 and given and any(begun < end and start < over + 1 for begun, over in storm.locked):
        storm.refused_while_locked += 1
    elif answer.status_code >= 400:
        load.wrong[f"{kind} {answer.status_code}"] += 1
    return answer


async def entered(storm: Storm, client: httpx2.AsyncClient, name: str) -> None:
    """Logs in, again after a while where the database is locked."""
    while True:
        given = {"csrf": await token_of(storm, client, "/login"), "name": name, "password": PASSWORD}
        answer = await timed(storm, client, "login", "/login", data=given)
        if answer is not None and answer.status_code == 303:
            return
        await asyncio.sleep(5)


async def visit(storm: Storm, server: Server, number: int, cookie: str, until: float, fitting: bytes) -> None:
    """One of the honest: reads a page every few seconds. Every fourth logs in first, the others have done so before;
    every tenth submits a file."""
    rng = random.Random(number)
    async with person(f"127.2.{number // 250}.{number % 250 + 1}", server) as client:
        await asyncio.sleep(rng.random() * (0.8 * (until - time.monotonic()) if number % 4 == 0 else 3.0))
        if number % 4 == 0:
            await entered(storm, client, f"p{number}")
        else:
            client.cookies.set("__Host-proctor", cookie)
        submits = number % 10 == 5
        while time.monotonic() < until:
            await timed(storm, client, "page", rng.choice(PAGES))
            if submits:
                form = {"csrf": await token_of(storm, client), "name": "mine"}
                files = {"upload": ("a.json", fitting)}
                answer = await timed(storm, client, "submit", "/phase/pre-evaluation/file", data=form, files=files)
                submits = answer is None or answer.status_code != 303
            await asyncio.sleep(4 + 2 * rng.random())


async def attack(storm: Storm, server: Server, number: int, until: float) -> None:
    """One of the hostile: uploads at once when the last upload was answered."""
    bodies = [b"[" + b"1," * (size // 2) + b"1]" for size in (30_000_000, 4_000_000)]
    unmeasured = Storm()
    async with person(f"127.3.0.{number + 1}", server) as client:
        await entered(unmeasured, client, f"h{number}")
        turn = 0
        while time.monotonic() < until:
            turn += 1
            form = {"csrf": await token_of(unmeasured, client), "name": "ones"}
            try:
                files = {"upload": ("a.json", bodies[turn % 2])}
                answer = await client.post("/phase/pre-evaluation/file", data=form, files=files)
                storm.hostile[answer.status_code] += 1
            except httpx2.TransportError:
                storm.hostile[0] += 1
            await asyncio.sleep(0.2)


async def drip(storm: Storm, server: Server, number: int, until: float) -> None:
    """One of the slow sockets, again and again until the time is over."""
    start = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-a: b"
    if number % 3 == 1:
        start = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\nname=a"
    tls = None if number % 3 == 2 else CONTEXT
    await asyncio.sleep(OPENED_S * random.Random(number).random())
    while time.monotonic() < until:
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            source = (f"127.4.0.{number % 50 + 1}", 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=source, ssl=tls)
            storm.slow_open += 1
            gone = asyncio.create_task(reader.read())
            with contextlib.suppress(OSError):
                writer.write(b"\x16\x03\x01" if tls is None else start)
                while not gone.done() and time.monotonic() < until:
                    await asyncio.wait({gone}, timeout=5)
                    writer.write(b"a")
            storm.slow_open -= 1
            storm.slow_closed += gone.done()
            gone.cancel()
            writer.transport.abort()
            storm.slow_longest_s = max(storm.slow_longest_s, time.monotonic() - begun)
        await asyncio.sleep(5)


async def lock_now_and_then(storm: Storm, database: Path, until: float) -> None:
    """Another program that writes for 5 s, every 20 s."""
    while time.monotonic() < until - 10:
        await asyncio.sleep(10)
        with contextlib.closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            storm.locked.append((begun, until))
            await asyncio.sleep(5)
            connection.execute("ROLLBACK")
            storm.locked[-1] = begun, time.monotonic()
        await asyncio.sleep(5)


def prepare_storm(folder: Path, people: int, hostile: int) -> tuple[Path, list[str], bytes]:
    """A challenge with its people, who have one password; the cookies of their sessions, and answers that fit."""
    site = challenge_site(folder / "challenge")
    now, password, cookies = datetime.now(UTC), hashed(PASSWORD), []
    key = signing_key(site.folder / KEY_FILE)
    with site.writing() as connection:
        for name in (*(f"p{number}" for number in range(people)), *(f"h{number}" for number in range(hostile))):
            changed = Changed(None, now)
            account = add_account(connection, name, "participant", "en", changed)
            take_up(connection, invite(connection, account, changed), password, now)
            token = start_session(connection, account["id"], now)
            cookies.append(Signer(key, salt="session").sign(token).decode())
            if name[0] == "h" or int(name[1:]) % 10 == 5:
                entry = TeamEntry(f"Team {name}", "Clinic", "AT", site.challenge.terms)
                register_team(connection, site.challenge, account["id"], entry)
    fitting = answers(site)
    site.engine.dispose()
    return site.folder, cookies, fitting


async def storm_over(
    storm: Storm, server: Server, folder: Path, cookies: list[str], fitting: bytes, options: argparse.Namespace
) -> None:
    """All of them at once."""
    until = time.monotonic() + options.seconds

    honest = [visit(storm, server, number, cookies[number], until, fitting) for number in range(options.people)]
    others = [attack(storm, server, number, until) for number in range(options.hostile)]
    others += [drip(storm, server, number, until) for number in range(options.slow)]
    others += [lock_now_and_then(storm, folder / "challenge.sqlite", until)]
    tasks = [asyncio.create_task(one) for one in others]
    await asyncio.gather(*honest)
    for task in tasks:
        task.cancel()
    for found in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(found, Exception):
            raise found


def run_storm(folder: Path, options: argparse.Namespace) -> None:
    """Prints what was measured; exit code 1 where it is not as wanted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    location, cookies, fitting = prepare_storm(folder, options.people, options.hostile)
    cert, key = certificate(folder)
    tls = ("--same-user", "--tls-cert", str(cert), "--tls-key", str(key))
    server, storm = Server(location, None, *tls, files=options.descriptors), Storm()
    server.start()
    before, begun = server.cpu_s(), time.monotonic()
    asyncio.run(storm_over(storm, server, location, cookies, fitting, options))
    cpu, own, seconds = server.cpu_s() - before, time.process_time(), time.monotonic() - begun
    log = server.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(
        f"{options.people} people for {options.seconds:g} s, beside {options.slow} slow sockets and {options.hostile} hostile teams"
    )
    show_times(storm.load)
    print(f"  refused: {dict(storm.load.wrong) or 'none'}; and {storm.refused_while_locked} changes (503) in "
          f"{len(storm.locked)} × 5 s of a locked database")  # fmt: skip
    print(
        f"  processor: server {cpu:.0f} s, this program {own:.0f} s of {seconds:.0f} s; load {os.getloadavg()[0]:.1f}"
    )
    print(f"  slow sockets: {storm.slow_closed} closed, the longest after {storm.slow_longest_s:.0f} s")
    print(f"  hostile uploads by status: {dict(sorted(storm.hostile.items()))}")
    print(f"  log: {len(log)} bytes, {log.count('Traceback')} tracebacks\n{log[-1500:]}")
    late = quantile(storm.load.seconds["page"], 0.95) > WANTED_MS
    sys.exit(1 if late or storm.load.wrong or len(log) > WANTED_LOG or "Traceback" in log else 0)


def show_times(load: Load) -> None:
    for kind, some in load.seconds.items():
        print(
            f"  {kind:6} {len(some):6} times   median {quantile(some, 0.5):6.1f} ms   "
            f"p95 {quantile(some, 0.95):6.1f} ms   longest {max(some) * 1000:6.1f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--descriptors", type=int, default=1024, help="file descriptors of the server")
    parser.add_argument("--slow", type=int, default=1100, help="slow sockets")
    parser.add_argument("--hostile", type=int, default=6, help="teams with hostile uploads")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run_storm(Path(name), options)


if __name__ == "__main__":
    main()
