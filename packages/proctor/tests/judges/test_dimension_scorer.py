"""Judges of dimensions as scorers of a store's answers: one score each, what is missing, what is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.core import (
    Answer,
    Benchmark,
    ConfigurationError,
    Dimension,
    Image,
    Item,
    ProctorError,
    RatingScheme,
    RecordedAnswers,
    Reference,
    Reliability,
    Status,
)
from proctor.core.formats import FreeTextFormat
from proctor.judges import NO_VERDICT, RESOLVED, UNRESOLVED
from proctor.judges.dimensions import Case, DimensionScorer, DimensionScores, case_of
from proctor.results import judgements_of, load_items, rating_summary
from proctor.results.arrays import load_labels, load_raw_series
from proctor.runs import JudgeLimits, JudgeTally, Store, import_systems, judge_all

SCHEME = RatingScheme(
    dimensions=(
        Dimension("good", (0.0, 0.5, 1.0)),
        Dimension("bad", (0.0, 1.0), lower_is_better=True, languages=("de",)),
    )
)


def item(number: int, language: str = "de", **changes: Any) -> Item:
    reference = Reference(answer="Ja.", accepted=("Gewiss.",))
    fields: dict[str, Any] = {"answer": FreeTextFormat(), "reference": reference, "tags": {"language": language}}
    return Item(id=f"q{number}", group=f"g{number}", question="Geht es?", **(fields | changes))


class Judge:
    """Says what a function says, and notes what it was shown."""

    name = "mine"

    def __init__(self, says: Callable[[Case], DimensionScores]) -> None:
        self.settings: dict[str, Any] = {}
        self.asked: list[Case] = []
        self._says = says

    async def judge(self, case: Case) -> DimensionScores:
        self.asked.append(case)
        await asyncio.sleep(0)
        return self._says(case)


class Comparing(Judge):
    """A judge that takes all answers at once."""

    async def judge_all(self, cases: Sequence[Case]) -> list[DimensionScores]:
        self.asked += cases
        return [full(case, len(cases) / 10) for case in cases]


def full(case: Case, value: float = 0.5) -> DimensionScores:
    return DimensionScores({one.name: 1.0 if one.is_flag else value for one in case.dimensions}, flags=("seen",))


def stored(folder: Path, texts: Sequence[str], systems: Sequence[str] = ("a",), **answer: Any) -> Store:
    items = tuple(item(number, "de" if number % 2 == 0 else "en") for number in range(len(texts)))
    benchmark = Benchmark("made", "Made", items, SCHEME.metrics, "good", rating=SCHEME)
    recorded = [
        RecordedAnswers(
            tuple(
                Answer(**({"item_id": one.id, "text": text, "parsed": text} | answer))
                for one, text in zip(items, texts, strict=True)
            ),
            system=system,
        )
        for system in systems
    ]
    store = Store(folder / "runs.db")
    asyncio.run(import_systems(store, benchmark, recorded, condition="video"))
    return store


def scored(store: Store, judge: Judge, limits: JudgeLimits | None = None) -> JudgeTally:
    scorer = DimensionScorer(judge, SCHEME, store)
    return asyncio.run(judge_all(store, store.runs("made"), scorer, limits))


def values(store: Store) -> dict[tuple[str, str, str], float]:
    items = load_items(store, store.card("made"))
    return {
        (items.ids[position], run.system, one.metric): float(one.values[position])
        for run in store.runs("made")
        for one in load_raw_series(store, run, items)
        if one.metric != UNRESOLVED.name
        for position in one.scored.nonzero()[0].tolist()
    }


def test_each_answer_has_a_score_on_each_dimension_of_its_language(tmp_path: Path) -> None:
    store, judge = stored(tmp_path, ["Ja.", "Yes."]), Judge(full)
    tally = scored(store, judge)
    assert (tally.scored, tally.left) == (2, 0)
    assert values(store) == {("q0", "a", "good"): 0.5, ("q0", "a", "bad"): 1.0, ("q1", "a", "good"): 0.5}
    assert [one.id for one in judge.asked] == ["q0", "q1"]
    assert scored(store, judge).total == 0
    assert len(judge.asked) == 2
    (first, _) = judgements_of(store, "made", store.runs("made"), "mine")
    assert (first.values, first.flags) == ({"good": 0.5, "bad": 1.0}, ("seen",))
    rows, breaks, flags = rating_summary(store, "made", store.runs("made"), "mine")
    assert [(one.language, one.dimension, one.scores, one.missing) for one in rows] == [
        ("de", "good", 1, 0),
        ("de", "bad", 1, 0),
        ("en", "good", 1, 0),
    ]
    assert (breaks, flags) == ({}, {"seen": 2})


def test_what_is_missing_is_asked_again_and_what_came_is_kept(tmp_path: Path) -> None:
    store = stored(tmp_path, ["Ja."])
    half = DimensionScores({"good": 1.0}, missing={"bad": "split evenly"})
    tally = scored(store, Judge(lambda _: half))
    assert (tally.scored, tally.unscored, tally.left, tally.last_reason) == (0, 1, 1, "bad: split evenly")
    assert values(store) == {("q0", "a", "good"): 1.0}
    (run,), items = store.runs("made"), load_items(store, store.card("made"))
    assert load_labels(store, run, items, UNRESOLVED.name, "mine") == {0: NO_VERDICT}
    judge = Judge(full)
    assert scored(store, judge).left == 0
    assert values(store) == {("q0", "a", "good"): 0.5, ("q0", "a", "bad"): 1.0}
    assert load_labels(store, run, items, UNRESOLVED.name, "mine") == {0: RESOLVED}
    assert scored(store, judge).total == 0


def test_no_score_at_all_is_missing_and_work_is_given_up_after_too_many(tmp_path: Path) -> None:
    store = stored(tmp_path, ["Ja."] * 20)
    judge = Judge(lambda case: DimensionScores.none(case, "HTTP 500"))
    tally = scored(store, judge, JudgeLimits(1, give_up_after=5))
    assert (len(judge.asked), tally.left, tally.last_reason) == (5, 20, "HTTP 500")
    assert values(store) == {}
    assert scored(store, Judge(full), JudgeLimits(3, most=4)).scored == 4


@pytest.mark.parametrize("status", [Status.REFUSED, Status.TIMED_OUT, Status.ERROR])
def test_what_a_system_never_gave_is_the_worst_without_a_call(status: Status, tmp_path: Path) -> None:
    store, judge = stored(tmp_path, [""], parsed=None, status=status, reason="so"), Judge(full)
    assert scored(store, judge).scored == 1
    assert values(store) == {("q0", "a", "good"): 0.0, ("q0", "a", "bad"): 1.0}
    assert judge.asked == []


def test_a_failed_answer_is_nobodys_and_not_scored(tmp_path: Path) -> None:
    store, judge = stored(tmp_path, [""], parsed=None, status=Status.FAILED, reason="HTTP 500"), Judge(full)
    assert (scored(store, judge).total, values(store)) == (0, {})


def test_a_judge_that_compares_is_shown_all_answers_also_those_scored_before(tmp_path: Path) -> None:
    store, judge = stored(tmp_path, ["Ja.", "Yes."], ("a",)), Comparing(full)
    assert scored(store, judge).scored == 2
    assert values(store)["q0", "a", "good"] == 0.2
    benchmark = Benchmark("made", "Made", tuple(store.items("made")), SCHEME.metrics, "good", rating=SCHEME)
    more = RecordedAnswers((Answer(item_id="q0", text="Nein.", parsed="Nein."),), system="b")
    asyncio.run(import_systems(store, benchmark, [more], condition="video"))
    judge.asked.clear()
    assert scored(store, judge).scored == 1
    assert {one.candidate for one in judge.asked} == {"Ja.", "Yes.", "Nein."}
    assert values(store)["q0", "b", "good"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"good": 2.0, "bad": 1.0}, "mine: q0: good is 2, not 0 to 1"),
        ({"good": 1.0}, "mine: q0: left out bad"),
        ({"good": 1.0, "bad": 0.0, "ugly": 1.0}, "mine: q0: scored the unknown dimension ugly"),
    ],
)
def test_scores_of_something_else_end_the_work(said: dict[str, float], text: str, tmp_path: Path) -> None:
    store = stored(tmp_path, ["Ja."])
    with pytest.raises(ProctorError, match=text):
        scored(store, Judge(lambda _: DimensionScores(said)))
    assert values(store) == {}


def test_what_can_not_get_better_ends_the_work(tmp_path: Path) -> None:
    store = stored(tmp_path, ["Ja."] * 3)

    def broken(case: Case) -> DimensionScores:
        if case.id == "q1":
            raise ConfigurationError("no key")
        return full(case)

    with pytest.raises(ConfigurationError, match="no key"):
        scored(store, Judge(broken), JudgeLimits(1))
    assert {name for name, _, _ in values(store)} == {"q0"}  # what came before is kept


def test_a_judge_is_shown_the_item_and_never_who_answered() -> None:
    known = (Reliability(frequency=1), Reliability(frequency=2, completeness=0.5))
    one = item(
        0,
        reference=Reference(answer="Ja.", accepted=("Gewiss.",), reliability=known),
        media=(Image(source="a.png", label="Picture 1"),),
        tags={"language": "de", "dataset": "here"},
    )
    case = case_of(one, "Nein.", SCHEME)
    assert (case.id, case.encounter, case.dataset, case.language) == ("q0", "g0", "here", "de")
    assert [each.text for each in case.sorted_references] == ["Gewiss.", "Ja."]
    assert (case.candidate, case.images, [each.name for each in case.dimensions]) == (
        "Nein.",
        ("a.png",),
        ["good", "bad"],
    )
    assert not [name for name in Case.__dataclass_fields__ if "system" in name]
