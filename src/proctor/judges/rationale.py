"""The judge `rationale`: why frames were put in this order, marked on four aspects from 1 to 5.

In the manner of G-Eval (Liu et al. 2023, EMNLP), which the ClinicalSkillQA task announced beside BERTScore; the
aspects are those of this project.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import Answer, Item, Metric, Score, Scorer, Status, VoteBook
from proctor.core.formats import OrderingFormat
from proctor.judges.asked_once import AskedOnce
from proctor.judges.hostile import FENCE_CLOSE, FENCE_OPEN, neutral
from proctor.judges.injection import STEERING_FLAG, steers
from proctor.judges.registry import FramesOf
from proctor.metrics.text import NO_RATIONALE, rationale_of
from proctor.models import ModelClient, Prompt, chosen_prompt

_PROMPT = Path(__file__).with_name("rationale.txt.j2")
_MOST = 6000  # characters of a rationale; no reason for so few pictures is longer

TEXT_ONLY_FLAG = "text-only"
"""In the flags of a vote that was cast without the frames."""

CUT_FLAG = "cut"
"""In the flags of a vote on a rationale of which the judge read the beginning alone."""

_LABELS = {
    "coverage": "Rationale: every frame covered (1–5)",
    "grounding": "Rationale: grounded in what is seen (1–5)",
    "correctness": "Rationale: clinically correct (1–5)",
    "consistency": "Rationale: consistent with the order given (1–5)",
}
RATIONALE_METRICS = tuple(
    Metric(f"rationale_{name}", label, low=1.0, high=5.0, formats=("ordering",)) for name, label in _LABELS.items()
)
"""One metric for each aspect."""


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Aspect(_Form):
    """One aspect: the reason first, then the score."""

    reason: str = Field(description="One or two sentences.")
    score: int = Field(strict=True, ge=1, le=5, description="1 to 5, 5 is best.")


class RationaleVerdict(_Form):
    """What a judge says of one rationale: four aspects from 1 to 5, each with its reason."""

    coverage: Aspect = Field(description="Whether it speaks of every frame.")
    grounding: Aspect = Field(description="Whether it rests on what is to be seen.")
    correctness: Aspect = Field(description="Whether it is right by clinical knowledge.")
    consistency: Aspect = Field(description="Whether it argues for the order that was given.")


class RationaleJudge:
    """Asks a model for a `RationaleVerdict` on each answer's rationale (the text under `rationale` in its `extra`), and
    keeps it as a vote.

    `frames` gives the pictures; without it, and for an item of which it gives none, the judge reads text alone, and
    the vote is flagged "text-only". A vote is found by the content that led to it, the pictures among it. An answer
    without an order or a rationale gets 1 on all aspects without a call. A rationale beyond 6,000 characters is cut
    for the judge, which the vote's flag "cut" says.
    """

    def __init__(self, client: ModelClient, votes: VoteBook, prompt: Prompt, frames: FramesOf | None = None) -> None:
        self._client = client
        self._votes = votes
        self._prompt = prompt
        self._frames = frames
        self._asked = AskedOnce(self.name, client, votes)

    @property
    def name(self) -> str:
        """With the model, since another model is another judge, and so is one that sees the frames."""
        return f"rationale{self._prompt.mark}{'+frames' if self._frames else ''}[{self._client.name}]"

    def with_frames(self, frames: FramesOf) -> RationaleJudge:
        """The same judge, which sees the frames as well."""
        return RationaleJudge(self._client, self._votes, self._prompt, frames)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """One for each aspect."""
        return RATIONALE_METRICS

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its verdicts."""
        return {
            **self._client.settings,
            "prompt": self._prompt.name,
            "prompt_sha256": self._prompt.sha256,
            "frames": self._frames is not None,
        }

    def applies(self, item: Item) -> bool:
        """To orders; a reference helps the judge and is not needed."""
        return isinstance(item.answer, OrderingFormat)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """A score for each aspect. Raises `InfrastructureError` where there is no verdict: no reply, none of the form, or
        a model that declines to judge; `InputError` where a frame can't be read."""
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never marked")
        order = [str(label) for label in answer.parsed] if isinstance(answer.parsed, list) else []
        rationale = rationale_of(answer)
        if answer.status is not Status.ANSWERED or not order or not neutral(rationale).strip():
            return self._scores(item, dict.fromkeys(_LABELS, 1), label=NO_RATIONALE)
        frames = list(await self._frames(item)) if self._frames is not None else []
        system, user = self._prompt.render(
            **_known(item),
            order=[neutral(label) for label in order],
            rationale=neutral(rationale)[:_MOST],
            pictures=len(frames),
            fence_open=FENCE_OPEN,
            fence_close=FENCE_CLOSE,
        )
        flags = tuple(
            flag
            for flag, meant in (
                (STEERING_FLAG, steers(rationale) or steers(" ".join(order))),
                (TEXT_ONLY_FLAG, not frames),
                (CUT_FLAG, len(neutral(rationale)) > _MOST),
            )
            if meant
        )
        verdict, vote = await self._asked.ask(
            RationaleVerdict,
            [*frames, user],
            system=system,
            item_id=item.id,
            content={
                "judge": "rationale",
                "prompt_sha256": self._prompt.sha256,
                **_known(item),
                "order": [*order],
                "rationale": rationale,
                "frames": [f"{one.label} {hashlib.sha256(one.jpeg).hexdigest()}" for one in frames],
            },
            flags=lambda _: flags,
        )
        marks = {name: getattr(verdict, name).score for name in _LABELS}
        return self._scores(item, marks, vote_key=vote.key)

    def _scores(self, item: Item, marks: dict[str, int], *, label: str = "", vote_key: str = "") -> list[Score]:
        return [
            Score(
                item_id=item.id,
                metric=f"rationale_{name}",
                value=mark,
                scorer=self.name,
                label=label,
                vote_key=vote_key,
            )
            for name, mark in marks.items()
        ]


def _known(item: Item) -> dict[str, JsonValue]:
    """What the judge is told of an item."""
    reference = item.reference
    right = reference.answer if reference is not None and isinstance(reference.answer, list) else []
    labels = item.answer.labels if isinstance(item.answer, OrderingFormat) else ()
    return {
        "question": item.question,
        "labels": [*labels],
        "right_order": [*right],
        "expert": reference.rationale if reference is not None else "",
    }


def build(client: ModelClient, votes: VoteBook, *, prompt: Path | None = None) -> Scorer:
    """Why frames were put in this order: coverage, grounding, correctness, consistency, each 1 to 5.

    Raises `InputError` for a prompt that can't be read.
    """
    return RationaleJudge(client, votes, chosen_prompt(_PROMPT, prompt))
