"""Logging in, and how often one may try.

An attempt is kept as a failure before the password is looked at, so that many at once are counted like many in a row,
and becomes a success afterwards. What is refused for its number is not counted: the wait ends by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, IPv6Network, ip_address

from sqlalchemy import Connection, bindparam, delete, exists, func, insert, or_, select, text, update

from proctor.core import InputError
from proctor.web.accounts import account_name, right
from proctor.web.schema import accounts, logins, utc_text
from proctor.web.sessions import start_session
from proctor.web.site import Site

WINDOW = timedelta(minutes=15)
BY_NAME, BY_ADDRESS = 10, 60
_KEPT = timedelta(days=90)


_HERE = logins.c.address == bindparam("address")
_OF_NAME = logins.c.name == bindparam("name")
_FAILED = select(func.count()).where(logins.c.at > bindparam("since"), logins.c.ok == 0)
_OWNERS_PLACE = exists().where(_OF_NAME, _HERE, logins.c.ok == 1).correlate(None)
_FAILURES = select(
    _FAILED.where(_OF_NAME, or_(_HERE, ~_OWNERS_PLACE)).scalar_subquery(), _FAILED.where(_HERE).scalar_subquery()
)


@dataclass(frozen=True)
class Attempt:
    """How a login ended: `token` is the new session's secret; without one, `waiting` says that there were too many
    attempts, else name or password is wrong: which, is not said."""

    token: str = ""
    waiting: bool = False


def log_in(site: Site, name: str, password: str, address: str) -> Attempt:
    """Tries a name and a password from an address. The same is done whether the name is known or not."""
    try:
        kept = account_name(name)
    except InputError:
        kept = ""
    with site.writing() as connection:
        number = begin_attempt(connection, kept, address, site.now())
        query = select(accounts.c.id, accounts.c.password).where(accounts.c.name == kept, accounts.c.disabled.is_(None))
        found = connection.execute(query).first()
    if number is None:
        return Attempt(waiting=True)
    if not right("" if found is None else found.password, password) or found is None:
        return Attempt()
    with site.writing() as connection:
        now = site.now()
        still = select(accounts.c.id).where(accounts.c.id == found.id, accounts.c.password == found.password)
        if connection.execute(still.where(accounts.c.disabled.is_(None))).first() is None:  # changed meanwhile
            return Attempt()
        connection.execute(update(logins).where(logins.c.id == number).values(ok=1))
        connection.execute(delete(logins).where(logins.c.at < utc_text(now - _KEPT)))
        return Attempt(start_session(connection, found.id, now))


def begin_attempt(connection: Connection, name: str, address: str, at: datetime) -> int | None:
    """Notes an attempt and returns its number; None where there were too many within the last 15 minutes: 10 failures
    for the name, or 60 from the address. From an address where the name's owner has logged in before, only failures
    from there count for the name, so that strangers can't lock anybody out."""
    if connection.dialect.name == "postgresql":  # attempts at once are counted one after the other, as in SQLite
        connection.execute(text("lock table logins in share row exclusive mode"))
    place = network(address)
    given = {"name": name, "address": place, "since": utc_text(at - WINDOW)}
    of_name, of_address = connection.execute(_FAILURES, given).one()
    if of_name >= BY_NAME or of_address >= BY_ADDRESS:
        return None
    row = {"name": name, "address": place, "at": utc_text(at), "ok": 0}
    return int(connection.execute(insert(logins).values(row).returning(logins.c.id)).scalar_one())


def network(address: str) -> str:
    """What counts as one address: of IPv6 the /64 network, which one connection has whole.

    >>> network("192.0.2.7"), network("2001:db8::7"), network("unix")
    ('192.0.2.7', '2001:db8::/64', 'unix')
    """
    try:
        known = ip_address(address)
    except ValueError:
        return address[:80]
    if isinstance(known, IPv6Address) and known.ipv4_mapped is None:
        return str(IPv6Network((known, 64), strict=False))
    return str(getattr(known, "ipv4_mapped", None) or known)
