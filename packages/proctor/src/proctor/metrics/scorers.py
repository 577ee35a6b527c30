"""Scorers without a model: built-in scorers, those of other packages, and user-defined functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from numbers import Real
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from proctor.core import (
    Answer,
    Benchmark,
    ConfigurationError,
    Item,
    Metric,
    MetricOptions,
    PlainFunction,
    ProctorError,
    Registry,
    Score,
    Scorer,
    admit_scorer,
    check_metric,
    check_options,
    instance_in_file,
    needed_parameters,
    origin_of,
)
from proctor.metrics.accuracy import AccuracyScorer, cause_of
from proctor.metrics.graded import GradedScorer
from proctor.metrics.ordering.orders import OrderingScorer

if TYPE_CHECKING:
    from proctor.metrics.over_items import FunctionOverItems

SCORERS: Registry[Callable[[], Scorer] | Scorer] = Registry(
    "metric",
    group="proctor.scorers",
    fits=lambda thing: not is_over_items(thing) and (callable(thing) or hasattr(thing, "score")),
    expected="a function with @proctor.metric, or a class or function that makes a scorer (metrics over items belong into "
    "the group proctor.corpus_metrics)",
)
"""Scorers by name: functions decorated by `proctor.metric`, scorers, or factories of scorers. The names of the built-in
scorers, `accuracy`, `ordering` and `graded`, are reserved."""
SCORERS.add("accuracy", AccuracyScorer)
SCORERS.add("ordering", OrderingScorer)
SCORERS.add("graded", GradedScorer)


def code_scorers(benchmark: Benchmark | None = None) -> list[Scorer]:
    """The scorers that run on every answer, each for its formats; those of the benchmark are last. Raises
    `ConfigurationError` if two of them give the same metric under the same name.

    >>> [type(scorer).__name__ for scorer in code_scorers()]
    ['AccuracyScorer', 'OrderingScorer', 'GradedScorer']
    """
    scorers: list[Scorer] = [
        AccuracyScorer(),
        OrderingScorer(),
        GradedScorer(),
        *(() if benchmark is None else benchmark.scorers),
    ]
    given = Counter((scorer.name, metric.name) for scorer in scorers for metric in scorer.metrics)
    for (scorer, name), count in given.items():
        if count > 1:
            raise ConfigurationError(f"{count} scorers give the metric {name!r} as {scorer!r}: rename one")
    return scorers


def build_scorer(name: str) -> Scorer:
    """The registered scorer with this name. Raises `UnknownNameError` with the choices.

    >>> build_scorer("accuracy").name
    'code'
    """
    known: Any = SCORERS.get(name)
    scorer: Scorer = known
    if isinstance(known, type) or not hasattr(known, "score"):
        _refuse_undecorated(name, known)
        scorer = SCORERS.make(name, known, "name", "metrics", "applies", "score")
    SCORERS.check_name(name, scorer.name)
    admit_scorer(scorer)
    return scorer


def _refuse_undecorated(name: str, known: Any) -> None:
    """Raises `ConfigurationError` for a function that needs what a scorer's factory is not given."""
    needed = needed_parameters(known) if isinstance(known, FunctionType) else ()
    if needed:
        expected = "a factory without parameters, or a function with @proctor.metric"
        raise ConfigurationError(
            f"{name} of {origin_of(known)}: found the parameter {needed[0]!r}, expected {expected}"
        )


def is_over_items(thing: object) -> bool:
    """Whether something is a metric over items, which gives no scores of single answers.

    >>> is_over_items(AccuracyScorer())
    False
    """
    from proctor.metrics.over_items import FunctionOverItems

    return isinstance(thing, FunctionOverItems)


def refuse_over_items(scorer: object, location: str) -> None:
    """Raise `ConfigurationError` for a metric over items, which gives no scores of single answers.

    >>> refuse_over_items(AccuracyScorer(), "mine.py:right")
    """
    if is_over_items(scorer):
        told = "found a metric over items, which needs no scoring: show it by proctor results --metric"
        raise ConfigurationError(f"{location}: {told}")


def scorer_in_file(address: str) -> Scorer:
    """The scorer at `path/to/file.py:name`: a function (see `FunctionMetric`), decorated or not, a class without
    arguments, or a scorer.

    Raises what `proctor.core.instance_in_file` raises, and `ConfigurationError` for another kind of object.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.py"
    ...     _ = file.write_text("def short(text): return len(text) < 80", "utf-8")
    ...     scorer_in_file(f"{file}:short").name
    'short'
    """
    found = instance_in_file(address)
    refuse_over_items(found, address)
    if hasattr(found, "score"):
        admit_scorer(found)
        made: Scorer = found
    elif callable(found):
        try:
            made = FunctionMetric(found)
        except ConfigurationError as error:
            raise ConfigurationError(f"{address}: {error}") from error
    else:
        raise ConfigurationError(f"{address}: found {type(found).__name__}, expected a function or a scorer")
    if isinstance(made, FunctionMetric):
        made.address = address
    return made


_OFFERED = ("item", "answer", "text", "parsed", "reference", "question")


class FunctionMetric:
    """A metric given by a function, sync or async, that is called with those of these arguments that its parameters
    name: `item`, `answer` (the whole record), `text` (the system's text), `parsed` (its value), `reference` (the right
    answer, of the same type as `parsed`: a text for free text, a letter for a choice, a bool for yes or no) and
    `question`. It returns a number in the metric's range, or a boolean.

    An answer without a value (timed out, refused, error, unreadable) gets the worst value without a call. A function
    that takes `reference` applies only to items that have one. Calling the metric calls the function.

    >>> FunctionMetric(lambda text: len(text) < 80, name="short").metric.label
    'Short'
    """

    def __init__(self, function: Callable[..., Any], **declared: Unpack[MetricOptions]) -> None:
        self._function = PlainFunction(function, offered=_OFFERED, what="a metric")
        self.made_of = function
        self.metric = declared_metric(self._function.name, declared)
        self.name, self.metrics = self.metric.name, (self.metric,)
        self.address = ""  # path/to/file.py:name, if it was named so
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function.function(*args, **kwargs)

    def applies(self, item: Item) -> bool:
        """Whether the item has one of the declared formats (if any), and a reference if the function takes one."""
        known = item.has_answer or not self._function.takes("reference")
        return known and self.metric.scores(item.answer.kind)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The score. Raises `ConfigurationError` if the function raises, or returns no number in the range."""
        cause = cause_of(answer)
        value = self.metric.worst if cause else await self._value(item, answer)
        return [Score(item_id=item.id, metric=self.metric.name, value=value, scorer=self.name, label=cause)]

    async def _value(self, item: Item, answer: Answer) -> float:
        given = {
            "item": item,
            "answer": answer,
            "text": answer.text,
            "parsed": answer.parsed,
            "reference": None if item.reference is None else item.reference.answer,
            "question": item.question,
        }
        try:
            value = await self._function.call(given)
        except ProctorError:
            raise
        except Exception as error:  # foreign code: reported with its location
            where = f"{self.address or self.name}, item {item.id!r}"
            raise ConfigurationError(f"{where}: {self._function.fault(error)}") from error
        return in_range(value, self.metric, item, self.address)


def declared_metric(function: str, declared: MetricOptions) -> Metric:
    """The metric declared by a function. Raises `ConfigurationError` for unknown options, formats and bounds.

    >>> declared_metric("same_organ", {"percent": True}).label
    'Same organ'
    """
    check_options(function, declared, MetricOptions.__annotations__)
    name, formats = declared.get("name", "") or function, declared.get("formats", ())
    metric = Metric(
        name,
        declared.get("label", "") or name.replace("_", " ").capitalize(),
        low=declared.get("low", 0.0),
        high=declared.get("high", 1.0),
        higher_is_better=declared.get("higher_is_better", True),
        percent=declared.get("percent", False),
        chance=declared.get("chance"),
        formats=(formats,) if isinstance(formats, str) else tuple(formats),
    )
    check_metric(function, metric)
    return metric


def in_range(value: object, metric: Metric, item: Item, address: str = "") -> float:
    """The value as a number in the metric's range. Raises `ConfigurationError` for anything else; `address` says where
    the function is.

    >>> in_range(True, Metric("same", "Same"), Item.model_construct(id="q1"))
    1.0
    """
    location = f"{address or metric.name}, item {item.id!r}"
    if not isinstance(value, Real | np.bool_):  # all other numbers of NumPy are real ones
        raise ConfigurationError(f"{location}: found {type(value).__name__}, expected a number")
    number = float(value)
    if not metric.low <= number <= metric.high:  # nor is NaN
        expected = f"{metric.low:g} to {metric.high:g} (or declare low and high)"
        raise ConfigurationError(f"{location}: found {number:g}, expected {expected}")
    return number


@overload
def metric(function: Callable[..., Any], /) -> FunctionMetric: ...


@overload
def metric(
    *, over: Literal["items"], silence_helps: bool = ..., **declared: Unpack[MetricOptions]
) -> Callable[[Callable[..., float | None]], FunctionOverItems]: ...


@overload
def metric(**declared: Unpack[MetricOptions]) -> Callable[[Callable[..., Any]], FunctionMetric]: ...


def metric(
    function: Callable[..., Any] | None = None,
    /,
    *,
    over: Literal["items"] | None = None,
    silence_helps: bool = True,
    **declared: Unpack[MetricOptions],
) -> FunctionMetric | Callable[[Callable[..., Any]], FunctionMetric | FunctionOverItems]:
    """Make a metric from a function (see `FunctionMetric`); a decorator with or without arguments, which are those of
    `Metric`. With `over="items"` the function gets all references and answers at once (see `FunctionOverItems`), and
    `silence_helps` says whether an answer of None costs less than a wrong one.

    >>> @metric(formats=("free_text",), percent=True)
    ... def names_the_organ(text, reference):
    ...     return reference.lower() in text.lower()
    >>> names_the_organ.metric.label, names_the_organ("The left liver lobe.", "Liver")
    ('Names the organ', True)
    """

    def decorate(decorated: Callable[..., Any]) -> FunctionMetric | FunctionOverItems:
        if over is None:
            return FunctionMetric(decorated, **declared)
        name = str(getattr(decorated, "__name__", type(decorated).__name__))
        if over != "items":
            raise ConfigurationError(f"{name}: found over={over!r}, expected 'items'")
        from proctor.metrics.over_items import FunctionOverItems

        return FunctionOverItems(decorated, declared_metric(name, declared), silence_helps=silence_helps)

    return decorate if function is None else FunctionMetric(function, **declared)
