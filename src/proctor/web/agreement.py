"""How far the readers of a study agree, as data and as tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from statistics import median
from typing import Any

from sqlalchemy import Connection, select

from proctor.core import DASH, Cell, Table, number, number_interval, percent, plain_table, seconds
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
from proctor.web.forms import BoxAt, Form, Said, form_named
from proctor.web.readings import sealed_of_study
from proctor.web.schema import accounts, assignments, readings, studies, study_items, versions

_EXACT_S = 0.001
_PARTS = 4  # of a study, in the order in which items were completed
PLAN = Resampling(draws=1000)


@dataclass(frozen=True)
class SealedReading:
    """One sealed reading by an assigned reader, as its viewer may see it. `gold` is the known reading of a gold
    item, `seconds` are None where nobody measured them."""

    item: int
    key: str
    group: str
    number: int
    body: Any
    gold: Any
    reader: str
    payload: Any
    said: Said
    comment: str
    seconds: float | None
    sealed: str


def sealed_readings(connection: Connection, viewer: int, study: str) -> list[SealedReading]:
    """The sealed readings of a study that an account may see, each item in the newest version that it may see, by item
    and pseudonym."""
    mine = (assignments.c.item == study_items.c.id) & (assignments.c.account == readings.c.account)
    query = sealed_of_study(
        viewer,
        study,
        studies.c.form,
        study_items.c.id.label("item"),
        study_items.c.key,
        study_items.c.group_name,
        study_items.c.gold,
        versions.c.number,
        versions.c.body,
        accounts.c.pseudonym,
        readings.c.payload,
        readings.c.comment,
        readings.c.seconds,
        readings.c.sealed,
    ).join(assignments, mine & (assignments.c.role == "reader"))
    rows = connection.execute(query).mappings().all()
    newest = {row["item"]: row["number"] for row in rows}
    found = []
    for row in rows:
        if row["number"] < newest[row["item"]]:
            continue
        form = form_named(row["form"])
        body = form.read_body(row["body"], None, f"item {row['key']}")
        payload = form.read(body, row["payload"])
        found.append(
            SealedReading(
                row["item"],
                row["key"],
                row["group_name"],
                row["number"],
                body,
                None if row["gold"] is None else form.read(body, row["gold"]),
                row["pseudonym"],
                payload,
                form.said(body, payload),
                row["comment"],
                row["seconds"] or None,
                row["sealed"],
            )
        )
    return found


@dataclass(frozen=True)
class DimensionAgreement:
    """Agreement on one dimension ("": on all marks). `kind` is nominal, ordinal, boxes (F1 at an intersection over
    union of 0.5) or times (F1 within the tolerance). `percent` is the share of agreeing pairs, or that F1; `cohen` is
    there for two readers, `alpha` is ordinal for ratings. What makes no sense for a kind is None."""

    name: str
    kind: str
    percent: Estimate
    cohen: Estimate | None = None
    fleiss: Estimate | None = None
    ac1: Estimate | None = None
    alpha: Estimate | None = None


@dataclass(frozen=True)
class ReaderFigures:
    """One reader: sealed readings, median seconds for one (of those that were measured), how often two readings of an
    item with this reader say the same, and on how many gold items the reading is the known one."""

    reader: str
    sealed: int
    seconds: float | None
    with_others: Estimate
    gold: Estimate


@dataclass(frozen=True)
class PairFigures:
    """How often two readers say the same of the items that both read."""

    first: str
    second: str
    same: Estimate


@dataclass(frozen=True)
class PartFigures:
    """A part of the study, by the day on which an item's last reading was sealed."""

    first: str
    last: str
    same: Estimate


@dataclass(frozen=True)
class ItemFigures:
    """One item: in how many of its pairs of readings they differ, and the median seconds for it; None where nobody
    measured them, as in a sheet."""

    item: int
    key: str
    group: str
    pairs: int
    differing: int
    seconds: float | None


@dataclass(frozen=True)
class StudyAgreement:
    """All of it; `same` is over all items: how often two readings of an item say the same."""

    form: str
    items: int
    same: Estimate
    dimensions: tuple[DimensionAgreement, ...]
    readers: tuple[ReaderFigures, ...]
    pairs: tuple[PairFigures, ...]
    parts: tuple[PartFigures, ...]
    disputed: tuple[ItemFigures, ...]
    slowest: tuple[ItemFigures, ...]


def study_agreement(connection: Connection, viewer: int, study: str, plan: Resampling = PLAN) -> StudyAgreement:
    """The agreement of a study's readers, as far as an account may see their readings. Gold items count for gold
    accuracy alone."""
    form = form_named(connection.execute(select(studies.c.form).where(studies.c.name == study)).scalar_one())
    every = sealed_readings(connection, viewer, study)
    by_item: dict[int, list[SealedReading]] = defaultdict(list)
    for one in every:
        if one.gold is None:
            by_item[one.item].append(one)
    paired = {item: [_Pair(form, a, b) for a, b in combinations(some, 2)] for item, some in by_item.items()}
    pairs = [one for some in paired.values() for one in some]
    figures = [_item_figures(some, paired[item]) for item, some in by_item.items()]
    return StudyAgreement(
        form.name,
        len(by_item),
        _share(pairs, plan),
        tuple(_dimensions(form, by_item, plan)),
        tuple(_readers(form, every, pairs, plan)),
        tuple(_pairs(pairs, plan)),
        tuple(_over_time(by_item, pairs, plan)),
        tuple(sorted((one for one in figures if one.differing), key=lambda one: (-one.differing / one.pairs, one.key))),
        tuple(sorted(figures, key=lambda one: (-(one.seconds or 0), one.key))),
    )


class _Pair:
    """Two readings of one item, and whether they say the same."""

    def __init__(self, form: Form[Any, Any], first: SealedReading, second: SealedReading) -> None:
        self.first, self.second, self.item, self.group = first, second, first.item, first.group
        self.readers = frozenset((first.reader, second.reader))
        self.same = form.same(first.body, first.payload, second.payload)


def _share(pairs: Sequence[_Pair], plan: Resampling) -> Estimate:
    return mean_interval([float(one.same) for one in pairs], [one.group for one in pairs], plan.within(0, 1))


def _median_seconds(some: Sequence[SealedReading]) -> float | None:
    """Of the readings whose time was measured."""
    measured = [one.seconds for one in some if one.seconds is not None]
    return median(measured) if measured else None


def _item_figures(some: Sequence[SealedReading], pairs: Sequence[_Pair]) -> ItemFigures:
    first, differing = some[0], sum(not one.same for one in pairs)
    return ItemFigures(first.item, first.key, first.group, len(pairs), differing, _median_seconds(some))


def _readers(
    form: Form[Any, Any], every: Sequence[SealedReading], pairs: Sequence[_Pair], plan: Resampling
) -> list[ReaderFigures]:
    found = []
    for name in sorted({one.reader for one in every}):
        own = [one for one in every if one.reader == name]
        known = [one for one in own if one.gold is not None]
        right = [float(form.same(one.body, one.gold, one.payload)) for one in known]
        gold = mean_interval(right, [one.group for one in known], plan.within(0, 1))
        mine = _share([one for one in pairs if name in one.readers], plan)
        found.append(ReaderFigures(name, len(own), _median_seconds(own), mine, gold))
    return found


def _pairs(pairs: Sequence[_Pair], plan: Resampling) -> list[PairFigures]:
    by_readers: dict[tuple[str, ...], list[_Pair]] = defaultdict(list)
    for one in pairs:
        by_readers[tuple(sorted(one.readers))].append(one)
    return [PairFigures(a, b, _share(some, plan)) for (a, b), some in sorted(by_readers.items())]


def _over_time(
    by_item: Mapping[int, Sequence[SealedReading]], pairs: Sequence[_Pair], plan: Resampling
) -> list[PartFigures]:
    """The items in parts of equal size, in the order in which they were completed."""
    done = sorted((max(one.sealed for one in some), item) for item, some in by_item.items() if len(some) > 1)
    size = max(1, -(-len(done) // _PARTS))
    found = []
    for start in range(0, len(done), size):
        part = done[start : start + size]
        inside = {item for _, item in part}
        some = [one for one in pairs if one.item in inside]
        found.append(PartFigures(part[0][0][:10], part[-1][0][:10], _share(some, plan)))
    return found


# -- dimensions


def _dimensions(
    form: Form[Any, Any], by_item: Mapping[int, Sequence[SealedReading]], plan: Resampling
) -> list[DimensionAgreement]:
    several = [some for some in by_item.values() if len(some) > 1]
    return [
        *_nominal(form, several, plan),
        *_ordinal(several, plan),
        *_marks(several, "boxes", _boxes_by_class, _box_f1, plan),
        *_marks(several, "times", partial(_times_by_kind, form), _time_f1, plan),
    ]


@dataclass(frozen=True)
class _Rated:
    """One label or rating: of which unit (an item, or a part of one), by whom."""

    value: Any
    unit: str
    group: str
    reader: str


def _nominal(
    form: Form[Any, Any], several: Sequence[Sequence[SealedReading]], plan: Resampling
) -> list[DimensionAgreement]:
    by_dimension: dict[str, list[_Rated]] = defaultdict(list)
    for one in (one for some in several for one in some):
        for name, label in one.said.labels.items():
            unit = f"{one.item}\x1f{name}"
            by_dimension[form.dimension(name)].append(_Rated(label, unit, one.group, one.reader))
    found = []
    for name, rated in by_dimension.items():
        labels, units, groups = _columns(rated)
        levels = form.levels(name)
        numbers = [levels.index(label) for label in labels]
        found.append(
            DimensionAgreement(
                name,
                "nominal",
                percent_agreement(labels, levels, units, groups, plan),
                _cohen(rated, levels, plan),
                fleiss_kappa(labels, levels, units, groups, plan),
                gwet_ac1(labels, levels, units, groups, plan),
                krippendorff_alpha(numbers, units, groups, "nominal", plan),
            )
        )
    return found


def _ordinal(several: Sequence[Sequence[SealedReading]], plan: Resampling) -> list[DimensionAgreement]:
    by_dimension: dict[str, list[_Rated]] = defaultdict(list)
    for one in (one for some in several for one in some):
        for name, value in one.said.ratings.items():
            by_dimension[name].append(_Rated(value, str(one.item), one.group, one.reader))
    found = []
    for name, rated in by_dimension.items():
        values, units, groups = _columns(rated)
        levels = sorted(set(values))
        found.append(
            DimensionAgreement(
                name,
                "ordinal",
                percent_agreement(values, levels, units, groups, plan),
                _cohen(rated, levels, plan),
                alpha=krippendorff_alpha(values, units, groups, "ordinal", plan),
            )
        )
    return found


def _columns(rated: Sequence[_Rated]) -> tuple[list[Any], list[str], list[str]]:
    return [one.value for one in rated], [one.unit for one in rated], [one.group for one in rated]


def _cohen(rated: Sequence[_Rated], levels: Sequence[Any], plan: Resampling) -> Estimate | None:
    """Cohen's κ, where there are two readers in all."""
    readers = sorted({one.reader for one in rated})
    if len(readers) != 2:
        return None
    by_unit: dict[str, dict[str, _Rated]] = defaultdict(dict)
    for one in rated:
        by_unit[one.unit][one.reader] = one
    both = [(some[readers[0]], some[readers[1]]) for some in by_unit.values() if len(some) == 2]
    first, second = [a.value for a, _ in both], [b.value for _, b in both]
    return cohen_kappa(first, second, levels, [a.group for a, _ in both], plan)


_Places = Callable[[SealedReading], Mapping[Any, Sequence[Any]]]
_Measure = Callable[[list[Any], list[Any], list[str], Resampling], Estimate]


def _marks(
    several: Sequence[Sequence[SealedReading]], kind: str, places: _Places, measure: _Measure, plan: Resampling
) -> list[DimensionAgreement]:
    """F1 of what two readers marked, of all ("") and by class or kind: an entry for each two readings and place."""
    entries: dict[str, tuple[list[Any], list[Any], list[str]]] = {}
    for first, second in (pair for some in several for pair in combinations(some, 2)):
        one, other = places(first), places(second)
        for place in sorted({*one, *other}):
            for name in ("", place[0]):
                columns = entries.setdefault(name, ([], [], []))
                for column, value in zip(columns, (one.get(place, ()), other.get(place, ()), first.group), strict=True):
                    column.append(value)
    return [DimensionAgreement(name, kind, measure(*entries[name], plan)) for name in sorted(entries)]


def _boxes_by_class(one: SealedReading) -> Mapping[Any, Sequence[Any]]:
    found: dict[tuple[str, float], list[Any]] = defaultdict(list)
    boxes: Sequence[BoxAt] = one.said.boxes or ()
    for box in boxes:
        found[box.label, box.time].append(box.extent)
    return found


def _times_by_kind(form: Form[Any, Any], one: SealedReading) -> Mapping[Any, Sequence[Any]]:
    """Times as multiples of the item's tolerance, so that items with different ones can be pooled."""
    within = max(form.tolerance(one.body), _EXACT_S)
    return {(kind,): [time / within for time in times] for kind, times in (one.said.times or {}).items()}


def _box_f1(first: list[Any], second: list[Any], groups: list[str], plan: Resampling) -> Estimate:
    return box_agreement(first, second, groups, plan=plan)


def _time_f1(first: list[Any], second: list[Any], groups: list[str], plan: Resampling) -> Estimate:
    return time_agreement(first, second, groups, tolerance=1.0, plan=plan)


_SHOWN = 20
_ALL = "all"


def agreement_tables(found: StudyAgreement) -> list[Table]:
    """The tables of a study: by dimension, by reader, by two readers, over time, the most disputed and the slowest
    items (20 of each). Tables without rows are left out."""
    dimensions = [
        (
            one.name or _ALL,
            one.percent.n,
            _share(one.percent),
            _figure(one.cohen),
            _figure(one.fleiss),
            _figure(one.ac1),
            _figure(one.alpha),
        )
        for one in found.dimensions
    ]
    readers = [
        (one.reader, one.sealed, _seconds(one.seconds), _share(one.with_others), _share(one.gold))
        for one in found.readers
    ]
    pairs = [(one.first, one.second, one.same.n, _share(one.same)) for one in found.pairs]
    parts = [(_days(one.first, one.last), one.same.n, _share(one.same)) for one in found.parts]
    marks = any(one.kind in ("boxes", "times") for one in found.dimensions)
    tables = [
        plain_table(
            "Agreement by dimension (F1 of marks)" if marks else "Agreement by dimension",
            ("dimension", ">units", ">agreement", ">Cohen's κ", ">Fleiss' κ", ">Gwet's AC1", ">Krippendorff's α"),
            dimensions,
        ),
        plain_table("By reader", ("reader", ">sealed", ">seconds (median)", ">same as others", ">gold right"), readers),
        plain_table("By two readers", ("reader", "and", ">items", ">same"), pairs),
        plain_table("Over time", ("completed", ">pairs", ">same"), parts),
        _items("Most disputed items", found.disputed),
        _items("Slowest items", found.slowest),
    ]
    return [one for one in tables if one.rows]


def _items(title: str, some: tuple[ItemFigures, ...]) -> Table:
    rows = [(one.key, one.group, f"{one.differing} of {one.pairs}", _seconds(one.seconds)) for one in some[:_SHOWN]]
    return plain_table(title, ("item", "group", ">pairs that differ", ">seconds (median)"), rows, wrapped=("item",))


def _seconds(one: float | None) -> Cell:
    return Cell(DASH) if one is None else Cell(seconds(one), raw=one)


def _share(one: Estimate) -> Cell:
    below = "" if one.ci_low is None else f"{percent(one.ci_low)} to {percent(one.ci_high)}"
    return Cell(percent(one.value), below=below, raw=one.value)


def _figure(one: Estimate | None) -> Cell:
    if one is None:
        return Cell(DASH)
    below = "" if one.ci_low is None else number_interval(one.ci_low, one.ci_high, 2)
    return Cell(number(one.value, 2), below=below, raw=one.value)


def _days(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"
