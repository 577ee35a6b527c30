"""The trail of a review: who changed what, and when. It only grows, and each entry carries the hash of the one before.

An entry names what was done and to what, and holds no reading: the trail is shown to organisers, who may not see
readings before they are sealed. `payload_hash` ties an entry to a reading without showing it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import Connection, RowMapping, func, insert, select, text

from proctor.web.schema import trail, utc_text

START = "0" * 64
"""What the first entry carries for the one before."""


def record(
    connection: Connection,
    at: datetime,
    account: int | None,
    action: str,
    subject: str,
    detail: Mapping[str, JsonValue] | None = None,
) -> None:
    """Adds an entry, in the transaction that makes the change: both are kept, or neither.

    `account` is None for what the shell did, `action` a word such as `seal`, `subject` what it was done to, such as
    `item 12`. Entries of several processes follow one another: each waits for the one before to be kept.
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
    """The newest entry's hash. Written down elsewhere, it proves later that nothing was cut off the end."""
    return connection.execute(select(trail.c.hash).order_by(trail.c.id.desc()).limit(1)).scalar() or START


def newest_change(connection: Connection, actions: Collection[str]) -> str:
    """When the newest of these actions was recorded; "" where none was."""
    return connection.execute(select(func.max(trail.c.at)).where(trail.c.action.in_(actions))).scalar() or ""


def first_fault(connection: Connection) -> int | None:
    """The id of the first entry that was changed or does not follow the one before; None where all is as recorded."""
    previous = START
    entries = select(trail).order_by(trail.c.id).execution_options(yield_per=1000)  # it may be long
    for row in connection.execute(entries).mappings():
        if row["previous"] != previous or row["hash"] != _hash(row):
            return int(row["id"])
        previous = row["hash"]
    return None


def payload_hash(payload: JsonValue) -> str:
    """The SHA-256 of a JSON value, the same whatever the order of its keys.

    >>> payload_hash({"a": 1, "b": None}) == payload_hash({"b": None, "a": 1})
    True
    """
    known = json.dumps(payload, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(known.encode()).hexdigest()


def _hash(entry: Mapping[str, JsonValue] | RowMapping) -> str:
    return payload_hash([entry[name] for name in ("at", "account", "action", "subject", "detail", "previous")])
