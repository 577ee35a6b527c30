"""`unsupported` is a status of every system: what a system does not support is never asked, and no run waits for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import ACCURACY, Benchmark, Item, Reference
from proctor.core.formats import BinaryFormat, ChoiceFormat
from proctor.reports import board_notes
from proctor.results import Contest, rank_runs, results, status_counts
from proctor.results.arrays import load_items
from proctor.runs.plan import unsupported_items
from proctor.runs.run_identity import UNSUPPORTED, same_run

ROOMS, CHOICES, OTHERS = 8, 2, 1


def mixed() -> Benchmark:
    """Eight rooms, with two choices and a yes or no in each."""
    items = [
        Item(
            id=f"room-{room}/q{number}",
            group=f"room-{room}",
            question=f"What is lamp {number}?",
            options=("on", "off") if number < CHOICES else (),
            answer=ChoiceFormat() if number < CHOICES else BinaryFormat(),
            reference=Reference(answer="A" if number < CHOICES else True),
            tags={"lamp": str(number)},
        )
        for room in range(ROOMS)
        for number in range(CHOICES + OTHERS)
    ]
    return Benchmark("mixed", "Mixed", tuple(items), (ACCURACY,), "accuracy", facets=("lamp",), buckets=("lamp",))


@proctor.system(formats=["choice"])
def chooses(options: list[str]) -> str:
    """The first option, whatever is asked."""
    return f"Answer: {'A' if options else '1'}"


@proctor.system
def answers_all(options: list[str]) -> str:
    return "Answer: A" if options else "1"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    benchmark = mixed()

    def ask(*systems: Any) -> Any:
        return proctor.run(benchmark, list(systems), conditions=["text-only"], store=tmp_path / "s.db", baselines=False)

    return ask


def test_an_own_function_with_formats_is_complete(run: Callable[..., Any]) -> None:
    made = run(chooses)
    (row,) = [row for row in results(made.store, made.benchmark).rows if row.metric == "accuracy"]
    others = ROOMS * OTHERS
    assert (row.unsupported, row.missing, row.n, row.policy) == (others, 0, ROOMS * CHOICES, "")
    assert row.value is not None
    items = load_items(made.store, made.store.card(made.benchmark))
    ended = status_counts(made.store, made.runs[0], items)
    assert (ended["unsupported"], ended["not_asked"]) == (others, 0)
    text = repr(made.results())
    assert "Unsupported" in text
    assert "Not asked" not in text
    assert "Run the same command again" not in text


def test_it_is_shown_and_not_ranked(run: Callable[..., Any]) -> None:
    made = run(chooses, answers_all)
    board = made.leaderboard(condition="text-only")
    ranked = {row["system"]: (row["rank"], row["unsupported"], row["missing"]) for row in board.rows}
    assert ranked["chooses"][0] is None
    assert ranked["chooses"][1] > 0
    assert ranked["chooses"][2] == 0
    assert ranked["answers_all"][0] == 1
    (row,) = [
        row for row in results(made.store, made.benchmark).rows if (row.system, row.metric) == ("chooses", "accuracy")
    ]
    (shown,) = [one for one in board.rows if one["system"] == "chooses"]
    assert (shown["value"], shown["n"]) == (row.value, row.n)


def test_a_ranking_says_why_and_asks_for_no_second_run(run: Callable[..., Any]) -> None:
    made = run(chooses, answers_all)
    (board, *_) = rank_runs(made.store, made.benchmark, Contest(condition="text-only"))
    (unranked,) = board.unranked
    assert (unranked.name, unranked.lacking.not_asked) == ("chooses", 0)
    assert unranked.lacking.unsupported > 0
    assert unranked.low == unranked.high
    notes = " ".join(board_notes(board))
    assert "chooses (" in notes
    assert "does not support" in notes
    assert "again" not in notes


def test_a_run_of_an_older_store_is_the_same_run(run: Callable[..., Any]) -> None:
    """Its settings lack the list, which the same command again adds."""
    made = run(chooses)
    (old,) = made.store.runs(made.benchmark)
    listed = old.settings[UNSUPPORTED]
    assert isinstance(listed, dict)
    assert "choice" not in str(listed)
    without = {name: value for name, value in old.settings.items() if name != UNSUPPORTED}
    assert same_run(without, old.settings)
    assert not same_run(without | {"seed": 5}, old.settings)


class Picky:
    """A system that supports some items of a format."""

    name = "picky"

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.wanted: set[str] = set()

    def supports(self, item: Item) -> bool:
        return item.id in self.wanted

    async def answer(self, item: Item, view: Any) -> Any:
        raise NotImplementedError


def test_whole_formats_are_named_and_single_items_listed() -> None:
    items = mixed().items
    chosen = items[0].id
    picky = Picky()
    assert unsupported_items(picky, items) == {"formats": ["binary", "choice"]}
    picky.wanted = {chosen}
    alike = [item.id for item in items if item.answer.kind == "choice" and item.id != chosen]
    assert unsupported_items(picky, items) == {"formats": ["binary"], "items": alike}
    picky.wanted = {item.id for item in items}
    assert unsupported_items(picky, items) == {}
