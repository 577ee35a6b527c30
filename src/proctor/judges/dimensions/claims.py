"""What an answer claims, and what references and passages say of each claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import InputError, VoteBook
from proctor.judges.asked_once import AskedOnce
from proctor.judges.dimensions.asking import Prompts, load_prompts
from proctor.judges.dimensions.case import Case
from proctor.judges.dimensions.looking_up import (
    CITES_UNSEEN,
    AsksForCited,
    cited_form,
    passage_flags,
    shown_in_prompt,
)
from proctor.judges.dimensions.steering import steering_flags
from proctor.judges.hostile import FENCE_CLOSE, FENCE_OPEN, neutral
from proctor.judges.retrieval.ranking import Match
from proctor.models import ModelClient, Prompt

__all__ = ["ClaimReader", "Grounded", "Grounding", "Verdict"]

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
    `MachineryError` where it does not reply as asked, `InputError` for a language without a prompt."""

    def __init__(self, judge: str, client: ModelClient, votes: VoteBook, most: int) -> None:
        self._most = most
        self._splitting = AskedOnce(f"{judge}/claims[{client.name}]", client, votes)
        self._grounding = AskedOnce(f"{judge}/grounding[{client.name}]", AsksForCited(client), votes)
        self._split, self._ground = load_prompts("claims"), load_prompts("grounding")

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
        prompt = _prompt(self._split, case)
        system, user = prompt.render(
            query=neutral(case.query),
            candidate=neutral(case.candidate),
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
            flags=lambda _: steering_flags(case),
        )
        return tuple(dict.fromkeys(neutral(one) for one in value.claims)), vote.key

    async def ground(self, case: Case, claim: str, matches: Sequence[Match]) -> Grounded:
        """What the references and these passages say of a claim."""
        prompt = _prompt(self._ground, case)
        references: list[JsonValue] = [neutral(one.text) for one in case.sorted_references]
        passages = shown_in_prompt(matches)
        filled: dict[str, JsonValue] = {
            "query": neutral(case.query),
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


def _prompt(prompts: Prompts, case: Case) -> Prompt:
    found = prompts.get(case.language)
    if found is None:
        known = ", ".join(prompts)
        raise InputError(case.id, "language", found=repr(case.language), expected=f"one of {known}")
    return found


@lru_cache(maxsize=16)
def _claims_form(most: int) -> type[_Claims]:
    class Claims(_Claims):
        __doc__ = _Claims.__doc__

        claims: list[Annotated[str, Field(min_length=1, max_length=_LONGEST)]] = Field(max_length=most)

    return Claims
