"""Corrected scores as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from proctor.core import DASH, Cell, Table, count_of, number, number_interval, p_value, percent, plain_table, signed
from proctor.reports.frames import FrameLike
from proctor.results import CorrectedResults, CorrectedScore, cannot_say

_SLIGHT = 0.15


@dataclass(frozen=True, repr=False)
class CorrectedTable(FrameLike):
    """A row for each corrected score and each difference; with `plan`, for each number of groups that could be drawn.
    `data` has the complete results."""

    data: CorrectedResults
    plan: bool = False

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """As `proctor results --corrected --format csv`."""
        return self.data.planned() if self.plan else [score.to_json() for score in self.data.scores]

    @property
    def title(self) -> str:
        """The benchmark and the judge."""
        return f"{self.data.sample.benchmark}: scores by {self.data.sample.judge}, corrected by people"

    @property
    def tables(self) -> Sequence[Table]:
        """The scores and the differences, or the plan."""
        if self.plan:
            return [self._planned()]
        scores = [score for score in self.data.scores if not score.other]
        pairs = [score for score in self.data.scores if score.other]
        return [self._scores(scores), *([self._differences(pairs)] if pairs else [])]

    @property
    def notes(self) -> tuple[str, ...]:
        """How the scores were corrected, why some are missing, and what they don't say."""
        found = self.data
        lines = [_how(found), *found.notes]
        if found.unjudged:
            lines.append(f"{count_of(found.unjudged, 'answer')} without a score by the judge: in no mean.")
        lines += [f"{_name(score)}, {score.dimension}: not given. {score.why}" for score in found.scores if score.why]
        if self.plan:
            savings = [row["saving"] for row in self.rows]
            if savings and max(savings) < _SLIGHT:
                lines.append(
                    "The judge saves less than 15 % of the labels: it is corrected for validity, not for savings."
                )
            return tuple(lines)
        return (*lines, *cannot_say(found))

    def _scores(self, scores: Sequence[CorrectedScore]) -> Table:
        heads = (
            "dimension",
            "system",
            ">corrected",
            ">people alone",
            ">judge alone",
            ">width",
            ">r",
            ">answers",
            ">labelled",
        )
        return plain_table(self.title, heads, [_score_row(score) for score in scores])

    def _differences(self, pairs: Sequence[CorrectedScore]) -> Table:
        heads = ("dimension", "difference", ">corrected", ">people alone", ">judge alone", ">p", ">p (Holm)")
        return plain_table("Differences, corrected by people", heads, [_pair_row(pair) for pair in pairs])

    def _planned(self) -> Table:
        heads = (
            "dimension",
            "system",
            ">groups drawn",
            ">more labels",
            ">corrected ±",
            ">people alone ±",
            ">labels saved",
        )
        rows = [
            (
                row["dimension"],
                f"{row['system']} − {row['other']}" if row["other"] else row["system"],
                f"{row['drawn']} of {row['groups']}",
                row["more_labels"],
                Cell(number(row["half_width"]), raw=row["half_width"]),
                Cell(number(row["labels_half_width"]), raw=row["labels_half_width"]),
                Cell(percent(row["saving"]), raw=row["saving"]),
            )
            for row in self.rows
        ]
        return plain_table("What more labels would give", heads, rows)


def _how(found: CorrectedResults) -> str:
    """How the scores were corrected."""
    sample, (low, high) = found.sample, found.raters
    people = f"{low}" if low == high else f"{low} to {high}"
    several = " (their mean is the label)" if high > 1 else ""
    every = count_of(sum(len(one.groups) for one in sample.strata), "group")
    drawn = (
        f"{len(sample.drawn)} of {every} drawn by seed {sample.seed} on {sample.made[:10]} (sample {sample.sha256[:8]})"
    )
    how = f"Intervals: {100 * found.level:g} %, over groups, prediction-powered"
    return f"{how}. {drawn}; {people} people for each answer{several}."


def _name(score: CorrectedScore) -> str:
    return f"{score.system} − {score.other}" if score.other else score.system


def _score_row(score: CorrectedScore) -> tuple[Any, ...]:
    mean = score.mean
    if mean is None:
        return (score.dimension, score.system, *[DASH] * 7)
    return (
        score.dimension,
        score.system,
        Cell(number(mean.value), below=number_interval(mean.ci_low, mean.ci_high), raw=mean.value),
        Cell(
            number(mean.labels_alone), below=number_interval(mean.labels_low, mean.labels_high), raw=mean.labels_alone
        ),
        Cell(number(mean.judge_alone), raw=mean.judge_alone),
        Cell(f"{mean.relative_width:.2f} ×", raw=mean.relative_width),
        Cell(number(mean.correlation), raw=mean.correlation),
        mean.n,
        mean.labelled,
    )


def _pair_row(pair: CorrectedScore) -> tuple[Any, ...]:
    mean = pair.mean
    if mean is None:
        return (pair.dimension, _name(pair), *[DASH] * 5)
    return (
        pair.dimension,
        _name(pair),
        Cell(signed(mean.value), below=number_interval(mean.ci_low, mean.ci_high), raw=mean.value),
        Cell(
            signed(mean.labels_alone), below=number_interval(mean.labels_low, mean.labels_high), raw=mean.labels_alone
        ),
        Cell(signed(mean.judge_alone), raw=mean.judge_alone),
        Cell(p_value(mean.p), raw=mean.p),
        Cell(p_value(pair.p_holm), raw=pair.p_holm),
    )
