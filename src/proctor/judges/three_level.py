"""The judge `three-level`: free responses marked 2, 1 or 0, with the half that is wrong.

The rubric is that of ReXSonoVQA (Wang et al. 2026, arXiv:2604.10916, prompt A4): in this project's words, or, as
the prompt `paper`, in the paper's own.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from proctor.core import Answer, Item, Metric, Score, Scorer, Status, VoteBook
from proctor.core.formats import FreeTextFormat
from proctor.judges.asked_once import AskedOnce
from proctor.judges.hostile import FENCE_CLOSE, FENCE_OPEN, neutral
from proctor.judges.injection import STEERING_FLAG, steers
from proctor.judges.verdict import VERDICT_METRICS, ErrorType, PublishedVerdict, Verdict, verdict_scores
from proctor.models import ModelClient, Prompt, chosen_prompt

_PROMPT = Path(__file__).with_name("three_level.txt.j2")
_PAPER = _PROMPT.with_name("three_level.paper.txt.j2")


class ThreeLevelJudge:
    """Asks a model for a `Verdict` on each answer in free text, and keeps it as a vote.

    A vote is found by the content that led to it (model and settings, prompt, question, reference,
    answer), so the same answer is never marked, or paid, twice. An answer that never came (too late,
    refused, empty) gets 0 without a call.
    """

    def __init__(self, client: ModelClient, votes: VoteBook, prompt: Prompt, form: type[Verdict] = Verdict) -> None:
        self._client = client
        self._prompt = prompt
        self._form = form
        self._asked = AskedOnce(self.name, client, votes)

    @property
    def name(self) -> str:
        """With the model, since another model is another judge, and so is one with another prompt."""
        return f"three-level{self._prompt.mark}[{self._client.name}]"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """`rubric`, `rubric_by_error_type` and `contradiction`."""
        return VERDICT_METRICS

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its verdicts."""
        return {**self._client.settings, "prompt": self._prompt.name, "prompt_sha256": self._prompt.sha256}

    def applies(self, item: Item) -> bool:
        """To free text with a reference."""
        return isinstance(item.answer, FreeTextFormat) and item.reference is not None

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The three scores of the verdict. Raises `InfrastructureError` where there is none: no reply, none of
        the form, or a model that declines to judge."""
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never marked")
        if answer.status is not Status.ANSWERED or answer.parsed is None:
            return verdict_scores(0, ErrorType.BOTH, item_id=item.id, scorer=self.name)
        text = str(answer.parsed)
        system, user = self._prompt.render(
            **_known(item), answer=neutral(text), fence_open=FENCE_OPEN, fence_close=FENCE_CLOSE
        )
        steering = (STEERING_FLAG,) if steers(text) else ()
        verdict, vote = await self._asked.ask(
            self._form,
            [user],
            system=system,
            item_id=item.id,
            content={"judge": "three-level", "prompt_sha256": self._prompt.sha256, **_known(item), "answer": text},
            flags=lambda said: (*said.flags, *steering),
        )
        return verdict_scores(verdict.score, verdict.error_type, item_id=item.id, scorer=self.name, vote_key=vote.key)


def _known(item: Item) -> dict[str, JsonValue]:
    """What the judge is told of an item."""
    if item.reference is None:
        raise ValueError(f"item {item.id!r} has no reference to be marked against")
    return {
        "question": item.question,
        "reference": str(item.reference.answer),
        "accepted": [str(other) for other in item.reference.accepted],
        "rationale": item.reference.rationale,
    }


def build(client: ModelClient, votes: VoteBook, *, prompt: Path | None = None) -> Scorer:
    """Free responses marked 2, 1 or 0, with the half that is wrong (the rubric of ReXSonoVQA).

    Raises `InputError` for a prompt that can't be read.
    """
    form = PublishedVerdict if prompt == _PAPER else Verdict
    return ThreeLevelJudge(client, votes, chosen_prompt(_PROMPT, prompt), form)
