"""Checks of what comes from outside (benchmarks, systems, scorers, recorded answers to unknown or repeated items),
before it is stored or paid for.

Benchmarks, recorded answers, answers, scores and settings of functions and classes alike. An error names the package or
the file, the place, what was found, and what was expected. Proctor's own scorers are exempt where they may do more than
others: a panel also stores the judgements of its judges.
"""

from __future__ import annotations

import inspect
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from proctor.core.errors import (
    ConfigurationError,
    FileLocation,
    InfrastructureError,
    ParseError,
    ProctorError,
    error_at,
)
from proctor.core.field_problems import first_problem
from proctor.core.formats import EVERY_KIND
from proctor.core.formatting import one_of
from proctor.core.item import Item
from proctor.core.metric import HUMAN, Metric
from proctor.core.protocols import Benchmark, RecordedAnswers, Scorer, System, View
from proctor.core.records import Answer, Score
from proctor.core.registry import origin_of, package_of
from proctor.core.user_functions import contained

CODE = "code"
"""The name of Proctor's own scorers without a model."""


def check_formats(location: str, formats: Iterable[str]) -> None:
    """Raise `ConfigurationError` for a kind of answer that does not exist.

    >>> check_formats("words", ["freetext"])
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: words: found the format 'freetext', expected one of choice, ...; did you mean 'free_text'?
    """
    for kind in formats:
        if kind not in EVERY_KIND:
            raise ConfigurationError(f"{location}: found the format {kind!r}, expected {one_of(EVERY_KIND, str(kind))}")


def check_options(location: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise `ConfigurationError` for an option that is not `known`.

    >>> check_options("words", ["format"], ["formats", "percent"])
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: words: found the option 'format', expected one of formats, percent; did you mean 'formats'?
    """
    for name in given:
        if name not in known:
            raise ConfigurationError(f"{location}: found the option {name!r}, expected {one_of(known, name)}")


def check_metric(location: str, metric: object) -> None:
    """Raise `ConfigurationError` for a declaration that no score can fit: no `Metric`, no name, an unknown format, or
    bounds that are not finite and ascending.

    >>> check_metric("words", Metric("length", "Length", low=1, high=0))
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: words, metric 'length': found low=1 and high=0, expected low < high
    """
    if not isinstance(metric, Metric):
        raise ConfigurationError(f"{location}: found the metric {metric!r}, expected a Metric")
    if not metric.name:
        raise ConfigurationError(f"{location}: found a metric without a name, expected a name")
    location = f"{location}, metric {metric.name!r}"
    if not (math.isfinite(metric.low) and math.isfinite(metric.high) and metric.low < metric.high):
        raise ConfigurationError(f"{location}: found low={metric.low:g} and high={metric.high:g}, expected low < high")
    if metric.chance is not None and not metric.low <= metric.chance <= metric.high:
        expected = f"a number from {metric.low:g} to {metric.high:g}"
        raise ConfigurationError(f"{location}: found chance={metric.chance:g}, expected {expected}")
    check_formats(location, metric.formats)


def admit_scorer(scorer: Scorer) -> None:
    """Check the name and the metrics of another package's scorer, before it scores. Raises `ConfigurationError`.

    >>> class Words:
    ...     __module__ = "lapkit.words"
    ...     name, metrics = "code", (Metric("length", "Length", high=100),)
    >>> admit_scorer(Words())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: ...: found the name 'code', which belongs to Proctor, expected a name of its own
    """
    if not origin_of(scorer):
        return
    location = _whose(scorer)
    if scorer.name == CODE or scorer.name.startswith(HUMAN):
        found = f"the name {scorer.name!r}, which belongs to {'people' if scorer.name != CODE else 'Proctor'}"
        raise ConfigurationError(f"{location}: found {found}, expected a name of its own")
    for metric in scorer.metrics:
        check_metric(location, metric)


async def scored(scorer: Scorer, item: Item, answer: Answer) -> list[Score]:
    """The scores of an answer, checked if the scorer is another package's: of this item, by this scorer, of its metrics
    and in their range. Raises `ConfigurationError` for others, and for an exception of such a scorer; connection errors
    (`OSError`) become `InfrastructureError`.

    >>> import asyncio
    >>> from proctor.core.formats import FreeTextFormat
    >>> class Words:
    ...     __module__ = "lapkit.words"
    ...     name, metrics = "words", (Metric("length", "Length", high=100),)
    ...
    ...     async def score(self, item, answer):
    ...         return [Score(item_id=item.id, metric="length", value=len(answer.text))]
    >>> item = Item(id="q1", group="v1", question="What is seen?", answer=FreeTextFormat())
    >>> asyncio.run(scored(Words(), item, Answer(item_id="q1", text="liver")))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: ..., item 'q1': found a score by 'code', expected one by 'words': Score(…, scorer=self.name)
    """
    if not origin_of(scorer):
        return await scorer.score(item, answer)
    location = f"{_whose(scorer)}, item {item.id!r}"
    scores = await _given_scores(location, scorer, item, answer)
    if not isinstance(scores, list | tuple):
        raise ConfigurationError(f"{location}: found {type(scores).__name__}, expected a list of Score")
    for score in scores:
        check_score(location, score, scorer, item)
    if twice := _repeated(score.metric for score in scores):
        raise ConfigurationError(f"{location}: found a second score of the metric {twice!r}, expected one")
    return list(scores)


async def _given_scores(location: str, scorer: Scorer, item: Item, answer: Answer) -> Any:
    """What another package's scorer returns, or raises: in one line that names the package."""
    try:
        coming: Any = scorer.score(item, answer)
        if inspect.isawaitable(coming):
            return await contained(coming)
    except ConfigurationError as error:
        package = package_of(scorer)
        raise (ConfigurationError(f"{package}: {error}") if package not in str(error) else error) from error
    except ProctorError:
        raise
    except OSError as error:
        raise InfrastructureError(f"{location}: {error_at(error)}") from error
    except ValidationError as error:
        problem = first_problem(error)
        told = f"found {problem.field} {problem.found}, expected {problem.expected}"
        raise ConfigurationError(f"{location}: {told}") from error
    except Exception as error:  # another package's code
        raise ConfigurationError(f"{location}: {error_at(error)}") from error
    raise ConfigurationError(f"{location}: found a plain function `score`, expected `async def score`")


def check_score(location: str, score: object, scorer: Scorer, item: Item) -> None:
    """Raise `ConfigurationError` for anything but a score of this item, by this scorer, of one of its metrics and in its
    range.

    >>> class Words:
    ...     name, metrics = "words", (Metric("length", "Length", high=100),)
    >>> item = Item.model_construct(id="q1")
    >>> check_score("words, item 'q1'", Score(item_id="q1", metric="length", value=101, scorer="words"), Words(), item)
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: words, item 'q1': found length 101, expected 0 to 100 (or declare low and high)
    """
    if not isinstance(score, Score):
        raise ConfigurationError(f"{location}: found {type(score).__name__} in the list of scores, expected a Score")
    if score.item_id != item.id:
        raise ConfigurationError(
            f"{location}: found a score of item {score.item_id!r}, expected one of item {item.id!r}"
        )
    if score.scorer != scorer.name:
        expected = f"{scorer.name!r}: Score(…, scorer=self.name)"
        raise ConfigurationError(f"{location}: found a score by {score.scorer!r}, expected one by {expected}")
    declared = {metric.name: metric for metric in scorer.metrics}
    if score.metric not in declared:
        expected = f"{one_of(declared, score.metric)} (`metrics` declares them)"
        raise ConfigurationError(f"{location}: found a score of the metric {score.metric!r}, expected {expected}")
    metric = declared[score.metric]
    if not metric.low <= score.value <= metric.high:  # nor is NaN
        expected = f"{metric.low:g} to {metric.high:g} (or declare low and high)"
        raise ConfigurationError(f"{location}: found {metric.name} {score.value:g}, expected {expected}")


async def answered(system: System, item: Item, view: View) -> Answer:
    """The answer of a system to an item as it is asked. Exceptions pass through (see `contained`). Raises
    `ConfigurationError` if `answer` is not async, or returns something else.

    >>> import asyncio
    >>> from proctor.core.formats import FreeTextFormat
    >>> class Says:
    ...     async def answer(self, item, view):
    ...         return "liver"
    >>> item = Item(id="q1", group="v1", question="What is seen?", answer=FreeTextFormat())
    >>> asyncio.run(answered(Says(), item, None))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: ...: `answer` returned str, expected an Answer: Answer(item_id=item.id, text=…)
    """
    coming: Any = system.answer(item, view)
    if not inspect.isawaitable(coming):
        raise ConfigurationError(f"{_whose(system)}: found a plain function `answer`, expected `async def answer`")
    answer: object = await contained(coming)
    if not isinstance(answer, Answer):
        expected = "an Answer: Answer(item_id=item.id, text=…)"
        raise ConfigurationError(f"{_whose(system)}: `answer` returned {type(answer).__name__}, expected {expected}")
    if origin_of(system):
        try:
            _check_parsed(item, answer)
        except ParseError as error:
            found = f"`parsed` is {answer.parsed!r}, expected {error.expected} (or None: the text is read)"
            raise ConfigurationError(f"{_whose(system)}, item {item.id!r}: {found}") from error
    return answer


def admit_settings(owner: System | Scorer, settings: object) -> dict[str, JsonValue]:
    """The settings of a system or a scorer. Raises `ConfigurationError` if they are no JSON object, with the place of
    the value.

    >>> admit_settings(object(), {"seed": 1})
    {'seed': 1}
    >>> admit_settings(object(), {"folder": Path("weights")})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: ...: settings['folder'] is PosixPath, expected a text, a number, ...
    """
    if not isinstance(settings, dict):
        found = type(settings).__name__
        raise ConfigurationError(f"{_whose(owner)}: `settings` is {found}, expected a dict of JSON values")
    try:
        json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError):
        where, value = _not_json(settings, "settings")
        expected = "a text, a number, true or false, None, a list or a dict with texts as keys"
        raise ConfigurationError(f"{_whose(owner)}: {where} is {value}, expected {expected}") from None
    return settings


def _not_json(value: Any, location: str) -> tuple[str, str]:
    """The innermost place of a value that is not JSON, and its type."""
    if isinstance(value, dict | list | tuple):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in parts:
            try:
                json.dumps({str(name) if isinstance(value, list | tuple) else name: part}, allow_nan=False)
            except (TypeError, ValueError):
                return _not_json(part, f"{location}[{name!r}]")
    return location, repr(value) if isinstance(value, float) else type(value).__name__


@dataclass(frozen=True, slots=True)
class Offered:
    """The names that a benchmark may use: of the installed conditions and judges, and of the metrics that can be had
    without a judge.

    >>> Offered(conditions=("video",), judges=(), metrics=("accuracy",)).metrics
    ('accuracy',)
    """

    conditions: Collection[str]
    judges: Collection[str]
    metrics: Collection[str]


def admit_benchmark(benchmark: Benchmark, location: str | Path, offered: Offered, judge: str | None = None) -> None:
    """Check what a benchmark declares: its headline, facets, conditions, judge and metrics exist, every reference is a
    value of its item's format, and every scorer passes `admit_scorer`. `judge` is the one that its reader names. Raises
    `InputError` that begins with `location`.

    >>> from proctor.core import ACCURACY
    >>> lamps = Benchmark("lamps", "Lamps", (), (ACCURACY,), "acuracy")
    >>> admit_benchmark(lamps, "lamps.csv", Offered(("video",), (), ("accuracy",)))
    Traceback (most recent call last):
    proctor.core.errors.InputError: lamps.csv: field 'headline': found 'acuracy', expected one of accuracy; did you mean 'accuracy'?
    """
    where = FileLocation(location)
    for scorer in benchmark.scorers:
        admit_scorer(scorer)
    for metric in benchmark.metrics:
        check_metric(str(location), metric)
    if twice := _repeated(metric.name for metric in benchmark.metrics):
        raise where.error(f"{twice!r} twice", "each metric once", field="metrics")
    for item in benchmark.items:
        check_reference(item, where)
    of_scorers = [metric.name for scorer in benchmark.scorers for metric in scorer.metrics]
    declared = [*(metric.name for metric in benchmark.metrics), *of_scorers]
    tags = {tag for item in benchmark.items for tag in item.tags}
    judges = [name for name in (benchmark.judge.partition(":")[0], judge) if name]
    named: list[tuple[str, Iterable[str], Collection[str]]] = [
        ("headline", [benchmark.headline], declared if benchmark.headline not in offered.metrics else offered.metrics),
        ("conditions", benchmark.conditions, offered.conditions),
        ("judge", judges, offered.judges),
    ]
    if benchmark.items:
        named += [(field, getattr(benchmark, field), tags) for field in ("facets", "buckets", "only")]
        named.append(("relevance", filter(None, [benchmark.relevance]), tags))
    for field, names, known in named:
        for name in names:
            if name not in known:
                raise where.error(repr(name), one_of(sorted(known) if known is tags else known, name), field=field)
    _check_given(benchmark, where, offered, judges)


def _check_given(benchmark: Benchmark, where: FileLocation, offered: Offered, judges: Sequence[str]) -> None:
    """Raise `InputError` for a metric that nothing gives."""
    if judges:
        return  # its metrics are known once it has a model
    given = {metric.name for scorer in benchmark.scorers for metric in scorer.metrics} | set(offered.metrics)
    given |= {metric.name for metric in (benchmark.rating.metrics if benchmark.rating else ())}
    for metric in benchmark.metrics:
        if metric.name not in given:
            found = f"{metric.name!r}, which nothing gives"
            raise where.error(found, "a metric with a scorer (`scorers`), or a judge", field="metrics")


def check_reference(item: Item, where: FileLocation) -> None:
    """Raise `InputError` unless the reference and the accepted answers of an item are values of its format.

    >>> from proctor.core import Reference
    >>> from proctor.core.formats import ChoiceFormat
    >>> check_reference(Item(id="q1", group="v1", question="Which organ?", options=("spleen", "liver"),
    ...                      answer=ChoiceFormat(), reference=Reference(answer="liver")), FileLocation("q.csv"))
    Traceback (most recent call last):
    proctor.core.errors.InputError: q.csv: item 'q1', field 'reference': found 'liver', expected one of A, B
    """
    if item.reference is None:
        return
    values = [("reference", item.reference.answer)] if item.has_answer else []
    for field, value in (*values, *(("accepted", one) for one in item.reference.accepted)):
        location = FileLocation(where.file, ", ".join(part for part in (where.location, f"item {item.id!r}") if part))
        try:
            _canonical(item, value)
        except ParseError as error:
            raise location.error(repr(value), error.expected, field=field) from error


def _canonical(item: Item, value: JsonValue) -> None:
    """Raise `ParseError` for a value that is none of the item's format, or is written otherwise than the format does."""
    if item.answer.kind == "free_text" and isinstance(value, str):
        return  # every text is one as it stands, an empty one too
    try:
        canonical = item.answer.check(value, item.options)
        same = canonical == value or item.answer.match(value, canonical)
    except (TypeError, ValueError, AttributeError) as error:
        raise ParseError(expected=f"a value of the format {item.answer.kind}", found=str(value)) from error
    if not same:
        raise ParseError(expected=repr(canonical), found=str(value))


def _check_parsed(item: Item, answer: Answer) -> None:
    """Raise `ParseError` for the value of an answer that its format can't have read. An order of other labels is one: it
    is a wrong answer."""
    value = answer.parsed
    labels = item.answer.kind == "ordering" and isinstance(value, list) and all(isinstance(one, str) for one in value)
    if value is not None and not labels:
        _canonical(item, value)


def admit_recorded(recorded: RecordedAnswers, benchmark: Benchmark, location: str | Path) -> None:
    """Check answers that were recorded elsewhere: each is to an item of the benchmark, and the only one to it; each
    score is of such an answer, the only one of its metric and scorer, and in the metric's range if that is declared.
    Raises `InputError` that begins with `location`.

    >>> from proctor.core import ACCURACY
    >>> lamps = Benchmark("lamps", "Lamps", (), (ACCURACY,), "accuracy")
    >>> admit_recorded(RecordedAnswers((Answer(item_id="q9", text="yes"),)), lamps, "night.csv")
    Traceback (most recent call last):
    proctor.core.errors.InputError: night.csv: found an answer to 'q9', expected the id of a question
    """
    where = FileLocation(location)
    known, seen = {item.id: item for item in benchmark.items}, set[tuple[str, int]]()
    for answer in recorded.answers:
        if answer.item_id not in known:
            raise where.error(f"an answer to {answer.item_id!r}", "the id of a question")
        if (answer.item_id, answer.repetition) in seen:
            raise where.error(f"another answer to {answer_name(answer)}", "one answer to each question")
        seen.add((answer.item_id, answer.repetition))
        try:
            _check_parsed(known[answer.item_id], answer)
        except ParseError as error:
            of = FileLocation(location, f"answer to {answer.item_id!r}")
            raise of.error(repr(answer.parsed), error.expected, field="parsed") from error
    _check_repetitions(recorded.answers, where)
    declared = {metric.name: metric for metric in _declared(benchmark)}
    given = set[tuple[str, int, str, str]]()
    for score in recorded.scores:
        of = FileLocation(location, f"score of item {score.item_id!r}, {score.metric} by {score.scorer}")
        if (score.item_id, score.repetition) not in seen:
            raise of.error("no answer to this item", "an answer with each score")
        if score.scorer == CODE:
            raise of.error("the name 'code', which belongs to Proctor", "the name of who gave the score")
        if (key := (score.item_id, score.repetition, score.metric, score.scorer)) in given:
            raise of.error("a second one", "one score of each metric by each scorer")
        given.add(key)
        metric = declared.get(score.metric)
        if metric is not None and not metric.low <= score.value <= metric.high:
            raise of.error(f"{score.value:g}", f"a number from {metric.low:g} to {metric.high:g}")


def answer_name(answer: Answer) -> str:
    """An answer in an error: its item, and its repetition after the first one, counted as in `Answer`.

    >>> answer_name(Answer(item_id="q1")), answer_name(Answer(item_id="q1", repetition=2))
    ("'q1'", "'q1' in repetition 2")
    """
    return repr(answer.item_id) + (f" in repetition {answer.repetition}" if answer.repetition else "")


def _check_repetitions(answers: Sequence[Answer], where: FileLocation) -> None:
    """Raises `InputError` for an item whose repetitions have a gap."""
    numbers: dict[str, set[int]] = {}
    for answer in answers:
        numbers.setdefault(answer.item_id, set()).add(answer.repetition)
    for item, found in numbers.items():
        missing = next((number for number in range(max(found)) if number not in found), None)
        if missing is not None:
            have = ", ".join(map(str, sorted(found)[:5]))
            raise where.error(
                f"repetitions {have} of {item!r}", f"repetition {missing}, too: counted from 0, without a gap"
            )


def _declared(benchmark: Benchmark) -> list[Metric]:
    rated = benchmark.rating.metrics if benchmark.rating else ()
    return [*benchmark.metrics, *(metric for scorer in benchmark.scorers for metric in scorer.metrics), *rated]


def _repeated(names: Iterable[str]) -> str:
    """The first name that is there several times; "" for none."""
    return next((name for name, count in Counter(names).items() if count > 1), "")


def _whose(thing: System | Scorer) -> str:
    """The name of a system or a scorer, with the package or file that it comes from."""
    origin, name = origin_of(thing), str(getattr(thing, "name", type(thing).__name__))
    return f"{name} of {origin}" if origin else name
