"""Agreement of a study's readers: overall, by pairs of readers, by reader, over time, and by item.

Readings are read through `visible_readings` alone, so that no figure holds what its viewer may not see. All intervals
are from bootstrap samples of groups (videos).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

from sqlalchemy import Connection, select

from proctor.core import DASH, Cell, Table, number, percent, plain_table, seconds
from proctor.stats import (
    Estimate,
    Resampling,
    box_agreement,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    mean_interval,
    percent_agreement,
    time_agreement,
)
from proctor_web.forms import AS_RECORDED, CHECKS, ORDER, SENTENCES, WHOLE_ORDER, Form, ReadingValues, form_named
from proctor_web.schema import accounts, assignments, readings, studies, study_items, versions
from proctor_web.strings import DEFAULT, text
from proctor_web.visibility import sealed_of_study

PLAN = Resampling(draws=1000)
_EXACT_S = 0.001
_PARTS = 4  # of a study, in the order in which items were completed
_SHOWN = {"disputed": 20, "slowest": 5}
_NAMED = {name: name for name in ("decision", *CHECKS)} | {
    ORDER: "order",
    SENTENCES: "sentences",
    WHOLE_ORDER: "whole_order",
    AS_RECORDED: "as_recorded",
}  # dimensions whose names have texts


@dataclass(frozen=True)
class SealedReading:
    """A sealed reading by an assigned reader. `gold` is the known reading of a gold item; `seconds` are None where the
    time was not measured."""

    item: int
    key: str
    group: str
    number: int
    body: Any
    gold: Any
    reader: str
    payload: Any
    values: ReadingValues
    comment: str
    seconds: float | None
    sealed: str


def sealed_readings(connection: Connection, viewer: int, study: str) -> list[SealedReading]:
    """The sealed readings of a study that an account may see, by item and pseudonym; of each item only the newest
    version with visible readings."""
    own = (assignments.c.item == study_items.c.id) & (assignments.c.account == readings.c.account)
    query = sealed_of_study(
        viewer,
        study,
        studies.c.form,
        study_items.c.id.label("item"),
        study_items.c.key,
        study_items.c.group_name.label("group"),
        study_items.c.gold,
        versions.c.number,
        versions.c.body,
        accounts.c.pseudonym.label("reader"),
        readings.c.payload,
        readings.c.comment,
        readings.c.seconds,
        readings.c.sealed,
    ).join(assignments, own & (assignments.c.role == "reader"))
    rows = [dict(row) for row in connection.execute(query).mappings()]
    newest = {row["item"]: row["number"] for row in rows}
    found = []
    for row in (row for row in rows if row["number"] == newest[row["item"]]):
        form = form_named(row.pop("form"))
        body = form.read_body(row["body"], None, f"item {row['key']}")
        payload = form.read(body, row["payload"])
        gold = None if row["gold"] is None else form.read(body, row["gold"])
        row |= {"body": body, "payload": payload, "gold": gold, "seconds": row["seconds"] or None}
        found.append(SealedReading(**row, values=form.values(body, payload)))
    return found


@dataclass(frozen=True)
class DimensionAgreement:
    """Agreement on one dimension ("": on all marks). `kind` is nominal, ordinal, boxes or times. `percent` is the share
    of agreeing pairs, or for marks F1 (of boxes at an intersection over union of 0.5, of times within the tolerance).
    `cohen` needs exactly two readers, and `alpha` is ordinal for ratings. Measures that do not apply are None."""

    name: str
    kind: str
    percent: Estimate
    cohen: Estimate | None = None
    fleiss: Estimate | None = None
    ac1: Estimate | None = None
    alpha: Estimate | None = None


@dataclass(frozen=True)
class ReaderFigures:
    """One reader: sealed readings, median measured seconds per reading, the share of pairs with this reader that agree,
    and the share of gold items read correctly."""

    reader: str
    sealed: int
    seconds: float | None
    with_others: Estimate
    gold: Estimate


@dataclass(frozen=True)
class PairFigures:
    """The share of common items on which two readers agree."""

    first: str
    second: str
    same: Estimate


@dataclass(frozen=True)
class PartFigures:
    """The agreement in a part of the study, with the days of its first and last completed item."""

    first: str
    last: str
    same: Estimate


@dataclass(frozen=True)
class ItemFigures:
    """One item: its pairs of readings, how many of them differ, and the median measured seconds per reading (None where
    no time was measured, as in a sheet)."""

    item: int
    key: str
    group: str
    pairs: int
    differing: int
    seconds: float | None


@dataclass(frozen=True)
class StudyAgreement:
    """The agreement in a study; `same` is the share of all pairs of readings of an item that agree."""

    form: str
    items: int
    same: Estimate
    dimensions: tuple[DimensionAgreement, ...]
    readers: tuple[ReaderFigures, ...]
    pairs: tuple[PairFigures, ...]
    parts: tuple[PartFigures, ...]
    disputed: tuple[ItemFigures, ...]
    slowest: tuple[ItemFigures, ...]


@dataclass(frozen=True)
class _Pair:
    """Two readings of one item, and whether they agree."""

    first: SealedReading
    second: SealedReading
    same: bool

    @property
    def readers(self) -> frozenset[str]:
        return frozenset((self.first.reader, self.second.reader))


def study_agreement(connection: Connection, viewer: int, study: str, plan: Resampling = PLAN) -> StudyAgreement:
    """The agreement of a study's readers, from the readings that an account may see. Gold items count only for the gold
    accuracy of readers."""
    form = form_named(connection.execute(select(studies.c.form).where(studies.c.name == study)).scalar_one())
    every = sealed_readings(connection, viewer, study)
    by_item: dict[int, list[SealedReading]] = defaultdict(list)
    for sealed_reading in every:
        if sealed_reading.gold is None:
            by_item[sealed_reading.item].append(sealed_reading)
    pairs_of = {
        item: [_Pair(a, b, form.same(a.body, a.payload, b.payload)) for a, b in combinations(some, 2)]
        for item, some in by_item.items()
    }
    pairs = [pair for some in pairs_of.values() for pair in some]
    items = [_item_figures(some, pairs_of[item]) for item, some in by_item.items()]
    disputed = [item for item in items if item.differing]
    return StudyAgreement(
        form.name,
        len(by_item),
        _same(pairs, plan),
        tuple(_dimensions(form, by_item, pairs, plan)),
        tuple(_readers(form, every, pairs, plan)),
        tuple(_reader_pairs(pairs, plan)),
        tuple(_over_time(by_item, pairs_of, plan)),
        tuple(
            sorted(disputed, key=lambda item_figures: (-item_figures.differing / item_figures.pairs, item_figures.key))
        ),
        tuple(sorted(items, key=lambda item: (-(item.seconds or 0), item.key))),
    )


def _same(pairs: Sequence[_Pair], plan: Resampling) -> Estimate:
    return mean_interval([float(pair.same) for pair in pairs], [pair.first.group for pair in pairs], plan.within(0, 1))


def _median_seconds(some: Sequence[SealedReading]) -> float | None:
    measured = [sealed_reading.seconds for sealed_reading in some if sealed_reading.seconds is not None]
    return median(measured) if measured else None


def _item_figures(some: Sequence[SealedReading], pairs: Sequence[_Pair]) -> ItemFigures:
    first, differing = some[0], sum(not pair.same for pair in pairs)
    return ItemFigures(first.item, first.key, first.group, len(pairs), differing, _median_seconds(some))


def _readers(
    form: Form[Any, Any], every: Sequence[SealedReading], pairs: Sequence[_Pair], plan: Resampling
) -> list[ReaderFigures]:
    found = []
    for name in sorted({sealed_reading.reader for sealed_reading in every}):
        own = [sealed_reading for sealed_reading in every if sealed_reading.reader == name]
        known = [sealed_reading for sealed_reading in own if sealed_reading.gold is not None]
        right = [
            float(form.same(sealed_reading.body, sealed_reading.gold, sealed_reading.payload))
            for sealed_reading in known
        ]
        gold = mean_interval(right, [sealed_reading.group for sealed_reading in known], plan.within(0, 1))
        with_others = _same([pair for pair in pairs if name in pair.readers], plan)
        found.append(ReaderFigures(name, len(own), _median_seconds(own), with_others, gold))
    return found


def _reader_pairs(pairs: Sequence[_Pair], plan: Resampling) -> list[PairFigures]:
    by_readers: dict[tuple[str, ...], list[_Pair]] = defaultdict(list)
    for pair in pairs:
        by_readers[tuple(sorted(pair.readers))].append(pair)
    return [PairFigures(a, b, _same(some, plan)) for (a, b), some in sorted(by_readers.items())]


def _over_time(
    by_item: Mapping[int, Sequence[SealedReading]], pairs_of: Mapping[int, Sequence[_Pair]], plan: Resampling
) -> list[PartFigures]:
    """Parts of equal size, by the time at which an item's last reading was sealed."""
    done = sorted(
        (max(sealed_reading.sealed for sealed_reading in some), item) for item, some in by_item.items() if len(some) > 1
    )
    size = max(1, -(-len(done) // _PARTS))
    found = []
    for start in range(0, len(done), size):
        part = done[start : start + size]
        inside = {item for _, item in part}
        pairs = [pair for item, some in pairs_of.items() if item in inside for pair in some]
        found.append(PartFigures(part[0][0][:10], part[-1][0][:10], _same(pairs, plan)))
    return found


# -- dimensions


@dataclass(frozen=True)
class _Value:
    """One label or rating: of which unit (an item, or a part of one), by whom."""

    value: Any
    unit: str
    group: str
    reader: str


def _dimensions(
    form: Form[Any, Any], by_item: Mapping[int, Sequence[SealedReading]], pairs: Sequence[_Pair], plan: Resampling
) -> list[DimensionAgreement]:
    labels: dict[str, list[_Value]] = defaultdict(list)
    ratings: dict[str, list[_Value]] = defaultdict(list)
    for sealed_reading in (sealed_reading for some in by_item.values() if len(some) > 1 for sealed_reading in some):
        for name, label in sealed_reading.values.labels.items():
            labels[form.dimension(name)].append(
                _Value(label, f"{sealed_reading.item}\x1f{name}", sealed_reading.group, sealed_reading.reader)
            )
        for name, rating in sealed_reading.values.ratings.items():
            ratings[name].append(_Value(rating, str(sealed_reading.item), sealed_reading.group, sealed_reading.reader))

    def times(sealed_reading: SealedReading) -> Mapping[Any, Sequence[Any]]:
        """Times as multiples of the item's tolerance, so that items with different ones can be pooled."""
        within = max(form.tolerance(sealed_reading.body), _EXACT_S)
        return {(kind,): [time / within for time in some] for kind, some in (sealed_reading.values.times or {}).items()}

    return [
        *(_nominal(form, name, values, plan) for name, values in labels.items()),
        *(_ordinal(name, values, plan) for name, values in ratings.items()),
        *_marks(pairs, "boxes", _boxes_by_class, lambda a, b, groups: box_agreement(a, b, groups, plan=plan)),
        *_marks(pairs, "times", times, lambda a, b, groups: time_agreement(a, b, groups, tolerance=1.0, plan=plan)),
    ]


def _nominal(form: Form[Any, Any], name: str, some: Sequence[_Value], plan: Resampling) -> DimensionAgreement:
    labels, units, groups = _columns(some)
    levels = form.levels(name)
    if not levels:
        return DimensionAgreement(name, "nominal", percent_agreement(labels, sorted({*labels}), units, groups, plan))
    return DimensionAgreement(
        name,
        "nominal",
        percent_agreement(labels, levels, units, groups, plan),
        _cohen(some, levels, plan),
        fleiss_kappa(labels, levels, units, groups, plan),
        gwet_ac1(labels, levels, units, groups, plan),
        krippendorff_alpha([levels.index(label) for label in labels], units, groups, "nominal", plan),
    )


def _ordinal(name: str, some: Sequence[_Value], plan: Resampling) -> DimensionAgreement:
    values, units, groups = _columns(some)
    levels = sorted(set(values))
    return DimensionAgreement(
        name,
        "ordinal",
        percent_agreement(values, levels, units, groups, plan),
        _cohen(some, levels, plan),
        alpha=krippendorff_alpha(values, units, groups, "ordinal", plan),
    )


def _columns(some: Sequence[_Value]) -> tuple[list[Any], list[str], list[str]]:
    return [value.value for value in some], [value.unit for value in some], [value.group for value in some]


def _cohen(some: Sequence[_Value], levels: Sequence[Any], plan: Resampling) -> Estimate | None:
    """Cohen's κ, if there are exactly two readers."""
    readers = sorted({value.reader for value in some})
    if len(readers) != 2:
        return None
    by_unit: dict[str, dict[str, _Value]] = defaultdict(dict)
    for value in some:
        by_unit[value.unit][value.reader] = value
    both = [(values[readers[0]], values[readers[1]]) for values in by_unit.values() if len(values) == 2]
    first, second = [a.value for a, _ in both], [b.value for _, b in both]
    return cohen_kappa(first, second, levels, [a.group for a, _ in both], plan)


def _marks(
    pairs: Iterable[_Pair],
    kind: str,
    marks_of: Callable[[SealedReading], Mapping[Any, Sequence[Any]]],
    f1: Callable[[list[Any], list[Any], list[str]], Estimate],
) -> list[DimensionAgreement]:
    """F1 of all marks ("") and by class or kind, the first part of a key of `marks_of`. Only marks of the same key are
    matched."""
    entries: dict[str, tuple[list[Any], list[Any], list[str]]] = {}
    for pair in pairs:
        first, second = marks_of(pair.first), marks_of(pair.second)
        for key in sorted({*first, *second}):
            for name in ("", key[0]):
                columns = entries.setdefault(name, ([], [], []))
                columns[0].append(first.get(key, ()))
                columns[1].append(second.get(key, ()))
                columns[2].append(pair.first.group)
    return [DimensionAgreement(name, kind, f1(*entries[name])) for name in sorted(entries)]


def _boxes_by_class(sealed_reading: SealedReading) -> Mapping[Any, Sequence[Any]]:
    found: dict[tuple[str, float], list[Any]] = defaultdict(list)
    for box in sealed_reading.values.boxes or ():
        found[box.label, box.time].append(box.extent)
    return found


# -- tables


def agreement_tables(
    found: StudyAgreement, language: str = DEFAULT, people: Mapping[str, str] | None = None
) -> list[Table]:
    """The agreement in a study as tables in a language of the pages: by dimension, by reader, by two readers, over time, the
    20 most disputed items and the 5 slowest. Empty tables are left out. `people` are names by pseudonym, for organisers."""
    words, known = _Words(language), people or {}

    def shown(pseudonym: str) -> str:
        return f"{known[pseudonym]} ({pseudonym})" if pseudonym in known else pseudonym

    dimensions = [
        (
            words.dimension(dimension.name),
            dimension.percent.n,
            words.percent_cell(dimension.percent),
            words.number_cell(dimension.cohen),
            words.number_cell(dimension.fleiss),
            words.number_cell(dimension.ac1),
            words.number_cell(dimension.alpha),
        )
        for dimension in found.dimensions
    ]
    readers = [
        (
            shown(reader.reader),
            reader.sealed,
            _seconds_cell(reader.seconds),
            *map(words.percent_cell, (reader.with_others, reader.gold)),
        )
        for reader in found.readers
    ]
    pairs = [
        (shown(pair.first), shown(pair.second), pair.same.n, words.percent_cell(pair.same)) for pair in found.pairs
    ]
    parts = [
        (
            words(
                "part", number=number, days=part.first if part.first == part.last else words.span(part.first, part.last)
            ),
            part.same.n,
            words.percent_cell(part.same),
        )
        for number, part in enumerate(found.parts, start=1)
    ]
    marks = any(dimension.kind in ("boxes", "times") for dimension in found.dimensions)
    measures = ("dimension", ">units", ">same_share", ">cohen", ">fleiss", ">ac1", ">alpha")
    tables = [
        words.table("marks" if marks else "dimensions", measures, dimensions),
        words.table("readers", ("reader", ">sealed", ">seconds", ">others", ">gold"), readers),
        words.table("pairs", ("reader", "and", ">items", ">same"), pairs),
        words.table("parts", ("completed", ">compared", ">same"), parts),
        *(words.items_table(title, getattr(found, title)) for title in ("disputed", "slowest")),
    ]
    return [table for table in tables if table.rows]


@dataclass(frozen=True)
class _Words:
    """The words of the tables in a language."""

    language: str

    def __call__(self, key: str, **values: object) -> str:
        return text(self.language, "agreement." + key, None, **values)

    def table(
        self, title: str, heads: Sequence[str], rows: Sequence[tuple[Any, ...]], wrapped: Sequence[str] = ()
    ) -> Table:
        """A table with the texts of these keys; that of a number's column begins with `>`."""
        labels = [(">" if head.startswith(">") else "") + self(head.lstrip(">")) for head in heads]
        return plain_table(self(title), labels, rows, wrapped=[self(one) for one in wrapped])

    def items_table(self, title: str, some: tuple[ItemFigures, ...]) -> Table:
        rows = [
            (
                item_figures.key,
                item_figures.group,
                self("of", count=item_figures.differing, pairs=item_figures.pairs),
                _seconds_cell(item_figures.seconds),
            )
            for item_figures in some[: _SHOWN[title]]
        ]
        return self.table(title, ("item", "group", ">differ", ">seconds"), rows, wrapped=("item",))

    def dimension(self, name: str) -> str:
        """The dimension's name; those that a form gives have texts."""
        return self("named." + _NAMED[name]) if name in _NAMED else name or self("all")

    def span(self, first: str, last: str) -> str:
        return self("to", first=first, last=last)

    def percent_cell(self, estimate: Estimate) -> Cell:
        below = "" if estimate.ci_low is None else self.span(percent(estimate.ci_low), percent(estimate.ci_high))
        return Cell(percent(estimate.value), below=below, raw=estimate.value)

    def number_cell(self, one: Estimate | None) -> Cell:
        if one is None:
            return Cell(DASH)
        below = "" if one.ci_low is None else self.span(number(one.ci_low, 2), number(one.ci_high, 2))
        return Cell(number(one.value, 2), below=below, raw=one.value)


def _seconds_cell(one: float | None) -> Cell:
    return Cell(DASH) if one is None else Cell(seconds(one), raw=one)
