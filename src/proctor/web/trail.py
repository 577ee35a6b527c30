"""The audit trail of a site: who changed what, and when. It is append-only; each entry holds the previous one's hash.

An entry names an action and its subject, and holds no reading: organisers see the trail, and may not see readings
before they are sealed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import Connection, RowMapping, func, insert, select, text

from proctor.core import content_hash
from proctor.web.schema import trail, utc_text

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
    such as `item 12`. Concurrent processes add entries one at a time.
    """
    if connection.dialect.name == "postgresql":  # SQLite has one writer anyway
        connection.execute(text("lock table trail in share row exclusive mode"))
    entry = {
        "at": utc_text(at),
        "account": account,
        "action": action,
        "subject": subject,
        "detail": dict(detail or {}),
        "previous": head(connection),
    }
    connection.execute(insert(trail).values(**entry, hash=_hash(entry)))


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
    return content_hash([entry[name] for name in ("at", "account", "action", "subject", "detail", "previous")])
