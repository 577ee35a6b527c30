"""A store on PostgreSQL with millions of answers: rows written a second by COPY, `proctor results` by a facet, and the
joining of two stores, each with its peak of memory.

python bench/database.py --format json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from bench.results import answered, make_benchmark, measure
from proctor.runs import Store, merge_stores
from tests.support.postgres import binaries, running_postgres

ROWS_WANTED, SECONDS_WANTED = 50_000, 20.0
BATCH = 20_000


@dataclass(frozen=True)
class Done:
    """What was done with how many rows (answers and scores), in wall-clock and own CPU seconds (the server's are not in
    it), with the peak of memory."""

    what: str
    rows: int
    seconds: float
    cpu_s: float
    peak_gb: float

    def __str__(self) -> str:
        rate = f"{self.rows / self.seconds:9,.0f} rows/s" if self.rows else " " * 16
        return f"{self.what:<44}{rate}{self.seconds:8.1f} s{self.cpu_s:8.1f} s CPU  {self.peak_gb:5.2f} GB"


def write(url: str, items: int, systems: int, first: int = 0) -> tuple[int, float]:
    """Runs of some systems through the store's own API, as `proctor import` writes them: how many rows, and in how many
    seconds. All systems say the same, so that what is timed is the store and not the invention of answers."""
    benchmark = make_benchmark(items)
    store = Store(url)
    store.add_benchmark(benchmark)
    said = list(answered(benchmark, "each", 0.6))
    store.item_numbers("large")
    start = time.perf_counter()
    for number in range(first, first + systems):
        run = store.start_run("large", f"system-{number + 1:02d}", "video", {})
        for row in range(0, items, BATCH):
            store.write(run, said[row : row + BATCH])
    seconds = time.perf_counter() - start
    store.close()
    return systems * sum(1 + len(scores) for _, scores in said), seconds


def merge(target: str, source: str) -> tuple[int, float]:
    """Joins two stores: how many rows were taken, and in how many seconds."""
    start = time.perf_counter()
    into, other = Store(target), Store(source, create=False)
    taken = sum(one.taken for one in merge_stores(into, [other]))
    into.close()
    other.close()
    return taken, time.perf_counter() - start


def alone(what: str, function: Any, *arguments: Any) -> Done:
    """In a process of its own: a child's peak of memory begins with its parent's."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        rows, seconds, cpu, peak = pool.apply(_timed, (function, arguments))
    return Done(what, rows, seconds, cpu, peak)


def _timed(function: Any, arguments: tuple[Any, ...]) -> tuple[int, float, float, float]:
    rows, seconds = function(*arguments)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return rows, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--systems", type=int, default=50)
    parser.add_argument("--merged", type=int, default=2, help="further systems in a second store, which is joined")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    options = parser.parse_args()
    programs = binaries()
    assert programs is not None, "PostgreSQL's programs are not installed"
    with running_postgres(programs) as server:
        found = [
            alone(f"{options.systems} systems written", write, f"{server}/postgres", options.items, options.systems)
        ]
        print(found[-1], flush=True)
        for by in ([], ["--by", "question_type"]):
            one = measure(["results", "large", "--store", f"{server}/postgres", *by], 1)
            found.append(Done(one.command, 0, one.best, one.cpu_s, one.peak_gb))
            print(found[-1], flush=True)
        if options.merged:
            other = f"{server}/template1"
            write(other, options.items, options.merged, options.systems)
            found.append(alone(f"{options.merged} systems joined", merge, f"{server}/postgres", other))
            print(found[-1], flush=True)
    if options.format == "json":
        print(json.dumps([asdict(one) for one in found], indent=1))
    print(f"(wanted: {ROWS_WANTED:,} rows/s; results by a facet in {SECONDS_WANTED:g} s)")


if __name__ == "__main__":
    main()
