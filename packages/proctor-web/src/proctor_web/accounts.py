"""Accounts: passwords, invitations and roles, for the pages and for the shell.

Passwords are stored as argon2's text, the secrets of invitations as their hash. Every change of an account is recorded
in the trail and ends the account's sessions.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, Engine, RowMapping, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from proctor.core import InputError, Table, columns, one_of
from proctor_web.schema import (
    ROLES,
    Role,
    accounts,
    invitations,
    logins,
    new_token,
    one_connection,
    sessions,
    token_hash,
    trail,
    utc_text,
)
from proctor_web.stores import SiteStore
from proctor_web.strings import languages
from proctor_web.trail import first_fault, head, record, shown_entries

INVITATION = timedelta(days=7)
LEAST_PASSWORD, MOST_PASSWORD = 12, 200

_NAME = re.compile(r"\w[\w.@+-]{0,79}")
_LOCAL = "http://localhost:8000"
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_HASHER = PasswordHasher()
_HASHING = threading.BoundedSemaphore(2)  # each hash takes 64 MB: many logins at once wait


@dataclass(frozen=True)
class Changed:
    """The account that makes a change (None for the shell), and the time."""

    by: int | None
    at: datetime


def account_name(text: str) -> str:
    """The name as it is stored: neither case nor what Unicode's compatibility (NFKC) takes for the same makes a
    difference, so that no two names look alike by it. Raises `InputError` for an invalid name.

    >>> account_name(" Anna.Meier "), account_name("\uff21nna"), account_name("\ufb01ona")
    ('anna.meier', 'anna', 'fiona')
    """
    name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.strip()).casefold())
    if not _NAME.fullmatch(name):
        raise InputError("name", found=repr(text[:80]), expected="letters, digits and . @ + - _, at most 80")
    return name


def add_account(
    connection: Connection, name: str, role: str, language: str, changed: Changed, *, own: bool = False
) -> RowMapping:
    """Adds an account, which nobody can use before its invitation is accepted. It is the account's `own` change where
    somebody registers."""
    kept = account_name(name)
    taken = InputError("name", found=f"{kept!r}, which there is already", expected="a new name")
    if account_row(connection, name) is not None:
        raise taken
    values = {
        "name": kept,
        "pseudonym": _pseudonym(connection),
        "role": _role(role),
        "password": "",
        "language": _language(language),
        "created": utc_text(changed.at),
    }
    try:
        row = connection.execute(insert(accounts).values(values).returning(*accounts.c)).mappings().one()
    except IntegrityError as error:  # added by somebody else at the same moment
        raise taken from error
    by = int(row["id"]) if own else changed.by
    record(connection, changed.at, by, "add account", _subject(row), {"role": role})
    return row


def register_account(
    connection: Connection, name: str, role: Role, language: str, password_hash: str, at: datetime
) -> RowMapping:
    """Adds the account of somebody who registers without an invitation, with its password."""
    account = add_account(connection, name, role, language, Changed(None, at), own=True)
    _change(connection, account, Changed(account["id"], at), "set password", password=password_hash)
    return account


def find_account(connection: Connection, name: str) -> RowMapping:
    """The account with this name; raises `InputError` where there is none."""
    row = account_row(connection, name)
    if row is None:
        known = connection.execute(select(accounts.c.name).order_by(accounts.c.name)).scalars()
        raise InputError("name", found=f"no account {name[:80]!r}", expected=one_of(list(known)) or "an account")
    return row


def account_row(connection: Connection, name: str) -> RowMapping | None:
    """The account with this name; None where there is none. Raises `InputError` for an invalid name."""
    query = select(accounts).where(accounts.c.name == account_name(name))
    return connection.execute(query).mappings().first()


def account_names(connection: Connection, ids: Sequence[int]) -> list[str]:
    """The names of these accounts, in the order of `ids`."""
    query = select(accounts.c.id, accounts.c.name).where(accounts.c.id.in_(ids))
    known = {row.id: row.name for row in connection.execute(query)}
    return [known[one] for one in ids if one in known]


def invite(connection: Connection, account: RowMapping, changed: Changed) -> str:
    """A secret that sets the account's password once, within a week; earlier invitations end."""
    now = utc_text(changed.at)
    unused = (invitations.c.account == account["id"], invitations.c.used.is_(None))
    connection.execute(update(invitations).where(*unused).values(used=now))
    token = new_token()
    row = {"account": account["id"], "expires": utc_text(changed.at + INVITATION)}
    connection.execute(insert(invitations).values(token_hash=token_hash(token), **row))
    record(connection, changed.at, changed.by, "invite", _subject(account))
    return token


def invited(connection: Connection, token: str, at: datetime) -> RowMapping | None:
    """The account of an invitation; None where the invitation was used, has expired or never existed, or the account is
    disabled."""
    holds = (
        invitations.c.token_hash == token_hash(token),
        invitations.c.used.is_(None),
        invitations.c.expires > utc_text(at),
        accounts.c.disabled.is_(None),
    )
    query = select(accounts).join(invitations, invitations.c.account == accounts.c.id).where(*holds)
    return connection.execute(query).mappings().first()


def take_up(connection: Connection, token: str, password_hash: str, at: datetime) -> RowMapping | None:
    """Accepts an invitation: sets the account's password. Of two requests at the same time, one succeeds."""
    account = invited(connection, token, at)
    if account is None:
        return None
    mine = (invitations.c.token_hash == token_hash(token), invitations.c.used.is_(None))
    used = connection.execute(
        update(invitations).where(*mine).values(used=utc_text(at)).returning(invitations.c.account)
    )
    if used.first() is None:
        return None
    _change(connection, account, Changed(account["id"], at), "set password", password=password_hash)
    return account


def set_role(connection: Connection, account: RowMapping, role: str, changed: Changed) -> None:
    """Gives the account another role, from the next login on."""
    detail = {"from": account["role"], "to": role}
    _change(connection, account, changed, "", role=_role(role))
    record(connection, changed.at, changed.by, "set role", _subject(account), detail)  # last: others wait for the trail


def disable(connection: Connection, account: RowMapping, changed: Changed, *, undo: bool = False) -> None:
    """Lets nobody log in any more, or, with `undo`, again. What the account submitted stays."""
    disabled = None if undo else utc_text(changed.at)
    _change(connection, account, changed, "enable" if undo else "disable", disabled=disabled)


def erase(connection: Connection, account: RowMapping, changed: Changed) -> None:
    """Erases the person of a disabled account for good: the name, the password, invitations, sessions, and logins with
    their addresses. The pseudonym stays, in the name's stead too, and so do the readings and the trail; nobody can log
    in by it. Raises `InputError` for an account that is not disabled, as nothing undoes this."""
    if account["disabled"] is None:
        expected = "a disabled account (disable it first: erasing can't be undone)"
        raise InputError("name", found=f"{account['name']!r}, who may log in", expected=expected)
    for table in (invitations, logins):
        connection.execute(delete(table).where(table.c.account == account["id"]))
    _change(connection, account, changed, "erase", name=account["pseudonym"], password="")


def password_fault(name: str, password: str) -> str:
    """Why a password is refused, as a key of the pages' texts; "" for an acceptable one.

    >>> password_fault("anna", "short"), password_fault("anna", "annaannaanna"), password_fault("anna", "brown kettle 7")
    ('password.short', 'password.name', '')
    """
    if len(password) < LEAST_PASSWORD:
        return "password.short"
    if len(password) > MOST_PASSWORD:
        return "password.long"
    if name.casefold() in password.casefold():
        return "password.name"
    return "password.repeats" if len(set(password)) < 5 else ""


def hashed(password: str) -> str:
    """Argon2id's hash of a password, with its salt and settings."""
    with _HASHING:
        return _HASHER.hash(password)


def is_password(password_hash: str, password: str) -> bool:
    """Whether the password is right. It takes the same time where there is no hash (`""`)."""
    with _HASHING:
        try:
            return _HASHER.verify(password_hash or _dummy_hash(), password[: MOST_PASSWORD + 1]) and bool(password_hash)
        except (VerificationError, InvalidHashError):
            return False


@cache
def _dummy_hash() -> str:
    return _HASHER.hash(new_token())


def _change(connection: Connection, account: RowMapping, changed: Changed, action: str, **values: str | None) -> None:
    connection.execute(update(accounts).where(accounts.c.id == account["id"]).values(**values))
    connection.execute(delete(sessions).where(sessions.c.account == account["id"]))
    if action:
        record(connection, changed.at, changed.by, action, _subject(account))


def _subject(account: RowMapping) -> str:
    return f"account {account['pseudonym']}"


def _role(role: str) -> Role:
    found = next((known for known in ROLES if known == role), None)
    if found is None:
        raise InputError("role", found=repr(role[:40]), expected=one_of(list(ROLES)))
    return found


def _language(language: str) -> str:
    if language not in languages():
        raise InputError("language", found=repr(language[:40]), expected=one_of(languages()))
    return language


def _pseudonym(connection: Connection) -> str:
    """A random pseudonym, which says nothing about the person or the order of accounts."""
    taken = set(connection.execute(select(accounts.c.pseudonym)).scalars())
    while True:
        made = f"R-{''.join(secrets.choice(_LETTERS) for _ in range(6))}"
        if made not in taken:
            return made


# -- people, for the shell and for organisers


@dataclass(frozen=True)
class AccountsLocation:
    """The accounts of a site in its `store`, which `opened` opens, and creates if its argument is true. `address` is the
    site's public URL, as its file of `settings` states."""

    store: SiteStore
    opened: Callable[[bool], Engine]
    address: str
    settings: str
    newcomer: Role = "reviewer"


@dataclass(frozen=True)
class InvitationLink:
    """A link that sets an account's password. It is not `reachable` where the settings have no address: its host is a
    guess."""

    link: str
    reachable: bool


def add_person(location: AccountsLocation, name: str, role: str, language: str) -> InvitationLink:
    """Adds an account and invites its owner. Raises `InputError` for an invalid name, role or language."""
    with one_connection(location.opened(True)) as connection:
        return _link(location, invite(connection, add_account(connection, name, role, language, _now()), _now()))


def invite_person(location: AccountsLocation, name: str) -> InvitationLink:
    """A new link; the former one ends. The present password is valid until the link is used."""
    with one_connection(location.opened(False)) as connection:
        return _link(location, invite(connection, find_account(connection, name), _now()))


def change_role(location: AccountsLocation, name: str, role: str) -> None:
    """Gives a person another role; they have to log in again."""
    with one_connection(location.opened(False)) as connection:
        set_role(connection, find_account(connection, name), role, _now())


def disable_person(location: AccountsLocation, name: str, *, undo: bool = False) -> None:
    """Disables an account at once, or, with `undo`, enables it again. What the person submitted stays."""
    with one_connection(location.opened(False)) as connection:
        disable(connection, find_account(connection, name), _now(), undo=undo)


def erase_person(location: AccountsLocation, name: str) -> str:
    """Erases the person of a disabled account for good, and returns the pseudonym, which stays with what the person
    submitted (see `erase`)."""
    with one_connection(location.opened(False)) as connection:
        account = find_account(connection, name)
        erase(connection, account, _now())
        return str(account["pseudonym"])


@dataclass(frozen=True)
class ListedAccount:
    """An account as lists show it. `state` is `active`, `invited` (until the day `when`), `ended` (an invitation that
    expired unused) or `disabled` (since `when`)."""

    id: int
    name: str
    role: str
    pseudonym: str
    language: str
    state: str
    when: str
    last_login: str


def people_of(connection: Connection, at: datetime) -> list[ListedAccount]:
    """All accounts, by name."""
    logged_in = select(logins.c.account, func.max(logins.c.at)).where(logins.c.ok == 1).group_by(logins.c.account)
    last: dict[int, str] = dict(iter(connection.execute(logged_in)))
    valid = (invitations.c.used.is_(None), invitations.c.expires > utc_text(at))
    invited_until = select(invitations.c.account, invitations.c.expires).where(*valid)
    until: dict[int, str] = dict(iter(connection.execute(invited_until)))
    return [
        ListedAccount(
            **{name: row[name] for name in ("id", "name", "role", "pseudonym", "language")},
            state=_state(row, until),
            when=(row["disabled"] or until.get(row["id"], ""))[:10],
            last_login=last.get(row["id"], "")[:10],
        )
        for row in connection.execute(select(accounts).order_by(accounts.c.name)).mappings()
    ]


def people_names(connection: Connection) -> dict[str, str]:
    """The names of all accounts by pseudonym, for organisers."""
    return {row.pseudonym: row.name for row in connection.execute(select(accounts.c.pseudonym, accounts.c.name))}


def people_table(location: AccountsLocation) -> Table:
    """All accounts with their state."""
    with one_connection(location.opened(False), reading=True) as connection:
        rows = [
            (
                listed_account.name,
                listed_account.role,
                listed_account.pseudonym,
                listed_account.language,
                _state_text(listed_account),
                listed_account.last_login,
            )
            for listed_account in people_of(connection, datetime.now(UTC))
        ]
    return Table("", columns("name", "role", "pseudonym", "language", "state", "last login"), tuple(rows))


@dataclass(frozen=True)
class TrailReport:
    """The entries of the trail, the id of the first one that was changed or does not follow the previous one (None for
    an intact trail), and the newest entry's hash."""

    entries: Table
    fault: int | None
    head: str


def read_trail(location: AccountsLocation) -> TrailReport:
    """Who changed what, with each entry checked."""
    query = select(trail).order_by(trail.c.id)
    with one_connection(location.opened(False), reading=True) as connection:
        rows = [
            (
                entry.id,
                entry.at,
                entry.by,
                entry.action,
                entry.subject,
                json.dumps(entry.detail, ensure_ascii=False) if entry.detail else "",
            )
            for entry in shown_entries(connection, connection.execute(query).mappings())
        ]
        entries = Table("", columns(">entry", "at", "by", "action", "subject", "detail"), tuple(rows))
        return TrailReport(entries, first_fault(connection), head(connection))


def _link(location: AccountsLocation, token: str) -> InvitationLink:
    return InvitationLink(f"{location.address or _LOCAL}/invitation/{token}", reachable=bool(location.address))


def _state(row: RowMapping, until: Mapping[int, str]) -> str:
    if row["disabled"]:
        return "disabled"
    if row["id"] in until:
        return "invited"
    return "active" if row["password"] else "ended"


def _state_text(listed_account: ListedAccount) -> str:
    words = {"active": "active", "ended": "invitation ended"}
    return (
        words.get(listed_account.state)
        or f"{listed_account.state} {'since' if listed_account.state == 'disabled' else 'until'} {listed_account.when}"
    )


def _now() -> Changed:
    return Changed(None, datetime.now(UTC))
