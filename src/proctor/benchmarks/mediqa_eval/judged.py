"""What a judge said of the task's answers: as a submission, in full, and in short."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from pydantic import JsonValue

from proctor.audit import MetricScores, RatingsTable
from proctor.benchmarks.mediqa_eval.answers import AnswerRow
from proctor.benchmarks.mediqa_eval.task import COLUMNS, ORDER
from proctor.core import InputError
from proctor.judges.dimensions import Case, DimensionScores
from proctor.judges.dimensions.calibration import RatedScore

__all__ = ["DimensionSummary", "Judged", "rated_scores"]

_Answer = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DimensionSummary:
    """One dimension over all answers in its language. `disagreement` is the members' mean one, where the judge
    has several."""

    language: str
    dimension: str
    scores: int
    missing: int
    mean: float | None
    disagreement: float | None


@dataclass(frozen=True)
class Judged:
    """The scores of every answer, by item and system, and the rows that a submission of them has."""

    judge: str
    settings: Mapping[str, JsonValue]
    rows: Sequence[AnswerRow]
    cases: Mapping[_Answer, Case]
    scores: Mapping[_Answer, DimensionScores]

    @cached_property
    def missing(self) -> list[tuple[AnswerRow, str]]:
        """The rows without a score, each with the reason."""
        found = [(one, self.scores[one.key[:2]].missing.get(one.dimension)) for one in self.rows]
        return [(one, reason) for one, reason in found if reason is not None]

    def submission(self) -> str:
        """The scores as CSV in the task's columns, `rater_id` being the judge. What is missing has no row."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in self.rows:
            value = self.scores[one.key[:2]].values.get(one.dimension)
            if value is not None:
                cells = (one.dataset, one.encounter, one.language, one.candidate, one.system, one.dimension)
                writer.writerow((*cells, self.judge, f"{value:.10g}"))
        return text.getvalue()

    def details(self) -> str:
        """Everything as JSON: the judge and its settings, counts, and of each answer what was said and why."""
        answers = [
            {"item": item, "system": system, **asdict(self.scores[item, system])}
            for item, system in self.cases
        ]
        told = {
            "judge": self.judge,
            "settings": dict(self.settings),
            "answers": len(self.cases),
            "missing_scores": len(self.missing),
            "rule_breaks": self.rule_breaks,
            "flags": self.flags,
            "dimensions": [asdict(one) for one in self.summary()],
            "scores": answers,
        }
        return json.dumps(told, ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    @property
    def rule_breaks(self) -> dict[str, int]:
        """How many answers' scores break each rule."""
        return dict(Counter(name for one in self.scores.values() for name in one.breaks))

    @property
    def flags(self) -> dict[str, int]:
        """How many answers have each flag."""
        return dict(Counter(name for one in self.scores.values() for name in one.flags))

    def summary(self) -> list[DimensionSummary]:
        """Each dimension over all answers, in the task's order."""
        found = []
        for language, dimension in ORDER:
            keys = [
                one.key[:2] for one in self.rows if (one.language, one.dimension) == (language, dimension)
            ]
            if not keys:
                continue
            said = [self.scores[key] for key in keys]
            values = [one.values[dimension] for one in said if dimension in one.values]
            apart = [one.disagreement[dimension] for one in said if dimension in one.disagreement]
            missing = len(said) - len(values)
            found.append(
                DimensionSummary(language, dimension, len(values), missing, _mean(values), _mean(apart))
            )
        return found


def rated_scores(scores: MetricScores, table: RatingsTable) -> list[RatedScore]:
    """Each rating with the score of the same answer, to learn a calibration from. What the scores opt out of
    is left out. Raises `InputError` where that leaves nothing."""
    found = [
        RatedScore(one.cluster, one.language, one.dimension, value, one.value)
        for one in table.ratings
        if (value := scores.scores[one.key]) is not None
    ]
    if not found:
        raise InputError(scores.name, found="no scores", expected="one or more")
    return found


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
