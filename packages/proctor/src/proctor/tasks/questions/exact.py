"""Folders that a program wrote (`exact: true` in `benchmark.yaml`): each cell is written and read as it stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from proctor.core import Benchmark, InputError, Item, ParseError, SheetRow, input_bytes, json_line, unfit, write_whole
from proctor.interchange import DATASET_COLUMNS, RowForm, dataset_item, dataset_row, row_form
from proctor.tasks.questions.cells import path_of
from proctor.tasks.questions.columns import ColumnMap
from proctor.tasks.questions.folder import NAME
from proctor.tasks.questions.rows import RowLocation, RowReader

if TYPE_CHECKING:
    from proctor.tasks.questions.question_set import QuestionSet


def exact_columns(names: Sequence[str]) -> ColumnMap:
    """The columns of a dataset folder by their own names; all others are facets."""
    known = {name: [name] for name in DATASET_COLUMNS if name in names}
    return ColumnMap(known, facets=[name for name in names if name not in known])


class ExactReader(RowReader):
    """Reads rows as `proctor.interchange.dataset_row` writes them."""

    @cached_property
    def _form(self) -> RowForm:
        return RowForm(self.settings.formats, dict.fromkeys(self.columns.facets, str))

    def item(self, row: SheetRow, number: int) -> Item | None:
        """The item of a row; None, with `faults`, for an invalid one."""
        del number
        item = dataset_item(row.cells, self._form, lambda *fault: self.fault(row, *fault))
        if item is None:
            return None
        before = len(self.faults)
        for name in ("id", "question"):
            if wrong := unfit(getattr(item, name)):
                self.fault(row, name, wrong, "a text")
        for medium in item.media:
            try:
                path_of(medium.source)
            except ParseError as error:
                self.fault(row, "media", repr(error.found[:80]), error.expected)
        if item.media:
            self.shown.append((RowLocation(self.sheet.file, row.number), item.media))
        return None if len(self.faults) > before else item


COUNTED = "counted"
"""The facet that says which questions count; it is renamed if there is one already."""

_OF_THE_FILE = {
    "questions", "sheet", "split", "columns", "format", "formats", "tolerances", "shuffle_options", "window", "audio",
}  # fmt: skip


def write_choices(reading: QuestionSet, benchmark: Benchmark, out: Path, items: Mapping[str, Item | None]) -> None:
    """Writes the questions into `out`, with those of `items` replaced; questions that are None there do not count. Media
    are not copied. Raises `InputError` for questions with media inside their table."""
    name = COUNTED
    while any(name in item.tags for item in benchmark.items):
        name += "-here"
    counted = {item.id for item in benchmark.counted()}
    written = []
    for item in benchmark.items:
        new = items.get(item.id, item)
        counts = new is not None and item.id in counted
        written.append((new or item).model_copy(update={"tags": {**(new or item).tags, name: counts}}))
    changed = {"name": f"{benchmark.name[:71]}-repaired", "title": f"{benchmark.title[:178]} with repaired options"}
    _write(reading, benchmark, out, written, changed | {"only": {name: True}})


def write_questions(
    reading: QuestionSet, benchmark: Benchmark, out: Path, items: Collection[str], *, references: bool
) -> None:
    """Writes a part of the questions into `out`, with or without references. Raises as `write_choices`."""
    kept = [item for item in benchmark.items if item.id in items]
    written = kept if references else [item.without_answer() for item in kept]
    _write(reading, benchmark, out, written, {"name": benchmark.name, "title": benchmark.title})


def _write(
    reading: QuestionSet, benchmark: Benchmark, out: Path, written: Sequence[Item], changed: Mapping[str, Any]
) -> None:
    if reading.folder.embedded:
        raise InputError(
            reading.layout.path, found="media inside the table", expected="media beside it, by their paths"
        )
    form = row_form(written)
    rows = [json_line(dataset_row(item, form)) for item in written]
    write_whole(out / "questions.jsonl", "".join(rows))
    own = reading.layout.settings
    settings: dict[str, Any] = own.model_dump(mode="json", exclude_defaults=True, exclude=_OF_THE_FILE)
    settings |= {"exact": True, "facets": list(benchmark.facets), "seeds": dict(benchmark.seeds), **changed}
    settings["formats"] = {
        key: {"kind": one.kind} | one.model_dump(mode="json", exclude_defaults=True)
        for key, one in form.formats.items()
    }
    write_whole(out / NAME, yaml.safe_dump(settings, allow_unicode=True, sort_keys=False))
    if benchmark.prompt is not None:
        target = out / own.prompt
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(input_bytes(benchmark.prompt))
