"""Checks of metrics: scorers of single answers, and metrics over many items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard
from unittest import SkipTest

import numpy as np
from pydantic import JsonValue

from proctor.core import (
    Answer,
    Item,
    ParseError,
    ProctorError,
    Reference,
    Scorer,
    Status,
    admit_scorer,
    admit_settings,
    check_score,
)
from proctor.core import check_metric as check_declaration
from proctor.metrics import OVER_ITEMS, SCORERS, ItemSums, MetricOverItems, build_scorer, installed_over_items
from proctor.systems import RandomGuess
from proctor.testing.checks import Check, CheckReport, Faults, awaited, expecting, run_checks
from proctor.testing.fakes import example_items, right_answer

_COUNT = 12
_LONG = "The probe slides caudally. " * 2_000
_SLACK = 1e-9

MetricLike = str | Scorer | MetricOverItems | Callable[[], Any]
"""A metric by its registered name, as itself (a function with `@proctor.metric`, a scorer, a metric over items), or as
what makes one."""


def check_metric(
    metric: MetricLike, *, items: Sequence[Item] | None = None, expected_failures: Mapping[str, str] | None = None
) -> CheckReport:
    """Run `metric_checks`. Raises `CheckFailedError` with all faults.

    >>> check_metric("accuracy").passed[0]
    'metric accuracy: metrics_are_declared'
    """
    return run_checks(metric_checks(metric, items=items, expected_failures=expected_failures))


def metric_checks(
    metric: MetricLike, *, items: Sequence[Item] | None = None, expected_failures: Mapping[str, str] | None = None
) -> list[Check]:
    """The checks of a metric.

    Of single answers: its declaration and settings; that its scores fit it, of any text; the worst value for an answer
    that never came or can't be read; the same value each time. Of many items: that order does not matter, all items
    twice have the same value, cases such as no answer at all, one class or one item are numbers in its range or
    undefined, and that silence is no better than a wrong answer unless it says so.

    `items` are by default an example of each answer format. `expected_failures` are reasons by the names of checks.
    """
    made = _made(metric)
    called = metric if isinstance(metric, str) else str(getattr(made, "name", type(made).__name__))
    given = list(items or example_items())
    if is_over_items(made):
        over = _OverItems(made, given)
        checks = {
            "it_is_declared": over.it_is_declared,
            "order_does_not_matter": over.order_does_not_matter,
            "all_items_twice_are_the_same": over.all_items_twice_are_the_same,
            "every_case_is_defined": over.every_case_is_defined,
            "silence_is_not_better": over.silence_is_not_better,
        }
    else:
        single = _Single(made, given)
        checks = {
            "metrics_are_declared": single.metrics_are_declared,
            "settings_are_json": single.settings_are_json,
            "applies_says_yes_or_no": single.applies_says_yes_or_no,
            "scores_are_of_its_metrics": single.scores_are_of_its_metrics,
            "answers_that_never_came_get_the_worst": single.answers_that_never_came_get_the_worst,
            "it_gives_the_same_each_time": single.it_gives_the_same_each_time,
        }
    return expecting((Check(f"metric {called}", name, find) for name, find in checks.items()), expected_failures)


def _made(metric: MetricLike) -> Any:
    if isinstance(metric, str):
        over = metric in OVER_ITEMS.names() and metric not in SCORERS.names()
        return installed_over_items([metric])[0] if over and not OVER_ITEMS.is_own(metric) else build_scorer(metric)
    made: Any = metric
    return made() if isinstance(made, type) or not (hasattr(made, "score") or hasattr(made, "sums")) else made


def is_over_items(metric: object) -> TypeGuard[MetricOverItems]:
    """Whether it is a metric over many items."""
    return hasattr(metric, "sums") and hasattr(metric, "metric")


@dataclass(frozen=True)
class _Single:
    """A scorer that is checked."""

    scorer: Scorer
    items: list[Item]

    def scored(self) -> list[Item]:
        found = [item for item in self.items if self.scorer.applies(item)]
        if not found:
            raise SkipTest("it applies to none of the items: give items=")
        return found

    def metrics_are_declared(self) -> Faults:
        admit_scorer(self.scorer)
        if not self.scorer.metrics:
            yield "`metrics`: found none, expected those of its scores"
        for metric in self.scorer.metrics:
            check_declaration(self.scorer.name, metric)

    def settings_are_json(self) -> Faults:
        settings: object = getattr(self.scorer, "settings", {})
        if admit_settings(self.scorer, settings) != getattr(self.scorer, "settings", {}):
            yield "`settings`: found others the second time, expected the same"

    def applies_says_yes_or_no(self) -> Faults:
        for item in (*example_items(), *example_items(references=False), *self.items):
            said: object = self.scorer.applies(item)
            if not isinstance(said, bool):
                yield f"item {item.id!r}: `applies` returned {type(said).__name__}, expected True or False"

    def scores_are_of_its_metrics(self) -> Faults:
        for item in self.scored():
            for answer in _answers(item):
                location = f"item {item.id!r}, answer {answer.text[:40]!r}"
                for score in awaited(self.scorer.score(item, answer)):
                    try:
                        check_score(location, score, self.scorer, item)
                    except ProctorError as error:
                        yield str(error)

    def answers_that_never_came_get_the_worst(self) -> Faults:
        worst = {metric.name: metric.worst for metric in self.scorer.metrics}
        for item in self.scored():
            for status in (Status.REFUSED, Status.TIMED_OUT, Status.ERROR):
                answer = Answer(item_id=item.id, status=status, reason="no answer")
                for score in awaited(self.scorer.score(item, answer)):
                    if score.value != worst.get(score.metric, score.value):
                        found = f"{score.metric} {score.value:g}"
                        yield f"item {item.id!r}, {status.value}: found {found}, expected {worst[score.metric]:g}"

    def it_gives_the_same_each_time(self) -> Faults:
        for item in self.scored():
            for answer in _answers(item):
                first, again = (awaited(self.scorer.score(item, answer)) for _ in range(2))
                if first != again:
                    yield f"item {item.id!r}, answer {answer.text[:40]!r}: found other scores the second time"


def _answers(item: Item) -> Iterator[Answer]:
    """A right answer, one that can't be read, an empty and a very long one, and one in another script."""
    if item.has_answer:
        yield right_answer(item)
    for text in ("?", "", _LONG, "探头向尾侧滑动 \u202e\u0000"):
        try:
            parsed = item.answer.parse(text, item.options)
        except ParseError as error:
            yield Answer(item_id=item.id, text=text, problem=str(error))
        else:
            yield Answer(item_id=item.id, text=text, parsed=parsed)


@dataclass(frozen=True)
class _OverItems:
    """A metric over many items that is checked, on items of each of its formats."""

    metric: MetricOverItems
    examples: list[Item]

    def it_is_declared(self) -> Faults:
        check_declaration(self.metric.metric.name, self.metric.metric)
        if not self.metric.metric.formats:
            yield "`metric`: found no formats, expected those that it reads"
        helps: object = self.metric.silence_helps
        if not isinstance(helps, bool):
            yield f"`silence_helps`: found {helps!r}, expected True or False"

    def order_does_not_matter(self) -> Faults:
        for items, answers in self.cases():
            usual = self.values(items, answers)
            for start in range(1, len(items)):  # each item comes first once
                order = [*range(start, len(items)), *range(start)]
                moved = self.values([items[k] for k in order], [answers[k] for k in order])
                if faults := list(_unlike(f"{items[0].answer.kind}, in another order", moved, usual)):
                    yield from faults
                    break

    def all_items_twice_are_the_same(self) -> Faults:
        for items, answers in self.cases():
            again = [item.model_copy(update={"id": f"{item.id}-again"}) for item in items]
            twice = self.values([*items, *again], [*answers, *answers])
            yield from _unlike(f"{items[0].answer.kind}, all items twice", twice, self.values(items, answers))

    def every_case_is_defined(self) -> Faults:
        low, high = self.metric.metric.low, self.metric.metric.high
        for items, answers in self.cases():
            right = [_truth(item) for item in items]
            constant = [item.model_copy(update={"reference": items[0].reference}) for item in items]
            cases: Mapping[str, tuple[list[Item], list[JsonValue]]] = {
                "all right": (items, right),
                "no answer at all": (items, [None] * len(items)),
                "one answer to all": (items, [answers[0]] * len(items)),
                "one reference": (constant, answers),
                "one item": (items[:1], right[:1]),
            }
            for name, (some, said) in cases.items():
                for part, value in self.values(some, said).items():
                    if not math.isnan(value) and not low - _SLACK <= value <= high + _SLACK:
                        location = f"{items[0].answer.kind}, {name}{part and f', {part}'}"
                        yield f"{location}: found {value:g}, expected {low:g} to {high:g}, or NaN (or declare low and high)"

    def silence_is_not_better(self) -> Faults:
        if self.metric.silence_helps:
            raise SkipTest("it says that silence helps")
        sign = 1 if self.metric.metric.higher_is_better else -1
        for items, answers in self.cases():
            given = [
                answer if row % 3 else _truth(item)
                for row, (item, answer) in enumerate(zip(items, answers, strict=True))
            ]
            wrong = [row for row, item in enumerate(items) if not _is_right(item, given[row])]
            silent = [None if row in wrong else answer for row, answer in enumerate(given)]
            spoken, unsaid = self.values(items, given).get("", math.nan), self.values(items, silent).get("", math.nan)
            if sign * unsaid > sign * spoken + _SLACK:
                found = f"{unsaid:g} where wrong answers are left out, and {spoken:g} where they are given"
                yield f"{items[0].answer.kind}: found {found}, expected no gain (or silence_helps=True)"

    def cases(self) -> Iterator[tuple[list[Item], list[JsonValue]]]:
        """Items of each format with references and answers drawn at random. Raises `SkipTest` if there is no example."""
        found = False
        for example in self.examples:
            if self.metric.metric.scores(example.answer.kind) and example.has_answer:
                found = True
                items = [example.model_copy(update={"id": f"q{k}", "group": f"g{k // 2}"}) for k in range(_COUNT)]
                truth, guess = RandomGuess(1), RandomGuess(2)
                if not guess.supports(example):
                    yield items, [None if k % 3 else _truth(item) for k, item in enumerate(items)]
                    continue
                drawn = [item.model_copy(update={"reference": Reference(answer=truth.draw(item))}) for item in items]
                yield drawn, [guess.draw(item) for item in drawn]
        if not found:
            raise SkipTest("it applies to none of the items: give items=")

    def values(self, items: Sequence[Item], answers: Sequence[JsonValue]) -> dict[str, float]:
        """The value of each part."""
        return {sums.part: value_of(sums) for sums in self.metric.sums(items, answers, [])}


def value_of(sums: ItemSums) -> float:
    """The value of a metric over items; NaN where it is undefined."""
    columns = sums.columns[sums.there]
    if not len(columns):
        return math.nan
    with np.errstate(all="ignore"):
        if sums.statistic is None:
            return float(columns.mean())
        return float(sums.statistic(columns.sum(axis=0)[None, :])[0])


def _truth(item: Item) -> JsonValue:
    return None if item.reference is None else item.reference.answer


def _is_right(item: Item, answer: JsonValue) -> bool:
    return answer is not None and item.answer.match(_truth(item), answer)


def _unlike(location: str, found: Mapping[str, float], expected: Mapping[str, float]) -> Faults:
    for part, value in expected.items():
        other = found.get(part, math.nan)
        if not (math.isnan(value) and math.isnan(other)) and not math.isclose(
            value, other, rel_tol=1e-9, abs_tol=_SLACK
        ):
            yield f"{location}{part and f', {part}'}: found {other:g}, expected {value:g}"
