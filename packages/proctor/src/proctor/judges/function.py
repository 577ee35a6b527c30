"""A plain function as a judge: it asks a model about an answer, and turns the reply into a number."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, overload

from pydantic import BaseModel, JsonValue

from proctor.core import (
    Answer,
    ConfigurationError,
    InputError,
    Item,
    JudgementCache,
    Metric,
    MetricOptions,
    PlainFunction,
    ProctorError,
    Score,
    Scorer,
    Status,
    check_metric,
    check_options,
    one_of,
)
from proctor.core.formats import option_letters
from proctor.judges.cached_model import CachedModel
from proctor.judges.prompt_injection import fenced
from proctor.metrics import cause_of, declared_metric, in_range
from proctor.models import chosen_prompt

if TYPE_CHECKING:
    from proctor.models import ModelClient, Prompt

T = TypeVar("T", bound=BaseModel)

_OFFERED = ("item", "question", "reference", "answer", "ask")
_PROMPT = "prompt"
_IN_PROMPTS = ("question", "options", "reference", "answer")
"""What a judge's template may use."""


class Ask(Protocol):
    """What an `async` judge's function gets as `ask`; a plain one gets the same without `await`."""

    async def __call__(self, prompt: str, form: type[T], /) -> T:
        """The model's reply to a prompt, as a `form`: a pydantic model."""


class JudgeFunction:
    """A judge that asks one model, defined by a sync or async function. The function's parameters say what it is given:
    `item`, `question`, `reference` (the right answer, of free text a text), `answer` (the system's text, sanitized and between fences) and
    `ask`.

    `ask(prompt, Form)`, awaited in an async function, gives the model's reply as `Form`, a pydantic model. Each reply is
    cached under the hash of its content: no call is repeated for the same prompt, not even by concurrent answers. An
    answer with a prompt injection is flagged for people; its score stands. The function returns a number in the
    metric's range, or a bool. With `metrics` it returns a mapping, with such a number for each of them that applies to the
    item's format; `name` is then the only other option.

    With `prompt`, a template file (a relative path begins at the function's file), the function also gets `prompt`: the
    text of the template, filled in with `question`, `options` (letters and texts), `reference` and `answer` (between
    fences). The template's `system` block is sent with every question. Its hash is part of the settings, and
    `proctor score --prompt` takes another one.

    It judges free text unless other `formats` are declared. Called with a client and a judgement cache it makes the
    scorer, like every judge that is found by entry point.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        metrics: Sequence[Metric] = (),
        prompt: str | Path | None = None,
        **declared: Unpack[MetricOptions],
    ) -> None:
        self.prompt = None if prompt is None else _beside(function, Path(prompt))
        _check_parameter(function, self.prompt)
        offered = _OFFERED if prompt is None else (*_OFFERED, _PROMPT)
        self.function = PlainFunction(function, offered=offered, what="a judge")
        self.made_of = function
        self.name = declared.get("name", "") or self.function.name
        self.returns_mapping = bool(metrics)
        self.metrics = _several(self.function.name, metrics, declared) if metrics else (_one(self.function, declared),)
        self.address = ""  # path/to/file.py:name, if it was named so
        self.__doc__ = function.__doc__

    def __call__(self, client: ModelClient, judgements: JudgementCache, *, prompt: Path | None = None) -> Scorer:
        """The scorer, with another `prompt` than its own if given. Raises `InputError` for a template that can't be read,
        or uses what it is not given, and for any template if the function writes its own prompt."""
        if self.prompt is None:
            if prompt is not None:
                raise InputError(prompt, f"judge {self.name}", found="a prompt", expected="none: it writes its own")
            return FunctionJudge(self, client, judgements)
        chosen = chosen_prompt(self.prompt, prompt)
        self._check_variables(chosen, prompt or self.prompt)
        return FunctionJudge(self, client, judgements, chosen)

    def _check_variables(self, prompt: Prompt, file: Path) -> None:
        location = f"prompt of the judge {self.name}"
        for name in sorted(prompt.variables):
            if name not in _IN_PROMPTS:
                raise InputError(file, location, found=f"the variable {name!r}", expected=one_of(_IN_PROMPTS, name))
        if "answer" not in prompt.variables and not self.function.takes("answer"):
            raise InputError(file, location, found="no {{ answer }}", expected="the answer that is judged")


def _beside(function: Callable[..., Any], prompt: Path) -> Path:
    """The path of a prompt; a relative one begins at the file of the function's module."""
    code = function if hasattr(function, "__code__") else type(function)
    file = getattr(sys.modules.get(code.__module__), "__file__", None)
    return prompt if file is None else Path(file).parent / prompt


def _check_parameter(function: Callable[..., Any], prompt: Path | None) -> None:
    """Raise `ConfigurationError` for a function that takes a prompt and declares none, or declares one and takes none."""
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):  # refused by `PlainFunction`
        return
    name = getattr(function, "__name__", type(function).__name__)
    takes = _PROMPT in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if prompt is None and _PROMPT in parameters:
        expected = "expected a template: @proctor.judge(prompt='FILE.txt.j2')"
        raise ConfigurationError(f"{name}: found the parameter 'prompt', {expected}")
    if prompt is not None and not takes:
        expected = "expected the parameter 'prompt', which is its text"
        raise ConfigurationError(f"{name}: found the prompt {prompt.name}, {expected}")


def _one(function: PlainFunction, declared: MetricOptions) -> Metric:
    check_options(function.name, declared, (*MetricOptions.__annotations__, "metrics", _PROMPT))
    declared["formats"] = declared.get("formats") or ("free_text",)
    return declared_metric(function.name, declared)


def _several(location: str, metrics: Sequence[Metric], declared: MetricOptions) -> tuple[Metric, ...]:
    """The declared metrics; those without formats apply to free text. Raises `ConfigurationError` for options that belong to
    a metric, for something else than metrics, and for a name twice."""
    other = next((name for name in declared if name != "name"), None)
    if other is not None:
        raise ConfigurationError(f"{location}: found {other!r} beside metrics, expected it in each Metric(…)")
    for metric in metrics:
        check_metric(location, metric)
    if len({metric.name for metric in metrics}) < len(metrics):
        raise ConfigurationError(
            f"{location}: found {', '.join(one.name for one in metrics)}, expected each metric once"
        )
    return tuple(metric if metric.formats else replace(metric, formats=("free_text",)) for metric in metrics)


class FunctionJudge:
    """The scorer of a `JudgeFunction` and a model."""

    def __init__(
        self, made: JudgeFunction, client: ModelClient, judgements: JudgementCache, prompt: Prompt | None = None
    ) -> None:
        self.name = f"{made.name}{'' if prompt is None else prompt.mark}[{client.name}]"
        self.metrics = made.metrics
        self._made = made
        self._prompt = prompt
        self.made_of = made.function.function
        self._client = client
        self._asked = CachedModel(self.name, client, judgements)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The settings of the model, the hash of the function's source, and that of its prompt."""
        prompt = self._prompt
        own: dict[str, JsonValue] = {} if prompt is None else {"prompt": prompt.name, "prompt_sha256": prompt.sha256}
        return {**self._client.settings, **self._made.function.settings, **own}

    def applies(self, item: Item) -> bool:
        """To the declared formats, with a reference if the function or its prompt uses one."""
        prompted = self._prompt is not None and "reference" in self._prompt.variables
        known = item.has_answer or not (prompted or self._made.function.takes("reference"))
        return known and any(metric.scores(item.answer.kind) for metric in self.metrics)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """A score of each metric that applies. An answer that never came gets the worst values without a call.

        Raises `NoVerdictError` and `InfrastructureError` as `CachedModel`, and `ConfigurationError` if the function
        raises, or returns anything but a number in its range (with `metrics`, a mapping with one for each).
        """
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never scored")
        metrics, cause = [metric for metric in self.metrics if metric.scores(item.answer.kind)], cause_of(answer)
        if cause:
            return [
                Score(item_id=item.id, metric=metric.name, value=metric.worst, scorer=self.name, label=cause)
                for metric in metrics
            ]
        shown = {
            "question": item.question,
            "options": list(zip(option_letters(len(item.options)), item.options, strict=True)),
            "reference": None if item.reference is None else item.reference.answer,
            "answer": fenced(answer.wording),
        }
        system, text = ("", "") if self._prompt is None else self._prompt.render(**shown)
        question = _Question(self._asked, item.id, answer.wording, system)
        function = self._made.function
        given = {
            **shown,
            "item": item,
            "prompt": text,
            "ask": question.ask if function.is_async else question.blocking(asyncio.get_running_loop()),
        }
        try:
            value = await function.call(given)
        except ProctorError:
            raise
        except Exception as error:  # other people's code: shown with its location
            where = f"{self._made.address or self.name}, item {item.id!r}"
            raise ConfigurationError(f"{where}: {function.fault(error)}") from error
        values = self._by_metric(value, metrics, item)
        return [
            Score(
                item_id=item.id,
                metric=metric.name,
                value=in_range(values[metric.name], metric, item, self._made.address),
                scorer=self.name,
                judgement_key=question.last_judgement,
            )
            for metric in metrics
        ]

    def _by_metric(self, value: Any, metrics: Sequence[Metric], item: Item) -> Mapping[str, Any]:
        if not self._made.returns_mapping:
            return {metrics[0].name: value}
        location, names = f"{self._made.address or self.name}, item {item.id!r}", [metric.name for metric in metrics]
        if not isinstance(value, Mapping):
            expected = f"a mapping with {', '.join(names)}"
            raise ConfigurationError(f"{location}: found {type(value).__name__}, expected {expected}")
        for name in value:
            if name not in names:
                raise ConfigurationError(f"{location}: found the metric {name!r}, expected {one_of(names, str(name))}")
        for name in names:
            if name not in value:
                raise ConfigurationError(f"{location}: found no {name!r}, expected a number for each metric")
        return value


class _Question:
    """Asks the model about one answer, and keeps the key of the last judgement. `system` is the judge's system message."""

    def __init__(self, asked: CachedModel, item_id: str, text: str, system: str = "") -> None:
        self._asked = asked
        self._item_id = item_id
        self._text = text
        self._system = system
        self.last_judgement = ""

    async def ask(self, prompt: str, form: type[T]) -> T:
        reply, judgement = await self._asked.ask_about(
            form, lambda _: prompt, item_id=self._item_id, answer=self._text, system=self._system
        )
        self.last_judgement = judgement.key
        return reply

    def blocking(self, loop: asyncio.AbstractEventLoop) -> Callable[[str, type[T]], T]:
        """`ask` for a function that runs in a thread."""

        def ask(prompt: str, form: type[T]) -> T:
            return asyncio.run_coroutine_threadsafe(self.ask(prompt, form), loop).result()

        return ask


@overload
def judge(function: Callable[..., Any], /) -> JudgeFunction: ...


@overload
def judge(
    *, metrics: Sequence[Metric] = ..., prompt: str | Path | None = ..., **declared: Unpack[MetricOptions]
) -> Callable[[Callable[..., Any]], JudgeFunction]: ...


def judge(
    function: Callable[..., Any] | None = None,
    /,
    *,
    metrics: Sequence[Metric] = (),
    prompt: str | Path | None = None,
    **declared: Unpack[MetricOptions],
) -> JudgeFunction | Callable[[Callable[..., Any]], JudgeFunction]:
    """Makes a judge of a function (see `JudgeFunction`); as a decorator with or without arguments, which are those of
    `Metric`, or `metrics`: several that the function gives at once. `prompt` is the file of a template."""

    def decorate(decorated: Callable[..., Any]) -> JudgeFunction:
        return JudgeFunction(decorated, metrics=metrics, prompt=prompt, **declared)

    return decorate if function is None else decorate(function)
