"""Time and memory of `proctor analyze` and `proctor report` over many systems and questions, and whether the report's
page keeps a browser busy: the longest task of its opening in Chromium.

python bench/analysis.py --format json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from bench.results import fill, spent
from tests.support.chromium import find_chromium, open_page

TARGETS = {"analyze": 40.0, "report": 60.0}  # seconds
TARGET_GB, TARGET_MS = 2.0, 200.0

_WATCH = """
window.tasks = [0];
new PerformanceObserver(list => tasks.push(...list.getEntries().map(one => one.duration)))
  .observe({type: "longtask", buffered: true});
"""
# When the browser of items is there, and the longest task until a second after that.
_SHOWN = """
new Promise(done => {
  const look = () => {
    if (!document.getElementById("count")) { setTimeout(look, 10); return; }
    const shown = performance.now();
    setTimeout(() => done([shown, Math.max(...tasks)]), 1000);
  };
  look();
})
"""


@dataclass(frozen=True)
class Spent:
    """One command: wall-clock and CPU seconds, and the peak of resident memory."""

    command: str
    wall_s: float
    cpu_s: float
    peak_gb: float

    def __str__(self) -> str:
        name = self.command.split()[1]
        return (
            f"{self.command:<40}{self.wall_s:7.1f} s  {self.cpu_s:6.1f} s CPU  {self.peak_gb:5.2f} GB  "
            f"(wanted: {TARGETS[name]:g} s, {TARGET_GB:g} GB)"
        )


@dataclass(frozen=True)
class Opened:
    """A report in a browser: its size, when all of it was there, and the longest task of its opening."""

    megabytes: float
    shown_ms: float
    longest_task_ms: float

    def __str__(self) -> str:
        return (
            f"report of {self.megabytes:.1f} MB in Chromium: all of it there after {self.shown_ms:.0f} ms, longest task "
            f"{self.longest_task_ms:.0f} ms (wanted: {TARGET_MS:g} ms)"
        )


def measured(name: str, store: Path, *more: str) -> Spent:
    """The command in a process of its own."""
    wall, cpu, peak, _ = spent([name, "large", "--store", str(store), *more])
    return Spent(" ".join(["proctor", name, "large", *more[:-2]]), wall, cpu, peak)


def opened(report: Path) -> Opened:
    """The report in a browser."""
    shown, longest = asyncio.run(_watched(report.resolve().as_uri()))
    return Opened(report.stat().st_size / 1e6, shown, longest)


async def _watched(address: str) -> tuple[float, float]:
    program = find_chromium()
    assert program is not None, "no Chromium; --no-browser leaves it out"
    async with open_page(program) as page:
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
        await page.open(address)
        shown, longest = await page.evaluate(_SHOWN)
        return float(shown), float(longest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--systems", type=int, default=50)
    parser.add_argument("--store", type=Path, help="keep the store here, or use the one that is here")
    parser.add_argument("--no-browser", action="store_true", help="do not open the report")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.store or Path(folder) / "large.db"
        if not path.exists():
            # In a process of its own: a child's peak of memory begins with its parent's.
            writer = multiprocessing.get_context("spawn").Process(
                target=fill, args=(path, options.items, options.systems)
            )
            writer.start()
            writer.join()
            assert writer.exitcode == 0
        page = Path(folder) / "report.html"
        found: list[Spent | Opened] = [
            measured("analyze", path, "--failed", "wrong", "--out", str(Path(folder) / "tables")),
            measured("analyze", path, "--out", str(Path(folder) / "tables")),
            measured("report", path, "--out", str(page)),
        ]
        if not options.no_browser:
            found.append(opened(page))
    print(
        json.dumps([asdict(one) for one in found], indent=1) if options.format == "json" else "\n".join(map(str, found))
    )


if __name__ == "__main__":
    main()
