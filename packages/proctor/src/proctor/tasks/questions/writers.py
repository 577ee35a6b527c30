"""One's own questions written again: with other options, or a part of them to hand out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from proctor.core import Benchmark, Item
from proctor.tasks.questions import exact
from proctor.tasks.questions.question_set import QuestionSet, read_questions
from proctor.tasks.questions.reader import benchmark_of


class QuestionOptions:
    """Writes questions with other options (see `proctor.core.OptionWriter`)."""

    exchange_within: tuple[str, ...] = ()

    def write_choices(self, data: Path, out: Path, items: Mapping[str, Item | None]) -> None:
        exact.write_choices(*_read(data), out, items)


OPTIONS = QuestionOptions()


def write_questions(data: Path, out: Path, items: Collection[str], *, references: bool, track: str = "") -> None:
    """Writes a part of the questions, which have no tracks (see `proctor.core.QuestionWriter`)."""
    del track
    exact.write_questions(*_read(data), out, items, references=references)


def _read(data: Path) -> tuple[QuestionSet, Benchmark]:
    reading = read_questions(data)
    reading.check()
    return reading, benchmark_of(reading)
