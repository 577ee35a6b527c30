"""The figures of the task's own script: of an audit, and the published ones computed again."""

from __future__ import annotations

from pathlib import Path

from proctor import core
from proctor.audits import ALL, Agreement, Audit, CorrelationSettings
from proctor.audits import audit as run_audit
from proctor.stats import Estimate
from proctor.tasks.mediqa_eval.native import read_native_ratings, read_submission

_KINDS = {"kendall": "kendalltau", "pearson": "pearson", "spearman": "spearman", "mean": "mean"}


def official(audit: Audit) -> dict[str, float | None]:
    """`iiyi-en-overall-kendalltau`, …, `ALL-en-ALL-mean`; None where there is no correlation."""
    figures: dict[str, float | None] = {}
    for aggregate in audit.aggregates:
        for row in audit.agreements:
            if row.language == aggregate.language:
                for kind, name in _KINDS.items():
                    figures[_key(row.dataset, row.language, row.dimension, name)] = _of(row, kind).value
        figures[_key(ALL, aggregate.language, ALL, "mean")] = aggregate.mean.value
    return figures


def _of(row: Agreement, kind: str) -> Estimate:
    found: Estimate = getattr(row, kind)
    return found


def _key(*parts: str) -> str:
    return "-".join(part for part in parts if part)


class MediqaFigures:
    """The figures of the task's own script for a submission (see `proctor.core.PublishedFigures`)."""

    files = ("ratings.csv", "submission_overlap.csv", "expected_scores_overlap.json")

    async def verify(self, data: Path) -> list[core.VerifiedFigure]:
        """The figures of the task's own script for a submission, beside ours."""
        ratings, submission, expected = (data / name for name in self.files)
        table = read_native_ratings(ratings)
        ours = official(run_audit(table, read_submission(submission, table), CorrelationSettings(draws=0)))
        given = core.read_json(expected, "the figures of the task's script")
        if not isinstance(given, dict):
            raise core.InputError(expected, found=type(given).__name__, expected="an object of figures by name")
        figures = []
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise core.InputError(expected, name, found=repr(value), expected="a number")
            figures.append(core.VerifiedFigure(name, f"the task's own script ({expected.name})", value, ours.get(name)))
        return figures


PUBLISHED = MediqaFigures()
