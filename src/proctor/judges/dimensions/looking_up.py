"""What a judge looks up for a case: passages that were found, shown, cited, and kept with its vote."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, Self, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import InputError
from proctor.judges.asked_once import Asks
from proctor.judges.dimensions.asking import load_prompts
from proctor.judges.dimensions.case import Case, speaks_to_judge
from proctor.judges.dimensions.protocol import JudgeSetup
from proctor.judges.retrieval.documents import Chunking
from proctor.judges.retrieval.index import IndexSettings, Match, Opened, load_pair_scorer, open_index
from proctor.judges.retrieval.reranking import ModelReranker, PairReranker, Ranked, Reranker, Sought, passage_shown
from proctor.metrics.text import EMBEDDED_ENCODER
from proctor.models import ModelClient, Part, Reply

INJECTION_IN_PASSAGE = "steering-passage"
"""Flag: a passage that was shown speaks to the judge. It was fenced in like every other."""

CITES_UNSEEN = "cites-unseen-passage"
"""Flag: the judge names a passage that it was not shown."""

_FOR_RERANKING = 3  # this many times the passages shown are read by the reranker

T = TypeVar("T", bound=BaseModel)


class RetrievalOptions(BaseModel):
    """Where passages come from: `documents` is a folder, `index` the place of its index (beside it, where none
    is named). `passages` are shown. `rerank` is "model", "none", or a folder with a cross-encoder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    documents: Path
    index: Path | None = None
    passages: int = Field(default=4, ge=1, le=12)
    rerank: str = "model"
    encoder: str = ""
    size: int = Field(default=160, ge=8, le=2000)
    overlap: int | None = Field(default=None, ge=0)


class Retriever:
    """Finds the passages to show. Raises `InfrastructureError` where a model that is to put them in order does not:
    nothing is shown in another order instead."""

    def __init__(self, opened: Opened, shown: int, reranker: Reranker | None) -> None:
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


def retriever_from(judge: str, setup: JudgeSetup, client: ModelClient, options: RetrievalOptions) -> Retriever:
    """Opens the index, building it where the documents are new. Raises as `open_index`."""
    if options.overlap is not None and options.overlap > options.size // 2:
        raise InputError(judge, "option 'overlap'", found=str(options.overlap), expected="at most half of size")
    settings = IndexSettings(
        chunking=Chunking.of(options.size, options.overlap), encoder=options.encoder or EMBEDDED_ENCODER
    )
    reranker: Reranker | None = None
    if options.rerank == "model":
        reranker = ModelReranker(judge, client, setup.votes, load_prompts("rerank", setup.prompts))
    elif options.rerank != "none":
        reranker = PairReranker(load_pair_scorer(options.rerank), options.rerank)
    return Retriever(open_index(options.documents, options.index, settings), options.passages, reranker)


def passages_told(matches: Sequence[Match], cited: Iterable[int]) -> list[dict[str, JsonValue]]:
    """The passages that were shown, for the record: number, id, source, page, text, how they were found, and
    whether they were cited."""
    named = set(cited)
    return [
        {
            "number": number,
            "id": one.passage.id,
            **passage_shown(one.passage),
            "start": one.passage.start,
            "score": round(one.score, 6),
            "rank_by_words": one.by_words,
            "rank_by_meaning": one.by_meaning,
            "cited": number in named,
        }
        for number, one in enumerate(matches, start=1)
    ]


def passage_flags(case: Case, matches: Sequence[Match], cited: Iterable[int]) -> tuple[str, ...]:
    """What of the passages a person should look at."""
    unseen = any(not 1 <= number <= len(matches) for number in cited)
    speaks = any(
        speaks_to_judge(text, case.dimensions) for one in matches for text in (one.passage.text, one.passage.source)
    )
    return (*((INJECTION_IN_PASSAGE,) if speaks else ()), *((CITES_UNSEEN,) if unseen else ()))


@runtime_checkable
class Cites(Protocol):
    """A reply that names passages by their numbers."""

    @property
    def cited(self) -> tuple[int, ...]: ...


class Cited(BaseModel):
    """A reply together with the passages that it was given: what a vote keeps of both."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    asked: ClassVar[type[BaseModel]]
    matches: ClassVar[tuple[Match, ...]]
    reply: dict[str, JsonValue]
    passages: list[dict[str, JsonValue]]

    @classmethod
    def of(cls, said: BaseModel, cited: Iterable[int]) -> Self:
        """A reply with the passages of this form."""
        told = passages_told(cls.matches, cited)
        return cls.model_validate({"reply": said.model_dump(mode="json"), "passages": told})

    @model_validator(mode="after")
    def _of_the_form(self) -> Self:
        type(self).asked.model_validate(self.reply)
        return self


def cited_form(asked: type[BaseModel], matches: Sequence[Match]) -> type[Cited]:
    """The form of a vote on a reply of the form `asked`, which was given these passages."""

    class WithPassages(Cited):
        pass

    WithPassages.asked = asked
    WithPassages.matches = tuple(matches)
    return WithPassages


class AsksForCited:
    """Puts the question to the model, and adds to its reply the passages that it was given."""

    def __init__(self, client: Asks) -> None:
        self._client = client
        self.name = client.name

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's."""
        return self._client.settings

    async def ask(self, parts: Sequence[Part], *, system: str = "", schema: type[T]) -> Reply[T]:
        """As `ModelClient.ask`; `schema` is of `cited_form`, its `asked` form is one of `Cites`."""
        if not issubclass(schema, Cited):
            raise TypeError(f"{schema.__name__} is no form with passages")
        reply = await self._client.ask(parts, system=system, schema=schema.asked)
        if not isinstance(reply.value, Cites):
            raise TypeError(f"{schema.asked.__name__} names no passages")
        value = schema.of(reply.value, reply.value.cited)
        return Reply(reply.text, value, reply.usage, reply.finish_reason, reply.model, reply.tokens)


def shown_in_prompt(matches: Sequence[Match]) -> list[JsonValue]:
    """Passages as the prompt is filled with them."""
    return [passage_shown(one.passage) for one in matches]
