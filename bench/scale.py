"""Many workers on one evaluation: items claimed a second, answers a second, and what kills do.

python bench/scale.py                                  # claims by 64 claimers, answers by 1, 2, 4 and 8 workers
python bench/scale.py --kills --items 20000            # 8 workers, one killed every 10 s and another one started
python bench/scale.py --kills --items 5000 --workers 4 --sqlite

Claims: 64 threads in 8 processes claim parts of 16 items from PostgreSQL until none is left. Answers: workers, each a
process of its own, ask a system that answers at once; each answer is on disk before it counts. Kills: workers are
`proctor run --share`, as on several machines, and ask a scripted server. Every item must have one answer, at
most those that were under way at a kill are asked twice, and the hash of the evaluation must be that of one worker's. PostgreSQL runs
without fsync here, so that disks don't decide; SQLite keeps it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor.core import ACCURACY, Answer, Benchmark, Frame, Item, Reference, View
from proctor.core.formats import CountFormat
from proctor.metrics import AccuracyScorer
from proctor.runs import ItemClaims, Limits, Run, Store, evaluation_content
from proctor.runs.engine import Job, ask_all
from tests.support.faulty_server import FaultyServer
from tests.support.postgres import binaries, running_postgres
from tests.support.text_folder import answer_tray, item_of, write_text_folder

SPAWN = multiprocessing.get_context("spawn")
PROCESSES, THREADS, PART = 8, 8, 16
WANTED_CLAIMS = 2000


class Blind:
    """Shows nothing."""

    condition = "text-only"
    span = None

    async def frames(self, **_: Any) -> list[Frame]:
        return []


class Instant:
    """Answers at once."""

    name = "instant"

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    def supports(self, item: Item) -> bool:
        return bool(item.id)

    async def answer(self, item: Item, view: View) -> Answer:
        await view.frames()
        return Answer(item_id=item.id, text="Answer: 1")


def benchmark(count: int) -> Benchmark:
    items = tuple(
        Item(id=f"q{k:06d}", group=f"v{k // 20}", question="?", answer=CountFormat(), reference=Reference(answer=1))
        for k in range(count)
    )
    return Benchmark(name="toy", title="Toy", items=items, metrics=(ACCURACY,), headline="accuracy")


def opened(url: str) -> tuple[Store, Run]:
    store = Store(url)
    return store, store.start_run("toy", "instant", "text-only", {})


def claim_all(url: str, ready: Any, go: Any, counts: Any) -> None:
    """One process of claimers."""
    store, run = opened(url)
    names = sorted(store.item_numbers("toy"))
    parts = [names[start : start + PART] for start in range(0, len(names), PART)]

    def claim(number: int) -> int:
        claims, found = ItemClaims(store), 0
        start = number * len(parts) // (PROCESSES * THREADS)
        own = parts[start:] + parts[:start]
        while own:
            free = claims.look(run).free
            own = [part for part in own if free.intersection(part)]
            for part in own:
                mine = claims.take(run, part)
                found += len(mine)
                if len(mine) < len(part):
                    break
        return found

    base = ready.get()
    counts.put(-1)
    go.wait()
    with ThreadPoolExecutor(THREADS) as pool:
        counts.put(sum(pool.map(claim, range(base, base + THREADS))))
    store.close()


def claims_a_second(url: str, items: int) -> dict[str, Any]:
    store = Store(url)
    store.add_benchmark(benchmark(items))
    run = store.start_run("toy", "instant", "text-only", {})
    ready, go, counts = SPAWN.Queue(), SPAWN.Event(), SPAWN.Queue()
    with ItemClaims(store).sharing([run]):
        processes = [SPAWN.Process(target=claim_all, args=(url, ready, go, counts)) for _ in range(PROCESSES)]
        for number, process in enumerate(processes):
            process.start()
            ready.put(number * THREADS)
        for _ in processes:
            counts.get()
        begun = time.perf_counter()
        go.set()
        taken = sum(counts.get() for _ in processes)
        took = time.perf_counter() - begun
        for process in processes:
            process.join()
    store.close()
    rate = taken / took
    return {"claimers": PROCESSES * THREADS, "items": taken, "seconds": took, "a_second": rate, "exact": taken == items}


def work(url: str, go: Any, ready: Any) -> None:
    """One worker."""
    store, run = opened(url)
    job = Job(run, Instant(), store.items("toy"), lambda _: Blind(), (AccuracyScorer(),))
    ready.put(1)
    go.wait()
    asyncio.run(ask_all([job], store, limits=Limits(concurrency=16), claims=ItemClaims(store)))
    store.close()


def answers_a_second(url: str, items: int, workers: int) -> dict[str, Any]:
    store = Store(url)
    store.add_benchmark(benchmark(items))
    run = store.start_run("toy", "instant", "text-only", {})
    go, ready = SPAWN.Event(), SPAWN.Queue()
    processes = [SPAWN.Process(target=work, args=(url, go, ready)) for _ in range(workers)]
    for process in processes:
        process.start()
    for _ in processes:
        ready.get()
    begun = time.perf_counter()
    go.set()
    for process in processes:
        process.join()
    took = time.perf_counter() - begun
    done, failed = store.count_answers(run)
    store.close()
    return {"workers": workers, "answers": done, "failed": failed, "a_second": done / took}


def with_kills(url: str, folder: Path, items: int, workers: int, every_s: float, lone: Path) -> dict[str, Any]:
    """Workers on one store, of which one is killed now and then; and one worker alone on another store."""
    data = write_text_folder(folder / "data", items)

    def start(store: str, server: FaultyServer, *more: str) -> subprocess.Popen[bytes]:
        words = [
            "run",
            "simulated",
            "--data",
            str(data),
            "--store",
            store,
            "--condition",
            "text-only",
            "--no-baselines",
        ]
        words += ["--model", "local", "--base-url", server.url, "--concurrency", "8", *more]
        command = [sys.executable, "-m", "proctor", *words]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    with FaultyServer(answer_tray, latency_s=0.05) as server:
        running, kills = [start(url, server, "--share") for _ in range(workers)], 0
        due, begun = time.monotonic() + every_s, time.monotonic()
        while any(one.poll() is None for one in running):
            time.sleep(0.1)
            alive = [one for one in running if one.poll() is None]
            if time.monotonic() >= due and alive:
                victim = alive[kills % len(alive)]
                os.killpg(victim.pid, signal.SIGKILL)
                victim.wait()
                kills += 1
                running.append(start(url, server, "--share"))
                due = time.monotonic() + every_s
        took = time.monotonic() - begun
        asked = Counter(item_of(one) for one in server.requests)
    with FaultyServer(answer_tray) as server:
        start(str(lone), server).wait()
    shared, alone = Store(url, create=False), Store(lone, create=False)
    content, expected = evaluation_content(shared, "simulated"), evaluation_content(alone, "simulated")
    return {
        "items": items,
        "workers": workers,
        "kills": kills,
        "seconds": took,
        "answered": content.runs[0].answers - content.runs[0].failed,
        "asked_twice": sum(count > 1 for count in asked.values()),
        "under_way_at_kills_at_most": kills * 8,
        "same_hash": content.sha256 == expected.sha256,
    }


@contextmanager
def places(*, sqlite: bool) -> Iterator[Any]:
    """Gives the address of a new, empty store, as often as it is called."""
    with tempfile.TemporaryDirectory(prefix="proctor-scale-") as folder:
        if sqlite:
            yield lambda name: str(Path(folder) / f"{name}.db")
            return
        programs = binaries()
        if programs is None:
            raise SystemExit("PostgreSQL is not installed here: use --sqlite")
        import sqlalchemy

        with running_postgres(programs) as server:

            def new(name: str) -> str:
                admin = sqlalchemy.create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
                with admin.connect() as connection:
                    connection.exec_driver_sql(f'CREATE DATABASE "{name}"')
                admin.dispose()
                return f"{server}/{name}"

            yield new


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between kills")
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with places(sqlite=given.sqlite) as new, tempfile.TemporaryDirectory() as folder:
        if given.kills:
            lone = Path(folder) / "alone.db"
            found["kills"] = with_kills(new("kills"), Path(folder), given.items, given.workers, given.every, lone)
        else:
            if not given.sqlite:
                found["claims"] = claims_a_second(new("claims"), given.items)
            counts = [count for count in (1, 2, 4, 8) if count <= (4 if given.sqlite else 8)]
            found["answers"] = [answers_a_second(new(f"answers{count}"), given.items, count) for count in counts]
    if given.format == "json":
        print(json.dumps(found, indent=1))
        return
    for name, rows in found.items():
        for row in rows if isinstance(rows, list) else [rows]:
            shown = (
                f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            )
            print(f"{name}: {', '.join(shown)}")


if __name__ == "__main__":
    main()
