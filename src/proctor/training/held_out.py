"""How a judge agrees with clinicians on answers that it has not learned from: the audit's own figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from proctor.audits import (
    ALL,
    CorrelationSettings,
    Key,
    MetricScores,
    Rating,
    RatingCell,
    RatingCells,
    RatingsTable,
    paired,
)
from proctor.core import InputError, count_of
from proctor.judges.dimensions import RatedCase
from proctor.stats import Sampled, average


class HeldOutAgreement(BaseModel):
    """The mean of Kendall's τ-b, Pearson's and Spearman's correlation with people's ratings on one dimension, or ("")
    the mean over a language's dimensions; −1 to 1. The interval is over samples of encounters. None, with the `reason`,
    where it isn't defined: all scores or ratings are the same, or `missing` answers have no score."""

    model_config = ConfigDict(frozen=True)

    language: str
    dimension: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    answers: int
    encounters: int
    missing: int = 0
    reason: str = ""


def held_out_agreement(
    rated: Sequence[RatedCase], scores: Sequence[Mapping[str, float]], *, draws: int = 2000, seed: int = 0
) -> list[HeldOutAgreement]:
    """The agreement of `scores` (by dimension, one mapping for each rated answer, in the same order) with the ratings:
    for each language the mean over its dimensions, then each dimension. Each rater's rating counts by itself, as in an
    audit: the mean of the raters, where only that is known.

    A score that is missing is never filled in: that dimension, and the mean over the dimensions, have no agreement.
    `draws` of 0 leaves the intervals out. Raises `InputError` for another number of scores.
    """
    if len(rated) != len(scores):
        raise InputError("scores", found=f"{len(scores)}", expected=f"{len(rated)}, one for each rated answer")
    frame = RatingCells(_table(rated), CorrelationSettings(draws=draws, seed=seed))
    given: dict[Key, float | None] = {
        (one.case.id, str(place), name): own.get(name)
        for place, (one, own) in enumerate(zip(rated, scores, strict=True))
        for name in one.values
    }
    found: list[HeldOutAgreement] = []
    for language in dict.fromkeys(one.case.language for one in rated):
        cells = [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]
        rows, sampled = [], []
        for cell in cells:
            answers = set(cell.keys)
            missing = sum(given[key] is None for key in answers)
            reason = f"no score for {missing} of {count_of(len(answers), 'answer')}" if missing else ""
            measured = frame.measure(cell, paired(cell, MetricScores("held out", given))[0], reason)
            sampled.append(measured.mean)
            rows.append(_told(measured.mean, cell, cell.dimension, missing, measured.reason or measured.note))
        reasons = (f"{one.dimension}: {one.reason}" for one in rows if one.reason)
        missing = max(one.missing for one in rows)
        found += [_told(average(sampled), cells[0], "", missing, next(reasons, "")), *rows]
    return found


def _table(rated: Sequence[RatedCase]) -> RatingsTable:
    ratings = []
    for place, one in enumerate(rated):
        case, where = one.case, {"group": one.case.encounter, "language": one.case.language}
        ratings += [
            Rating(case.id, case.candidate, str(place), name, str(rater), value, **where)
            for name, mean in one.values.items()
            for rater, value in enumerate(one.each.get(name) or (mean,))
        ]
    return RatingsTable(tuple(ratings))


def _told(sampled: Sampled, cell: RatingCell, dimension: str, missing: int, reason: str) -> HeldOutAgreement:
    estimate = sampled.estimate()
    return HeldOutAgreement(
        language=cell.language,
        dimension=dimension,
        value=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        answers=len(set(cell.keys)),
        encounters=len(set(cell.groups)),
        missing=missing,
        reason=reason,
    )
