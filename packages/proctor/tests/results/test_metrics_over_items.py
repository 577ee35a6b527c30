"""Metrics over many items of other packages: as a plain function and as sums, in results, comparisons and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import JsonValue
from sklearn.metrics import f1_score

import proctor
from proctor import ConfigurationError, InputError, ProctorError
from proctor.core import Item, Metric
from proctor.metrics import OVER_ITEMS, SCORERS, ItemSums
from proctor.results import Options, compare, leaderboard, results
from proctor.runs import Store
from proctor.stats import Resampling
from tests.results.test_corpus_metrics import FAST, fuzzed, items_of, stored


def macro(references: Sequence[str], answers: Sequence[str | None]) -> float:
    known = sorted(set(references))
    given = [answer or "" for answer in answers]
    return float(f1_score(references, given, labels=known, average="macro", zero_division=0))


@proctor.metric(over="items", formats=["choice"], percent=True, label="Macro-F1")
def macro_f1(references: Sequence[str], answers: Sequence[str | None]) -> float:
    """The mean F1 of the classes of the references."""
    return macro(references, answers)


@proctor.metric(over="items", formats=["choice"], percent=True)
def balanced(references: list[str], answers: list[str | None]) -> float:
    """Balanced accuracy, which Proctor has itself."""
    recalls = []
    for name in set(references):
        own = [answer == name for reference, answer in zip(references, answers, strict=True) if reference == name]
        recalls.append(sum(own) / len(own))
    return sum(recalls) / len(recalls)


@proctor.metric(over="items", formats=["choice"])
def too_high(references: list[str], answers: list[str | None]) -> float:
    """Out of its range."""
    return float(len(references) + len(answers))


@proctor.metric(over="items", formats=["choice"])
def breaks(references: list[str], answers: list[str | None]) -> float:
    """Raises."""
    raise ValueError(f"no table for {len(references) - len(answers)}")


class ShareOfA:
    """How often an answer is "A"; sums of its own."""

    metric = Metric("share_of_a", 'Share of "A"', percent=True, formats=("choice",))
    silence_helps = True
    shift = 0

    def sums(self, items: Sequence[Item], answers: Sequence[JsonValue], wrong: Sequence[bool]) -> list[ItemSums]:
        columns = np.array([[answer == "A", 1] for answer in answers][self.shift :], dtype=np.float64)
        return [ItemSums(self.metric, columns, lambda sums: sums[:, 0] / sums[:, 1])]


class TooShort(ShareOfA):
    """Sums of fewer items."""

    metric = Metric("too_short", "Too short", formats=("choice",))
    shift = 1


class Misnamed(ShareOfA):
    """Another name than its entry point."""


@pytest.fixture(autouse=True)
def _offered(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"macro_f1": "macro_f1", "balanced": "balanced", "too_high": "too_high", "breaks": "breaks"}
    named |= {"share_of_a": "ShareOfA", "too_short": "TooShort", "misnamed": "Misnamed"}
    points = {}
    for name, attribute in named.items():
        points[name] = EntryPoint(name, f"{__name__}:{attribute}", OVER_ITEMS.group)
        vars(points[name])["dist"] = SimpleNamespace(name="clinic")
    monkeypatch.setattr(OVER_ITEMS, "_offered", points)
    monkeypatch.setattr(OVER_ITEMS, "_known", dict(vars(OVER_ITEMS)["_known"]))


@pytest.fixture
def truth() -> list[Any]:
    return fuzzed("choice", 3)[0]


@pytest.fixture
def said() -> dict[str, list[Any]]:
    return fuzzed("choice", 3)[1]


@pytest.fixture
def store(tmp_path: Path, truth: list[Any], said: dict[str, list[Any]]) -> Store:
    return stored(tmp_path, items_of("choice", truth), said)


def rows_of(store: Store, metric: str, **more: Any) -> list[Any]:
    return list(results(store, "bench", Options(metrics=(metric,), draws=FAST.draws, **more)).rows)


def test_macro_f1_is_that_of_scikit_learn_with_an_interval(
    store: Store, truth: list[Any], said: dict[str, list[Any]]
) -> None:
    rows = rows_of(store, "macro_f1")
    assert [row.system for row in rows] == list(said)
    for row in rows:
        assert row.value == pytest.approx(macro(truth, said[row.system]), abs=1e-12)
        assert row.ci_low < row.value < row.ci_high
        assert (row.n, row.groups) == (48, 8)


def test_a_function_has_the_interval_and_tests_of_the_same_metric_from_sums(store: Store) -> None:
    ours, theirs = rows_of(store, "balanced_accuracy"), rows_of(store, "balanced")
    for one, other in zip(ours, theirs, strict=True):
        assert other.value == pytest.approx(one.value, abs=1e-12)
    found = [compare(store, "bench", FAST, metrics=[name]).comparisons for name in ("balanced_accuracy", "balanced")]
    for first, second in zip(*found, strict=True):
        assert second.difference.value == pytest.approx(first.difference.value, abs=1e-12)
        assert second.difference.p == first.difference.p


def test_it_is_split_by_facets(store: Store, truth: list[Any], said: dict[str, list[Any]]) -> None:
    rows = {(row.system, row.facets["half"]): row.value for row in rows_of(store, "macro_f1", by=("half",))}
    assert rows["s0", "second"] == pytest.approx(macro(truth[::2], said["s0"][::2]), abs=1e-12)
    assert rows["s0", "first"] == pytest.approx(macro(truth[1::2], said["s0"][1::2]), abs=1e-12)


def test_it_ranks_systems(store: Store) -> None:
    board = leaderboard(store, "bench", condition="video", metric="balanced", options=FAST)
    known = leaderboard(store, "bench", condition="video", metric="balanced_accuracy", options=FAST)
    assert [(row.system, row.rank) for row in board.rows] == [(row.system, row.rank) for row in known.rows]
    assert len(board.rows) == 3


def test_sums_of_another_package_are_shown(store: Store, said: dict[str, list[Any]]) -> None:
    for row in rows_of(store, "share_of_a"):
        assert row.value == pytest.approx(said[row.system].count("A") / 48, abs=1e-12)
        assert row.ci_low < row.ci_high


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("too_high", "expected 0 to 1 (or declare low and high)"),
        ("breaks", "ValueError: no table for 0 (test_metrics_over_items.py, line "),
        ("too_short", "found sums of shape (47, 2), expected 48 items × columns"),
        ("misnamed", f"of clinic ({__name__}:Misnamed): found the name 'share_of_a'"),
    ],
)
def test_a_wrong_metric_is_one_line(store: Store, name: str, told: str) -> None:
    with pytest.raises(ProctorError) as error:
        rows_of(store, name)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert rows_of(store, "balanced_accuracy")  # others are not stopped by it


def test_a_function_of_a_notebook_or_a_file_is_shown(store: Store, truth: list[Any], tmp_path: Path) -> None:
    @proctor.metric(over="items", formats=["choice"], percent=True)
    def said_a(references: list[str], answers: list[str | None]) -> float:
        return answers.count("A") / len(references)

    file = tmp_path / "mine.py"
    file.write_text(
        "import proctor\n@proctor.metric(over='items', formats=['choice'])\n"
        "def share_of_b(references, answers):\n    return references.count('B') / len(answers)\n",
        "utf-8",
    )
    expected = {row.system: row.value for row in rows_of(store, "share_of_a")}
    shown = proctor.results(store, metrics=[said_a, f"{file}:share_of_b"], draws=100)
    assert {row["system"]: row["value"] for row in shown if row["metric"] == "said_a"} == pytest.approx(expected)
    assert {row["value"] for row in shown if row["metric"] == "share_of_b"} == {truth.count("B") / 48}
    board = proctor.leaderboard(store, "bench", said_a, draws=100)
    assert {row["system"]: row["value"] for row in board} == pytest.approx(expected)
    with pytest.raises(ConfigurationError, match="found a metric over items, which needs no scoring: show it by"):
        proctor.score(store, metrics=f"{file}:share_of_b")
    with pytest.raises(ConfigurationError, match="said_a: found a metric over items, which needs no scoring"):
        proctor.score(store, metrics=said_a)  # type: ignore[arg-type]
    with pytest.raises(ProctorError, match="the metric over items 'macro_f1' exists already: give yours another name"):
        proctor.results(store, metrics=macro_f1)


def test_an_unknown_metric_lists_them(store: Store) -> None:
    with pytest.raises(InputError, match="macro_f1"):
        rows_of(store, "macro_f")


def test_an_answer_that_counts_as_wrong_is_the_most_frequent_other_class() -> None:
    items = items_of("choice", ["A", "B", "B", "C"])
    (sums,) = macro_f1.sums(items, ["A", None, "B", "C"], [True, False, False, False])
    value = sums.estimate(["a", "b", "c", "d"], Resampling(draws=10)).estimate.value
    assert value == pytest.approx(macro(["A", "B", "B", "C"], ["B", None, "B", "C"]), abs=1e-12)
    assert balanced(["A", "B"], ["A", None]) == 0.5  # called like the function


def test_the_order_of_items_does_not_matter(truth: list[Any], said: dict[str, list[Any]]) -> None:
    items, answers = items_of("choice", truth), said["s1"]
    groups = [item.group for item in items]
    (there,), (back,) = balanced.sums(items, answers), balanced.sums(items[::-1], answers[::-1])
    assert there.estimate(groups).estimate == back.estimate(groups[::-1]).estimate


def test_what_can_not_be_a_metric_over_items_is_refused() -> None:
    def plain(references: list[str], answers: list[str]) -> float:
        return float(references == answers)

    async def later(references: list[str], answers: list[str]) -> float:
        return float(references == answers)

    with pytest.raises(ConfigurationError, match="plain: found no formats, expected the formats that it reads"):
        proctor.metric(over="items")(plain)
    with pytest.raises(ConfigurationError, match="later: found an async function, expected a plain one"):
        proctor.metric(over="items", formats=["choice"])(later)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="plain: found over='groups', expected 'items'"):
        proctor.metric(over="groups", formats=["choice"])(plain)  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match="found the parameter 'text', expected of a metric over items"):
        proctor.metric(over="items", formats=["choice"])(lambda text: 0.0)


def test_one_among_the_scorers_is_told_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("macro_f1", f"{__name__}:macro_f1", SCORERS.group)
    monkeypatch.setattr(SCORERS, "_offered", {"macro_f1": point})
    monkeypatch.setattr(SCORERS, "_known", {})
    with pytest.raises(ProctorError, match=r"metrics over items belong into the group proctor\.corpus_metrics"):
        SCORERS.get("macro_f1")
