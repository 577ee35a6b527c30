"""The checks of metrics: every fault that they are for is found, and every metric of ours passes them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import JsonValue

import proctor
from proctor import Answer, Item, Metric
from proctor.core import Score
from proctor.metrics import CORPUS_METRICS, SCORERS, SILENCE_HELPS, ItemSums, item_sums
from proctor.testing import Check, check_metric, metric_checks
from tests.support.kit import finds, passes


class Length:
    """A metric without faults: how long an answer is, up to a hundred characters."""

    name = "length"
    metrics: Any = (Metric("length", "Length", high=100, formats=("free_text",)),)
    settings: Any = {}  # noqa: RUF012  (what is faulty is declared so)

    def applies(self, item: Item) -> Any:
        return item.answer.kind == "free_text"

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        return [self.given(item, self.value(answer))]

    def value(self, answer: Answer) -> float:
        return min(100, len(answer.text))

    def given(self, item: Item, value: float) -> Score:
        return Score(item_id=item.id, metric="length", value=value, scorer=self.name)


class Unbounded(Length):
    def value(self, answer: Answer) -> float:
        return len(answer.text)


class ByCode(Length):
    name = "code"


class ByNobody(Length):
    def given(self, item: Item, value: float) -> Score:
        return Score(item_id=item.id, metric="length", value=value)


class Undeclared(Length):
    metrics = ()


class PathOfWords(Length):
    settings = {"words": Path("words.txt")}  # noqa: RUF012


class AppliesPerhaps(Length):
    def applies(self, item: Item) -> Any:
        return item.reference


class ShortIsGood(Length):
    """Nothing is the shortest answer."""

    metrics = (Metric("length", "Length", high=100, higher_is_better=False, formats=("free_text",)),)


class ByChance(Length):
    def value(self, answer: Answer) -> float:
        return random.random()


SINGLE: list[tuple[type[Length], str, str]] = [
    (ByCode, "metrics_are_declared", "found the name 'code', which belongs to Proctor"),
    (Undeclared, "metrics_are_declared", "`metrics`: found none"),
    (PathOfWords, "settings_are_json", "settings['words'] is PosixPath"),
    (AppliesPerhaps, "applies_says_yes_or_no", "`applies` returned Reference"),
    (Unbounded, "scores_are_of_its_metrics", "found length 54000, expected 0 to 100 (or declare low and high)"),
    (ByNobody, "scores_are_of_its_metrics", "found a score by 'code', expected one by 'length'"),
    (ShortIsGood, "answers_that_never_came_get_the_worst", "refused: found length 0, expected 100"),
    (ByChance, "it_gives_the_same_each_time", "found other scores the second time"),
]


class ShareRight:
    """A metric over items without faults."""

    metric: Any = Metric("share_right", "Share right", formats=("binary",))
    silence_helps: Any = False

    def sums(self, items: Sequence[Item], answers: Sequence[JsonValue], wrong: Sequence[bool]) -> list[ItemSums]:
        columns = [
            [self.weight(position, item, answer), 1]
            for position, (item, answer) in enumerate(zip(items, answers, strict=True))
        ]
        return [ItemSums(self.metric, np.array(columns, dtype=np.float64), self.statistic)]

    def weight(self, position: int, item: Item, answer: JsonValue) -> float:
        assert item.reference is not None
        return float(answer == item.reference.answer)

    def statistic(self, sums: Any) -> Any:
        return sums[:, 0] / sums[:, 1]


class ByPosition(ShareRight):
    def weight(self, position: int, item: Item, answer: JsonValue) -> float:
        return super().weight(position, item, answer) * (position == 0)


class NotAShare(ShareRight):
    def statistic(self, sums: Any) -> Any:
        return sums[:, 0] / 12


class Doubled(ShareRight):
    def statistic(self, sums: Any) -> Any:
        return 2 * super().statistic(sums)


class OfTheAnswered(ShareRight):
    """Silence pays."""

    def sums(self, items: Sequence[Item], answers: Sequence[JsonValue], wrong: Sequence[bool]) -> list[ItemSums]:
        (made,) = super().sums(items, answers, wrong)
        made.columns[:, 1] = [answer is not None for answer in answers]
        return [made]

    def statistic(self, sums: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return super().statistic(sums)


class WithoutFormats(ShareRight):
    metric = Metric("share_right", "Share right")


class PerhapsHelps(ShareRight):
    silence_helps = None


OVER: list[tuple[type[ShareRight], str, str]] = [
    (WithoutFormats, "it_is_declared", "`metric`: found no formats, expected those that it reads"),
    (PerhapsHelps, "it_is_declared", "`silence_helps`: found None, expected True or False"),
    (ByPosition, "order_does_not_matter", "binary, in another order: found"),
    (NotAShare, "all_items_twice_are_the_same", "binary, all items twice: found"),
    (Doubled, "every_case_is_defined", "binary, all right: found 2, expected 0 to 1, or NaN (or declare low and high)"),
    (OfTheAnswered, "silence_is_not_better", "expected no gain (or silence_helps=True)"),
]


@pytest.mark.parametrize(("metric", "name", "told"), [*SINGLE, *OVER], ids=lambda one: getattr(one, "__name__", None))
def test_a_fault_is_found_by_its_check(metric: Any, name: str, told: str) -> None:
    (check,) = [check for check in metric_checks(metric) if check.name == name]
    finds(check, told)


@proctor.metric(formats=["free_text"], percent=True)
def names_a_probe(text: str) -> bool:
    """Whether the answer names a probe."""
    return "probe" in text


@proctor.metric(over="items", formats=["binary", "choice"])
def agreement(references: Sequence[object], answers: Sequence[object]) -> float:
    """The share of equal values."""
    return sum(one == other for one, other in zip(references, answers, strict=True)) / len(references)


@pytest.mark.parametrize("metric", [Length, names_a_probe, ShareRight], ids=["scorer", "function", "sums"])
def test_a_metric_without_faults_passes_all(metric: Any) -> None:
    report = check_metric(metric)
    assert report.skipped == {}
    assert len(report.passed) == len(metric_checks(metric))


def test_a_function_over_items_passes() -> None:
    report = check_metric(agreement)
    assert list(report.skipped.values()) == ["it says that silence helps"]


@pytest.mark.parametrize("check", [check for name in SCORERS.names() for check in metric_checks(name)], ids=str)
def test_our_scorers_pass(check: Check) -> None:
    passes(check)


class OursOverItems:
    """One of our metrics over items as a package would offer it."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.name = metric.name
        self.silence_helps = metric in SILENCE_HELPS

    def sums(self, items: Sequence[Item], answers: Sequence[JsonValue], wrong: Sequence[bool]) -> list[ItemSums]:
        return [sums for sums in item_sums(items, answers, wrong) if sums.metric == self.metric]


UNBOUNDED: Mapping[str, str] = {
    "it_is_declared": "an error has no upper bound, and no score of a single answer needs one"
}


@pytest.mark.parametrize(
    "check",
    [
        check
        for metric in CORPUS_METRICS
        for check in metric_checks(
            OursOverItems(metric), expected_failures=UNBOUNDED if np.isinf(metric.high) else None
        )
    ],
    ids=str,
)
def test_our_metrics_over_items_pass(check: Check) -> None:
    passes(check, "it says that silence helps", "expected to fail: an error has no upper bound")
