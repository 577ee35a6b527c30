"""Accounts: who may come in, as what. Passwords are kept as argon2's text, links of invitation as their hash.

Everything that changes an account is in the trail, and ends the account's sessions.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError

from proctor.core import InputError, one_of
from proctor.web.schema import ROLES, Role, accounts, invitations, new_token, utc_text
from proctor.web.sessions import end_sessions
from proctor.web.strings import languages
from proctor.web.trail import record

INVITATION = timedelta(days=7)
LEAST_PASSWORD, MOST_PASSWORD = 12, 200

_NAME = re.compile(r"\w[\w.@+-]{0,79}")
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_HASHER = PasswordHasher()
_HASHING = threading.BoundedSemaphore(2)  # each takes 64 MB: a flood of logins waits, and the memory holds


@dataclass(frozen=True)
class Changed:
    """Who changes an account, and when: `by` is None for the shell."""

    by: int | None
    at: datetime


def account_name(text: str) -> str:
    """The name as it is kept: names that differ in case or in how a letter is composed are one.

    Raises `InputError` for what is no name.

    >>> account_name(" Anna.Meier ")
    'anna.meier'
    """
    name = unicodedata.normalize("NFC", text.strip().casefold())
    if not _NAME.fullmatch(name):
        raise InputError("name", found=repr(text[:80]), expected="letters, digits and . @ + - _, at most 80")
    return name


def add_account(connection: Connection, name: str, role: str, language: str, changed: Changed) -> RowMapping:
    """A new account, in which nobody can log in before an invitation was taken up."""
    kept = account_name(name)
    taken = InputError("name", found=f"{kept!r}, which there is already", expected="a new name")
    if connection.execute(select(accounts.c.id).where(accounts.c.name == kept)).first():
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
    except IntegrityError as error:  # somebody else added it at the same moment
        raise taken from error
    record(connection, changed.at, changed.by, "add account", _subject(row), {"role": role})
    return row


def register_account(
    connection: Connection, name: str, role: Role, language: str, password_hash: str, at: datetime
) -> RowMapping:
    """A new account of somebody who came without an invitation, with its password."""
    account = add_account(connection, name, role, language, Changed(None, at))
    _change(connection, account, Changed(account["id"], at), "set password", password=password_hash)
    return account


def find_account(connection: Connection, name: str) -> RowMapping:
    """The account of a name; raises `InputError` where there is none."""
    row = connection.execute(select(accounts).where(accounts.c.name == account_name(name))).mappings().first()
    if row is None:
        known = connection.execute(select(accounts.c.name).order_by(accounts.c.name)).scalars()
        raise InputError("name", found=f"no account {name[:80]!r}", expected=one_of(list(known)) or "an account")
    return row


def account_names(connection: Connection, ids: Sequence[int]) -> list[str]:
    """The names of some accounts, in the order of their ids."""
    query = select(accounts.c.id, accounts.c.name).where(accounts.c.id.in_(ids))
    known = {row.id: row.name for row in connection.execute(query)}
    return [known[one] for one in ids if one in known]


def all_accounts(connection: Connection) -> list[RowMapping]:
    """All accounts, by name."""
    return list(connection.execute(select(accounts).order_by(accounts.c.name)).mappings())


def invite(connection: Connection, account: RowMapping, changed: Changed) -> str:
    """A secret that sets the account's password once, within a week; earlier ones end."""
    now = utc_text(changed.at)
    unused = (invitations.c.account == account["id"], invitations.c.used.is_(None))
    connection.execute(update(invitations).where(*unused).values(used=now))
    token = new_token()
    row = {"account": account["id"], "expires": utc_text(changed.at + INVITATION)}
    connection.execute(insert(invitations).values(token_hash=_hash(token), **row))
    record(connection, changed.at, changed.by, "invite", _subject(account))
    return token


def invited(connection: Connection, token: str, at: datetime) -> RowMapping | None:
    """The account that an invitation is for; None where it was used, has ended or never was, or the account is
    disabled."""
    holds = (
        invitations.c.token_hash == _hash(token),
        invitations.c.used.is_(None),
        invitations.c.expires > utc_text(at),
        accounts.c.disabled.is_(None),
    )
    query = select(accounts).join(invitations, invitations.c.account == accounts.c.id).where(*holds)
    return connection.execute(query).mappings().first()


def take_up(connection: Connection, token: str, password_hash: str, at: datetime) -> RowMapping | None:
    """Sets the password of an invitation's account and uses the invitation up. Of two at once, one gets it."""
    account = invited(connection, token, at)
    if account is None:
        return None
    mine = (invitations.c.token_hash == _hash(token), invitations.c.used.is_(None))
    used = connection.execute(
        update(invitations).where(*mine).values(used=utc_text(at)).returning(invitations.c.account)
    )
    if used.first() is None:
        return None
    _change(connection, account, Changed(account["id"], at), "set password", password=password_hash)
    return account


def set_role(connection: Connection, account: RowMapping, role: str, changed: Changed) -> None:
    """Another role, from the next login on."""
    detail = {"from": account["role"], "to": role}
    record(connection, changed.at, changed.by, "set role", _subject(account), detail)
    _change(connection, account, changed, "", role=_role(role))


def disable(connection: Connection, account: RowMapping, changed: Changed) -> None:
    """Nobody can log in any more; what the account said stays. `enable` takes it back."""
    _change(connection, account, changed, "disable", disabled=utc_text(changed.at))


def enable(connection: Connection, account: RowMapping, changed: Changed) -> None:
    """Takes `disable` back."""
    _change(connection, account, changed, "enable", disabled=None)


def password_fault(name: str, password: str) -> str:
    """Why a password will not do, as a key of the pages' texts; "" where it does.

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
    """Argon2id's text of a password, with its salt and its settings."""
    with _HASHING:
        return _HASHER.hash(password)


def right(password_hash: str, password: str) -> bool:
    """Whether it is the password. It takes as long where there is none (`""`)."""
    with _HASHING:
        try:
            return _HASHER.verify(password_hash or _nobodys(), password[: MOST_PASSWORD + 1]) and bool(password_hash)
        except (VerificationError, InvalidHashError):
            return False


@cache
def _nobodys() -> str:
    return _HASHER.hash(new_token())


def _change(connection: Connection, account: RowMapping, changed: Changed, action: str, **values: str | None) -> None:
    connection.execute(update(accounts).where(accounts.c.id == account["id"]).values(**values))
    end_sessions(connection, account["id"])
    if action:
        record(connection, changed.at, changed.by, action, _subject(account))


def _subject(account: RowMapping) -> str:
    return f"account {account['id']} ({account['name']})"


def _role(role: str) -> Role:
    for known in ROLES:
        if role == known:
            return known
    raise InputError("role", found=repr(role[:40]), expected=one_of(list(ROLES)))


def _language(language: str) -> str:
    if language not in languages():
        raise InputError("language", found=repr(language[:40]), expected=one_of(languages()))
    return language


def _pseudonym(connection: Connection) -> str:
    """One that says nothing about the person, nor about who came before."""
    taken = set(connection.execute(select(accounts.c.pseudonym)).scalars())
    while True:
        made = f"R-{''.join(secrets.choice(_LETTERS) for _ in range(6))}"
        if made not in taken:
            return made


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
