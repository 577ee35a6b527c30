"""Opening a store (SQLite in WAL mode by path, or any SQLAlchemy URL; PostgreSQL is tested), its clock, and waiting for
it."""

from __future__ import annotations

import math
import os
import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Float,
    create_engine,
    event,
    literal,
    literal_column,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from proctor import core
from proctor.core import InputError
from proctor.runs import schema

READING_FAULTS = (ValidationError, ValueError, TypeError, LookupError, OverflowError)
"""The errors of decoding a damaged row."""

_USER = re.compile("://[^/]*@")
_DIGITS = re.compile("[0-9]{1,9}")
_SYNCHRONOUS = "FULL"  # commits survive a power cut
_BUSY_S = 60.0  # how long one process waits for another's write

LOCK_WAIT = "lock_wait_s"
"""An execution option of an engine or a connection: how many seconds a transaction waits for a lock."""

_READING_KB, _WRITING_KB = 1024, 65536  # SQLite's page cache: a scan is faster where the processor's own holds it
_CONNECTIONS = 16  # in the pool at most: opening a connection costs more than a query


_AWAY_S = 120.0  # how long a write waits for a database that can't be reached
_REST_FIRST_S, _REST_MAX_S = 0.1, 5.0
_BOOTED = re.compile(r"^btime (\d+)$", re.MULTILINE)
_SAME_S = 2.0  # the kernel tells its time to the second
_JUMP_S = 0.5
_looked = (
    -math.inf,
    0.0,
)  # this process's clock ahead of its steady one at the last look, and the kernel's ahead of it

_MALFORMED = "malformed"  # SQLite's own word for a file whose pages are damaged

T = TypeVar("T")


def open_engine(store: str | Path, *, create: bool, read_only: bool = False) -> Engine:
    """An engine on a store, with the tables of this version.

    `store` is the path of an SQLite file or an SQLAlchemy URL. A read-only file can be read. With `read_only` the
    database itself refuses every change: SQLite opens the file so (`mode=ro`), and PostgreSQL's transactions only read.
    Connections are closed at
    the end of the program at the latest; the last process to close a file leaves everything in that one file. Raises
    `InputError` if there is no store (unless `create`), the file is no store, or its tables have another version. Raises
    `StoreAwayError` if it can't be used for now.
    """
    engine, expected = _engine(store, create=create and not read_only, read_only=read_only), "a store"
    core.when_gone(engine, _give_back, weakref.ref(engine))
    try:
        with reading(engine) as connection:
            ready = _is_ready(connection, str(shown_url(store)), create=create and not read_only)
        if not ready:
            expected = "a store that can be written"
            with engine.begin() as connection:
                schema.STORE.create(connection, str(shown_url(store)))
    except (DBAPIError, ValueError) as error:  # ValueError: a name that no file can have
        engine.dispose()
        reason = getattr(error, "orig", error)
        if (gone := away(str(shown_url(store)), error, engine.dialect.name)) is not None:
            raise gone from error
        found = str(reason).strip() or type(reason).__name__
        kind = DamagedStoreError if _MALFORMED in found else InputError
        raise kind(shown_url(store), found=found, expected=expected) from error
    except InputError:
        engine.dispose()
        raise
    return engine


def _give_back(known: weakref.ref[Engine]) -> None:
    """Closes the connections of an engine, if it still exists."""
    engine = known()
    if engine is not None:
        engine.dispose()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reading, which sees one state of the database and blocks nobody."""
    with engine.connect().execution_options(reading=True) as connection, connection.begin():
        yield connection


class StoreAwayError(InputError):
    """The database can't be used for now: its server or the network is down, or another process has locked the file."""


class StoreWriteError(InputError):
    """The store can't be written, and another try would not help: a full disk, no permission, a damaged file."""


def away(shown: str, error: Exception, dialect: str) -> StoreAwayError | None:
    """The `StoreAwayError` for an error (of SQLAlchemy or the driver) that another try may overcome; None for any other
    error."""
    raw = getattr(error, "orig", error)
    found = " ".join(str(raw).split()) or type(raw).__name__
    if dialect == "sqlite":
        locked = getattr(raw, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
        return StoreAwayError(shown, found=found, expected="a store that can be written") if locked else None
    if not (getattr(error, "connection_invalidated", False) or _is_outage(raw)):
        return None
    return StoreAwayError(shown, found=found, expected="a database that can be reached")


def _is_outage(error: object) -> bool:
    """Whether an error of a driver is one of its operation or interface (PEP 249)."""
    return any(kind.__name__ in {"OperationalError", "InterfaceError"} for kind in type(error).__mro__)


class DamagedStoreError(InputError):
    """The file or a row of a store can't be read: what was `found`, and its `path` if it is a file."""

    def __init__(self, shown: str, *, found: str, expected: str) -> None:
        super().__init__(shown, found=found, expected=expected)
        self.found, self.path = found, Path(shown) if Path(shown).is_file() else None


def damaged(shown: str, error: Exception) -> DamagedStoreError:
    """The `InputError` for an error of reading a store or decoding its rows."""
    if isinstance(error, DBAPIError):
        found = str(error.orig).strip() or type(error.orig).__name__
    elif isinstance(error, ValidationError):
        found = f"a damaged row ({core.first_problem(error)})"
    else:
        found = f"a damaged row ({type(error).__name__}: {error})"[:200]
    return DamagedStoreError(
        shown, found=found, expected="a store as Proctor wrote it; proctor check store names the rows"
    )


def shown_url(store: str | Path) -> str:
    """The path or URL of a store without a password, for messages."""
    text = str(store)
    if "://" not in text:
        return text
    try:
        return make_url(text).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):  # an invalid URL may contain a password, too
        return _USER.sub("://***@", text)


def store_files(shown: str) -> list[Path]:
    """The files of a store, given its `shown_url`; none for a server."""
    if "://" in shown and not shown.startswith("sqlite"):
        return []
    path = (make_url(shown).database or "") if "://" in shown else shown
    return [Path(f"{path}{part}") for part in ("", "-wal", "-shm", "-journal")]


def _engine(store: str | Path, *, create: bool, read_only: bool) -> Engine:
    text = str(store)
    if "://" in text and not text.startswith("sqlite"):
        try:
            engine = create_engine(text, pool_pre_ping=True, pool_size=_CONNECTIONS)
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError) as error:
            raise InputError(shown_url(store), found=str(error), expected="a path or an SQLAlchemy URL") from error
        event.listen(engine, "begin", _begin_postgres)
        if read_only:
            event.listen(engine, "begin", _only_read)
        return engine
    try:
        path = Path(make_url(text).database or "") if "://" in text else Path(text)
        if path.is_dir() or (not create and not path.is_file()):
            found = "a folder" if path.is_dir() else "no such file"
            raise InputError(path, found=found, expected=f"a store{'' if path.is_dir() else core.near_path(path)}")
        path.parent.mkdir(parents=True, exist_ok=True)
    except (ArgumentError, ValueError) as error:
        raise InputError(shown_url(store), found="no URL", expected="a path or an SQLAlchemy URL") from error
    except OSError as error:
        raise InputError(text, found=error.strerror or "an error", expected="a writable path for a store") from error
    return _sqlite_engine(path, create=create, read_only=read_only)


def _sqlite_engine(path: Path, *, create: bool, read_only: bool) -> Engine:
    url = URL.create("sqlite", database=str(path))
    how: dict[str, Any] = {"timeout": _BUSY_S, "check_same_thread": False}
    whole = path.resolve() if path.is_symlink() else path
    closed = _closed_part(whole)
    if closed is None and read_only:
        address = f"{whole.absolute().as_uri()}?mode=ro"
        engine = create_engine(url, creator=lambda: sqlite3.connect(address, uri=True, **how), pool_size=_CONNECTIONS)
        event.listen(engine, "begin", partial(_refuse_writing, whole))
    elif closed is None:
        engine = create_engine(url, connect_args=how, pool_size=_CONNECTIONS)
    elif whole.exists():
        address = f"{whole.absolute().as_uri()}?mode=ro{_unchanging(whole)}"
        engine = create_engine(url, creator=lambda: sqlite3.connect(address, uri=True, **how))
        event.listen(engine, "begin", partial(_refuse_writing, closed))
        if "immutable" in address:
            event.listen(engine, "commit", partial(_refuse_changes, whole, _state(whole)))
    else:
        raise _read_only(closed)
    event.listen(engine, "connect", _set_up_sqlite)
    if create and closed is None:
        event.listen(engine, "connect", _use_wal)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _beside(path: Path) -> tuple[Path, Path]:
    """SQLite's files beside one that is in use, or was in use by a killed process: the write-ahead log, and the memory
    that processes share."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def _closed_part(path: Path) -> Path | None:
    """The first of the file, the files beside it and its folder that is read-only; SQLite writes there even to read."""
    parts = (path, *_beside(path), path.parent)
    return next((part for part in parts if part.exists() and not os.access(part, os.W_OK)), None)


def _read_only(part: Path) -> InputError:
    return InputError(part, found=f"a read-only {'folder' if part.is_dir() else 'file'}", expected="one to write to")


def _unchanging(path: Path) -> str:
    """The URI parameter to read a read-only file: immutable, unless its log has data of other processes. Raises
    `InputError` if a part of the store can't be read."""
    wal, shared = _beside(path)
    if not os.access(path, os.R_OK):
        raise InputError(path, found="permission denied", expected="a store that can be read")
    if not wal.exists() or not wal.stat().st_size:
        return "&immutable=1"
    if not (os.access(wal, os.R_OK) and os.access(shared, os.R_OK)):
        found = f"its last answers in {wal.name}, which can't be read without writing"
        raise InputError(path, found=found, expected="both files copied into a folder to write to")
    return ""


def _refuse_writing(closed: Path, connection: Connection) -> None:
    if not connection.get_execution_options().get("reading", False):
        raise _read_only(closed)


def _refuse_changes(path: Path, state: tuple[int, ...], connection: Connection) -> None:
    """Raises `InputError` after a change, which SQLite does not notice in an immutable file."""
    del connection
    if _state(path) != state:
        expected = "none while it is read without permission to write: run the command again"
        raise InputError(path, found="a change by another process", expected=expected)


def _state(path: Path) -> tuple[int, ...]:
    try:
        known = path.stat()
    except OSError:  # deleted meanwhile
        return ()
    return known.st_ino, known.st_size, known.st_mtime_ns


def _set_up_sqlite(connection: Any, record: object) -> None:
    del record
    connection.isolation_level = None  # the driver's own BEGIN comes too late for a safe upgrade to writing
    cursor = connection.cursor()
    for pragma in (f"synchronous={_SYNCHRONOUS}", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _use_wal(connection: sqlite3.Connection, record: object) -> None:
    """Sets WAL mode, which the file keeps. If several processes create the file at once, this statement fails instead of
    waiting, so it is repeated."""
    del record
    patience = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                raise
            time.sleep(0.01)
        else:
            return


def _begin_postgres(connection: Connection) -> None:
    if (wait_s := connection.get_execution_options().get(LOCK_WAIT)) is not None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout={int(wait_s * 1000)}")


def _only_read(connection: Connection) -> None:
    connection.exec_driver_sql("SET TRANSACTION READ ONLY")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    reads = options.get("reading", False)
    driver = connection.connection.driver_connection  # SQLAlchemy takes as long for a result as a query does
    assert driver is not None  # noqa: S101 - it is connected
    if (wait_s := options.get(LOCK_WAIT)) is not None:
        driver.execute(f"PRAGMA busy_timeout={int(wait_s * 1000)}")
    driver.execute(f"PRAGMA cache_size=-{_READING_KB if reads else _WRITING_KB}")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _is_ready(connection: Connection, shown: str, *, create: bool) -> bool:
    """Whether the tables are there. Raises `InputError` for those of another version, and for no store."""
    # Looked at first: PostgreSQL's second look may see the tables that another process has made since, all at once.
    occupied = create and connection.dialect.has_table(connection, "answers")
    if schema.STORE.known(connection, shown):
        return True
    if not create:
        raise InputError(shown, found="no Proctor tables", expected="a store")
    if occupied:
        raise InputError(shown, found="tables of another program", expected="a store or an empty file")
    return False


def clock(connection: Connection) -> float:
    """Seconds since 1970 by the database's clock, which is the same for all that use it: that of the server, or of the
    machine where the database is a file."""
    if connection.dialect.name != "postgresql":
        return machine_time()
    return float(connection.execute(select(clock_of("postgresql"))).scalar_one())


def clock_of(dialect: str) -> ColumnElement[float]:
    """The same as an expression in a statement."""
    if dialect != "postgresql":
        return literal(machine_time(), Float)
    return literal_column("extract(epoch from clock_timestamp())", Float)


def machine_time() -> float:
    """Seconds since 1970 by this machine's clock, the same for all its processes. It is the kernel's (exact to a second)
    where a process is given another time than the machine has, which is looked at again when this process's clock
    jumps."""
    global _looked  # noqa: PLW0603 - one clock a process
    own = time.time()
    ahead = own - time.monotonic()
    if abs(ahead - _looked[0]) > _JUMP_S:
        _looked = ahead, _kernel_lead(own)
    return own + _looked[1]


def _kernel_lead(own: float) -> float:
    """How many seconds the kernel's clock is ahead of this process's; 0 for less than it can tell."""
    try:
        up = float(Path("/proc/uptime").read_text().partition(" ")[0])
        booted = _BOOTED.search(Path("/proc/stat").read_text())
    except (OSError, ValueError):
        return 0.0
    lead = float(booted[1]) + up - own if booted else 0.0
    return 0.0 if abs(lead) <= _SAME_S else lead


def outlasting(call: Callable[[], T]) -> T:
    """The result of a call, repeated for two minutes while the database can't be reached or is locked. Blocks. The call
    must be safe to repeat."""
    ends, rest = time.monotonic() + _AWAY_S, _REST_FIRST_S
    while True:
        try:
            return call()
        except StoreAwayError:
            if time.monotonic() > ends:
                raise
        time.sleep(rest)
        rest = min(2 * rest, _REST_MAX_S)
