"""A model in the hands of a function: any number of calls for one answer, with the sum of their usage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from pydantic import BaseModel

from proctor.core import ProctorError, Usage

if TYPE_CHECKING:
    from proctor.models import ModelClient, Part

T = TypeVar("T", bound=BaseModel)


class AskModel(Protocol):
    """What an `async` system's function gets as `ask`; a plain one gets the same without `await`.

    `parts` are texts, frames and sounds, sent in this order. Raises what `ModelClient.ask` raises: a refusal, an
    infrastructure error or a model's own error ends the answer unless the function catches it.
    """

    @overload
    async def __call__(self, *parts: Part, system: str = "") -> str: ...
    @overload
    async def __call__(self, *parts: Part, system: str = "", form: type[T]) -> T: ...
    async def __call__(self, *parts: Part, system: str = "", form: type[T] | None = None) -> str | T:
        """The reply's text; with `form`, a pydantic model, the reply as such a value."""


class AskedModel:
    """Asks a model for one answer. `usage` is the sum of all calls, failed ones included."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self.usage = Usage()

    async def ask(self, *parts: Part, system: str = "", form: type[BaseModel] | None = None) -> str | BaseModel:
        """As `AskModel`."""
        try:
            if form is not None:
                reply = await self._client.ask(parts, system=system, schema=form)
                self.usage += reply.usage
                return reply.value
            said = await self._client.ask(parts, system=system)
        except ProctorError as error:
            self.usage += error.usage or Usage()
            error.usage = self.usage  # that of the answer, if this error ends it
            raise
        self.usage += said.usage
        return said.text

    def blocking(self, loop: asyncio.AbstractEventLoop) -> Callable[..., str | BaseModel]:
        """`ask` for a function that runs in a thread."""

        def ask(*parts: Part, **more: Any) -> str | BaseModel:
            return asyncio.run_coroutine_threadsafe(self.ask(*parts, **more), loop).result()

        return ask
