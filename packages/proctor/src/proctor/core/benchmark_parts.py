"""What some benchmarks bring beside their reader: a protocol for each part, and where to find it by the benchmark's name.

A part is registered by an entry point with the name of the benchmark, as the reader itself is. A room that has types of
its own holds the parts that speak of them: `proctor.metrics` prediction reports, `proctor.audits` official audits, and
`proctor.results` official summaries and files of scores.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from proctor.core.errors import InputError, ProctorError
from proctor.core.protocols import BenchmarkReader
from proctor.core.registry import PluginReport, Registry

if TYPE_CHECKING:
    from proctor.core.item import Item
    from proctor.core.metric import VerifiedFigure
    from proctor.core.protocols import Benchmark, RecordedAnswers, RecordedScores
    from proctor.core.records import Answer

P = TypeVar("P")


class Parts(Registry[P]):
    """The parts of one kind, by the name of the benchmark, found by the entry points of `group`. A part has the
    attributes `needed`; without any it is a function.

    >>> lamps: Parts[str] = Parts("lamp", "proctor.lamps", "upper")
    >>> lamps.add("rexsonovqa", "a lamp")
    >>> lamps.of("rexsonovqa"), lamps.of("focus")
    ('a lamp', None)
    """

    def __init__(self, what: str, group: str, *needed: str) -> None:
        names = " and ".join(filter(None, (", ".join(needed[:-1]), *needed[-1:])))
        super().__init__(
            what,
            group=group,
            fits=(lambda thing: all(hasattr(thing, name) for name in needed)) if needed else callable,
            expected=f"an object with {names}" if needed else "a function",
        )

    def of(self, benchmark: str) -> P | None:
        """The part of a benchmark, loaded on first use; None for one without. Raises as `get`."""
        return self.get(benchmark) if benchmark in self.names() else None


class PathReader(BenchmarkReader):
    """A reader of any folder or file of questions, so that a path can be given as benchmark."""

    @abstractmethod
    def with_columns(self, columns: Mapping[str, Sequence[str]]) -> PathReader:
        """The reader of files with these columns for these fields. Raises `InputError` for an unknown field."""

    @abstractmethod
    def check(self, data: Path, media: Path | None, out: Path | None, *, every: bool = False) -> PluginReport:
        """Check the questions at a path. The report lists all faults by cause, or `every` fault, and as "faults" in its
        `json`. If there are none, a preview page is written to `out`, if given. Raises `InputError` if nothing exists
        at the path."""

    @abstractmethod
    def question_files(self, data: Path) -> Sequence[Path]:
        """The files with the questions at a path, which outputs must not overwrite."""


class RatingReader(Protocol):
    """Reads files with answers of several systems and people's ratings of them."""

    def read_ratings(
        self, path: Path, benchmark: Benchmark, *, answers_only: bool = False
    ) -> tuple[RecordedAnswers, ...]:
        """The answers of each system, with human ratings as scores by `human(rater)`; `answers_only` ignores ratings.
        Raises `InputError` with the row."""

    def read_scores(self, path: Path, rated: Mapping[tuple[str, str, str], str]) -> RecordedScores:
        """A scorer's scores. `rated` has the answers' texts by item, system and dimension, each of which needs a score.
        Raises `InputError` with the row."""


class SubmissionWriter(Protocol):
    """Writes a run's answers in the formats of the organisers."""

    @property
    def formats(self) -> Sequence[str]:
        """The names of the formats, as `proctor export --format` takes them."""

    def write_submission(self, form: str, answers: Sequence[Answer], file: Path) -> int:
        """Write the answers and return their number; failed and missing answers are omitted. Raises `InputError` if the
        file can't be written."""


class OptionWriter(Protocol):
    """Writes a benchmark's files again with other options."""

    @property
    def exchange_within(self) -> Sequence[str]:
        """The tags that two items must share for the right answer of one to serve as a wrong option of the other, such
        as question type and organ."""

    def write_choices(self, data: Path, out: Path, items: Mapping[str, Item | None]) -> None:
        """Write the benchmark's files at `data` to the folder `out`, with the options, answers and option pools of
        these choice items (by id, in this order). Items that are None are kept, but not counted. `load` reads the
        result. Raises `InputError` for files that can't be written again."""


class QuestionWriter(Protocol):
    """Writes some questions of a benchmark to hand them out."""

    def __call__(self, data: Path, out: Path, items: Collection[str], *, references: bool, track: str = "") -> None:
        """Write the benchmark's files at `data`, of a `track` if it has some, to the folder `out`, restricted to these
        items. Without `references` the files do not reveal the answers, and `load` reads the same questions with options in the same order. Raises
        `InputError` for files that can't be written again."""


class PublishedFigures(Protocol):
    """Computes a benchmark's published figures again, from recorded answers."""

    @property
    def files(self) -> Sequence[str]:
        """The needed files in the folder of recorded answers; none if no answers were published."""

    async def verify(self, data: Path) -> Sequence[VerifiedFigure]:
        """The published figures and ours. Raises `InputError` for unreadable files."""


PATH_READERS: Registry[PathReader] = Registry(
    "reader of paths",
    group="proctor.path_readers",
    fits=lambda thing: isinstance(thing, PathReader),
    expected="an instance of PathReader",
    named=True,
)
RATING_READERS: Parts[RatingReader] = Parts(
    "reader of ratings", "proctor.rating_readers", "read_ratings", "read_scores"
)
SUBMISSION_WRITERS: Parts[SubmissionWriter] = Parts(
    "writer of submissions", "proctor.submission_writers", "formats", "write_submission"
)
OPTION_WRITERS: Parts[OptionWriter] = Parts(
    "writer of options", "proctor.option_writers", "exchange_within", "write_choices"
)
QUESTION_WRITERS: Parts[QuestionWriter] = Parts("writer of questions", "proctor.question_writers")
PUBLISHED_FIGURES: Parts[PublishedFigures] = Parts("published figures", "proctor.published_figures", "files", "verify")


def reader_of_paths() -> PathReader:
    """The installed reader of questions at a path. Raises `ProctorError` unless there is exactly one.

    >>> reader_of_paths().name
    'own-questions'
    """
    names = PATH_READERS.names()
    if len(names) != 1:
        raise ProctorError(f"one installed reader of plain paths is needed, found {', '.join(names) or 'none'}")
    return PATH_READERS.get(names[0])


def with_columns(reader: BenchmarkReader, columns: Mapping[str, Sequence[str]] | None) -> BenchmarkReader:
    """The reader of files with these columns for these fields; the reader itself without any. Raises `InputError` if
    its files have a fixed form.

    >>> with_columns(reader_of_paths(), {}).name
    'own-questions'
    """
    if not columns:
        return reader
    if not isinstance(reader, PathReader):
        expected = f"none: the files of {reader.name} have a fixed form"
        raise InputError("--map", found=", ".join(columns), expected=expected)
    return reader.with_columns(columns)


def question_files(reader: BenchmarkReader, data: Path) -> Sequence[Path]:
    """The files with the questions at a path, which outputs must not overwrite.

    >>> from proctor.core import reader_of
    >>> [str(path) for path in question_files(reader_of("focus"), Path("focus"))]
    ['focus']
    """
    return reader.question_files(data) if isinstance(reader, PathReader) else (data,)


def option_writer(benchmark: str, data: Path) -> OptionWriter:
    """What writes a benchmark's files at `data` with other options. Raises `InputError` for a benchmark without.

    >>> option_writer("rexsonovqa", Path("r")).exchange_within
    ('question_type', 'category')
    """
    return _needed(OPTION_WRITERS, benchmark, data, "options to replace", "a benchmark that can be written again")


def question_writer(benchmark: str, data: Path) -> QuestionWriter:
    """What writes some of a benchmark's questions at `data`. Raises `InputError` for a benchmark without.

    >>> question_writer("simulated", Path("s"))
    Traceback (most recent call last):
    proctor.core.errors.InputError: s: benchmark 'simulated': found questions to hand out, expected files written by hand, or ...
    """
    expected = "files written by hand, or a benchmark that can write them"
    return _needed(QUESTION_WRITERS, benchmark, data, "questions to hand out", expected)


def _needed(parts: Parts[P], benchmark: str, data: Path, found: str, expected: str) -> P:
    part = parts.of(benchmark)
    if part is None:
        raise InputError(data, f"benchmark {benchmark!r}", found=found, expected=f"{expected} ({parts.group})")
    return part
