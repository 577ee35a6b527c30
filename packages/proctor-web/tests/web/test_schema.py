"""The tables of a review: who sees whose readings, and what nobody changes any more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete, inspect, select, text, update
from sqlalchemy.exc import DBAPIError

from proctor import __version__
from proctor.core import InputError
from proctor.runs import Store, open_engine, store_meta
from proctor_web import schema, site_tables
from proctor_web.trail import record
from tests.support.web_rows import AT, add, one_item, people, read, seal, seen_by


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = str(tmp_path / "review.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_engine(url, create=True)
    site_tables.prepare(opened)
    yield opened
    opened.dispose()


def test_nobody_sees_anothers_reading_before_all_are_sealed(engine: Engine) -> None:
    with engine.begin() as connection:
        who = people(connection)
        _, version = one_item(connection, who)
        annas = read(connection, version, who["anna"], sealed=True)
        bens = read(connection, version, who["ben"], sealed=False)
    nobody: set[int] = set()
    same = {"cleo": nobody, "olga": nobody, "paul": nobody, "rita": nobody}
    assert seen_by(engine, who) == {"anna": {annas}, "ben": {bens}} | same
    seal(engine, bens)
    both = {annas, bens}
    opened = {"anna": both, "ben": both, "cleo": both, "olga": both, "paul": nobody, "rita": nobody}
    assert seen_by(engine, who) == opened


def test_a_reader_who_has_said_nothing_yet_keeps_an_item_closed(engine: Engine) -> None:
    with engine.begin() as connection:
        who = people(connection)
        _, version = one_item(connection, who)
        annas = read(connection, version, who["anna"], sealed=True)
    seen = seen_by(engine, who)
    assert seen["anna"] == {annas}
    assert seen["ben"] == seen["olga"] == seen["cleo"] == set()


def test_a_new_version_unseals_nothing(engine: Engine) -> None:
    with engine.begin() as connection:
        who = people(connection)
        item, first = one_item(connection, who)
        old = {read(connection, first, who[name], sealed=True) for name in ("anna", "ben")}
        second = add(connection, schema.versions, item=item, number=2, body={}, created=AT, why="edited")
        annas = read(connection, second, who["anna"], sealed=True)
    seen = seen_by(engine, who)
    assert seen["anna"] == old | {annas}
    assert seen["ben"] == seen["cleo"] == seen["olga"] == old


def test_a_reader_who_is_added_must_not_see_what_the_others_said(engine: Engine) -> None:
    """Rita is to break the tie: the others' readings are closed to her, and open to her once she sealed hers."""
    with engine.begin() as connection:
        who = people(connection)
        item, version = one_item(connection, who)
        both = {read(connection, version, who[name], sealed=True) for name in ("anna", "ben")}
        add(connection, schema.assignments, item=item, account=who["rita"], position=1, role="reader")
    assert seen_by(engine, who)["rita"] == seen_by(engine, who)["cleo"] == set()
    with engine.begin() as connection:
        ritas = read(connection, version, who["rita"], sealed=True)
    assert seen_by(engine, who)["rita"] == seen_by(engine, who)["cleo"] == both | {ritas}


def test_a_reading_without_assigned_readers_is_its_authors_alone(engine: Engine) -> None:
    with engine.begin() as connection:
        who = people(connection)
        item, version = one_item(connection, who)
        ritas = read(connection, version, who["rita"], sealed=True)
        connection.execute(delete(schema.assignments).where(schema.assignments.c.item == item))
    seen = seen_by(engine, who)
    assert seen.pop("rita") == {ritas}
    assert set().union(*seen.values()) == set()


def test_who_becomes_a_participant_sees_no_others_reading(engine: Engine) -> None:
    with engine.begin() as connection:
        who = people(connection)
        _, version = one_item(connection, who)
        annas, _ = (read(connection, version, who[name], sealed=True) for name in ("anna", "ben"))
        connection.execute(update(schema.accounts).where(schema.accounts.c.name == "anna").values(role="participant"))
    assert seen_by(engine, who)["anna"] == {annas}


def test_a_draft_may_change_and_a_sealed_reading_may_not(engine: Engine) -> None:
    readings = schema.readings
    with engine.begin() as connection:
        who = people(connection)
        _, version = one_item(connection, who)
        draft = read(connection, version, who["anna"], sealed=False)
        connection.execute(update(readings).where(readings.c.id == draft).values(comment="seen twice"))
    seal(engine, draft)
    for change in (update(readings).values(comment="another"), update(readings).values(sealed=None), delete(readings)):
        with pytest.raises(DBAPIError, match="readings stay as they are"), engine.begin() as connection:
            connection.execute(change)
    with pytest.raises(DBAPIError, match="versions stay as they are"), engine.begin() as connection:
        connection.execute(update(schema.versions).values(body={"stem": "another"}))
    with engine.begin() as connection:
        assert connection.execute(select(readings.c.comment)).scalar() == "seen twice"


def test_an_unknown_role_is_refused_by_the_database(engine: Engine) -> None:
    with pytest.raises(DBAPIError), engine.begin() as connection:
        connection.execute(text("insert into accounts values (1, 'eve', 'R9', 'root', '', 'en', '', null)"))


def test_preparing_twice_changes_nothing_and_the_store_stays_a_store(engine: Engine) -> None:
    site_tables.prepare(engine)
    store = Store(engine.url.render_as_string(hide_password=False), create=False)
    assert store.benchmark_names() == []
    store.close()


VERSIONS = {"web_version": ("a review", 1), "accounts_version": ("accounts", 3)}


@pytest.mark.parametrize("key", VERSIONS)
@pytest.mark.parametrize("of", ["former", "newer"])
def test_tables_of_another_version_are_refused_with_what_to_do(engine: Engine, key: str, of: str) -> None:
    what, now = VERSIONS[key]
    if of == "former" and now == 1:
        now = 2  # as the next version will say it
    other = now - 1 if of == "former" else 99
    former = f"start over in another store, or open it with Proctor {__version__}, which made it"
    way = former if of == "former" else "update Proctor to open it"
    with engine.begin() as connection:
        stored = store_meta.c.key == key
        connection.execute(update(store_meta).where(stored).values(value=str(other)))
    tables = next(one for one in (site_tables.ACCOUNT_TABLES, site_tables.REVIEW_TABLES) if one.key == key)
    expected = re.escape(f"found {what} of version {other}, expected version {now}: {way}")
    for refusing in (replace(tables, version=now).prepare, replace(tables, version=now).are_in):
        with pytest.raises(InputError, match=expected):
            refusing(engine)


def test_accounts_stand_alone(tmp_path: Path) -> None:
    """A site that is no review has no tables of one, and its trail lasts all the same."""
    opened = open_engine(tmp_path / "site.sqlite", create=True)
    site_tables.prepare_accounts(opened)
    with opened.begin() as connection:
        record(connection, datetime(2026, 11, 23, tzinfo=UTC), None, "open", "phase one")
    with pytest.raises(DBAPIError, match="trail stay as they are"), opened.begin() as connection:
        connection.execute(delete(schema.trail))
    assert not inspect(opened).has_table("readings")
    opened.dispose()
