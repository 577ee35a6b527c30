"""Stores of other versions are refused in one sentence that says what to do, and stay as they are."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from proctor import __version__
from proctor.core import InputError
from proctor.runs import Store, schema
from proctor.runs.database import open_engine
from tests.support.program import proctor

FORMER = """
create table meta (key varchar(40) primary key, value text not null);
create table answers (run integer, item integer, status varchar(12) not null, primary key (run, item)) without rowid;
insert into meta values ('version', '2');
insert into answers values (1, 1, 'answered');
"""
AGAIN = f"expected version {schema.VERSION}: make it again (proctor run, proctor import), or open it with"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "runs.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def set_meta(url: str, key: str, value: str) -> None:
    engine = open_engine(url, create=True)
    with engine.begin() as connection:
        connection.execute(text("update meta set value = :value where key = :key"), {"key": key, "value": value})
    engine.dispose()


@pytest.mark.parametrize("create", [False, True])
def test_a_store_of_before_repetitions_is_refused_and_stays_as_it_is(tmp_path: Path, create: bool) -> None:
    file = tmp_path / "runs.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(FORMER)
    connection.close()
    before = file.read_bytes()
    with pytest.raises(InputError) as raised:
        Store(file, create=create)
    assert str(raised.value) == f"{file}: found a store of version 2, {AGAIN} the Proctor that made it"
    assert file.read_bytes()[100:] == before[100:]  # the header says that WAL mode was asked for


def test_a_store_says_which_proctor_made_it(url: str) -> None:
    Store(url).close()
    set_meta(url, "version", "2")
    with pytest.raises(InputError, match="found a store of version 2, expected") as raised:
        Store(url, create=False)
    assert str(raised.value).endswith(f"{AGAIN} Proctor {__version__}, which made it")


@pytest.mark.parametrize("version", ["0", str(schema.VERSION + 1), "three"])
def test_versions_that_this_proctor_does_not_know_need_another_one(url: str, version: str) -> None:
    Store(url).close()
    set_meta(url, "version", version)
    expected = f"found a store of version {version}, expected version {schema.VERSION}: update Proctor to open it"
    with pytest.raises(InputError, match=expected):
        open_engine(url, create=False)


def test_every_command_says_it_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(FORMER)
    connection.close()
    commands = (("list", "runs"), ("results", "clips"), ("check", "store"), ("report", "clips"))
    for command in commands:
        done = proctor(*command, "--store", file)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), (command, done.stderr)
        assert f"found a store of version 2, {AGAIN}" in done.stderr
