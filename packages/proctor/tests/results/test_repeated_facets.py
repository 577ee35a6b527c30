"""A value that an item's tag names twice, and a facet that is named twice, count once; a declared facet that no item has
counts for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import ACCURACY, Answer, Benchmark, InputError, Item, Reference, Score, TagValue
from proctor.core.formats import BinaryFormat
from proctor.results import Contest, Options, composition, rank_runs, results
from proctor.runs import Store
from proctor.stats import RankingPlan
from tests.support.contest import NAME, contest_store, skilled, write_run

TOPICS: tuple[TagValue, ...] = (("neck", "neck"), ("neck",), ("hip", "neck"), ("yes", "hip", "yes"))


def _store(folder: Path, facets: tuple[str, ...] = ("topic",)) -> Store:
    """Four questions about these topics, all "yes"; `one` says so of all but the second, `other` of the first alone."""
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"p{number}",
            question="Is it?",
            answer=BinaryFormat(),
            reference=Reference(answer=True),
            tags={"topic": topic},
        )
        for number, topic in enumerate(TOPICS)
    )
    store = Store(folder / "runs.db")
    store.add_benchmark(Benchmark("own", "own", items, (ACCURACY,), "accuracy", facets=facets))
    for system, right in (("one", (1, 0, 1, 1)), ("other", (1, 0, 0, 0))):
        rows = [
            (
                Answer(item_id=item.id, text="", parsed=bool(value)),
                [Score(item_id=item.id, metric="accuracy", value=float(value), scorer="code")],
            )
            for item, value in zip(items, right, strict=True)
        ]
        store.write(store.start_run("own", system, "video", {}), rows)
    return store


def test_an_item_counts_once_for_each_value(tmp_path: Path) -> None:
    """By hand: neck is q0, q1 and q2, of which `one` has 2 right and `other` 1; hip is q2 and q3."""
    store = _store(tmp_path)
    found = {(one.system, one.facets["topic"]): one for one in results(store, "own", Options(by=("topic",))).rows}
    figures = {key: (one.value, one.n, one.answered, one.groups) for key, one in found.items()}
    assert figures == {
        ("one", "hip"): (1.0, 2, 2, 2),
        ("one", "neck"): (2 / 3, 3, 3, 3),
        ("one", "yes"): (1.0, 1, 1, 1),
        ("other", "hip"): (0.0, 2, 2, 2),
        ("other", "neck"): (1 / 3, 3, 3, 3),
        ("other", "yes"): (0.0, 1, 1, 1),
    }
    compared = {one["topic"]: (one["n"], one["difference"]) for one in proctor.compare(store, by="topic").rows}
    assert compared == {"hip": (2, 1.0), "neck": (3, 1 / 3), "yes": (1, 1.0)}
    assert {row["topic"]: row["items"] for row in composition(store, "own", ["topic"])} == {
        "hip": 2,
        "neck": 3,
        "yes": 1,
    }


def test_a_facet_that_is_named_twice_is_named_once(tmp_path: Path) -> None:
    store = _store(tmp_path)
    calls: list[tuple[Any, dict[str, Any]]] = [(proctor.results, {}), (proctor.compare, {}), (proctor.rank, {})]
    for call, more in calls:
        once, twice = (call(store, by=by, draws=100, **more) for by in ("topic", ["topic", "topic"]))
        assert twice.rows == once.rows
        assert [table.columns for table in twice.tables] == [table.columns for table in once.tables]
    assert composition(store, "own", ["topic", "topic"]) == composition(store, "own", ["topic"])


def test_a_bucket_holds_the_items_that_name_it_twice(tmp_path: Path) -> None:
    store = contest_store(tmp_path, odd_tags={0: ("easy", "easy"), 2: ("easy", "hard")})
    write_run(store, "team", skilled(0.8, 0.6))
    found = rank_runs(store, NAME, Contest(baselines=()), plan=RankingPlan(stability=0))[0]
    assert (found.items, found.unbucketed) == (239, 1)


def test_a_declared_facet_that_no_item_has_stops_nothing(tmp_path: Path) -> None:
    """Ranks and analyses are those of a benchmark that declares only what its items have."""
    found = []
    for name, facets in (("with", ("side", "topic")), ("without", ("topic",))):
        (tmp_path / name).mkdir()
        store = _store(tmp_path / name, facets)
        ranked = proctor.rank(store, draws=100, stability=0).rows
        analyzed = proctor.analyze(store, draws=100, stability=0).data.tables
        found.append((ranked, analyzed, composition(store, "own")))
        with pytest.raises(InputError, match="found no facet 'side', expected one of format, group, topic"):
            proctor.rank(store, by="side")
    assert found[0] == found[1]
    assert [board.standings.buckets for board in rank_runs(_store(tmp_path, ("side",)), "own")] == [("all",)]
