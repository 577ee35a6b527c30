"""A review that is open: its database, its key, its clock, and under which names it is served."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Engine

from proctor.core import InputError, input_text
from proctor.runs import open_engine
from proctor.web.schema import new_token, prepare

STORE_FILE = "review.sqlite"
KEY_FILE = "review.key"
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class ReviewSite:
    """What pages are made from. `key` signs cookies; media lie below the folder `media`; `address` is where
    browsers find it, `hosts` are the names under which it answers, `tls` says whether they reach it by https."""

    folder: Path
    title: str
    engine: Engine
    key: str
    media: Path
    address: str = ""
    hosts: tuple[str, ...] = LOCAL_NAMES
    tls: bool = False
    now: Callable[[], datetime] = _utc_now

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, which sees one state and holds up nobody."""
        with self.engine.connect().execution_options(reading=True) as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction for writing: kept on disk when the block ends, undone where it raises. Keep it short: in
        SQLite the others wait."""
        with self.engine.begin() as connection:
            yield connection


def open_store(folder: Path, store: str | None = None) -> Engine:
    """The database of a review: `review.sqlite` in its folder or the store named, with the tables of a review."""
    engine = open_engine(store or folder / STORE_FILE, create=True)
    prepare(engine)
    return engine


def signing_key(folder: Path) -> str:
    """The key in `review.key`, made at the first call, readable by its owner alone. Who deletes the file logs
    everybody out."""
    path = folder / KEY_FILE
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(new_token())
    except FileExistsError:
        pass
    except OSError as error:
        raise InputError(path, found=error.strerror or "an error", expected="a place for the key") from error
    key = input_text(path, "the key that signs cookies").strip()
    if len(key) < 32:
        raise InputError(path, found=f"{len(key)} characters", expected="a key of 32 or more; delete the file for one")
    return key
