"""Many workers on one evaluation: items claimed a second, answers a second, and what kills do.

python bench/scale.py                                  # claims by 64 claimers, answers by 1, 2, 4 and 8 workers
python bench/scale.py --kills --items 20000            # 8 workers, one killed every 10 s and another one started
python bench/scale.py --kills --items 5000 --workers 4 --sqlite
python bench/scale.py --ray --items 2000 --workers 4   # the same evaluation on a Ray cluster of this machine

Claims: 64 threads in 8 processes claim parts of 16 items from PostgreSQL until none is left. Answers: workers, each a
process of its own, ask a system that answers at once; each answer is on disk before it counts. Kills: workers are
`proctor worker`, as on several machines, and ask a scripted server. Every item must have one answer; what had one on disk
is never asked again, and what is asked twice had its question under way at a kill; hash, results and
report (but for times, dates and the server's address) must be those of one worker. PostgreSQL runs without fsync here, so
that disks don't decide; SQLite keeps it. CPU seconds stand beside what depends on how busy the machine is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor.core import ACCURACY, Answer, Benchmark, Frame, Item, Reference, View, generator
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
        claims, found, own, draws = ItemClaims(store), 0, parts, generator(number, "claimer")
        while own:
            free = claims.look(run).free
            own = [part for part in own if not free.isdisjoint(part)]
            start = int(draws.integers(len(own) or 1))
            for part in own[start:] + own[:start]:
                mine = claims.take(run, part)
                found += len(mine)
                if len(mine) < len(part):
                    break
        return found

    with ExitStack() as opening:  # connections are there, as in workers that have been at it for a while
        for _ in range(THREADS):
            opening.enter_context(store.reading())
    base = ready.get()
    counts.put((-1, 0.0))
    go.wait()
    begun = time.process_time()
    with ThreadPoolExecutor(THREADS) as pool:
        found = sum(pool.map(claim, range(base, base + THREADS)))
    counts.put((found, time.process_time() - begun))
    store.close()


def server_seconds(url: str) -> float:
    """CPU seconds of the PostgreSQL server at this address and of its children, so far."""
    port, seen, parents = f"-p\0{urlsplit(url).port}\0".encode(), dict[int, float](), dict[int, int]()
    root, tick = 0, os.sysconf("SC_CLK_TCK")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(process.name)
        parents[number] = int(fields[1])
        seen[number] = sum(map(int, fields[11:15])) / tick  # with those of children that have ended
        root = number if port in words and b"postgres" in words.split(b"\0")[0] else root
    return sum(taken for number, taken in seen.items() if root in {number, parents[number]})


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
        begun, before = time.perf_counter(), server_seconds(url)
        go.set()
        got = [counts.get() for _ in processes]
        took, taken, cpu = time.perf_counter() - begun, sum(one for one, _ in got), sum(one for _, one in got)
        server = server_seconds(url) - before
        for process in processes:
            process.join()
    store.close()
    return {
        "claimers": PROCESSES * THREADS,
        "items": taken,
        "exact": taken == items,
        "a_second": taken / took,
        "a_cpu_second": taken / (cpu + server),
        "a_cpu_second_of_the_server": taken / max(server, 0.01),
    }


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


def run_words(data: Path, store: str, server: FaultyServer) -> list[str]:
    """The command of the run that all share."""
    words = ["run", "simulated", "--data", data, "--store", store, "--condition", "text-only"]
    return [*map(str, words), "--model", "local", "--base-url", server.url, "--concurrency", "8"]


def started(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "proctor", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def ended(process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise SystemExit(f"{process.args!r} ended with {process.returncode}")


def told(store: str | Path) -> tuple[str, Any]:
    """An evaluation's hash, and its results as programs read them."""
    opened = Store(store, create=False)
    content = evaluation_content(opened, "simulated")
    opened.close()
    words = ["results", "simulated", "--store", str(store), "--format", "json"]
    done = subprocess.run([sys.executable, "-m", "proctor", *words], capture_output=True, text=True, check=True)
    return content.sha256, json.loads(done.stdout)


def sections(store: str | Path, folder: Path) -> dict[str, str]:
    """The words of a report's sections by their names, without what differs from run to run: times, and the server's
    address and the dates under provenance."""
    page = folder / "report.html"
    words = ["report", "simulated", "--store", str(store), "--out", str(page)]
    subprocess.run([sys.executable, "-m", "proctor", *words], capture_output=True, text=True, check=True)
    found = re.finditer(r'<section[^>]*id="([^"]+)".*?(?=<section|<script|</main)', page.read_text(), re.DOTALL)
    told = {one[1]: " ".join(re.sub(r"<[^>]+>", " ", one[0]).split()) for one in found}
    return {name: text for name, text in told.items() if name not in ("consumption", "provenance")}


def with_kills(url: str, folder: Path, items: int, workers: int, every_s: float) -> dict[str, Any]:
    """Workers on one store, of which one is killed now and then; and one worker alone on another store."""
    data = write_text_folder(folder / "data", items)
    with FaultyServer(answer_tray, latency_s=0.05, keep=2 * items) as server:
        if url.startswith("postgresql"):
            ended(started(*run_words(data, url, server), "--on", "store"))
            join = ["worker", "--store", url, "--once"]
        else:
            join = [*run_words(data, url, server), "--share"]
        running, kills, unanswered = [started(*join) for _ in range(workers)], 0, set[str]()
        due, begun = time.monotonic() + every_s, time.monotonic()
        while any(one.poll() is None for one in running):
            time.sleep(0.1)
            alive = [one for one in running if one.poll() is None]
            if time.monotonic() >= due and alive:
                victim = alive[kills % len(alive)]
                os.killpg(victim.pid, signal.SIGKILL)
                victim.wait()
                kills += 1
                unanswered |= {item_of(one) for one in server.requests} - answered(url)
                running.append(started(*join))
                due = time.monotonic() + every_s
        took = time.monotonic() - begun
        asked = Counter(item_of(one) for one in server.requests)
    again = {item for item, count in asked.items() if count > 1}
    return compared(url, folder, data, took) | {
        "workers": workers,
        "kills": kills,
        "asked_twice": len(again),
        "of_these_answered_before": len(again - unanswered),
        "under_way_at_kills_at_most": kills * 8,
    }


def answered(url: str) -> set[str]:
    """The items with an answer on disk; none before a worker has made the store."""
    if "://" not in url and not Path(url).exists():
        return set()
    store = Store(url, create=False)
    run = next(one for one in store.runs("simulated") if one.system == "local")
    found = set(store.answers(run))
    store.close()
    return found


def on_ray(url: str, folder: Path, items: int, workers: int) -> dict[str, Any]:
    """The same on actors of a Ray cluster of this machine."""
    data = write_text_folder(folder / "data", items)
    with FaultyServer(answer_tray, latency_s=0.05, keep=2 * items) as server:
        begun = time.monotonic()
        ended(started(*run_words(data, url, server), "--on", "ray", "--workers", str(workers)))
        took = time.monotonic() - begun
        asked = Counter(item_of(one) for one in server.requests)
    return compared(url, folder, data, took) | {"workers": workers, "asked_twice": max(asked.values()) - 1}


def compared(url: str, folder: Path, data: Path, took: float) -> dict[str, Any]:
    """What a store holds beside what one worker alone has."""
    alone = folder / "alone.db"
    with FaultyServer(answer_tray) as server:
        ended(started(*run_words(data, str(alone), server)))
    store = Store(url, create=False)
    run = next(one for one in store.runs("simulated") if one.system == "local")
    answered, failed = store.count_answers(run)
    items = len(store.item_numbers("simulated"))
    store.close()
    here, there = told(url), told(alone)
    return {
        "items": items,
        "answered": answered,
        "failed": failed,
        "seconds": took,
        "same_hash": here[0] == there[0],
        "same_results": here[1] == there[1],
        "same_report": sections(url, folder) == sections(alone, folder),
    }


@contextmanager
def locations(*, sqlite: bool) -> Iterator[Any]:
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
    parser.add_argument("--items", type=int, default=16000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between kills")
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with locations(sqlite=given.sqlite) as new, tempfile.TemporaryDirectory() as folder:
        if given.kills:
            found["kills"] = with_kills(new("kills"), Path(folder), given.items, given.workers, given.every)
        elif given.ray:
            found["ray"] = on_ray(new("ray"), Path(folder), given.items, given.workers)
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
