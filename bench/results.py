"""Time and memory of `proctor results` over a large store, through the command line; with --repetitions K beside it a
store with as many answers, K to each item.

python bench/results.py --format json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference, Score, Status, Timing, Usage, generator
from proctor.core.formats import ChoiceFormat
from proctor.runs import Store

TARGET_S, TARGET_GB = 1.5, 0.6
LETTERS = "ABCD"
OPTIONS = ("it is grasped", "it is cut", "it is clipped", "it is left alone")
PER_GROUP = 50
FAILED_SHARE = 0.01
BATCH = 5000


@dataclass(frozen=True)
class Measured:
    """One command: seconds of wall-clock time in each round, CPU time (the least of all
    rounds, which other load on the machine hardly disturbs), and the highest peak of resident memory."""

    command: str
    seconds: tuple[float, ...]
    cpu_s: float
    peak_gb: float
    rows: int

    @property
    def best(self) -> float:
        return min(self.seconds)


def make_benchmark(items: int) -> Benchmark:
    """Choices in groups of 50, with a plain facet, a numeric one, and one of several values an item."""
    types = ("action", "anatomy", "instrument", "order", "risk", "phase")
    return Benchmark(
        name="large",
        title="Large",
        items=tuple(
            Item(
                id=f"q{number:06d}",
                group=f"video {number // PER_GROUP:05d}",
                question=f"What happens to the duct in clip {number}?",
                answer=ChoiceFormat(),
                options=OPTIONS,
                reference=Reference(answer=LETTERS[number % 4]),
                tags={
                    "question_type": types[number % len(types)],
                    "year": 2015 + number // PER_GROUP % 10,
                    "capability": (types[number % 5], types[5]) if number % 3 else (types[number % 5],),
                },
            )
            for number in range(items)
        ),
        metrics=(ACCURACY,),
        headline="accuracy",
        facets=("question_type", "year", "capability"),
    )


def answered(
    benchmark: Benchmark, system: str, share_right: float, repetition: int = 0
) -> Iterator[tuple[Answer, list[Score]]]:
    """Answers of some length, a share of them right; 1 % failed."""
    rng = generator(repetition, "bench", system)
    right = rng.random(len(benchmark.items)) < share_right
    failed = rng.random(len(benchmark.items)) < FAILED_SHARE
    why = "The instrument enters from the left, the duct is put under tension and then released. " * 3
    for number, item in enumerate(benchmark.items):
        if failed[number]:
            reason = "HTTP 500: the server had an error"
            yield (Answer(item_id=item.id, repetition=repetition, status=Status.FAILED, reason=reason), [])
            continue
        letter = LETTERS[(number + (0 if right[number] else 1)) % 4]
        answer = Answer(
            item_id=item.id,
            repetition=repetition,
            text=f"Answer: {letter}\n{why}",
            parsed=letter,
            usage=Usage(requests=1, input_tokens=900, output_tokens=70),
            timing=Timing(model_s=1.25, media_s=0.1, queue_s=0.01),
            extra={"model": system, "finish_reason": "stop", "cut_off": False, "frames": 8},
        )
        value = float(right[number])
        yield answer, [Score(item_id=item.id, repetition=repetition, metric="accuracy", value=value)]


def fill(path: Path, items: int, systems: int, repetitions: int = 1) -> None:
    """Writes the store through its own API, and says how fast."""
    benchmark = make_benchmark(items)
    store = Store(path)
    store.add_benchmark(benchmark)
    start = time.perf_counter()
    for number in range(systems):
        name = f"system-{number + 1}"
        run = store.start_run("large", name, "video", {"repeats": repetitions} if repetitions > 1 else {})
        for repetition in range(repetitions):
            batch: list[tuple[Answer, list[Score]]] = []
            for scored in answered(benchmark, name, 0.6 + 0.05 * number, repetition):
                batch.append(scored)
                if len(batch) == BATCH:
                    store.write(run, batch)
                    batch = []
            store.write(run, batch)
    store.close()
    rate = items * systems * repetitions / (time.perf_counter() - start)
    sys.stderr.write(f"{systems} × {items} × {repetitions} answers written, {rate:.0f} a second\n")


def spent(arguments: Sequence[str]) -> tuple[float, float, float, bytes]:
    """The program in a process of its own: its wall-clock and CPU seconds, its peak of memory in GB, what it printed."""
    start = time.perf_counter()
    command = [str(Path(sys.executable).with_name("proctor")), *arguments]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"{' '.join(command)} ended with {process.returncode}"
        seconds = time.perf_counter() - start
        out.seek(0)
        return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9, out.read()  # kilobytes on Linux


def measure(arguments: Sequence[str], rounds: int) -> Measured:
    """The command, in each of several rounds."""
    each = [spent([*arguments, "--format", "json"]) for _ in range(rounds)]
    seconds, cpu, peak, printed = zip(*each, strict=True)
    shown = " ".join(["proctor", *arguments[:2], *arguments[4:]])
    return Measured(shown, seconds, min(cpu), max(peak), len(json.loads(printed[-1])))


def table(measured: Measured) -> str:
    """For people."""
    each = ", ".join(f"{one:.2f}" for one in measured.seconds)
    return (
        f"{measured.command:<50}{measured.best:6.2f} s  {measured.cpu_s:5.2f} s CPU  {measured.peak_gb:5.2f} GB  "
        f"{measured.rows:4} rows  "
        f"rounds: {each}  (wanted: {TARGET_S:g} s, {TARGET_GB:g} GB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--systems", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--store", type=Path, help="keep the store here, or use the one that is here")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = filled(options.store or Path(folder) / "large.db", options.items, options.systems, 1)
        parts: list[list[str]] = [[], ["--by", "question_type"], ["--by", "capability"], ["--by", "question_type,year"]]
        commands = [["results", "large", "--store", str(path), *by] for by in parts]
        if options.repetitions > 1:
            items = options.items // options.repetitions
            path = filled(Path(folder) / "repeated.db", items, options.systems, options.repetitions)
            commands.append(["results", "large", "--store", str(path)])
        found = []
        for command in commands:
            found.append(measure(command, options.rounds))
            if options.format == "table":
                print(table(found[-1]), flush=True)
        if options.repetitions > 1 and options.format == "table":
            print(
                f"{options.repetitions} repetitions: {found[-1].best / found[0].best:.2f} × the time of single answers"
            )
    if options.format == "json":
        print(json.dumps([asdict(one) | {"best": one.best} for one in found], indent=1))


def filled(path: Path, *filling: int) -> Path:
    """The store, which is written if it is not there: in a process of its own, as a child's peak of memory begins with
    its parent's."""
    if not path.exists():
        writer = multiprocessing.get_context("spawn").Process(target=fill, args=(path, *filling))
        writer.start()
        writer.join()
        assert writer.exitcode == 0
    return path


if __name__ == "__main__":
    main()
