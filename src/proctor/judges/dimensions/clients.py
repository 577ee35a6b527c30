"""The models that a judge may ask, each with the settings that the judge wants for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from proctor.core import ConfigurationError, content_hash
from proctor.models import ModelClient, ModelSpec

__all__ = ["ClientPool"]


class ClientPool:
    """Models by their specification, connected when they are asked for. To be closed with `aclose()`.

    What a person sets for a model goes before what a judge would like.
    """

    def __init__(self, specs: Sequence[ModelSpec]) -> None:
        self.specs = tuple(specs)
        self._open: dict[str, ModelClient] = {}

    def only(self, judge: str) -> ModelSpec:
        """The one model. Raises `ConfigurationError` where there is none, or more."""
        if len(self.specs) != 1:
            several = f"{len(self.specs)} models" if self.specs else "no model"
            hint = " (model-ensemble asks several)" if self.specs else ""
            raise ConfigurationError(f"{judge}: expected one model, found {several}{hint}")
        return self.specs[0]

    def some(self, judge: str) -> tuple[ModelSpec, ...]:
        """All models. Raises `ConfigurationError` where there is none, and for one that is named twice."""
        names = [one.name for one in self.specs]
        if not names:
            raise ConfigurationError(f"{judge}: expected a model, found none")
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            raise ConfigurationError(f"{judge}: the model {twice} is named twice")
        return self.specs

    def client(self, spec: ModelSpec, likes: Mapping[str, JsonValue] | None = None) -> ModelClient:
        """Access to a model; `likes` are settings that hold where the specification says nothing else."""
        settings = {**(likes or {}), **spec.settings}
        wanted = ModelSpec.model_validate(spec.model_dump() | {"settings": settings})
        key = content_hash(wanted)
        if key not in self._open:
            self._open[key] = ModelClient(wanted)
        return self._open[key]

    async def aclose(self) -> None:
        """Closes all connections."""
        for one in self._open.values():
            await one.aclose()
        self._open.clear()
