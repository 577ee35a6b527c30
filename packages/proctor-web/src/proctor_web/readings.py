"""Readings: drafts, conflicts of two windows, time on task, final seals, the adjudication of differences, and new
versions of items.

Functions that write take a connection in a transaction and add their entry to the trail in the same one. Readings by
others are read through `visibility` alone. The trail names readings and never holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Select, bindparam, func, insert, select, update

from proctor.core import InputError, ProctorError, kept_text
from proctor_web.forms import Form, form_named
from proctor_web.progress import SETTLED, all_sealed, read_version
from proctor_web.schema import accounts, assignments, consensus, readings, studies, study_items, versions
from proctor_web.trail import record
from proctor_web.visibility import others_readings

_MOST_COMMENT = 10_000
_MOST_PAUSE_S = 3600.0  # what one save may add to the time on task


class NotAssignedError(ProctorError):
    """There is no such item, or it is not this person's: the same error for both, so that nobody learns which."""

    def __init__(self) -> None:
        super().__init__("no such item")


class ConflictError(ProctorError):
    """A save that starts from an older state than the stored one: another window was faster. Nothing was written;
    `reading` is the stored one."""

    def __init__(self, reading: MyReading | None, why: str) -> None:
        super().__init__(why)
        self.reading = reading


class IncompleteError(ProctorError):
    """An incomplete reading can't be sealed; `missing` is what it lacks, as keys of the pages' texts."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(f"not complete: {', '.join(missing)}")
        self.missing = tuple(missing)


@dataclass(frozen=True)
class OpenItem:
    """An item in the version that is read now, with the person's `role`: reader or adjudicator."""

    id: int
    study: str
    title: str
    group: str
    form: Form[Any, Any]
    role: str
    media: list[dict[str, Any]]
    version: int
    number: int
    body: Any
    is_gold: bool


@dataclass(frozen=True)
class LastSave:
    """The last save of a page: the page's id, the number of the save, and the `seconds` that the page's saves added
    since its last acknowledgement.

    A page's next save follows its last one, acknowledged or not. Comparing texts would not tell whose save stands: two
    windows may say the same for a moment. A lock between windows would be held by a closed laptop."""

    page: str
    number: int
    seconds: float


@dataclass(frozen=True)
class MyReading:
    """A person's own reading of a version. `revision` counts saves; `sealed` is a time, or None for a draft; `last` is
    None where no page saved it."""

    payload: dict[str, JsonValue]
    comment: str
    seconds: float
    revision: int
    sealed: str | None
    last: LastSave | None = None


@dataclass(frozen=True)
class Save:
    """What a page sends: the state it starts from (`version` number and `revision`, 0 before the first save), the whole
    payload, and the seconds worked since the last acknowledged save. `page` is the page's own id ("" for none) and
    `number` counts its saves: so a page's save is recognised although its acknowledgement was lost.
    """

    version: int
    revision: int
    payload: dict[str, JsonValue]
    comment: str = ""
    seconds: float = 0.0
    page: str = ""
    number: int = 0


def open_item(connection: Connection, account: int, item: int) -> OpenItem:
    """The item for this person. Raises `NotAssignedError` where it is not assigned to them, and for an adjudicator
    before all readers have sealed."""
    row = connection.execute(_item_for(), {"item": item, "account": account}).mappings().one_or_none()
    if row is None or (row["role"] == "adjudicator" and not row["complete"]):
        raise NotAssignedError
    form = form_named(row["form"])
    return OpenItem(
        id=row["id"],
        study=row["study"],
        title=row["settings"].get("title") or row["study"],
        group=row["group_name"],
        form=form,
        role=row["role"],
        media=row["media"],
        version=row["version"],
        number=row["number"],
        body=form.read_body(row["body"], None, f"item {item}"),
        is_gold=row["gold"] is not None,
    )


@cache
def _item_for() -> Select[Any]:
    return (
        select(
            study_items.c.id,
            study_items.c.group_name,
            study_items.c.media,
            study_items.c.gold,
            studies.c.name.label("study"),
            studies.c.settings,
            studies.c.form,
            assignments.c.role,
            versions.c.id.label("version"),
            versions.c.number,
            versions.c.body,
            all_sealed(study_items.c.id).label("complete"),
        )
        .join(studies, studies.c.id == study_items.c.study)
        .join(assignments, assignments.c.item == study_items.c.id)
        .join(versions, versions.c.id == read_version(study_items.c.id))
        .where(study_items.c.id == bindparam("item"), assignments.c.account == bindparam("account"))
    )


def my_reading(connection: Connection, account: int, version: int) -> MyReading | None:
    """The person's own reading of a version, draft or sealed."""
    query = select(readings).where(readings.c.version == version, readings.c.account == account)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    last = None if row.by_page is None else LastSave(**row.by_page)
    return MyReading(row.payload, row.comment, row.seconds, row.revision, row.sealed, last)


# -- drafts and seals


def save_draft(connection: Connection, account: int, item: int, save: Save, at: datetime) -> MyReading:
    """Saves a draft and returns it with its new revision. A save that is sent twice (after a lost acknowledgement) is
    stored once, and a page's next save follows its last one, acknowledged or not.

    Raises `ConflictError` where the page's state is old, `NotAssignedError`, `InputError` for a payload that does not fit
    the form, and `IncompleteError` for one that the form does not take yet (see `Form.unready`).
    """
    return _save(connection, account, _locked(connection, account, item, "reader"), save, at)


def seal(connection: Connection, account: int, item: int, save: Save, at: datetime) -> MyReading:
    """Saves and seals a reading, which is then final. If it is the item's last reading and all agree, they become the
    consensus. Sealing a sealed reading again with the same content changes nothing.

    Raises what `save_draft` raises, and `IncompleteError`.
    """
    opened = _locked(connection, account, item, "reader")
    mine = _save(connection, account, opened, save, at)
    if mine.sealed is not None:
        return mine
    missing = opened.form.missing(opened.body, opened.form.read(opened.body, mine.payload))
    if missing:
        raise IncompleteError(missing)
    where = (readings.c.version == opened.version) & (readings.c.account == account)
    connection.execute(update(readings).where(where).values(sealed=at.isoformat()))
    detail: dict[str, JsonValue] = {"study": opened.study, "version": opened.number, "revision": mine.revision}
    record(connection, at, account, "seal", f"item {item}", detail)
    if not opened.is_gold:
        _settle_if_same(connection, account, opened, at)
    return replace(mine, sealed=at.isoformat())


def _locked(connection: Connection, account: int, item: int, role: str) -> OpenItem:
    """The item for this person in this role, locked against changes by others."""
    connection.execute(select(study_items.c.id).where(study_items.c.id == item).with_for_update())
    opened = open_item(connection, account, item)
    if opened.role != role:
        raise NotAssignedError
    return opened


def _save(connection: Connection, account: int, opened: OpenItem, save: Save, at: datetime) -> MyReading:
    before = my_reading(connection, account, opened.version)
    if save.version != opened.number:
        raise ConflictError(before, f"version {opened.number} of the item came meanwhile")
    said = opened.form.read(opened.body, save.payload)
    payload = said.model_dump(mode="json", exclude_defaults=True)
    comment = _words(save.comment, "comment")
    known = before or MyReading({}, "", 0.0, 0, None)
    own = known.last if known.last is not None and known.last.page == save.page else None
    if before is not None and (before.payload, before.comment) == (payload, comment):
        sent = save.revision == before.revision - 1 or (own is not None and save.number == own.number)
        if before.sealed is not None or sent:
            return before  # this save was stored before
    _refuse_conflict(before, known, own, save)
    former = None if before is None else opened.form.read(opened.body, before.payload)
    unready = opened.form.unready(opened.body, former, said)
    if unready:
        raise IncompleteError(unready)
    # Until a save is acknowledged, the page sends its seconds again: those counted before are subtracted.
    counted = own.seconds if own is not None and save.revision < known.revision else 0.0
    worked = max(counted, min(save.seconds, _MOST_PAUSE_S))  # NaN: none
    last = LastSave(save.page, save.number, worked) if save.page else None
    revision, seconds = known.revision + 1, known.seconds + worked - counted
    values = {"payload": payload, "comment": comment, "seconds": seconds, "saved": at.isoformat(), "revision": revision}
    values["by_page"] = None if last is None else asdict(last)
    if before is None:
        connection.execute(insert(readings).values(version=opened.version, account=account, **values))
    else:
        where = (readings.c.version == opened.version) & (readings.c.account == account)
        connection.execute(update(readings).where(where).values(**values))
    detail: dict[str, JsonValue] = {"study": opened.study, "version": opened.number, "revision": revision}
    action = "submit order" if opened.form.submits_order(former, said) else "save draft"
    record(connection, at, account, action, f"item {opened.id}", detail)
    return MyReading(payload, comment, seconds, revision, None, last)


def _refuse_conflict(before: MyReading | None, known: MyReading, own: LastSave | None, save: Save) -> None:
    """Raises `ConflictError` for a save that does not start from the reading as it is `known`; `own` is the last save of
    the same page."""
    if known.sealed is not None:
        raise ConflictError(before, "the reading is sealed")
    if own is not None and save.number <= own.number:
        raise ConflictError(before, "a later save of the same page came first")
    if save.revision != known.revision and (own is None or save.revision > known.revision):
        raise ConflictError(before, "another window has saved since")


def _words(text: str, what: str) -> str:
    """A person's text as it is stored. Raises `InputError` for one that is too long."""
    kept = kept_text(text).strip()
    if len(kept) > _MOST_COMMENT:
        raise InputError(what, found=f"{len(kept)} characters", expected=f"at most {_MOST_COMMENT}")
    return kept


def _settle_if_same(connection: Connection, account: int, opened: OpenItem, at: datetime) -> None:
    """Writes the consensus if all readers have sealed and agree."""
    all_readings = others_readings(connection, account, opened.version)
    known = connection.execute(select(consensus.c.version).where(consensus.c.version == opened.version)).scalar()
    if not all_readings or known is not None:  # a later reader does not change the consensus
        return
    all_readings.sort(key=lambda reading: reading.account)
    payloads = [opened.form.read(opened.body, reading.payload) for reading in all_readings]
    settled = opened.form.settle(opened.body, payloads)
    if settled is not None:
        _settle(connection, opened, settled, None, "", at)


# -- settling differences


@dataclass(frozen=True)
class Settlement:
    """The consensus on an item, by an adjudicator (`pseudonym`, with a reason) or because its readings agreed."""

    payload: dict[str, JsonValue]
    pseudonym: str | None
    reason: str
    at: str


def settlement(connection: Connection, viewer: int, version: int) -> Settlement | None:
    """The consensus on a version; None where there is none, or the viewer may not see the version's readings."""
    if not others_readings(connection, viewer, version):
        return None
    query = (
        select(consensus, accounts.c.pseudonym)
        .outerjoin(accounts, accounts.c.id == consensus.c.account)
        .where(consensus.c.version == version)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else Settlement(row.payload, row.pseudonym, row.reason, row.at)


def adjudicate(
    connection: Connection,
    account: int,
    item: int,
    version: int,
    payload: dict[str, JsonValue],
    reason: str,
    at: datetime,
) -> None:
    """Settles readings that differ, with a reason. Settling again with the same content changes nothing.

    Raises `NotAssignedError` for people who do not adjudicate the item and before all readers have sealed,
    `ConflictError` where there is a newer version or another consensus, `IncompleteError`, and `InputError`.
    """
    opened = _locked(connection, account, item, "adjudicator")
    if version != opened.number:
        raise ConflictError(None, f"version {opened.number} of the item came meanwhile")
    decided = opened.form.read(opened.body, payload)
    reason = _words(reason, "reason")
    known = settlement(connection, account, opened.version)
    if known is not None:
        if (known.payload, known.reason) == (decided.model_dump(mode="json", exclude_defaults=True), reason):
            return
        raise ConflictError(None, "the item is settled")
    missing = opened.form.unsettled(opened.body, decided)
    missing += [] if reason else ["adjudication.reason"]
    if missing:
        raise IncompleteError(missing)
    _settle(connection, opened, decided, account, reason, at)


def _settle(
    connection: Connection, opened: OpenItem, payload: Any, account: int | None, reason: str, at: datetime
) -> None:
    """Writes the consensus and, if it changes the item, a new version."""
    values = {"payload": payload.model_dump(mode="json", exclude_defaults=True), "reason": reason}
    connection.execute(insert(consensus).values(version=opened.version, account=account, at=at.isoformat(), **values))
    body = opened.form.new_body(opened.body, payload)
    detail: dict[str, JsonValue] = {"study": opened.study, "version": opened.number}
    if body is not None:
        detail["new_version"] = _new_version(connection, opened.id, body, account, SETTLED, at)
    record(connection, at, account, "settle" if account is not None else "agree", f"item {opened.id}", detail)


def _new_version(
    connection: Connection, item: int, body: dict[str, JsonValue], author: int | None, why: str, at: datetime
) -> int:
    query = select(func.max(versions.c.number)).where(versions.c.item == item)
    number = int(connection.execute(query).scalar_one()) + 1
    new = {"item": item, "number": number, "body": body, "author": author, "created": at.isoformat(), "why": why}
    connection.execute(insert(versions).values(**new))
    return number


def edit_item(
    connection: Connection, account: int, item: int, body: dict[str, JsonValue], why: str, at: datetime
) -> int:
    """Adds a new version of an item by an organiser, and returns its number. Everyone reads it again; readings of the
    former version stay. Raises `InputError` for an invalid body or no reason, and `NotAssignedError` for an unknown
    item."""
    query = (
        select(studies.c.form, studies.c.name)
        .join(study_items, study_items.c.study == studies.c.id)
        .where(study_items.c.id == item)
        .with_for_update(of=study_items)
    )
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise NotAssignedError
    read = form_named(row["form"]).read_body(body, None, "the new version")
    why = _words(why, "reason")
    if not why or why == SETTLED:
        raise InputError("the new version", found="no reason", expected="why the item is changed")
    dumped = read.model_dump(mode="json", exclude_defaults=True)
    number = _new_version(connection, item, dumped, account, why, at)
    record(connection, at, account, "edit", f"item {item}", {"study": row["name"], "version": number})
    return number
