"""Studies in the database: items with their versions, dealt to people, and how far they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import JsonValue
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    ScalarSelect,
    Select,
    bindparam,
    func,
    insert,
    select,
    update,
)

from proctor.core import InputError, content_hash
from proctor.web.dealing import deal
from proctor.web.schema import accounts, assignments, consensus, readings, studies, study_items, versions
from proctor.web.settings import REVIEW_FILE, StudyPlan, StudySettings
from proctor.web.sources import NewItem
from proctor.web.trail import record

IMPORTED, SETTLED = "import", "consensus"
"""Why a version was made: as its source gives it, or by settling readings of the one before. Every other reason is a
person's own."""


@dataclass(frozen=True)
class ItemTally:
    """What an import did: items that are `new`, that became a new version (`changed`), and that were as before; `gone`
    are in the study and no longer in its source, where they stay."""

    new: int
    changed: int
    same: int
    gone: int


def add_study(connection: Connection, study: StudySettings, at: datetime) -> int:
    """The id of a study, which is made or brought up to date. Raises `InputError` where it has items of another
    form."""
    row = connection.execute(select(studies).where(studies.c.name == study.name)).mappings().one_or_none()
    settings = study.model_dump(mode="json", exclude={"name", "form"})
    if row is None:
        made = connection.execute(insert(studies).values(name=study.name, form=study.form, settings=settings))
        number = int(made.inserted_primary_key[0])  # type: ignore[index]
        record(connection, at, None, "add study", f"study {study.name}", {"form": study.form})
        return number
    if row["form"] != study.form:
        where = f"study {study.name}, form"
        raise InputError(REVIEW_FILE, where, found=repr(study.form), expected=f"{row['form']!r}, as its items have")
    if row["settings"] != settings:
        connection.execute(update(studies).where(studies.c.id == row["id"]).values(settings=settings))
        record(connection, at, None, "change study", f"study {study.name}")
    return int(row["id"])


def import_items(connection: Connection, study: int, items: Sequence[NewItem], at: datetime) -> ItemTally:
    """Brings a study's items up to date by their keys. An item whose body, media or known reading changed gets a new
    version, which is read again; readings of the former stay with it. A second import of the same changes nothing."""
    known = {
        row["key"]: row
        for row in connection.execute(select(study_items).where(study_items.c.study == study)).mappings()
    }
    imported = _imported(connection, study)
    latest = {row["item"]: row["number"] for row in connection.execute(_latest(study)).mappings()}
    new, changed, same = [], 0, 0
    for one in items:
        row = known.get(one.key)
        media: list[JsonValue] = [medium.model_dump(mode="json") for medium in one.media]
        about = {"group_name": one.group, "media": media, "gold": one.gold}
        if row is None:
            new.append((one, about))
        elif content_hash([one.body, media]) == imported.get(row["id"]) and row["gold"] == one.gold:
            same += 1
        else:
            changed += 1
            connection.execute(update(study_items).where(study_items.c.id == row["id"]).values(**about))
            number = latest[row["id"]] + 1
            version = {"item": row["id"], "number": number, "body": one.body, "created": at.isoformat()}
            connection.execute(insert(versions).values(**version, why=_why(one.body, media)))
    _insert(connection, study, new, len(known), at)
    tally = ItemTally(len(new), changed, same, len(known.keys() - {one.key for one in items}))
    if new or changed:
        record(connection, at, None, "import items", f"study {study}", {"new": len(new), "changed": changed})
    return tally


def _why(body: Any, media: Any) -> str:
    """Marks an imported version by what it was made from, since media stand with the item."""
    return f"{IMPORTED} {content_hash([body, media])}"


def _imported(connection: Connection, study: int) -> dict[int, str]:
    """What the newest imported version of each item was made from."""
    query = (
        select(versions.c.item, versions.c.why)
        .join(study_items, study_items.c.id == versions.c.item)
        .where(study_items.c.study == study, versions.c.why.like(f"{IMPORTED} %"))
        .order_by(versions.c.item, versions.c.number)
    )
    return {row.item: row.why.removeprefix(f"{IMPORTED} ") for row in connection.execute(query)}


def _latest(study: int) -> Any:
    return (
        select(versions.c.item, func.max(versions.c.number).label("number"))
        .join(study_items, study_items.c.id == versions.c.item)
        .where(study_items.c.study == study)
        .group_by(versions.c.item)
    )


def _insert(
    connection: Connection, study: int, new: Sequence[tuple[NewItem, Mapping[str, Any]]], start: int, at: datetime
) -> None:
    if not new:
        return
    rows = [
        {"study": study, "key": one.key, "position": start + place, **about} for place, (one, about) in enumerate(new)
    ]
    connection.execute(insert(study_items), rows)
    query = select(study_items.c.key, study_items.c.id).where(study_items.c.study == study)
    ids = {row.key: row.id for row in connection.execute(query)}
    made = [
        {
            "item": ids[one.key],
            "number": 1,
            "body": one.body,
            "author": None,
            "created": at.isoformat(),
            "why": _why(one.body, about["media"]),
        }
        for one, about in new
    ]
    connection.execute(insert(versions), made)


_OWN, _NEWER = versions.alias("own"), versions.alias("newer")
_READER, _READ = assignments.alias("reader"), readings.alias("read")


def read_version(item: ColumnElement[int]) -> ScalarSelect[int]:
    """The id of the version of an item that is read now: the newest that did not come from settling readings."""
    number = select(func.max(_NEWER.c.number)).where(_NEWER.c.item == item, _NEWER.c.why != SETTLED)
    newest = number.correlate_except(_NEWER).scalar_subquery()
    own = select(_OWN.c.id).where(_OWN.c.item == item, _OWN.c.number == newest)
    return own.correlate_except(_OWN).scalar_subquery()


# -- dealing


def deal_study(connection: Connection, study: int, plan: StudyPlan, at: datetime) -> int:
    """Deals the items that nobody reads yet, and returns how many assignments were made. Those that stand stay.

    New items go to those of the plan who are not disabled; where these are too few for its readings, or none of its
    adjudicators is left, they wait. Raises `InputError` for a person without an account.
    """
    out = disabled_people(connection, plan)
    readers, adjudicators = (
        tuple(name for name in some if name not in out) for some in (plan.readers, plan.adjudicators)
    )
    enough = not out or (len(readers) >= plan.readings and bool(adjudicators) == bool(plan.adjudicators))
    plan = plan.model_copy(update={"readers": readers, "adjudicators": adjudicators})
    ids = _accounts(connection, (*readers, *adjudicators))
    rows = connection.execute(select(study_items).where(study_items.c.study == study)).mappings().all()
    keys = {row["key"]: row["id"] for row in rows}
    names = {number: name for name, number in ids.items()}
    gold = {row["key"] for row in rows if row["gold"] is not None}
    dealt, load, known = _dealt(connection, study)
    new = [key for key in keys if key not in dealt and key not in gold] if enough else []
    given = deal(
        plan,
        new,
        gold,
        {names[number]: count for number, count in load.items() if number in names},
        {names[number]: some for number, some in known.items() if number in names},
    )
    made = []
    for role, work in (("reader", given.readers), ("adjudicator", given.adjudicators)):
        for name, some in work.items():
            start = _last_position(connection, ids[name]) + 1
            made += [
                {"item": keys[key], "account": ids[name], "position": start + place, "role": role}
                for place, key in enumerate(some)
            ]
    if made:
        connection.execute(insert(assignments), made)
        record(connection, at, None, "deal", f"study {study}", {"items": len(new), "assignments": len(made)})
    return len(made)


def disabled_people(connection: Connection, plan: StudyPlan) -> tuple[str, ...]:
    """Those of a plan who may not log in any more. What they did stays."""
    people = (*plan.readers, *plan.adjudicators)
    query = select(accounts.c.name).where(accounts.c.name.in_(people), accounts.c.disabled.is_not(None))
    out = set(connection.execute(query).scalars())
    return tuple(name for name in people if name in out)


def items_without_reader(connection: Connection, study: int) -> int:
    """How many items nobody reads, gold left out: new ones that wait."""
    read = select(assignments.c.id).where(assignments.c.item == study_items.c.id, assignments.c.role == "reader")
    query = select(func.count()).where(study_items.c.study == study, study_items.c.gold.is_(None), ~read.exists())
    return int(connection.execute(query).scalar_one())


def _accounts(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    query = select(accounts.c.name, accounts.c.id).where(accounts.c.name.in_(names))
    ids = {row.name: int(row.id) for row in connection.execute(query)}
    for name in names:
        if name not in ids:
            expected = f"an account (proctor users add DIR {name})"
            raise InputError(REVIEW_FILE, "plan", found=repr(name), expected=expected)
    return ids


def _dealt(connection: Connection, study: int) -> tuple[set[str], dict[int, int], dict[int, list[str]]]:
    """The keys that have readers, how many items each account reads, and which gold items."""
    query = (
        select(study_items.c.key, study_items.c.gold, assignments.c.account)
        .join(assignments, assignments.c.item == study_items.c.id)
        .where(study_items.c.study == study, assignments.c.role == "reader")
    )
    keys: set[str] = set()
    load: dict[int, int] = {}
    known: dict[int, list[str]] = {}
    for key, gold, account in connection.execute(query):
        keys.add(key)
        if gold is None:
            load[account] = load.get(account, 0) + 1
        else:
            known.setdefault(account, []).append(key)
    return keys, load, known


def _last_position(connection: Connection, account: int) -> int:
    last = connection.execute(select(func.max(assignments.c.position)).where(assignments.c.account == account)).scalar()
    return -1 if last is None else int(last)


# -- where things stand


@dataclass(frozen=True)
class MyStudy:
    """A study as one person sees it: how many of the items that they read are sealed; how many wait for them as an
    adjudicator, and how many they settled."""

    name: str
    title: str
    form: str
    items: int
    sealed: int
    to_settle: int
    settled: int

    @property
    def done(self) -> bool:
        """Whether nothing waits for this person."""
        return self.sealed == self.items and not self.to_settle


def my_studies(connection: Connection, account: int, name: str | None = None) -> list[MyStudy]:
    """The studies in which an account has work (or the one of this name), by name."""
    found = []
    query = select(studies) if name is None else select(studies).where(studies.c.name == name)
    for row in connection.execute(query.order_by(studies.c.name)).mappings():
        work = my_work(connection, account, row["id"])
        if not work:
            continue
        mine = [one for one in work if one.role == "reader"]
        cases = [one for one in work if one.role == "adjudicator"]
        found.append(
            MyStudy(
                row["name"],
                row["settings"].get("title") or row["name"],
                row["form"],
                len(mine),
                sum(one.done for one in mine),
                sum(one.due for one in cases),
                sum(one.done for one in cases),
            )
        )
    return found


@dataclass(frozen=True)
class Assigned:
    """One piece of a person's work: `done` is sealed or settled by them, `due` waits for them now."""

    item: int
    position: int
    role: str
    done: bool
    due: bool


def my_work(connection: Connection, account: int, study: int) -> list[Assigned]:
    """A person's work in a study, in its order."""
    given = {"account": account, "study": study}
    return [_assigned(row, account) for row in connection.execute(_work(), given).mappings()]


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


def _assigned(row: RowMapping, account: int) -> Assigned:
    if row["role"] == "reader":
        return Assigned(row["item"], row["position"], "reader", bool(row["sealed"]), not row["sealed"])
    due = bool(row["complete"]) and not row["settled"]
    return Assigned(row["item"], row["position"], "adjudicator", row["settled_by"] == account, due)


def all_sealed(item: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether every reader of an item has sealed a reading of the version that is read now (and there is a reader)."""
    sealed = select(_READ.c.id).where(
        _READ.c.version == read_version(item), _READ.c.account == _READER.c.account, _READ.c.sealed.is_not(None)
    )
    readers = select(_READER.c.id).where(_READER.c.item == item, _READER.c.role == "reader").correlate_except(_READER)
    return readers.exists() & ~readers.where(~sealed.correlate_except(_READ).exists()).exists()


def next_item(connection: Connection, account: int, study: str, after: int | None = None) -> int | None:
    """The item that waits for a person next in a study: the first that is due, after the item `after` where one is
    there. None where nothing waits."""
    given = {"account": account, "study": study, "after": after or 0}
    reads, settles = _next()
    found = connection.execute(reads, given).scalar()
    return found if found is not None else connection.execute(settles, given).scalar()


@cache
def _next() -> tuple[Select[Any], Select[Any]]:
    """What a reader reads next, and what an adjudicator settles next."""
    here = assignments.alias("here")
    place = (
        select(here.c.position)
        .where(here.c.item == bindparam("after"), here.c.account == bindparam("account"))
        .scalar_subquery()
    )
    query = (
        select(assignments.c.item)
        .join(study_items, study_items.c.id == assignments.c.item)
        .join(studies, studies.c.id == study_items.c.study)
        .where(studies.c.name == bindparam("study"), assignments.c.account == bindparam("account"))
        .order_by(assignments.c.position <= func.coalesce(place, -1), assignments.c.position)
        .limit(1)
    )
    reads = query.where(assignments.c.role == "reader", ~_sealed_by_me())
    settles = query.where(assignments.c.role == "adjudicator", all_sealed(assignments.c.item), ~_settled())
    return reads, settles


@dataclass(frozen=True)
class PersonProgress:
    """How far one person is in a study: of the items assigned as a reader, how many are sealed, and when last; how many
    items wait for them as an adjudicator, and how many they settled."""

    pseudonym: str
    role: str
    items: int
    sealed: int
    last: str
    to_settle: int
    settled: int


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is, without a word of what anybody said: items (gold left out), those that all readers have
    sealed, those settled by agreement and by an adjudicator, and those whose readings differ and wait."""

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
        """Items whose readings differ, and that nobody has settled yet."""
        return self.complete - self.agreed - self.adjudicated


def study_progress(connection: Connection, study: str) -> StudyProgress | None:
    """Where a study stands; None where there is none of this name. No reading is read for it."""
    row = connection.execute(select(studies).where(studies.c.name == study)).mappings().one_or_none()
    if row is None:
        return None
    version = read_version(study_items.c.id)
    settled = select(consensus.c.version).where(consensus.c.version == version)
    query = select(
        study_items.c.gold.is_not(None).label("gold"),
        all_sealed(study_items.c.id).label("complete"),
        settled.exists().label("settled"),
        settled.where(consensus.c.account.is_not(None)).exists().label("by_somebody"),
    ).where(study_items.c.study == row["id"])
    items = connection.execute(query).all()
    counted = [one for one in items if not one.gold]
    names = (
        select(accounts.c.id, accounts.c.pseudonym, accounts.c.role)
        .join(assignments, assignments.c.account == accounts.c.id)
        .join(study_items, study_items.c.id == assignments.c.item)
        .where(study_items.c.study == row["id"])
        .distinct()
        .order_by(accounts.c.pseudonym)
    )
    return StudyProgress(
        row["name"],
        row["settings"].get("title") or row["name"],
        row["form"],
        len(counted),
        len(items) - len(counted),
        sum(bool(one.complete) for one in counted),
        sum(bool(one.settled and not one.by_somebody and one.complete) for one in counted),
        sum(bool(one.by_somebody and one.complete) for one in counted),
        tuple(_person(connection, one, row["id"]) for one in connection.execute(names).all()),
    )


def _person(connection: Connection, person: Any, study: int) -> PersonProgress:
    work = my_work(connection, person.id, study)
    mine = [one for one in work if one.role == "reader"]
    cases = [one for one in work if one.role == "adjudicator"]
    last = (
        select(func.max(readings.c.sealed))
        .join(versions, versions.c.id == readings.c.version)
        .join(study_items, study_items.c.id == versions.c.item)
        .where(readings.c.account == person.id, study_items.c.study == study)
    )
    return PersonProgress(
        person.pseudonym,
        person.role,
        len(mine),
        sum(one.done for one in mine),
        connection.execute(last).scalar() or "",
        sum(one.due for one in cases),
        sum(one.done for one in cases),
    )
