"""Judges that give one verdict on an answer: `three-level`, `criteria`, `rationale`, and the `binary` one of a panel.

- `three-level` scores free text with the rubric of ReXSonoVQA (Wang et al. 2026, arXiv:2604.10916, prompt A4), in this
  project's words or, with the prompt `paper`, in the paper's own.
- `criteria` asks about each criterion of an item by itself, in the form of HealthBench (Arora et al. 2025,
  arXiv:2505.08775); the prompt is in this project's words.
- `rationale` scores in the manner of G-Eval (Liu et al. 2023, EMNLP), which the ClinicalSkillQA task announced beside
  BERTScore. The aspects are those of this project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from pydantic import BaseModel, Field, JsonValue, StrictBool

from proctor.core import (
    Answer,
    Briefing,
    Criterion,
    FrozenModel,
    Item,
    JudgementCache,
    Metric,
    Score,
    Scorer,
    Status,
    share_of_points,
)
from proctor.core.formats import FreeTextFormat, OrderingFormat
from proctor.judges.cached_model import PromptedModel, as_said, several
from proctor.judges.prompt_injection import INJECTION_FLAG, has_injection, sanitize
from proctor.judges.registry import FramesOf
from proctor.judges.verdict_metrics import (
    ASPECTS,
    CRITERIA_SCORE,
    RATIONALE_METRICS,
    SINGLE_JUDGE,
    VERDICT_METRICS,
    ErrorType,
    PublishedVerdict,
    Verdict,
    verdict_scores,
)
from proctor.metrics import cause_of
from proctor.metrics.text import NO_RATIONALE, rationale_of
from proctor.models import chosen_prompt

if TYPE_CHECKING:
    from proctor.models import ModelClient, Prompt

_HERE = Path(__file__).parent
PROMPTS = {name: _HERE / f"{name}.txt.j2" for name in ("binary", "three_level", "criteria", "rationale")}
_PAPER = _HERE / "three_level.paper.txt.j2"
_MAX_RATIONALE = 6000  # characters; a rationale for a few pictures is never longer

TEXT_ONLY_FLAG = "text-only"
"""In the flags of a judgement that was made without the frames."""

CUT_FLAG = "cut"
"""In the flags of a judgement on a rationale of which the judge read only the beginning."""

V = TypeVar("V", bound=BaseModel)


class RightOrWrong(StrEnum):
    """What a judge of a panel may say."""

    RIGHT = "right"
    WRONG = "wrong"


class BinaryVerdict(FrozenModel):
    """What a judge says of one short answer: strictly typed, nothing beside it.

    >>> BinaryVerdict.model_validate_json('{"explanation": "the same object", "verdict": "right"}').verdict
    <RightOrWrong.RIGHT: 'right'>
    """

    explanation: str = Field(description="One sentence that gives the reason.")
    verdict: RightOrWrong = Field(description="Whether the answer is right or wrong.")


class CriterionVerdict(FrozenModel):
    """What a judge says of one answer and one criterion: strictly typed, nothing beside it.

    >>> CriterionVerdict.model_validate_json('{"explanation": "it names it", "criteria_met": true}').criteria_met
    True
    """

    explanation: str = Field(description="One or two sentences that give the reason.")
    criteria_met: StrictBool = Field(description="Whether the answer meets the criterion.")


class Aspect(FrozenModel):
    """One aspect: the reason first, then the score."""

    reason: str = Field(description="One or two sentences.")
    score: int = Field(strict=True, ge=1, le=5, description="1 to 5, 5 is best.")


class RationaleVerdict(FrozenModel):
    """What a judge says of one rationale: four aspects from 1 to 5, each with its reason."""

    coverage: Aspect = Field(description="Whether it speaks of every frame.")
    grounding: Aspect = Field(description="Whether it rests on what is to be seen.")
    correctness: Aspect = Field(description="Whether it is right by clinical knowledge.")
    consistency: Aspect = Field(description="Whether it argues for the order that was given.")


class VerdictJudge(Generic[V]):
    """Asks one model for a verdict of a form. The reply is cached under everything that led to it (model, settings,
    prompt, and what the prompt was filled with). Another model or prompt is another judge."""

    kind: ClassVar[str]

    def __init__(
        self,
        client: ModelClient,
        judgements: JudgementCache,
        prompt: Prompt,
        form: type[V],
        *,
        variant: str = "",
        give_up_after: int | None = None,
    ) -> None:
        self.model = client.name
        self.variant = f"{prompt.mark}{variant}"
        self.name = f"{self.kind}{self.variant}[{client.name}]"
        self._client, self._judgements, self._prompt, self._reply = client, judgements, prompt, as_said(form)
        self._asked = PromptedModel(self.name, client, judgements, self.kind, {"": prompt}, give_up_after=give_up_after)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its verdicts."""
        return {**self._client.settings, "prompt": self._prompt.name, "prompt_sha256": self._prompt.sha256}


def _content(item: Item) -> dict[str, JsonValue]:
    """The question and the reference as the prompts on free text show them."""
    if item.reference is None:
        raise ValueError(f"item {item.id!r} has no reference to be scored against")
    return {
        "question": item.question,
        "reference": str(item.reference.answer),
        "accepted": [str(other) for other in item.reference.accepted],
        "rationale": item.reference.rationale,
    }


def _refuse_failed(item: Item, answer: Answer) -> None:
    if answer.status is Status.FAILED:
        raise ValueError(f"item {item.id!r}: a failed answer is never scored")


def _injection_flags(*texts: str) -> tuple[str, ...]:
    return (INJECTION_FLAG,) if any(map(has_injection, texts)) else ()


class BinaryJudge(VerdictJudge[BinaryVerdict]):
    """One judgement of a short answer: right or wrong, from a model that is given the question, the reference and the
    benchmark's definitions.

    After `give_up_after` failures in a row this object does not ask the model again; cached judgements are still found.
    """

    kind = "binary"

    def __init__(
        self,
        client: ModelClient,
        judgements: JudgementCache,
        prompt: Prompt,
        briefing: Briefing,
        *,
        give_up_after: int | None = None,
    ) -> None:
        super().__init__(client, judgements, prompt, BinaryVerdict, give_up_after=give_up_after)
        self._definitions: dict[str, JsonValue] = dict(briefing.definitions)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its verdicts."""
        return {**super().settings, "definitions": dict(self._definitions)}

    async def judge(self, item: Item, answer: Answer) -> Score:
        """This judge's score of an answer that holds a text, labelled with its verdict. Raises `InfrastructureError`
        where there is none."""
        text = str(answer.parsed)
        reply, judgement = await self._asked.ask(
            self._reply,
            item.id,
            {"definitions": self._definitions, **_content(item), "answer": text},
            shown={"definitions": list(self._definitions.items()), "answer": sanitize(text)},
            flags=lambda _: _injection_flags(text),
        )
        return Score(
            item_id=item.id,
            metric=SINGLE_JUDGE.name,
            value=float(reply.verdict is RightOrWrong.RIGHT),
            scorer=self.name,
            label=reply.verdict.value,
            judgement_key=judgement.key,
        )


class ThreeLevelJudge(VerdictJudge[Verdict]):
    """Scores answers in free text 2, 1 or 0. An answer that never came (too late, refused, empty) gets 0 without a
    call."""

    kind = "three-level"
    metrics = VERDICT_METRICS

    def applies(self, item: Item) -> bool:
        """To free text with a reference."""
        return isinstance(item.answer, FreeTextFormat) and item.has_answer

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The three scores of the verdict. Raises `InfrastructureError` where there is none."""
        _refuse_failed(item, answer)
        if answer.status is not Status.ANSWERED or answer.parsed is None:
            return verdict_scores(0, ErrorType.BOTH, item_id=item.id, scorer=self.name)
        text = str(answer.parsed)
        verdict, judgement = await self._asked.ask(
            self._reply,
            item.id,
            {**_content(item), "answer": text},
            shown={"answer": sanitize(text)},
            flags=lambda verdict: (*verdict.flags, *_injection_flags(text)),
        )
        return verdict_scores(
            verdict.score, verdict.error_type, item_id=item.id, scorer=self.name, judgement_key=judgement.key
        )


class CriteriaJudge(VerdictJudge[CriterionVerdict]):
    """Asks for each criterion of an item whether an answer meets it.

    The score is the points of the criteria that are met over the sum of the positive points, clipped to 0 to 1; its
    label gives the points. An answer that never came, or can't be read, gets 0 without a call. If one criterion has no
    verdict the answer has no score, and the verdicts on the others stay cached.
    """

    kind = "criteria"
    metrics: tuple[Metric, ...] = (CRITERIA_SCORE,)

    def applies(self, item: Item) -> bool:
        """To free text whose reference has criteria."""
        return isinstance(item.answer, FreeTextFormat) and item.reference is not None and bool(item.reference.criteria)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """The one score. Raises `InfrastructureError` where a criterion has no verdict."""
        _refuse_failed(item, answer)
        if item.reference is None or not self.applies(item):
            raise ValueError(f"item {item.id!r} has no criteria to be scored by")
        cause, criteria = cause_of(answer), item.reference.criteria
        if cause:
            return [self._score(item, 0.0, cause)]
        met = await several(lambda criterion: self._met(item, criterion, str(answer.parsed)), criteria)
        points = sum(criterion.points for criterion, is_met in zip(criteria, met, strict=True) if is_met)
        possible = sum(criterion.points for criterion in criteria if criterion.points > 0)
        share = share_of_points(criteria, met)
        return [self._score(item, min(1.0, max(0.0, share)), f"{points:g} of {possible:g} points")]

    async def _met(self, item: Item, criterion: Criterion, text: str) -> bool:
        verdict, _ = await self._asked.ask(
            self._reply,
            item.id,
            {"question": item.question, "criterion": criterion.criterion, "answer": text},
            shown={"answer": sanitize(text)},
            flags=lambda _: _injection_flags(text),
        )
        return verdict.criteria_met

    def _score(self, item: Item, value: float, label: str) -> Score:
        return Score(item_id=item.id, metric=CRITERIA_SCORE.name, value=value, scorer=self.name, label=label)


class RationaleJudge(VerdictJudge[RationaleVerdict]):
    """Scores each answer's rationale (the text under `rationale` in its `extra`) on four aspects.

    `frames` gives the pictures. Without it, or for an item without frames, the judge reads text alone and the judgement
    is flagged "text-only". An answer without an order or a rationale gets 1 on all aspects without a call. A rationale
    of more than 6,000 characters is cut for the judge and flagged "cut".
    """

    kind = "rationale"
    metrics = RATIONALE_METRICS

    def __init__(
        self, client: ModelClient, judgements: JudgementCache, prompt: Prompt, frames: FramesOf | None = None
    ) -> None:
        super().__init__(client, judgements, prompt, RationaleVerdict, variant="+frames" if frames else "")
        self._frames = frames

    def with_frames(self, frames: FramesOf) -> RationaleJudge:
        """The same judge, which also sees the frames."""
        return RationaleJudge(self._client, self._judgements, self._prompt, frames)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its verdicts."""
        return {**super().settings, "frames": self._frames is not None}

    def applies(self, item: Item) -> bool:
        """To orders, with or without a reference."""
        return isinstance(item.answer, OrderingFormat)

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """A score for each aspect. Raises `InfrastructureError` where there is no verdict, and `InputError` where a
        frame can't be read."""
        _refuse_failed(item, answer)
        order = [str(label) for label in answer.parsed] if isinstance(answer.parsed, list) else []
        rationale = rationale_of(answer)
        if answer.status is not Status.ANSWERED or not order or not sanitize(rationale).strip():
            return self._scores(item, dict.fromkeys(ASPECTS, 1), label=NO_RATIONALE)
        frames = list(await self._frames(item)) if self._frames is not None else []
        text_only = () if frames else (TEXT_ONLY_FLAG,)
        cut = (CUT_FLAG,) if len(sanitize(rationale)) > _MAX_RATIONALE else ()
        flags = (*_injection_flags(rationale, " ".join(order)), *text_only, *cut)
        verdict, judgement = await self._asked.ask(
            self._reply,
            item.id,
            {
                **_ordering_content(item),
                "order": [*order],
                "rationale": rationale,
                "frames": [f"{frame.label} {hashlib.sha256(frame.jpeg).hexdigest()}" for frame in frames],
            },
            shown={
                "order": [sanitize(label) for label in order],
                "rationale": sanitize(rationale)[:_MAX_RATIONALE],
                "pictures": len(frames),
            },
            frames=frames,
            flags=lambda _: flags,
        )
        return self._scores(item, {name: getattr(verdict, name).score for name in ASPECTS}, judgement_key=judgement.key)

    def _scores(
        self, item: Item, scores: Mapping[str, int], *, label: str = "", judgement_key: str = ""
    ) -> list[Score]:
        return [
            Score(
                item_id=item.id,
                metric=f"rationale_{name}",
                value=score,
                scorer=self.name,
                label=label,
                judgement_key=judgement_key,
            )
            for name, score in scores.items()
        ]


def _ordering_content(item: Item) -> dict[str, JsonValue]:
    reference = item.reference
    right = reference.answer if reference is not None and isinstance(reference.answer, list) else []
    return {
        "question": item.question,
        "labels": [*(item.answer.labels if isinstance(item.answer, OrderingFormat) else ())],
        "right_order": [*right],
        "expert": reference.rationale if reference is not None else "",
    }


def three_level(client: ModelClient, judgements: JudgementCache, *, prompt: Path | None = None) -> Scorer:
    """Free responses scored 2, 1 or 0, with the half that is wrong (the rubric of ReXSonoVQA).

    Raises `InputError` for a prompt that can't be read.
    """
    form = PublishedVerdict if prompt == _PAPER else Verdict
    return ThreeLevelJudge(client, judgements, chosen_prompt(PROMPTS["three_level"], prompt), form)


def criteria(client: ModelClient, judgements: JudgementCache, *, prompt: Path | None = None) -> Scorer:
    """Free responses by the criteria of their items, each met or not (the form of HealthBench).

    Raises `InputError` for a prompt that can't be read.
    """
    return CriteriaJudge(client, judgements, chosen_prompt(PROMPTS["criteria"], prompt), CriterionVerdict)


def rationale(client: ModelClient, judgements: JudgementCache, *, prompt: Path | None = None) -> Scorer:
    """Why frames were put in this order: coverage, grounding, correctness, consistency, each 1 to 5.

    Raises `InputError` for a prompt that can't be read.
    """
    return RationaleJudge(client, judgements, chosen_prompt(PROMPTS["rationale"], prompt))
