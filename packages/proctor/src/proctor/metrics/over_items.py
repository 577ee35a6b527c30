"""Metrics over many items: the built-in ones, and those of other packages, as sums or as a plain function.

A metric over many items, such as macro-F1, is no mean of scores of single answers. Its value is a statistic of sums over
items (`ItemSums`), from which its interval, paired differences and ranks are computed by resampling groups.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Protocol, cast

import numpy as np
from pydantic import JsonValue

from proctor.core import (
    ACCURACY,
    ConfigurationError,
    Item,
    Metric,
    PlainFunction,
    ProctorError,
    Registry,
    VideoClip,
    check_metric,
    instance_in_file,
    origin_of,
)
from proctor.core.formats import ScaleFormat
from proctor.metrics import corpus
from proctor.metrics.graded import GRADED_METRICS, POOLED_PRECISION, located_sums
from proctor.metrics.ordering.orders import OrderingScorer
from proctor.stats import Floats, Share

CORPUS_METRICS = (
    *corpus.COUNT_METRICS,
    *corpus.NOMINAL_METRICS,
    *corpus.PERCENTAGE_METRICS,
    *corpus.SCALE_METRICS,
    *corpus.SET_METRICS,
    *corpus.TIME_METRICS,
    POOLED_PRECISION,
    corpus.UNANSWERED,
)
"""The metrics over many items, which are statistics of sums without scores of single answers."""

SILENCE_HELPS = (
    corpus.MCC,
    corpus.SET_PRECISION,
    corpus.SET_F1,
    corpus.TIME_PRECISION,
    corpus.TIME_F1,
    POOLED_PRECISION,
)
"""Metrics that by definition penalise a missing answer less than a wrong one. Their values stay those of the definition (as
false positives of every class, one unreadable answer in ten would leave a rare class 15 % of precision); a rank counts
only if it is the same with these answers as wrong as can be."""

_SUMS: dict[str, Callable[[Any, Any], list[corpus.ItemSums]]] = {
    "count": corpus.count_sums,
    "percentage": corpus.percentage_sums,
}
"""Metrics for which an answer without a value costs as much as the worst answer."""

_SUMS_OF_NAMED: dict[str, Callable[[Any, Any, Sequence[bool]], list[corpus.ItemSums]]] = {
    "classes": corpus.set_sums,
    "intervals": located_sums,
    "boxes": located_sums,
    "binary": corpus.nominal_sums,
    "choice": corpus.nominal_sums,
    "preference": corpus.nominal_sums,
}


NOMINAL = ("binary", "choice", "preference")
"""The formats whose values are classes."""


class MetricOverItems(Protocol):
    """A metric over many items of another package, found by the entry point group `proctor.corpus_metrics`."""

    @property
    def metric(self) -> Metric:
        """Its declaration, with at least one format. Its name is that of the entry point."""

    @property
    def silence_helps(self) -> bool:
        """Whether an answer of None costs less than a wrong one. Ranks then hold only where they are the same with these
        answers completely wrong."""

    def sums(
        self, items: Sequence[Item], answers: Sequence[JsonValue], wrong: Sequence[bool]
    ) -> Sequence[corpus.ItemSums]:
        """The sums of items of one format with references, or one `ItemSums` for each part of the metric. `answers` has a
        value of the format or None (late, missing, unreadable) for each item; one that is `wrong` counts as the worst
        possible answer. `wrong` may be empty: none is."""


OVER_ITEMS: Registry[Any] = Registry(
    "metric over items",
    group="proctor.corpus_metrics",
    fits=lambda thing: isinstance(thing, type) or (hasattr(thing, "metric") and hasattr(thing, "sums")),
    expected="a function with @proctor.metric(over='items'), or a class with metric, silence_helps and sums",
)
"""Metrics over many items of other packages; the names of the built-in ones are reserved."""
for _metric in CORPUS_METRICS:
    OVER_ITEMS.add(_metric.name, _metric)
_TAKEN = frozenset(one.name for one in (ACCURACY, *OrderingScorer.metrics, *GRADED_METRICS))


def installed_over_items(names: Collection[str] | None = None) -> list[MetricOverItems]:
    """The metrics over many items of other packages, all or those in `names`. Raises `ProctorError`, with the package, for
    one that can't be loaded, has another name than its entry point or the name of a built-in metric, or declares no
    format.

    >>> installed_over_items(["mcc"])
    []
    """
    offered = [name for name in OVER_ITEMS.names() if not OVER_ITEMS.is_own(name)]
    return [_installed(name) for name in offered if names is None or name in names]


def put_over_items(metric: object) -> str:
    """The name of a metric over items that is given as itself or as `path/to/file.py:name`. It is known by that name from
    then on, in this process. Raises what `proctor.core.instance_in_file` raises, `ConfigurationError` for another kind of
    object, and `ProctorError` for the name of an installed metric.

    >>> put_over_items(len)
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: found builtin_function_or_method, expected a function with @proctor.metric(over='items')
    """
    found: Any = instance_in_file(metric) if isinstance(metric, str) else metric
    location = f"{metric}: " if isinstance(metric, str) else ""
    if not all(hasattr(found, name) for name in ("metric", "silence_helps", "sums")):
        expected = "a function with @proctor.metric(over='items')"
        raise ConfigurationError(f"{location}found {type(found).__name__}, expected {expected}")
    check_metric(_location(found, "metric"), found.metric)
    OVER_ITEMS.put(found.metric.name, found)
    return str(found.metric.name)


def _installed(name: str) -> MetricOverItems:
    known = OVER_ITEMS.get(name)
    needed = ("metric", "silence_helps", "sums")
    made: MetricOverItems = OVER_ITEMS.make(name, known if isinstance(known, type) else lambda: known, *needed)
    location = _location(made, name)
    check_metric(location, made.metric)
    OVER_ITEMS.check_name(name, made.metric.name)
    if name in _TAKEN:
        raise ConfigurationError(f"{location}: found the name of a built-in metric, expected a name of its own")
    _check_formats_given(location, made.metric)
    return made


def _check_formats_given(location: str, metric: Metric) -> None:
    if not metric.formats:
        expected = "the formats that it reads, such as formats=['choice']"
        raise ConfigurationError(f"{location}: found no formats, expected {expected}")


def _location(thing: object, name: str) -> str:
    origin = origin_of(thing)
    return f"{name} of {origin}" if origin else name


def _given_sums(
    one: MetricOverItems, items: Sequence[Item], answers: Sequence[JsonValue], wrong: Sequence[bool]
) -> list[corpus.ItemSums]:
    """What another package's metric gives, checked: a table with a row for each item, and a statistic with a number in
    the metric's range for each row of sums."""
    if isinstance(one, FunctionOverItems):
        return one.sums(items, answers, wrong)
    location = _location(one, one.metric.name)
    try:
        found: Any = one.sums(items, answers, wrong)
    except ProctorError:
        raise
    except Exception as error:  # another package's code
        raise ConfigurationError(f"{location}: `sums` raised {type(error).__name__}: {error}") from error
    if not isinstance(found, list | tuple) or not all(isinstance(sums, corpus.ItemSums) for sums in found):
        raise ConfigurationError(f"{location}: `sums` returned {type(found).__name__}, expected a list of ItemSums")
    for sums in found:
        _check_table(location, one.metric, sums, len(items))
    return [_with_guard(location, sums) for sums in found]


def _check_table(location: str, metric: Metric, sums: corpus.ItemSums, count: int) -> None:
    if sums.metric != metric:
        raise ConfigurationError(f"{location}: found sums of {sums.metric.name!r}, expected its own `metric`")
    dimensions = 1 if sums.statistic is None else 2
    shape = np.shape(sums.columns)
    if len(shape) != dimensions or shape[0] != count:
        expected = f"{count} items" if dimensions == 1 else f"{count} items × columns"
        raise ConfigurationError(f"{location}: found sums of shape {shape}, expected {expected}")


def _with_guard(location: str, sums: corpus.ItemSums) -> corpus.ItemSums:
    statistic = sums.statistic
    if statistic is None or isinstance(statistic, Share):
        return sums

    def guarded(rows: Floats) -> Floats:
        try:
            values = np.asarray(statistic(rows), dtype=np.float64)
        except ProctorError:
            raise
        except Exception as error:  # another package's code
            raise ConfigurationError(f"{location}: its statistic raised {type(error).__name__}: {error}") from error
        if values.shape != (len(rows),):
            found = f"found values of shape {values.shape} for {len(rows)} rows of sums"
            raise ConfigurationError(f"{location}: {found}, expected one for each")
        return np.array([_in_range(location, sums.metric, value) for value in values.tolist()], dtype=np.float64)

    return replace(sums, statistic=guarded)


def _in_range(location: str, metric: Metric, value: object) -> float:
    if not isinstance(value, Real | np.bool_):
        raise ConfigurationError(
            f"{location}: found {type(value).__name__}, expected a number, or None without a value"
        )
    number = float(value)
    if math.isnan(number):  # undefined
        return number
    slack = 1e-9  # of sums in floating point
    if not metric.low - slack <= number <= metric.high + slack:
        expected = f"{metric.low:g} to {metric.high:g} (or declare low and high)"
        raise ConfigurationError(f"{location}: found {number:g}, expected {expected}")
    return min(max(number, metric.low), metric.high)


class FunctionOverItems:
    """A metric over many items given by a plain function `(references, answers) -> float`.

    `references` and `answers` are lists of equal length with the values of one format (a letter for a choice, a bool for
    yes or no). An answer is None if it is late, missing or unreadable. The function returns a number in the metric's
    range, or None (or NaN) where it is undefined; the order of items must not matter. It does not get the items: then
    their pairs would no longer be all that counts.

    The interval comes from calls on samples of groups: about 2,000 for a value, and 10,000 more for a paired difference.
    A metric for which that is too slow gives sums (`MetricOverItems`). Sums that stand for groups not seen are rounded to
    whole answers. An answer that is to count as completely wrong is, for classes, the most frequent other class of the
    references, and else None.

    >>> def share_right(references, answers):
    ...     return sum(map(str.__eq__, references, answers)) / len(references)
    >>> one = FunctionOverItems(share_right, Metric("share_right", "Share right", formats=("choice",)))
    >>> one(["A", "B"], ["A", "A"])
    0.5
    """

    def __init__(self, function: Callable[..., float | None], metric: Metric, *, silence_helps: bool = True) -> None:
        self._function = PlainFunction(function, offered=("references", "answers"), what="a metric over items")
        if self._function.is_async:
            raise ConfigurationError(f"{metric.name}: found an async function, expected a plain one")
        self.made_of = function
        self.metric = metric
        self.name = metric.name
        self.silence_helps = silence_helps
        self.__doc__ = function.__doc__
        _check_formats_given(metric.name, metric)

    def __call__(self, references: Sequence[Any], answers: Sequence[Any]) -> float | None:
        """Call the function."""
        given = {"references": references, "answers": answers}
        result: float | None = self._function.function(
            **{name: value for name, value in given.items() if self._function.takes(name)}
        )
        return result

    def sums(
        self, items: Sequence[Item], answers: Sequence[JsonValue], wrong: Sequence[bool] = ()
    ) -> list[corpus.ItemSums]:
        """How often each pair of a reference and an answer occurs; the statistic calls the function on as many pairs."""
        truth: list[Any] = [None if item.reference is None else item.reference.answer for item in items]
        given = list(answers)
        for row in map(int, np.flatnonzero(wrong)):
            given[row] = _worst_answer(truth, row, items[row].answer.kind)
        keys = [json.dumps(pair, sort_keys=True) for pair in zip(truth, given, strict=True)]
        pair_of = dict(zip(keys, zip(truth, given, strict=True), strict=True))
        position = {key: column for column, key in enumerate(sorted(pair_of))}
        columns = np.zeros((len(keys), len(position)))
        columns[np.arange(len(keys)), [position[key] for key in keys]] = 1
        pairs = [pair_of[key] for key in position]
        return [corpus.ItemSums(self.metric, columns, lambda rows: self._values(pairs, rows))]

    def _values(self, pairs: Sequence[tuple[Any, Any]], rows: Floats) -> Floats:
        counts, back = np.unique(np.rint(rows).astype(np.int64), axis=0, return_inverse=True)
        values = np.array([self._value(pairs, one.tolist()) for one in counts], dtype=np.float64)
        return np.asarray(values[back.reshape(-1)], dtype=np.float64)

    def _value(self, pairs: Sequence[tuple[Any, Any]], counts: Sequence[int]) -> float:
        there = [pair for pair, count in zip(pairs, counts, strict=True) for _ in range(count)]
        if not there:
            return float("nan")
        location = _location(self, self.name)
        try:
            value = self([reference for reference, _ in there], [answer for _, answer in there])
        except ProctorError:
            raise
        except Exception as error:  # foreign code: reported with its location
            raise ConfigurationError(f"{location}: {self._function.fault(error)}") from error
        return float("nan") if value is None else _in_range(location, self.metric, value)


def _worst_answer(references: Sequence[Any], row: int, kind: str) -> Any:
    others = Counter(str(one) for one in references if one != references[row]) if kind in NOMINAL else Counter[str]()
    if not others:
        return None
    commonest = min(others, key=lambda name: (-others[name], name))
    return next(one for one in references if str(one) == commonest)


def item_sums(
    items: Sequence[Item],
    answers: Sequence[JsonValue],
    wrong: Sequence[bool] = (),
    *,
    among: Sequence[Item] = (),
    more: Sequence[MetricOverItems] = (),
) -> list[corpus.ItemSums]:
    """The sums of the built-in metrics over many items of one format with references, and of `more` of other packages;
    empty for formats without such metrics.

    `answers` has a value of the format or None (late, missing, unreadable) for each item. None costs as much as the
    worst answer, except in the metrics of `SILENCE_HELPS`, where it predicts nothing unless the item is `wrong`.
    `among` are all items of the benchmark, which determine the names of parts.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import CountFormat
    >>> items = [Item(id=name, group=name, question="How many?", answer=CountFormat(), reference=Reference(answer=2))
    ...          for name in ("q1", "q2")]
    >>> [one.named.name for one in item_sums(items, [2, None])][:3]
    ['normalised_cost', 'absolute_error', 'absolute_error:answered only']
    """
    truth: Any = [None if item.reference is None else item.reference.answer for item in items]
    kind = items[0].answer.kind if items else ""
    added = [sums for one in more if kind in one.metric.formats for sums in _given_sums(one, items, answers, wrong)]
    return [*_built_in_sums(kind, truth, items, answers, wrong, among), *added]


def _built_in_sums(
    kind: str,
    truth: Any,
    items: Sequence[Item],
    answers: Sequence[JsonValue],
    wrong: Sequence[bool],
    among: Sequence[Item],
) -> list[corpus.ItemSums]:
    if kind == "timestamps":
        return corpus.time_sums(truth, cast("Any", answers), spans=[_span(item) for item in items], wrong=wrong)
    if kind == "scale":
        return corpus.scale_sums(truth, cast("Any", answers), _scales(items), named=len(set(_scales(among))) > 1)
    if kind in _SUMS_OF_NAMED:
        return _SUMS_OF_NAMED[kind](truth, answers, wrong)
    return _SUMS[kind](truth, answers) if kind in _SUMS else []


def _scales(items: Sequence[Item]) -> list[tuple[float, float]]:
    return [(item.answer.low, item.answer.high) for item in items if isinstance(item.answer, ScaleFormat)]


def _span(item: Item) -> tuple[float, float] | None:
    """Start and end of an item's only clip, if known."""
    clips = [clip for clip in item.media if isinstance(clip, VideoClip)]
    if len(clips) != 1 or clips[0].end is None:
        return None
    return clips[0].start, clips[0].end
