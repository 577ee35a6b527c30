"""The choice of a model: by the mean over buckets, not over questions; ties; and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import proctor
from proctor.core import ACCURACY, Benchmark, InputError, Item, Reference
from proctor.core.formats import BinaryFormat
from proctor.results import Contest, ModelChoice, choose_run
from proctor.runs import Store
from proctor.stats import RankingPlan
from proctor.systems import FunctionSystem

VIDEOS = 8


def rooms() -> Benchmark:
    """Eight videos, each with eight questions of the kind "many" and two of the kind "few"; yes is always right."""
    items = [
        Item(
            id=f"v{video}/{kind}{number}",
            group=f"v{video}",
            question=f"{kind} {number} of {video}?",
            answer=BinaryFormat(),
            reference=Reference(answer=True),
            tags={"kind": kind},
        )
        for video in range(VIDEOS)
        for kind, count in (("many", 8), ("few", 2))
        for number in range(count)
    ]
    return Benchmark("rooms", "Rooms", tuple(items), (ACCURACY,), "accuracy", facets=("kind",), buckets=("kind",))


def answering(name: str, right: Callable[[str, int], bool]) -> FunctionSystem:
    """A system that is right where it is told so: by kind and number of the question."""

    def said(question: str) -> str:
        kind, number = question.split()[:2]
        return "yes" if right(kind, int(number)) else "no"

    return proctor.system(name=name)(said)


def chosen(*systems: FunctionSystem) -> ModelChoice:
    made = proctor.run(rooms(), list(systems), conditions="text-only", store=":memory:", baselines=False)
    contest = Contest("text-only", made.systems)
    return choose_run(made.store, "rooms", contest, RankingPlan(rule="mean", draws=200))


def test_the_mean_over_buckets_decides_and_not_that_over_questions() -> None:
    """One: 8 of 8 and 0 of 2 are 80 % of the questions, and a mean of 50 %. Two: 4 of 8 and 2 of 2 are 60 %, and 75 %."""
    found = chosen(
        answering("one", lambda kind, _: kind == "many"),
        answering("two", lambda kind, number: kind == "few" or number < 4),
    )
    assert [(one.name, one.mean) for one in found.candidates] == [("two", 0.75), ("one", 0.5)]
    assert found.chosen.buckets == {"few": 1.0, "many": 0.5}
    assert (found.by, found.items, found.groups) == ("mean", 80, VIDEOS)
    assert found.candidates[1].lead == pytest.approx(0.25)
    assert found.chosen.lead is None
    # every video says the same: an exchange of all eight, or of none, is as large, so p is 2 / 2^8
    assert found.candidates[1].lead_p == pytest.approx(2 / 2**VIDEOS)
    assert found.notes[0].startswith("Lead over one: 25.0 %")
    assert "not shown to be better" not in found.notes[0]


def test_of_equal_means_the_one_that_is_more_often_best_wins_and_then_the_first_by_name() -> None:
    same = [answering(name, lambda kind, number: number < 1) for name in ("b", "a")]
    found = chosen(*same)
    assert ([one.name for one in found.candidates], found.by) == (["a", "b"], "name")
    assert found.notes[0] == "a has the highest mean with others: its name decided."
    assert "not shown to be better" in found.notes[1]


def test_unasked_answers_are_no_reason_to_lose_or_to_win() -> None:
    half = answering("half", lambda *_: True)
    whole = answering("whole", lambda *_: False)
    made = proctor.run(rooms(), whole, conditions="text-only", store=":memory:", baselines=False)
    proctor.run(rooms(), half, conditions="text-only", store=made.store, baselines=False, limit=5)
    with pytest.raises(InputError, match="found incomplete answers of half, expected all of them"):
        choose_run(made.store, "rooms", Contest("text-only"), RankingPlan(rule="mean", draws=200))


def test_one_run_is_no_choice() -> None:
    made = proctor.run(rooms(), answering("one", lambda *_: True), conditions="text-only", store=":memory:")
    assert isinstance(made.store, Store)
    with pytest.raises(InputError, match="found 1 run, expected two or more to choose from"):
        choose_run(made.store, "rooms", Contest("text-only", ("one",)), RankingPlan(rule="mean", draws=200))
