"""From a person's own questions to a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.core import Benchmark, BenchmarkReader
from proctor.tasks.questions.reading import QuestionSet, read_questions


class QuestionsReader(BenchmarkReader):
    """Reads plain paths; `columns` are those that somebody named for fields."""

    name = "own-questions"
    summary = "Your own questions: a folder, a spreadsheet, CSV, JSON Lines or a Hugging Face dataset"
    reads_paths = True

    def __init__(self, columns: Mapping[str, Sequence[str]] | None = None) -> None:
        self._columns = columns or {}

    def with_columns(self, columns: Mapping[str, Sequence[str]]) -> QuestionsReader:
        return QuestionsReader(columns)

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        """Reads everything at a path; raises `InputError`, with all faults as its notes, where anything is wrong."""
        del seed  # options stay in the order in which they are written
        reading = read_questions(data, media, self._columns)
        reading.check()
        return benchmark_of(reading)

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        return f"proctor check {data} lists the {len(missing)} files that are missing, each with its row."


READER = QuestionsReader()


def benchmark_of(reading: QuestionSet) -> Benchmark:
    """The benchmark of what was read without a fault."""
    settings, layout = reading.layout.settings, reading.layout
    licence = (f"Licence: {settings.licence}",) if settings.licence else ()
    return Benchmark(
        name=layout.name,
        title=settings.title or layout.name,
        items=tuple(reading.items),
        metrics=tuple(reading.metrics),
        headline=settings.headline,
        facets=tuple(reading.facets),
        conditions=tuple(settings.conditions),
        media_root=reading.folder.write_embedded(),
        budget_s=settings.budget_s,
        notes=(*settings.notes, *licence, *reading.notes),
        buckets=tuple(settings.buckets),
        prompt=layout.folder / settings.prompt if settings.prompt else None,
        reading=tuple(reading.notes),
    )
