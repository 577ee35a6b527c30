"""The trail only grows, and a change to it is found."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete, func, select, text, update
from sqlalchemy.exc import DBAPIError

from proctor.runs import open_engine
from proctor.web import schema
from proctor.web.trail import START, first_fault, head, record

AT = datetime(2026, 11, 23, 8, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = str(tmp_path / "review.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_engine(url, create=True)
    schema.prepare(opened)
    yield opened
    opened.dispose()


def three_entries(engine: Engine) -> None:
    for number in range(3):
        with engine.begin() as connection:
            record(connection, AT, None, "seal", f"item {number}", {"share": 0.1, "wörter": ["ä", None]})


def test_entries_follow_one_another(engine: Engine) -> None:
    with engine.begin() as connection:
        assert (head(connection), first_fault(connection)) == (START, None)
    three_entries(engine)
    with engine.begin() as connection:
        rows = connection.execute(select(schema.trail).order_by(schema.trail.c.id)).mappings().all()
        assert [row["previous"] for row in rows] == [START, rows[0]["hash"], rows[1]["hash"]]
        assert rows[2]["hash"] == head(connection)
        assert first_fault(connection) is None


@pytest.mark.parametrize("change", [update(schema.trail).values(subject="nothing"), delete(schema.trail)])
def test_the_database_refuses_to_change_the_trail(engine: Engine, change: object) -> None:
    three_entries(engine)
    with pytest.raises(DBAPIError, match="trail stay as they are"), engine.begin() as connection:
        connection.execute(change)  # type: ignore[call-overload]
    if engine.dialect.name == "postgresql":
        with pytest.raises(DBAPIError, match="trail stay as they are"), engine.begin() as connection:
            connection.execute(text("truncate trail"))


CHANGES = {
    "subject": "update trail set subject = 'item 9' where id = 2",
    "time": "update trail set at = '2026-11-24T08:00:00+00:00' where id = 2",
    "person": "update trail set account = null, action = 'accept' where id = 2",
    "detail": "update trail set detail = '{}' where id = 2",
    "left out": "delete from trail where id = 2",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_who_changes_the_file_behind_the_triggers_is_found(tmp_path: Path, change: str) -> None:
    engine = open_engine(tmp_path / "review.sqlite", create=True)
    schema.prepare(engine)
    three_entries(engine)
    with engine.begin() as connection:
        connection.execute(text("drop trigger trail_stay_on_update"))
        connection.execute(text("drop trigger trail_stay_on_delete"))
        connection.execute(text(change))
        assert first_fault(connection) == (3 if change.startswith("delete") else 2)
    engine.dispose()


def test_an_entry_is_kept_with_its_change_or_not_at_all(engine: Engine) -> None:
    with engine.connect() as connection, connection.begin() as transaction:
        record(connection, AT, None, "seal", "item 1")
        transaction.rollback()
    with engine.begin() as connection:
        assert head(connection) == START


def test_entries_of_several_writers_make_one_chain(engine: Engine) -> None:
    def write(number: int) -> None:
        with engine.begin() as connection:
            record(connection, AT, None, "seal", f"item {number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(40)))
    with engine.begin() as connection:
        assert first_fault(connection) is None
        assert connection.execute(select(func.count()).select_from(schema.trail)).scalar() == 40
