"""A store that is opened to be read: nothing in it, and nothing beside it, is changed by that."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from proctor.core import Answer, InputError
from proctor.runs import Store, runs_at_work
from tests.support.postgres import binaries, running_postgres
from tests.support.report_store import a_benchmark, a_store, fill
from tests.support.toy_run import toy


def test_nothing_can_be_written(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    before = (tmp_path / "toy.db").read_bytes()
    store = Store(tmp_path / "toy.db", create=False, read_only=True)
    run = store.runs("toy")[0]
    for change in (
        lambda: store.write(run, [(Answer(item_id="q000"), [])]),
        lambda: store.start_run("toy", "new", "video", {}),
        lambda: store.add_benchmark(toy()),
        lambda: store.set_flags("toy", "x", {}),
    ):
        with pytest.raises(InputError, match="found a read-only file, expected one to write to"):
            change()
    with store.reading() as connection, pytest.raises(Exception, match="attempt to write a readonly database"):
        connection.execute(text("DELETE FROM answers"))
    store.close()
    assert (tmp_path / "toy.db").read_bytes() == before


def test_what_others_write_is_seen(tmp_path: Path) -> None:
    writer = a_store(tmp_path)
    reader = Store(tmp_path / "toy.db", create=False, read_only=True)
    run = writer.start_run("toy", "new", "video", {})
    assert reader.count_answers(run) == (0, 0)
    writer.write(run, [(Answer(item_id="q000", parsed="A"), [])])
    assert reader.count_answers(run) == (1, 0)
    writer.close()
    assert reader.count_answers(run) == (1, 0)


def test_there_must_be_a_store(tmp_path: Path) -> None:
    for create in (True, False):
        with pytest.raises(InputError, match="found no such file, expected a store"):
            Store(tmp_path / "none.db", create=create, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_who_asks_a_run_is_seen_from_outside(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    reader = Store(tmp_path / "toy.db", create=False, read_only=True)
    run = store.runs("toy")[0]
    assert runs_at_work(reader, "toy") == set()
    with store.owning([run]):
        assert runs_at_work(reader, "toy") == {run.id}
        assert runs_at_work(reader, "another") == set()
    assert runs_at_work(reader, "toy") == set()


def test_a_server_s_transactions_only_read() -> None:
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL here (Debian: apt-get install postgresql)")
    with running_postgres(programs) as url:
        store = Store(f"{url}/postgres")
        fill(store, a_benchmark())
        reader = Store(f"{url}/postgres", create=False, read_only=True)
        run = reader.runs("toy")[0]
        assert reader.count_answers(run) == store.count_answers(run)
        with pytest.raises(InputError, match="read-only transaction"):
            reader.start_run("toy", "new", "video", {})
        store.close()
        reader.close()
