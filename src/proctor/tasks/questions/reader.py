"""From a person's own questions to a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.core import (
    Answer,
    Benchmark,
    BenchmarkReader,
    InputError,
    ParseError,
    RecordedAnswers,
    TableFault,
    cell_text,
    is_empty,
    one_of,
    read_sheet,
)
from proctor.tasks.questions.columns import plain
from proctor.tasks.questions.reading import QuestionSet, read_questions

_ANSWERS = ("answer", "response", "prediction", "reply", "output", "text", "antwort")
_IDS = ("id", "item id", "question id", "qid")


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

    def read_recorded(self, path: Path, benchmark: Benchmark) -> RecordedAnswers:
        """Answers in a table with the columns id and answer (response, prediction, …), in any of the forms of tables."""
        return recorded_answers(path, benchmark)

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
        notes=(*settings.notes, *licence),
        buckets=tuple(settings.buckets),
        prompt=layout.folder / settings.prompt if settings.prompt else None,
        reading=tuple(reading.notes),
    )


def recorded_answers(path: Path, benchmark: Benchmark) -> RecordedAnswers:
    """See `QuestionsReader.read_recorded`. Raises `InputError`, with all faults as its notes."""
    sheet = read_sheet(path)
    known = {item.id: item for item in benchmark.items}
    columns = {plain(name): name for name in reversed(sheet.columns)}
    where = {}
    for what, names in (("id", _IDS), ("answer", _ANSWERS)):
        where[what] = next((columns[plain(name)] for name in names if plain(name) in columns), "")
        if sheet.columns and not where[what]:
            sheet.fault(1, "", f"no column for the {what}", one_of(names))
    answers: dict[str, Answer] = {}
    for row in sheet.rows if all(where.values()) else ():
        item = known.get(cell_text(row.cells.get(where["id"])))
        cell = row.cells.get(where["answer"])
        if item is None:
            found = repr(cell_text(row.cells.get(where["id"])))
            sheet.fault(row.number, where["id"], found, f"the id of one of the {len(known)} questions")
        elif item.id in answers:
            sheet.fault(row.number, where["id"], f"{item.id!r} again", "each id once")
        elif not is_empty(cell):
            text = cell_text(cell)
            try:
                parsed = item.answer.parse(text, item.options)
                answers[item.id] = Answer(item_id=item.id, text=text, parsed=parsed)
            except ParseError as error:
                answers[item.id] = Answer(item_id=item.id, text=text, problem=str(error))
    _raise(path, sheet.faults)
    missing = len(known) - len(answers)
    notes = (f"{missing} of {len(known)} questions have no answer in {path.name}",) if missing else ()
    return RecordedAnswers(tuple(answers.values()), settings={"recorded": path.name}, notes=notes)


def _raise(path: Path, faults: Sequence[TableFault]) -> None:
    if len(faults) == 1:
        raise faults[0].error(path)
    if faults:
        error = InputError(path, found=f"{len(faults)} faults", expected="none (see above)")
        for fault in faults[:100]:
            error.add_note(str(fault.error(path)))
        raise error
