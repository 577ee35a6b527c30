"""Every column of `compare` under every option, and which runs it sets against which, worked out from the raw
answers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import FailedPolicy
from proctor.results import Options, compare
from tests.support import recomputed
from tests.support.contest import contest_store, skilled, write_run
from tests.support.fuzzed_store import NAME, Fuzzed, fuzzed

Pair = tuple[tuple[str, str], tuple[str, str]]

ALPHA, BETA, DELTA, GAMMA = EVERY = tuple(
    ((system, "video"), (system, "text-only")) for system in ("alpha", "beta", "delta", "gamma")
)
CONDITIONS: list[Pair] = [(one[0], one[1]) for one in EVERY]
VIDEO: list[Pair] = list(combinations([one[0] for one in EVERY], 2))

WAYS: list[tuple[dict[str, Any], list[Pair]]] = [
    ({}, CONDITIONS),
    ({"conditions": ("text-only", "video"), "seed": 2}, [(one[1], one[0]) for one in EVERY]),
    ({"conditions": ("video",), "failed": "wrong"}, VIDEO),
    ({"conditions": ("video",), "systems": ("gamma", "alpha")}, [(GAMMA[0], ALPHA[0])]),
    ({"systems": ("beta/text-only", "alpha/video"), "failed": "exclude"}, [(BETA[1], ALPHA[0])]),
    ({"systems": ("random", "beta"), "all_items": True}, [(("random", "text-only"), BETA[1])]),
    ({"against": "beta/video", "metrics": ("accuracy",)}, [(run, BETA[0]) for run in sorted([*ALPHA, BETA[1], *DELTA, *GAMMA, ("random", "text-only")])]),
    ({"systems": ("alpha",), "by": ("level",), "draws": 150}, CONDITIONS[:1]),
    ({"conditions": ("video",), "by": ("area",), "metrics": ("effort", "helpful"), "failed": "wrong"}, VIDEO),
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    return fuzzed(tmp_path_factory.mktemp("fuzzed"), 5)


def close(value: object) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert [set(one) for one in found] == [set(one) for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        for name, value in other.items():
            assert one[name] == close(value), (name, one, other)


@pytest.mark.parametrize(("way", "pairs"), WAYS, ids=[" ".join(way) or "plain" for way, _ in WAYS])
def test_every_column(made: Fuzzed, way: Mapping[str, Any], pairs: list[Pair]) -> None:
    plan: dict[str, Any] = {"draws": 120} | dict(way)
    chosen = {name: value for name, value in plan.items() if name not in {"systems", "conditions", "against"}}
    wanted = recomputed.comparisons(made, pairs, **chosen)
    table = proctor.compare(made.store, NAME, **plan)
    same([one.to_json() for one in table.data.comparisons], wanted)
    drawn = [one.drawn for one in table.data.comparisons]
    assert drawn == [close(one["difference_if_wrong" if one["policy"] == "both" else "difference"]) for one in wanted]
    for row, one in zip(table.rows, wanted, strict=True):
        sides = [(one[name]["system"], one[name]["condition"]) for name in ("first", "second")]
        shown = (row["first_system"], row["first_condition"]), (row["second_system"], row["second_condition"])
        assert list(shown) == sides
        assert {name: row[name] for name in one["facets"]} == one["facets"]
        assert row["difference"] == close(one["difference"])
        assert row["p_holm"] == close(one["p_holm"])


def test_without_options(made: Fuzzed) -> None:
    wanted = recomputed.comparisons(made, CONDITIONS, draws=2000, seed=0, level=0.95)
    same([one.to_json() for one in compare(made.store, NAME).comparisons], wanted)
    same([one.to_json() for one in proctor.compare(made.store, NAME).data.comparisons], wanted)


@pytest.mark.parametrize("failed", ["wrong", "exclude"])
def test_metrics_and_the_level_of_intervals(tmp_path: Path, failed: str) -> None:
    made = fuzzed(tmp_path, 7, items=36, failed=FailedPolicy(failed))
    found = compare(made.store, NAME, Options(draws=100, level=0.8), metrics=("accuracy",)).comparisons
    wanted = recomputed.comparisons(made, CONDITIONS, metrics=("accuracy",), failed=failed, draws=100, level=0.8)
    same([one.to_json() for one in found], wanted)


def test_systems_that_share_one_condition_are_compared_under_it_beside_baselines_under_another(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    for number, name in enumerate(("first", "second", "third")):
        write_run(store, name, skilled(0.9, 0.5 + 0.1 * number, seed=number))
    write_run(store, "random", skilled(0.5, 0.5, seed=9), condition="text-only")
    write_run(store, "told", skilled(1.0, 1.0, seed=8), oracle=True)
    found = compare(store, "contest", Options(draws=100))
    pairs = {
        (str(one.first.system), str(one.second.system), one.first.condition, one.second.condition)
        for one in found.comparisons
    }
    names = ("first", "second", "third")
    assert pairs == {(a, b, "video", "video") for k, a in enumerate(names) for b in names[k + 1 :]}


def test_two_incomplete_runs_with_the_same_answers_do_not_point_different_ways(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None)
    for name in ("first", "second"):
        write_run(store, name, [None if n % 9 == 0 else one for n, one in enumerate(skilled(0.8, 0.6))])
    found = compare(store, "contest", Options(draws=100)).comparisons[0]
    assert (found.if_wrong.value, found.if_excluded.value) == (0.0, 0.0)
    assert (found.policy, found.difference.p, found.p_holm, found.undecided) == ("both", 1.0, 1.0, False)


def test_an_undecided_comparison_counts_in_the_adjustment(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None)
    first = skilled(0.8, 0.6, seed=1)
    write_run(store, "first", first)
    write_run(store, "second", skilled(0.65, 0.5, seed=2))
    alone = compare(store, "contest", Options(draws=100)).comparisons[0]
    # It lacks a quarter, and has more right on the rest: behind if what it lacks is wrong, ahead if it is left out.
    write_run(store, "third", [None if n % 4 == 0 else one or n % 2 == 0 for n, one in enumerate(first)])
    found = {
        (one.first.system, one.second.system): one for one in compare(store, "contest", Options(draws=100)).comparisons
    }
    third = found["first", "third"]
    assert third.undecided
    assert (third.difference.p, third.p_holm) == (None, None)
    p = {pair: one.difference.p for pair, one in found.items()}
    assert p["first", "second"] == alone.difference.p == alone.p_holm
    wanted = recomputed.holm([1.0 if one is None else one for one in p.values()])
    assert found["first", "second"].p_holm == close(wanted[list(p).index(("first", "second"))])
    assert found["first", "second"].p_holm != close(
        recomputed.holm(list(p.values()))[list(p).index(("first", "second"))]
    )
