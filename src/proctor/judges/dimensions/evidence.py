"""The judge `evidence-judge`: what an answer claims, what speaks for and against each claim, and then a score.

After SloCal-Net (Kocbek et al. 2026, in section 6.2 of the overview): retrieve, ground, reason, score. The
calls for a case are 2 + n · (1 + m): one that splits the candidate into n claims, one that grounds each claim,
one more for each claim where the model puts its passages in order (m = 1 with rerank=model, else 0), and
one that scores. A candidate without a letter or digit claims nothing, and is scored at once: 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic import Field, JsonValue

from proctor.core import MachineryError, ProctorError, VoteBook
from proctor.judges.dimensions.asking import CaseAsker, load_prompts
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.claims import ClaimReader, Grounded
from proctor.judges.dimensions.forms import Rated, rating_form
from proctor.judges.dimensions.looking_up import (
    RetrievalOptions,
    Retriever,
    passages_told,
    retriever_from,
    shown_in_prompt,
)
from proctor.judges.dimensions.protocol import DimensionJudge, Materials, read_options
from proctor.judges.dimensions.rules import rule_breaks, snapped
from proctor.judges.dimensions.scores import DimensionScores
from proctor.judges.dimensions.steering import steering_flags
from proctor.judges.retrieval.ranking import Match
from proctor.judges.retrieval.reranking import Ranked, Sought
from proctor.models import ModelClient

__all__ = ["EvidenceJudge", "build"]

NAME = "evidence-judge"


class EvidenceJudge:
    """Asks one model for the candidate's claims, for what references and passages say of each, and for a score
    on each dimension in view of that. Every step is a vote of its own."""

    def __init__(
        self, client: ModelClient, votes: VoteBook, retriever: Retriever, *, claims: int = 8
    ) -> None:
        self._client = client
        self._retriever = retriever
        self._reader = ClaimReader(NAME, client, votes, claims)
        self._asker = CaseAsker(NAME, self.name, client, votes, load_prompts("mediqa"), {"persona": ""})

    @property
    def name(self) -> str:
        """With the model."""
        return f"{NAME}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, the prompts, and what is looked up where."""
        return {
            **self._client.settings,
            **self._asker.settings,
            **self._reader.settings,
            **self._retriever.settings,
        }

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`)."""
        try:
            checked, votes = await self._checked(case)
        except MachineryError as error:
            return DimensionScores.none(case, str(error), flags=steering_flags(case))
        cited = _each_once([one for claim in checked for one in claim.cited])
        number = {match.passage.id: place for place, match in enumerate(cited, start=1)}
        more: dict[str, JsonValue] = {
            "passages": shown_in_prompt(cited),
            "claims": [_in_prompt(one, number) for one in checked],
        }
        flags = tuple(dict.fromkeys(flag for one in checked for flag in one.flags))
        heard = await self._asker.ask(
            case, rating_form(case.dimensions), more=more, flags=lambda said: (*_breaks(said), *flags)
        )
        told: dict[str, JsonValue] = {"judge": self.name, "claims": [_told(one) for one in checked]}
        if heard.value is None or heard.vote is None:
            missing = {one.name: heard.reason for one in case.dimensions}
            return DimensionScores(
                missing=missing, flags=(*heard.flags, *flags), evidence=(told,), votes=tuple(votes)
            )
        values = {name: snapped(value) for name, value in heard.value.scores.items()}
        return DimensionScores(
            values=values,
            breaks=rule_breaks(values),
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


def _breaks(said: Rated) -> tuple[str, ...]:
    return rule_breaks(said.scores)


class _Options(RetrievalOptions):
    claims: int = Field(default=8, ge=1, le=24)
    passages: int = Field(default=3, ge=1, le=12)
    rerank: str = "none"


def build(materials: Materials) -> DimensionJudge:
    """Splits the candidate into claims, holds each against references and passages, then scores.

    Options: documents=FOLDER, claims=8, passages=3 (for each claim), rerank=none (or model, or a cross-encoder's
    folder), index, encoder, size, overlap. 2 + claims calls for an answer. Raises as `retrieval-judge`.
    """
    options = read_options(NAME, _Options, materials.options)
    client = materials.clients.client(materials.clients.only(NAME), {"temperature": 0.0})
    retriever = retriever_from(NAME, materials, client, options)
    return EvidenceJudge(client, materials.votes, retriever, claims=options.claims)
