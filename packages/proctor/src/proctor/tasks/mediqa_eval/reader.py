"""MEDIQA-EVAL as a benchmark: an item is an encounter's question in one language, an answer is free text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor import core
from proctor.core.formats import FreeTextFormat
from proctor.tasks.mediqa_eval import READER_SUMMARY
from proctor.tasks.mediqa_eval.native import SCHEME, Encounter, read_encounters
from proctor.tasks.mediqa_eval.ratings import RATINGS

_ENCOUNTERS = "encounters.jsonl"
NAME = "mediqa-judge"


class MediqaReader(core.BenchmarkReader):
    """MEDIQA-EVAL 2026 (see `proctor.core.BenchmarkReader`)."""

    name = "mediqa-eval"
    summary = READER_SUMMARY
    sources = Path(__file__).parents[1] / "sources.yaml"
    judge_prompts = Path(__file__).parent / "prompts"
    rubric_judge = NAME

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

    def read_recorded(self, path: Path, benchmark: core.Benchmark) -> core.RecordedAnswers:
        """The answers of the only system in the file. Raises `InputError` for several."""
        found = RATINGS.read_ratings(path, benchmark)
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
