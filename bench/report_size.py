"""The size of a report: items × systems with short answers and with explanations, as one HTML file.

python bench/report_size.py --items 10000 --systems 24
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference, Score, Timing, Usage, generator
from proctor.core.formats import ChoiceFormat
from proctor.reports import write_report
from proctor.results import Options
from proctor.runs import Store

TARGETS_MB = {(1000, 10): 2.0, (10_000, 24): 60.0}
LETTERS = "ABCD"
PER_GROUP = 50
TEXT = (
    "the probe is moved along the long axis while the vessel stays in view and its wall is seen as a bright line that "
    "ends where the instrument is placed before the duct is clipped twice and cut between both clips"
)
WORDS = TEXT.split()


@dataclass(frozen=True)
class Measured:
    """One report: its bytes, those of the items in it for each answer, and the seconds that writing took."""

    items: int
    systems: int
    words: int
    megabytes: float
    bytes_per_answer: float
    shown: int
    seconds: float
    wanted_mb: float | None


def sentence(lots: list[int]) -> str:
    """Words drawn by these numbers, as little alike as texts of models are."""
    return " ".join(WORDS[lot % len(WORDS)] for lot in lots)


def make_store(folder: Path, items: int, systems: int, words: int) -> Store:
    """A store with these numbers of items, systems, and words of each answer."""
    rng = generator(0, "report size")
    made = tuple(
        Item(
            id=f"q{number:05d}",
            group=f"v{number // PER_GROUP:04d}",
            question=f"What happens in step {number}, after {sentence(rng.integers(0, 99, 8).tolist())}?",
            answer=ChoiceFormat(),
            options=tuple(sentence(rng.integers(0, 99, 5).tolist()) + f" {letter}" for letter in LETTERS),
            reference=Reference(answer=LETTERS[number % 4]),
        )
        for number in range(items)
    )
    store = Store(folder / "runs.db")
    store.add_benchmark(Benchmark("size", "Size", made, (ACCURACY,), "accuracy"))
    for number in range(systems):
        run = store.start_run("size", f"model-{number:02d}", "video", {})
        right = (rng.random(items) < 0.4 + 0.02 * number).tolist()
        times, lots = rng.uniform(0.5, 9, items).tolist(), rng.integers(0, 99, (items, words)).tolist()
        rows = []
        for row, item in enumerate(made):
            letter = LETTERS[(row + (not right[row])) % 4]
            answer = Answer(
                item_id=item.id,
                text=f"{sentence(lots[row])} {letter}".strip(),
                parsed=letter,
                timing=Timing(model_s=times[row]),
                usage=Usage(requests=1, input_tokens=2300 + row % 90, output_tokens=words + 1),
            )
            rows.append((answer, [Score(item_id=item.id, metric="accuracy", value=float(right[row]))]))
        for start in range(0, items, 5000):
            store.write(run, rows[start : start + 5000])
    return store


def measure(items: int, systems: int, words: int, draws: int) -> Measured:
    """Write one report and measure it."""
    with tempfile.TemporaryDirectory() as folder:
        store = make_store(Path(folder), items, systems, words)
        began = time.perf_counter()
        found = write_report(store, "size", Path(folder) / "report.html", options=Options(draws=draws))
        seconds = time.perf_counter() - began
        page = found.path.read_text(encoding="utf-8")
        data = len(page) - page.index('<script id="data"')
    wanted = TARGETS_MB.get((items, systems))
    each = data / max(1, found.answers)
    return Measured(items, systems, words, found.bytes / 1e6, each, found.items, seconds, wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, help="items (default: the two sizes with a target)")
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--words", type=int, nargs="*", default=[0], help="words of each answer before its letter")
    parser.add_argument("--draws", type=int, default=100, help="bootstrap draws of each interval")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    given = parser.parse_args()
    sizes = [(given.items, given.systems)] if given.items else [*TARGETS_MB]
    found = [measure(items, systems, words, given.draws) for items, systems in sizes for words in given.words]
    if given.format == "json":
        print(json.dumps([asdict(one) for one in found], indent=1))
        return
    for one in found:
        wanted = "" if one.wanted_mb is None else f"   wanted: {one.wanted_mb:g} MB"
        print(
            f"{one.items:6d} items x {one.systems:2d} systems, {one.words:3d} words: {one.megabytes:6.2f} MB, "
            f"{one.bytes_per_answer:5.1f} bytes an answer, {one.shown} items shown, {one.seconds:.1f} s{wanted}"
        )


if __name__ == "__main__":
    main()
