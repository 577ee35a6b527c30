"""Turn rows into items: each row gives an item or all of its faults."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue, ValidationError

from proctor import core
from proctor.core.formats import AnswerFormat, is_abstention
from proctor.media import labels_of, parse_window
from proctor.metrics.ordering import NEIGHBOURS
from proctor.tasks.questions.answers import (
    NO_ANSWER,
    AnswerContext,
    adjusted_format,
    declared_format,
    guessed_format,
    is_unit,
    looks_like,
    reference_of,
)
from proctor.tasks.questions.cells import options_of, seconds_of, texts_of, undirected
from proctor.tasks.questions.columns import ColumnMap
from proctor.tasks.questions.folder import Settings
from proctor.tasks.questions.media import MediaFolder, sound_of_video

T = TypeVar("T")
MADE_UP = "row-"
"""The beginning of an id that is made up, before the question's number. No import matches it by itself."""
_MOST_ID = 200
_MOST_OPTIONS = 26
_GRADED_ONLY = {"ordering", "ratings", "preference", "scale"}  # an abstention is no value of their scales


@dataclass(frozen=True)
class RowLocation:
    """The row of an item in its file."""

    file: Path
    row: int


_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+(?!\d)")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d")


@dataclass
class RowReader:
    """Reads rows by a mapping of columns. `guessed` are the rows and references by guessed format; `doubted` are rows of
    free text by the format that they resemble; `bare` are the rows without options whose format is guessed; `shown` are
    the media of each row."""

    sheet: core.Sheet
    columns: ColumnMap
    settings: Settings
    folder: MediaFolder
    faults: list[tuple[Path, core.TableFault]] = field(default_factory=list)
    guessed: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    doubted: dict[str, list[int]] = field(default_factory=dict)
    bare: list[int] = field(default_factory=list)
    shown: list[tuple[RowLocation, tuple[core.Media, ...]]] = field(default_factory=list)

    def item(self, row: core.SheetRow, number: int) -> core.Item | None:
        """The item of a row, without a group if there is no column for it; None, with `faults`, for an invalid row."""
        before = len(self.faults)
        item_id = self._id(row, number)
        question = self._text(row, "question")
        media = self._media(row)
        if media:
            self.shown.append((RowLocation(self.sheet.file, row.number), media))
        options = self._options(row)
        pictures = [medium for medium in media or () if medium.kind == "image"]
        labels = labels_of(len(pictures)) if len(pictures) > 1 else []
        unit, tolerance = (undirected(self._cell(row, name)) for name in ("unit", "tolerance"))
        given = core.cell_text(unit), not core.is_empty(tolerance)
        context = AnswerContext(tuple(options or ()), tuple(labels), *given, faulty=options is None)
        answer, criteria, references = self._right(row, context)
        unanswerable = self._unanswerable(row, context.options)
        evidence = self._evidence(row, media or ())
        if len(self.faults) > before or answer is None:
            return None
        shown = () if answer.kind == "classes" else tuple(options or ())  # it lists its own
        try:
            return core.Item(
                id=item_id,
                group=core.cell_text(undirected(self._cell(row, "group"))) or "\0",
                question=question,
                media=media or (),
                options=shown,
                answer=answer,
                reference=core.Reference(
                    answer=references[0],
                    accepted=references[1:],
                    unanswerable=unanswerable,
                    criteria=criteria,
                    rationale=core.cell_text(self._cell(row, "rationale")),
                ),
                tags=self._tags(row) | _units(answer),
                evidence=evidence,
            )
        except ValidationError as error:
            problem = core.first_problem(error)
            self.fault(row, "", problem.found, problem.expected)
            return None

    def _right(
        self, row: core.SheetRow, context: AnswerContext
    ) -> tuple[AnswerFormat | None, tuple[core.Criterion, ...], tuple[JsonValue, ...]]:
        """The format of a row's answer, its criteria, and the reference with other accepted answers: None alone where it
        has none, or is `unanswerable`."""
        if self._unanswerable(row, context.options):
            return self._unanswerable_format(row, context), (), (None,)
        answer = self._answer(row, context)
        criteria = self._criteria(row, answer)
        if criteria and self._unanswered(row):
            return answer, criteria, (None,)
        return answer, criteria, self._references(row, answer, context)

    def _unanswerable(self, row: core.SheetRow, options: Sequence[str]) -> bool:
        """Whether the right answer is the word for a question that can't be answered (`is_abstention`), and no option has
        that text."""
        text = core.cell_text(undirected(self._cell(row, "answer")))
        return is_abstention(text) and not any(is_abstention(option) for option in options)

    def _unanswerable_format(self, row: core.SheetRow, context: AnswerContext) -> AnswerFormat | None:
        """The format in which an unanswerable question would be answered: declared, or a choice of the options."""
        answer_column, more = self.columns.one("answer"), self.columns.one("accepted")
        for name, column in (("accepted answers", more), ("criteria", self.columns.one("criteria"))):
            if column and not core.is_empty(row.cells.get(column)):
                self.fault(row, column, f"{name} of a question that is unanswerable", "nothing")
        name = core.cell_text(self._cell(row, "format")) or self.settings.format or ""
        if not name and len(context.options) < 2:
            found = repr(core.cell_text(self._cell(row, "answer")))
            self.fault(row, answer_column, found, "a column 'format' that says how it would be answered, or options")
            return None
        where = self.columns.one("format") if name else answer_column
        form = self._tried(row, where, lambda: declared_format(name or "choice", "", self.settings, context))
        if form is not None and form.kind in _GRADED_ONLY:
            self.fault(row, where, f"the format {form.kind} of a question that is unanswerable", "another format")
            return None
        return self._adjusted(row, form)

    def _cell(self, row: core.SheetRow, field_name: str) -> Any:
        return row.cells.get(self.columns.one(field_name))

    def fault(self, row: core.SheetRow, column: str, found: str, expected: str) -> None:
        self.faults.append((self.sheet.file, core.TableFault(row.number, column, found, expected)))

    def _tried(self, row: core.SheetRow, column: str, read: Callable[[], T]) -> T | None:
        """The result of `read`; None, with a fault in this column, if it raises."""
        try:
            return read()
        except core.ParseError as error:
            self.fault(row, column, repr(error.found[:80]), error.expected)
            return None

    def _id(self, row: core.SheetRow, number: int) -> str:
        column = self.columns.one("id")
        if not column:
            return f"{MADE_UP}{number}"
        text = core.cell_text(undirected(row.cells.get(column)))
        wrong = core.unfit(text) or (
            "nothing" if not text else "" if len(text) <= _MOST_ID else f"{len(text)} characters"
        )
        if wrong:
            self.fault(row, column, wrong, f"a name of 1 to {_MOST_ID} characters")
        return text

    def _text(self, row: core.SheetRow, name: str) -> str:
        column = self.columns.one(name)
        cell = row.cells.get(column)
        text = core.cell_text(cell)
        if not text:
            self.fault(row, column, "nothing", f"the {name}")
        elif core.unfit(text):
            self.fault(row, column, core.unfit(text), "a text")
        elif isinstance(cell, dt.date | dt.time | list | dict):
            self.fault(row, column, _described(cell), "a text")
        return text

    def _media(self, row: core.SheetRow) -> tuple[core.Media, ...] | None:
        columns = self.columns.fields.get("media", [])
        start, end = self._seconds(row, "start"), self._seconds(row, "end")
        if end is not None and end <= (start or 0.0):
            shown = core.cell_text(self._cell(row, "end"))
            self.fault(row, self.columns.one("end"), repr(shown), f"a time after the start, {start or 0:g} s")
            return None
        sound = self.columns.one("audio")
        heard = row.cells.get(sound)
        before = len(self.faults)
        audio = self._tried(row, sound, lambda: sound_of_video(heard))
        if len(self.faults) > before:
            return None
        cells = [row.cells.get(column) for column in columns]
        if sound and not core.is_empty(heard):
            columns = [*columns, sound]
            cells += [heard] if audio is None else []
        where = [sound, *columns] if audio else columns  # sound without a video
        column = next((one for one in where if not core.is_empty(row.cells.get(one))), self.columns.one("start"))
        window = self._window(row)
        folder = self.folder
        return self._tried(row, column, lambda: folder.media(folder.sources(cells), (start, end), window, audio=audio))

    def _window(self, row: core.SheetRow) -> tuple[float, float] | None:
        column = self.columns.one("window")
        cell = undirected(row.cells.get(column))
        if not column or core.is_empty(cell):
            return None
        text = "/".join(map(core.cell_text, cell)) if isinstance(cell, list) else core.cell_text(cell)
        return self._tried(row, column, lambda: parse_window(text))

    def _seconds(self, row: core.SheetRow, name: str) -> float | None:
        column = self.columns.one(name)
        cell = undirected(row.cells.get(column))
        return self._tried(row, column, lambda: seconds_of(cell, decimal_comma=self.sheet.decimal_comma))

    def _options(self, row: core.SheetRow) -> list[str] | None:
        if self.columns.options:
            column = self.columns.options[0]
            cells = [core.cell_text(row.cells.get(option)) for option in self.columns.options]
            filled = [cell for cell in cells if cell]
            if cells[: len(filled)] != filled:
                gap = self.columns.options[cells.index("")]
                self.fault(row, gap, "nothing", "an option, since others follow")
                return None
            dated = [option for option in self.columns.options if isinstance(row.cells.get(option), dt.date | dt.time)]
            if dated:
                self.fault(row, dated[0], _described(row.cells[dated[0]]), "an option as a text")
                return None
        else:
            column = self.columns.one("options")
            cell = row.cells.get(column)
            if core.is_empty(cell):
                return []
            read = self._tried(row, column, lambda: options_of(cell))
            if read is None:
                return None
            filled = read
        return filled if self._options_hold(row, column, filled) else None

    def _options_hold(self, row: core.SheetRow, column: str, options: Sequence[str]) -> bool:
        plain = [" ".join(option.casefold().split()) for option in options]
        twice = next((option for option in options if plain.count(" ".join(option.casefold().split())) > 1), None)
        if twice is not None:
            self.fault(row, column, f"the option {twice[:60]!r} twice", "different options")
        elif len(options) == 1 or len(options) > _MOST_OPTIONS:
            self.fault(row, column, core.count_of(len(options), "option"), f"2 to {_MOST_OPTIONS}, or none")
        else:
            return True
        return False

    def _answer(self, row: core.SheetRow, context: AnswerContext) -> AnswerFormat | None:
        column = self.columns.one("answer")
        cell = undirected(row.cells.get(column))
        name = core.cell_text(self._cell(row, "format")) or self.settings.format
        known = context if is_unit(context.unit) else replace(context, unit="")
        if name:
            where = self.columns.one("format")
            found = self._tried(row, where, lambda: declared_format(name, cell, self.settings, known))
            return self._adjusted(row, found)
        if self._unanswered(row) and not core.is_empty(self._cell(row, "criteria")):
            from proctor.core.formats import FreeTextFormat

            return FreeTextFormat()
        if core.is_empty(cell):
            self.fault(row, column, "nothing", "the right answer")
            return None
        if isinstance(cell, dt.date):
            self.fault(row, column, _described(cell), "an answer as a text")
            return None
        found = self._tried(row, column, lambda: guessed_format(cell, self.settings, known))
        found = self._adjusted(row, found)
        if found is not None:
            self.guessed.setdefault(found.kind, []).append((row.number, core.cell_text(cell)))
            self.bare += [] if context.options or context.labels else [row.number]
            if found.kind == "free_text" and (other := looks_like(cell, context)):
                self.doubted.setdefault(other, []).append(row.number)
        return found

    def _unanswered(self, row: core.SheetRow) -> bool:
        return core.is_empty(self._cell(row, "answer"))

    def _adjusted(self, row: core.SheetRow, answer: AnswerFormat | None) -> AnswerFormat | None:
        for name in ("unit", "tolerance"):
            column = self.columns.one(name)
            given = {name: core.cell_text(undirected(row.cells.get(column)))}
            if answer is not None and given[name]:
                answer = self._tried(row, column, partial(adjusted_format, answer, self.settings, **given))
        return answer

    def _criteria(self, row: core.SheetRow, answer: AnswerFormat | None) -> tuple[core.Criterion, ...]:
        column = self.columns.one("criteria")
        cell = row.cells.get(column)
        if core.is_empty(cell) or answer is None:
            return ()
        if answer.kind != "free_text":
            self.fault(row, column, f"criteria of the format {answer.kind}", "them with free text alone")
            return ()
        return self._tried(row, column, lambda: core.read_criteria(cell)) or ()

    def _evidence(self, row: core.SheetRow, media: Sequence[core.Media]) -> core.Evidence | None:
        """Where and when the answer is visible; None, with faults, for what can't be of these media."""
        comma, names = self.sheet.decimal_comma, [self.columns.one(f"evidence {what}") for what in ("windows", "boxes")]
        cells = [row.cells.get(name) for name in names]
        if all(map(core.is_empty, cells)):
            return None
        from proctor.tasks.questions.evidence import boxes_of, windows_of

        windows = self._tried(row, names[0], lambda: windows_of(cells[0], decimal_comma=comma))
        boxes = self._tried(row, names[1], lambda: boxes_of(cells[1], decimal_comma=comma))
        parts: list[tuple[str, dict[str, Any]]] = [(names[0], {"windows": windows}), (names[1], {"boxes": boxes})]
        whole: dict[str, Any] = {}
        for column, part in parts:
            if not any(part.values()):
                continue
            if fault := core.Evidence(**part).fault(media):
                self.fault(row, column, repr(core.cell_text(row.cells.get(column))[:80]), fault)
            whole |= part
        return core.Evidence(**whole) if whole else None

    def _references(
        self, row: core.SheetRow, answer: AnswerFormat | None, context: AnswerContext
    ) -> tuple[JsonValue, ...]:
        """The reference and other accepted answers; empty, with faults, for invalid ones."""
        if answer is None:
            return ()
        column, more = self.columns.one("answer"), self.columns.one("accepted")
        cell = row.cells.get(column) if answer.any_text else undirected(row.cells.get(column))
        text = core.cell_text(cell)
        if not text or (answer.kind == "free_text" and text.casefold() in NO_ANSWER):
            self.fault(row, column, repr(text) if text else "nothing", "the right answer")
            return ()
        if answer.kind == "quantity" and isinstance(cell, str) and self._with_commas and _THOUSANDS.match(cell.strip()):
            expected = "a number (1000 or 1.0: a point before three digits may mean either beside decimal commas)"
            self.fault(row, column, repr(cell), expected)
            return ()
        marks = self.columns.marks
        found = self._tried(row, column, lambda: reference_of(answer, cell, context, marks))
        for text in texts_of(undirected(row.cells.get(more))):
            also = self._tried(row, more, lambda text=text: reference_of(answer, text, context, marks))  # type: ignore[misc]
            found = None if found is None or also is None else (*found, *also)
        return tuple(one for index, one in enumerate(found or ()) if one not in (found or ())[:index])

    @cached_property
    def _with_commas(self) -> bool:
        """Whether some answer of the table has a decimal comma, so that a point may separate thousands."""
        cells = (row.cells.get(self.columns.one("answer")) for row in self.sheet.rows)
        return self.sheet.decimal_comma and any(isinstance(cell, str) and _DECIMAL_COMMA.match(cell) for cell in cells)

    def _tags(self, row: core.SheetRow) -> dict[str, core.TagValue]:
        found = {name: _tag(row.cells.get(name)) for name in self.columns.facets}
        return {name: value for name, value in found.items() if value is not None}


def _units(answer: AnswerFormat) -> dict[str, core.TagValue]:
    """The number of parts of an answer, of which metrics count the right ones."""
    return {NEIGHBOURS: len(answer.labels) - 1} if answer.kind == "ordering" else {}


def _tag(cell: Any) -> core.TagValue | None:
    """A facet's value; None for empty cells, objects and images."""
    if core.is_empty(cell) or isinstance(cell, dict | bytes):
        return None
    if isinstance(cell, list):
        return tuple(core.cell_text(one) for one in cell)
    if isinstance(cell, bool | int):
        return cell
    if isinstance(cell, float) and not cell.is_integer():
        return cell if math.isfinite(cell) else None
    return "".join(char for char in core.cell_text(cell) if not core.unfit(char))


def _described(cell: object) -> str:
    kind = "date" if isinstance(cell, dt.date) else "time" if isinstance(cell, dt.time) else type(cell).__name__
    return f"a {kind}, {core.cell_text(cell).replace('T00:00:00', '')}"
