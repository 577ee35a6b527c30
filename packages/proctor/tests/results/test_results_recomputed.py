"""Every column of `results` under every option is what comes out when the raw answers are counted again by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import FailedPolicy
from proctor.results import Options, results
from tests.support import recomputed
from tests.support.fuzzed_store import NAME, Fuzzed, fuzzed

WAYS: list[dict[str, Any]] = [
    {},
    {"by": ("level",), "seed": 3},
    {"by": ("area", "level"), "all_items": True, "failed": "wrong"},
    {"by": ("format",), "failed": "exclude", "level": 0.8},
    {"by": ("group",), "systems": ("beta", "random")},
    {"systems": ("alpha", "gamma"), "conditions": ("text-only",), "metrics": ("accuracy", "effort")},
    {"metrics": ("unresolved", "helpful"), "two_level": True, "failed": "wrong"},
    {"all_items": True, "draws": 150, "seed": 9},
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    return fuzzed(tmp_path_factory.mktemp("fuzzed"), 1)


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    """The rows one by one, so that the first difference is named; numbers to the last digits."""
    assert [set(one) for one in found] == [set(one) for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        for name, value in other.items():
            exact = pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value
            assert one[name] == exact, (name, one, other)


@pytest.mark.parametrize("way", WAYS, ids=[" ".join(way) or "plain" for way in WAYS])
def test_every_column(made: Fuzzed, way: dict[str, Any]) -> None:
    plan: dict[str, Any] = {"draws": 120} | way
    wanted = recomputed.results(made, **plan)
    given = plan | ({"failed": FailedPolicy(plan["failed"])} if "failed" in plan else {})
    found = [one.to_json() for one in results(made.store, NAME, Options(**given)).rows]
    same(found, wanted)
    table = proctor.results(made.store, NAME, **plan)
    frame = table.rows
    records = [record for one in table.tables for record in one.records if "value" in record]
    assert all(
        ("system", "condition", *plan.get("by", ()), "value") == tuple(record)[: 3 + len(plan.get("by", ()))]
        for record in records
    )
    assert all({"n", "groups", "answered", "failed"} <= set(record) for record in records)
    assert [row["value"] for row in frame] == [row["value"] for row in wanted]
    assert [{name: row[name] for name in plan.get("by", ())} for row in frame] == [row["facets"] for row in wanted]
    drawn = [one.drawn for one in results(made.store, NAME, Options(**given)).rows]
    assert drawn == [row["if_wrong" if row["policy"] == "both" else "value"] for row in wanted]


def test_everything_occurs(made: Fuzzed) -> None:
    """No count is zero throughout, so that none can be mistaken for another."""
    rows = recomputed.results(made, draws=100)
    for name in ("failed", "timed_out", "refused", "error", "unreadable", "not_submitted", "unresolved", "decided"):
        assert any(row[name] for row in rows), name
    for name in ("unscored", "missing"):
        assert any(row[name] for row in rows), name


@pytest.mark.parametrize("seed", [2, 3])
def test_a_benchmarks_own_rule_counts_where_none_is_chosen(tmp_path: Path, seed: int) -> None:
    made = fuzzed(tmp_path, seed, failed=FailedPolicy.WRONG, items=40, abstains=seed == 3)
    found = [one.to_json() for one in results(made.store, NAME, Options(draws=100)).rows]
    same(found, recomputed.results(made, failed="wrong", draws=100))


def test_what_is_counted_without_options(made: Fuzzed) -> None:
    """The defaults: the items that count, 2,000 draws of whole groups, seed 0, intervals of 95 %."""
    defaults: dict[str, Any] = {"draws": 2000, "level": 0.95, "seed": 0, "two_level": False}
    wanted = recomputed.results(made, all_items=False, **defaults)
    same([one.to_json() for one in results(made.store, NAME).rows], wanted)
    same([one.to_json() for one in proctor.results(made.store, NAME).data.rows], wanted)
