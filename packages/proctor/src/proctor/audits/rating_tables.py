"""Tables of people's ratings and of metrics' scores on file, in the forms that people and `proctor export` write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor import core
from proctor.audits.rating_columns import RatingColumns, person_in, plain_text, rated_number, rating_columns
from proctor.audits.ratings import RESERVED, Key, MetricScores, Rating, RatingsTable, shown_key

_VALUE = "value"
_SCORE_COLUMNS = ("item", "system", _VALUE)
_NO_METRIC = {
    *(*_SCORE_COLUMNS, "dimension", "candidate", "group", "dataset", "language", "rater", "lower_is_better"),
    *("metric", "scorer", "condition", "status", "text", "parsed", "latency_s", "extra"),
}
_MAX_METRICS = 50  # they are compared in pairs
_ONE_DIMENSION = "quality"
"""The dimension of a table without dimensions."""
_YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": False}
_EXPORTED = {"item", "system", "metric", "scorer", _VALUE}
_CODE = "code"  # the scorer that gives metrics without a model
_ABOUT_JUDGES = {"unresolved", "contradiction"}
"""Metrics in an export that say something about a judge, and nothing about an answer."""


@dataclass
class RatingRows:
    """What a table of ratings holds: `ratings` with their rows, the `texts` of answers by item and system with their
    rows, and the `lower` dimensions. `conditions` are those that the table names, by system. Nothing of it counts where
    there are `faults`."""

    columns: RatingColumns
    ratings: list[tuple[int, Rating]] = field(default_factory=list)
    texts: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    lower: frozenset[str] = frozenset()
    conditions: dict[str, set[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[core.TableFault] = field(default_factory=list)


def read_ratings(file: Path, columns: Mapping[str, Sequence[str]] | None = None) -> RatingsTable:
    """Ratings from a table (see `read_sheet`): long, with the columns `item, system, rater, value` and, optionally,
    `dimension` (default: a single one) and `lower_is_better` (yes or no, by dimension); or wide, with a column for each
    dimension or for each rater instead of `value`. Columns are recognised by names in several languages; `columns`
    names those of some fields. Optional are also `candidate`, `group`, `dataset` and `language` (see `Rating`). A table
    of `proctor export` holds the scores by people. Empty ratings are left out, and counted in the notes.

    Raises `InputError` for anything else, with the row; for several faults with a note for each cause.
    """
    found = read_rating_rows(file, columns or {})
    if not found.faults and not found.ratings:
        found.faults.append(core.TableFault(0, "", "no rating", "one or more"))
    if found.faults:
        raise core.first_fault(file, found.faults)
    return RatingsTable(
        tuple(rating for _, rating in found.ratings), lower_is_better=found.lower, notes=tuple(found.notes)
    )


def read_rating_rows(
    file: Path,
    given: Mapping[str, Sequence[str]],
    *,
    known_items: Collection[str] = (),
    facets: Collection[str] = (),
    system: str = "",
) -> RatingRows:
    """The ratings in a table with all faults (see `read_ratings`). `known_items` and `facets` help to recognise columns
    (see `rating_columns`); a table without a column of systems is about `system`."""
    sheet = _sheet(file)
    if sheet.faults:
        return RatingRows(RatingColumns(), faults=list(sheet.faults))
    if {*sheet.columns} >= _EXPORTED and not given.keys() - {"lower_is_better"}:
        columns = replace(_exported_columns(sheet), lower=tuple(given.get("lower_is_better", ())))
    else:
        columns = rating_columns(sheet, given, known_items=known_items, facets=facets, one_system=bool(system))
    if columns.faults:
        return RatingRows(columns, faults=list(columns.faults))
    found = _RatingReader(sheet, columns, system).read()
    if not columns.plain and columns.rater != "scorer":
        found.notes.insert(0, columns.line)
    return found


def _exported_columns(sheet: core.Sheet) -> RatingColumns:
    """The columns of `proctor export`, whose scorers are people, too."""
    named = {name: name for name in ("item", "system", "group", "condition", "dataset", "language", _VALUE)}
    there: dict[str, Any] = {name: column for name, column in named.items() if column in sheet.columns}
    text = "text" if "text" in sheet.columns else ""
    return RatingColumns(**there, rater="scorer", dimension="metric", candidate=text)


class _RatingReader:
    """Reads the rows of one table of ratings."""

    def __init__(self, sheet: core.Sheet, columns: RatingColumns, system: str) -> None:
        self.sheet, self.columns, self.system = sheet, columns, system
        self.found = RatingRows(columns)
        self._seen: dict[tuple[Key, str], int] = {}
        self._groups: dict[tuple[str, str], tuple[str, int]] = {}
        self._lower: dict[str, tuple[bool, int]] = {}
        self._names = _names_with_condition(sheet, columns)

    def read(self) -> RatingRows:
        found, empty = self.found, 0
        for row in self.sheet.rows:
            if self.columns.rater == "scorer" and not person_in(self._text(row, "rater")):
                continue
            empty += self._read(row)
        if empty:
            found.notes.append(f"{core.count_of(empty, 'cell')} without a rating left out")
        found.lower = frozenset({name for name, (turned, _) in self._lower.items() if turned} | {*self.columns.lower})
        known = {rating.dimension for _, rating in found.ratings}
        for name in self.columns.lower:
            if name not in known and not found.faults:
                expected = core.one_of(sorted(known), name)
                found.faults.append(core.TableFault(1, "", f"no dimension {name!r} (lower_is_better)", expected))
        if known == {_ONE_DIMENSION} and not self.columns.dimension and not self.columns.dimensions:
            found.notes.append(f"No column of dimensions: all ratings are of {_ONE_DIMENSION!r}")
        texts = found.texts
        found.ratings = [
            (row, replace(rating, candidate=texts.get((rating.item, rating.system), ("", 0))[0]))
            for row, rating in found.ratings
        ]
        return found

    def _read(self, row: core.SheetRow) -> int:
        """Reads a row, and returns the number of its empty cells of ratings."""
        before = len(self.found.faults)
        item, system = self._name(row, "item"), self._system(row)
        self._add_text(row, (item, system))
        self._add_group(row, (item, system))
        rated = [(column, row.cells.get(column)) for column in self.columns.valued]
        filled = [(column, cell) for column, cell in rated if not core.is_empty(cell)]
        lacking = len(rated) - len(filled)
        if not filled or len(self.found.faults) > before:
            return lacking
        rater = "" if self.columns.raters else self._name(row, "rater")
        if self.columns.rater == "scorer":
            rater = person_in(rater)
        dimension = self._name(row, "dimension") if self.columns.dimension else _ONE_DIMENSION
        for column, cell in filled:
            own_rater = column if self.columns.raters else rater
            own_dimension = column if self.columns.dimensions else dimension
            value = self._value(row, column, cell)
            if len(self.found.faults) == before and value is not None:
                self._add(row, column, Rating(item, "", system, own_dimension, own_rater, value))
        return lacking

    def _add(self, row: core.SheetRow, column: str, rating: Rating) -> None:
        for what, (name, means) in RESERVED.items():
            if getattr(rating, what) == name:
                self._fault(
                    row, getattr(self.columns, what) or column, repr(name), f"another name: it stands for {means}"
                )
                return
        first = self._seen.setdefault((rating.key, rating.rater), row.number)
        if first != row.number:
            found = f"a second rating by {rating.rater!r}, after row {first}"
            self._fault(row, self.columns.rater or column, found, "one of each rater")
            return
        turned = self._is_lower(row)
        if turned is None:
            return
        known, where = self._lower.setdefault(rating.dimension, (turned, row.number))
        if known != turned:
            self._fault(row, self.columns.lower_is_better, "another direction", f"that of row {where}")
            return
        group, dataset, language = (self._text(row, name) for name in ("group", "dataset", "language"))
        if dataset == RESERVED["dataset"][0]:
            expected = f"another name: it stands for {RESERVED['dataset'][1]}"
            self._fault(row, self.columns.dataset, repr(dataset), expected)
            return
        self.found.ratings.append((row.number, replace(rating, group=group, dataset=dataset, language=language)))

    def _value(self, row: core.SheetRow, column: str, cell: Any) -> float | None:
        value = rated_number(cell, decimal_comma=self.sheet.decimal_comma)
        if value is None:
            found = core.lost_text(cell) or repr(core.cell_text(cell))[:80]
            self._fault(row, column, found, "a finite number")
        return value

    def _is_lower(self, row: core.SheetRow) -> bool | None:
        text = self._text(row, "lower_is_better")
        if (found := _YES_OR_NO.get(text.casefold())) is None:
            self._fault(row, self.columns.lower_is_better, repr(text)[:80], "yes or no")
        return found

    def _add_text(self, row: core.SheetRow, of: tuple[str, str]) -> None:
        column = self.columns.candidate
        cell = row.cells.get(column) if column else None
        if core.is_empty(cell):
            return
        if lost := core.lost_text(cell):
            self._fault(row, column, lost, "the text as it was written")
            return
        text = plain_text(cell)
        known, where = self.found.texts.setdefault(of, (text, row.number))
        if known != text:
            self._fault(row, column, "another text", f"that of row {where}")

    def _add_group(self, row: core.SheetRow, of: tuple[str, str]) -> None:
        group = self._text(row, "group")
        if lost := core.lost_text(row.cells.get(self.columns.group)):
            self._fault(row, self.columns.group, lost, "the text as it was written")
        known, where = self._groups.setdefault(of, (group, row.number))
        if known != group:
            self._fault(row, self.columns.group, "another group", f"that of row {where}")

    def _system(self, row: core.SheetRow) -> str:
        plain = self._name(row, "system") if self.columns.system else self.system
        condition = self._text(row, "condition")
        if condition:
            self.found.conditions.setdefault(plain, set()).add(condition)
        return self._names.get((plain, condition), plain)

    def _text(self, row: core.SheetRow, name: str) -> str:
        column = getattr(self.columns, name)
        return str(core.read_safe_cell(core.cell_text(row.cells.get(column)))) if column else ""

    def _name(self, row: core.SheetRow, name: str) -> str:
        """The text of a cell that names something; a fault without one."""
        column, text = getattr(self.columns, name), self._text(row, name)
        lost = core.lost_text(row.cells.get(column))
        if lost or not text:
            self._fault(row, column, lost or "nothing", "a name")
        return text

    def _fault(self, row: core.SheetRow, column: str, found: str, expected: str) -> None:
        self.found.faults.append(core.TableFault(row.number, column, found, expected))


def _names_with_condition(sheet: core.Sheet, columns: RatingColumns) -> dict[tuple[str, str], str]:
    """The names of systems under several conditions, with the condition."""
    if not columns.condition or not columns.system:
        return {}

    def text(cell: Any) -> str:
        return str(core.read_safe_cell(core.cell_text(cell)))

    pairs = {(text(row.cells.get(columns.system)), text(row.cells.get(columns.condition))) for row in sheet.rows}
    of = Counter(system for system, _ in pairs)
    return {pair: " / ".join(pair) for pair in pairs if of[pair[0]] > 1 and pair[1]}


def _sheet(file: Path) -> core.Sheet:
    """The table in a file, with its empty columns, which have faults in each row. One without a known extension is
    CSV."""
    if file.suffix.lower() in core.SHEET_SUFFIXES:
        sheet = core.read_sheet(file)
        sheet.columns = list(dict.fromkeys([*sheet.columns, *(name for row in sheet.rows for name in row.cells)]))
        return sheet
    table = core.read_table(file, ())
    columns = list(table.rows[0].cells) if table.rows else []
    rows = [core.SheetRow(row.number, dict(row.cells)) for row in table.rows]
    return core.Sheet(file, columns, rows, table.faults)


def read_scores(
    file: Path, table: RatingsTable, *, allow_missing: bool = False, columns: Mapping[str, Sequence[str]] | None = None
) -> MetricScores:
    """One metric's scores of rated answers from a table (see `read_sheet`) with the columns `item, system, value`, and
    optionally `dimension`. Without it a score stands for every rated dimension of its answer: 1 − the score where lower
    is better. A column `candidate` must hold the rated texts. The metric is named after the file. `columns` names the
    columns of items, systems and answers, which are also recognised by names in several languages.

    Raises `InputError`, with the row, for anything else: answers without a rating, two scores of one answer, and, unless
    with `allow_missing`, ratings without a score.
    """
    rows = _rows(file, _SCORE_COLUMNS, columns or {})
    return MetricScores(file.stem, _scores_in(file, rows, _VALUE, table, allow_missing))


def read_metrics(
    file: Path, table: RatingsTable, *, allow_missing: bool = False, columns: Mapping[str, Sequence[str]] | None = None
) -> tuple[MetricScores, ...]:
    """The scores of one metric, as `read_scores`, or of several: from a wide table, with one column per metric instead of
    `value`; or from a long one, with the columns `metric`, `scorer` or both beside `value`, as `proctor export` writes
    it. There, a metric that is called as a rated dimension is the scorer's score on it; each other metric stands for
    every dimension. Scores by people, and of answers without a rating, are left out.

    Raises `InputError` as `read_scores`, for a cell of a wide table that is no number, and for a table with `value` and
    other columns of numbers, which is ambiguous.
    """
    rows = _rows(file, _SCORE_COLUMNS[:2], columns or {})
    if _VALUE in rows[0].cells and {"metric", "scorer"} & rows[0].cells.keys():
        return _long_metrics(file, rows, table, allow_missing)
    others = [name for name in rows[0].cells if name not in _NO_METRIC]
    if _VALUE in rows[0].cells:
        numbers = [name for name in others if all(core.cell_number(row.cells[name]) is not None for row in rows)]
        if numbers:
            found = f"{_VALUE!r} beside numbers in {', '.join(map(repr, map(core.printable, numbers)))}"
            raise core.InputError(
                file, found=found[:160], expected=f"{_VALUE!r} alone, or one column for each metric without it"
            )
        return (MetricScores(file.stem, _scores_in(file, rows, _VALUE, table, allow_missing)),)
    if not 1 <= len(others) <= _MAX_METRICS:
        found = f"{len(others)} columns of scores"
        raise core.InputError(
            file, found=found, expected=f"{_VALUE!r}, or one column for each metric (at most {_MAX_METRICS})"
        )
    return tuple(MetricScores(name, _scores_in(file, rows, name, table, allow_missing)) for name in others)


def _long_metrics(
    file: Path, rows: Sequence[core.TableRow], table: RatingsTable, allow_missing: bool
) -> tuple[MetricScores, ...]:
    """The metrics of a long table, by their names."""
    rated, dimensions = {key[:2] for key in table.keys}, {key[2] for key in table.keys}
    series = _series(rows)
    named: dict[str, list[core.TableRow]] = {}
    left: dict[str, int] = {}
    for (scorer, metric), some in series.items():
        own = {other for whose, other in series if whose == scorer}
        on_dimension = metric in dimensions and "dimension" not in rows[0].cells
        name = _metric_name(file, scorer, metric, own, dimensions)
        kept = [row for row in some if (row.cells["item"], row.cells["system"]) in rated]
        left[name] = left.get(name, 0) + len(some) - len(kept)
        cells = {"dimension": metric} if on_dimension else {}
        named.setdefault(name, []).extend(core.TableRow(row.number, row.cells | cells) for row in kept)
    named = {name: some for name, some in named.items() if some}
    if not 1 <= len(named) <= _MAX_METRICS:
        found = f"{len(named)} metrics with scores of rated answers"
        raise core.InputError(file, found=found, expected=f"1 to {_MAX_METRICS}")
    return tuple(
        MetricScores(
            name,
            _scores_in(file, some, _VALUE, table, allow_missing),
            (f"{core.count_of(left[name], 'score')} of answers without a rating left out",) if left[name] else (),
        )
        for name, some in named.items()
    )


def _series(rows: Sequence[core.TableRow]) -> dict[tuple[str, str], list[core.TableRow]]:
    """The rows with a score by scorer and metric, without those by people and those about a judge's reply."""
    series: dict[tuple[str, str], list[core.TableRow]] = {}
    for row in rows:
        scorer, metric = (row.cells.get(name, "").strip() for name in ("scorer", "metric"))
        unscored = not row.cells[_VALUE].strip()  # `export` writes a row for each answer
        if not (person_in(scorer) or metric in _ABOUT_JUDGES or unscored):
            series.setdefault((scorer, metric), []).append(row)
    return series


def _metric_name(file: Path, scorer: str, metric: str, own: Collection[str], dimensions: Collection[str]) -> str:
    """The name of a metric in a long table: its scorer's, unless the scorer gives several on no dimension."""
    if metric in dimensions or not metric:
        return scorer or file.stem
    alone = len(own) == 1 and scorer not in {"", _CODE}
    return scorer if alone else metric if scorer in {"", _CODE} else f"{scorer} {metric}"


def _rows(file: Path, columns: Sequence[str], given: Mapping[str, Sequence[str]]) -> list[core.TableRow]:
    """The rows of a table of scores that has at least these columns, all cells as texts, with decimal points; columns of
    items, systems and texts under these names. Raises `InputError`, with the row, for the first fault."""
    sheet = _sheet(file)
    if sheet.faults:
        raise sheet.faults[0].error(file)
    own = {name: one for name, one in given.items() if name in {"item", "system", "candidate"}}
    known = rating_columns(sheet, own)
    fault = next((one for one in known.faults if one.expected.startswith("one of")), None)  # of `given`
    if fault is not None:
        raise fault.error(file)
    text = "text" if {*sheet.columns} >= _EXPORTED else known.candidate
    found = {
        column: name for column, name in ((known.item, "item"), (known.system, "system"), (text, "candidate")) if column
    }
    # A column whose name another one takes is not read.
    names = {
        column: found.get(column, column) for column in sheet.columns if column in found or column not in found.values()
    }
    missing = [name for name in columns if name not in names.values()]
    if missing:
        listed = f"the columns {', '.join(columns)}"
        hint = "" if missing[0] == _VALUE else f" (--map {missing[0]}=COLUMN)"
        raise core.TableFault(1, "", f"no column {missing[0]!r}", listed + hint).error(file)
    if {*sheet.columns} >= _EXPORTED:
        known = replace(known, condition="condition" if "condition" in sheet.columns else "")
    conditions = _names_with_condition(sheet, known)
    return [_score_row(file, sheet, row, names, conditions) for row in sheet.rows]


def _score_row(
    file: Path,
    sheet: core.Sheet,
    row: core.SheetRow,
    names: Mapping[str, str],
    conditions: Mapping[tuple[str, str], str],
) -> core.TableRow:
    """A row of a table of scores with its cells as texts, under the names of `names`."""
    cells: dict[str, str] = {}
    for column, name in names.items():
        cell = row.cells.get(column)
        if name in _NO_METRIC and name not in {"group", "extra", "parsed"} and (lost := core.lost_text(cell)):
            raise core.TableFault(row.number, column, lost, "the text as it was written").error(file)
        if name == "candidate":
            cells[name] = plain_text(cell)
        elif name in {"item", "system", "dimension", "rater", "metric", "scorer", "condition"}:
            cells[name] = str(core.read_safe_cell(core.cell_text(cell)))
        else:
            text = cell if isinstance(cell, str) else core.cell_text(cell)
            number = sheet.decimal_comma and (name == _VALUE or name not in _NO_METRIC)
            cells[name] = text.replace(",", ".") if number else text
    pair = (cells["system"], cells.get("condition", ""))
    return core.TableRow(row.number, cells | {"system": conditions.get(pair, pair[0])})


def _scores_in(
    file: Path, rows: Sequence[core.TableRow], column: str, table: RatingsTable, allow_missing: bool
) -> dict[Key, float | None]:
    """The scores in one column by key."""
    texts = {rating.key: rating.candidate for rating in table.ratings}
    rated: dict[tuple[str, str], list[Key]] = {}
    for key in table.keys:
        rated.setdefault(key[:2], []).append(key)
    scores: dict[Key, float | None] = {}
    for row in rows:
        item, system = (_named(file, row, name) for name in _SCORE_COLUMNS[:2])
        keys, turned = rated.get((item, system), []), table.lower_is_better
        if "dimension" in row.cells:
            turned = frozenset()
            keys = [(item, system, _named(file, row, "dimension"))]
        value = core.cell_number(row.cells[column])
        if value is None:
            found = repr(row.cells[column])[:80]
            raise core.TableFault(row.number, column, found, "a finite number").error(file)
        if not keys or keys[0] not in texts:
            shown = shown_key(keys[0]) if keys else f"{core.printable(item)}, {core.printable(system)}"
            raise core.TableFault(row.number, "", shown, "an answer that was rated").error(file)
        text = texts[keys[0]]
        if text and row.cells.get("candidate", text) != text:
            raise core.TableFault(row.number, "candidate", "another text", "the rated one").error(file)
        if keys[0] in scores:
            raise core.TableFault(row.number, "", f"{shown_key(keys[0])} again", "one score of each").error(file)
        scores |= {key: 1 - value if key[2] in turned else value for key in keys}
    for key in table.keys:
        if key not in scores and not allow_missing:
            raise core.TableFault(0, "", f"no score of {shown_key(key)}", "one of every rated answer").error(file)
    return scores


def _named(file: Path, row: core.TableRow, column: str) -> str:
    text = row.cells[column]
    if not text.strip():
        raise core.TableFault(row.number, column, "nothing", "a name").error(file)
    return text
