"""Contexts from documents: retrieved passages, or the candidate's claims with the evidence for and against each.

Passages follow the retrieval of SUAT-BMI (passages that match each reference answer) and SloCal-Net, claims follow
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
from pydantic import AfterValidator, ConfigDict, Field, JsonValue, create_model, model_validator

from proctor.core import FrozenModel, InputError, JudgementCache
from proctor.judges.cached_model import PromptedModel, Prompts, as_said, load_prompts, several
from proctor.judges.dimensions.case import Case, injection_flags
from proctor.judges.dimensions.model_judge import Context, with_passages
from proctor.judges.passage_index import CITES_UNSEEN, Match, Opened, PairScorer, passage_records, passages_shown
from proctor.judges.prompt_injection import has_injection, sanitize
from proctor.models import ModelClient

_MAX_REFERENCES = 5  # the most reliable ones; each is a query
_MAX_CLAIM = 400  # characters


INJECTION_IN_PASSAGE = "prompt-injection-in-passage"
"""Flag: a passage that was shown tries to instruct the judge. It was fenced like every other."""

_FOR_RERANKING = 3  # the reranker reads this many times the passages that are shown


@dataclass(frozen=True, slots=True)
class Sought:
    """The text that passages should help with, its language, and the item and encounter that it belongs to."""

    text: str
    language: str
    item_id: str
    encounter: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages, best first, and the keys of the judgements that ranked them."""

    matches: tuple[Match, ...]
    judgements: tuple[str, ...] = ()


class PairReranker:
    """Ranks passages by a cross-encoder's score of each pair; ties keep their order."""

    def __init__(self, scorer: PairScorer, name: str) -> None:
        self._scorer = scorer
        self._lock = asyncio.Lock()
        self.settings: dict[str, JsonValue] = {"rerank": name}

    async def ranked(self, sought: Sought, matches: Sequence[Match], most: int) -> Ranked:
        """At most `most` of the matches, best first."""
        if not matches:
            return Ranked(())
        texts = [match.passage.text for match in matches]
        async with self._lock:  # the scorer is not thread-safe
            scores = await asyncio.to_thread(self._scorer, sought.text, texts)
        order = np.argsort(-scores, kind="stable")[:most]
        return Ranked(tuple(matches[int(position)] for position in order))


class ModelReranker:
    """Ranks passages by the judging model itself, which may find that none helps. The request does not depend on the
    judged answer unless `sought` does."""

    def __init__(self, judge: str, client: ModelClient, judgements: JudgementCache, prompts: Prompts) -> None:
        self._model = PromptedModel(f"{judge}/rerank[{client.name}]", client, judgements, "rerank", prompts)
        self.settings: dict[str, JsonValue] = {"rerank": "model", "rerank_sha256": self._model.prompt_hashes}

    async def ranked(self, sought: Sought, matches: Sequence[Match], most: int) -> Ranked:
        """At most `most` of the matches, best first. Raises `InfrastructureError` if the model gives no reply."""
        if not matches:
            return Ranked(())
        value, judgement = await self._model.ask(
            as_said(_order_form(len(matches), most)),
            sought.item_id,
            {"sought": sanitize(sought.text), "passages": passages_shown(matches), "most": most},
            language=sought.language,
        )
        best: list[int] = value.model_dump()["best"]
        return Ranked(tuple(matches[number - 1] for number in best), (judgement.key,))


class _Order(FrozenModel):
    """The passages that help."""

    model_config = ConfigDict(strict=True)


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
    """The first `most` documents by name: those in the folder of the item, else of its encounter, else those in no
    folder.

    >>> names = ["10 burns.md", "e/1/02 ice.md", "e/1/01 water.md"]
    >>> ranked_documents(names, Sought("?", "en", "e/1/en", "e/1"), 25)
    ('e/1/01 water.md', 'e/1/02 ice.md')
    >>> ranked_documents(names, Sought("?", "en", "e/2/en", "e/2"), 25)
    ('10 burns.md',)
    """
    names = sorted(names)
    for folder in (f"{sought.item_id}/", f"{sought.encounter}/", ""):
        found = [name for name in names if name.startswith(folder) and "/" not in name[len(folder) :]]
        if found:
            return tuple(found[:most])
    return ()


class Retriever:
    """Finds the passages to show: in all documents, or with `ranked` in the first of those that belong to the item (see
    `ranked_documents`). Raises `InfrastructureError` if the reranking model gives no reply (there is no fallback order),
    and `InputError` for an item without documents."""

    def __init__(
        self, opened: Opened, shown: int, reranker: PairReranker | ModelReranker | None, ranked: int = 0
    ) -> None:
        self._opened, self._shown, self._reranker, self._ranked = opened, shown, reranker, ranked

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The documents by hash, the index, and the ranking of passages."""
        return {
            "documents": dict(self._opened.documents),
            "index": self._opened.mark,
            "passages": self._shown,
            **({"ranked": self._ranked} if self._ranked else {}),
            **({"rerank": "none"} if self._reranker is None else self._reranker.settings),
        }

    async def find(self, queries: Sequence[str], sought: Sought) -> Ranked:
        """The best passages for any of the queries, reranked by `sought`, best first."""
        sources = ranked_documents(self._opened.documents, sought, self._ranked) if self._ranked else ()
        if self._ranked and not sources:
            expected = f"some in {sought.encounter}/ or in no folder"
            raise InputError("documents", f"item {sought.item_id}", found="none that belong to it", expected=expected)
        most = self._shown * (_FOR_RERANKING if self._reranker else 1)
        matches = await asyncio.to_thread(self._opened.index.search, queries, most, sources=sources)
        if self._reranker is None:
            return Ranked(tuple(matches))
        return await self._reranker.ranked(sought, matches, self._shown)


def _injection_in(case: Case, matches: Sequence[Match]) -> tuple[str, ...]:
    """The flag of passages of which one tries to instruct a judge of these dimensions, or nothing."""
    names = [dimension.name for dimension in case.dimensions]
    texts = (text for match in matches for text in (match.passage.text, match.passage.source))
    return (INJECTION_IN_PASSAGE,) if any(has_injection(text, names) for text in texts) else ()


class Passages:
    """Passages of documents, which the reply cites. The queries are the question and the references alone, so that all
    answers to a question are rated with the same passages and no answer can choose its own."""

    cites = True

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The settings of the retriever."""
        return self._retriever.settings

    async def context(self, case: Case) -> Context:
        """See `ContextProvider`."""
        references = [reference.text for reference in case.sorted_references[:_MAX_REFERENCES]]
        text = "\n".join([case.query, *(f"- {reference}" for reference in references)])
        found = await self._retriever.find(
            [case.query, *references], Sought(text, case.language, case.id, case.encounter)
        )
        shown: dict[str, JsonValue] = {"passages": passages_shown(found.matches)}
        return Context(
            shown, flags=_injection_in(case, found.matches), judgements=found.judgements, passages=found.matches
        )


class ClaimList(FrozenModel):
    """What the candidate claims."""

    model_config = ConfigDict(strict=True)

    claims: list[str]


@lru_cache(maxsize=16)
def _claims_form(most: int) -> type[ClaimList]:
    class Claims(ClaimList):
        __doc__ = ClaimList.__doc__

        claims: list[Annotated[str, Field(min_length=1, max_length=_MAX_CLAIM)]] = Field(max_length=most)

    return Claims


class Grounding(FrozenModel):
    """What was found of the claim."""

    model_config = ConfigDict(strict=True)

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
        """The numbers of the passages, each once."""
        return tuple(dict.fromkeys(self.passages))


@dataclass(frozen=True)
class GroundedClaim:
    """A claim, the judge's reply about it (`said`), and the keys of the judgements behind it. `matches` are the passages
    that were shown; `references` and `cited` are the sources that were named and shown."""

    claim: str
    said: Grounding
    matches: tuple[Match, ...]
    references: tuple[int, ...]
    judgements: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def cited(self) -> list[Match]:
        """The passages that were named and shown."""
        return [self.matches[one - 1] for one in self.said.cited if 1 <= one <= len(self.matches)]

    @property
    def verdict(self) -> str:
        """The verdict of the reply, or "not-found" if no source that it names was shown."""
        return self.said.verdict if self.references or self.cited else "not-found"

    @property
    def record(self) -> JsonValue:
        """The claim as evidence."""
        return {
            "claim": self.claim,
            "verdict": self.verdict,
            "said": self.said.verdict,
            "reason": self.said.reason,
            "references": [*self.references],
            "passages": passage_records(self.matches, self.said.cited),
            "judgement": self.judgements[-1],
        }


class Claims:
    """The candidate's claims, each checked by itself against references and passages. Every step is a judgement.

    A case takes 1 + n · (1 + m) calls: one splits the candidate into n claims (at most `most`), one grounds each claim,
    and with rerank=model (m = 1, else 0) one more per claim ranks its passages. A candidate without a letter or digit
    has no claims and takes no call.
    """

    cites = False

    def __init__(
        self,
        judge: str,
        client: ModelClient,
        judgements: JudgementCache,
        retriever: Retriever,
        *,
        most: int = 8,
        prompts: Path | None = None,
    ) -> None:
        self._most = most
        self._retriever = retriever
        self._splitting, self._grounding = (
            PromptedModel(f"{judge}/{kind}[{client.name}]", client, judgements, kind, load_prompts(kind, prompts))
            for kind in ("claims", "grounding")
        )

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The prompts, the number of claims, and the settings of the retriever."""
        return {
            "claims": self._most,
            "claims_sha256": self._splitting.prompt_hashes,
            "grounding_sha256": self._grounding.prompt_hashes,
            **self._retriever.settings,
        }

    async def context(self, case: Case) -> Context:
        """See `ContextProvider`."""
        found, judgements = await self._grounded(case)
        cited = _each_once([match for claim in found for match in claim.cited])
        number = {match.passage.id: position for position, match in enumerate(cited, start=1)}
        claims: list[JsonValue] = [
            {
                "claim": grounded_claim.claim,
                "verdict": grounded_claim.verdict,
                "sources": [
                    *(f"R{position}" for position in grounded_claim.references),
                    *(f"P{number[match.passage.id]}" for match in grounded_claim.cited),
                ],
            }
            for grounded_claim in found
        ]
        return Context(
            {"passages": passages_shown(cited), "claims": claims},
            {"claims": [grounded_claim.record for grounded_claim in found]},
            tuple(dict.fromkeys(flag for grounded_claim in found for flag in grounded_claim.flags)),
            judgements,
        )

    async def _grounded(self, case: Case) -> tuple[list[GroundedClaim], tuple[str, ...]]:
        """The checked claims, and the keys of all judgements behind them."""
        if not any(char.isalnum() for char in case.candidate):
            return [], ()
        claims, key = await self._claims(case)
        found = await several(lambda claim: self._check(case, claim), claims)
        return found, (key, *(judgement for grounded_claim in found for judgement in grounded_claim.judgements))

    async def _claims(self, case: Case) -> tuple[list[str], str]:
        """The candidate's claims, each once, and the key of the judgement."""
        value, judgement = await self._splitting.ask(
            as_said(_claims_form(self._most)),
            case.id,
            {"most": self._most, "query": case.query, "candidate": case.candidate},
            language=case.language,
            shown={"query": sanitize(case.query), "candidate": sanitize(case.candidate)},
            flags=lambda _: injection_flags(case),
        )
        return list(dict.fromkeys(sanitize(claim) for claim in value.claims)), judgement.key

    async def _check(self, case: Case, claim: str) -> GroundedClaim:
        """Checks a claim against the references and the passages that are found for it."""
        ranked = await self._retriever.find([claim], Sought(claim, case.language, case.id, case.encounter))
        references: list[JsonValue] = [sanitize(reference.text) for reference in case.sorted_references]

        def flags(said: Grounding) -> tuple[str, ...]:
            odd = any(not 1 <= reference <= len(references) for reference in said.references)
            odd = odd or any(not 1 <= one <= len(ranked.matches) for one in said.cited)
            return (*_injection_in(case, ranked.matches), *((CITES_UNSEEN,) if odd else ()))

        said, judgement = await self._grounding.ask(
            with_passages(Grounding, ranked.matches),
            case.id,
            {
                "query": sanitize(case.query),
                "references": references,
                "passages": passages_shown(ranked.matches),
                "claim": claim,
            },
            language=case.language,
            flags=flags,
        )
        named = tuple(reference for reference in dict.fromkeys(said.references) if 1 <= reference <= len(references))
        return GroundedClaim(claim, said, ranked.matches, named, (*ranked.judgements, judgement.key), flags(said))


def _each_once(matches: Sequence[Match]) -> list[Match]:
    return list({match.passage.id: match for match in reversed(matches)}.values())[::-1]
