"""The systems that can be named: those built in, and those other packages add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from proctor.core import ConfigurationError, Registry, System, count_of, first_problem
from proctor.systems.function import FunctionSystem

if TYPE_CHECKING:
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
