"""The trail only grows, and a change to it is found."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, RowMapping, delete, func, select, text, update
from sqlalchemy.exc import DBAPIError

from proctor.runs import open_engine
from proctor_web import schema, site_tables
from proctor_web.accounts import Changed, add_account, disable, invite, set_role, take_up
from proctor_web.trail import START, first_fault, head, person_subject, pseudonym_of, record, shown_entries

AT = datetime(2026, 11, 23, 8, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = str(tmp_path / "review.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_engine(url, create=True)
    site_tables.prepare(opened)
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
    "person": "update trail set person = 'R-ABCDEF', action = 'accept' where id = 2",
    "detail": "update trail set detail = '{}' where id = 2",
    "left out": "delete from trail where id = 2",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_who_changes_the_file_behind_the_triggers_is_found(tmp_path: Path, change: str) -> None:
    engine = open_engine(tmp_path / "review.sqlite", create=True)
    site_tables.prepare(engine)
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


NAME = "zephyrine.quill"


def lived(connection: Connection) -> tuple[RowMapping, RowMapping]:
    """Two accounts, and everything that the trail records of them."""
    shell = Changed(None, AT)
    boss = add_account(connection, "olga", "organiser", "en", shell)
    by = Changed(boss["id"], AT)
    person = add_account(connection, NAME, "reviewer", "en", by)
    take_up(connection, invite(connection, person, by), "a hash", AT)
    set_role(connection, person, "adjudicator", by)
    disable(connection, person, by)
    disable(connection, person, by, undo=True)
    record(connection, AT, person["id"], "seal", "item 1", {"study": "s"})
    record(connection, AT, boss["id"], "add member", "team 1", {"account": pseudonym_of(connection, person["id"])})
    record(connection, AT, None, "reassign", person_subject(connection, person["id"]), {"stay": 2})
    return boss, person


def test_people_stand_in_the_trail_by_pseudonym(engine: Engine) -> None:
    with engine.begin() as connection:
        boss, person = lived(connection)
        rows = connection.execute(select(schema.trail).order_by(schema.trail.c.id)).mappings().all()
        shown = shown_entries(connection, rows)
    written = json.dumps([dict(row) for row in rows])
    assert NAME not in written
    assert "olga" not in written
    assert {row["person"] for row in rows} == {None, boss["pseudonym"], person["pseudonym"]}
    assert {row["subject"] for row in rows if row["action"] in {"invite", "set role", "disable", "reassign"}} == {
        f"account {person['pseudonym']}"
    }
    by_action = {entry.action: entry for entry in shown}
    both = f"{person['pseudonym']} ({NAME})"
    assert (by_action["set role"].by, by_action["set role"].subject) == ("olga", f"account {both}")
    assert (by_action["seal"].by, by_action["reassign"].by) == (NAME, "")
    assert by_action["add member"].detail == {"account": both}
    assert by_action["set role"].detail == {"from": "reviewer", "to": "adjudicator"}


@pytest.mark.parametrize("erased", ["", "pseudonym"])
def test_the_chain_stays_whole_when_a_name_is_erased(engine: Engine, erased: str) -> None:
    """The name is emptied, or replaced by the pseudonym; then the pseudonym stands where the name stood."""
    with engine.begin() as connection:
        _, person = lived(connection)
        before = head(connection)
        table = schema.accounts
        left = person["pseudonym"] if erased else ""
        connection.execute(update(table).where(table.c.id == person["id"]).values(name=left))
        assert (first_fault(connection), head(connection)) == (None, before)
        rows = connection.execute(select(schema.trail).order_by(schema.trail.c.id)).mappings().all()
        shown = {entry.action: entry for entry in shown_entries(connection, rows)}
    assert shown["seal"].by == person["pseudonym"]
    assert shown["set role"].subject == f"account {person['pseudonym']}"
    assert shown["add member"].detail == {"account": person["pseudonym"]}


def test_the_file_holds_no_name_once_the_account_holds_none(tmp_path: Path) -> None:
    file = tmp_path / "review.sqlite"
    engine = open_engine(file, create=True)
    site_tables.prepare(engine)
    with engine.begin() as connection:
        _, person = lived(connection)
    engine.dispose()
    assert NAME.encode() in file.read_bytes()
    with sqlite3.connect(file) as opened:
        opened.execute("update accounts set name = pseudonym where id = ?", (person["id"],))
    opened.execute("vacuum")
    opened.close()
    assert NAME.encode() not in file.read_bytes()
    assert person["pseudonym"].encode() in file.read_bytes()
