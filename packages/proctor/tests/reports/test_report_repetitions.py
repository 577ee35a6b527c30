"""The report's section on repetitions: its figures are those of `results`, and runs without repetitions have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference, Score
from proctor.core.formats import BinaryFormat
from proctor.reports import write_report
from proctor.results import Options
from proctor.runs import Store


def stored(path: Path, repetitions: int) -> Store:
    """Forty items of ten groups: `steady` is right on even ones, `moody` in the first repetition of each item alone."""
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number % 10}",
            question="Is it there?",
            answer=BinaryFormat(),
            reference=Reference(answer=True),
            tags={"step": "late" if number % 3 else "early"},
        )
        for number in range(40)
    )
    store = Store(path)
    store.add_benchmark(Benchmark("toy", "Toy", items, (ACCURACY,), "accuracy", facets=("step",)))
    for system in ("steady", "moody"):
        run = store.start_run("toy", system, "video", {"repeats": repetitions} if repetitions > 1 else {})
        for repetition in range(repetitions):
            written = []
            for number, item in enumerate(items):
                right, key = (
                    (number % 2 == 0 if system == "steady" else repetition == 0),
                    {"item_id": item.id, "repetition": repetition},
                )
                score = Score(**key, metric="accuracy", value=float(right))
                written.append((Answer(**key, text="yes" if right else "no", parsed=right), [score]))
            store.write(run, written)
    return store


def section_of(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition('<section id="repetitions"')[2].partition("</section>")[0]


def test_the_section_has_a_row_for_each_run_and_says_what_is_noise(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    found = write_report(stored(tmp_path / "runs.db", 3), "toy", out, options=Options(draws=100))
    section = section_of(out)
    assert "repetitions" in found.sections
    # steady says the same in all 3 pairs of an item's answers, moody in 1 of 3
    assert "two repetitions give the same answer in 33.3 % to 100.0 % of cases" in section
    for figure in ("Right in all 3", "Right in any of 3", "Variance between repetitions"):
        assert figure in section
    rows = [row for row in section.split("<tr>")[1:] if "Right in all 3" in row]
    assert ["50.0 %" in row for row in rows if "steady" in row] == [True]
    assert ["0.0 %" in row for row in rows if "moody" in row] == [True]
    assert "steady (video) − moody (video): +16.7 pts" in section


def test_a_run_of_single_answers_has_no_such_section(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    found = write_report(stored(tmp_path / "runs.db", 1), "toy", out, options=Options(draws=100))
    assert "repetitions" not in found.sections
    assert section_of(out) == ""


@pytest.mark.parametrize("repetitions", [2, 5])
def test_shares_of_repetitions_stand_in_the_regression(tmp_path: Path, repetitions: int) -> None:
    out = tmp_path / "report.html"
    write_report(stored(tmp_path / "runs.db", repetitions), "toy", out, options=Options(draws=100))
    assert "odds ratio" in out.read_text(encoding="utf-8").lower()
