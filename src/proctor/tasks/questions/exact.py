"""Rows that a program wrote (`exact: true` in `benchmark.yaml`): each cell is taken as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from proctor.core import Item, ParseError, SheetRow, unfit
from proctor.interchange import DATASET_COLUMNS, RowForm, dataset_item
from proctor.tasks.questions.cells import path_of
from proctor.tasks.questions.columns import ColumnMap
from proctor.tasks.questions.rows import Place, RowReader


def exact_columns(names: Sequence[str]) -> ColumnMap:
    """The mapping of a dataset folder's columns: each by its own name, all others are facets."""
    known = {name: [name] for name in DATASET_COLUMNS if name in names}
    return ColumnMap(known, facets=[name for name in names if name not in known])


class ExactReader(RowReader):
    """Reads rows as `proctor.interchange.dataset_row` writes them."""

    @cached_property
    def _form(self) -> RowForm:
        return RowForm(self.settings.formats, dict.fromkeys(self.columns.facets, str))

    def item(self, row: SheetRow, number: int) -> Item | None:
        """The item of a row; None where something is wrong, all of which is added to `faults`."""
        del number
        item = dataset_item(row.cells, self._form, lambda *told: self._fault(row, *told))
        if item is None:
            return None
        before = len(self.faults)
        for name in ("id", "question"):
            if wrong := unfit(getattr(item, name)):
                self._fault(row, name, wrong, "a text")
        for medium in item.media:
            try:
                path_of(medium.source)
            except ParseError as error:
                self._fault(row, "media", repr(error.found[:80]), error.expected)
        if item.media:
            self.shown.append((Place(self.sheet.file, row.number), item.media))
        return None if len(self.faults) > before else item
