"""`proctor store merge --whole`: a pilot on SQLite goes on with PostgreSQL, and back, with nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, Table, create_engine, select, text

from proctor.core import InputError
from proctor.runs import (
    CONTROLS,
    STUDIES,
    Store,
    StoredTables,
    open_engine,
    pause_runs,
    reading,
    record_study,
    run_statuses,
    store_tables,
    studies_of,
)
from proctor_challenge.challenge import TABLES
from proctor_challenge.copying import copy_store
from proctor_web import ACCOUNT_TABLES, REVIEW_TABLES, add_person, first_fault, review_accounts
from tests.support.challenge_site import answers, challenge_site, handed, logged_in, team_of_two
from tests.support.program import proctor
from tests.support.toy_run import toy
from tests.support.web_folder import review_folder
from tests.support.web_study import review
from tests.web.test_review_export import settled_study


def rows_of(store: str, *kinds: StoredTables) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a store by table, in the order of their keys."""
    tables = [*store_tables.sorted_tables, *(table for kind in kinds for table in kind.tables)]
    engine = open_engine(store, create=False)
    try:
        with reading(engine) as connection:
            assert first_fault(connection) is None
            return {table.name: in_order(connection, table) for table in tables}
    finally:
        engine.dispose()


def in_order(connection: Connection, table: Table) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]


@pytest.fixture
def pilot(tmp_path: Path) -> str:
    """The store of a review with sealed, adjudicated and open readings."""
    store = tmp_path / "pilot.sqlite"
    engine = review(store)
    settled_study(engine)
    engine.dispose()
    return str(store)


def test_a_review_goes_to_postgresql_and_back(pilot: str, postgres_url: str, tmp_path: Path) -> None:
    before = rows_of(pilot, ACCOUNT_TABLES, REVIEW_TABLES)
    done = proctor("store", "merge", "--whole", pilot, "--store", postgres_url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{sum(map(len, before.values()))} rows in {sum(map(bool, before.values()))} tables copied\n"
    assert done.stderr.startswith("the trail is as recorded; its newest hash is ")
    assert rows_of(postgres_url, ACCOUNT_TABLES, REVIEW_TABLES) == before
    back = tmp_path / "back.sqlite"
    copy_store(postgres_url, str(back))
    assert rows_of(str(back), ACCOUNT_TABLES, REVIEW_TABLES) == before
    assert back.stat().st_mode & 0o007 == 0


def test_what_is_nothing_stays_nothing(pilot: str, postgres_url: str) -> None:
    """An empty cell of a JSON column is NULL, and not JSON's null."""
    copy_store(pilot, postgres_url)
    for store in (f"sqlite:///{pilot}", postgres_url):
        engine = create_engine(store)
        with engine.connect() as connection:
            empty = connection.execute(text("select count(*) from study_items where gold is null")).scalar()
            assert empty == connection.execute(text("select count(*) from study_items")).scalar()
        engine.dispose()


def test_the_copy_goes_on(pilot: str, postgres_url: str, tmp_path: Path) -> None:
    """Its new rows get numbers after the copied ones, and its triggers hold."""
    copy_store(pilot, postgres_url)
    folder = review_folder(tmp_path / "review")
    accounts = review_accounts(folder, postgres_url)
    add_person(accounts, "zoe", "reviewer", "en")
    engine = open_engine(postgres_url, create=False)
    with reading(engine) as connection:
        numbers = connection.execute(text("select id from accounts order by id")).scalars().all()
        assert numbers == list(range(1, len(numbers) + 1))
        assert first_fault(connection) is None
    with pytest.raises(Exception, match="stay as they are"), engine.begin() as connection:
        connection.execute(text("delete from trail"))
    engine.dispose()


def test_a_challenge_goes_to_postgresql(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    site = challenge_site(tmp_path / "challenge")
    team_of_two(site, "Hand Surgeons", "anna", "ben")
    assert handed(logged_in(site, "anna"), answers(site)).status_code == 303
    site.engine.dispose()
    store = str(tmp_path / "challenge" / "challenge.sqlite")
    found = copy_store(store, postgres_url)
    before = rows_of(store, ACCOUNT_TABLES, TABLES)
    assert rows_of(postgres_url, ACCOUNT_TABLES, TABLES) == before
    assert (found.rows["teams"], found.rows["members"], found.rows["submissions"]) == (1, 2, 1)
    assert len(found.trail) == 64


def test_a_store_with_rows_is_no_target(pilot: str, tmp_path: Path) -> None:
    copy_store(pilot, str(tmp_path / "a.sqlite"))
    with pytest.raises(InputError, match="found rows in accounts, trail, studies, expected an empty store"):
        copy_store(pilot, str(tmp_path / "a.sqlite"))


def test_a_changed_trail_is_not_carried_on(pilot: str, tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{pilot}")
    with engine.begin() as connection:
        connection.execute(text("drop trigger trail_stay_on_update"))
        connection.execute(text("update trail set subject = 'account 9 (eve)' where id = 2"))
    engine.dispose()
    target = tmp_path / "b.sqlite"
    with pytest.raises(InputError, match="entry 2 of the trail: found another one than was recorded"):
        copy_store(pilot, str(target))
    engine = create_engine(f"sqlite:///{target}")
    with engine.connect() as connection:
        assert connection.execute(text("select count(*) from accounts")).scalar() == 0
    engine.dispose()


def test_a_path_without_a_store_is_refused(tmp_path: Path) -> None:
    done = proctor("store", "merge", "--whole", tmp_path / "none.db", "--store", tmp_path / "new.db")
    assert (done.returncode, "none.db: found no such file, expected a store" in done.stderr) == (1, True)
    assert not (tmp_path / "new.db").exists()


def test_every_table_of_a_store_is_known() -> None:
    """A new group of tables has to be copied, too."""
    kinds = {table.name for kind in (ACCOUNT_TABLES, REVIEW_TABLES, TABLES) for table in kind.tables}
    declared = {name for metadata in metadatas() for name in metadata.tables}
    assert declared == kinds


def metadatas() -> list[MetaData]:
    from proctor_challenge import schema as challenges
    from proctor_web import schema as web

    return [web.metadata, challenges.metadata]


def test_no_two_sets_of_tables_share_a_name() -> None:
    """They stand in one database: of stores, reviews and challenges."""
    names = [table.name for kind in (CONTROLS, STUDIES, TABLES, ACCOUNT_TABLES, REVIEW_TABLES) for table in kind.tables]
    names += store_tables.tables
    assert sorted(names) == sorted(set(names))
    keys = [kind.key for kind in (CONTROLS, STUDIES, TABLES, ACCOUNT_TABLES, REVIEW_TABLES)]
    assert len(set(keys)) == 5


def test_pauses_and_study_files_are_copied_with_a_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.db")
    store.add_benchmark(toy(2))
    run = store.start_run("toy", "s", "text-only", {})
    pause_runs(store, [run], "night")
    record_study(store, "toy", "study", "0" * 64, "{}")
    store.close()
    copy_store(str(tmp_path / "a.db"), str(tmp_path / "b.db"))
    copy = Store(tmp_path / "b.db", create=False)
    assert [(one.state, one.why) for one in run_statuses(copy)] == [("paused", "night")]
    assert [one.sha256 for one in studies_of(copy, "toy")] == ["0" * 64]
    copy.close()
