"""`criteria`: an answer in free text by the criteria of its item, each met or not, in the form of HealthBench.

Each criterion is asked about by itself (Arora et al. 2025, arXiv:2505.08775); the prompt is in this project's words.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from proctor.core import Answer, Criterion, Item, JudgementCache, Metric, Score, Scorer, Status, share_of_points
from proctor.core.formats import FreeTextFormat
from proctor.judges.cached_model import together
from proctor.judges.prompt_injection import INJECTION_FLAG, has_injection, sanitize
from proctor.judges.verdict_judges import VerdictJudge
from proctor.judges.verdicts import CRITERIA_SCORE
from proctor.metrics import cause_of
from proctor.models import chosen_prompt

if TYPE_CHECKING:
    from proctor.models import ModelClient

_PROMPT = Path(__file__).parent / "criteria.txt.j2"


class CriterionVerdict(BaseModel):
    """What a judge says of one answer and one criterion: strictly typed, nothing beside it.

    >>> CriterionVerdict.model_validate_json('{"explanation": "it names it", "criteria_met": true}').criteria_met
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    explanation: str = Field(description="One or two sentences that give the reason.")
    criteria_met: StrictBool = Field(description="Whether the answer meets the criterion.")


class CriteriaJudge(VerdictJudge[CriterionVerdict]):
    """Asks for each criterion of an item whether an answer meets it.

    The score is the points of those that are met over the sum of the positive ones, from 0 (also where negative points
    weigh more) to 1; its label says how many points. An answer that never came, or can't be read, gets 0 without a
    call. Where one criterion has no verdict the answer has no score: the others are kept, and asked no second time.
    """

    kind = "criteria"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The share of points."""
        return (CRITERIA_SCORE,)

    def applies(self, item: Item) -> bool:
        """To free text whose reference has criteria."""
        return isinstance(item.answer, FreeTextFormat) and item.reference is not None and bool(item.reference.criteria)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The one score. Raises `InfrastructureError` where a criterion has no verdict."""
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never marked")
        if item.reference is None or not self.applies(item):
            raise ValueError(f"item {item.id!r} has no criteria to be marked by")
        cause, criteria = cause_of(answer), item.reference.criteria
        if cause:
            return [self._score(item, 0.0, cause)]
        met = await together(self._met(item, one, str(answer.parsed)) for one in criteria)
        points = sum(one.points for one, is_met in zip(criteria, met, strict=True) if is_met)
        possible = sum(one.points for one in criteria if one.points > 0)
        share = share_of_points(criteria, met)
        return [self._score(item, min(1.0, max(0.0, share)), f"{points:g} of {possible:g} points")]

    async def _met(self, item: Item, criterion: Criterion, text: str) -> bool:
        flags = (INJECTION_FLAG,) if has_injection(text) else ()
        verdict, _ = await self._ask(
            item,
            {"question": item.question, "criterion": criterion.criterion, "answer": text},
            {"answer": sanitize(text)},
            flags=lambda _: flags,
        )
        return verdict.criteria_met

    def _score(self, item: Item, value: float, label: str) -> Score:
        return Score(item_id=item.id, metric=CRITERIA_SCORE.name, value=value, scorer=self.name, label=label)


def criteria(client: ModelClient, votes: JudgementCache, *, prompt: Path | None = None) -> Scorer:
    """Free responses by the criteria of their items, each met or not (the form of HealthBench).

    Raises `InputError` for a prompt that can't be read.
    """
    return CriteriaJudge(client, votes, chosen_prompt(_PROMPT, prompt), CriterionVerdict)
