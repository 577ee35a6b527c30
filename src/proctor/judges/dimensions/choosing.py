"""Which of several judges is best on each dimension, and how good it is to choose so.

Choosing the best of many on some answers and stating how good it was on these very answers flatters: among
equally good judges the luckiest one wins. So the choice is made in folds that part no encounter: chosen on the
other folds, compared with the ratings of the one that was left out. As the judges themselves learn nothing
here, the inner step needs no folds of its own: each judge's agreement on the other folds is what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.audits import ALL, KINDS, CorrelationSettings, MetricScores, RatingCell, RatingCells, RatingsTable, paired
from proctor.core import InputError, content_hash, generator, read_model
from proctor.stats import Estimate, Floats, Resamples, Sampled, average

_KINDS: tuple[Literal["kendall", "pearson", "spearman"], ...] = ("kendall", "pearson", "spearman")


def agreement(scores: Sequence[float], ratings: Sequence[float]) -> float | None:
    """The task's figure: the mean of Kendall's, Pearson's and Spearman's correlation, −1 to 1; None where it
    isn't defined (fewer than two pairs, or all scores or all ratings the same).

    >>> agreement([0.1, 0.2, 0.3], [0.0, 0.5, 1.0]), agreement([0.5, 0.5], [0, 1])
    (1.0, None)
    """
    each = [str(place) for place in range(len(scores))]
    samples = Resamples(each, drawing=False)
    found = [samples.correlation(kind, list(scores), list(ratings), each) for kind in _KINDS]
    return sum(one.whole for one in found) / len(found) if all(one.defined for one in found) else None


Places = NDArray[np.int64]

_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ChosenFor(BaseModel):
    """The judge chosen for a dimension on all rated answers, and on those outside each fold."""

    model_config = _FROZEN

    everything: str
    without: list[str]


class HonestRow(BaseModel):
    """How good the choice is on a dimension ('': the mean over a language's dimensions).

    `value` (with its interval) is the mean over folds of the agreement within a fold of the judge that was
    chosen without it, over the `folds` whose ratings are not all the same; None, with the `reason`, where it
    isn't defined. `apparent` is the same figure of the judge chosen on everything, compared with the very
    ratings that it was chosen by: it flatters.
    """

    model_config = _FROZEN

    language: str
    dimension: str
    chosen: str
    same_in_folds: int
    folds: int
    value: float | None
    ci_low: float | None
    ci_high: float | None
    apparent: float | None
    reason: str = ""


class DimensionChoice(BaseModel):
    """The judge for each language and dimension ("en/overall"), and the fold of each encounter that the choice
    was made from: it is judged by the judge that was chosen without its fold, any other encounter by the one
    chosen on everything. So no encounter's ratings decide by whom it is judged, in either language.
    """

    model_config = _FROZEN

    kind: Literal["proctor choice 1"] = "proctor choice 1"
    judges: list[str] = Field(min_length=1)
    seed: int
    folds: dict[str, int]
    chosen: dict[str, ChosenFor]
    honest: list[HonestRow]

    @model_validator(mode="after")
    def _complete(self) -> DimensionChoice:
        last = max(self.folds.values(), default=-1)
        for one in self.chosen.values():
            if min(self.folds.values(), default=0) < 0 or len(one.without) <= last:
                raise ValueError("a choice for every fold is expected")
            if {one.everything, *one.without} - set(self.judges):
                raise ValueError("choices among the judges are expected")
        return self

    @property
    def sha256(self) -> str:
        """Of its content, for the record."""
        return content_hash(self)

    @property
    def needed(self) -> tuple[str, ...]:
        """The judges that are chosen anywhere, in their order."""
        used = {name for one in self.chosen.values() for name in (one.everything, *one.without)}
        return tuple(name for name in self.judges if name in used)

    def judge_for(self, encounter: str, language: str, dimension: str) -> str:
        """The name of the judge. Raises `InputError` for a dimension that nothing was chosen for."""
        found = self.chosen.get(f"{language}/{dimension}")
        if found is None:
            known = ", ".join(self.chosen)
            raise InputError("choice", found=f"none for {language}/{dimension}", expected=f"one of {known}")
        fold = self.folds.get(encounter)
        return found.everything if fold is None else found.without[fold]


@dataclass(frozen=True)
class _Rated:
    """One cell: its ratings, the scores of each judge that has some, and the fold of each rating."""

    cell: RatingCell
    scores: Mapping[str, Floats]
    fold: Places

    def told(self, fold: int) -> Places:
        """The places of a fold; none where all its ratings are the same, which says nothing of any judge."""
        inside = np.flatnonzero(self.fold == fold)
        return inside if len(inside) and np.ptp(self.cell.values[inside]) > 0 else inside[:0]

    def best(self, *, leaving: int | None = None) -> str:
        """The judge with the highest agreement outside a fold; the first among equals. Raises `InputError`
        where none has one."""
        kept = np.flatnonzero(self.fold != leaving) if leaving is not None else np.arange(len(self.fold))
        found = {
            name: value
            for name, scores in self.scores.items()
            if (value := agreement(scores[kept].tolist(), self.cell.values[kept].tolist())) is not None
        }
        if not found:
            place = f"{self.cell.language}/{self.cell.dimension}"
            raise InputError(
                None, place, found="no judge that agreement can be stated for", expected="one that tells apart"
            )
        return max(found, key=lambda name: found[name])


def choose_judges(
    table: RatingsTable,
    judges: Sequence[MetricScores],
    *,
    folds: int = 5,
    seed: int = 0,
    settings: CorrelationSettings | None = None,
) -> DimensionChoice:
    """The judge with the highest agreement (see `agreement`) for each language and dimension, and how good the
    choice is on encounters that it was not made on.

    Intervals are over samples of encounters (see `RatingCells`). A judge that opted out of a dimension, in one
    dataset or in all, is none of those to choose from. Raises `InputError` for fewer than two judges, a
    name given twice, fewer encounters than folds, and a dimension that no judge can be chosen for.
    """
    names = [one.name for one in judges]
    if len(names) < 2 or len(set(names)) != len(names):
        raise InputError(None, "judges", found=", ".join(names) or "none", expected="two or more, each once")
    encounters = sorted({one.cluster for one in table.ratings})
    if len(encounters) < folds:
        raise InputError(None, "ratings", found=f"{len(encounters)} encounters", expected=f"{folds} or more")
    order = generator(seed, "per-dimension").permutation(len(encounters))
    fold_of = {encounters[int(place)]: number % folds for number, place in enumerate(order)}
    frame = RatingCells(table, settings or CorrelationSettings(seed=seed))
    chosen: dict[str, ChosenFor] = {}
    honest: list[HonestRow] = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        rows, sampled = [], []
        for cell in frame.cells:
            if (cell.dataset, cell.language) != (ALL, language):
                continue
            rated = _rated(cell, judges, fold_of)
            one = ChosenFor(everything=rated.best(), without=[rated.best(leaving=fold) for fold in range(folds)])
            chosen[f"{language}/{cell.dimension}"] = one
            sampled.append(_within_folds(frame, rated, one.without))
            flattering = _within_folds(frame, rated, [one.everything] * folds)
            rows.append(_row(rated, one, sampled[-1], flattering))
        honest += [_mean_row(language, rows, sampled), *rows]
    return DimensionChoice(judges=names, seed=seed, folds=dict(sorted(fold_of.items())), chosen=chosen, honest=honest)


def read_choice(file: Path) -> DimensionChoice:
    """A choice from its JSON. Raises `InputError`, with the field, for anything else."""
    return read_model(file, DimensionChoice, "a choice")


def _rated(cell: RatingCell, judges: Sequence[MetricScores], fold_of: Mapping[str, int]) -> _Rated:
    pairs = {one.name: paired(cell, one) for one in judges}
    scores = {name: found for name, (found, opted_out) in pairs.items() if not opted_out}
    return _Rated(cell, scores, np.array([fold_of[one] for one in cell.groups], dtype=np.int64))


def _within_folds(frame: RatingCells, rated: _Rated, names: Sequence[str]) -> Sampled:
    """The mean over folds and the three correlations of the judge that is named for each fold, within it. Pooled
    over the folds, judges on different scales would spoil each other's ranks."""
    cell, samples = rated.cell, frame.samples(rated.cell)
    parts = []
    for fold, name in enumerate(names):
        inside = rated.told(fold)
        groups = [cell.groups[place] for place in inside]
        scores, values = rated.scores[name][inside], cell.values[inside]
        if len(inside):
            parts += [samples.correlation(kind, scores, values, groups) for kind in KINDS]
    if not parts:
        parts = [samples.correlation("pearson", [], [], [])]
    whole = average(parts)
    return Sampled(
        whole.whole, whole.drawn, whole.without, whole.present, len(cell.values), len(set(cell.groups)), whole.plan
    )


def _row(rated: _Rated, chosen: ChosenFor, sampled: Sampled, flattering: Sampled) -> HonestRow:
    name = chosen.everything
    estimate: Estimate = sampled.estimate()
    return HonestRow(
        language=rated.cell.language,
        dimension=rated.cell.dimension,
        chosen=name,
        same_in_folds=chosen.without.count(name),
        folds=sum(len(rated.told(fold)) > 0 for fold in range(len(chosen.without))),
        value=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        apparent=flattering.estimate().value,
        reason="" if sampled.defined else "in one of the folds all scores are the same",
    )


def _mean_row(language: str, rows: Sequence[HonestRow], sampled: Sequence[Sampled]) -> HonestRow:
    estimate = average(sampled).estimate()
    apparent = [one.apparent for one in rows if one.apparent is not None]
    return HonestRow(
        language=language,
        dimension="",
        chosen="",
        same_in_folds=0,
        folds=min(one.folds for one in rows),
        value=estimate.value,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        apparent=sum(apparent) / len(apparent) if len(apparent) == len(rows) else None,
        reason=next((one.reason for one in rows if one.reason), ""),
    )
