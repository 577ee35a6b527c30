"""The accounts of a site and its trail, for the shell: each call is one transaction, and what it changes stands in the
trail without an account."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, RowMapping, func, select

from proctor.core import Table, columns
from proctor.runs import reading
from proctor.web.accounts import Changed, add_account, all_accounts, disable, enable, find_account, invite, set_role
from proctor.web.review import open_store
from proctor.web.schema import Role, accounts, invitations, logins, trail, utc_text
from proctor.web.settings import REVIEW_FILE, read_review
from proctor.web.trail import first_fault, head

_LOCAL = "http://localhost:8000"


@dataclass(frozen=True)
class AccountsPlace:
    """Where a site's accounts are: `opened` gives their database, `address` is where browsers find the site, as its
    file of `settings` says."""

    opened: Callable[[], Engine]
    address: str
    settings: str
    newcomer: Role = "reviewer"


def review_accounts(folder: Path, store: str | None = None) -> AccountsPlace:
    """The accounts of a review. Raises `InputError` for a folder that holds none: no store is made there."""
    return AccountsPlace(lambda: open_store(folder, store), read_review(folder).address, REVIEW_FILE)


@dataclass(frozen=True)
class InvitationLink:
    """A link that sets an account's password. Where the settings have no address it is not `reachable`: its beginning
    is a guess."""

    link: str
    reachable: bool


def add_person(place: AccountsPlace, name: str, role: str, language: str) -> InvitationLink:
    """Makes an account at a place. Raises `InputError` for a name, role or language that is none."""
    with _changing(place) as connection:
        return _link(place, invite(connection, add_account(connection, name, role, language, _now()), _now()))


def invite_person(place: AccountsPlace, name: str) -> InvitationLink:
    """A new link; the former one ends. The password that there is holds until the link is used."""
    with _changing(place) as connection:
        return _link(place, invite(connection, find_account(connection, name), _now()))


def change_role(place: AccountsPlace, name: str, role: str) -> None:
    """Gives another role; who is logged in has to log in again."""
    with _changing(place) as connection:
        set_role(connection, find_account(connection, name), role, _now())


def disable_person(place: AccountsPlace, name: str, *, undo: bool = False) -> None:
    """Shuts somebody out at once; what they said stays."""
    with _changing(place) as connection:
        (enable if undo else disable)(connection, find_account(connection, name), _now())


@dataclass(frozen=True)
class ListedAccount:
    """An account as lists show it. `state` is one of `active`, `invited`, `ended` (an invitation that nobody took up)
    and `disabled`, the latter since, an invitation until the day `when`."""

    id: int
    name: str
    role: str
    pseudonym: str
    language: str
    state: str
    when: str
    last_login: str


def people_of(connection: Connection, at: datetime) -> list[ListedAccount]:
    """Everybody with an account, by name."""
    logged_in = select(logins.c.name, func.max(logins.c.at)).where(logins.c.ok == 1).group_by(logins.c.name)
    last: dict[str, str] = dict(iter(connection.execute(logged_in)))
    holds = (invitations.c.used.is_(None), invitations.c.expires > utc_text(at))
    open_now = select(invitations.c.account, invitations.c.expires).where(*holds)
    until: dict[int, str] = dict(iter(connection.execute(open_now)))
    return [
        ListedAccount(
            **{name: row[name] for name in ("id", "name", "role", "pseudonym", "language")},
            state=_state(row, until),
            when=(row["disabled"] or until.get(row["id"], ""))[:10],
            last_login=last.get(row["name"], "")[:10],
        )
        for row in all_accounts(connection)
    ]


def people_table(place: AccountsPlace) -> Table:
    """All accounts with their state."""
    with _reading(place) as connection:
        rows = [
            (one.name, one.role, one.pseudonym, one.language, _told(one), one.last_login)
            for one in people_of(connection, datetime.now(UTC))
        ]
    return Table("", columns("name", "role", "pseudonym", "language", "state", "last login"), tuple(rows))


@dataclass(frozen=True)
class TrailReport:
    """The entries of the trail, the id of the first one that was changed or does not follow the one before (None: all
    are as recorded), and the newest entry's hash."""

    entries: Table
    fault: int | None
    head: str


def read_trail(place: AccountsPlace) -> TrailReport:
    """Who changed what at a place, checked entry by entry."""
    with _reading(place) as connection:
        who = (
            select(trail, accounts.c.name)
            .join(accounts, accounts.c.id == trail.c.account, isouter=True)
            .order_by(trail.c.id)
        )
        rows = [
            (
                row["id"],
                row["at"],
                row["name"] or "",
                row["action"],
                row["subject"],
                json.dumps(row["detail"], ensure_ascii=False) if row["detail"] else "",
            )
            for row in connection.execute(who).mappings()
        ]
        entries = Table("", columns(">entry", "at", "by", "action", "subject", "detail"), tuple(rows))
        return TrailReport(entries, first_fault(connection), head(connection))


@contextmanager
def _changing(place: AccountsPlace) -> Iterator[Connection]:
    engine = place.opened()
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def _reading(place: AccountsPlace) -> Iterator[Connection]:
    engine = place.opened()
    try:
        with reading(engine) as connection:
            yield connection
    finally:
        engine.dispose()


def _link(place: AccountsPlace, token: str) -> InvitationLink:
    return InvitationLink(f"{place.address or _LOCAL}/invitation/{token}", reachable=bool(place.address))


def _state(row: RowMapping, until: Mapping[int, str]) -> str:
    if row["disabled"]:
        return "disabled"
    if row["id"] in until:
        return "invited"
    return "active" if row["password"] else "ended"


def _told(one: ListedAccount) -> str:
    words = {"active": "active", "ended": "invitation ended"}
    return words.get(one.state) or f"{one.state} {'since' if one.state == 'disabled' else 'until'} {one.when}"


def _now() -> Changed:
    return Changed(None, datetime.now(UTC))
