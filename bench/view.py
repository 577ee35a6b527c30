"""How fast `proctor view` opens a large store, filters it and follows a run, in a real browser.

python bench/view.py --format json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from bench.results import filled
from proctor.core import Answer, Score
from proctor.runs import Run, Store
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.web_keys import until

OPEN_S, FILTER_S, FOLLOW_S = 2.0, 0.3, 2.0
FILTERS = (
    ("wrong of one system", "system=system-{}&result=wrong", ("1", "2", "3")),
    ("failed, by a facet", "result=failed&capability={}", ("action", "anatomy", "risk")),
    ("by two facets", "question_type=risk&year={}&result=wrong", ("2018", "2019", "2020")),
    ("worst first", "sort=worst&year={}", ("2018", "2019", "2020")),
    ("words in the question", "q=clip+199{}", ("7", "8", "9")),
    ("words that nobody wrote", "q={}", ("zebra", "quartz", "xylophone")),
    ("words in every reply", "q={}", ("tension", "enters", "released")),
    ("deep in the list", "after={}.2.0", ("50000", "100000", "150000")),
)
"""What is filtered: each round another value, so that nothing is remembered from the round before."""


@dataclass(frozen=True)
class Measured:
    """One thing done: the seconds of each round, and how many are wanted at most (None: no target)."""

    what: str
    seconds: tuple[float, ...]
    wanted: float | None

    @property
    def best(self) -> float:
        return min(self.seconds)


@contextmanager
def viewing(store: Path, compiled: Path) -> Iterator[tuple[str, subprocess.Popen[str], float]]:
    """A process that shows a store: its address, and when it was started. `compiled` is the folder of compiled modules,
    which an installed package has beside its files: the first process of a bench fills it."""
    command = [str(Path(sys.executable).with_name("proctor")), "view", str(store)]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=kept | {"PYTHONPYCACHEPREFIX": str(compiled)}
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield line.split(" at ")[1].split(" ")[0].rstrip("/"), process, began
        finally:
            process.send_signal(signal.SIGKILL)


async def loaded(page: Page, address: str) -> float:
    """The seconds until a page is there: from the click to the event `load`."""
    began = time.perf_counter()
    await page.open(address)
    return time.perf_counter() - began


async def computed(page: Page, address: str) -> float:
    """The seconds until the leaderboard is there."""
    began = time.perf_counter()
    await page.open(address)
    await until(page, "document.querySelector('.chart') !== null")
    return time.perf_counter() - began


async def followed(page: Page, address: str, store: Path, rounds: int) -> list[float]:
    """The seconds from a write to the screen."""
    writer = Store(store, create=False)
    run = writer.start_run("large", f"newcomer-{time.time_ns()}", "video", {})
    await page.open(f"{address}/b/large")
    count = f"[...document.querySelectorAll('#runs tr')].find((one) => one.textContent.includes('{run.system}'))?.innerText || ''"
    found = list[float]()
    with writer.owning([run]):
        await _written(page, writer, run, count, found, rounds)
    writer.close()
    return found[2:]  # the first ones wait for the page and for the run to be noticed


async def _written(page: Page, writer: Store, run: Run, count: str, found: list[float], rounds: int) -> None:
    for number in range(rounds + 2):
        answer = Answer(item_id=f"q{number:06d}", text="Answer: A", parsed="A")
        began = time.perf_counter()
        writer.write(run, [(answer, [Score(item_id=answer.item_id, metric="accuracy", value=1.0)])])
        await until(page, f"({count}).includes('\\t{number + 1} / ')")
        found.append(time.perf_counter() - began)


def peak_gb(process: subprocess.Popen[str]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e6


def cpu_s(process: subprocess.Popen[str]) -> float:
    """The processor's time of a process in all its threads."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(store: Path, compiled: Path, rounds: int) -> tuple[list[Measured], float]:
    """All that is measured, and the peak of memory in GB."""
    program = find_chromium()
    assert program is not None, "no Chromium here"
    opened, first, spent, at_once = list[float](), list[float](), list[float](), list[float]()
    done = list[Measured]()
    async with open_page(program) as page:
        with viewing(store, compiled) as (address, _, _):  # not measured: it compiles
            await page.open(f"{address}/b/large/answers")
        for _ in range(rounds):
            with viewing(store, compiled) as (address, process, began):
                opened.append(time.perf_counter() - began)
                await page.open(f"{address}/b/large")
                first.append(time.perf_counter() - began)
                spent.append(cpu_s(process))
                at_once.append(await loaded(page, f"{address}/b/large/answers?result=right"))
        with viewing(store, compiled) as (address, process, _):
            cold = await loaded(page, f"{address}/b/large/answers?result=wrong")
            done.append(Measured("first page is a filter's", (cold,), OPEN_S))
            whole = await computed(page, f"{address}/b/large")
            for name, query, values in FILTERS:
                each = [await loaded(page, f"{address}/b/large/answers?{query.format(value)}") for value in values]
                done.append(Measured(f"filter: {name}", tuple(each), FILTER_S))
            link = await page.evaluate("document.querySelector('#opened').dataset.link")
            for name, path in (("an answer", link), ("items", "/b/large/items"), ("overview", "/b/large")):
                each = [await loaded(page, address + path) for _ in range(rounds)]
                done.append(Measured(f"page: {name}", tuple(each), FILTER_S))
            done.append(Measured("leaderboard with intervals", (whole,), None))
            each = await followed(page, address, store, rounds)
            done.append(Measured("a new answer on the screen", tuple(each), FOLLOW_S))
            peak = peak_gb(process)
    start = [
        Measured("server is ready", tuple(opened), None),
        Measured("first page is there", tuple(first), OPEN_S),
        Measured("processor's time until then", tuple(spent), None),
        Measured("filter at once after the first page", tuple(at_once), FILTER_S),
    ]
    return [*start, *done], peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--systems", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", type=Path, help="keep the store here, or use the one that is here")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = filled(options.store or Path(folder) / "large.db", options.items, options.systems, 1)
        done, peak = asyncio.run(measure(path, Path(folder) / "compiled", options.rounds))
    if options.format == "json":
        print(json.dumps([asdict(one) | {"best": one.best} for one in done] + [{"what": "peak_gb", "best": peak}]))
        return
    for one in done:
        wanted = "" if one.wanted is None else f"  (wanted: {one.wanted:g} s)"
        rounds = ", ".join(f"{each:.2f}" for each in one.seconds)
        print(f"{one.what:<38}{one.best:6.2f} s  rounds: {rounds}{wanted}")
    print(f"peak of memory {peak:.2f} GB; load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
