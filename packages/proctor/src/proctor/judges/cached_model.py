"""A model's replies as cached judgements, and the prompts of a judge by language."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary, WeakValueDictionary

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
    Usage,
    content_hash,
    count_of,
    current_repetition,
)
from proctor.judges.prompt_injection import FENCE_CLOSE, FENCE_NOTE, FENCE_OPEN, INJECTION_FLAG, fenced, has_injection
from proctor.models import RejectionWatch, load_prompt

if TYPE_CHECKING:
    from proctor.models import ModelClient, Part, Prompt, Reply

T = TypeVar("T")
U = TypeVar("U")
M = TypeVar("M", bound=BaseModel)

_BUILT_IN = Path(__file__).parent / "dimensions" / "prompts"
_SUFFIX = ".txt.j2"

_OF_THE_MODEL = ("base_url", "weights_sha256", "structured", "model_settings")
"""Settings that tell apart two models of one name: base and tuned weights may be served under the same name."""


@dataclass(frozen=True)
class StoredReply(Generic[T]):
    """How a reply is stored: the model is asked for `form` (None: for text), `dump` turns its reply into the content of a judgement, and
    `load` turns that into what the judge uses. `load` raises pydantic's `ValidationError` for any other content."""

    form: type[BaseModel] | None
    dump: Callable[[Reply[Any]], dict[str, JsonValue]]
    load: Callable[[Mapping[str, JsonValue]], T]


def as_said(form: type[M]) -> StoredReply[M]:
    """A reply that is stored as it came."""
    return StoredReply(form, lambda reply: reply.value.model_dump(mode="json"), form.model_validate)


class _Text(BaseModel):
    text: str


def as_text() -> StoredReply[str]:
    """A reply in words, for an answer format to read."""
    return StoredReply(None, lambda reply: {"text": reply.text}, lambda kept: _Text.model_validate(kept).text)


_UNDER_WAY: WeakKeyDictionary[JudgementCache, WeakValueDictionary[str, asyncio.Lock]] = WeakKeyDictionary()
"""By cache and key, what is asked at this moment, by whichever `CachedModel`."""


@runtime_checkable
class CountsCost(Protocol):
    """A judgement cache that adds up what is paid."""

    def add_cost(self, usage: Usage) -> None:
        """Counts what was paid for a question that no judgement came of."""


class CachedModel:
    """Asks `client` for replies of a given form and stores each in `judgements`, under the name `judge`.

    The key of a judgement is the hash of the model, its server or weights, its settings, and `content` (the judge's
    kind, the hash of its prompt, and everything that the prompt was filled with); and of the repetition, where the judge
    is asked again for the same (`core.current_repetition`). So an answer that a system gave twice is judged once in each
    repetition of the judge. Tasks that ask for the same content
    at the same time share one call, also through several `CachedModel`s of one cache; an error is not shared: the next
    task asks again. After `give_up_after` failures in a row the model is not asked again, so that a
    panel does not wait through every retry of one judge that is down. A server that rejects the first few items alike and
    answers none is a `ConfigurationError` (`RejectionWatch`).
    """

    def __init__(
        self, judge: str, client: ModelClient, judgements: JudgementCache, *, give_up_after: int | None = None
    ) -> None:
        self.judge = judge
        self._give_up_after = give_up_after
        self._failures = 0
        self._client = client
        self._judgements = judgements
        self._watch = RejectionWatch()
        self._locks = _UNDER_WAY.setdefault(judgements, WeakValueDictionary())

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
        """The reply to one question (see `keep`)."""

        async def make() -> Reply[Any]:
            if stored.form is None:
                return await self._client.ask(parts, system=system)
            return await self._client.ask(parts, system=system, schema=stored.form)

        return await self.keep(stored, make, content=content, item_id=item_id, flags=flags)

    async def ask_about(
        self, form: type[M], prompt: Callable[[str], str], *, item_id: str, answer: str, system: str = ""
    ) -> tuple[M, Judgement]:
        """The model's reply about an answer, as a `form`, and its judgement. `prompt` writes the prompt around the answer,
        which it gets sanitized and between fences; the system message, after `system`, says what the fences are. An answer
        with a prompt injection is flagged. Raises as `keep`."""
        text, note = prompt(fenced(answer)), f"{system}\n\n{FENCE_NOTE}" if system else FENCE_NOTE
        return await self.ask(
            as_said(form),
            [text],
            system=note,
            item_id=item_id,
            content={
                "judge": self.judge,
                "system": note,
                "prompt": text,
                "form": content_hash(form.model_json_schema()),
            },
            flags=lambda _: (INJECTION_FLAG,) if has_injection(answer) else (),
        )

    async def keep(
        self,
        stored: StoredReply[T],
        make: Callable[[], Awaitable[Reply[Any]]],
        *,
        content: Mapping[str, JsonValue],
        item_id: str,
        flags: Callable[[T], tuple[str, ...]] = lambda _: (),
    ) -> tuple[T, Judgement]:
        """The reply and its judgement, from the cache or from `make`. `flags` names what a person should look at.

        Raises `NoVerdictError` where the model declines to judge or no reply has the form, and `InfrastructureError`
        where no reply comes or a stored judgement does not have the form.
        """
        key = self._key(content)
        async with self._locks.setdefault(key, asyncio.Lock()):
            judgement = self._judgements.get(key)
            if judgement is None:
                reply = await self._replied(make, item_id)
                try:
                    kept = stored.dump(reply)
                    noted = flags(self._loaded(stored, kept, key))
                except ProctorError:
                    self._add_cost(reply.usage)
                    raise
                new = Judgement(key=key, judge=self.judge, item_id=item_id, reply=kept, flags=noted, usage=reply.usage)
                self._judgements.put(new)
                judgement = self._judgements.get(key) or new  # if another process was first, its judgement stays
        return self._loaded(stored, judgement.reply, key), judgement

    def _loaded(self, stored: StoredReply[T], kept: Mapping[str, JsonValue], key: str) -> T:
        try:
            return stored.load(kept)
        except ValidationError:
            pass  # the error contains the reply's text, which must not be in a message
        raise InfrastructureError(f"{self.judge}: the recorded judgement {key} is not a verdict")

    async def _replied(self, make: Callable[[], Awaitable[Reply[Any]]], item_id: str) -> Reply[Any]:
        if self._give_up_after is not None and self._failures >= self._give_up_after:
            raise InfrastructureError(
                f"{self.judge}: not asked any more after {count_of(self._failures, 'fault')} in a row"
            )
        try:
            reply = await self._watched(make, item_id)
        except ProctorError as error:
            self._add_cost(usage := error.usage or Usage())
            self._failures += isinstance(error, InfrastructureError | SystemFaultError)
            if not isinstance(error, SystemFaultError | RefusalError):
                raise
            none = NoVerdictError(f"{self.judge}: no verdict: {error}").after(usage)
            none.rejected = error.rejected
        else:
            self._failures = 0
            return reply
        raise none

    async def _watched(self, make: Callable[[], Awaitable[Reply[Any]]], item_id: str) -> Reply[Any]:
        await self._watch.begin()
        try:
            reply = await make()
        except ProctorError as error:
            if error.rejected == "request":  # an "item" that is too long rejects no other
                self._watch.rejected(item_id, "", kind=error.rejected, reason=str(error))
            else:
                self._watch.neither()
            raise self._watch.fault or error from error
        except asyncio.CancelledError:
            self._watch.neither()
            raise
        self._watch.answered()
        return reply

    def _add_cost(self, usage: Usage) -> None:
        if usage.requests and isinstance(self._judgements, CountsCost):
            self._judgements.add_cost(usage)

    def _key(self, content: Mapping[str, JsonValue]) -> str:
        asked = {name: value for name in _OF_THE_MODEL if (value := self._client.settings.get(name)) is not None}
        again: dict[str, JsonValue] = {"repetition": number} if (number := current_repetition().number) else {}
        return content_hash({"model": self._client.name, **asked, **content, **again})


Prompts = Mapping[str, "Prompt"]
"""The prompts of a judge, by language."""


class PromptedModel:
    """A `CachedModel` that is asked by the prompts of one `kind`, named `judge` in its judgements."""

    def __init__(
        self,
        judge: str,
        client: ModelClient,
        judgements: JudgementCache,
        kind: str,
        prompts: Prompts,
        *,
        give_up_after: int | None = None,
    ) -> None:
        self._kind, self._prompts = kind, prompts
        self._model = CachedModel(judge, client, judgements, give_up_after=give_up_after)

    @property
    def prompt_hashes(self) -> dict[str, JsonValue]:
        """The hashes of the prompts, by language."""
        return prompt_hashes(self._prompts)

    async def ask(
        self,
        stored: StoredReply[T],
        item_id: str,
        content: Mapping[str, JsonValue],
        *,
        language: str = "",
        shown: Mapping[str, object] | None = None,
        frames: Sequence[Part] = (),
        flags: Callable[[T], tuple[str, ...]] = lambda _: (),
    ) -> tuple[T, Judgement]:
        """The reply and its judgement, keyed by `content`. The prompt is filled with `content`, some of it replaced by
        what is `shown` instead (sanitized text). Raises as `CachedModel.keep`, and `InputError` for a language without
        a prompt."""
        prompt = prompt_for(self._prompts, item_id, language)
        filled = {**content, **(shown or {})}
        system, user = prompt.render(**filled, fence_open=FENCE_OPEN, fence_close=FENCE_CLOSE)
        return await self._model.ask(
            stored,
            [*frames, user],
            system=system,
            item_id=item_id,
            content={"judge": self._kind, "prompt_sha256": prompt.sha256, **content},
            flags=flags,
        )


def load_prompts(kind: str, folder: Path | None = None, built_in: Path | None = None) -> Prompts:
    """The prompts of a kind (`rating`, `rubric` …) by language: KIND_LANGUAGE.txt.j2 in the folder of a task's own
    prompts, and KIND.txt.j2 for all other languages (""). A folder without prompts of this kind leaves the one
    in `built_in` (None: that of the generic judges), which serves every task and language."""
    for position in (folder, built_in or _BUILT_IN):
        files = sorted(position.glob(f"{kind}*{_SUFFIX}")) if position is not None else ()
        named = {file.name.removesuffix(_SUFFIX).removeprefix(kind): file for file in files}
        if named:
            return {name.removeprefix("_"): load_prompt(file) for name, file in named.items()}
    raise InputError(folder, "prompts", found=f"none of the kind {kind!r}", expected=f"{kind}{_SUFFIX}")


def prompt_for(prompts: Prompts, item_id: str, language: str) -> Prompt:
    """The prompt for a language. Raises `InputError`, naming the item, where there is none."""
    found = prompts.get(language) or prompts.get("")
    if found is None:
        known = ", ".join(prompts)
        raise InputError(item_id, "language", found=repr(language), expected=f"one of {known}")
    return found


def prompt_hashes(prompts: Prompts) -> dict[str, JsonValue]:
    """The hashes of prompts, by language."""
    return {language: prompt.sha256 for language, prompt in prompts.items()}


async def several(make: Callable[[T], Awaitable[U]], items: Iterable[T], at_once: int | None = None) -> list[U]:
    """The results of `make` for each item, in their order, at most `at_once` at a time (None: all). After a
    `ProctorError` no further item is started; items under way are finished (their replies are paid for, and cached),
    and then it is raised."""
    gate, faults = nullcontext() if at_once is None else asyncio.Semaphore(at_once), list[ProctorError]()

    async def one(item: T) -> list[U]:
        async with gate:
            try:
                return [] if faults else [await make(item)]
            except ProctorError as error:
                faults.append(error)
                return []

    found = await asyncio.gather(*(one(item) for item in items))
    if faults:
        raise faults[0]
    return [each for some in found for each in some]
