"""The passages that were found, put in order by something that reads them beside what is sought."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Protocol

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, create_model

from proctor.core import InputError, VoteBook
from proctor.judges.asked_once import AskedOnce, Asks
from proctor.judges.prompt_injection import sanitize
from proctor.judges.retrieval.documents import Passage
from proctor.judges.retrieval.index import Match, PairScorer
from proctor.models import Prompt


@dataclass(frozen=True, slots=True)
class Sought:
    """What passages are to help with, in which language, and for which item."""

    text: str
    language: str
    item_id: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """The passages that help, best first, and the keys of the votes that say so."""

    matches: tuple[Match, ...]
    votes: tuple[str, ...] = ()


class Reranker(Protocol):
    """Puts passages in order."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What changes the order."""

    async def ranked(self, sought: Sought, matches: Sequence[Match], most: int) -> Ranked:
        """At most this many of the matches, best first. Raises `InfrastructureError` where the order can't be had."""


class PairReranker:
    """By a cross-encoder's score of each pair; equal ones stay in their order."""

    def __init__(self, scorer: PairScorer, name: str) -> None:
        self._scorer = scorer
        self._name = name
        self._lock = asyncio.Lock()

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The cross-encoder."""
        return {"rerank": self._name}

    async def ranked(self, sought: Sought, matches: Sequence[Match], most: int) -> Ranked:
        """See `Reranker`."""
        if not matches:
            return Ranked(())
        texts = [one.passage.text for one in matches]
        async with self._lock:  # it is not made for threads
            scores = await asyncio.to_thread(self._scorer, sought.text, texts)
        order = np.argsort(-scores, kind="stable")[:most]
        return Ranked(tuple(matches[int(place)] for place in order))


class ModelReranker:
    """By the judging model itself, which may find that none helps. Its replies are votes; what it is asked
    does not depend on the answer that is judged unless `sought` does."""

    def __init__(self, judge: str, client: Asks, votes: VoteBook, prompts: Mapping[str, Prompt]) -> None:
        self._asked = AskedOnce(f"{judge}/rerank[{client.name}]", client, votes)
        self._prompts = prompts

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The prompts."""
        return {"rerank": "model", "rerank_sha256": {name: one.sha256 for name, one in self._prompts.items()}}

    async def ranked(self, sought: Sought, matches: Sequence[Match], most: int) -> Ranked:
        """See `Reranker`."""
        if not matches:
            return Ranked(())
        prompt = self._prompts.get(sought.language) or self._prompts.get("")
        if prompt is None:
            known = ", ".join(self._prompts)
            raise InputError(sought.item_id, "language", found=repr(sought.language), expected=f"one of {known}")
        shown: list[JsonValue] = [passage_shown(one.passage) for one in matches]
        text = sanitize(sought.text)
        system, user = prompt.render(sought=text, passages=shown, most=most)
        value, vote = await self._asked.ask(
            _order_form(len(matches), most),
            [user],
            system=system,
            item_id=sought.item_id,
            content={
                "judge": "rerank",
                "prompt_sha256": prompt.sha256,
                "sought": text,
                "passages": shown,
                "most": most,
            },
        )
        best: list[int] = value.model_dump()["best"]
        return Ranked(tuple(matches[number - 1] for number in best), (vote.key,))


def passage_shown(passage: Passage) -> dict[str, JsonValue]:
    """A passage as a prompt shows it: nothing in it can end its fence, its source is one line."""
    source = " ".join(sanitize(passage.source).split())
    return {"source": source, "page": passage.page, "text": sanitize(passage.text)}


class _Order(BaseModel):
    """The passages that help."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@lru_cache(maxsize=64)
def _order_form(count: int, most: int) -> type[_Order]:
    def known(best: list[int]) -> list[int]:
        if len(set(best)) != len(best) or any(not 1 <= one <= count for one in best) or len(best) > most:
            raise ValueError(f"at most {most} different numbers from 1 to {count} are expected")
        return best

    fields: dict[str, Any] = {"best": (Annotated[list[int], AfterValidator(known)], ...)}
    form: type[_Order] = create_model("Order", __base__=_Order, __doc__=_Order.__doc__, **fields)
    return form
