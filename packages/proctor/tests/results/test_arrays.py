"""Items as arrays hold what the benchmark's items say, on both databases, however these lie in the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update

from proctor.core import ACCURACY, Benchmark, Item, generator
from proctor.core.formats import BinaryFormat, CountFormat
from proctor.results import ItemTable, arrays, load_items
from proctor.runs import Store, schema

NAMES = ("plain", "an à and 中", "tab\t and, comma", "unit\x1fseparator", "record\x1eseparator", '"quoted"', "{")


def some_benchmark(name: str, items: int) -> Benchmark:
    """Items with drawn groups, formats and tags, of which those of 2020 count."""
    rng = generator(0, "item table", name)
    return Benchmark(
        name=name,
        title=name,
        items=tuple(
            Item(
                id=f"{NAMES[rng.integers(len(NAMES))]} {number}",
                group=NAMES[rng.integers(len(NAMES))],
                question="How many?",
                answer=(CountFormat(), BinaryFormat())[rng.integers(2)],
                tags={"year": int(2019 + rng.integers(2)), "of": (NAMES[rng.integers(len(NAMES))],)},
            )
            for number in rng.permutation(items)
        ),
        metrics=(ACCURACY,),
        headline="accuracy",
        only={"year": 2020},
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(arrays, "_AT_ONCE", 7)
    found = Store(tmp_path / "runs.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    yield found
    found.close()


def said(items: ItemTable) -> list[tuple[str, str, str, dict[str, object]]]:
    codes = zip(items.ids, items.group, items.format, items.tags_code, strict=True)
    return [(name, items.groups[group], items.formats[kind], items.tags[tags]) for name, group, kind, tags in codes]


def of_items(items: list[Item]) -> list[tuple[str, str, str, dict[str, object]]]:
    return [(one.id, one.group, one.answer.kind, json.loads(schema.tags_text(one))) for one in items]


@pytest.mark.parametrize("all_items", [False, True])
def test_the_table_says_what_the_items_say(store: Store, all_items: bool) -> None:
    for benchmark in (some_benchmark("first", 40), some_benchmark("second", 30), some_benchmark("third", 1)):
        store.add_benchmark(benchmark)
    for name in ("first", "second", "third"):
        card = store.card(name)
        kept = [one for one in store.items(name) if all_items or card.counts(one)]
        found = load_items(store, card, all_items=all_items)
        assert said(found) == of_items(kept)
        assert len(found) == len(kept)
        assert found.groups == list(dict.fromkeys(one.group for one in kept))
        assert found.formats == list(dict.fromkeys(one.answer.kind for one in kept))
        numbers = store.item_numbers(name)
        assert found.number.tolist() == [numbers[one.id] for one in kept]
        assert [found.row_of[numbers[one.id]] for one in kept] == list(range(len(kept)))
        assert np.count_nonzero(found.row_of >= 0) == len(kept)


def test_the_order_is_the_benchmarks_and_not_that_of_the_rows(store: Store) -> None:
    store.add_benchmark(some_benchmark("first", 40))
    before = said(load_items(store, store.card("first"), all_items=True))
    with store.writing() as connection:
        connection.execute(update(schema.items).values(position=-schema.items.c.position))
    assert said(load_items(store, store.card("first"), all_items=True)) == before[::-1]


def test_a_part_of_the_table_keeps_its_own_groups(store: Store) -> None:
    store.add_benchmark(some_benchmark("first", 40))
    whole = load_items(store, store.card("first"), all_items=True)
    kept = np.arange(40) % 3 == 1
    part = whole.only(kept)
    assert said(part) == said(whole)[1::3]
    assert set(part.groups) == {part.groups[code] for code in part.group}
    assert part.row_of[part.number].tolist() == list(range(len(part)))
