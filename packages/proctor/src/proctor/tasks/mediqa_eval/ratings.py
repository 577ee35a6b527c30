"""Clinicians' ratings of the answers of several systems, and scorers' scores of them, in the task's own files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor import core
from proctor.audits import Key, recorded_by_system
from proctor.tasks.mediqa_eval.native import LOOKED_AT, answers_to_judge, read_native_ratings, read_scores


class MediqaRatings:
    """Reads files of ratings and submissions (see `proctor.core.RatingReader`)."""

    def read_ratings(
        self, path: Path, benchmark: core.Benchmark, *, answers_only: bool = False
    ) -> tuple[core.RecordedAnswers, ...]:
        """The answers of each system in a file of ratings, with the ratings as scores (see `RatingReader`). Of a file
        without values (a template) only the answers are read."""
        rows = core.read_table(path, LOOKED_AT).checked(path)
        if answers_only or not any(row.cells.get("value", "").strip() for row in rows):
            found = {answer_row.key[:2]: answer_row.candidate for answer_row in answers_to_judge(path)}
            recorded = recorded_by_system(found, (), path.name)
        else:
            ratings = read_native_ratings(path).ratings
            found = {(rating.item, rating.system): rating.candidate for rating in ratings}
            recorded = recorded_by_system(found, ratings, path.name)
        known = {item.id for item in benchmark.items}
        for item, _ in found:
            if item not in known:
                raise core.InputError(path, found=f"no encounter {item}", expected="one for every answer")
        return recorded

    def read_scores(self, path: Path, rated: Mapping[Key, str]) -> core.RecordedScores:
        """The scores of a submission."""
        return read_scores(path, rated)


RATINGS = MediqaRatings()
