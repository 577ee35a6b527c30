"""Studies in the database: their items with versions, and who reads which item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, delete, func, insert, select, update

from proctor.core import InputError, content_hash, generator
from proctor.runs import one_at_a_time
from proctor_web.progress import my_work
from proctor_web.schema import accounts, assignments, studies, study_items, versions
from proctor_web.settings import REVIEW_FILE, StudyPlan, StudySettings
from proctor_web.sources import NewItem
from proctor_web.trail import person_subject, record

_IMPORTED = "import"
"""Why a version was made: from the study's source. The hash of its content follows."""


@dataclass(frozen=True)
class ItemTally:
    """The items of an import: `new` ones, those with a new version (`changed`), and those as before (`same`). Items
    that are `gone` from the source stay in the study."""

    new: int
    changed: int
    same: int
    gone: int


def lock_study(connection: Connection, name: str) -> None:
    """Until the transaction ends, no other one creates or updates a study, or changes the items of this one. Locks are
    taken in one order everywhere, so that nobody waits for one another: the study, its items, the trail."""
    one_at_a_time(connection, "studies")
    own = select(studies.c.id).where(studies.c.name == name)
    connection.execute(own.with_for_update())
    items = select(study_items.c.id).where(study_items.c.study.in_(own)).order_by(study_items.c.id)
    connection.execute(items.with_for_update())


def add_study(connection: Connection, study: StudySettings, at: datetime, position: int = 0) -> int:
    """Creates or updates a study and returns its id. Pages list studies by their `position` in `review.yaml`. Raises
    `InputError` where its items have another form."""
    row = connection.execute(select(studies).where(studies.c.name == study.name)).mappings().one_or_none()
    settings = study.model_dump(mode="json", exclude={"name", "form"}) | {"position": position}
    if row is None:
        new = insert(studies).values(name=study.name, form=study.form, settings=settings).returning(studies.c.id)
        study_id = int(connection.execute(new).scalar_one())
        record(connection, at, None, "add study", f"study {study.name}", {"form": study.form})
        return study_id
    if row["form"] != study.form:
        where = f"study {study.name}, form"
        raise InputError(REVIEW_FILE, where, found=repr(study.form), expected=f"{row['form']!r}, as its items have")
    if row["settings"] != settings:
        connection.execute(update(studies).where(studies.c.id == row["id"]).values(settings=settings))
        record(connection, at, None, "change study", f"study {study.name}")
    return int(row["id"])


def import_items(connection: Connection, study: int, items: Sequence[NewItem], at: datetime) -> ItemTally:
    """Updates a study's items by their keys. An item whose body, media or gold reading changed gets a new version,
    which is read again; readings of the former version stay. A repeated import changes nothing."""
    known = {row.key: row for row in connection.execute(select(study_items).where(study_items.c.study == study))}
    numbers, imported = _stored_versions(connection, study)
    new, changed, same = [], 0, 0
    for item in items:
        row = known.get(item.key)
        media: list[JsonValue] = [medium.model_dump(mode="json") for medium in item.media]
        values = {"group_name": item.group, "media": media, "gold": item.gold}
        why = f"{_IMPORTED} {content_hash([item.body, media])}"  # the media, too: they are stored with the item
        if row is None:
            new.append((item, values, why))
        elif why == imported.get(row.id) and row.gold == item.gold:
            same += 1
        else:
            changed += 1
            connection.execute(update(study_items).where(study_items.c.id == row.id).values(**values))
            version = _version(row.id, numbers[row.id] + 1, item, why, at)
            connection.execute(insert(versions).values(**version))
    if new:
        rows = [
            {"study": study, "key": one.key, "position": position, **values}
            for position, (one, values, _) in enumerate(new, start=len(known))
        ]
        connection.execute(insert(study_items), rows)
        query = select(study_items.c.key, study_items.c.id).where(study_items.c.study == study)
        ids = {row.key: row.id for row in connection.execute(query)}
        connection.execute(insert(versions), [_version(ids[one.key], 1, one, why, at) for one, _, why in new])
    if new or changed:
        record(connection, at, None, "import items", f"study {study}", {"new": len(new), "changed": changed})
    return ItemTally(len(new), changed, same, len(known.keys() - {item.key for item in items}))


def _stored_versions(connection: Connection, study: int) -> tuple[dict[int, int], dict[int, str]]:
    """By item, the number of the newest version, and the reason of the newest imported one."""
    query = (
        select(versions.c.item, versions.c.number, versions.c.why)
        .join(study_items, study_items.c.id == versions.c.item)
        .where(study_items.c.study == study)
        .order_by(versions.c.item, versions.c.number)
    )
    rows = connection.execute(query).all()
    imported = {row.item: row.why for row in rows if row.why.startswith(f"{_IMPORTED} ")}
    return {row.item: row.number for row in rows}, imported


def _version(item: int, number: int, new: NewItem, why: str, at: datetime) -> dict[str, Any]:
    return {"item": item, "number": number, "body": new.body, "author": None, "created": at.isoformat(), "why": why}


# -- who reads what


@dataclass(frozen=True)
class Deal:
    """The new work of each person, in order: keys of items by name."""

    readers: Mapping[str, tuple[str, ...]]
    adjudicators: Mapping[str, tuple[str, ...]]


def deal(
    plan: StudyPlan,
    items: Iterable[str],
    gold: Iterable[str] = (),
    load: Mapping[str, int] | None = None,
    known: Mapping[str, Sequence[str]] | None = None,
) -> Deal:
    """Deals new items (by key) to the plan's people. `load` is the number of items that each has already (without
    gold), and `known` are the gold items that each has.

    An item of the overlap goes to `readings` different readers, any other to one: those with the least work, ties
    broken at random by the plan's seed. Readers who start equal differ by at most one item. Gold items are `gold_share`
    of a reader's new work, at random positions, none twice. The result does not depend on the order of items and
    people.
    """
    keys = sorted(set(items), key=lambda key: _draw(plan.seed, "deal", key))
    work, cases = Counter(load or {}), Counter[str]()
    mine: dict[str, list[str]] = {name: [] for name in plan.readers}
    theirs: dict[str, list[str]] = {name: [] for name in plan.adjudicators}
    several = round(plan.overlap * len(keys))
    for number, key in enumerate(keys):
        count = plan.readings if number < several else 1
        for name in _least(plan.readers, work, (plan.seed, "reader", key))[:count]:
            mine[name].append(key)
            work[name] += 1
        if count > 1 and plan.adjudicators:
            name = _least(plan.adjudicators, cases, (plan.seed, "adjudicator", key))[0]
            theirs[name].append(key)
            cases[name] += 1
    ordered = {name: _shuffled(plan, name, some) for name, some in (mine | theirs).items()}
    return Deal(
        {name: _mixed(plan, name, ordered[name], sorted(set(gold)), (known or {}).get(name, ())) for name in mine},
        {name: tuple(ordered[name]) for name in theirs},
    )


def _shuffled(plan: StudyPlan, name: str, some: Sequence[str]) -> list[str]:
    return sorted(some, key=lambda key: _draw(plan.seed, "order", name, key))


def _mixed(
    plan: StudyPlan, name: str, some: Sequence[str], gold: Sequence[str], known: Sequence[str]
) -> tuple[str, ...]:
    """A reader's items with gold ones at random positions."""
    if not some:
        return ()
    wanted = round(len(some) * plan.gold_share / (1 - plan.gold_share))
    new = sorted((key for key in gold if key not in known), key=lambda key: _draw(plan.seed, "gold", name, key))
    chosen = new[:wanted]
    rng = generator(plan.seed, "places", name, *sorted(some)[:1])
    total = len(some) + len(chosen)
    rows = set(rng.choice(total, size=len(chosen), replace=False).tolist())
    rest, extra = iter(some), iter(chosen)
    return tuple(next(extra) if row in rows else next(rest) for row in range(total))


def _least(names: Sequence[str], work: Mapping[str, int], draw: tuple[int, str, str]) -> list[str]:
    return sorted(names, key=lambda name: (work.get(name, 0), _draw(*draw, name)))


def _draw(seed: int, *names: str) -> str:
    """An independent random text for each combination of names."""
    return content_hash([seed, *names])


def deal_study(connection: Connection, study: int, plan: StudyPlan, at: datetime) -> int:
    """Deals the items without readers, and returns the number of new assignments. Existing assignments stay.

    Disabled people get no new items. Where too few readers remain for the plan's readings, or none of its adjudicators,
    the items wait. Raises `InputError` for a person without an account.
    """
    out = disabled_people(connection, plan)
    readers, adjudicators = (
        tuple(name for name in some if name not in out) for some in (plan.readers, plan.adjudicators)
    )
    enough = not out or (len(readers) >= plan.readings and bool(adjudicators) == bool(plan.adjudicators))
    plan = plan.model_copy(update={"readers": readers, "adjudicators": adjudicators})
    ids = _accounts(connection, (*readers, *adjudicators))
    names = {account: name for name, account in ids.items()}
    items = {row.key: row for row in connection.execute(select(study_items).where(study_items.c.study == study))}
    gold = {key for key, row in items.items() if row.gold is not None}
    query = (
        select(study_items.c.key, assignments.c.account)
        .join(assignments, assignments.c.item == study_items.c.id)
        .where(study_items.c.study == study, assignments.c.role == "reader")
    )
    dealt: set[str] = set()
    load = Counter[str]()
    known: dict[str, list[str]] = {}
    for key, account in connection.execute(query):
        dealt.add(key)
        name = names.get(account, "")
        if key in gold:
            known.setdefault(name, []).append(key)
        else:
            load[name] += 1
    new = [key for key in items if key not in dealt | gold] if enough else []
    given = deal(plan, new, gold, load, known)
    count = 0
    for role, work in (("reader", given.readers), ("adjudicator", given.adjudicators)):
        for name, keys in work.items():
            count += append_work(connection, ids[name], [items[key].id for key in keys], role)
    if count:
        record(connection, at, None, "deal", f"study {study}", {"items": len(new), "assignments": count})
    return count


def deal_another(connection: Connection, study: int, plan: StudyPlan, items: Sequence[NewItem], at: datetime) -> int:
    """Deals items that one more person is to read (`NewItem.read_by`) to the reader of the plan with the least work who
    does not have them, and returns the number of new assignments. An item that has more readers already, and one that
    every reader has, stays as it is."""
    wanted = {item.key: item.read_by for item in items if item.read_by is not None}
    out = disabled_people(connection, plan)
    ids = _accounts(connection, [name for name in plan.readers if name not in out])
    query = (
        select(study_items.c.id, study_items.c.key, assignments.c.account)
        .join(assignments, assignments.c.item == study_items.c.id)
        .where(study_items.c.study == study, study_items.c.gold.is_(None), assignments.c.role == "reader")
        .order_by(study_items.c.position)
    )
    numbers: dict[str, int] = {}
    have: dict[str, set[int]] = {}
    load = Counter[int]()
    for row in connection.execute(query):
        numbers[row.key] = row.id
        have.setdefault(row.key, set()).add(row.account)
        load[row.account] += 1
    new: dict[str, list[int]] = {}
    for key in (key for key in numbers if wanted.get(key) == len(have[key])):
        work = {name: load[account] for name, account in ids.items() if account not in have[key]}
        for name in _least(list(work), work, (plan.seed, "another", key))[:1]:
            load[ids[name]] += 1
            new.setdefault(name, []).append(numbers[key])
    count = sum(append_work(connection, ids[name], some, "reader") for name, some in new.items())
    if count:
        record(connection, at, None, "deal", f"study {study}", {"another": count, "assignments": count})
    return count


def append_work(connection: Connection, account: int, items: Sequence[int], role: str) -> int:
    """Assigns items after a person's present work, and returns their number."""
    query = select(func.max(assignments.c.position)).where(assignments.c.account == account)
    last = connection.execute(query).scalar()
    start = 0 if last is None else int(last) + 1
    rows = [
        {"item": item, "account": account, "position": position, "role": role}
        for position, item in enumerate(items, start)
    ]
    if rows:
        connection.execute(insert(assignments), rows)
    return len(rows)


def disabled_people(connection: Connection, plan: StudyPlan) -> tuple[str, ...]:
    """The people of a plan whose accounts are disabled. Their readings stay."""
    people = (*plan.readers, *plan.adjudicators)
    query = select(accounts.c.name).where(accounts.c.name.in_(people), accounts.c.disabled.is_not(None))
    out = set(connection.execute(query).scalars())
    return tuple(name for name in people if name in out)


def items_without_reader(connection: Connection, study: int) -> int:
    """The number of items that nobody reads, without gold."""
    read = select(assignments.c.id).where(assignments.c.item == study_items.c.id, assignments.c.role == "reader")
    query = select(func.count()).where(study_items.c.study == study, study_items.c.gold.is_(None), ~read.exists())
    return int(connection.execute(query).scalar_one())


def _accounts(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    query = select(accounts.c.name, accounts.c.id).where(accounts.c.name.in_(names))
    ids = {row.name: int(row.id) for row in connection.execute(query)}
    for name in names:
        if name not in ids:
            expected = f"an account (proctor serve users add DIR {name})"
            raise InputError(REVIEW_FILE, "plan", found=repr(name), expected=expected)
    return ids


# -- work that passes on, when somebody leaves a study or falls behind


@dataclass(frozen=True)
class ReassignmentTally:
    """The number of items that went to other readers (`passed_on`), of `gold` items that were removed, and of items
    that `stay` because every other reader of the plan has them already."""

    passed_on: int
    gold: int
    stay: int


def reassign(connection: Connection, study: str, account: int, plan: StudyPlan, at: datetime) -> ReassignmentTally:
    """Gives a reader's unsealed items to readers of the plan who do not have them: those with the least work first,
    ties broken at random by the plan's seed. Sealed readings stay, and so do drafts, which nobody else ever sees."""
    lock_study(connection, study)
    study_id = connection.execute(select(studies.c.id).where(studies.c.name == study)).scalar_one()
    left = [
        assigned.item
        for assigned in my_work(connection, account, study_id)
        if assigned.role == "reader" and not assigned.done
    ]
    gold = set(connection.execute(select(study_items.c.id).where(study_items.c.gold.is_not(None))).scalars())
    active = select(accounts.c.name, accounts.c.id).where(accounts.c.disabled.is_(None), accounts.c.id != account)
    others = {row.name: int(row.id) for row in connection.execute(active) if row.name in plan.readers}
    load = {
        name: sum(not assigned.done for assigned in my_work(connection, other, study_id))
        for name, other in others.items()
    }
    tally = {"passed_on": 0, "gold": 0, "stay": 0}
    for item in left:
        have = set(connection.execute(select(assignments.c.account).where(assignments.c.item == item)).scalars())
        free = [name for name, other in others.items() if other not in have]
        if item not in gold and not free:
            tally["stay"] += 1
            continue
        connection.execute(delete(assignments).where(assignments.c.item == item, assignments.c.account == account))
        if item in gold:
            tally["gold"] += 1
            continue
        draws = {name: content_hash([plan.seed, "reassign", item, name]) for name in free}
        chosen = min(free, key=lambda name: (load[name], draws[name]))
        append_work(connection, others[chosen], [item], "reader")
        load[chosen] += 1
        tally["passed_on"] += 1
    if tally["passed_on"] or tally["gold"]:
        record(connection, at, None, "reassign", person_subject(connection, account), {"study": study, **tally})
    return ReassignmentTally(**tally)
