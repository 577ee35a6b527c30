"""What every judge shares: a question to a model whose reply is kept as a vote, so that it is paid once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.core import (
    InfrastructureError,
    NoVerdictError,
    RefusalError,
    SystemFaultError,
    Vote,
    VoteBook,
    content_hash,
)
from proctor.models import Part, Reply

T = TypeVar("T", bound=BaseModel)

_OF_THE_MODEL = ("base_url", "weights_sha256", "structured", "model_settings")
"""What tells two models of one name apart: base and tuned weights may be served under the same one."""


class Asks(Protocol):
    """What is asked: a model's client, or something that puts its questions to one."""

    @property
    def name(self) -> str:
        """The model's."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What changes its replies, with the model's own under `model_settings`."""

    async def ask(self, parts: Sequence[Part], *, system: str = "", schema: type[T]) -> Reply[T]:
        """As `ModelClient.ask`."""


class AskedOnce:
    """Asks `client` for replies of a given form and keeps each in `votes`, under the name `judge`.

    A vote is found by what led to it: the model, its server or its weights, its settings, and `content` (the judge's kind, its
    prompt's hash, and everything that the prompt was filled with). The same content asked for by several
    tasks at once is one call. After `give_up_after` replies in a row that did not come, the model is asked no
    more: who waits for several judges does not wait through every retry of one that is down.
    """

    def __init__(self, judge: str, client: Asks, votes: VoteBook, *, give_up_after: int | None = None) -> None:
        self.judge = judge
        self._give_up_after = give_up_after
        self._in_a_row = 0
        self._client = client
        self._votes = votes
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def ask(
        self,
        schema: type[T],
        parts: Sequence[Part],
        *,
        content: Mapping[str, JsonValue],
        item_id: str,
        system: str = "",
        flags: Callable[[T], tuple[str, ...]] = lambda _: (),
    ) -> tuple[T, Vote]:
        """The reply and its vote, from the book or from the model; `flags` says what of the reply a person
        should look at.

        Raises `NoVerdictError` where the model gives none (it declines to judge, or no reply has the form), and
        `InfrastructureError` where no reply comes, or a recorded vote is not of the form.
        """
        key = self._key(content)
        lock = self._asking.setdefault(key, asyncio.Lock())
        async with lock:
            vote = self._votes.get(key)
            if vote is None:
                new = await self._cast(schema, parts, key=key, item_id=item_id, system=system, flags=flags)
                self._votes.put(new)
                vote = self._votes.get(key) or new  # another process may have been first: its vote stays
        try:
            return schema.model_validate(vote.reply), vote
        except ValidationError:
            pass  # the error holds the reply's text, which belongs in no message
        raise InfrastructureError(f"{self.judge}: the recorded vote {vote.key} is not a verdict")

    async def _cast(
        self,
        schema: type[T],
        parts: Sequence[Part],
        *,
        key: str,
        item_id: str,
        system: str,
        flags: Callable[[T], tuple[str, ...]],
    ) -> Vote:
        if self._give_up_after is not None and self._in_a_row >= self._give_up_after:
            raise InfrastructureError(f"{self.judge}: not asked any more after {self._in_a_row} faults in a row")
        try:
            reply = await self._client.ask(parts, system=system, schema=schema)
        except InfrastructureError:
            self._in_a_row += 1
            raise
        except SystemFaultError as error:
            self._in_a_row += 1
            reason = str(error)
        except RefusalError as error:
            reason = str(error)
        else:
            self._in_a_row = 0
            return Vote(
                key=key,
                judge=self.judge,
                item_id=item_id,
                reply=reply.value.model_dump(mode="json"),
                flags=flags(reply.value),
                usage=reply.usage,
            )
        raise NoVerdictError(f"{self.judge}: no verdict: {reason}")

    def _key(self, content: Mapping[str, JsonValue]) -> str:
        asked = {name: value for name in _OF_THE_MODEL if (value := self._client.settings.get(name)) is not None}
        return content_hash({"model": self._client.name, **asked, **content})
