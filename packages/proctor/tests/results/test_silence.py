"""Answers without a value in metrics over many items: what a run lacks is read as wrong as can be, and silence, which
does precision, F1 and Matthews' correlation less harm than a wrong answer, earns no rank. And questions on several
scales have a kappa each, of their own questions and groups."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, cohen_kappa_score, f1_score, matthews_corrcoef, precision_score

from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, Item, Reference, Status
from proctor.core.formats import BinaryFormat, BoxesFormat, ChoiceFormat, ClassesFormat, ScaleFormat, TimestampsFormat
from proctor.metrics import SILENCE_HELPS, item_sums
from proctor.results import Options, compare, leaderboard, results
from proctor.runs import Store
from proctor.stats import Resampling
from tests.support.program import proctor

CLASSES = ("clip", "grasper", "mesh")
FORMATS: dict[str, Any] = {
    "classes": ClassesFormat(classes=CLASSES),
    "binary": BinaryFormat(),
    "choice": ChoiceFormat(),
    "timestamps": TimestampsFormat(),
}
METRICS = {
    "classes": ("class_precision:clip", "class_f1:clip"),
    "binary": ("mcc",),
    "choice": ("mcc",),
    "timestamps": ("time_precision:5 s", "time_f1:5 s"),
}
CASES = [(kind, metric) for kind, metrics in METRICS.items() for metric in metrics]


def drawn(kind: str, rng: np.random.Generator) -> Any:
    match kind:
        case "classes":
            return [name for name in CLASSES if rng.random() < 0.4]
        case "binary":
            return bool(rng.random() < 0.4)
        case "choice":
            return "ABC"[int(rng.integers(3))]
    return sorted(float(one) for one in rng.integers(0, 900, size=rng.integers(1, 4)))


def worst(kind: str, truth: Any, commonest: list[Any]) -> Any:
    """The answer that is as wrong as can be."""
    match kind:
        case "classes":
            return [name for name in CLASSES if name not in truth]
        case "timestamps":
            return [5000.0 + 100 * row for row in range(len(truth))]
    return next(one for one in commonest if one != truth)


def stored(path: Path, items: list[Item], said: dict[str, list[Any]], facets: tuple[str, ...] = ()) -> Store:
    """A status instead of a value is how an answer ended that has none."""
    store = Store(path / "runs.db")
    store.add_benchmark(Benchmark("bench", "Bench", tuple(items), (ACCURACY,), "accuracy", facets=facets))
    for system, values in said.items():
        answers = [
            Answer(item_id=item.id, text="" if isinstance(one, Status) else str(one), status=one)
            if isinstance(one, Status)
            else Answer(item_id=item.id, text=str(one), parsed=one)
            for item, one in zip(items, values, strict=True)
        ]
        store.write(store.start_run("bench", system, "video", {}), [(answer, []) for answer in answers])
    return store


class Case:
    """An honest system, and one that is silent wherever it is wrong."""

    def __init__(self, kind: str, seed: int, path: Path, ended: Status, share: float = 0.4) -> None:
        rng = np.random.default_rng(seed)
        truth = [drawn(kind, rng) for _ in range(120)]
        counts = sorted(map(str, truth), key=lambda one: (-sum(str(other) == one for other in truth), one))
        known = {str(one): one for one in truth}
        commonest = [known[one] for one in dict.fromkeys(counts)]
        bad = rng.random(len(truth)) < share
        self.truth = truth
        self.honest = [worst(kind, one, commonest) if wrong else one for one, wrong in zip(truth, bad, strict=True)]
        self.silent = [ended if wrong else one for one, wrong in zip(truth, bad, strict=True)]
        options = ("one", "two", "three") if kind == "choice" else ()
        self.items = [
            Item(id=f"q{k}", group=f"v{k % 12}", question="?", options=options, answer=FORMATS[kind],
                 reference=Reference(answer=one))
            for k, one in enumerate(truth)
        ]  # fmt: skip
        self.store = stored(path, self.items, {"honest": self.honest, "silent": self.silent})


def row_of(store: Store, system: str, metric: str, **more: Any) -> Any:
    found = results(store, "bench", Options(draws=100, metrics=(metric,), **more)).rows
    return next(row for row in found if row.system == system)


@pytest.mark.parametrize(("kind", "metric"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_what_failed_is_at_its_worst_as_wrong_as_an_honest_answer(
    kind: str, metric: str, seed: int, tmp_path: Path
) -> None:
    case = Case(kind, seed, tmp_path, Status.FAILED)
    honest, silent = (row_of(case.store, name, metric) for name in ("honest", "silent"))
    assert silent.policy == "both"
    assert silent.if_wrong == pytest.approx(honest.value)
    assert silent.if_excluded == pytest.approx(1)
    wrong = row_of(case.store, "silent", metric, failed=FailedPolicy.WRONG)
    assert (wrong.value, wrong.ci_low, wrong.ci_high) == (honest.value, honest.ci_low, honest.ci_high)
    (pair,) = compare(case.store, "bench", Options(draws=100, failed=FailedPolicy.WRONG), metrics=[metric]).comparisons
    assert (pair.difference.value, pair.difference.p) == (0, 1)


SKLEARN: dict[str, Callable[[list[Any], list[Any]], float]] = {
    "class_precision:clip": lambda truth, said: precision_score(*named(truth, said)),
    "class_f1:clip": lambda truth, said: f1_score(*named(truth, said)),
    "mcc": lambda truth, said: matthews_corrcoef([*map(str, truth)], [*map(str, said)]),
}


def named(truth: list[Any], said: list[Any]) -> tuple[list[bool], list[bool]]:
    return ["clip" in one for one in truth], ["clip" in one for one in said]


@pytest.mark.parametrize("metric", SKLEARN)
@pytest.mark.parametrize("seed", range(3))
def test_the_worst_is_that_of_scikit_learn(metric: str, seed: int, tmp_path: Path) -> None:
    case = Case("binary" if metric == "mcc" else "classes", seed, tmp_path, Status.FAILED)
    expected = SKLEARN[metric](case.truth, case.honest)
    assert row_of(case.store, "silent", metric).if_wrong == pytest.approx(expected)


@pytest.mark.parametrize(("kind", "metric"), CASES)
@pytest.mark.parametrize("ended", [Status.REFUSED, Status.TIMED_OUT, Status.FAILED])
@pytest.mark.parametrize("failed", [None, FailedPolicy.WRONG])
def test_silence_earns_no_rank(
    kind: str, metric: str, ended: Status, failed: FailedPolicy | None, tmp_path: Path
) -> None:
    case = Case(kind, 5, tmp_path, ended)
    board = leaderboard(
        case.store, "bench", condition="video", metric=metric, options=Options(draws=100, failed=failed)
    )
    rows = {row.system: row for row in board.rows}
    if ended is Status.FAILED and failed:
        assert (rows["honest"].rank, rows["silent"].rank) == (1, 1)
        assert rows["silent"].value == rows["honest"].value
    else:
        assert (rows["honest"].rank, rows["silent"].rank) == (1, None)
        assert rows["silent"].doubtful == (0 if ended is Status.FAILED else case.silent.count(ended))


@pytest.mark.parametrize(("kind", "metric"), CASES)
def test_a_rank_that_silence_cannot_change_is_given(kind: str, metric: str, tmp_path: Path) -> None:
    """A system that is right but for two refusals, and one that is nearly always wrong."""
    case = Case(kind, 6, tmp_path / "a", Status.REFUSED, share=0.02)
    bad = Case(kind, 6, tmp_path / "b", Status.REFUSED, share=0.9)
    store = stored(tmp_path, case.items, {"good": case.silent, "bad": bad.honest})
    board = leaderboard(store, "bench", condition="video", metric=metric, options=Options(draws=100))
    assert [(row.system, row.rank) for row in board.rows] == [("good", 1), ("bad", 2)]
    assert 0 < board.rows[0].doubtful < 6


def test_metrics_that_silence_cannot_help_rank_as_before(tmp_path: Path) -> None:
    case = Case("binary", 7, tmp_path, Status.REFUSED)
    board = leaderboard(case.store, "bench", condition="video", metric="balanced_accuracy", options=Options(draws=100))
    assert [row.rank for row in board.rows] == [1, 1]
    assert all(row.doubtful == 0 for row in board.rows)


def test_the_shell_says_why_there_is_no_rank(tmp_path: Path) -> None:
    case = Case("classes", 8, tmp_path, Status.REFUSED)
    case.store.close()
    done = proctor("rank", "bench", "--store", tmp_path / "runs.db", "--metric", "class_f1:clip", "--draws", "100")
    assert done.returncode == 0, done.stderr
    last = done.stdout.rstrip().splitlines()[-1].split()
    assert (last[0], last[1], last[-3:]) == ("–", "silent", ["no", "value", str(case.silent.count(Status.REFUSED))])
    assert "has a rank only if reading them as wrong changes none" in " ".join(done.stderr.split())


def test_each_metric_that_silence_helps_is_tried() -> None:
    tried = {metric.partition(":")[0] for _, metric in CASES}
    assert tried | {"mean_average_precision"} == {one.name for one in SILENCE_HELPS}


def test_silence_in_average_precision() -> None:
    """One of two boxes is found; the other question is not answered, or answered wrongly."""
    form = BoxesFormat()
    items = [
        Item(id=name, group=name, question="?", answer=form, reference=Reference(answer=[[0.0, 0.0, 10.0, 10.0]]))
        for name in "ab"
    ]
    right: Any = [[0.0, 0.0, 10.0, 10.0]]
    plan = Resampling(draws=10)

    def value(said: list[Any], wrong: tuple[bool, ...] = ()) -> float | None:
        return item_sums(items, said, wrong)[1].estimate(["a", "b"], plan).estimate.value

    answered = value([right, [[50.0, 50.0, 60.0, 60.0]]])
    assert value([right, None]) == 0.5  # precision 1 up to recall ½
    assert value([right, None], (False, True)) == answered == 0.25  # precision ½ there
    assert average_precision_score([1, 0], [0.5, 0.5]) / 2 == answered  # one rank: one step


def scaled(seed: int) -> tuple[list[Item], dict[str, list[int]]]:
    """20 questions from 0 to 10 in two groups, 40 from 1 to 5 in six others."""
    rng = np.random.default_rng(seed)
    items, said = [], dict[str, list[int]](a=[], b=[])
    for k in range(60):
        low, high, name = (0, 10, "pain") if k % 3 == 0 else (1, 5, "quality")
        group = f"p{k % 2}" if k % 3 == 0 else f"v{k % 6}{k % 2}"
        truth = int(rng.integers(low, high + 1))
        items.append(
            Item(id=f"q{k}", group=group, question="?", answer=ScaleFormat(low=low, high=high),
                 reference=Reference(answer=truth), tags={"of": name})
        )  # fmt: skip
        for values in said.values():
            values.append(int(np.clip(truth + rng.integers(-2, 3), low, high)))
    return items, said


@pytest.mark.parametrize("seed", range(3))
def test_each_scale_has_its_own_questions_and_groups(seed: int, tmp_path: Path) -> None:
    items, said = scaled(seed)
    store = stored(tmp_path, items, said, facets=("of",))
    parts = {"pain": "weighted_kappa:0 to 10", "quality": "weighted_kappa:1 to 5"}
    for by in ((), ("of",)):
        found = results(store, "bench", Options(draws=100, metrics=("weighted_kappa",), by=by)).rows
        assert len(found) == 4
        pairs = compare(store, "bench", Options(draws=100, by=by), metrics=["weighted_kappa"]).comparisons
        assert [one.metric for one in pairs] == sorted(parts.values())
        for (system, values), (name, metric) in product(said.items(), parts.items()):
            rows = [k for k, item in enumerate(items) if item.tags["of"] == name]
            levels = range(11) if name == "pain" else range(1, 6)
            truth = [items[k].reference.answer for k in rows]  # type: ignore[union-attr]
            expected = cohen_kappa_score(truth, [values[k] for k in rows], labels=levels, weights="quadratic")
            (row,) = (one for one in found if (one.system, one.metric) == (system, metric))
            assert row.value == pytest.approx(expected)
            assert (row.n, row.groups) == (len(rows), len({items[k].group for k in rows}))
            (pair,) = (one for one in pairs if one.metric == metric)
            assert (pair.difference.n, pair.difference.groups) == (row.n, row.groups)
    alone = stored(tmp_path / "alone", [one for one in items if one.tags["of"] == "quality"],
                   {name: [value for item, value in zip(items, values, strict=True) if item.tags["of"] == "quality"]
                    for name, values in said.items()})  # fmt: skip
    both = [
        next(row for row in results(one, "bench", Options(draws=300, metrics=("weighted_kappa",))).rows
             if row.system == "a" and not row.metric.endswith("0 to 10"))
        for one in (store, alone)
    ]  # fmt: skip
    assert (both[0].value, both[0].ci_low, both[0].ci_high) == (both[1].value, both[1].ci_low, both[1].ci_high)
    board = leaderboard(store, "bench", condition="video", metric=parts["quality"], options=Options(draws=100))
    assert (board.items, [row.n for row in board.rows]) == (40, [40, 40])
