"""Hostile readings: what a browser could send instead of what a page sends, in every text and number of every form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, select

from proctor.core import InputError, kept_text
from proctor_web import schema
from proctor_web.forms import FORMS
from proctor_web.progress import next_item
from proctor_web.readings import IncompleteError, Save, my_reading, open_item, save_draft, seal
from proctor_web.trail import first_fault
from tests.support.web_attack import TEXTS, locations, put
from tests.support.web_study import NOW, READINGS, accounts_of, new_items, review, study_of

NUMBERS = [float("nan"), float("inf"), -float("inf"), -1, 10**400, 1e308, True, "1", None, [], {}]
LISTS = [[], "abc", {}, [[]], [None], [{}] * 5_000, 7, None]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = review(tmp_path / "review.sqlite")
    yield made
    made.dispose()


def whole(form: str) -> list[dict[str, Any]]:
    """Readings in which every field of the form is filled in."""
    edited = {"stem": "Why?", "answer": "So.", "format": "free", "labels": ["order"], "relevance": "high"}
    box = {"frame_sha256": "0" * 64, "instance": "clip 1", "by": "hand"}
    more: dict[str, list[dict[str, Any]]] = {
        "question": [READINGS["question"][1] | {"decision": "edit", "edited": edited}],
        "boxes": [{"boxes": [READINGS["boxes"][0]["boxes"][0] | box]}],
        "moments": [{"moments": [{"time": 3.0, "kind": "insertion", "note": "late"}]}],
        "pairwise": [{"choice": "first", "reason": "shorter"}],
    }
    return [*READINGS[form], *more.get(form, [])]


def read_back(engine: Engine, form: str, payloads: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Each payload that is taken, and what is in the database afterwards."""
    item = study_of(engine, new_items(1, form), form)["q000"]
    revision = 0
    for payload in payloads:
        with engine.begin() as connection:
            anna = accounts_of(connection)["anna"]
            try:
                revision = save_draft(connection, anna, item, Save(1, revision, payload), NOW).revision
            except (InputError, IncompleteError):
                continue
        with engine.begin() as connection:
            kept = my_reading(connection, anna, open_item(connection, anna, item).version)
            assert kept is not None
            yield payload, kept.payload


@pytest.mark.parametrize("form", FORMS)
def test_a_hostile_text_in_any_field_is_refused_or_kept_as_it_is(engine: Engine, form: str) -> None:
    payloads = [
        put(reading, path, text)
        for reading in whole(form)
        for path, value in locations(reading)
        if isinstance(value, str)
        for text in TEXTS.values()
    ]
    taken = 0
    for sent, kept in read_back(engine, form, payloads):
        taken += 1
        said = {part for _, part in locations(kept) if isinstance(part, str)}
        assert said <= {kept_text(part).strip() for _, part in locations(sent) if isinstance(part, str)}
    free = {"question", "order", "rationale", "boxes", "moments", "pairwise"}
    assert (taken > 0) == (form in free), "forms with a field for free text keep some of them"
    assert inspect(engine).has_table("readings")
    with engine.begin() as connection:
        assert first_fault(connection) is None


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_number_text_or_list_of_the_form_is_refused_and_nothing_breaks(engine: Engine, form: str) -> None:
    payloads: list[Any] = [
        put(reading, path, bad)
        for reading in READINGS[form]
        for path, _ in locations(reading)
        for bad in [*NUMBERS, *LISTS]
    ]
    deep: Any = "x"
    for _ in range(3_000):
        deep = [deep]
    payloads += [put(READINGS[form][0], path, deep) for path, _ in locations(READINGS[form][0])]
    for _, kept in read_back(engine, form, payloads):
        text = json.dumps(kept, allow_nan=False)
        assert len(text) < 10_000


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -float("inf"), -5.0, 1e308])
def test_time_on_task_is_a_number_of_at_most_an_hour(engine: Engine, seconds: float) -> None:
    item = study_of(engine, new_items(1))["q000"]
    with engine.begin() as connection:
        anna = accounts_of(connection)["anna"]
        kept = save_draft(connection, anna, item, Save(1, 0, {}, seconds=seconds), NOW)
        assert 0 <= kept.seconds <= 3_600


def test_a_comment_is_kept_whole_or_refused(engine: Engine) -> None:
    item = study_of(engine, new_items(1))["q000"]
    with engine.begin() as connection:
        anna = accounts_of(connection)["anna"]
        assert save_draft(connection, anna, item, Save(1, 0, {}, comment="x" * 10_000), NOW).comment == "x" * 10_000
        with pytest.raises(InputError, match=r"^comment: found 10001 characters, expected at most 10000$"):
            save_draft(connection, anna, item, Save(1, 1, {}, comment="x" * 10_001), NOW)


def test_so_many_boxes_on_one_frame_that_comparing_them_would_take_long_are_refused(engine: Engine) -> None:
    item = study_of(engine, new_items(1, "boxes"), "boxes")["q000"]
    box = READINGS["boxes"][0]["boxes"][0]
    with engine.begin() as connection:
        anna = accounts_of(connection)["anna"]
        with pytest.raises(InputError, match=r"^reading, class 'clip' at 1 s: found 101 boxes, expected at most 100$"):
            save_draft(connection, anna, item, Save(1, 0, {"boxes": [box] * 101}), NOW)


def test_the_boxes_that_compare_slowest_are_sealed(engine: Engine) -> None:
    """Boxes in a chain, each overlapping its neighbours, as many as may be: the last one's partner is found by moving
    all others."""
    item = study_of(engine, new_items(1, "boxes"), "boxes")["q000"]
    box = READINGS["boxes"][0]["boxes"][0] | {"width": 0.02, "y": 0.0}
    chain = [box | {"x": round(0.005 * number, 3), "time": float(time)} for time in range(20) for number in range(100)]
    with engine.begin() as connection:
        who = accounts_of(connection)
        seal(connection, who["anna"], item, Save(1, 0, {"boxes": chain[::-1]}), NOW)
        seal(connection, who["ben"], item, Save(1, 0, {"boxes": chain}), NOW)
        assert connection.execute(select(schema.consensus.c.account)).all() == [(None,)]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_hostile_name_of_a_study_finds_nothing(engine: Engine, text: str) -> None:
    study_of(engine, new_items(2))
    with engine.begin() as connection:
        anna = accounts_of(connection)["anna"]
        assert next_item(connection, anna, "s") is not None
        assert next_item(connection, anna, kept_text(text)) is None
