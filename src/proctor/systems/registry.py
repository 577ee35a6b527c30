"""The systems that can be named: built-in ones, those of other packages, and plain functions, from a notebook or a file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from typing_extensions import TypeIs

from proctor.core import (
    Answer,
    ConfigurationError,
    Frame,
    InfrastructureError,
    Item,
    PlainFunction,
    ProctorError,
    Registry,
    System,
    SystemFaultError,
    View,
    count_of,
    first_problem,
    object_in_file,
    unloadable,
)

if TYPE_CHECKING:
    from proctor.media import Sound
    from proctor.models import ModelClient

SYSTEMS: Registry[Callable[..., System]] = Registry("system", group="proctor.systems")
"""By name factories (classes or functions), or functions decorated by `proctor.system`. A factory is called with those
of `models`, `options` and `seed` that its parameters name: the models behind it, its own options as a person wrote
them, and the seed of its draws."""

NO_OPTIONS: Mapping[str, JsonValue] = MappingProxyType({})


def asks_models(name: str) -> bool:
    """Whether a system has models behind it: a method of several steps, not a model with its prompt."""
    return "models" in _taken(SYSTEMS.get(name))


def build_system(
    name: str, models: Sequence[ModelClient] = (), options: Mapping[str, JsonValue] = NO_OPTIONS, *, seed: int = 0
) -> System:
    """The registered system of that name.

    Raises `UnknownNameError` that lists the choices, and `ConfigurationError` for models or options that it does not
    take.
    """
    known: Any = SYSTEMS.get(name)
    takes = _taken(known)
    if models and "models" not in takes:
        raise ConfigurationError(f"{name}: found {count_of(len(models), 'model')}, expected none: it asks no model")
    if options and "options" not in takes:
        raise ConfigurationError(f"{name}: found the option {next(iter(options))!r}, expected none: it has no options")
    if isinstance(known, FunctionSystem):
        return known
    offered = {"models": models, "options": options, "seed": seed}
    built: System = known(**{key: value for key, value in offered.items() if key in takes})
    return built


def _taken(factory: object) -> frozenset[str]:
    if isinstance(factory, FunctionSystem) or not callable(factory):
        return frozenset()
    return frozenset(signature(factory).parameters)


class SystemOptions(BaseModel):
    """The root of the options of systems: what they do not know is forbidden."""

    model_config = ConfigDict(extra="forbid", frozen=True)


T = TypeVar("T", bound=SystemOptions)


def read_options(name: str, schema: type[T], options: Mapping[str, JsonValue]) -> T:
    """The options of a system in its own form. Raises `ConfigurationError` that names the option, what was found and
    the choices."""
    try:
        return schema.model_validate(dict(options))
    except ValidationError as error:
        problem = first_problem(error)
        known = ", ".join(schema.model_fields) or "none"
        reason = f"{name}: option {problem.field!r}: {problem.expected} (its options: {known})"
    raise ConfigurationError(reason)


def only_model(name: str, models: Sequence[ModelClient]) -> ModelClient:
    """The one model of a system that asks one. Raises `ConfigurationError` where there are none or several."""
    if len(models) != 1:
        raise ConfigurationError(f"{name}: found {len(models)} models, expected one (--model): run it once for each")
    return models[0]


_OFFERED = ("item", "view", "question", "options", "instruction", "frames", "sounds")


class FunctionSystem:
    """Answers by a function, sync or async, whose parameters say what it is given:

    `item` (without reference, tags and media), `view` (`view.frames(count=8)`, awaited in an async function),
    `question`, `options`, `instruction` (how the answer is to be written), `frames` (those that the view shows
    unasked) and `sounds` (those that it plays). It returns the text of its answer, or an `Answer`. What it raises is
    recorded as its `error`, with file and line; `RefusalError` as `refused`, `InfrastructureError` and every `OSError`
    as `failed`, to be asked again.

    Called like the function it is the function. `settings` are recorded with the function's name and the hash of its
    source; `formats` are the kinds of answer that it gives (all, where none are named).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        formats: Sequence[str] = (),
        settings: Mapping[str, JsonValue] | None = None,
    ) -> None:
        self._function = PlainFunction(function, offered=_OFFERED, what="a system")
        self.name = name or self._function.name.replace("<lambda>", "lambda")
        self._formats = (formats,) if isinstance(formats, str) else tuple(formats)
        self._settings = dict(settings or {})
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself."""
        return self._function.function(*args, **kwargs)

    def renamed(self, name: str) -> FunctionSystem:
        return FunctionSystem(self._function.function, name=name, formats=self._formats, settings=self._settings)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The function's name, the hash of its source, and what its author named."""
        return {**self._function.settings, **self._settings}

    @property
    def takes_sound(self) -> bool:
        """Whether it can listen: it takes `sounds` or the `view`, or does not look at anything."""
        takes = self._function.takes
        return takes("sounds") or takes("view") or not takes("frames")

    def supports(self, item: Item) -> bool:
        """The formats that its author named, or all."""
        return not self._formats or item.answer.kind in self._formats

    async def answer(self, item: Item, view: View) -> Answer:
        """What the function returns for this item."""
        given: dict[str, Any] = {
            "item": item,
            "view": view if self._function.is_async else BlockingView(view, asyncio.get_running_loop()),
            "question": item.question,
            "options": item.options,
            "instruction": item.answer.instruction(item.options),
        }
        if self._function.takes("frames"):
            given["frames"] = await view.frames()
        if self._function.takes("sounds"):
            from proctor.media import PlaysSounds

            given["sounds"] = await view.sounds() if isinstance(view, PlaysSounds) else []
        try:
            said = await self._function.call(given)
        except ProctorError:
            raise
        except OSError as error:
            raise InfrastructureError(self._function.fault(error)) from error
        except Exception as error:  # other people's code: its bug is its answer, with its place
            raise SystemFaultError(self._function.fault(error)) from error
        if isinstance(said, Answer):
            return said.model_copy(update={"item_id": item.id})
        if not isinstance(said, str):
            raise SystemFaultError(f"{self.name} returned {type(said).__name__}, expected str or Answer")
        return Answer(item_id=item.id, text=said)


class BlockingView:
    """A view for code in a thread: `frames` and `sounds` wait for the event loop to give them."""

    def __init__(self, view: View, loop: asyncio.AbstractEventLoop) -> None:
        self._view = view
        self._loop = loop
        self._thread = threading.get_ident()  # a view is made where the loop runs

    @property
    def condition(self) -> str:
        return self._view.condition

    @property
    def span(self) -> tuple[float, float] | None:
        """Start and end of the clip in seconds of its video; None where there is no video to see."""
        return self._view.span

    def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        """As `View.frames`. Raises `SystemFaultError` in the event loop, which it would block indefinitely."""
        self._check_thread("frames")
        asked = self._view.frames(count=count, fps=fps, window=window)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    def sounds(self, *, window: tuple[float, float] | None = None) -> list[Sound]:
        """As `PlaysSounds.sounds`, in the same way."""
        from proctor.media import PlaysSounds

        self._check_thread("sounds")
        if not isinstance(self._view, PlaysSounds):
            return []
        return asyncio.run_coroutine_threadsafe(self._view.sounds(window=window), self._loop).result()

    def _check_thread(self, asked: str) -> None:
        if threading.get_ident() == self._thread:
            raise SystemFaultError(f"view.{asked}() was called in the event loop: make the function async")


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


def is_file_address(text: str) -> bool:
    """Whether a text names something in a Python file: `path/to/file.py:name`.

    >>> is_file_address("systems/mine.py:answer"), is_file_address("openai:gpt-5.2"), is_file_address("random")
    (True, False, False)
    """
    path, colon, name = text.rpartition(":")
    return bool(colon) and path.endswith(".py") and name.isidentifier()


def system_in_file(address: str, *, name: str = "") -> System:
    """The system that `path/to/file.py:name` names: a function, a class without arguments, or a system.

    Raises `InputError` where it is not there, and `ConfigurationError` where it is none of these.
    """
    found = object_in_file(address)
    if isinstance(found, type):
        try:
            found = found()
        except ProctorError:
            raise
        except (Exception, SystemExit) as error:
            raise unloadable(Path(address.rpartition(":")[0]), error) from error
    if isinstance(found, FunctionSystem) or not is_system(found):
        return _named(found, name)
    made: System = found
    return Renamed(made, name) if name else made


def _named(found: Any, name: str) -> FunctionSystem:
    if not isinstance(found, FunctionSystem):
        if not callable(found):
            raise ConfigurationError(f"found {type(found).__name__}, expected a function or a system")
        return FunctionSystem(found, name=name)
    return found.renamed(name) if name else found


def is_system(found: object) -> TypeIs[System]:
    """Whether something has all that a `System` has."""
    return all(hasattr(found, part) for part in ("name", "settings", "supports", "answer"))


class Renamed:
    """`system`, kept and shown as `name`; everything else is its own."""

    def __init__(self, system: System, name: str) -> None:
        self._system = system
        self.name = name

    @property
    def takes_sound(self) -> bool | None:
        """As the system says; None where it does not."""
        return getattr(self._system, "takes_sound", None)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Those of the system, and what it calls itself."""
        return {**self._system.settings, "renamed_from": self._system.name}

    def supports(self, item: Item) -> bool:
        """As the system says."""
        return self._system.supports(item)

    async def answer(self, item: Item, view: View) -> Answer:
        """As the system answers."""
        return await self._system.answer(item, view)
