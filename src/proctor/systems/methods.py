"""Published methods with any model behind them: how one is found by name, and given its models and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.core import ConfigurationError, Registry, System
from proctor.models import ModelClient

__all__ = ["METHODS", "BuildMethod", "method_options", "only_client"]

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
        raise ConfigurationError(
            f"{method}: found {len(clients)} models, expected one (--model): run it once for each"
        )
    return clients[0]


def method_options(method: str, schema: type[T], options: Mapping[str, JsonValue]) -> T:
    """The options as the method's own form, which forbids what it does not know.

    Raises `ConfigurationError` that names the option, what was found and the choices.
    """
    try:
        return schema.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        known = ", ".join(schema.model_fields) or "none"
        reason = f"{method}: option {place!r}: {first['msg']} (its options: {known})"
    raise ConfigurationError(reason)
