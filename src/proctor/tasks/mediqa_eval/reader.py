"""MEDIQA-EVAL as a benchmark: an item is an encounter's question in one language, an answer is free text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proctor import core
from proctor.audits import ALL, Agreement, Audit, CorrelationSettings, Key, recorded_by_system
from proctor.audits import audit as run_audit
from proctor.core.formats import FreeTextFormat
from proctor.judges.dimensions import DimensionJudge, JudgeSetup, RatesDimensions, rating_judge
from proctor.stats import Estimate
from proctor.tasks.mediqa_eval import READER_SUMMARY
from proctor.tasks.mediqa_eval.native import (
    LOOKED_AT,
    SCHEME,
    Encounter,
    answers_to_judge,
    read_encounters,
    read_native_ratings,
    read_scores,
    read_submission,
)
from proctor.tasks.mediqa_eval.submission import write_scores

if TYPE_CHECKING:
    from proctor.results import ScoredAnswer

_ENCOUNTERS = "encounters.jsonl"
NAME = "mediqa-judge"


class MediqaReader(core.BenchmarkReader):
    """MEDIQA-EVAL 2026 (see `proctor.core.BenchmarkReader`)."""

    name = "mediqa-eval"
    summary = READER_SUMMARY
    sources = Path(__file__).parents[1] / "sources.yaml"
    judge_prompts = Path(__file__).parent / "prompts"
    rubric_judge = NAME
    ratings = audit_figures = True
    score_formats = ("submission",)
    verified_files = ("ratings.csv", "submission_overlap.csv", "expected_scores_overlap.json")

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> core.Benchmark:
        """The questions of `encounters.jsonl`, which is `data` or in it; `media` is the folder of images. The seed has no
        effect. Raises `InputError`, with the line."""
        del seed
        encounters = read_encounters(data / _ENCOUNTERS if data.is_dir() else data)
        return core.Benchmark(
            name=self.name,
            title="MEDIQA-EVAL 2026",
            items=tuple(item_of(encounter) for encounter in encounters),
            metrics=SCHEME.metrics,
            headline="overall",
            facets=("dataset", "language"),
            media_root=media,
            rating=SCHEME,
        )

    def read_ratings(
        self, path: Path, benchmark: core.Benchmark, *, answers_only: bool = False
    ) -> tuple[core.RecordedAnswers, ...]:
        """The answers of each system in a file of ratings, with the ratings as scores (see `BenchmarkReader`). Of a file
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
        """The scores of a submission (see `BenchmarkReader`)."""
        return read_scores(path, rated)

    def write_scores(
        self,
        form: str,
        scorer: str,
        scored: Sequence[ScoredAnswer],
        file: Path,
        *,
        template: Path | None,
        allow_missing: bool,
    ) -> int:
        """A submission of a judge's scores (see `write_scores`)."""
        del form
        return write_scores(scorer, scored, file, template=template, allow_missing=allow_missing)

    def official_audit(self, audit: Audit) -> dict[str, float | None]:
        return official(audit)

    async def verify(self, data: Path) -> list[core.VerifiedFigure]:
        """The figures of the task's own script for a submission, beside ours."""
        ratings, submission, expected = (data / name for name in self.verified_files)
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

    def read_recorded(self, path: Path, benchmark: core.Benchmark) -> core.RecordedAnswers:
        """The answers of the only system in the file. Raises `InputError` for several."""
        found = self.read_ratings(path, benchmark)
        if len(found) != 1:
            names = ", ".join(recorded_answers.system for recorded_answers in found)
            raise core.InputError(path, found=f"answers of {names}", expected="those of one system")
        return found[0]

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        pictures = core.count_of(len(missing), "picture")
        return f"{pictures} missing: the organisers of MEDIQA-EVAL hand pictures out beside {data.name}."


READER = MediqaReader()


def item_of(encounter: Encounter) -> core.Item:
    references = encounter.expert_answers
    weighed = any((reference.frequency, reference.completeness) != (None, None) for reference in references)
    return core.Item(
        id=encounter.item,
        group=f"{encounter.dataset}/{encounter.encounter_id}",
        question=encounter.query,
        answer=FreeTextFormat(),
        media=tuple(
            core.Image(source=name, label=f"Picture {number} of {len(encounter.images)}")
            for number, name in enumerate(encounter.images, start=1)
        ),
        reference=core.Reference(
            answer=references[0].text,
            accepted=tuple(reference.text for reference in references[1:]),
            reliability=tuple(
                core.Reliability(frequency=reference.frequency, completeness=reference.completeness)
                for reference in references
            )
            if weighed
            else (),
        ),
        tags={"dataset": encounter.dataset, "language": encounter.lang},
    )


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


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Every dimension of MEDIQA-EVAL in one reply, pictures first, by the task's rules (the organisers' judge)."""
    return rating_judge(NAME, setup)
