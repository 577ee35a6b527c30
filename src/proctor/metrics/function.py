"""A plain function as a metric: a number for each answer, without asking a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack, overload

from proctor.core import (
    Answer,
    ConfigurationError,
    Item,
    Metric,
    MetricOptions,
    PlainFunction,
    ProctorError,
    Score,
    Status,
)
from proctor.metrics.accuracy import cause_of

_OFFERED = ("item", "answer", "text", "parsed", "reference", "question")


class FunctionMetric:
    """Scores answers by a function, sync or async, whose parameters say what it is given: `item`, `answer` (the whole
    record), `text` (the system's words), `parsed` (the value read from them), `reference` (the right answer) and
    `question`. It returns a number in the metric's range, or True and False.

    What never came (too late, refused, an error) or can't be read gets the metric's worst value without a call. A
    function that takes `reference` applies to items that have one. Called like the function it is the function.

    >>> FunctionMetric(lambda text: len(text) < 80, name="short").metric.label
    'Short'
    """

    def __init__(self, function: Callable[..., Any], **declared: Unpack[MetricOptions]) -> None:
        self._function = PlainFunction(function, offered=_OFFERED, what="a metric")
        self.metric = declared_metric(self._function.name, declared)
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself."""
        return self._function.function(*args, **kwargs)

    @property
    def name(self) -> str:
        """As a scorer it has the metric's name."""
        return self.metric.name

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Its one metric."""
        return (self.metric,)

    def applies(self, item: Item) -> bool:
        """To the formats that were named (all, where none are), with a reference where the function takes one."""
        known = item.has_answer or not self._function.takes("reference")
        return known and self.metric.marks(item.answer.kind)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The one score. Raises `ConfigurationError` where the function raises, or returns no number in its range."""
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is no answer and is never scored")
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
        except Exception as error:  # other people's code: shown with its place
            raise ConfigurationError(f"{self.name}, item {item.id!r}: {self._function.fault(error)}") from error
        return in_range(value, self.metric, item)


def declared_metric(function: str, declared: MetricOptions) -> Metric:
    """The metric that is declared of a function.

    >>> declared_metric("same_organ", {"percent": True}).label
    'Same organ'
    """
    name, formats = declared.get("name", "") or function, declared.get("formats", ())
    return Metric(
        name,
        declared.get("label", "") or name.replace("_", " ").capitalize(),
        low=declared.get("low", 0.0),
        high=declared.get("high", 1.0),
        higher_is_better=declared.get("higher_is_better", True),
        percent=declared.get("percent", False),
        chance=declared.get("chance"),
        formats=(formats,) if isinstance(formats, str) else tuple(formats),
    )


def in_range(value: object, metric: Metric, item: Item) -> float:
    """The value as a number of the metric's range. Raises `ConfigurationError` for anything else.

    >>> in_range(True, Metric("same", "Same"), Item.model_construct(id="q1"))
    1.0
    """
    place = f"{metric.name}, item {item.id!r}"
    if not isinstance(value, int | float):  # NumPy's floats are floats
        raise ConfigurationError(f"{place}: found {type(value).__name__}, expected a number")
    if not metric.low <= value <= metric.high:  # nor is NaN
        expected = f"{metric.low:g} to {metric.high:g} (or declare low and high)"
        raise ConfigurationError(f"{place}: found {float(value):g}, expected {expected}")
    return float(value)


@overload
def metric(function: Callable[..., Any], /) -> FunctionMetric: ...


@overload
def metric(**declared: Unpack[MetricOptions]) -> Callable[[Callable[..., Any]], FunctionMetric]: ...


def metric(
    function: Callable[..., Any] | None = None, /, **declared: Unpack[MetricOptions]
) -> FunctionMetric | Callable[[Callable[..., Any]], FunctionMetric]:
    """Makes a metric of a function (see `FunctionMetric`); as a decorator with or without arguments, which are those
    of `Metric`.

    >>> @metric(formats=("free_text",), percent=True)
    ... def names_the_organ(text, reference):
    ...     return reference.lower() in text.lower()
    >>> names_the_organ.metric.label, names_the_organ("The left liver lobe.", "Liver")
    ('Names the organ', True)
    """

    def decorate(decorated: Callable[..., Any]) -> FunctionMetric:
        return FunctionMetric(decorated, **declared)

    return decorate if function is None else decorate(function)
