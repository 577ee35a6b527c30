"""Orders in the report: right by position, where frames were put instead, and rationales beside orders."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from proctor.core import ACCURACY, Answer, Benchmark, Cell, Item, Reference, Score, Status, Table
from proctor.core.formats import BinaryFormat, OrderingFormat
from proctor.metrics import code_scorers
from proctor.metrics.ordering import NEIGHBOURS, RUN_METRICS, overall_score
from proctor.reports.blocks import Figure
from proctor.reports.report_numbers import Source
from proctor.reports.subgroups import orders_section
from proctor.results import Options
from proctor.runs import Store, chosen_runs

LABELS = ("A", "B", "C", "D")
SAID = {"q1": "ABCD", "q2": "BACD", "q3": "ABC", "q4": "ABDC"}
F1 = {"q1": 0.9, "q2": 0.5, "q3": 0.6, "q4": 0.4}
SCORER = "bertscore[tiny]"


def an_item(name: str) -> Item:
    return Item(
        id=name,
        group=f"v{name}",
        question="In which order were they taken?",
        answer=OrderingFormat(labels=LABELS),
        reference=Reference(answer=[*LABELS], rationale="First A."),
        tags={NEIGHBOURS: 3},
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return ordered(tmp_path)


def ordered(folder: Path) -> Store:
    """Five questions for orders, of which one failed, with rationales."""
    items = tuple(an_item(name) for name in (*SAID, "q5"))
    store = Store(str(folder / "runs.db"))
    store.add_benchmark(Benchmark("frames", "Frames", items, (ACCURACY, *RUN_METRICS), "accuracy"))
    run = store.start_run("frames", "mine", "video", {})
    scored: list[tuple[Answer, list[Score]]] = []
    for item in items[:-1]:
        answer = Answer(item_id=item.id, text=SAID[item.id], parsed=[*SAID[item.id]])
        scores = [one for scorer in code_scorers() for one in asyncio.run(scorer.score(item, answer))]
        f1 = Score(item_id=item.id, metric="rationale_f1", value=F1[item.id], scorer=SCORER)
        scored.append((answer, [*scores, f1]))
    scored.append((Answer(item_id="q5", status=Status.FAILED, problem="the server is down"), []))
    store.write(run, scored)
    assert chosen_runs(store, "frames")
    return store


def texts(row: tuple[Cell | str | int, ...]) -> list[str]:
    return [one.text if isinstance(one, Cell) else str(one) for one in row]


def test_places_and_where_frames_were_put(store: Store) -> None:
    """By hand, of four answers: A is first in three, B second in three, C third in three, D last in two and nowhere in
    one; the fifth failed, and orders nothing."""
    section = orders_section(Source(store, "frames", Options(draws=100)))
    assert section is not None
    (figure,) = [block for block in section.blocks if isinstance(block, Figure)]
    assert figure.numbers is not None
    assert texts(figure.numbers.rows[0]) == ["mine", "60.0 %", "60.0 %", "60.0 %", "40.0 %", "5"]
    assert texts(figure.numbers.foot) == ["chance", *["25.0 %"] * 4, ""]
    assert [word for word in re.findall(r">([^<>]+)<", figure.svg) if word.isdigit()] == ["60"] * 3 + ["40"] + [
        "25"
    ] * 4
    instead, reasons = [block for block in section.blocks if isinstance(block, Table)]
    assert [texts(row) for row in instead.rows] == [
        ["true 1st", "3", "1", "0", "0", "1"],
        ["true 2nd", "1", "3", "0", "0", "1"],
        ["true 3rd", "0", "0", "3", "1", "1"],
        ["true 4th", "0", "0", "1", "2", "2"],
    ]
    assert reasons.caption.endswith(f"Rationales by {SCORER}.")
    (row,) = reasons.rows
    overall = overall_score(1 / 5, (3 + 2 + 2 + 0) / 15, 4 * 0.6 / 5)
    assert texts(row)[:3] == ["mine", "0.48", f"{overall:.2f}"]
    assert texts(row)[-1] == "5"
    # Of the three valid orders the best one has the best rationale, the others are alike: Spearman's rho is 0.87.
    assert texts(row)[3] == "0.87"


def test_where_nothing_is_to_be_put_in_order_there_is_no_section(tmp_path: Path) -> None:
    item = Item(id="q1", group="v1", question="Seen?", answer=BinaryFormat(), reference=Reference(answer=True))
    store = Store(str(tmp_path / "runs.db"))
    store.add_benchmark(Benchmark("seen", "Seen", (item,), (ACCURACY,), "accuracy"))
    run = store.start_run("seen", "mine", "video", {})
    answer = Answer(item_id="q1", text="yes", parsed=True)
    store.write(run, [(answer, asyncio.run(code_scorers()[0].score(item, answer)))])
    assert orders_section(Source(store, "seen", Options(draws=100))) is None
