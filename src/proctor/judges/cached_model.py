"""What judges share: prompts by language, and a question to a model whose reply is kept as a judgement, so that it is
paid once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.core import (
    InfrastructureError,
    InputError,
    Judgement,
    JudgementCache,
    NoVerdictError,
    ProctorError,
    RefusalError,
    SystemFaultError,
    content_hash,
    count_of,
)
from proctor.models import load_prompt

if TYPE_CHECKING:
    from proctor.models import ModelClient, Part, Prompt, Reply

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_BUILT_IN = Path(__file__).parent / "dimensions" / "prompts"
_SUFFIX = ".txt.j2"

_OF_THE_MODEL = ("base_url", "weights_sha256", "structured", "model_settings")
"""What tells two models of one name apart: base and tuned weights may be served under the same one."""


@dataclass(frozen=True)
class StoredReply(Generic[T]):
    """How a reply is kept: a model is asked for `form`, `dump` makes of its reply what a judgement keeps, and `load` of
    that what the judge goes on with (raising pydantic's `ValidationError` where it is something else)."""

    form: type[BaseModel]
    dump: Callable[[Reply[Any]], dict[str, JsonValue]]
    load: Callable[[Mapping[str, JsonValue]], T]


def as_said(form: type[M]) -> StoredReply[M]:
    """A reply kept as it came."""
    return StoredReply(form, lambda reply: reply.value.model_dump(mode="json"), form.model_validate)


class CachedModel:
    """Asks `client` for replies of a given form and keeps each in `votes`, under the name `judge`.

    A judgement is found by what led to it: the model, its server or its weights, its settings, and `content` (the
    judge's kind, its prompt's hash, and everything that the prompt was filled with). The same content asked for by
    several tasks at once is one call. After `give_up_after` replies in a row that did not come, the model is asked no
    more: what waits for several judges does not wait through every retry of one that is down.
    """

    def __init__(
        self, judge: str, client: ModelClient, votes: JudgementCache, *, give_up_after: int | None = None
    ) -> None:
        self.judge = judge
        self._give_up_after = give_up_after
        self._in_a_row = 0
        self._client = client
        self._votes = votes
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def ask(
        self,
        stored: StoredReply[T],
        parts: Sequence[Part],
        *,
        content: Mapping[str, JsonValue],
        item_id: str,
        system: str = "",
        flags: Callable[[T], tuple[str, ...]] = lambda _: (),
    ) -> tuple[T, Judgement]:
        """The reply to one question, as `keep` keeps it."""

        async def made() -> Reply[Any]:
            return await self._client.ask(parts, system=system, schema=stored.form)

        return await self.keep(stored, made, content=content, item_id=item_id, flags=flags)

    async def keep(
        self,
        stored: StoredReply[T],
        make: Callable[[], Awaitable[Reply[Any]]],
        *,
        content: Mapping[str, JsonValue],
        item_id: str,
        flags: Callable[[T], tuple[str, ...]] = lambda _: (),
    ) -> tuple[T, Judgement]:
        """The reply and its judgement, kept before or made now, however often a model is asked for it; `flags` says what
        of the reply a person should look at.

        Raises `NoVerdictError` where the model gives none (it declines to judge, or no reply has the form), and
        `InfrastructureError` where no reply comes, or a recorded judgement is not of the form.
        """
        key = self._key(content)
        async with self._asking.setdefault(key, asyncio.Lock()):
            vote = self._votes.get(key)
            if vote is None:
                reply = await self._replied(make)
                kept = stored.dump(reply)
                noted = flags(self._loaded(stored, kept, key))
                new = Judgement(key=key, judge=self.judge, item_id=item_id, reply=kept, flags=noted, usage=reply.usage)
                self._votes.put(new)
                vote = self._votes.get(key) or new  # another process may have been first: its judgement stays
        return self._loaded(stored, vote.reply, key), vote

    def _loaded(self, stored: StoredReply[T], kept: Mapping[str, JsonValue], key: str) -> T:
        try:
            return stored.load(kept)
        except ValidationError:
            pass  # the error holds the reply's text, which belongs in no message
        raise InfrastructureError(f"{self.judge}: the recorded vote {key} is not a verdict")

    async def _replied(self, make: Callable[[], Awaitable[Reply[Any]]]) -> Reply[Any]:
        if self._give_up_after is not None and self._in_a_row >= self._give_up_after:
            raise InfrastructureError(
                f"{self.judge}: not asked any more after {count_of(self._in_a_row, 'fault')} in a row"
            )
        try:
            reply = await make()
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
            return reply
        raise NoVerdictError(f"{self.judge}: no verdict: {reason}")

    def _key(self, content: Mapping[str, JsonValue]) -> str:
        asked = {name: value for name in _OF_THE_MODEL if (value := self._client.settings.get(name)) is not None}
        return content_hash({"model": self._client.name, **asked, **content})


Prompts = Mapping[str, "Prompt"]
"""The prompts of a judge, by language."""


def load_prompts(kind: str, folder: Path | None = None) -> Prompts:
    """The prompts of a kind (`rating`, `rubric` …) by language: KIND_LANGUAGE.txt.j2 in the folder of a task's own
    prompts, KIND.txt.j2 for all other languages (""). Where the folder has none of the kind, the built-in one for
    every task and language."""
    for place in (folder, _BUILT_IN):
        files = sorted(place.glob(f"{kind}*{_SUFFIX}")) if place is not None else ()
        named = {one.name.removesuffix(_SUFFIX).removeprefix(kind): one for one in files}
        if named:
            return {name.removeprefix("_"): load_prompt(one) for name, one in named.items()}
    raise InputError(folder, "prompts", found=f"none of the kind {kind!r}", expected=f"{kind}{_SUFFIX}")


def prompt_for(prompts: Prompts, item_id: str, language: str) -> Prompt:
    """The prompt for a language. Raises `InputError`, naming the item, where there is none."""
    found = prompts.get(language) or prompts.get("")
    if found is None:
        known = ", ".join(prompts)
        raise InputError(item_id, "language", found=repr(language), expected=f"one of {known}")
    return found


def prompt_hashes(prompts: Prompts) -> dict[str, JsonValue]:
    """The hashes of prompts, for the record."""
    return {name: one.sha256 for name, one in prompts.items()}


async def together(tasks: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of what is done at once, in order. The first `ProctorError` is raised by itself, and ends the
    others."""
    try:
        async with asyncio.TaskGroup() as group:
            started = [group.create_task(one) for one in tasks]
    except* ProctorError as errors:
        raise errors.exceptions[0] from None
    return [one.result() for one in started]
