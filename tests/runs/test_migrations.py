"""Stores of older versions become today's when they are opened: all of a step or nothing of it, in both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from proctor.core import InputError
from proctor.runs import Store, schema
from proctor.runs.database import open_engine

ADDED = ("claims", "orders", "parcels")


@pytest.fixture(params=["sqlite", "postgresql"])
def former(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of version 1, in which the tables of version 2 are lacking but for one."""
    url = str(tmp_path / "runs.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    engine = open_engine(url, create=True)
    with engine.begin() as connection:
        for name in ADDED[:2]:
            connection.execute(text(f"drop table {name}"))
        connection.execute(text("alter table runs rename column owned_until to owner_seen"))
        connection.execute(text("update meta set value = '1' where key = 'version'"))
    engine.dispose()
    return url


def told(url: str) -> tuple[str, set[str]]:
    """The version and the tables, past Proctor's own opening."""
    engine = open_engine.__globals__["_engine"](url, create=False)
    with engine.begin() as connection:
        version = connection.execute(text("select value from meta where key = 'version'")).scalar_one()
        tables = set(inspect(connection).get_table_names())
    engine.dispose()
    return version, tables


def test_there_is_a_step_for_every_version() -> None:
    assert sorted(schema.STEPS) == list(range(1, schema.VERSION))


def test_a_former_store_gets_the_tables_of_today(former: str) -> None:
    engine = open_engine(former, create=False)
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()
    assert told(former) == (str(schema.VERSION), set(schema.metadata.tables))
    Store(former, create=False).close()


def test_a_step_that_fails_leaves_the_store_as_it_was(former: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = told(former)

    def fails(operations: object) -> None:
        schema.STEPS_BEFORE[1](operations)  # type: ignore[attr-defined]
        raise ValueError("the disk is full")

    monkeypatch.setattr(schema, "STEPS_BEFORE", dict(schema.STEPS), raising=False)
    monkeypatch.setitem(schema.STEPS, 1, fails)
    with pytest.raises(InputError, match="found the disk is full"):
        open_engine(former, create=False)
    assert told(former) == before == ("1", set(schema.metadata.tables) - set(ADDED[:2]))


@pytest.mark.parametrize("version", ["0", str(schema.VERSION + 1)])
def test_versions_that_never_were_are_refused(former: str, version: str) -> None:
    engine = open_engine(former, create=False)
    with engine.begin() as connection:
        connection.execute(text(f"update meta set value = '{version}' where key = 'version'"))
    engine.dispose()
    with pytest.raises(InputError, match=f"found a store of version {version}, expected version 3 or older"):
        open_engine(former, create=False)
