"""What judges of dimensions read beside the case: passages of documents, or the candidate's claims with what speaks for
and against each.

Passages after the retrieval of SUAT-BMI (passages that go with each reference answer) and SloCal-Net, claims after
SloCal-Net: retrieve, ground, reason, score (Peng et al., Kocbek et al. 2026; sections 6.1 and 6.2 of the overview).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, create_model, model_validator

from proctor.core import InputError, JudgementCache
from proctor.judges.cached_model import CachedModel, Prompts, as_said, load_prompts, prompt_for, prompt_hashes, together
from proctor.judges.dimensions.case import Case, injection_flags
from proctor.judges.dimensions.model_judge import Context, with_passages
from proctor.judges.passage_index import CITES_UNSEEN, Match, Opened, PairScorer, passages_shown, passages_told
from proctor.judges.prompt_injection import FENCE_CLOSE, FENCE_OPEN, has_injection, sanitize
from proctor.models import ModelClient

_REFERENCES = 5  # the most reliable ones: each of them is looked up
_LONGEST = 400
_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True)


INJECTION_IN_PASSAGE = "steering-passage"
"""Flag: a passage that was shown speaks to the judge. It was fenced in like every other."""

_FOR_RERANKING = 3  # this many times the passages shown are read by the reranker


@dataclass(frozen=True, slots=True)
class Sought:
    """What passages are to help with, in which language, and for which item of which encounter."""

    text: str
    language: str
    item_id: str
    encounter: str


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
    """Puts passages in order by the judging model itself, which may find that none helps. What it is asked does not
    depend on the answer that is judged unless `sought` does."""

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


def ranked_documents(names: Iterable[str], sought: Sought, most: int) -> tuple[str, ...]:
    """The first documents in the order of their names: those in the folder of the item, else of its encounter, else
    those that lie in no folder.

    >>> names = ["10 burns.md", "e/1/02 ice.md", "e/1/01 water.md"]
    >>> ranked_documents(names, Sought("?", "en", "e/1/en", "e/1"), 25)
    ('e/1/01 water.md', 'e/1/02 ice.md')
    >>> ranked_documents(names, Sought("?", "en", "e/2/en", "e/2"), 25)
    ('10 burns.md',)
    """
    names = sorted(names)
    for folder in (f"{sought.item_id}/", f"{sought.encounter}/", ""):
        found = [one for one in names if one.startswith(folder) and "/" not in one[len(folder) :]]
        if found:
            return tuple(found[:most])
    return ()


class Retriever:
    """Finds the passages to show: in all documents, or in the first `ranked` of those that belong to the item (see
    `ranked_documents`). Raises `InfrastructureError` where a model that is to put them in order does not: nothing is
    shown in another order instead; `InputError` for an item to which no document belongs."""

    def __init__(
        self, opened: Opened, shown: int, reranker: PairReranker | ModelReranker | None, ranked: int = 0
    ) -> None:
        self._opened = opened
        self._shown = shown
        self._reranker = reranker
        self._ranked = ranked

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The documents by hash, the index, and how passages are put in order."""
        return {
            "documents": dict(self._opened.documents),
            "index": self._opened.mark,
            "passages": self._shown,
            **({"ranked": self._ranked} if self._ranked else {}),
            **({"rerank": "none"} if self._reranker is None else self._reranker.settings),
        }

    async def find(self, queries: Sequence[str], sought: Sought) -> Ranked:
        """The passages that are best for any of the queries and help with what is sought, best first."""
        sources = ranked_documents(self._opened.documents, sought, self._ranked) if self._ranked else ()
        if self._ranked and not sources:
            expected = f"some in {sought.encounter}/ or in no folder"
            raise InputError("documents", f"item {sought.item_id}", found="none that belong to it", expected=expected)
        most = self._shown * (_FOR_RERANKING if self._reranker else 1)
        matches = await asyncio.to_thread(self._opened.index.search, queries, most, sources=sources)
        if self._reranker is None:
            return Ranked(tuple(matches))
        return await self._reranker.ranked(sought, matches, self._shown)


def _speaking(case: Case, matches: Sequence[Match]) -> tuple[str, ...]:
    """The flag of passages of which one speaks to a judge of these dimensions, or nothing."""
    names = [one.name for one in case.dimensions]
    texts = (text for one in matches for text in (one.passage.text, one.passage.source))
    return (INJECTION_IN_PASSAGE,) if any(has_injection(text, names) for text in texts) else ()


class Passages:
    """Passages of documents, which the reply cites. What is looked up follows from the question and the references
    alone: all answers to a question are rated beside the same passages, and none can choose its own."""

    cites = True

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    @property
    def settings(self) -> dict[str, JsonValue]:
        """What is looked up where."""
        return self._retriever.settings

    async def context(self, case: Case, judge: str) -> Context:
        """See `ContextProvider`."""
        del judge
        references = [one.text for one in case.sorted_references[:_REFERENCES]]
        text = "\n".join([case.query, *(f"- {one}" for one in references)])
        found = await self._retriever.find(
            [case.query, *references], Sought(text, case.language, case.id, case.encounter)
        )
        shown: dict[str, JsonValue] = {"passages": passages_shown(found.matches)}
        return Context(shown, flags=_speaking(case, found.matches), votes=found.votes, passages=found.matches)


class ClaimList(BaseModel):
    """What the candidate claims."""

    model_config = _STRICT

    claims: list[str]


@lru_cache(maxsize=16)
def _claims_form(most: int) -> type[ClaimList]:
    class Claims(ClaimList):
        __doc__ = ClaimList.__doc__

        claims: list[Annotated[str, Field(min_length=1, max_length=_LONGEST)]] = Field(max_length=most)

    return Claims


class Grounding(BaseModel):
    """What was found of the claim."""

    model_config = _STRICT

    reason: str = Field(description="One sentence that gives the reason.")
    verdict: Literal["supported", "contradicted", "not-found"]
    references: list[int] = Field(max_length=20, description="The numbers of references that say so.")
    passages: list[int] = Field(max_length=20, description="The numbers of passages that say so.")

    @model_validator(mode="after")
    def _has_sources(self) -> Self:
        if (self.verdict == "not-found") != (not self.references and not self.passages):
            raise ValueError("supported and contradicted need a reference or passage, not-found has none")
        return self

    @property
    def cited(self) -> tuple[int, ...]:
        """The passages, each once."""
        return tuple(dict.fromkeys(self.passages))


@dataclass(frozen=True)
class GroundedClaim:
    """A claim with what was found of it, and the keys of the judgements that say so. `matches` are the passages that
    were shown, `references` and `cited` what was named and shown; where that is nothing, the `verdict` is
    "not-found"."""

    claim: str
    said: Grounding
    matches: tuple[Match, ...]
    references: tuple[int, ...]
    votes: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def cited(self) -> list[Match]:
        """The passages that were named and shown."""
        return [self.matches[one - 1] for one in self.said.cited if 1 <= one <= len(self.matches)]

    @property
    def verdict(self) -> str:
        """As said; not found where everything that was named was never shown."""
        return self.said.verdict if self.references or self.cited else "not-found"

    @property
    def told(self) -> JsonValue:
        """For the record."""
        return {
            "claim": self.claim,
            "verdict": self.verdict,
            "said": self.said.verdict,
            "reason": self.said.reason,
            "references": [*self.references],
            "passages": passages_told(self.matches, self.said.cited),
            "vote": self.votes[-1],
        }


class Claims:
    """The candidate's claims, and of each by itself what references and passages say. Every step is a judgement of its
    own.

    The calls for a case are 1 + n · (1 + m): one that splits the candidate into n claims (`most` of them), one that
    grounds each claim, one more for each claim where the model puts its passages in order (m = 1 with rerank=model,
    else 0). A candidate without a letter or digit claims nothing, and takes none.
    """

    cites = False

    def __init__(
        self,
        judge: str,
        client: ModelClient,
        votes: JudgementCache,
        retriever: Retriever,
        *,
        most: int = 8,
        prompts: Path | None = None,
    ) -> None:
        self._most = most
        self._retriever = retriever
        self._splitting = CachedModel(f"{judge}/claims[{client.name}]", client, votes)
        self._grounding = CachedModel(f"{judge}/grounding[{client.name}]", client, votes)
        self._split, self._ground = load_prompts("claims", prompts), load_prompts("grounding", prompts)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The prompts, how many claims are looked at, and what is looked up where."""
        return {
            "claims": self._most,
            "claims_sha256": prompt_hashes(self._split),
            "grounding_sha256": prompt_hashes(self._ground),
            **self._retriever.settings,
        }

    async def context(self, case: Case, judge: str) -> Context:
        """See `ContextProvider`."""
        del judge
        found, votes = await self._grounded(case)
        cited = _each_once([one for claim in found for one in claim.cited])
        number = {match.passage.id: place for place, match in enumerate(cited, start=1)}
        claims: list[JsonValue] = [
            {
                "claim": one.claim,
                "verdict": one.verdict,
                "sources": [
                    *(f"R{place}" for place in one.references),
                    *(f"P{number[match.passage.id]}" for match in one.cited),
                ],
            }
            for one in found
        ]
        return Context(
            {"passages": passages_shown(cited), "claims": claims},
            {"claims": [one.told for one in found]},
            tuple(dict.fromkeys(flag for one in found for flag in one.flags)),
            votes,
        )

    async def _grounded(self, case: Case) -> tuple[list[GroundedClaim], tuple[str, ...]]:
        """The claims with what was found of each, and the keys of all judgements behind that."""
        if not any(char.isalnum() for char in case.candidate):
            return [], ()
        claims, key = await self._claims(case)
        found = await together(self._checked(case, claim) for claim in claims)
        return found, (key, *(vote for one in found for vote in one.votes))

    async def _claims(self, case: Case) -> tuple[list[str], str]:
        """What the candidate claims, each once, and the key of the judgement."""
        prompt = prompt_for(self._split, case.id, case.language)
        asked: dict[str, JsonValue] = {"most": self._most, "query": case.query, "candidate": case.candidate}
        system, user = prompt.render(
            query=sanitize(case.query),
            candidate=sanitize(case.candidate),
            most=self._most,
            fence_open=FENCE_OPEN,
            fence_close=FENCE_CLOSE,
        )
        value, vote = await self._splitting.ask(
            as_said(_claims_form(self._most)),
            [user],
            system=system,
            item_id=case.id,
            content={"judge": "claims", "prompt_sha256": prompt.sha256, **asked},
            flags=lambda _: injection_flags(case),
        )
        return list(dict.fromkeys(sanitize(one) for one in value.claims)), vote.key

    async def _checked(self, case: Case, claim: str) -> GroundedClaim:
        """What the references and the passages that are found for it say of a claim."""
        ranked = await self._retriever.find([claim], Sought(claim, case.language, case.id, case.encounter))
        prompt = prompt_for(self._ground, case.id, case.language)
        references: list[JsonValue] = [sanitize(one.text) for one in case.sorted_references]
        filled: dict[str, JsonValue] = {
            "query": sanitize(case.query),
            "references": references,
            "passages": passages_shown(ranked.matches),
            "claim": claim,
        }
        system, user = prompt.render(**filled)

        def flags(said: Grounding) -> tuple[str, ...]:
            odd = any(not 1 <= one <= len(references) for one in said.references)
            odd = odd or any(not 1 <= one <= len(ranked.matches) for one in said.cited)
            return (*_speaking(case, ranked.matches), *((CITES_UNSEEN,) if odd else ()))

        said, vote = await self._grounding.ask(
            with_passages(Grounding, ranked.matches),
            [user],
            system=system,
            item_id=case.id,
            content={"judge": "grounding", "prompt_sha256": prompt.sha256, **filled},
            flags=flags,
        )
        named = tuple(one for one in dict.fromkeys(said.references) if 1 <= one <= len(references))
        return GroundedClaim(claim, said, ranked.matches, named, (*ranked.votes, vote.key), flags(said))


def _each_once(matches: Sequence[Match]) -> list[Match]:
    return list({one.passage.id: one for one in reversed(matches)}.values())[::-1]
