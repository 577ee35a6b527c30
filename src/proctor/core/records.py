"""What a run leaves behind: answers, scores and votes."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from proctor.core.text import KeptJson, KeptObject, KeptText

NO_ANSWER = "no answer was submitted"
"""The reason of an answer that stands for one which a submission lacks: the system's own failure, wrong, and
counted apart."""


class _Frozen(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", allow_inf_nan=False)


class Status(StrEnum):
    """How asking one item ended.

    `answered`: a reply came (right, wrong or unreadable). `timed_out`: the system took longer than the
    item's budget. `refused`: the system declined. `error`: the system's own fault (an exception in its code, a context
    too long, out of memory, no reply of the form asked for). These three are its answer: wrong, with the worst score
    of each metric. `failed`: an infrastructure error (connection, rate limit, server, machine); not an answer at all,
    never scored, asked again on resume.

    >>> [status.value for status in Status]
    ['answered', 'timed_out', 'failed', 'refused', 'error']
    """

    ANSWERED = "answered"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    REFUSED = "refused"
    ERROR = "error"


class FailedPolicy(StrEnum):
    """What becomes of the items that a run lacks a score for: infrastructure errors, items not asked, answers that a
    judge left without a verdict.

    `wrong`: each has the worst score. `exclude`: they are left out of that run's score (and of no other's).

    >>> [policy.value for policy in FailedPolicy]
    ['wrong', 'exclude']
    """

    WRONG = "wrong"
    EXCLUDE = "exclude"


class Usage(_Frozen):
    """What an answer consumed. `cost_usd` is None where no price is known: unknown is not free."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum; its cost is unknown as soon as one part that made requests has no price.

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


class Timing(_Frozen):
    """Seconds by a monotonic clock, apart: only `model_s` counts against an item's budget.

    A part that nobody measured (of an answer recorded elsewhere, say) is None, not 0.

    >>> Timing(model_s=2.5, media_s=0.3).queue_s is None
    True
    """

    model_s: float
    media_s: float | None = None
    queue_s: float | None = None
    retry_s: float | None = None


class Answer(_Frozen):
    """What a system said of an item.

    `parsed` is the value that the item's answer format read from `text`; where that failed it is None
    and `problem` says what was expected and what came. `reason` says why a status is not `answered`, or `NO_ANSWER`.

    >>> Answer(item_id="q1", text="Answer: B", parsed="B").status
    <Status.ANSWERED: 'answered'>
    """

    item_id: str
    text: KeptText = ""
    parsed: KeptJson = None
    problem: KeptText = ""
    status: Status = Status.ANSWERED
    reason: KeptText = ""
    usage: Usage = Field(default_factory=Usage)
    timing: Timing | None = None
    extra: KeptObject = Field(default_factory=dict)


class Score(_Frozen):
    """One number about one answer. `scorer` says who gave it; `label` is its level in words.

    `vote_key` leads to the judge's vote behind it.

    >>> Score(item_id="q1", metric="accuracy", value=1.0, label="right").scorer
    'code'
    """

    item_id: str
    metric: str
    value: float
    scorer: str = "code"
    label: KeptText = ""
    vote_key: str = ""


class Judgement(_Frozen):
    """One reply of one judge, under a key of its whole content, so that no call is repeated.

    `flags` names what a person should look at (contradictions, attempts to steer the judge).

    >>> Judgement(key="0" * 64, judge="three-level[m]", item_id="q1", reply={"score": 2}).flags
    ()
    """

    key: str
    judge: str
    item_id: str
    reply: KeptObject
    flags: tuple[str, ...] = ()
    usage: Usage = Field(default_factory=Usage)
