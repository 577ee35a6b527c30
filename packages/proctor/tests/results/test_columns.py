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
from proctor.runs.bulk_sql import joined_columns, keyed_numbers, keyed_texts, parted_numbers, whole_numbers
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
        every = keyed_numbers(connection, SCORES.c.item, SCORES.c.value, SCORES.c.metric == "m", [SCORES.c.metric])
    assert set(every) == {("m",)}
    keys, values = every["m",]
    assert [values[np.argsort(keys)].tolist(), sorted(keys)] == [VALUES, list(range(keys.min(), keys.min() + 7))]


def test_none_is_an_empty_column(store: Store) -> None:
    nothing = SCORES.c.metric == "another"
    with store.reading() as connection:
        assert whole_numbers(connection, SCORES.c.item, nothing).tolist() == []
        assert keyed_numbers(connection, SCORES.c.item, SCORES.c.value, nothing, [SCORES.c.metric]) == {}
        numbers, texts = joined_columns(connection, [SCORES.c.item], [SCORES.c.label], nothing)
        assert ([one.tolist() for one in numbers], texts) == ([[]], [[]])


def test_each_metric_and_scorer_has_its_own_scores(store: Store) -> None:
    run, names = store.runs("toy")[0], list(store.item_numbers("toy"))
    store.add_scores(run, [Score(item_id=name, metric="m", scorer="x", value=1.0) for name in names[:2]])
    store.add_scores(run, [Score(item_id=names[3], metric="mean", scorer="x", value=0.5)])
    by = [SCORES.c.metric, SCORES.c.scorer]
    with store.reading() as connection:
        found = keyed_numbers(connection, SCORES.c.item, SCORES.c.value, SCORES.c.run == run.id, by)
    assert {key: sorted(values.tolist()) for key, (_, values) in found.items()} == {
        ("m", "code"): sorted(VALUES), ("m", "x"): [1.0, 1.0], ("mean", "x"): [0.5]
    }  # fmt: skip
    assert found["mean", "x"][0].tolist() == [store.item_numbers("toy")[names[3]]]


def test_every_row_is_in_one_part(store: Store) -> None:
    mine, low = SCORES.c.metric == "m", SCORES.c.value < 0.5
    with store.reading() as connection:
        first, second = parted_numbers(connection, [(SCORES.c.item, low), (-SCORES.c.item, ~low)], mine)
    assert (len(first), len(second), first.min() > 0 > second.max()) == (4, 3, True)
    with pytest.raises(InputError, match="4 whole numbers in 7 rows"), store.reading() as connection:
        parted_numbers(connection, [(SCORES.c.item, low), (SCORES.c.item, low & ~low)], mine)


@pytest.mark.parametrize("text", ["", "two\x1fparts", "a,b\n", "é\U0001f600"])
def test_any_text_comes_back_beside_its_number(store: Store, text: str) -> None:
    run, (first, *_, last) = store.runs("toy")[0], list(store.item_numbers("toy"))
    store.add_scores(run, [Score(item_id=first, metric="m", scorer="x", value=1.0, label=text)])
    for names, number in (([first], 1), ([first, last], 2)):
        store.add_scores(run, [Score(item_id=name, metric="m", scorer="x", value=1.0, label=text) for name in names])
        with store.reading() as connection:
            (items,), (labels,) = joined_columns(connection, [SCORES.c.item], [SCORES.c.label], SCORES.c.scorer == "x")
        assert dict(zip(items.tolist(), labels, strict=True)) == {store.item_numbers("toy")[one]: text for one in names}
        assert len(items) == number


def test_texts_come_with_the_rows_that_have_them(store: Store) -> None:
    with store.reading() as connection:
        found = keyed_texts(connection, SCORES.c.item, cast(SCORES.c.value == 1, Text), SCORES.c.metric == "m")
        by_metric = keyed_numbers(connection, SCORES.c.item, SCORES.c.value, SCORES.c.metric == "m", [SCORES.c.metric])
        assert keyed_texts(connection, SCORES.c.item, SCORES.c.label, SCORES.c.metric == "another") == []
    keys, values = by_metric[("m",)]
    by_size = sorted((sorted(numbers.tolist()) for _, numbers in found), key=len)
    assert by_size == [sorted(keys[values == 1].tolist()), sorted(keys[values != 1].tolist())]


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
        connection.execute("DROP TABLE judgements")
        connection.execute("CREATE TABLE judgements (id, key, judge, item, body)")
        connection.executemany(f"INSERT INTO judgements (id) VALUES ({bad})", [()] * 3)
    store = Store(file)
    with pytest.raises(InputError, match="a damaged row"), store.reading() as connection:
        whole_numbers(connection, schema.judgements.c.id, schema.judgements.c.key.is_(None))
    store.close()
