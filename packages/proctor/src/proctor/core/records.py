"""The records of a run: answers with their confidence, scores and judgements."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from proctor.core.validation import FrozenModel, KeptJson, KeptObject, KeptText

CONFIDENCE = "confidence"
"""The key of an answer's `extra` for its `Confidence`."""

ConfidenceSource = Literal["stated", "tokens", "recorded"]
"""Where a confidence is from: a number in the reply, the probabilities of the options' tokens, or a file."""


class Confidence(FrozenModel):
    """The probability, from 0 to 1, that an answer is right, as its system gives it; or why there is none: `missing`. A
    confidence that is missing is no number, also not a low one.

    >>> Confidence(source="stated", value=0.85).value
    0.85
    >>> Confidence(source="stated")
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for Confidence
      Value error, a value, or the reason why there is none ...
    """

    source: ConfidenceSource
    value: float | None = Field(default=None, ge=0, le=1)
    missing: str = Field(default="", max_length=200)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.value is None) != bool(self.missing):
            raise ValueError("a value, or the reason why there is none")
        return self

    @property
    def public(self) -> Confidence:
        """The same without the words of the reply that the reason quotes, if it does: for others' files.

        >>> Confidence(source="stated", missing="no whole number: 'very sure of it'").public.missing
        'no whole number'
        """
        return self if self.value is not None else self.model_copy(update={"missing": self.missing.partition(":")[0]})


NO_ANSWER = "no answer was submitted"
"""The reason recorded for an answer that is missing from a submission. It counts as wrong and is reported
separately."""


class Status(StrEnum):
    """The outcome of asking an item.

    `answered`: a reply was received (right, wrong or unreadable). `abstained`: the reply says, in the declared form, that
    the question can't be answered; this is right where the reference is `unanswerable`, and wrong elsewhere. `timed_out`: the system exceeded the time budget.
    `refused`: the system declined. `error`: the system's own error (an exception in its code, a context that is too
    long, out of memory, no reply of the requested form). These three count as wrong, with the worst score of each
    metric. `failed`: an infrastructure error (connection, rate limit, server, machine), which is never scored and is
    asked again on resume.

    >>> [status.value for status in Status]
    ['answered', 'timed_out', 'failed', 'refused', 'error', 'abstained']
    """

    ANSWERED = "answered"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    REFUSED = "refused"
    ERROR = "error"
    ABSTAINED = "abstained"


class FailedPolicy(StrEnum):
    """The treatment of items without a score: infrastructure errors, items not asked, and answers without a verdict.

    `wrong`: they get the worst score. `exclude`: they are excluded from the score of that run (only).

    >>> [policy.value for policy in FailedPolicy]
    ['wrong', 'exclude']
    """

    WRONG = "wrong"
    EXCLUDE = "exclude"


class Usage(FrozenModel):
    """The resources used for an answer. `cost_usd` is None if the price is unknown."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum. The cost is unknown if that of any part with requests is unknown.

        >>> (Usage(requests=1, cost_usd=0.5) + Usage(requests=1)).cost_usd is None
        True
        >>> (Usage() + Usage(requests=1, cost_usd=0.5)).cost_usd
        0.5
        """
        parts = [part for part in (self, other) if part.requests]
        costs = [part.cost_usd for part in parts]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(known) if known and len(known) == len(costs) else None,
        )


class Timing(FrozenModel):
    """Times in seconds by a monotonic clock. Only `model_s` counts towards the time budget.

    Parts that were not measured (such as for answers recorded elsewhere) are None.

    >>> Timing(model_s=2.5, media_s=0.3).queue_s is None
    True
    """

    model_s: float
    media_s: float | None = None
    queue_s: float | None = None
    retry_s: float | None = None


class Answer(FrozenModel):
    """A system's answer to an item. Of several answers to one item, `repetition` counts from 0.

    `parsed` is the value that the item's answer format parsed from `text`. If parsing failed it is None, and `problem`
    has what was expected and found. `reason` explains a status other than `answered`, or is `NO_ANSWER`.

    >>> Answer(item_id="q1", text="Answer: B", parsed="B").status
    <Status.ANSWERED: 'answered'>
    """

    item_id: str
    repetition: int = Field(default=0, ge=0)
    text: KeptText = ""
    parsed: KeptJson = None
    problem: KeptText = ""
    status: Status = Status.ANSWERED
    reason: KeptText = ""
    usage: Usage = Field(default_factory=Usage)
    timing: Timing | None = None
    extra: KeptObject = Field(default_factory=dict)

    @property
    def confidence(self) -> Confidence | None:
        """How sure the system is of the answer, or why that is missing; None where nobody asked. What is no `Confidence`
        in `extra` is missing, too.

        >>> Answer(item_id="q1", text="B", extra={"confidence": {"source": "stated", "value": 0.85}}).confidence.value
        0.85
        """
        kept = self.extra.get(CONFIDENCE)
        try:
            return None if kept is None else Confidence.model_validate(kept)
        except ValidationError:
            return Confidence(source="recorded", missing="no confidence from 0 to 1")

    @property
    def wording(self) -> str:
        """The answer in the system's words: `parsed` where it is a text, else `text`, without thoughts. Judges, text
        metrics and reviewers see this.

        >>> Answer(item_id="q1", text="<think>The cortex is thin.</think>The left kidney.").wording
        'The left kidney.'
        """
        from proctor.core.formats.thoughts import without_thoughts

        return self.parsed if isinstance(self.parsed, str) else without_thoughts(self.text)


class Score(FrozenModel):
    """The score of an answer by a metric and a scorer. `label` is the level in words; `judgement_key` is the key of the
    judgement on which it is based; `repetition` is that of the answer.

    >>> Score(item_id="q1", metric="accuracy", value=1.0, label="right").scorer
    'code'
    """

    item_id: str
    metric: str
    value: float
    scorer: str = "code"
    label: KeptText = ""
    judgement_key: str = ""
    repetition: int = Field(default=0, ge=0)


class Judgement(FrozenModel):
    """A cached reply of a judge. The key is a hash of the whole request, so that no call is repeated.

    `flags` are reasons for review by a person (contradictions, prompt injection).

    >>> Judgement(key="0" * 64, judge="three-level[m]", item_id="q1", reply={"score": 2}).flags
    ()
    """

    key: str
    judge: str
    item_id: str
    reply: KeptObject
    flags: tuple[str, ...] = ()
    usage: Usage = Field(default_factory=Usage)
