"""The systems that can be named: those built in, and those other packages add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.core import ConfigurationError, Registry, System, first_problem
from proctor.systems.function import FunctionSystem

if TYPE_CHECKING:
    from proctor.models import ModelClient

SYSTEMS: Registry[Callable[..., System]] = Registry("system", group="proctor.systems")
"""By name factories `build(*, seed=0) -> System`, or functions decorated by `proctor.system`; built-in ones are entry
points like everybody's."""


def build_system(name: str, *, seed: int = 0) -> System:
    """The registered system of that name. Raises `UnknownNameError` that lists the choices."""
    known = SYSTEMS.get(name)
    decorated: object = known
    return decorated if isinstance(decorated, FunctionSystem) else known(seed=seed)


T = TypeVar("T", bound=BaseModel)


class BuildMethod(Protocol):
    """Makes a system that asks `clients`; `options` are the method's own, as written by a person.

    Raises `ConfigurationError` for the wrong number of models, or an option that it does not have.
    """

    def __call__(
        self, clients: Sequence[ModelClient], *, seed: int = 0, options: Mapping[str, JsonValue]
    ) -> System: ...


METHODS: Registry[BuildMethod] = Registry("method", group="proctor.methods")
"""Factories by name; built-in ones are entry points like everybody's."""


def only_client(method: str, clients: Sequence[ModelClient]) -> ModelClient:
    """The one model of a method that asks one. Raises `ConfigurationError` where there are none or several."""
    if len(clients) != 1:
        raise ConfigurationError(f"{method}: found {len(clients)} models, expected one (--model): run it once for each")
    return clients[0]


def method_options(method: str, schema: type[T], options: Mapping[str, JsonValue]) -> T:
    """The options as the method's own form, which forbids what it does not know.

    Raises `ConfigurationError` that names the option, what was found and the choices.
    """
    try:
        return schema.model_validate(dict(options))
    except ValidationError as error:
        problem = first_problem(error)
        known = ", ".join(schema.model_fields) or "none"
        reason = f"{method}: option {problem.field!r}: {problem.expected} (its options: {known})"
    raise ConfigurationError(reason)
