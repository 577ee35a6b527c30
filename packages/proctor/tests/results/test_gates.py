"""Gates of comparisons: strict words, exit codes, and the level that they state."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proctor
from proctor.core import ACCURACY, Metric, UsageError
from proctor.results import CompareExtras, Options, compare
from proctor.results.comparison import Comparison, Side
from proctor.results.gates import gate_result, read_gate
from proctor.runs import Store
from proctor.stats import Difference, Margin, MarginTest, Resampling, margin_test, paired_difference
from tests.support.contest import contest_store, skilled, write_run
from tests.support.program import proctor as command
from tests.support.simulation import assert_share, repetitions


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = contest_store(tmp_path_factory.mktemp("gates"))
    for number, (name, easy, hard) in enumerate([("good", 0.9, 0.8), ("twin", 0.9, 0.8), ("worst", 0.3, 0.1)]):
        write_run(made, name, skilled(easy, hard, seed=number))
    return made


def of(
    low: float | None, high: float | None, metric: Metric = ACCURACY, margin: MarginTest | None = None
) -> Comparison:
    """A comparison with this interval."""
    value = None if low is None or high is None else (low + high) / 2
    difference = Difference(value, low, high, None, n=100, groups=20, wins=0, losses=0, ties=100)
    sides = Side("a", "video"), Side("b", "video")
    counts: dict[str, Any] = {"other_levels": 0, "other_outcomes": (), "counted_wrong": 0}
    counts |= {"only_first": 0, "only_second": 0, "policy": "", "if_wrong": difference, "if_excluded": difference}
    return Comparison(metric.name, "code", *sides, difference, (), None, **counts, declared=metric, margin=margin)


@pytest.mark.parametrize(
    ("text", "low", "high", "verdict"),
    [
        ("better", 0.001, 0.2, "holds"),
        ("better", 0.0, 0.2, "undecided"),
        ("better", -0.2, -0.001, "does not hold"),
        ("better than 1", 0.011, 0.2, "holds"),
        ("better than 1", 0.009, 0.2, "undecided"),
        ("better than 1", -0.2, 0.009, "does not hold"),
        ("better", None, None, "undecided"),
    ],
)
def test_a_gate_is_read_from_the_interval(text: str, low: float | None, high: float | None, verdict: str) -> None:
    gate = read_gate(text)
    assert gate is not None
    assert gate.judged(of(low, high)) == verdict


def test_lower_is_better_turns_the_gate_and_the_unit_is_the_metrics() -> None:
    error = Metric("error", "Error", 0, 10, higher_is_better=False)
    gate = read_gate("better than 1")
    assert gate is not None
    assert gate.judged(of(-3.0, -1.5, error)) == "holds"
    assert gate.judged(of(1.5, 3.0, error)) == "does not hold"


@pytest.mark.parametrize(("finding", "verdict"), [("not worse", 0), ("worse", 1), ("undecided", 2)])
def test_not_worse_is_what_the_margin_finds(finding: Any, verdict: int) -> None:
    gate = read_gate("not worse than 2")
    assert gate is not None
    found = gate_result(gate, [of(-1.0, 1.0, margin=MarginTest(Margin(0.02), 0.025, finding, None))])
    assert (found.exit_code, found.alpha) == (verdict, 0.025)
    assert gate.judged(of(0.5, 1.0)) == "undecided"  # the margin is none of this metric


def test_all_must_hold_and_one_that_does_not_decides() -> None:
    gate = read_gate("better")
    assert gate is not None
    holds, fails, open_ = of(0.1, 0.2), of(-0.2, -0.1), of(-0.1, 0.1)
    assert gate_result(gate, [holds, holds]).verdict == "holds"
    assert gate_result(gate, [holds, open_]).verdict == "undecided"
    assert gate_result(gate, [open_, fails]).verdict == "does not hold"
    assert gate_result(gate, []).verdict == "undecided"
    assert gate_result(gate, [replace(open_, difference=replace(open_.difference, groups=5))]).findings == (
        "Accuracy, a / video against b / video: undecided (5 groups decide nothing)",
    )


@pytest.mark.parametrize(
    "text",
    ["not worse", "not worse than", "not worse than 0", "not worse than -2", "better than", "better than 0", "worse", "Better",
     "better 2", "better than 1e3", "better than nan", "not worse than 2 points", "better;", "better than ٣", "equal"],
)  # fmt: skip
def test_other_words_are_refused(store: Store, text: str) -> None:
    with pytest.raises(UsageError, match="write 'not worse than POINTS', 'better', or 'better than POINTS'"):
        proctor.compare(store, "contest", systems=("good", "twin"), gate=text)


def test_a_gate_beside_a_margin_or_out_of_reach_is_refused(store: Store) -> None:
    name, options = store.benchmark_names()[0], Options(systems=("good", "twin"))
    for more in (CompareExtras(margin=2, gate="better"), CompareExtras(equivalence=True, gate="better")):
        with pytest.raises(UsageError, match="--gate states its own margin"):
            compare(store, name, options, asked=more)
    with pytest.raises(UsageError, match="can never hold: give less than 100"):
        compare(store, name, options, asked=CompareExtras(gate="better than 100"))


def run(store: Store, gate: str, first: str, second: str, *more: str) -> Any:
    named = ("--system", first, "--system", second)
    return command("compare", store.benchmark_names()[0], "--store", store.shown, *named, "--gate", gate, *more)


@pytest.mark.parametrize(
    ("gate", "first", "second", "code"),
    [
        ("not worse than 20", "good", "twin", 0),
        ("better than 20", "good", "worst", 0),
        ("not worse than 3", "worst", "good", 1),
        ("better", "worst", "good", 1),
        ("better than 1", "good", "twin", 2),
    ],
)
def test_the_exit_code_is_the_answer(store: Store, gate: str, first: str, second: str, code: int) -> None:
    done = run(store, gate, first, second)
    assert done.returncode == code, done.stderr
    said = {0: "holds", 1: "does not hold", 2: "undecided"}[code]
    assert f"Gate “{gate}”: {said}, one-sided at 0.025" in done.stdout
    found = proctor.compare(store, store.benchmark_names()[0], systems=(first, second), gate=gate).data
    assert found.gate is not None
    assert (found.gate.exit_code, {one.metric for one in found.comparisons}) == (code, {"accuracy"})
    last = json.loads(run(store, gate, first, second, "--format", "json").stdout)[-1]["gate"]
    assert (last["exit_code"], last["verdict"], last["comparisons"]) == (code, said, 1)


def test_no_error_reads_as_a_gate_that_does_not_hold(store: Store, tmp_path: Path, monkeypatch: Any) -> None:
    wrong = command("compare", "x", "--store", str(tmp_path / "none.db"), "--gate", "better")
    assert (wrong.returncode, "no such file" in wrong.stderr) == (2, True)
    assert command("compare", "x", "--store", str(tmp_path / "none.db")).returncode == 1
    assert run(store, "better", "good", "nobody").returncode == 2

    def broken(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("proctor.api.compare", broken)
    bug = run(store, "better", "good", "twin")
    assert (bug.returncode, "KeyError: 'a bug'" in bug.stderr) == (2, True)


@pytest.mark.simulation
@pytest.mark.parametrize("groups", [6, 20, 60])
@pytest.mark.parametrize("text", ["not worse than 10", "better", "better than 10"])
def test_the_level_of_a_gate_at_its_margin(groups: int, text: str) -> None:
    """Studies of groups whose questions share a difficulty, with a true difference exactly at the gate's margin."""
    gate = read_gate(text)
    assert gate is not None
    least, runs, held = gate.least / 100, repetitions(2000), 0
    rng = np.random.default_rng([groups, round(100 + gate.least)])
    for _ in range(runs):
        codes = np.repeat(np.arange(groups), 5)
        skill = 0.15 + 0.7 * rng.beta(2, 2, groups)[codes]  # of the second; between 0.15 and 0.85
        a, b = rng.random(len(codes)) < skill + least, rng.random(len(codes)) < skill

        def interval(level: float, a: Any = a, b: Any = b, codes: Any = codes) -> Difference:
            return paired_difference(a, b, codes, Resampling(draws=400, level=level, bounds=(0, 1)))

        shown = interval(0.95)
        one = of(shown.ci_low, shown.ci_high)
        if gate.margin:
            finding = margin_test(Margin(gate.margin / 100), interval).finding
            one = replace(one, margin=MarginTest(Margin(gate.margin / 100), 0.025, finding, None))
        held += gate.judged(one) == "holds"
    assert_share(held, runs, 0.0, 0.05)
