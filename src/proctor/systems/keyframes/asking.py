"""The calls of one answer, one after the other, with what they consumed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, JsonValue

from proctor.core import Frame, Usage
from proctor.models import ModelClient, Part, Prompt

__all__ = ["Asking"]

T = TypeVar("T", bound=BaseModel)


class Asking:
    """Asks `client` for one answer and counts: `usage` sums all requests, `calls` the questions asked (a
    question that is asked again because the reply was no reply is one), `images` the pictures in them.

    One call at a time: an answer's stopwatch can't tell several apart.
    """

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self.usage = Usage()
        self.calls = 0
        self.images = 0

    async def ask(
        self, prompt: Prompt, schema: type[T], shown: Sequence[Part] = (), /, **values: object
    ) -> T:
        """What is shown, then the prompt filled in; the reply in its form.

        Raises `MachineryError` (no reply, none of the form), `RefusalError`, `ConfigurationError`.
        """
        system, user = prompt.render(**values)
        self.calls += 1
        self.images += sum(isinstance(part, Frame) for part in shown)
        reply = await self._client.ask([*shown, user], system=system, schema=schema)
        self.usage += reply.usage
        return reply.value

    def counts(self) -> dict[str, JsonValue]:
        """For an answer's `extra`."""
        return {"calls": self.calls, "images": self.images}
