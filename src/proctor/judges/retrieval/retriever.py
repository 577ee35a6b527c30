"""The passages to show: found in an index, and put in order by something that reads them beside what is sought."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, create_model

from proctor.core import JudgementCache
from proctor.judges.cached_model import CachedModel, Prompts, as_said, prompt_for, prompt_hashes
from proctor.judges.prompt_injection import has_injection, sanitize
from proctor.judges.retrieval.documents import Passage
from proctor.judges.retrieval.index import Match, Opened, PairScorer
from proctor.models import ModelClient

INJECTION_IN_PASSAGE = "steering-passage"
"""Flag: a passage that was shown speaks to the judge. It was fenced in like every other."""

CITES_UNSEEN = "cites-unseen-passage"
"""Flag: the judge names a passage that it was not shown."""

_FOR_RERANKING = 3  # this many times the passages shown are read by the reranker


@dataclass(frozen=True, slots=True)
class Sought:
    """What passages are to help with, in which language, and for which item."""

    text: str
    language: str
    item_id: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """The passages that help, best first, and the keys of the judgements that say so."""

    matches: tuple[Match, ...]
    votes: tuple[str, ...] = ()


class PairReranker:
    """Puts passages in order by a cross-encoder's score of each pair; equal ones stay in their order."""

    def __init__(self, scorer: PairScorer, name: str) -> None:
        self._scorer = scorer
        self._lock = asyncio.Lock()
        self.settings: dict[str, JsonValue] = {"rerank": name}

    async def ranked(self, sought: Sought, matches: Sequence[Match], most: int) -> Ranked:
        """At most this many of the matches, best first."""
        if not matches:
            return Ranked(())
        texts = [one.passage.text for one in matches]
        async with self._lock:  # it is not made for threads
            scores = await asyncio.to_thread(self._scorer, sought.text, texts)
        order = np.argsort(-scores, kind="stable")[:most]
        return Ranked(tuple(matches[int(place)] for place in order))


class ModelReranker:
    """Puts passages in order by the judging model itself, which may find that none helps. What it is asked does not depend on
    the answer that is judged unless `sought` does."""

    def __init__(self, judge: str, client: ModelClient, votes: JudgementCache, prompts: Prompts) -> None:
        self._model = CachedModel(f"{judge}/rerank[{client.name}]", client, votes)
        self._prompts = prompts
        self.settings: dict[str, JsonValue] = {"rerank": "model", "rerank_sha256": prompt_hashes(prompts)}

    async def ranked(self, sought: Sought, matches: Sequence[Match], most: int) -> Ranked:
        """At most this many of the matches, best first. Raises `InfrastructureError` where the model does not say."""
        if not matches:
            return Ranked(())
        prompt = prompt_for(self._prompts, sought.item_id, sought.language)
        filled: dict[str, JsonValue] = {
            "sought": sanitize(sought.text),
            "passages": passages_shown(matches),
            "most": most,
        }
        system, user = prompt.render(**filled)
        value, vote = await self._model.ask(
            as_said(_order_form(len(matches), most)),
            [user],
            system=system,
            item_id=sought.item_id,
            content={"judge": "rerank", "prompt_sha256": prompt.sha256, **filled},
        )
        best: list[int] = value.model_dump()["best"]
        return Ranked(tuple(matches[number - 1] for number in best), (vote.key,))


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


class Retriever:
    """Finds the passages to show. Raises `InfrastructureError` where a model that is to put them in order does not:
    nothing is shown in another order instead."""

    def __init__(self, opened: Opened, shown: int, reranker: PairReranker | ModelReranker | None) -> None:
        self._opened = opened
        self._shown = shown
        self._reranker = reranker

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The documents by hash, the index, and how passages are put in order."""
        return {
            "documents": dict(self._opened.documents),
            "index": self._opened.mark,
            "passages": self._shown,
            **({"rerank": "none"} if self._reranker is None else self._reranker.settings),
        }

    async def find(self, queries: Sequence[str], sought: Sought) -> Ranked:
        """The passages that are best for any of the queries and help with what is sought, best first."""
        most = self._shown * (_FOR_RERANKING if self._reranker else 1)
        matches = await asyncio.to_thread(self._opened.index.search, queries, most)
        if self._reranker is None:
            return Ranked(tuple(matches))
        return await self._reranker.ranked(sought, matches, self._shown)


def _shown(passage: Passage) -> dict[str, JsonValue]:
    """A passage as a prompt shows it: nothing in it can end its fence, its source is one line."""
    source = " ".join(sanitize(passage.source).split())
    return {"source": source, "page": passage.page, "text": sanitize(passage.text)}


def passages_shown(matches: Sequence[Match]) -> list[JsonValue]:
    """Passages as a prompt is filled with them."""
    return [_shown(one.passage) for one in matches]


def passages_told(matches: Sequence[Match], cited: Iterable[int]) -> list[JsonValue]:
    """The passages that were shown, for the record: number, id, source, page, text, how they were found, and
    whether they were cited."""
    named = set(cited)
    return [
        {
            "number": number,
            "id": one.passage.id,
            **_shown(one.passage),
            "start": one.passage.start,
            "score": round(one.score, 6),
            "rank_by_words": one.by_words,
            "rank_by_meaning": one.by_meaning,
            "cited": number in named,
        }
        for number, one in enumerate(matches, start=1)
    ]


def passage_flags(matches: Sequence[Match], dimensions: Sequence[str]) -> tuple[str, ...]:
    """The flag of passages of which one speaks to a judge of these dimensions, or nothing."""
    texts = (text for one in matches for text in (one.passage.text, one.passage.source))
    return (INJECTION_IN_PASSAGE,) if any(has_injection(text, dimensions) for text in texts) else ()
