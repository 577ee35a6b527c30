"""One judge's vote on a short answer: right or wrong, from a model that knows question, reference and words."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import Answer, Briefing, Item, Metric, Score, Vote, VoteBook
from proctor.judges.asked_once import AskedOnce
from proctor.judges.hostile import FENCE_CLOSE, FENCE_OPEN, neutral
from proctor.judges.injection import STEERING_FLAG, steers
from proctor.models import ModelClient, Prompt

PROMPT = Path(__file__).with_name("binary_vote.txt.j2")

JUDGE_VOTE = Metric("judge_vote", "Right by a single judge", percent=True, formats=("free_text",))
"""What one judge of a panel says alone: 1 for right, 0 for wrong."""


class RightOrWrong(StrEnum):
    """What a judge may say."""

    RIGHT = "right"
    WRONG = "wrong"


class BinaryVerdict(BaseModel):
    """What a judge says of one short answer: strictly typed, nothing beside it.

    >>> BinaryVerdict.model_validate_json('{"explanation": "the same object", "verdict": "right"}').verdict
    <RightOrWrong.RIGHT: 'right'>
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    explanation: str = Field(description="One sentence that gives the reason.")
    verdict: RightOrWrong = Field(description="Whether the answer is right or wrong.")


class BinaryVote:
    """Asks one model whether an answer is right, and keeps its reply as a vote.

    A vote is found by all that led to it (model and settings, prompt, definitions, question, reference,
    answer), so nothing is asked, or paid, twice. After `give_up_after` replies in a row that did not come,
    the model is not asked any more by this object; votes that are there already are still found.
    """

    def __init__(
        self,
        client: ModelClient,
        votes: VoteBook,
        prompt: Prompt,
        briefing: Briefing,
        *,
        give_up_after: int | None = None,
    ) -> None:
        self._client = client
        self._prompt = prompt
        self._definitions = dict(briefing.definitions)
        self._asked = AskedOnce(self.name, client, votes, give_up_after=give_up_after)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._client.name

    @property
    def mark(self) -> str:
        """What another prompt than the usual one adds to a name."""
        return self._prompt.mark

    @property
    def name(self) -> str:
        """With the model, since another model is another judge."""
        return f"binary-vote{self.mark}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its verdicts."""
        return {
            **self._client.settings,
            "prompt": self._prompt.name,
            "prompt_sha256": self._prompt.sha256,
            "definitions": dict(self._definitions),
        }

    async def vote(self, item: Item, answer: Answer) -> tuple[RightOrWrong, Vote]:
        """The verdict on an answer that holds a text, and its vote.

        Raises `InfrastructureError` where there is none: no reply, none of the form, or a model that declines.
        """
        text = str(answer.parsed)
        known = _known(item)
        system, user = self._prompt.render(
            **known,
            definitions=list(self._definitions.items()),
            answer=neutral(text),
            fence_open=FENCE_OPEN,
            fence_close=FENCE_CLOSE,
        )
        flags = (STEERING_FLAG,) if steers(text) else ()
        reply, vote = await self._asked.ask(
            BinaryVerdict,
            [user],
            system=system,
            item_id=item.id,
            content={
                "judge": "binary-vote",
                "prompt_sha256": self._prompt.sha256,
                "definitions": dict(self._definitions),
                **known,
                "answer": text,
            },
            flags=lambda _: flags,
        )
        return reply.verdict, vote

    def score(self, item: Item, verdict: RightOrWrong, vote: Vote) -> Score:
        """The verdict as this judge's own score."""
        return Score(
            item_id=item.id,
            metric=JUDGE_VOTE.name,
            value=float(verdict is RightOrWrong.RIGHT),
            scorer=self.name,
            label=verdict.value,
            vote_key=vote.key,
        )


def _known(item: Item) -> dict[str, JsonValue]:
    """What the judge is told of an item."""
    if item.reference is None:
        raise ValueError(f"item {item.id!r} has no reference to be judged against")
    return {
        "question": item.question,
        "reference": str(item.reference.answer),
        "accepted": [str(other) for other in item.reference.accepted],
        "rationale": item.reference.rationale,
    }
