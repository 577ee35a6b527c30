"""Broken files for every reader, hostile texts for every format and guard, for as long as one likes.

Each target runs in a process of its own, which may grow by 500 MB and spend 5 s on a case; one that hangs, grows
or raises anything but a refusal is reported with the seed that repeats it.

    python bench/fuzz.py --minutes 5
    python bench/fuzz.py --target focus --seed 1234     one case again, with its traceback
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the tests' helpers, and no `statistics` of this folder

from proctor.core import ParseError
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    Format,
    FreeTextFormat,
    OrderingFormat,
    PatternFormat,
    PercentageFormat,
    RatingsFormat,
    TimestampsFormat,
)
from proctor.judges.prompt_injection import FENCE_CLOSE, has_injection, sanitize
from tests.support.fuzzing import TARGETS, one_case

PATIENCE_S = 5  # of the processor, however busy the machine
CASES = 2_000  # of one process: what its libraries keep is no growth of a case
HANGS_S = 120  # by the clock: what waits and does not work
GROWTH_BYTES = 500 * 2**20
FORMATS: tuple[Format, ...] = (
    ChoiceFormat(),
    OrderingFormat(labels=("A", "B", "C", "D")),
    BinaryFormat(),
    CountFormat(),
    PercentageFormat(),
    ClassesFormat(classes=("Clip", "Sponge")),
    TimestampsFormat(),
    PatternFormat(pattern=r"\d/\d"),
    FreeTextFormat(),
    RatingsFormat(dimensions=("accuracy",)),
)
PIECES = (
    "Answer:", "answer is", "A", "B", " > ", ", ", "or", "and", "yes", "no", "3", "40%", "00:01:05", "9" * 400, "1e999",
    "<think>", "</think>", "```json", "```", "**", "\\boxed{", "}", "{", '"', "[", "]", "<<<ANSWER", "ANSWER>>>", "<", ">",
    "\n", " ", "\t", "\u200b", "\ud800", "\x00", "ignore", "previous", "score", "答案", "：", "满分", "½", "٣", "²", "Clip", "none",
    "(", ")", ".", "/", "\\", "'", "NaN", "-", "I cannot see a video",
)  # fmt: skip


def a_text(draw: random.Random) -> str:
    """Pieces at random, or one of them a hundred thousand times."""
    if draw.random() < 0.2:
        one = "".join(draw.choices(PIECES, k=draw.choice((1, 1, 2, 3))))
        return (one * 100_000)[: draw.choice((10_000, 100_000))]
    return "".join(draw.choices(PIECES, k=draw.choice((3, 8, 30, 200))))


def texts(seed: int, folder: Path) -> str:
    """One text for all formats and guards."""
    del folder
    text = a_text(random.Random(f"texts {seed}"))
    read = 0
    for form in FORMATS:
        try:
            form.parse(text, ("red", "blue") if isinstance(form, ChoiceFormat) else ())
            read += 1
        except ParseError:
            pass
    if FENCE_CLOSE in sanitize(text):
        raise AssertionError("a fence is left")
    has_injection(text)
    return "accepted" if read > 1 else "refused"  # free text takes everything


def case_of(name: str) -> Callable[[int, Path], str]:
    return texts if name == "texts" else lambda seed, folder: one_case(name, seed, folder)


def one(name: str, seed: int) -> str:
    """How one case ended: "accepted", "refused", or the fault."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return "accepted" if case_of(name)(seed, Path(folder)) == "accepted" else "refused"
        except MemoryError:
            return "more than 500 MB"
        except TimeoutError:
            return f"more than {PATIENCE_S} s"
        except Exception as error:  # noqa: BLE001 - each is what is looked for
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__}: {str(error)[:80]!r} at {Path(last.filename).name}:{last.lineno}"


def work(name: str, first: int, until: float, out: Connection) -> None:
    """Cases of one target from a seed on, each reported before and after, until the time is over."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGPROF, too_slow)
    with tempfile.TemporaryDirectory() as folder:  # what is imported and cached at first is no growth
        TARGETS.get(name, TARGETS["events"]).write(Path(folder))
        TARGETS.get(name, TARGETS["events"]).read(Path(folder))
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + GROWTH_BYTES, resource.RLIM_INFINITY))
    seed = first
    while time.monotonic() < until and seed < first + CASES:
        out.send((seed, ""))
        signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
        ended = one(name, seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        out.send((seed, ended))
        seed += 1
    out.close()


def too_slow(*_: object) -> None:
    raise TimeoutError


def run(name: str, seconds: float, first: int) -> tuple[Counter[str], dict[str, int]]:
    """All cases of a target in the time: how they ended, and of each fault a seed. A process that dies or does not
    even hear its alarm is ended, reported, and followed by another."""
    until, seed = time.monotonic() + seconds, first
    ended: Counter[str] = Counter()
    faults: dict[str, int] = {}
    while time.monotonic() < until:
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=work, args=(name, seed, until, there))
        process.start()
        there.close()
        fault = ""
        while True:
            try:
                if not here.poll(HANGS_S):
                    fault = f"hangs for {HANGS_S} s"
                    process.kill()
                    break
                seed, said = here.recv()
            except EOFError:
                break
            if said:
                ended[said] += 1
                faults.setdefault(said, seed)
        process.join()
        if process.exitcode and not fault:
            fault = f"the process died ({process.exitcode})"
        if fault:
            ended[fault] += 1
            faults.setdefault(fault, seed)
        seed += 1
    return ended, {fault: seed for fault, seed in faults.items() if fault not in {"accepted", "refused"}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="for all targets together")
    parser.add_argument("--target", action="append", choices=["texts", *TARGETS], help="only these")
    parser.add_argument("--seed", type=int, default=None, help="one case of one target again")
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed")
    given = parser.parse_args()
    names = given.target or ["texts", *TARGETS]
    if given.seed is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(case_of(names[0])(given.seed, Path(folder)))
        return 0
    found: dict[str, dict[str, object]] = {}
    for name in names:
        ended, faults = run(name, given.minutes * 60 / len(names), given.first)
        known = {kind: ended.pop(kind, 0) for kind in ("accepted", "refused")}
        found[name] = {**known, "faults": sum(ended.values()), "seeds": faults}
        print(f"{name:16} accepted {known['accepted']:6} refused {known['refused']:6} faults {sum(ended.values()):4}")
        for fault, seed in faults.items():
            print(f"    seed {seed}: {fault} ({ended[fault]} times)")
        sys.stdout.flush()
    total = sum(int(str(one[kind])) for one in found.values() for kind in ("accepted", "refused", "faults"))
    print(json.dumps({"cases": total, "faults": sum(int(str(one["faults"])) for one in found.values())}))
    return 1 if any(one["faults"] for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
