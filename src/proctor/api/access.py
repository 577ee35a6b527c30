"""What answers: models by name and how they are asked, built-in systems, methods, and systems of one's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from proctor.core import InputError, System

if TYPE_CHECKING:
    from pydantic import JsonValue

    from proctor.models import ModelClient, ModelSpec

Model = TypeVar("Model", bound=BaseModel)

SystemLike = str | System | Callable[..., Any]
"""A built-in system or a method by name, `path/to/file.py:function`, a function, or a system."""


@dataclass(frozen=True)
class ModelAccess:
    """How models are asked, whichever they are (see `ModelSpec`)."""

    base_url: str | None = None
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    timeout_s: float = 180.0
    retries: int = 6
    structured: Literal["auto", "native", "tool", "prompted"] = "auto"
    opened: list[ModelClient] = field(default_factory=list, repr=False, compare=False)
    """Every client made here, to be closed by who asks (see `closing`)."""

    def spec(
        self, model: str, base_url: str | None = None, settings: Mapping[str, JsonValue] | None = None
    ) -> ModelSpec:
        """A model by name, at its own server and with settings of its own on top of the shared ones."""
        from proctor.models import ModelSpec

        return checked(
            ModelSpec,
            name=model,
            base_url=base_url or self.base_url,
            settings={**self.settings, **(settings or {})},
            timeout_s=self.timeout_s,
            retries=self.retries,
            structured=self.structured,
        )

    def client(self, model: str | ModelSpec) -> ModelClient:
        """Access to one model."""
        from proctor.models import ModelClient

        self.opened.append(ModelClient(self.spec(model) if isinstance(model, str) else model))
        return self.opened[-1]

    async def check_servers(self) -> None:
        """Raises `ConfigurationError` where a server is not there: before anything is paid or written."""
        from proctor.models import reachable

        await reachable(client.spec.base_url for client in self.opened)

    @asynccontextmanager
    async def closing(self) -> AsyncIterator[None]:
        """Closes the connections at the end, in the event loop that used them."""
        try:
            yield
        finally:
            for client in self.opened:
                await client.aclose()


def build_systems(
    systems: Sequence[SystemLike],
    models: Sequence[str | ModelSpec],
    access: ModelAccess,
    *,
    benchmark: str,
    name: str = "",
    prompt: str = "",
    seed: int = 0,
    **more: Any,
) -> list[System]:
    """The systems that are named or given, and the models with the benchmark's prompt; or one method with the models
    behind it. `more` are `video_as`, and `options` of a method.

    Raises `InputError` where nothing is named, something twice, or what does not go together.
    """
    from proctor.systems import SYSTEMS, asks_models

    if not systems and not models:
        raise InputError(None, "system and model", found="neither", expected="what is to answer")
    for given, what in ((systems, "system"), (models, "model")):
        twice = next((one for one in given if list(given).count(one) > 1), None)
        if twice is not None:
            raise InputError(None, what, found=f"{twice} twice", expected="each once")
    methods = [one for one in systems if isinstance(one, str) and one in SYSTEMS.names() and asks_models(one)]
    if name and len(systems) + len(models) != 1 and not methods:
        raise InputError(None, "name", found=f"{name!r} for several systems", expected="a name for one alone")
    if prompt and (methods or not models):
        raise InputError(None, "prompt", found=prompt, expected="none: it is for models without a method")
    options = more.get("options") or {}
    if methods:
        if len(systems) > 1:
            raise InputError(None, "system", found=", ".join(map(str, systems)), expected="one method alone")
        return [_method(methods[0], models, access, name=name, seed=seed, options=options)]
    if options and (
        len(systems) + len(models) > 1
        or not isinstance(one := [*systems, *models][0], str)
        or one not in SYSTEMS.names()
    ):
        raise InputError(None, "options", found=", ".join(options), expected="one named system alone, which has them")
    built = [_system(one, name=name, seed=seed, options=options) for one in systems]
    return built + _prompted(models, access, benchmark, prompt, name=name, video_as=more.get("video_as", "frames"))


def checked(model: type[Model], **fields: Any) -> Model:
    """A model of these fields. Raises `InputError` that names the first field that does not fit."""
    try:
        return model(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(None, place, found=repr(first["input"])[:80], expected=first["msg"]) from None


def listed(given: Any) -> list[Any]:
    """One thing or several, as a list; None is none.

    >>> listed("a"), listed(["a", "b"]), listed(None)
    (['a'], ['a', 'b'], [])
    """
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple | set | frozenset) else [given]


def _system(given: SystemLike, *, name: str, seed: int, options: Mapping[str, JsonValue]) -> System:
    from proctor.systems import FunctionSystem, Renamed, build_system, is_file_address, is_system, system_in_file

    if isinstance(given, FunctionSystem):
        return given.renamed(name) if name else given
    if isinstance(given, str):
        if is_file_address(given):
            return system_in_file(given, name=name)
        if name and not options:
            raise InputError(None, "name", found=f"{name!r} for {given}", expected="none: it keeps its own name")
        built = build_system(given, options=options, seed=seed)
        return Renamed(built, name) if name else built
    if not is_system(given):
        return FunctionSystem(given, name=name)
    return Renamed(given, name) if name else given


def _method(
    method: str,
    models: Sequence[str | ModelSpec],
    access: ModelAccess,
    *,
    name: str,
    seed: int,
    options: Mapping[str, JsonValue],
) -> System:
    from proctor.systems import Renamed, build_system

    clients = [access.client(model) for model in models]
    built = build_system(method, clients, options, seed=seed)
    return Renamed(built, name) if name else built


def _prompted(
    models: Sequence[str | ModelSpec],
    access: ModelAccess,
    benchmark: str,
    prompt: str,
    *,
    name: str,
    video_as: Literal["frames", "file"],
) -> list[System]:
    if not models:
        return []
    from proctor.core import reader_or_default
    from proctor.systems import ModelSystem, Sampling, prompt_for_benchmark

    template = prompt_for_benchmark(benchmark, prompt)
    sampling, briefing = Sampling(video_as=video_as), reader_or_default(benchmark).briefing
    return [ModelSystem(access.client(model), template, name or None, sampling, briefing) for model in models]
