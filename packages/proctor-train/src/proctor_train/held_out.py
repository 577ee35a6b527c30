"""Held-out encounters: folds without leaks, and the agreement of a judge with clinicians on answers that it has not learned
from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

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
from proctor.core import InputError, count_of, generator
from proctor.judges.dimensions import Case, RatedCase, encounter_scores
from proctor.stats import Sampled, average

_MAX_NAMED = 3


def refuse_leaks(train: Iterable[Case], held: Iterable[Case], *, where: str = "the held-out part") -> None:
    """Raises `InputError` if an encounter is on both sides, by its name or by its content (see `encounter_scores`): the same
    question with the same references, or the same picture, under another name."""
    learned = _by_score(train)
    shared: dict[str, str] = {}
    for score, encounter in _by_score(held).items():
        if score in learned:
            kind = score.partition(":")[0]
            by = "its name" if kind == "name" else f"the same {kind} as {learned[score]}"
            shared.setdefault(encounter, by)
    if shared:
        first = ", ".join(f"{name} ({by})" for name, by in list(shared.items())[:_MAX_NAMED])
        more = f" and {len(shared) - _MAX_NAMED} more" if len(shared) > _MAX_NAMED else ""
        raise InputError(
            f"training and {where}", found=f"encounters in both: {first}{more}", expected="each in one of them"
        )


def _by_score(cases: Iterable[Case]) -> dict[str, str]:
    """The encounter of each score. Each language of an encounter is read, since its texts differ."""
    found: dict[str, str] = {}
    for case in _once(cases):
        for score in sorted({f"name:{case.encounter}", *encounter_scores(case)}):
            found.setdefault(score, case.encounter)
    return found


def _once(cases: Iterable[Case]) -> list[Case]:
    """One case for each question."""
    found: dict[tuple[str, str], Case] = {}
    for case in cases:
        found.setdefault((case.id, case.query), case)
    return list(found.values())


def refuse_constant(rated: Sequence[RatedCase]) -> None:
    """Raises `InputError` if all ratings on a dimension of these answers in one language are the same, or missing."""
    for dimension in rated[0].case.dimensions:
        values = {rated_case.values[dimension.name] for rated_case in rated if dimension.name in rated_case.values}
        if len(values) < 2:
            found = f"all {next(iter(values)):g}" if values else "none"
            location = f"ratings of {dimension.name!r} in {rated[0].case.language!r}"
            raise InputError(location, found=found, expected="some that differ: leave out this dimension")


def encounter_folds(rated: Sequence[RatedCase], folds: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """The indices of (training, held-out) answers for each of `folds` folds. Every encounter is held out once, in all its
    languages and with all its answers, together with encounters that share a score with it (copies under other names).

    Raises `InputError` for fewer groups of encounters than folds.
    """
    group = _joined(rated)
    names = sorted(set(group))
    if not 2 <= folds <= len(names):
        found = f"{count_of(len(names), 'encounter')} with nothing shared"
        raise InputError(f"{folds} folds", found=found, expected=f"2 folds or more, and {folds} encounters")
    order = generator(seed, "training folds").permutation(len(names))
    fold = {names[int(at)]: number % folds for number, at in enumerate(order)}
    return [
        (
            [k for k, name in enumerate(group) if fold[name] != number],
            [k for k, name in enumerate(group) if fold[name] == number],
        )
        for number in range(folds)
    ]


def _joined(rated: Sequence[RatedCase]) -> list[str]:
    """The name of each answer's group of encounters, which share a score directly or through others."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    owner: dict[str, str] = {}
    for case in _once(rated_case.case for rated_case in rated):
        for score in encounter_scores(case):
            first, second = root(owner.setdefault(score, case.encounter)), root(case.encounter)
            parent[max(first, second)] = min(first, second)
    return [root(rated_case.case.encounter) for rated_case in rated]


class HeldOutAgreement(BaseModel):
    """The mean of Kendall's τ-b, Pearson's and Spearman's correlation with people's ratings on one dimension, or ('') the
    mean over a language's dimensions; −1 to 1. The interval is over bootstrap samples of encounters. The value is None,
    with the `reason`, if it is undefined: constant scores or ratings, or `missing` answers without a score."""

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
    """The agreement of `scores` (by dimension, one mapping for each rated answer, in the same order) with the ratings: for
    each language the mean over its dimensions, then each dimension. Each rater's rating counts by itself, as in an audit;
    if only the mean over raters is known, that one.

    Missing scores are never imputed: their dimension, and the mean over dimensions, have no agreement. `draws` of 0
    leaves the intervals out. Raises `InputError` for another number of scores.
    """
    if len(rated) != len(scores):
        raise InputError("scores", found=f"{len(scores)}", expected=f"{len(rated)}, one for each rated answer")
    frame = RatingCells(_table(rated), CorrelationSettings(draws=draws, seed=seed))
    given: dict[Key, float | None] = {
        (one.case.id, str(index), name): own.get(name)
        for index, (one, own) in enumerate(zip(rated, scores, strict=True))
        for name in one.values
    }
    found: list[HeldOutAgreement] = []
    for language in dict.fromkeys(rated_case.case.language for rated_case in rated):
        cells = [cell for cell in frame.cells if (cell.dataset, cell.language) == (ALL, language)]
        rows, sampled = [], []
        for cell in cells:
            answers = set(cell.keys)
            missing = sum(given[key] is None for key in answers)
            reason = f"no score for {missing} of {count_of(len(answers), 'answer')}" if missing else ""
            measured = frame.measure(cell, paired(cell, MetricScores("held out", given))[0], reason)
            sampled.append(measured.mean)
            rows.append(_agreement(measured.mean, cell, cell.dimension, missing, measured.reason or measured.note))
        reasons = (f"{row.dimension}: {row.reason}" for row in rows if row.reason)
        missing = max(row.missing for row in rows)
        found += [_agreement(average(sampled), cells[0], "", missing, next(reasons, "")), *rows]
    return found


def shuffled_ratings(rated: Sequence[RatedCase], seed: int) -> list[RatedCase]:
    """The same answers with ratings permuted within each language, so that nothing can be learned."""
    found = list(rated)
    for language in dict.fromkeys(rated_case.case.language for rated_case in rated):
        rows = [k for k, one in enumerate(rated) if one.case.language == language]
        order = generator(seed, "classifier-judge", "shuffled", language).permutation(len(rows))
        for row, other in zip(rows, order.tolist(), strict=True):
            found[row] = replace(rated[rows[other]], case=rated[row].case)
    return found


def _table(rated: Sequence[RatedCase]) -> RatingsTable:
    ratings = []
    for row, one in enumerate(rated):
        case, where = one.case, {"group": one.case.encounter, "language": one.case.language}
        ratings += [
            Rating(case.id, case.candidate, str(row), name, str(rater), value, **where)
            for name, mean in one.values.items()
            for rater, value in enumerate(one.each.get(name) or (mean,))
        ]
    return RatingsTable(tuple(ratings))


def _agreement(sampled: Sampled, cell: RatingCell, dimension: str, missing: int, reason: str) -> HeldOutAgreement:
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
