"""The audit trail of a site: who changed what, and when. It is append-only; each entry holds the previous one's hash.

An entry names an action and its subject, and holds no reading: organisers see the trail, and may not see readings
before they are sealed. People stand in it by pseudonym; their names stand in the accounts alone, where they are looked up
for organisers. So a name can be erased there, and the chain stays unbroken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, RowMapping, func, insert, select, text

from proctor.core import content_hash
from proctor_web.schema import accounts, trail, utc_text

START = "0" * 64
"""The previous hash of the first entry."""


def record(
    connection: Connection,
    at: datetime,
    account: int | None,
    action: str,
    subject: str,
    detail: Mapping[str, JsonValue] | None = None,
) -> None:
    """Adds an entry in the transaction that makes the change, so that both are stored or neither.

    `account` is None for changes from the shell, `action` is a word such as `seal`, and `subject` is what was changed,
    such as `item 12`; neither it nor `detail` names a person (see `person_subject`). Concurrent processes add entries one at a time.
    """
    if connection.dialect.name == "postgresql":  # SQLite has one writer anyway
        connection.execute(text("lock table trail in share row exclusive mode"))
    entry = {
        "at": utc_text(at),
        "person": None if account is None else pseudonym_of(connection, account),
        "action": action,
        "subject": subject,
        "detail": dict(detail or {}),
        "previous": head(connection),
    }
    connection.execute(insert(trail).values(**entry, hash=_hash(entry)))


def pseudonym_of(connection: Connection, account: int) -> str:
    """The pseudonym by which an account stands in the trail and in exports."""
    return str(connection.execute(select(accounts.c.pseudonym).where(accounts.c.id == account)).scalar_one())


def person_subject(connection: Connection, account: int) -> str:
    """The subject of an entry about an account."""
    return f"account {pseudonym_of(connection, account)}"


@dataclass(frozen=True)
class ShownEntry:
    """An entry as organisers see it. People have their names: `by` alone, elsewhere after the pseudonym. The pseudonym
    stands alone where there is no name any more."""

    id: int
    at: str
    by: str
    action: str
    subject: str
    detail: dict[str, Any]


def shown_entries(connection: Connection, rows: Iterable[RowMapping]) -> list[ShownEntry]:
    """Rows of the trail with the names of people."""
    query = select(accounts.c.pseudonym, accounts.c.name).where(accounts.c.name != "")
    names: dict[str, str] = dict(iter(connection.execute(query)))

    def named(text: Any) -> Any:
        """A text with the name after each pseudonym; anything else as it is."""
        return _PSEUDONYM.sub(lambda found: _with_name(found[0], names), text) if isinstance(text, str) else text

    return [
        ShownEntry(
            id=row["id"],
            at=row["at"],
            by=names.get(row["person"], row["person"]) if row["person"] else "",
            action=row["action"],
            subject=named(row["subject"]),
            detail={key: named(value) for key, value in row["detail"].items()},
        )
        for row in rows
    ]


_PSEUDONYM = re.compile(r"\bR-[A-Z0-9]{6}\b")


def _with_name(pseudonym: str, names: Mapping[str, str]) -> str:
    """
    >>> _with_name("R-ABCDEF", {"R-ABCDEF": "anna"}), _with_name("R-ABCDEF", {})
    ('R-ABCDEF (anna)', 'R-ABCDEF')
    """
    name = names.get(pseudonym, pseudonym)
    return pseudonym if name == pseudonym else f"{pseudonym} ({name})"


def head(connection: Connection) -> str:
    """The newest entry's hash. A copy kept elsewhere proves later that no entry was removed from the end."""
    return connection.execute(select(trail.c.hash).order_by(trail.c.id.desc()).limit(1)).scalar() or START


def newest_change(connection: Connection, actions: Collection[str]) -> str:
    """The time of the newest entry with one of these actions; "" where there is none."""
    return connection.execute(select(func.max(trail.c.at)).where(trail.c.action.in_(actions))).scalar() or ""


def first_fault(connection: Connection) -> int | None:
    """The id of the first entry that was changed or does not follow the previous one; None for an intact trail."""
    previous = START
    entries = select(trail).order_by(trail.c.id).execution_options(yield_per=1000)  # it may be long
    for row in connection.execute(entries).mappings():
        if row["previous"] != previous or row["hash"] != _hash(row):
            return int(row["id"])
        previous = row["hash"]
    return None


def _hash(entry: Mapping[str, JsonValue] | RowMapping) -> str:
    return content_hash([entry[name] for name in ("at", "person", "action", "subject", "detail", "previous")])
