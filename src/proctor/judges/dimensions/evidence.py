"""The judge `evidence-judge`: what an answer claims, what speaks for and against each claim, and then a score.

After SloCal-Net (Kocbek et al. 2026, in section 6.2 of the overview): retrieve, ground, reason, score. The
calls for a case are 2 + n · (1 + m): one that splits the candidate into n claims, one that grounds each claim,
one more for each claim where the model puts its passages in order (m = 1 with rerank=model, else 0), and
one that scores. A candidate without a letter or digit claims nothing, and is scored at once: 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import InfrastructureError, ProctorError, VoteBook
from proctor.judges.asked_once import AskedOnce
from proctor.judges.dimensions.asking import CaseAsker, load_prompts, prompt_for, rating_form
from proctor.judges.dimensions.case import Case, DimensionScores, injection_flags
from proctor.judges.dimensions.looking_up import (
    CITES_UNSEEN,
    AsksForCited,
    RetrievalOptions,
    Retriever,
    cited_form,
    passage_flags,
    passages_told,
    retriever_from,
    shown_in_prompt,
)
from proctor.judges.dimensions.protocol import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.judges.prompt_injection import FENCE_CLOSE, FENCE_OPEN, sanitize
from proctor.judges.retrieval.index import Match
from proctor.judges.retrieval.reranking import Ranked, Sought
from proctor.models import ModelClient

Verdict = Literal["supported", "contradicted", "not-found"]

_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True)
_LONGEST = 400


class _Claims(BaseModel):
    """What the candidate claims."""

    model_config = _STRICT

    claims: list[str]


class Grounding(BaseModel):
    """What was found of the claim."""

    model_config = _STRICT

    reason: str = Field(description="One sentence that gives the reason.")
    verdict: Verdict
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
class Grounded:
    """A claim with what was found of it, and the vote that says so. `matches` are the passages that were shown."""

    claim: str
    said: Grounding
    matches: tuple[Match, ...]
    references_shown: int
    vote: str
    flags: tuple[str, ...]

    @property
    def references(self) -> tuple[int, ...]:
        """The references that were named and shown, by number."""
        named = dict.fromkeys(self.said.references)
        return tuple(one for one in named if 1 <= one <= self.references_shown)

    @property
    def cited(self) -> tuple[Match, ...]:
        """The passages that were named and shown."""
        return tuple(self.matches[one - 1] for one in self.said.cited if 1 <= one <= len(self.matches))

    @property
    def verdict(self) -> Verdict:
        """As said; not found where everything that was named was never shown."""
        return self.said.verdict if self.references or self.cited else "not-found"


class ClaimReader:
    """Asks one model what an answer claims, and of each claim by itself what references and passages say. Raises
    `InfrastructureError` where it does not reply as asked, `InputError` for a language without a prompt."""

    def __init__(
        self, judge: str, client: ModelClient, votes: VoteBook, most: int, prompts: Path | None = None
    ) -> None:
        self._most = most
        self._splitting = AskedOnce(f"{judge}/claims[{client.name}]", client, votes)
        self._grounding = AskedOnce(f"{judge}/grounding[{client.name}]", AsksForCited(client), votes)
        self._split, self._ground = load_prompts("claims", prompts), load_prompts("grounding", prompts)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The prompts, and how many claims are looked at."""
        return {
            "claims": self._most,
            "claims_sha256": {name: one.sha256 for name, one in self._split.items()},
            "grounding_sha256": {name: one.sha256 for name, one in self._ground.items()},
        }

    async def claims(self, case: Case) -> tuple[tuple[str, ...], str]:
        """What the candidate claims, each once, and the key of the vote."""
        prompt = prompt_for(self._split, case.id, case.language)
        system, user = prompt.render(
            query=sanitize(case.query),
            candidate=sanitize(case.candidate),
            most=self._most,
            fence_open=FENCE_OPEN,
            fence_close=FENCE_CLOSE,
        )
        value, vote = await self._splitting.ask(
            _claims_form(self._most),
            [user],
            system=system,
            item_id=case.id,
            content={
                "judge": "claims",
                "prompt_sha256": prompt.sha256,
                "most": self._most,
                "query": case.query,
                "candidate": case.candidate,
            },
            flags=lambda _: injection_flags(case),
        )
        return tuple(dict.fromkeys(sanitize(one) for one in value.claims)), vote.key

    async def ground(self, case: Case, claim: str, matches: Sequence[Match]) -> Grounded:
        """What the references and these passages say of a claim."""
        prompt = prompt_for(self._ground, case.id, case.language)
        references: list[JsonValue] = [sanitize(one.text) for one in case.sorted_references]
        passages = shown_in_prompt(matches)
        filled: dict[str, JsonValue] = {
            "query": sanitize(case.query),
            "references": references,
            "passages": passages,
            "claim": claim,
        }
        system, user = prompt.render(**filled)

        def flags(said: Grounding) -> tuple[str, ...]:
            odd = any(not 1 <= one <= len(references) for one in said.references)
            found = passage_flags(case, matches, said.cited)
            return (*found, *((CITES_UNSEEN,) if odd and CITES_UNSEEN not in found else ()))

        value, vote = await self._grounding.ask(
            cited_form(Grounding, matches),
            [user],
            system=system,
            item_id=case.id,
            content={"judge": "grounding", "prompt_sha256": prompt.sha256, **filled},
            flags=lambda said: flags(Grounding.model_validate(said.reply)),
        )
        said = Grounding.model_validate(value.reply)
        return Grounded(claim, said, tuple(matches), len(references), vote.key, flags(said))


@lru_cache(maxsize=16)
def _claims_form(most: int) -> type[_Claims]:
    class Claims(_Claims):
        __doc__ = _Claims.__doc__

        claims: list[Annotated[str, Field(min_length=1, max_length=_LONGEST)]] = Field(max_length=most)

    return Claims


NAME = "evidence-judge"


class EvidenceJudge:
    """Asks one model for the candidate's claims, for what references and passages say of each, and for a score
    on each dimension in view of that. Every step is a vote of its own."""

    def __init__(
        self, client: ModelClient, votes: VoteBook, retriever: Retriever, *, claims: int = 8, folder: Path | None = None
    ) -> None:
        self._client = client
        self._retriever = retriever
        self._reader = ClaimReader(NAME, client, votes, claims, folder)
        self._asker = CaseAsker(NAME, self.name, client, votes, load_prompts("rating", folder), {"persona": ""})

    @property
    def name(self) -> str:
        """With the model."""
        return f"{NAME}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, the prompts, and what is looked up where."""
        return {**self._client.settings, **self._asker.settings, **self._reader.settings, **self._retriever.settings}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        try:
            checked, votes = await self._checked(case)
        except InfrastructureError as error:
            return DimensionScores.none(case, str(error), flags=injection_flags(case))
        cited = _each_once([one for claim in checked for one in claim.cited])
        number = {match.passage.id: place for place, match in enumerate(cited, start=1)}
        more: dict[str, JsonValue] = {
            "passages": shown_in_prompt(cited),
            "claims": [_in_prompt(one, number) for one in checked],
        }
        flags = tuple(dict.fromkeys(flag for one in checked for flag in one.flags))
        heard = await self._asker.ask(
            case, rating_form(case.dimensions), more=more, flags=lambda said: (*case.breaks(said.scores), *flags)
        )
        told: dict[str, JsonValue] = {"judge": self.name, "claims": [_told(one) for one in checked]}
        if heard.value is None or heard.vote is None:
            missing = {one.name: heard.reason for one in case.dimensions}
            return DimensionScores(missing=missing, flags=(*heard.flags, *flags), evidence=(told,), votes=tuple(votes))
        values = {name: case.rounded(value) for name, value in heard.value.scores.items()}
        return DimensionScores(
            values=values,
            breaks=case.breaks(values),
            flags=(*heard.flags, *flags),
            evidence=({**told, "reason": heard.value.reason, **heard.pictures.evidence},),
            votes=(*votes, heard.vote.key),
        )

    async def _checked(self, case: Case) -> tuple[list[Grounded], list[str]]:
        """The claims with what was found of each, and the keys of all votes behind that."""
        if not any(char.isalnum() for char in case.candidate):
            return [], []
        claims, vote = await self._reader.claims(case)
        try:
            async with asyncio.TaskGroup() as tasks:
                asked = [tasks.create_task(self._one(case, claim)) for claim in claims]
        except* ProctorError as errors:
            raise errors.exceptions[0] from None
        found = [task.result() for task in asked]
        keys = [vote]
        for ranked, grounded in found:
            keys += [*ranked.votes, grounded.vote]
        return [grounded for _, grounded in found], keys

    async def _one(self, case: Case, claim: str) -> tuple[Ranked, Grounded]:
        ranked = await self._retriever.find([claim], Sought(claim, case.language, case.id))
        return ranked, await self._reader.ground(case, claim, ranked.matches)


def _each_once(matches: Sequence[Match]) -> list[Match]:
    return list({one.passage.id: one for one in reversed(matches)}.values())[::-1]


def _in_prompt(one: Grounded, number: dict[str, int]) -> JsonValue:
    names: list[JsonValue] = [f"R{place}" for place in one.references]
    names += [f"P{number[match.passage.id]}" for match in one.cited]
    return {"claim": one.claim, "verdict": one.verdict, "sources": names}


def _told(one: Grounded) -> JsonValue:
    references: list[JsonValue] = [*one.references]
    passages: list[JsonValue] = [*passages_told(one.matches, one.said.cited)]
    return {
        "claim": one.claim,
        "verdict": one.verdict,
        "said": one.said.verdict,
        "reason": one.said.reason,
        "references": references,
        "passages": passages,
        "vote": one.vote,
    }


class _Options(RetrievalOptions):
    claims: int = Field(default=8, ge=1, le=24)
    passages: int = Field(default=3, ge=1, le=12)
    rerank: str = "none"


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Splits the candidate into claims, holds each against references and passages, then scores.

    Options: documents=FOLDER, claims=8, passages=3 (for each claim), rerank=none (or model, or a cross-encoder's
    folder), index, encoder, size, overlap. 2 + claims calls for an answer. Raises as `retrieval-judge`.
    """
    options = read_options(NAME, _Options, setup.options)
    client = setup.clients.client(setup.clients.only(NAME), {"temperature": 0.0})
    retriever = retriever_from(NAME, setup, client, options)
    return EvidenceJudge(client, setup.votes, retriever, claims=options.claims, folder=setup.prompts)
