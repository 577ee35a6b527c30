"""Numbers of many rows, joined by the database: exact, on both databases, and told where they are none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Text, cast

from proctor.core import InputError, Score
from proctor.runs import Store, schema
from proctor.runs.columns import keyed_numbers, whole_numbers
from tests.runs.test_store import a_benchmark, a_run, an_answer

VALUES = [0.0, 1.0, 1 / 3, np.nextafter(1.0, 0.0), 1e-300, 0.1 + 0.2, 1.0]
SCORES = schema.scores


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    where = tmp_path / "runs.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    benchmark = a_benchmark(len(VALUES))
    found = Store(where)
    run = a_run(found, benchmark)
    marks = zip(benchmark.items, VALUES, strict=True)
    found.write(run, [(an_answer(item.id), [Score(item_id=item.id, metric="m", value=one)]) for item, one in marks])
    yield found
    found.close()


def test_every_score_comes_back_to_the_last_bit(store: Store) -> None:
    with store.reading() as connection:
        keys, values = keyed_numbers(connection, SCORES.c.item, SCORES.c.value, SCORES.c.metric == "m")
    assert [values[np.argsort(keys)].tolist(), sorted(keys)] == [VALUES, list(range(keys.min(), keys.min() + 7))]


def test_none_is_an_empty_column(store: Store) -> None:
    nothing = SCORES.c.metric == "another"
    with store.reading() as connection:
        assert whole_numbers(connection, SCORES.c.item, nothing).tolist() == []
        assert [one.tolist() for one in keyed_numbers(connection, SCORES.c.item, SCORES.c.value, nothing)] == [[], []]


def test_digits_are_joined_into_one_number(store: Store) -> None:
    with store.reading() as connection:
        plain = whole_numbers(connection, SCORES.c.item, SCORES.c.value == 1)
        joined = whole_numbers(connection, cast(SCORES.c.item, Text) + "07", SCORES.c.value == 1)
    assert joined.tolist() == (plain * 100 + 7).tolist()


@pytest.mark.parametrize("bad", ["'x'", "'1,2'", "2.5", "NULL"])
def test_a_column_of_other_things_is_a_damaged_store(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "other.db"
    Store(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE votes")
        connection.execute("CREATE TABLE votes (id, key, judge, item, body)")
        connection.executemany(f"INSERT INTO votes (id) VALUES ({bad})", [()] * 3)
    store = Store(file)
    with pytest.raises(InputError, match="a damaged row"), store.reading() as connection:
        whole_numbers(connection, schema.votes.c.id, schema.votes.c.key.is_(None))
    store.close()
