"""Agreement of a study's readers, by arithmetic in the test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from proctor.stats import Resampling
from proctor_web.agreement import StudyAgreement, agreement_tables, sealed_readings, study_agreement
from proctor_web.readings import Save, seal
from tests.support.web_study import ACCEPT, NOW, READINGS, REJECT, accounts_of, new_items, review, study_of

PLAN = Resampling(draws=50)
YES: dict[str, Any] = {"present": ["clip"]}
NO: dict[str, Any] = {"nothing": True}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = review(tmp_path / "review.sqlite")
    yield opened
    opened.dispose()


def said(
    engine: Engine, form: str, readings: Mapping[str, Sequence[dict[str, Any]]], body: Any = None, **plan: Any
) -> StudyAgreement:
    """What readers said of items q000 …, each in turn; the figures for the organiser."""
    count = len(next(iter(readings.values())))
    items = [replace(one, body=body or one.body) for one in new_items(count, form)]
    ids = study_of(engine, items, form, readers=tuple(readings), readings=len(readings), **plan)
    with engine.begin() as connection:
        who = accounts_of(connection)
        for name, some in readings.items():
            for number, payload in enumerate(some):
                save = Save(1, 0, payload, seconds=10.0 * (number + 1))
                seal(connection, who[name], ids[f"q{number:03d}"], save, NOW)
        return study_agreement(connection, who["olga"], "s", PLAN)


def test_presence_against_hand_worked_figures(engine: Engine) -> None:
    """yes/yes 4, yes/no 1, no/yes 2, no/no 3: p_o = 0.7. Cohen: p_e = 0.5·0.6 + 0.5·0.4 = 0.5, κ = 0.4. Fleiss:
    shares 0.55 and 0.45, p_e = 0.505, κ = 0.195/0.495. AC1: p_e = 2·0.55·0.45 = 0.495, 0.205/0.505. Krippendorff:
    D_o = 6/20, D_e = 2·11·9/(20·19), α = 1 − 0.3·380/198."""
    anna = [YES] * 4 + [YES] + [NO] * 2 + [NO] * 3
    ben = [YES] * 4 + [NO] + [YES] * 2 + [NO] * 3
    found = said(engine, "presence", {"anna": anna, "ben": ben}, {"classes": ["clip"]})
    (clip,) = found.dimensions
    assert (found.items, clip.name, clip.kind) == (10, "clip", "nominal")
    assert found.same.value == clip.percent.value == pytest.approx(0.7)
    assert clip.percent.groups == 5
    figures = [one.value for one in (clip.cohen, clip.fleiss, clip.ac1, clip.alpha) if one is not None]
    assert figures == pytest.approx([0.4, 0.195 / 0.495, 0.205 / 0.505, 1 - 0.3 * 380 / 198])
    assert [one.key for one in found.disputed] == ["q004", "q005", "q006"]
    assert [one.key for one in found.slowest][:2] == ["q009", "q008"]
    assert found.slowest[0].seconds == 100
    (pair,) = found.pairs
    assert (pair.first, pair.second, pair.same.n) == ("R0", "R1", 10)
    assert pair.same.value == pytest.approx(0.7)
    assert [one.with_others.value for one in found.readers] == pytest.approx([0.7, 0.7])
    assert sum(one.same.n for one in found.parts) == 10
    assert len(found.parts) == 4


def test_three_readers_are_compared_two_by_two(engine: Engine) -> None:
    found = said(engine, "presence", {"anna": [YES, YES], "ben": [YES, NO], "rita": [YES, NO]})
    assert found.same.value == pytest.approx(4 / 6)
    assert [(one.first, one.second, one.same.value) for one in found.pairs] == [
        ("R0", "R1", 0.5),
        ("R0", "R5", 0.5),
        ("R1", "R5", 1.0),
    ]
    assert all(one.cohen is None for one in found.dimensions)
    (disputed,) = found.disputed
    assert (disputed.key, disputed.pairs, disputed.differing) == ("q001", 3, 2)


def test_ratings_are_ordinal(engine: Engine) -> None:
    def rate(correct: float) -> dict[str, Any]:
        return {"scores": {"correct": correct, "tone": 1}}

    found = said(engine, "rating", {"anna": [rate(0), rate(1), rate(2)], "ben": [rate(0), rate(2), rate(2)]})
    correct, tone = found.dimensions
    assert correct.kind == "ordinal"
    assert correct.percent.value == pytest.approx(2 / 3)
    assert correct.ac1 is None
    assert correct.alpha is not None
    # Values 0 0 1 2 2 2: mid-ranks 1, 2.5, 4.5. Observed: (2.5 - 4.5)² = 4 twice over 6. Expected: 2·(sum over pairs)/30:
    # 0-1: 2·1·2.25, 0-2: 2·3·12.25, 1-2: 1·3·4 = 90, times 2 over 30 = 6.
    assert correct.alpha.value == pytest.approx(1 - (8 / 6) / 6)
    assert tone.alpha is not None
    assert tone.alpha.value is None  # nothing could have differed
    assert tone.percent.value == 1.0


def test_boxes_are_measured_by_f1(engine: Engine) -> None:
    box = {"time": 1.0, "label": "clip", "x": 0.1, "y": 0.1, "width": 0.2, "height": 0.2}
    anna = [{"boxes": [box, box | {"x": 0.6}, box | {"label": "stapler"}]}]
    ben = [{"boxes": [box | {"height": 0.15}, box | {"x": 0.7, "time": 2.0}]}]
    found = said(engine, "boxes", {"anna": anna, "ben": ben})
    assert {one.name: one.percent.value for one in found.dimensions} == pytest.approx(
        {"": 2 / 5, "clip": 2 / 4, "stapler": 0.0}
    )


def test_times_are_measured_within_the_tolerance(engine: Engine) -> None:
    def mark(*times: float) -> dict[str, Any]:
        return {"moments": [{"time": time, "kind": "insertion"} for time in times]}

    body = {"kinds": ["insertion", "retrieval"], "tolerance": 2.0}
    found = said(engine, "moments", {"anna": [mark(10, 62.5)], "ben": [mark(12, 70, 61)]}, body)
    assert {one.name: one.percent.value for one in found.dimensions} == pytest.approx(
        {"": 0.8, "insertion": 0.8, "retrieval": None}
    )


def test_orders_are_measured_by_pairs_of_frames(engine: Engine) -> None:
    found = said(engine, "order", {"anna": [READINGS["order"][0]], "ben": [READINGS["order"][1]]})
    (pairs,) = found.dimensions
    assert (pairs.name, pairs.percent.n) == ("order of two frames", 3)
    assert pairs.percent.value == pytest.approx(2 / 3)


def test_gold_counts_for_accuracy_alone(engine: Engine) -> None:
    ids = study_of(engine, new_items(2, "presence", gold=2), "presence", gold_share=0.5)
    with engine.begin() as connection:
        who = accounts_of(connection)
        for name, golds in (("anna", (YES, YES)), ("ben", (YES, NO))):
            for key, payload in zip(("q002", "q003", "q000", "q001"), (*golds, YES, YES), strict=True):
                seal(connection, who[name], ids[key], Save(1, 0, payload), NOW)
        found = study_agreement(connection, who["olga"], "s", PLAN)
    assert found.items == 2
    assert found.same.value == 1.0
    assert [(one.reader, one.sealed, one.gold.value) for one in found.readers] == [("R0", 4, 1.0), ("R1", 4, 0.5)]


def test_chance_counts_the_labels_that_nobody_gave(engine: Engine) -> None:
    """Accept 3, reject 1 of four ratings, p_o = 1/2: AC1 of three labels is p_e = (0.75·0.25·2 + 0)/2 = 0.1875."""
    found = said(engine, "question", {"anna": [ACCEPT, ACCEPT], "ben": [ACCEPT, REJECT]})
    decision = next(one for one in found.dimensions if one.name == "decision")
    assert decision.ac1 is not None
    assert decision.ac1.value == pytest.approx((0.5 - 0.1875) / (1 - 0.1875))


def test_figures_hold_what_their_viewer_may_see(engine: Engine) -> None:
    ids = study_of(engine, new_items(2, "presence"), "presence")
    with engine.begin() as connection:
        who = accounts_of(connection)
        seal(connection, who["anna"], ids["q000"], Save(1, 0, YES), NOW)
        assert sealed_readings(connection, who["olga"], "s") == []
        assert study_agreement(connection, who["olga"], "s", PLAN).same.value is None
        seal(connection, who["ben"], ids["q000"], Save(1, 0, NO), NOW)
        assert len(sealed_readings(connection, who["olga"], "s")) == 2
        assert sealed_readings(connection, who["rita"], "s") == []
        seen = study_agreement(connection, who["olga"], "s", PLAN)
    titles = [one.title for one in agreement_tables(seen)]
    assert titles == [
        "Agreement by dimension", "By reader", "By two readers", "Over time", "Most disputed items", "Slowest items",
    ]  # fmt: skip
    german = agreement_tables(seen, "de")
    assert [len(one.rows) for one in german] == [len(one.rows) for one in agreement_tables(seen)]
    assert german[0].title == "Übereinstimmung nach Dimension"
    assert [column.label for column in german[2].columns] == ["Person", "und", "Aufgaben", "gleich"]
    empty = agreement_tables(replace(seen, dimensions=(), readers=(), pairs=(), parts=(), disputed=(), slowest=()))
    assert empty == []
