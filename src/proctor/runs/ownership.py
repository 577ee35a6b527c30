"""Who is at work on a run: a second process must not pay for the same answers."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, RowMapping, select, update

from proctor.core import InputError
from proctor.runs import schema

HEARTBEAT_S = 20.0
_SILENT_S = 3 * HEARTBEAT_S  # an owner elsewhere that was not heard of for so long is gone


def claim(connection: Connection, run_ids: Sequence[int], shown: str) -> None:
    """Takes the runs for this process, or raises `InputError` if a living one has them."""
    table = schema.runs
    for row in connection.execute(select(table).where(table.c.id.in_(run_ids))).mappings():
        if at_work(row):
            raise InputError(
                shown,
                f"run of {row['system']} under {row['condition']}",
                found=f"process {row['owner']} at work on it",
                expected="one process a run: wait for it, or stop it",
            )
    mine = {"owner": _me(), "owner_seen": time.time()}
    connection.execute(update(table).where(table.c.id.in_(run_ids)).values(mine))


def at_work(row: RowMapping) -> bool:
    """Whether another living process has this run."""
    return bool(row["owner"]) and not _is_gone(row["owner"], row["owner_seen"])


def release(connection: Connection, run_ids: Sequence[int]) -> None:
    """Gives the runs back, as far as this process still has them."""
    table = schema.runs
    connection.execute(
        update(table).where(table.c.id.in_(run_ids), table.c.owner == _me()).values(owner="", owner_seen=0.0)
    )


def _me() -> str:
    return f"{os.getpid()}/{_started(os.getpid())}@{socket.gethostname()}"


def _is_gone(owner: str, seen: float) -> bool:
    who, _, host = owner.partition("@")
    if owner == _me():
        return True
    if host != socket.gethostname():
        return time.time() - seen > _SILENT_S
    pid, _, started = who.partition("/")
    return not pid.isdigit() or _started(int(pid)) != started


def _started(pid: int) -> str:
    """When a process started (kernel ticks), so that a pid used again is not mistaken for its old owner;
    empty where no such process lives."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        if Path("/proc").is_dir():
            return ""
        return "alive" if _answers(pid) else ""
    return "" if fields[0] == "Z" else fields[19]


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
