"""What benchmarks bring beside their readers: each part is of an installed benchmark, and says what it takes."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from proctor.audits import OFFICIAL_AUDITS
from proctor.core import (
    BENCHMARKS,
    OPTION_WRITERS,
    PATH_READERS,
    PUBLISHED_FIGURES,
    QUESTION_WRITERS,
    RATING_READERS,
    SUBMISSION_WRITERS,
    BenchmarkReader,
    InputError,
    OptionWriter,
    PathReader,
    ProctorError,
    PublishedFigures,
    QuestionWriter,
    RatingReader,
    Registry,
    SubmissionWriter,
    reader_of,
    reader_of_paths,
    registry,
    with_columns,
)
from proctor.metrics import PREDICTION_REPORTS, PredictionScorer
from proctor.results import OFFICIAL_SUMMARIES, SCORE_WRITERS, FigureProgram, OfficialProgram, ScoreWriter

PARTS = (
    OFFICIAL_AUDITS, OFFICIAL_SUMMARIES, OPTION_WRITERS, PATH_READERS, PREDICTION_REPORTS, PUBLISHED_FIGURES,
    QUESTION_WRITERS, RATING_READERS, SCORE_WRITERS, SUBMISSION_WRITERS,
)  # fmt: skip
PROTOCOLS = (
    BenchmarkReader, FigureProgram, OfficialProgram, OptionWriter, PathReader, PredictionScorer, PublishedFigures,
    QuestionWriter, RatingReader, ScoreWriter, SubmissionWriter,
)  # fmt: skip


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: parts.group)
def test_every_part_is_of_an_installed_benchmark_and_is_what_it_should_be(parts: Registry[Any]) -> None:
    assert parts.names()
    assert set(parts.names()) <= set(BENCHMARKS.names())
    for name in parts.names():
        parts.get(name)  # raises for what does not fit


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_part_takes_anything(protocol: type) -> None:
    """A benchmark's author sees from the protocol what is passed."""
    methods = [one for _, one in inspect.getmembers(protocol, inspect.isfunction)]
    methods += [one.fget for _, one in inspect.getmembers(protocol, lambda one: isinstance(one, property)) if one.fget]
    own = [one for one in methods if one.__qualname__.startswith(protocol.__name__)]
    assert own
    assert [(one.__name__, hint) for one in own for hint in one.__annotations__.values() if "Any" in str(hint)] == []


def test_columns_are_for_plain_files() -> None:
    with pytest.raises(InputError, match="--map: found answer, expected none: the files of focus have a fixed form"):
        with_columns(reader_of("focus"), {"answer": ["Antwort"]})
    assert with_columns(reader_of("focus"), {}) is reader_of("focus")


def test_two_readers_of_plain_paths_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, f"{name}:READER", PATH_READERS.group) for name in ("mine", "yours")]
    PATH_READERS.get("own-questions")
    monkeypatch.setattr(PATH_READERS, "_offered", None)
    monkeypatch.setattr(registry, "entry_points", lambda **_: points)
    with pytest.raises(
        ProctorError, match="one installed reader of plain paths is needed, found mine, own-questions, yours"
    ):
        reader_of_paths()


def test_a_path_reader_needs_all_that_a_path_needs() -> None:
    class Half(PathReader):
        name = summary = "half"

        def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Any:
            raise AssertionError

    with pytest.raises(TypeError, match=r"check.*question_files.*with_columns"):
        Half()  # type: ignore[abstract]
