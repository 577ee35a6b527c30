"""The three-level verdict on a free response, and the numbers that follow from it.

A verdict says twice how good an answer is: by its score (2, 1, 0) and by its error type, which names the
half that is wrong. Both readings are kept as metrics of their own, because published tables use both and
judges do not always agree with themselves.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from proctor.core import Metric, Score

_FREE = ("free_text",)

RUBRIC_LABELS = ("2", "1 wrong conclusion", "1 wrong visual evidence", "0")
"""The levels of a consistent verdict, best first."""

RUBRIC = Metric("rubric", "Rubric score (0–2)", low=0.0, high=2.0, formats=_FREE, levels=RUBRIC_LABELS)
RUBRIC_BY_ERROR_TYPE = Metric(
    "rubric_by_error_type",
    "Rubric score (0–2), read from the error type",
    low=0.0,
    high=2.0,
    formats=_FREE,
    levels=RUBRIC_LABELS,
)
CONTRADICTION = Metric(
    "contradiction", "Verdicts that contradict themselves", higher_is_better=False, percent=True, formats=_FREE
)
VERDICT_METRICS = (RUBRIC, RUBRIC_BY_ERROR_TYPE, CONTRADICTION)


HALF_UNNAMED = "1"
"""The level of a score of 1 whose error type names no half or both: contradictory, and kept as it is."""

CONTRADICTION_FLAG = "contradiction"
"""In the flags of a vote whose score and error type can't both be right."""


class ErrorType(StrEnum):
    """Which half of an answer is wrong."""

    NONE = "none"
    WRONG_CONCLUSION = "wrong_conclusion"
    WRONG_VISUAL_EVIDENCE = "wrong_visual_evidence"
    BOTH = "both"


_VALUE = {ErrorType.NONE: 2, ErrorType.WRONG_CONCLUSION: 1, ErrorType.WRONG_VISUAL_EVIDENCE: 1, ErrorType.BOTH: 0}
_LABEL = {
    ErrorType.NONE: "2",
    ErrorType.WRONG_CONCLUSION: "1 wrong conclusion",
    ErrorType.WRONG_VISUAL_EVIDENCE: "1 wrong visual evidence",
    ErrorType.BOTH: "0",
}


class Verdict(BaseModel):
    """What a judge says of one free response: strictly typed, nothing beside it.

    >>> Verdict.model_validate({"score": 0, "error_type": "both_fail", "explanation": "other organ"}).error_type
    <ErrorType.BOTH: 'both'>
    >>> Verdict(score=0, error_type=ErrorType.WRONG_CONCLUSION, explanation="").contradicts_itself
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    explanation: str = Field(description="One or two sentences that give the reason.")
    error_type: ErrorType = Field(description="Which half of the answer is wrong.")
    score: int = Field(strict=True, ge=0, le=2, description="2 both halves right, 1 one half, 0 neither.")

    @field_validator("error_type", mode="before")
    @classmethod
    def _published_spelling(cls, value: object) -> object:
        return ErrorType.BOTH if value == "both_fail" else value  # as the published marks write it

    @property
    def contradicts_itself(self) -> bool:
        """Whether the score is not the one that the error type stands for."""
        return self.score != _VALUE[self.error_type]

    @property
    def flags(self) -> tuple[str, ...]:
        """For the vote that keeps this verdict."""
        return (CONTRADICTION_FLAG,) if self.contradicts_itself else ()


class PublishedVerdict(Verdict):
    """A verdict by the paper's own prompt, completed as the authors' script does it: an error type that is missing
    or `none` beside a score of 1 is a wrong conclusion, beside 0 both halves.

    >>> PublishedVerdict.model_validate({"score": 1, "explanation": "", "error_type": "none"}).error_type
    <ErrorType.WRONG_CONCLUSION: 'wrong_conclusion'>
    >>> PublishedVerdict.model_validate({"score": 0, "explanation": ""}).error_type
    <ErrorType.BOTH: 'both'>
    """

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, value: object) -> object:
        if not isinstance(value, dict) or value.get("error_type", "none") != "none":
            return value
        score = value.get("score")
        half = ErrorType.WRONG_CONCLUSION if score == 1 else ErrorType.NONE
        return value | {"error_type": ErrorType.BOTH if score == 0 else half}


def verdict_scores(
    score: int, error_type: ErrorType | str, *, item_id: str, scorer: str, vote_key: str = ""
) -> list[Score]:
    """The three scores of one verdict: `rubric` (by its score), `rubric_by_error_type`, `contradiction`.

    Both rubrics are 0 to 2, higher is better, with a label out of `RUBRIC_LABELS` (or `HALF_UNNAMED`);
    `contradiction` is 1 where they differ, else 0. Raises pydantic's `ValidationError` on a score that is
    not 0, 1 or 2, or an error type that is unknown.

    >>> [(s.metric, s.value, s.label) for s in verdict_scores(0, "wrong_conclusion", item_id="q1", scorer="j")]
    [('rubric', 0.0, '0'), ('rubric_by_error_type', 1.0, '1 wrong conclusion'), ('contradiction', 1.0, '')]
    """
    verdict = Verdict.model_validate({"score": score, "error_type": error_type, "explanation": ""})
    said: list[tuple[Metric, float, str]] = [
        (RUBRIC, verdict.score, _label_by_score(verdict)),
        (RUBRIC_BY_ERROR_TYPE, _VALUE[verdict.error_type], _LABEL[verdict.error_type]),
        (CONTRADICTION, verdict.contradicts_itself, ""),
    ]
    return [
        Score(item_id=item_id, metric=metric.name, value=value, label=label, scorer=scorer, vote_key=vote_key)
        for metric, value, label in said
    ]


def _label_by_score(verdict: Verdict) -> str:
    if verdict.score != 1:
        return str(verdict.score)
    return HALF_UNNAMED if verdict.contradicts_itself else _LABEL[verdict.error_type]
