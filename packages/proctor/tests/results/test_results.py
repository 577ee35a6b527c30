"""Numbers worked by hand: what counts, what is missing, and how failed answers are taken."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import Answer, Benchmark, FailedPolicy, InputError, Metric, Score, Status
from proctor.results import BOTH, Options, Result, compare, load_items, results, run_scores
from proctor.results.run_scores import each_run_scores
from proctor.runs import Store
from proctor.stats import Resampling, mean_interval
from tests.runs.test_store import a_benchmark, a_run, an_answer
from tests.support.contest import contest_store, write_run
from tests.support.ledger import JUDGE, fill_ledger, ledger_benchmark
from tests.support.program import proctor

CONTRACT = {
    "system": str, "condition": str, "metric": str, "facets": dict, "n": int, "answered": int, "failed": int,
    "groups": int, "value": float, "ci_low": float, "ci_high": float,
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill_ledger(tmp_path / "runs.db")


def numbers(store: Store, failed: FailedPolicy | None = FailedPolicy.EXCLUDE, **options: Any) -> list[Result]:
    return results(store, "ledger", Options(draws=200, failed=failed, **options)).rows


def test_every_item_is_accounted_for(store: Store) -> None:
    accuracy, points = numbers(store)
    assert (accuracy.metric, accuracy.scorer, accuracy.facets) == ("accuracy", "code", {})
    assert accuracy.value == 2 / 5
    assert (accuracy.n, accuracy.groups) == (5, 3)
    assert (accuracy.answered, accuracy.failed, accuracy.missing, accuracy.unscored) == (5, 1, 1, 0)
    assert (accuracy.timed_out, accuracy.refused, accuracy.unreadable) == (1, 1, 1)
    assert accuracy.answered + accuracy.failed + accuracy.missing == 7
    assert (points.metric, points.scorer, points.value, points.n, points.groups) == ("points", JUDGE, 2.0, 1, 1)
    assert (points.answered, points.unscored, points.failed, points.missing) == (2, 1, 0, 0)
    assert (points.ci_low, points.ci_high) == (None, None)
    assert points.levels == {"full": 1}


def test_the_interval_is_that_of_the_scored_items_by_group(store: Store) -> None:
    accuracy = numbers(store)[0]
    known = mean_interval(
        [1, 0, 1, 0, 0], ["v0", "v0", "v1", "v2", "v2"], Resampling(draws=200, level=0.95, seed=0, bounds=(0, 1))
    )
    assert (accuracy.ci_low, accuracy.ci_high) == (known.ci_low, known.ci_high)
    assert known.ci_low is not None
    assert known.ci_low < 0.4


def test_what_failed_or_was_not_asked_is_left_out_or_wrong(store: Store) -> None:
    excluded, wrong = numbers(store)[0], numbers(store, FailedPolicy.WRONG)[0]
    assert (excluded.value, excluded.n, excluded.policy) == (2 / 5, 5, "exclude")
    assert (wrong.value, wrong.n, wrong.groups, wrong.policy) == (2 / 7, 7, 4, "wrong")
    assert wrong.failed == excluded.failed == 1
    assert wrong.missing == excluded.missing == 1
    assert wrong.answered == excluded.answered == 5


def test_without_a_policy_an_incomplete_run_has_a_range_and_an_interval_that_holds_both(store: Store) -> None:
    both, excluded, wrong = numbers(store, None)[0], numbers(store)[0], numbers(store, FailedPolicy.WRONG)[0]
    assert (both.policy, both.value, both.n) == (BOTH, None, 7)
    assert (both.if_wrong, both.if_excluded) == (wrong.value, excluded.value) == (2 / 7, 2 / 5)
    assert (both.ci_low, both.ci_high) == (
        min(wrong.ci_low or 0, excluded.ci_low or 0),
        max(wrong.ci_high or 1, excluded.ci_high or 1),
    )


def test_a_metric_that_nothing_is_lacking_from_has_one_value_under_any_policy(store: Store) -> None:
    rows = [numbers(store, policy, by=("duration", "skills")) for policy in (None, *FailedPolicy)]
    whole = {(row.facets["duration"], row.facets["skills"]): row for row in rows[0] if not row.policy}
    assert {("5–10 s", "eyes"), ("10–20 s", "eyes")} <= whole.keys()
    for found in rows[1:]:
        same = {(row.facets["duration"], row.facets["skills"]): row for row in found}
        assert all(same[key] == row for key, row in whole.items())


def test_a_lower_is_better_metric_takes_its_high_end_for_failed(tmp_path: Path) -> None:
    error = Metric("error", "Error", high=10.0, higher_is_better=False, formats=("count",))
    one = ledger_benchmark()
    benchmark = Benchmark(
        name="ledger", title="Ledger", items=one.items, metrics=(error,), headline="error", facets=one.facets
    )
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(benchmark)
    run = store.start_run("ledger", "one", "video", {})
    store.write(
        run,
        [
            (Answer(item_id="q0", text="2", parsed=2), [Score(item_id="q0", metric="error", value=1.0)]),
            (Answer(item_id="q2", status=Status.FAILED, reason="HTTP 500"), []),
        ],
    )
    assert [row.value for row in numbers(store)] == [1.0]
    assert [row.value for row in numbers(store, FailedPolicy.WRONG)] == [(1.0 + 6 * 10.0) / 7]


def test_an_item_with_several_values_counts_in_each_and_one_without_in_none(store: Store) -> None:
    rows = [row for row in numbers(store, by=("skills",)) if row.metric == "accuracy"]
    found = {row.facets["skills"]: row for row in rows}
    assert list(found) == ["eyes", "hands"]
    eyes, hands = found["eyes"], found["hands"]
    assert (eyes.value, eyes.n, eyes.groups, eyes.failed, eyes.missing) == (2 / 3, 3, 3, 0, 0)
    assert (hands.value, hands.n, hands.groups, hands.failed, hands.missing) == (1 / 2, 2, 1, 1, 1)


def test_two_facets_give_all_combinations_in_natural_order(store: Store) -> None:
    rows = [row for row in numbers(store, by=("duration", "skills")) if row.metric == "accuracy"]
    assert [(row.facets, row.value, row.n, row.failed, row.missing) for row in rows] == [
        ({"duration": "5–10 s", "skills": "eyes"}, 1.0, 2, 0, 0),
        ({"duration": "5–10 s", "skills": "hands"}, 1.0, 1, 0, 1),
        ({"duration": "10–20 s", "skills": "eyes"}, 0.0, 1, 0, 0),
        ({"duration": "10–20 s", "skills": "hands"}, 0.0, 1, 1, 0),
    ]


def test_format_and_group_are_facets_too(store: Store) -> None:
    by_format = numbers(store, by=("format",))
    assert [(row.metric, row.facets["format"], row.n) for row in by_format] == [
        ("accuracy", "count", 5),
        ("points", "free_text", 1),
    ]
    groups = [row for row in numbers(store, by=("group",)) if row.metric == "accuracy"]
    assert [(row.facets["group"], row.value, row.ci_low) for row in groups] == [
        ("v0", 0.5, None),
        ("v1", 1.0, None),
        ("v2", 0.0, None),
        ("v4", None, None),  # its question was not asked
    ]


def test_an_unknown_facet_system_or_condition_is_told_what_there_is(store: Store) -> None:
    known = "duration, format, group, kind, skills"
    with pytest.raises(InputError, match=f"found no facet 'kin', expected one of {known}"):
        numbers(store, by=("kin",))
    with pytest.raises(InputError, match="found no run with the system 'two', expected one of one"):
        numbers(store, systems=("two",))
    with pytest.raises(InputError, match="found no run with the condition 'black', expected one of video"):
        numbers(store, conditions=("black",))


def test_where_every_answer_failed_the_headline_stands_there_without_a_value(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(ledger_benchmark())
    run = store.start_run("ledger", "one", "video", {})
    store.write(run, [(Answer(item_id="q0", status=Status.FAILED, reason="HTTP 500"), [])])
    (row,) = numbers(store)
    assert (row.metric, row.value, row.ci_low, row.n, row.failed, row.missing) == (
        "accuracy", None, None, 0, 1, 6,
    )  # fmt: skip
    (row,) = numbers(store, FailedPolicy.WRONG)
    assert (row.value, row.n, row.failed) == (0.0, 7, 1)
    (row,) = numbers(store, None)
    assert (row.value, row.if_wrong, row.if_excluded, row.policy) == (None, 0.0, None, BOTH)


def test_postgresql_gives_the_same_numbers(store: Store, postgres_url: str) -> None:
    other = fill_ledger(postgres_url)
    for by in ((), ("skills",), ("duration", "skills")):
        assert numbers(other, by=by) == numbers(store, by=by)
    other.close()


def shown(store: Store, *more: str) -> Any:
    return proctor("results", "ledger", "--store", store.shown, "--draws", "200", *more)


def test_json_keeps_the_contract(store: Store) -> None:
    done = shown(store, "--by", "kind,skills", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "NaN" not in done.stdout
    rows = json.loads(done.stdout)
    drawn = {"settings": {"draws": 200, "seed": 0, "two_level": False}}
    assert rows == [row.to_json() | drawn for row in numbers(store, None, by=("kind", "skills"))]
    for row in rows:
        assert row.keys() >= CONTRACT.keys()
        for key, kind in CONTRACT.items():
            optional = key in {"value", "ci_low", "ci_high"}
            assert type(row[key]) is kind or (optional and row[key] is None), (key, row[key])
        assert row["facets"].keys() == {"kind", "skills"}
        assert all(isinstance(value, str) for value in row["facets"].values())
        assert all(math.isfinite(row[key]) for key in ("value", "ci_low", "ci_high") if row[key] is not None)


@pytest.mark.parametrize(
    ("policy", "value", "words"),
    [
        ("exclude", "40.0 %", "items that failed, were not asked or have no verdict are left out of the run's own"),
        ("wrong", "28.6 %", "items that failed, were not asked or have no verdict count as wrong"),
    ],
)
def test_the_policy_is_printed(policy: str, value: str, words: str, store: Store) -> None:
    done = shown(store, "--failed", policy)
    assert done.returncode == 0, done.stderr
    assert value in done.stdout
    assert f"--failed {policy}: {words}" in done.stderr


def test_without_a_policy_the_range_is_printed_and_what_decides_it(store: Store) -> None:
    done = shown(store)
    assert done.returncode == 0, done.stderr
    assert "28.6 % … 40.0 %" in done.stdout
    assert "A counts missing items" in done.stderr
    assert "--failed wrong or exclude" in done.stderr


def test_a_benchmarks_own_rule_is_the_default_and_is_named_as_such(tmp_path: Path) -> None:
    strict = replace(ledger_benchmark(), failed=FailedPolicy.WRONG)
    done = shown(fill_ledger(tmp_path / "strict.db", strict))
    assert "28.6 %" in done.stdout
    assert "--failed wrong (the benchmark's rule): " in done.stderr


def test_csv_says_the_same(store: Store) -> None:
    done = shown(store, "--by", "skills", "--format", "csv")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    expected = numbers(store, None, by=("skills",))
    assert [(row["metric"], row["skills"], row["value"], int(row["n"])) for row in rows] == [
        (row.metric, row.facets["skills"], "" if row.value is None else str(row.value), row.n) for row in expected
    ]
    assert "" in {row["value"] for row in rows}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_runs_that_are_read_ahead_come_in_order_with_their_own_scores(tmp_path: Path, count: int) -> None:
    store, benchmark = Store(tmp_path / "runs.db"), a_benchmark(7)
    store.add_benchmark(benchmark)
    for number in range(count):
        scores = [
            (an_answer(item.id), [Score(item_id=item.id, metric="m", value=float(number))]) for item in benchmark.items
        ]
        store.write(a_run(store, benchmark, f"system {number}"), scores[: number + 1])
    card, runs = store.card("toy"), store.runs("toy")
    items = load_items(store, card)
    found = list(each_run_scores(store, runs, items, card))
    assert [run for run, _ in found] == runs
    assert [[np.nansum(one.scores) for one in parts] for _, parts in found] == [
        [number * (number + 1.0)] for number in range(count)
    ]


def test_a_damaged_run_among_others_is_told_when_its_turn_comes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    card, runs = store.card("ledger"), store.runs("ledger") * 5
    items, right, seen = load_items(store, card), run_scores.load_run_scores, iter(range(5))

    def load(*arguments: Any, **options: Any) -> list[run_scores.RunScores]:
        if next(seen) == 3:
            raise InputError(store.shown, found="a damaged row", expected="another")
        return right(*arguments, **options)

    monkeypatch.setattr(run_scores, "load_run_scores", load)
    monkeypatch.setattr(run_scores, "_AHEAD", 1)
    reading = each_run_scores(store, runs, items, card)
    assert [next(reading)[0] for _ in range(3)] == runs[:3]
    with pytest.raises(InputError, match="a damaged row"):
        next(reading)


def test_a_part_that_an_incomplete_run_was_not_asked_has_a_row(tmp_path: Path) -> None:
    store = contest_store(tmp_path, 24, 6, failed=None)
    write_run(store, "whole", [True] * 24)
    write_run(store, "half", [None if number % 2 else True for number in range(24)])  # no hard question
    options = Options(by=("level",), draws=100)
    rows = {(row.system, row.facets["level"]): row for row in results(store, "contest", options).rows}
    assert set(rows) == {(system, level) for system in ("whole", "half") for level in ("easy", "hard")}
    lost = rows["half", "hard"]
    assert (lost.missing, lost.answered, lost.value, lost.if_wrong, lost.if_excluded) == (12, 0, None, 0.0, None)
    wrong = results(store, "contest", replace(options, failed=FailedPolicy.WRONG)).rows
    assert [row.value for row in wrong if row.system == "half"] == [1.0, 0.0]


def test_items_without_a_value_of_the_facet_are_counted(tmp_path: Path) -> None:
    store = contest_store(tmp_path, 24, 6, odd_tags={3: None, 4: None, 5: ("easy", "hard")})
    write_run(store, "first", [True] * 24)
    write_run(store, "second", [False] * 24)
    split, whole = Options(by=("level",), draws=100), Options(draws=100)
    assert [results(store, "contest", one).outside for one in (split, whole)] == [2, 0]
    assert [compare(store, "contest", one).outside for one in (split, whole)] == [2, 0]
    said = "In no row: 2 items without a value of level."
    for command in ("results", "compare", "show"):
        assert said in proctor(command, "contest", "--store", tmp_path / "contest.db", "--by", "level").stderr, command
        assert said not in proctor(command, "contest", "--store", tmp_path / "contest.db").stderr, command
