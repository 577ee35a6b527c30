"""The state of studies: which version of an item is read, what each person has still to do, and the progress."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, Connection, ScalarSelect, Select, bindparam, func, select

from proctor_web.schema import accounts, assignments, consensus, readings, studies, study_items, versions

SETTLED = "consensus"
"""The reason of a version that was made by settling readings of the one before."""

_LEAST_MEASURED = 3

_OWN, _NEWER = versions.alias("own"), versions.alias("newer")
_READER, _READ = assignments.alias("reader"), readings.alias("read")


def read_version(item: ColumnElement[int]) -> ScalarSelect[int]:
    """The id of the version of an item that is read now: the newest that was not made by settling readings."""
    number = select(func.max(_NEWER.c.number)).where(_NEWER.c.item == item, _NEWER.c.why != SETTLED)
    newest = number.correlate_except(_NEWER).scalar_subquery()
    own = select(_OWN.c.id).where(_OWN.c.item == item, _OWN.c.number == newest)
    return own.correlate_except(_OWN).scalar_subquery()


def all_sealed(item: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether an item has readers, and each has sealed a reading of the version that is read now."""
    sealed = select(_READ.c.id).where(
        _READ.c.version == read_version(item), _READ.c.account == _READER.c.account, _READ.c.sealed.is_not(None)
    )
    readers = select(_READER.c.id).where(_READER.c.item == item, _READER.c.role == "reader").correlate_except(_READER)
    return readers.exists() & ~readers.where(~sealed.correlate_except(_READ).exists()).exists()


# -- one person's work


@dataclass(frozen=True)
class Assigned:
    """One item of a person's work: `done` means sealed or settled by them, `due` that it waits for them now."""

    item: int
    position: int
    role: str
    done: bool
    due: bool


def my_work(connection: Connection, account: int, study: int) -> list[Assigned]:
    """A person's work in a study, in its order."""
    found = []
    for row in connection.execute(_work(), {"account": account, "study": study}):
        if row.role == "reader":
            done, due = bool(row.sealed), not row.sealed
        else:
            done, due = row.settled_by == account, bool(row.complete) and not row.settled
        found.append(Assigned(row.item, row.position, row.role, done, due))
    return found


@cache
def _work() -> Select[Any]:
    version = read_version(assignments.c.item)
    settled_by = select(consensus.c.account).where(consensus.c.version == version).scalar_subquery()
    return (
        select(
            assignments.c.item,
            assignments.c.position,
            assignments.c.role,
            _sealed_by_me().label("sealed"),
            settled_by.label("settled_by"),
            _settled().label("settled"),
            all_sealed(assignments.c.item).label("complete"),
        )
        .join(study_items, study_items.c.id == assignments.c.item)
        .where(assignments.c.account == bindparam("account"), study_items.c.study == bindparam("study"))
        .order_by(assignments.c.position)
    )


def _sealed_by_me() -> ColumnElement[bool]:
    mine = readings.alias("mine")
    version = read_version(assignments.c.item)
    return (
        select(mine.c.id)
        .where(mine.c.version == version, mine.c.account == bindparam("account"), mine.c.sealed.is_not(None))
        .exists()
    )


def _settled() -> ColumnElement[bool]:
    return select(consensus.c.version).where(consensus.c.version == read_version(assignments.c.item)).exists()


@dataclass(frozen=True)
class WorkCounts:
    """One person's work in a study: as a reader their items and how many are sealed, as an adjudicator how many items
    wait for them and how many they settled."""

    items: int
    sealed: int
    to_settle: int
    settled: int


def _counts(work: list[Assigned]) -> dict[str, int]:
    reads = [assigned for assigned in work if assigned.role == "reader"]
    settles = [assigned for assigned in work if assigned.role == "adjudicator"]
    return {
        "items": len(reads),
        "sealed": sum(read.done for read in reads),
        "to_settle": sum(settle.due for settle in settles),
        "settled": sum(settle.done for settle in settles),
    }


@dataclass(frozen=True)
class MyStudy(WorkCounts):
    """A study as one person sees it."""

    name: str
    title: str
    form: str
    intro: str = ""
    each_s: float | None = None
    """The median time of a submitted reading in the study, in seconds; None where fewer than three were measured."""

    @property
    def paragraphs(self) -> list[str]:
        """The introduction, by paragraphs."""
        return [" ".join(part.split()) for part in self.intro.split("\n\n") if part.strip()]

    @property
    def begun(self) -> bool:
        """Whether this person has submitted or settled something here."""
        return bool(self.sealed or self.settled)

    @property
    def minutes_left(self) -> int:
        """What the open items take at `each_s`, in whole minutes, at least one."""
        return max(1, round((self.items - self.sealed) * (self.each_s or 0.0) / 60))

    @property
    def done(self) -> bool:
        """Whether nothing waits for this person."""
        return self.sealed == self.items and not self.to_settle


def my_studies(connection: Connection, account: int, name: str | None = None) -> list[MyStudy]:
    """The studies in which an account has work (or only the one with this name), in the order of `review.yaml`."""
    query = select(studies) if name is None else select(studies).where(studies.c.name == name)
    found = []
    rows = sorted(
        connection.execute(query.order_by(studies.c.id)).all(), key=lambda row: row.settings.get("position", 0)
    )
    for row in rows:
        work = my_work(connection, account, row.id)
        if work:
            found.append(
                MyStudy(
                    **_counts(work),
                    name=row.name,
                    title=row.settings.get("title") or row.name,
                    form=row.form,
                    intro=row.settings.get("intro", ""),
                    each_s=_median_seconds(connection, row.id),
                )
            )
    return found


def _median_seconds(connection: Connection, study: int) -> float | None:
    query = (
        select(readings.c.seconds)
        .join(versions, versions.c.id == readings.c.version)
        .join(study_items, study_items.c.id == versions.c.item)
        .where(study_items.c.study == study, readings.c.sealed.is_not(None), readings.c.seconds > 0)
    )
    measured = list(connection.execute(query).scalars())
    return median(measured) if len(measured) >= _LEAST_MEASURED else None


@dataclass(frozen=True)
class PositionInWork:
    """Where an item stands in a person's work in its study: its number from 1, of how many, and the items beside it."""

    number: int
    total: int
    before: int | None
    after: int | None


def position_in_work(connection: Connection, account: int, study: str, item: int) -> PositionInWork:
    """The position of an item among those of a person in a study, in their order: as a reader all of them, as an adjudicator
    those that wait or that the person settled."""
    number = connection.execute(select(studies.c.id).where(studies.c.name == study)).scalar_one()
    work = my_work(connection, account, number)
    role = next(assigned.role for assigned in work if assigned.item == item)
    mine = [
        assigned.item
        for assigned in work
        if assigned.role == role and (role == "reader" or assigned.done or assigned.due or assigned.item == item)
    ]
    at = mine.index(item)
    return PositionInWork(at + 1, len(mine), mine[at - 1] if at else None, mine[at + 1] if at + 1 < len(mine) else None)


def next_item(connection: Connection, account: int, study: str, after: int | None = None) -> int | None:
    """The next item that waits for a person in a study: the first after the item `after`, else the first. Items to read
    come before items to settle. None where nothing waits."""
    given = {"account": account, "study": study, "after": after or 0}
    reads, settles = _next()
    found = connection.execute(reads, given).scalar()
    return found if found is not None else connection.execute(settles, given).scalar()


@cache
def _next() -> tuple[Select[Any], Select[Any]]:
    """The queries for the next item to read and to settle."""
    here = assignments.alias("here")
    location = (
        select(here.c.position)
        .where(here.c.item == bindparam("after"), here.c.account == bindparam("account"))
        .scalar_subquery()
    )
    query = (
        select(assignments.c.item)
        .join(study_items, study_items.c.id == assignments.c.item)
        .join(studies, studies.c.id == study_items.c.study)
        .where(studies.c.name == bindparam("study"), assignments.c.account == bindparam("account"))
        .order_by(assignments.c.position <= func.coalesce(location, -1), assignments.c.position)
        .limit(1)
    )
    reads = query.where(assignments.c.role == "reader", ~_sealed_by_me())
    settles = query.where(assignments.c.role == "adjudicator", all_sealed(assignments.c.item), ~_settled())
    return reads, settles


# -- progress of a study


@dataclass(frozen=True)
class PersonProgress(WorkCounts):
    """One person's progress in a study, with the name, which only organisers see; `last` is the time of the last seal."""

    name: str
    pseudonym: str
    role: str
    last: str


@dataclass(frozen=True)
class StudyProgress:
    """The progress of a study, without any content of readings: its items (without gold) and gold items, and how many
    items all readers have sealed, were settled by agreement, and were settled by an adjudicator."""

    name: str
    title: str
    form: str
    items: int
    gold: int
    complete: int
    agreed: int
    adjudicated: int
    people: tuple[PersonProgress, ...]

    @property
    def differing(self) -> int:
        """Items whose readings differ and that are not settled yet."""
        return self.complete - self.agreed - self.adjudicated


def study_progress(connection: Connection, study: str) -> StudyProgress | None:
    """The progress of the study with this name; None where there is none."""
    row = connection.execute(select(studies).where(studies.c.name == study)).one_or_none()
    if row is None:
        return None
    settled = select(consensus.c.version).where(consensus.c.version == read_version(study_items.c.id))
    query = select(
        study_items.c.gold.is_not(None).label("gold"),
        all_sealed(study_items.c.id).label("complete"),
        settled.exists().label("settled"),
        settled.where(consensus.c.account.is_not(None)).exists().label("by_somebody"),
    ).where(study_items.c.study == row.id)
    items = connection.execute(query).all()
    complete = [item for item in items if not item.gold and item.complete]
    gold = sum(bool(item.gold) for item in items)
    people = (
        select(accounts.c.id, accounts.c.name, accounts.c.pseudonym, accounts.c.role)
        .join(assignments, assignments.c.account == accounts.c.id)
        .join(study_items, study_items.c.id == assignments.c.item)
        .where(study_items.c.study == row.id)
        .distinct()
        .order_by(accounts.c.pseudonym)
    )
    return StudyProgress(
        row.name,
        row.settings.get("title") or row.name,
        row.form,
        len(items) - gold,
        gold,
        len(complete),
        sum(bool(one.settled and not one.by_somebody) for one in complete),
        sum(bool(one.by_somebody) for one in complete),
        tuple(_person(connection, one, row.id) for one in connection.execute(people).all()),
    )


def _person(connection: Connection, person: Any, study: int) -> PersonProgress:
    last_sealed = (
        select(func.max(readings.c.sealed))
        .join(versions, versions.c.id == readings.c.version)
        .join(study_items, study_items.c.id == versions.c.item)
        .where(readings.c.account == person.id, study_items.c.study == study)
    )
    counts = _counts(my_work(connection, person.id, study))
    last = connection.execute(last_sealed).scalar() or ""
    return PersonProgress(**counts, name=person.name, pseudonym=person.pseudonym, role=person.role, last=last)
