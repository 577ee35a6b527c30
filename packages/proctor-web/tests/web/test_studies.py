"""Studies: importing twice changes nothing, a changed item is a new version, and work comes in its order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select, update

from proctor.core import InputError
from proctor_web import schema
from proctor_web.progress import my_studies, my_work, next_item
from proctor_web.settings import StudyPlan, StudySettings
from proctor_web.studies import (
    ItemTally,
    add_study,
    deal_another,
    deal_study,
    disabled_people,
    import_items,
    items_without_reader,
)
from proctor_web.trail import first_fault
from tests.support.web_study import NOW, accounts_of, new_items, review, study_of

PLAN = StudyPlan(readers=("anna", "ben"), adjudicators=("cleo",))
STUDY = StudySettings(name="s", form="question", items="items.jsonl", plan=PLAN)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = review(tmp_path / "review.sqlite")
    yield opened
    opened.dispose()


def rows(engine: Engine) -> tuple[int, ...]:
    tables = (schema.study_items, schema.versions, schema.assignments, schema.trail)
    with engine.begin() as connection:
        return tuple(connection.execute(select(func.count()).select_from(one)).scalar_one() for one in tables)


def test_a_second_import_and_deal_change_nothing(engine: Engine) -> None:
    items = new_items(6, gold=2)
    study_of(engine, items)
    before = rows(engine)
    study_of(engine, list(reversed(items)))
    assert rows(engine) == before
    assert before[:2] == (8, 8)


def test_a_changed_body_is_a_new_version_and_a_new_item_is_dealt(engine: Engine) -> None:
    items = new_items(3)
    study_of(engine, items)
    changed = replace(items[0], body=items[0].body | {"stem": "And now?"})
    more = replace(items[1], key="q9")
    with engine.begin() as connection:
        study = add_study(connection, STUDY, NOW)
        assert import_items(connection, study, [changed, items[1], more], NOW) == ItemTally(1, 1, 1, 1)
        assert deal_study(connection, study, PLAN, NOW) == 3
        query = (
            select(schema.versions.c.number, schema.versions.c.body["stem"].as_string())
            .join(schema.study_items, schema.study_items.c.id == schema.versions.c.item)
            .where(schema.study_items.c.key == "q000")
            .order_by(schema.versions.c.number)
        )
        assert [tuple(row) for row in connection.execute(query)] == [
            (1, "What does the operator do next?"),
            (2, "And now?"),
        ]
        assert import_items(connection, study, [changed, items[1], more], NOW) == ItemTally(0, 0, 3, 1)
        assert first_fault(connection) is None


def test_a_study_keeps_its_form(engine: Engine) -> None:
    study_of(engine, new_items(1))
    with engine.begin() as connection, pytest.raises(InputError, match="found 'order', expected 'question'"):
        add_study(connection, STUDY.model_copy(update={"form": "order"}), NOW)


def test_people_without_an_account_are_not_dealt_to(engine: Engine) -> None:
    with engine.begin() as connection:
        study = add_study(connection, STUDY, NOW)
        import_items(connection, study, new_items(1), NOW)
        with pytest.raises(InputError, match=r"found 'zoe', expected an account \(proctor serve users add DIR zoe\)"):
            deal_study(connection, study, StudyPlan(readers=("anna", "zoe")), NOW)


def assigned(engine: Engine) -> dict[str, list[str]]:
    """The keys of the items that each person reads."""
    with engine.begin() as connection:
        query = (
            select(schema.accounts.c.name, schema.study_items.c.key)
            .join(schema.assignments, schema.assignments.c.account == schema.accounts.c.id)
            .join(schema.study_items, schema.study_items.c.id == schema.assignments.c.item)
            .where(schema.assignments.c.role == "reader")
            .order_by(schema.study_items.c.key)
        )
        found: dict[str, list[str]] = {}
        for name, key in connection.execute(query):
            found.setdefault(name, []).append(key)
        return found


def disable(engine: Engine, name: str, at: str | None = "2026-11-23T09:00:00.000+00:00") -> None:
    with engine.begin() as connection:
        connection.execute(update(schema.accounts).where(schema.accounts.c.name == name).values(disabled=at))


def test_who_is_disabled_keeps_what_was_dealt_and_gets_no_new_work(engine: Engine) -> None:
    three = ("anna", "ben", "rita")
    study_of(engine, new_items(6), readers=three)
    before = assigned(engine)
    disable(engine, "ben")
    study_of(engine, new_items(10), readers=three)
    after = assigned(engine)
    new = [f"q{number:03d}" for number in range(6, 10)]
    assert after == {"anna": before["anna"] + new, "ben": before["ben"], "rita": before["rita"] + new}


@pytest.mark.parametrize("name", ["ben", "cleo"])
def test_new_items_wait_while_too_few_of_a_plan_may_log_in(engine: Engine, name: str) -> None:
    """Two readings of each, one reader left; or differences, and nobody to settle them."""
    study_of(engine, new_items(2))
    before = assigned(engine)
    disable(engine, name)
    study_of(engine, new_items(5))
    with engine.begin() as connection:
        assert disabled_people(connection, PLAN) == (name,)
        assert items_without_reader(connection, 1) == 3
    assert assigned(engine) == before
    disable(engine, name, None)
    study_of(engine, new_items(5))
    with engine.begin() as connection:
        assert items_without_reader(connection, 1) == 0
    assert [*assigned(engine)["ben"]] == [f"q{number:03d}" for number in range(5)]


def test_work_comes_in_the_order_of_the_deal(engine: Engine) -> None:
    study_of(engine, new_items(6, gold=1))
    with engine.begin() as connection:
        anna = accounts_of(connection)["anna"]
        work = my_work(connection, anna, 1)
        assert [one.position for one in work] == list(range(7))
        assert next_item(connection, anna, "s") == work[0].item
        assert next_item(connection, anna, "s", after=work[2].item) == work[3].item
        assert next_item(connection, anna, "s", after=work[-1].item) == work[0].item
        assert next_item(connection, anna, "another") is None
        assert next_item(connection, accounts_of(connection)["cleo"], "s") is None
        (mine,) = my_studies(connection, anna)
        assert (mine.items, mine.sealed, mine.done) == (7, 0, False)
        assert my_studies(connection, accounts_of(connection)["rita"]) == []


def test_one_more_person_reads_what_needs_it(engine: Engine) -> None:
    plan = StudyPlan(readers=("anna", "ben", "rita"), adjudicators=("cleo",))
    items = new_items(6)
    ids = study_of(engine, items, readers=plan.readers)
    again = [replace(items[0], read_by=2), replace(items[1], read_by=3), *items[2:]]

    def readers(key: str) -> set[int]:
        query = select(schema.assignments.c.account).where(
            schema.assignments.c.item == ids[key], schema.assignments.c.role == "reader"
        )
        with engine.begin() as connection:
            return set(connection.execute(query).scalars())

    with engine.begin() as connection:
        study = add_study(connection, STUDY, NOW)
        assert deal_another(connection, study, plan, again, NOW) == 1
        assert deal_another(connection, study, plan, again, NOW) == 0  # one more is on the way
        all_three = [replace(items[0], read_by=3)]
        assert deal_another(connection, study, plan, all_three, NOW) == 0  # everybody has it
        who = accounts_of(connection)
    assert readers("q000") == {who[name] for name in plan.readers}
    assert len(readers("q001")) == 2  # it has fewer readers than the project saw
