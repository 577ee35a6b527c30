"""The systems that can be named: built-in ones, those of other packages, and plain functions, from a notebook or a file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from pydantic import BaseModel, JsonValue, ValidationError
from typing_extensions import TypeIs

from proctor import core

if TYPE_CHECKING:
    from proctor.media import Sound
    from proctor.models import ModelClient, Part

SYSTEMS: core.Registry[Callable[..., core.System]] = core.Registry(
    "system",
    group="proctor.systems",
    fits=lambda thing: callable(thing) or isinstance(thing, FunctionSystem),
    expected="a function with @proctor.system, or a class or function that makes a system",
)
"""Factories (classes or functions) by name, or functions decorated by `proctor.system`. A factory is called with those
of `models`, `options` and `seed` that its parameters name: its models, its options as given, and the seed of its
draws."""

NO_OPTIONS: Mapping[str, JsonValue] = MappingProxyType({})


def asks_models(name: str) -> bool:
    """Whether a system is a method that takes models, or a function with a parameter `ask`."""
    known: object = SYSTEMS.get(name)
    return asks_a_model(known) or "models" in _parameters(known)


def asks_a_model(system: object) -> bool:
    """Whether a system is a function, decorated or not, with a parameter `ask`."""
    if isinstance(system, FunctionSystem):
        return system.asks
    return not is_system(system) and callable(system) and _names_ask(system)


def _names_ask(function: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `ask` without a default of its own."""
    try:
        asked = signature(function).parameters.get("ask")
    except (TypeError, ValueError):  # not written in Python
        return False
    return asked is not None and asked.default is asked.empty


def build_system(
    name: str, models: Sequence[ModelClient] = (), options: Mapping[str, JsonValue] = NO_OPTIONS, *, seed: int = 0
) -> core.System:
    """The registered system of a name.

    Raises `UnknownNameError` with the choices, and `ConfigurationError` for models or options that it does not take.
    """
    known: Any = SYSTEMS.get(name)
    takes = _parameters(known)
    if isinstance(known, FunctionSystem) and known.asks:
        known = known.with_model(only_model(name, models))
    elif models and "models" not in takes:
        raise core.ConfigurationError(
            f"{name}: found {core.count_of(len(models), 'model')}, expected none: it asks no model"
        )
    if options and "options" not in takes:
        raise core.ConfigurationError(
            f"{name}: found the option {next(iter(options))!r}, expected none: it has no options"
        )
    if isinstance(known, FunctionSystem):
        SYSTEMS.check_name(name, known.name, longer=known.asks)
        return known
    offered = {"models": models, "options": options, "seed": seed}
    needed = () if SYSTEMS.is_own(name) else core.needed_parameters(known, *offered)
    if needed:
        expected = (
            "those of models, options and seed that it needs (a function that answers is decorated by @proctor.system)"
        )
        raise core.ConfigurationError(f"{name}: found the parameter {needed[0]!r}, expected {expected}")
    given = {key: value for key, value in offered.items() if key in takes}
    built: core.System = SYSTEMS.make(name, lambda: known(**given), "name", "settings", "supports", "answer")
    SYSTEMS.check_name(name, built.name, longer=True)
    return built


def _parameters(factory: object) -> frozenset[str]:
    if isinstance(factory, FunctionSystem) or not callable(factory):
        return frozenset()
    return frozenset(signature(factory).parameters)


class SystemOptions(core.FrozenModel):
    """The base class of the options of systems: unknown options are refused."""


T = TypeVar("T", bound=SystemOptions)


def read_options(name: str, schema: type[T], options: Mapping[str, JsonValue]) -> T:
    """The options of a system, checked by its schema. Raises `ConfigurationError` that names the option and the
    choices."""
    try:
        return schema.model_validate(dict(options))
    except ValidationError as error:
        problem = core.first_problem(error)
        known = ", ".join(schema.model_fields) or "none"
        reason = f"{name}: option {problem.field!r}: {problem.expected} (its options: {known})"
    raise core.ConfigurationError(reason)


def only_model(name: str, models: Sequence[ModelClient]) -> ModelClient:
    """The model of a system that takes exactly one. Raises `ConfigurationError` for none or several."""
    if len(models) != 1:
        raise core.ConfigurationError(
            f"{name}: found {len(models)} models, expected one (--model): run it once for each"
        )
    return models[0]


_OFFERED = ("item", "view", "question", "options", "instruction", "frames", "sounds", "ask", "repetition")


class FunctionSystem:
    """Answers by a function, sync or async. It is called with those of these that its parameters name:

    `item` (without reference, tags and media), `view` (`view.frames(count=8)`, awaited in an async function),
    `question`, `options`, `instruction` (how to write the answer), `frames` (the view's default frames), `sounds`,
    `repetition` (from 0, of several answers to the question) and `ask` (see `AskModel`): `await ask("Describe this.", *frames)` is a model's reply, `ask(…, form=Form)` its reply as a
    pydantic model. Such a function is run with one model (`--model`), which stands in its name; the usage of all calls is
    that of the answer, and the model's settings are recorded. It returns the text of its answer, or an `Answer`. Its exceptions are recorded as `error`, with file and line;
    `RefusalError` as `refused`, `InfrastructureError` and every `OSError` as `failed`, to be retried.

    The system itself can be called like the function. `settings` are recorded with the function's name and the hash of
    its source; `formats` are the kinds of answer that it gives (default: all).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        formats: Sequence[str] = (),
        settings: Mapping[str, JsonValue] | None = None,
        client: ModelClient | None = None,
    ) -> None:
        self.asks = callable(function) and _names_ask(function)
        offered = _OFFERED if self.asks else [name for name in _OFFERED if name != "ask"]
        self._function = core.PlainFunction(function, offered=offered, what="a system")
        self.made_of = function
        self._client = client
        self.name = name or self._function.name.replace("<lambda>", "lambda")
        self._formats = (formats,) if isinstance(formats, str) else tuple(formats)
        core.check_formats(self.name, self._formats)
        self._settings = dict(settings or {})
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself."""
        return self._function.function(*args, **kwargs)

    def renamed(self, name: str) -> FunctionSystem:
        return self._copy(name, self._client)

    def with_model(self, client: ModelClient) -> FunctionSystem:
        """The system with the model that its function asks, named "name[model]"."""
        return self._copy(f"{self.name}[{client.name}]", client)

    def _copy(self, name: str, client: ModelClient | None) -> FunctionSystem:
        function, settings = self._function.function, self._settings
        return FunctionSystem(function, name=name, formats=self._formats, settings=settings, client=client)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The function's name, the hash of its source, its author's settings, and those of its model."""
        model = {} if self._client is None else self._client.settings
        return {**model, **self._function.settings, **self._settings}

    @property
    def takes_sound(self) -> bool:
        """Whether it can use sound: it takes `sounds` or the `view`, or takes no `frames`."""
        takes = self._function.takes
        return takes("sounds") or takes("view") or not takes("frames")

    def supports(self, item: core.Item) -> bool:
        return not self._formats or item.answer.kind in self._formats

    async def answer(self, item: core.Item, view: core.View) -> core.Answer:
        """The function's result for this item. Raises `ConfigurationError` if it asks a model and has none."""
        if self.asks and self._client is None:
            raise core.ConfigurationError(f"{self.name}: found no model, expected one that it asks (--model)")
        model, loop = None if self._client is None else AskedModel(self._client), asyncio.get_running_loop()
        values: dict[str, Any] = {
            "item": item,
            "view": view if self._function.is_async else BlockingView(view, loop),
            "question": item.question,
            "options": item.options,
            "instruction": item.answer.instruction(item.options),
            "repetition": core.current_repetition().number,
            "ask": None if model is None else model.ask if self._function.is_async else model.blocking(loop),
        }
        if self._function.takes("frames"):
            values["frames"] = await view.frames()
        if self._function.takes("sounds"):
            from proctor.media import PlaysSounds

            values["sounds"] = await view.sounds() if isinstance(view, PlaysSounds) else []
        try:
            result = await self._called(values)
        except core.ProctorError as error:
            if model is not None:
                error.usage = model.usage
            raise
        answer = result if isinstance(result, core.Answer) else core.Answer(item_id=item.id, text=result)
        usage = answer.usage if model is None else model.usage
        return answer.model_copy(update={"item_id": item.id, "usage": usage})

    async def _called(self, values: Mapping[str, Any]) -> str | core.Answer:
        try:
            result = await self._function.call(values)
        except core.ProctorError:
            raise
        except OSError as error:
            raise core.InfrastructureError(self._function.fault(error)) from error
        except Exception as error:  # the code is the user's: its bug is its answer
            raise core.SystemFaultError(self._function.fault(error)) from error
        if not isinstance(result, str | core.Answer):
            raise core.SystemFaultError(f"{self.name} returned {type(result).__name__}, expected str or Answer")
        return result


class BlockingView:
    """A view for code in a thread: `frames` and `sounds` block until the event loop delivers them."""

    def __init__(self, view: core.View, loop: asyncio.AbstractEventLoop) -> None:
        self._view = view
        self._loop = loop
        self._thread = threading.get_ident()  # a view is made where the loop runs

    @property
    def condition(self) -> str:
        return self._view.condition

    @property
    def span(self) -> tuple[float, float] | None:
        """As `View.span`."""
        return self._view.span

    def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[core.Frame]:
        """As `View.frames`. Raises `SystemFaultError` in the event loop, which it would block indefinitely."""
        self._check_thread("frames")
        frames = self._view.frames(count=count, fps=fps, window=window)
        return asyncio.run_coroutine_threadsafe(frames, self._loop).result()

    def sounds(self, *, window: tuple[float, float] | None = None) -> list[Sound]:
        """As `PlaysSounds.sounds`. Raises as `frames`."""
        from proctor.media import PlaysSounds

        self._check_thread("sounds")
        if not isinstance(self._view, PlaysSounds):
            return []
        return asyncio.run_coroutine_threadsafe(self._view.sounds(window=window), self._loop).result()

    def _check_thread(self, method: str) -> None:
        if threading.get_ident() == self._thread:
            raise core.SystemFaultError(f"view.{method}() was called in the event loop: make the function async")


@overload
def system(function: Callable[..., Any], /) -> FunctionSystem: ...


@overload
def system(
    *, name: str = ..., formats: Sequence[str] = ..., settings: Mapping[str, JsonValue] | None = ...
) -> Callable[[Callable[..., Any]], FunctionSystem]: ...


def system(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    formats: Sequence[str] = (),
    settings: Mapping[str, JsonValue] | None = None,
) -> FunctionSystem | Callable[[Callable[..., Any]], FunctionSystem]:
    """Makes a system of a function (see `FunctionSystem`); as a decorator with or without arguments.

    >>> @system(formats=("binary",))
    ... def always_yes(question):
    ...     return "yes"
    >>> always_yes.name, always_yes("Is a clip visible?")
    ('always_yes', 'yes')
    """

    def decorate(decorated: Callable[..., Any]) -> FunctionSystem:
        return FunctionSystem(decorated, name=name, formats=formats, settings=settings)

    return decorate if function is None else decorate(function)


def system_in_file(address: str, *, name: str = "") -> core.System:
    """The system at `path/to/file.py:name`: a function, a class without arguments, or a system.

    Raises `InputError` where there is no such object, or its class needs arguments, and `ConfigurationError` for
    another kind of object.
    """
    found = core.instance_in_file(address)
    if isinstance(found, FunctionSystem):
        return found.renamed(name) if name else found
    if is_system(found):
        return Renamed(found, name) if name else found
    if not callable(found):
        raise core.ConfigurationError(f"{address}: found {type(found).__name__}, expected a function or a system")
    return FunctionSystem(found, name=name)


def is_system(found: object) -> TypeIs[core.System]:
    """Whether an object has all attributes of a `System`."""
    return all(hasattr(found, name) for name in ("name", "settings", "supports", "answer"))


class Renamed:
    """A system under another name."""

    def __init__(self, system: core.System, name: str) -> None:
        self._system = self.made_of = system
        self.name = name

    @property
    def takes_sound(self) -> bool | None:
        """The system's; None where it does not state it."""
        return getattr(self._system, "takes_sound", None)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The system's, with its own name."""
        return {**self._system.settings, "renamed_from": self._system.name}

    def supports(self, item: core.Item) -> bool:
        return self._system.supports(item)

    async def answer(self, item: core.Item, view: core.View) -> core.Answer:
        return await self._system.answer(item, view)


F = TypeVar("F", bound=BaseModel)


class AskModel(Protocol):
    """What an `async` system's function gets as `ask`; a plain one gets the same without `await`.

    `parts` are texts, frames and sounds, sent in this order. Raises what `ModelClient.ask` raises: a refusal, an
    infrastructure error or a model's own error ends the answer unless the function catches it.
    """

    @overload
    async def __call__(self, *parts: Part, system: str = "") -> str: ...
    @overload
    async def __call__(self, *parts: Part, system: str = "", form: type[F]) -> F: ...
    async def __call__(self, *parts: Part, system: str = "", form: type[F] | None = None) -> str | F:
        """The reply's text; with `form`, a pydantic model, the reply as such a value."""


class AskedModel:
    """Asks a model for one answer. `usage` is the sum of all calls, failed ones included."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self.usage = core.Usage()

    async def ask(self, *parts: Part, system: str = "", form: type[BaseModel] | None = None) -> str | BaseModel:
        """As `AskModel`."""
        try:
            if form is not None:
                reply = await self._client.ask(parts, system=system, schema=form)
                self.usage += reply.usage
                return reply.value
            said = await self._client.ask(parts, system=system)
        except core.ProctorError as error:
            self.usage += error.usage or core.Usage()
            error.usage = self.usage  # that of the answer, if this error ends it
            raise
        self.usage += said.usage
        return said.text

    def blocking(self, loop: asyncio.AbstractEventLoop) -> Callable[..., str | BaseModel]:
        """`ask` for a function that runs in a thread."""

        def ask(*parts: Part, **more: Any) -> str | BaseModel:
            return asyncio.run_coroutine_threadsafe(self.ask(*parts, **more), loop).result()

        return ask
