"""The metrics of judges and their labels: the three-level verdict, answers without a verdict, and the decisions of
people about these."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from pydantic import Field, field_validator, model_validator

from proctor import core
from proctor.core import ACCURACY, FrozenModel, Metric, NoVerdictError, RatingScheme, Score, human

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
    "contradiction", "Inconsistent judge ratings", higher_is_better=False, percent=True, formats=_FREE
)
VERDICT_METRICS = (RUBRIC, RUBRIC_BY_ERROR_TYPE, CONTRADICTION)


HALF_UNNAMED = "1"
"""The label of a score of 1 whose error type names no half or both halves: contradictory, and kept as given."""

CONTRADICTION_FLAG = "contradiction"
"""In the flags of a judgement whose score and error type contradict each other."""


class ErrorType(StrEnum):
    """Which half of an answer is wrong."""

    NONE = "none"
    WRONG_CONCLUSION = "wrong_conclusion"
    WRONG_VISUAL_EVIDENCE = "wrong_visual_evidence"
    BOTH = "both"


_VALUE = {ErrorType.NONE: 2, ErrorType.WRONG_CONCLUSION: 1, ErrorType.WRONG_VISUAL_EVIDENCE: 1, ErrorType.BOTH: 0}
_LABEL = dict(zip(_VALUE, RUBRIC_LABELS, strict=True))


class Verdict(FrozenModel):
    """What a judge says of one free response: strictly typed, nothing beside it.

    >>> Verdict.model_validate({"score": 0, "error_type": "both_fail", "explanation": "other organ"}).error_type
    <ErrorType.BOTH: 'both'>
    >>> Verdict(score=0, error_type=ErrorType.WRONG_CONCLUSION, explanation="").contradicts_itself
    True
    """

    explanation: str = Field(description="One or two sentences that give the reason.")
    error_type: ErrorType = Field(description="Which half of the answer is wrong.")
    score: int = Field(strict=True, ge=0, le=2, description="2 both halves right, 1 one half, 0 neither.")

    @field_validator("error_type", mode="before")
    @classmethod
    def _published_spelling(cls, value: object) -> object:
        return ErrorType.BOTH if value == "both_fail" else value  # as the published scores write it

    @property
    def contradicts_itself(self) -> bool:
        """Whether the score is not the one that the error type stands for."""
        return self.score != _VALUE[self.error_type]

    @property
    def flags(self) -> tuple[str, ...]:
        """For the judgement that keeps this verdict."""
        return (CONTRADICTION_FLAG,) if self.contradicts_itself else ()


class PublishedVerdict(Verdict):
    """A verdict by the paper's own prompt, completed as in the authors' script: an error type that is missing or `none`
    becomes a wrong conclusion for a score of 1, and both halves for a score of 0.

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
    score: int, error_type: ErrorType | str, *, item_id: str, scorer: str, judgement_key: str = ""
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
        Score(item_id=item_id, metric=metric.name, value=value, label=label, scorer=scorer, judgement_key=judgement_key)
        for metric, value, label in said
    ]


def _label_by_score(verdict: Verdict) -> str:
    if verdict.score != 1:
        return str(verdict.score)
    return HALF_UNNAMED if verdict.contradicts_itself else _LABEL[verdict.error_type]


RESOLVED = "resolved"
RESOLVED_SHORT = "resolved, a judgement missing"
"""A majority of the whole panel agrees, so that the missing judgement could change nothing."""
TIE = "tie"
JUDGEMENT_MISSING = "judgement missing"
"""No majority, and a missing judgement would decide."""

NO_VERDICT = "no verdict"
"""The judge declined, or gave no reply of the form."""
BY_FALLBACK = "resolved by the fallback"
"""The judge had no verdict, and its fallback had one."""

DECIDED_BY_A_PERSON = "decided by a person"
"""The judge had no verdict, and a person decided instead, whose name is withheld (see `decided_by`)."""

AWAITING_JUDGEMENTS = frozenset({RESOLVED_SHORT, JUDGEMENT_MISSING, NO_VERDICT})
"""Another pass asks again for the missing judgements of answers with these labels."""

UNRESOLVED = Metric(
    "unresolved",
    "Answers that the judge left unresolved",
    higher_is_better=False,
    percent=True,
    formats=("free_text",),
    levels=(RESOLVED, RESOLVED_SHORT, BY_FALLBACK, TIE, JUDGEMENT_MISSING, NO_VERDICT),
)
"""1 where an answer has no majority, and therefore no accuracy; else 0."""

JUDGE_FLAGS = frozenset({CONTRADICTION.name, UNRESOLVED.name})
"""Metrics that say something of the judge, and nothing of the system: nobody is better by them."""


def decided_by(person: str) -> str:
    """The label of `unresolved` for a person's decision.

    >>> decided_by("anna"), is_decided(decided_by("anna")), is_decided("resolved by the fallback")
    ('decided by human:anna', True, False)
    """
    return f"decided by {human(person)}"


def is_decided(label: str) -> bool:
    """Whether a label of `unresolved` is that of a person's decision."""
    return label.startswith("decided by ")


class PartialScoresError(NoVerdictError):
    """A judge gave some of its scores (`scores`) and not the others. The message says why those are missing; another
    pass asks for them."""

    def __init__(self, reason: str, scores: Sequence[Score]) -> None:
        super().__init__(reason)
        self.scores = tuple(scores)


CRITERIA_SCORE = Metric("criteria_score", "Share of the criteria's points", percent=True, formats=_FREE)
"""The points of the criteria that an answer meets over the sum of the positive points, 0 to 1."""

SINGLE_JUDGE = Metric("single_judge", "Right by a single judge", percent=True, formats=_FREE)
"""The judgement of one judge of a panel: 1 for right, 0 for wrong."""

PANEL_ACCURACY = replace(ACCURACY, formats=(*ACCURACY.formats, *_FREE))
"""Accuracy that includes free text, which a panel decides."""

ASPECTS = {
    "coverage": "Rationale: every frame covered (1–5)",
    "grounding": "Rationale: grounded in what is seen (1–5)",
    "correctness": "Rationale: clinically correct (1–5)",
    "consistency": "Rationale: consistent with the order given (1–5)",
}
"""The aspects of a rationale, with the labels of their metrics."""
RATIONALE_METRICS = tuple(
    Metric(f"rationale_{name}", label, low=1.0, high=5.0, formats=("ordering",)) for name, label in ASPECTS.items()
)
"""One metric for each aspect."""


_RIGHT = {"right": 1.0, "wrong": 0.0}
_OF_KIND = {
    "panel": (PANEL_ACCURACY,),
    "criteria": (CRITERIA_SCORE,),
    "three-level": VERDICT_METRICS,
    "rationale": RATIONALE_METRICS,
}
_FROM_RUBRIC = {RUBRIC_BY_ERROR_TYPE.name, CONTRADICTION.name}


def metrics_of_kind(judge: str) -> list[str]:
    """The metrics of a built-in judge of free text by its name; empty for others.

    >>> metrics_of_kind("criteria[m]"), metrics_of_kind("rating-judge[m]")
    (['criteria_score'], [])
    """
    return [metric.name for metric in _OF_KIND.get(judge.partition("[")[0].partition(":")[0], ())]


def asked_metrics(judge: str, given: Collection[str]) -> list[str]:
    """The metrics that a person decides instead of a judge: those that it has `given`, or else those of its kind,
    without those that follow from another metric. Empty where they are not known.

    >>> asked_metrics("three-level[m]", ["contradiction", "rubric", "rubric_by_error_type", "unresolved"])
    ['rubric']
    >>> asked_metrics("panel[m]", []), asked_metrics("another", ["unresolved"])
    (['accuracy'], [])
    """
    names = (set(given) - {UNRESOLVED.name}) or set(metrics_of_kind(judge))
    return sorted(names - _FROM_RUBRIC if RUBRIC.name in names else names)


def decided_values(metric: Metric, rating: RatingScheme | None) -> tuple[str, ...]:
    """The values that a person may choose; empty if any number between the metric's bounds will do.

    >>> decided_values(ACCURACY, None), decided_values(RUBRIC, None)
    (('right', 'wrong'), ('2', '1 wrong conclusion', '1 wrong visual evidence', '0'))
    """
    if metric.name == ACCURACY.name:
        return tuple(_RIGHT)
    if metric.name == RUBRIC.name:
        return RUBRIC_LABELS
    dimensions = rating.dimensions if rating is not None else ()
    return next(
        (
            tuple(f"{level:g}" for level in dimension.levels)
            for dimension in dimensions
            if dimension.name == metric.name
        ),
        (),
    )


def decided_scores(
    metric: Metric, said: str, rating: RatingScheme | None, *, item_id: str, scorer: str, judgement_key: str
) -> list[Score]:
    """The scores that follow from a person's value of a metric; none if that is not one of its values.

    >>> keys = {"item_id": "q1", "scorer": "j", "judgement_key": ""}
    >>> [(one.metric, one.value) for one in decided_scores(RUBRIC, "1 wrong conclusion", None, **keys)]
    [('rubric', 1.0), ('rubric_by_error_type', 1.0), ('contradiction', 0.0)]
    >>> decided_scores(ACCURACY, "0.5", None, **keys)
    []
    """
    if metric.name == RUBRIC.name:
        error_type = next((error for error, known in _LABEL.items() if known == said), None)
        if error_type is None:
            return []
        return verdict_scores(int(said[0]), error_type, item_id=item_id, scorer=scorer, judgement_key=judgement_key)
    value, label = core.cell_number(said), ""
    if metric.name == ACCURACY.name:
        value, label = _RIGHT.get(said), said
    elif allowed := decided_values(metric, rating):
        value = value if value in {float(one) for one in allowed} else None
    if value is None or not metric.low <= value <= metric.high:
        return []
    return [
        Score(item_id=item_id, metric=metric.name, value=value, scorer=scorer, label=label, judgement_key=judgement_key)
    ]
