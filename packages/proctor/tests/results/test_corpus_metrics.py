"""Metrics over many items in results, comparisons and ranks, held against scikit-learn and against exchanges by
hand."""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import JsonValue
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef, precision_score

import proctor
from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, InputError, Item, Reference, Status
from proctor.core.formats import BinaryFormat, ChoiceFormat, ClassesFormat, CountFormat
from proctor.results import Options, compare, leaderboard, results
from proctor.runs import Store
from proctor.stats import holm
from tests.support.program import within

CLASSES = ("clip", "grasper", "mesh")
FAST = Options(draws=100)


def drawn(kind: str, rng: np.random.Generator) -> Any:
    if kind == "classes":
        return [name for name in CLASSES if rng.random() < 0.4]
    return {"binary": bool(rng.random() < 0.3), "count": int(rng.integers(5)), "choice": "ABC"[int(rng.integers(3))]}[
        kind
    ]


FORMATS: dict[str, Any] = {
    "classes": ClassesFormat(classes=CLASSES),
    "binary": BinaryFormat(),
    "count": CountFormat(),
    "choice": ChoiceFormat(),
}


def items_of(kind: str, truth: list[Any]) -> tuple[Item, ...]:
    return tuple(
        Item(
            id=f"{kind}{number}",
            group=f"v{number % 8}",
            question="What?",
            options=("one", "two", "three") if kind == "choice" else (),
            answer=FORMATS[kind],
            reference=Reference(answer=value),
            tags={"half": "first" if number % 2 else "second"},
        )
        for number, value in enumerate(truth)
    )


def stored(path: Path, items: tuple[Item, ...], said: dict[str, list[JsonValue]]) -> Store:
    """Answers of systems; None is one that can't be read."""
    store = Store(path / "runs.db")
    store.add_benchmark(Benchmark("bench", "Bench", items, (ACCURACY,), "accuracy", facets=("half",)))
    for system, values in said.items():
        answers = [
            Answer(item_id=item.id, text=str(value), parsed=value, problem="" if value is not None else "nothing")
            for item, value in zip(items, values, strict=True)
        ]
        store.write(store.start_run("bench", system, "video", {}), [(answer, []) for answer in answers])
    return store


def fuzzed(kind: str, seed: int, count: int = 48, systems: int = 3) -> tuple[list[Any], dict[str, list[Any]]]:
    rng = np.random.default_rng(seed)
    truth = [drawn(kind, rng) for _ in range(count)]
    said = {
        f"s{number}": [
            None if rng.random() < 0.1 else one if rng.random() < 0.4 + 0.1 * number else drawn(kind, rng)
            for one in truth
        ]
        for number in range(systems)
    }
    return truth, said


def values(store: Store, *metrics: str, **more: Any) -> dict[tuple[str, ...], float | None]:
    found = results(store, "bench", Options(draws=100, metrics=metrics, **more)).rows
    return {(row.system, row.metric, *row.facets.values()): row.value for row in found}


@pytest.mark.filterwarnings("ignore")  # a class that nobody names
@pytest.mark.parametrize(("kind", "seed"), list(product(("binary", "choice"), range(3))))
def test_nominal_metrics_are_those_of_scikit_learn(tmp_path: Path, kind: str, seed: int) -> None:
    truth, said = fuzzed(kind, seed)
    found = values(stored(tmp_path, items_of(kind, truth), said), "mcc", "balanced_accuracy", by=("half",))
    for (name, one), half in product(said.items(), ("first", "second")):
        rows = range(1 if half == "first" else 0, len(truth), 2)
        real, given = [str(truth[row]) for row in rows], [str(one[row]) for row in rows]  # "None": a class of its own
        assert found[name, "mcc", half] == pytest.approx(matthews_corrcoef(real, given))
        assert found[name, "balanced_accuracy", half] == pytest.approx(balanced_accuracy_score(real, given))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_metrics_of_classes_are_those_of_scikit_learn(tmp_path: Path, seed: int) -> None:
    truth, said = fuzzed("classes", seed)
    store = stored(tmp_path, items_of("classes", truth), said)
    found = values(store, "class_f1", "class_precision:mesh")
    assert {metric for _, metric in found} == {*(f"class_f1:{name}" for name in CLASSES), "class_precision:mesh"}
    for (name, one), own in product(said.items(), CLASSES):
        real, given = [own in row for row in truth], [own in (row or ()) for row in one]
        assert found[name, f"class_f1:{own}"] == pytest.approx(f1_score(real, given))
        if own == "mesh":
            assert found[name, "class_precision:mesh"] == pytest.approx(precision_score(real, given))


@pytest.mark.parametrize("seed", range(2))
def test_paired_differences_are_exchanges_of_whole_groups(tmp_path: Path, seed: int) -> None:
    """p by hand: of all exchanges within groups, the share whose difference of F1 is at least as large."""
    truth, said = fuzzed("classes", seed, count=32, systems=2)
    store = stored(tmp_path, items_of("classes", truth), said)

    def f1(given: list[Any]) -> float:
        both = [("clip" in one, "clip" in (said or ())) for one, said in zip(truth, given, strict=True)]
        return 2 * both.count((True, True)) / (2 * both.count((True, True)) + sum(a != b for a, b in both))

    (one,) = compare(store, "bench", FAST, metrics=["class_f1:clip"]).comparisons
    observed = f1(said["s0"]) - f1(said["s1"])
    assert one.difference.value == pytest.approx(observed)
    assert one.difference.ci_low is not None
    assert one.difference.ci_high is not None
    assert one.difference.ci_low <= observed <= one.difference.ci_high
    large = 0
    for swap in product((False, True), repeat=8):
        first = [said["s1" if swap[row % 8] else "s0"][row] for row in range(len(truth))]
        second = [said["s0" if swap[row % 8] else "s1"][row] for row in range(len(truth))]
        large += abs(f1(first) - f1(second)) >= abs(observed) - 1e-12
    assert one.difference.p == pytest.approx(large / 2**8)
    (other,) = compare(store, "bench", Options(draws=100, systems=("s1", "s0")), metrics=["class_f1:clip"]).comparisons
    known: Any = one.difference
    assert (other.difference.value, other.difference.p) == (-known.value, known.p)
    assert (other.difference.ci_low, other.difference.ci_high) == (-known.ci_high, -known.ci_low)
    assert (one.only_first, one.only_second, one.table) == (0, 0, None)


def test_ranks_follow_the_metric_and_its_tests(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    truth = [bool(rng.random() < 0.2) for _ in range(160)]
    good = [one if rng.random() < 0.95 else not one for one in truth]
    said: dict[str, Any] = {"constant": [False] * 160, "good": good, "twin": [*good[:-1], not good[-1]]}
    store = stored(tmp_path, items_of("binary", truth), said)
    board = leaderboard(store, "bench", condition="video", metric="balanced_accuracy", options=Options(draws=200))
    assert board.items == 160
    assert [(row.system, row.rank) for row in board.rows if row.system == "constant"] == [("constant", 3)]
    assert {row.rank for row in board.rows if row.system != "constant"} == {1}
    for row in board.rows:
        assert row.value == pytest.approx(balanced_accuracy_score(truth, said[row.system]))
    pairs = compare(store, "bench", Options(draws=200), metrics=["balanced_accuracy"]).comparisons
    assert [one.p_holm for one in pairs] == pytest.approx(holm([one.difference.p or 0 for one in pairs]).tolist())
    shown = proctor.leaderboard(store, "bench", "balanced_accuracy", draws=200)
    assert shown.to_pandas()["system"].tolist() == [row.system for row in board.rows]
    assert "Balanced accuracy under video, 160 items" in shown.title
    # The constant is as often right as not wrong: accuracy alone would hide that it never looks.
    assert next(row for row in board.rows if row.system == "constant").value == 0.5


def test_what_a_run_lacks_counts_by_the_policy(tmp_path: Path) -> None:
    truth = [0, 1, 2, 3, 4, 4, 2, 1]
    items = items_of("count", truth)
    store = stored(tmp_path, items, {"whole": list(truth)})
    run = store.start_run("bench", "cut", "video", {})
    failed = Answer(item_id=items[0].id, status=Status.FAILED, reason="no network")
    given = [Answer(item_id=item.id, text=str(value), parsed=value) for item, value in zip(items, truth, strict=True)]
    store.write(run, [(answer, []) for answer in (failed, *given[1:7])])

    def row(policy: FailedPolicy | None) -> Any:
        asked = Options(draws=100, metrics=("absolute_error",), failed=policy, systems=("cut",))
        return next(one for one in results(store, "bench", asked).rows if one.metric == "absolute_error")

    # The two lacking ones are as far off as a reference can be: 4 from 0 and 3 from 1.
    assert (row(FailedPolicy.WRONG).value, row(FailedPolicy.WRONG).n) == (7 / 8, 8)
    assert (row(FailedPolicy.EXCLUDE).value, row(FailedPolicy.EXCLUDE).n) == (0, 6)
    both = row(None)
    assert (both.value, both.if_wrong, both.if_excluded, both.policy) == (None, 7 / 8, 0, "both")
    assert (both.failed, both.missing, both.answered) == (1, 1, 6)
    board = leaderboard(store, "bench", condition="video", metric="absolute_error", options=FAST)
    assert {one.system: one.rank for one in board.rows} == {"whole": 1, "cut": 1}


def test_metrics_are_named_and_told(tmp_path: Path) -> None:
    """Not shown unasked; by their names and those of their parts; formats that share one are kept apart."""
    truth, said = fuzzed("binary", 1, count=16, systems=2)
    other, more = fuzzed("choice", 1, count=16, systems=2)
    items = (*items_of("binary", truth), *items_of("choice", other))
    store = stored(tmp_path, items, {name: [*said[name], *more[name]] for name in said})
    assert {metric for _, metric in values(store)} == {"accuracy"}
    assert {metric for _, metric in values(store, "mcc")} == {"mcc:binary", "mcc:choice"}
    assert {metric for _, metric in values(store, "mcc:choice")} == {"mcc:choice"}
    message = r"no metric 'mmc', expected one of .*balanced_accuracy, mcc; did you mean 'mcc'"
    with pytest.raises(InputError, match=message):
        values(store, "mmc")
    with pytest.raises(InputError, match=message):
        compare(store, "bench", FAST, metrics=["mmc"])
    with pytest.raises(InputError, match=r"metric mcc: found 2 parts, expected one of mcc:binary, mcc:choice"):
        leaderboard(store, "bench", condition="video", metric="mcc")
    with pytest.raises(InputError, match=message):
        leaderboard(store, "bench", condition="video", metric="mmc")


def test_the_commands_take_them(tmp_path: Path) -> None:
    truth, said = fuzzed("classes", 2)
    stored(tmp_path, items_of("classes", truth), said)
    common = ("bench", "--store", str(tmp_path / "runs.db"), "--draws", "100")
    code, printed = within("results", *common, "--metric", "jaccard")
    assert code == 0
    assert "Jaccard index" in printed
    code, printed = within("compare", *common, "--metric", "class_f1:clip", "--format", "json")
    assert [(one["metric"], one["n"]) for one in json.loads(printed)] == [("class_f1:clip", 48)] * 3
    code, printed = within("rank", *common, "--metric", "class_f1:clip", "--format", "json")
    rows = json.loads(printed)
    assert [row["value"] for row in rows] == sorted((row["value"] for row in rows), reverse=True)
    code, printed = within("rank", *common, "--metric", "class_f1:clip")
    assert "F1 of a class, clip under video, 48 items" in " ".join(printed.split())
    code, printed = within("rank", *common, "--metric", "jaccard", "--by", "half")
    assert code != 0
    assert "--metric ranks by all questions. Leave --by out." in printed


def test_every_pair_of_a_larger_field_has_its_own_numbers(tmp_path: Path) -> None:
    """What two systems differ by does not depend on the others, nor on the names of groups or the order of items."""
    truth, said = fuzzed("choice", 9, count=60, systems=4)
    items = items_of("choice", truth)
    whole = compare(stored(tmp_path, items, said), "bench", FAST, metrics=["mcc"]).comparisons
    order = np.random.default_rng(0).permutation(60)
    (tmp_path / "less").mkdir()
    renamed = tuple(items[row].model_copy(update={"group": f"w{7 - int(items[row].group[1:])}"}) for row in order)
    for first, second in combinations(said, 2):
        less = {name: [said[name][row] for row in order] for name in (first, second)}
        path = tmp_path / f"{first}{second}"
        path.mkdir()
        (one,) = compare(stored(path, renamed, less), "bench", FAST, metrics=["mcc"]).comparisons
        same = next(other for other in whole if (other.first.system, other.second.system) == (first, second))
        for name in ("value", "ci_low", "ci_high", "p"):
            assert getattr(one.difference, name) == pytest.approx(getattr(same.difference, name), abs=1e-12)
