"""A store is one file: whole when its last process has ended, and read where nothing may be written."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from proctor.core import InputError
from proctor.runs import Store, database, schema
from proctor.runs.tables import StoredTables
from tests.runs.test_store import a_benchmark, a_run, an_answer
from tests.support.faulty_server import FaultyServer
from tests.support.paths import TESTED
from tests.support.program import proctor, proctor_process
from tests.support.text_folder import answer_tray, write_text_folder

OBEYING = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""What a command begins with that has to obey the permissions of files, whoever runs the tests."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A whole store with one answer, alone in its folder."""
    (tmp_path / "stores").mkdir()
    store = Store(tmp_path / "stores" / "runs.db")
    store.write(a_run(store, a_benchmark()), [(an_answer("q0"), [])])
    store.close()
    return tmp_path / "stores" / "runs.db"


def beside(path: Path) -> list[str]:
    """The files of a store by their names."""
    return sorted(one.name for one in path.parent.iterdir())


def answered(path: Path) -> dict[str, int]:
    """System to its answers, by the command line."""
    rows = json.loads(proctor("list", "runs", "--store", path, "--format", "json").stdout)
    return {row["system"]: row["answered"] for row in rows}


def copied(path: Path) -> dict[str, int]:
    """The answers in a copy of the main file alone."""
    alone = path.parent / "copy" / "alone.db"
    alone.parent.mkdir()
    shutil.copy(path, alone)
    found = answered(alone)
    shutil.rmtree(alone.parent)
    return found


def closed_script(path: Path, ending: str) -> subprocess.CompletedProcess[str]:
    """A process that writes an answer, never closes the store, and ends so. Like the command line it leaves objects
    alone at its end."""
    script = f"""
import atexit, gc, sys
atexit.register(gc.freeze)
from proctor.runs import Store
from tests.runs.test_store import an_answer
held = sys.modules["held"] = [Store({str(path)!r})]
held[0].write(held[0].runs("toy")[0], [(an_answer("q1"), [])])
{ending}
"""
    command, environment = [sys.executable, "-c", script], os.environ | {"PYTHONPATH": os.pathsep.join(TESTED)}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("sys.exit(3)", 3), ("raise ValueError", 1), ("raise KeyboardInterrupt", -signal.SIGINT)],
)
def test_who_never_closes_a_store_leaves_one_whole_file(path: Path, ending: str, code: int) -> None:
    done = closed_script(path, ending)
    assert done.returncode == code, done.stderr
    assert beside(path) == ["runs.db"]
    assert copied(path) == {"one": 2}


def test_what_a_killed_process_left_is_whole_after_the_next_command(path: Path) -> None:
    assert closed_script(path, "import os; os._exit(9)").returncode == 9
    assert beside(path) == ["runs.db", "runs.db-shm", "runs.db-wal"]
    assert answered(path) == {"one": 2}
    assert beside(path) == ["runs.db"]
    assert copied(path) == {"one": 2}


def test_a_store_that_is_gone_is_closed(path: Path) -> None:
    store = Store(path)
    store.write(store.runs("toy")[0], [(an_answer("q1"), [])])
    assert "runs.db-wal" in beside(path)
    gc.disable()
    try:
        del store
        assert beside(path) == ["runs.db"]
    finally:
        gc.enable()


def test_another_process_may_go_on_with_a_store_that_is_closed_here(path: Path) -> None:
    other = Store(path)
    assert closed_script(path, "").returncode == 0
    assert other.settled(other.runs("toy")[0]) == {"q0", "q1"}
    assert "runs.db-wal" in beside(path)
    other.close()
    assert beside(path) == ["runs.db"]


def test_a_run_leaves_one_whole_file(tmp_path: Path) -> None:
    folder, path = write_text_folder(tmp_path / "data", 6), tmp_path / "stores" / "runs.db"
    asked = ("simulated", "--data", folder, "--system", "random", "--condition", "text-only", "--store", path)
    done = proctor_process("run", *asked)
    assert done.returncode == 0, done.stderr
    assert beside(path) == ["runs.db"]
    assert copied(path) == answered(path)
    assert answered(path)["random"] == 6


def test_a_run_that_was_stopped_leaves_one_whole_file(tmp_path: Path) -> None:
    folder, path = write_text_folder(tmp_path / "data", 40), tmp_path / "stores" / "runs.db"
    with FaultyServer(answer_tray) as server:
        server.holds_after = 20
        words = ["run", "simulated", "--data", str(folder), "--condition", "text-only", "--model", "local"]
        words += ["--base-url", server.url, "--concurrency", "4", "--store", str(path)]
        command = [sys.executable, "-c", "from proctor.cli.main import main; main()", *words]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            until(lambda: server.count > 20 and len(recorded(path)) >= 10)
            process.send_signal(signal.SIGINT)
            until(lambda: "stopping" in process.stderr.readline())  # type: ignore[union-attr]
            process.send_signal(signal.SIGINT)  # while answers are under way
            complained = process.stderr.read()
        server.release()
    assert process.returncode == 130, complained
    assert beside(path) == ["runs.db"]
    assert copied(path) == answered(path)
    assert answered(path)["local"] >= 10


def recorded(path: Path) -> list[Any]:
    """The answers of the model, past Proctor, which would tidy up."""
    query = "select item from answers join runs on runs.id = run where system = 'local'"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def until(happened: Callable[[], bool], patience_s: float = 600.0) -> None:
    ends = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.005)


@pytest.fixture
def locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store in which another program is inside one long transaction that writes; nobody waits for it."""
    monkeypatch.setattr(database, "_BUSY_S", 0.0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    other.execute("update runs set system = 'two'")
    yield path
    other.execute("rollback")
    other.close()


def test_reading_waits_for_nobody(locked: Path) -> None:
    assert answered(locked) == {"one": 1}
    assert proctor("check", "store", "--store", locked).stdout == "Every row can be read.\n"
    store = Store(locked)  # which may be written, and is there
    assert store.settled(store.runs("toy")[0]) == {"q0"}
    with pytest.raises(InputError, match="found database is locked, expected a store that can be written"):
        store.write(store.runs("toy")[0], [(an_answer("q1"), [])])


def rolled_back(path: Path) -> None:
    """A copy by SQLite's own means is in its usual mode, which has no second file."""
    with closing(sqlite3.connect(path.with_name("whole.db"))) as connection:
        connection.execute("vacuum into ?", (str(path),))


def strange(path: Path) -> None:
    """A database of another program."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table places (a)")
        connection.commit()


def test_a_store_that_another_process_makes_at_this_moment_is_found(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look finds no tables, and the next one all of them."""
    elsewhere, looks, look = sa.create_engine(postgres_url), [], StoredTables.known

    def made_after_the_first_look(tables: StoredTables, connection: sa.Connection, shown: str = "") -> bool:
        looks.append(look(tables, connection, shown))
        if len(looks) == 1:
            with elsewhere.begin() as other:
                schema.STORE.create(other)
        return looks[-1]

    monkeypatch.setattr(StoredTables, "known", made_after_the_first_look)
    Store(postgres_url).close()
    elsewhere.dispose()
    assert looks[0] is False
    assert looks[-1] is True


@pytest.mark.parametrize(
    ("make", "found"), [(Path.touch, "no Proctor tables"), (strange, "no Proctor tables"), (rolled_back, "")]
)
def test_reading_changes_no_file(path: Path, make: Callable[[Path], None], found: str) -> None:
    path.rename(path.with_name("whole.db"))
    make(path)
    before = path.read_bytes()
    done = proctor("list", "runs", "--store", path)
    assert (done.returncode, found in done.stderr) == (1 if found else 0, True)
    assert path.read_bytes() == before
    assert beside(path) == ["runs.db", "whole.db"]


def test_a_copy_by_sqlite_is_a_store_again_when_it_is_written(path: Path) -> None:
    path.rename(path.with_name("whole.db"))
    rolled_back(path)
    store = Store(path)
    store.write(store.runs("toy")[0], [(an_answer("q1"), [])])
    assert beside(path) == ["runs.db", "runs.db-shm", "runs.db-wal", "whole.db"]
    store.close()
    assert answered(path) == {"one": 2}


@pytest.mark.parametrize("name", ["a?b.db", "a#b.db", "a%20b.db", "file:a.db", "ä b.db"])
def test_a_store_may_have_any_name(path: Path, name: str) -> None:
    (path.parent / "others").mkdir()
    named = path.rename(path.parent / "others" / name)
    assert answered(named) == {"one": 1}
    Store(named).close()
    assert beside(named) == [name]


class _Refusing:
    """A connection to a file that other processes are making."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def execute(self, statement: str) -> sqlite3.Cursor:
        assert statement == "PRAGMA journal_mode=WAL"
        if self.codes:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = self.codes.pop(0)
            raise error
        return sqlite3.connect(":memory:").cursor()


def test_of_several_processes_that_make_a_store_each_waits_for_the_others() -> None:
    connection: Any = _Refusing(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY)
    database._use_wal(connection, None)
    assert connection.codes == []
    full: Any = _Refusing(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY)
    with pytest.raises(sqlite3.OperationalError):
        database._use_wal(full, None)
    assert full.codes == [sqlite3.SQLITE_BUSY]


def obeying(*arguments: str | Path) -> tuple[int, str]:
    """`proctor` in a process that may write only where files say so: its exit code and what it said, on both."""
    command = [*OBEYING, sys.executable, "-c", "from proctor.cli.main import main; main()", *map(str, arguments)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=600
    )
    return done.returncode, done.stdout


@pytest.fixture(params=["the file", "its folder", "both"])
def closed(path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A store that nobody may write; the permission is given back for what comes after."""
    if request.param != "its folder":
        path.chmod(0o444)
    if request.param != "the file":
        path.parent.chmod(0o555)
    yield path
    path.parent.chmod(0o755)
    path.chmod(0o644)


def test_a_store_is_read_where_nothing_may_be_written(closed: Path, tmp_path: Path) -> None:
    code, said = obeying("list", "runs", "--store", closed, "--format", "csv")
    assert (code, said.splitlines()[1].split(",")[:4]) == (0, ["toy", "one", "video", "1"])
    assert obeying("check", "store", "--store", closed) == (0, "Every row can be read.\n")
    code, said = obeying("store", "merge", closed, "--store", tmp_path / "all.db")
    assert code == 0, said
    assert answered(tmp_path / "all.db") == {"one": 1}
    assert beside(closed) == ["runs.db"]


def test_writing_there_is_refused_in_one_line(closed: Path) -> None:
    refused = f"{closed}: found a read-only file"
    if closed.stat().st_mode & 0o200:
        refused = f"{closed.parent}: found a read-only folder"
    code, said = obeying(
        "store", "change", "rename", "toy", "--system", "one", "--to", "two", "--yes", "--store", closed
    )
    assert (code, said) == (1, f"proctor: {refused}, expected one to write to\n")
    assert answered(closed) == {"one": 1}


@pytest.mark.parametrize("closed", ["its folder"], indirect=True)
def test_no_store_is_made_in_a_read_only_folder(closed: Path) -> None:
    code, said = obeying("store", "merge", closed, "--store", closed.with_name("new.db"))
    assert (code, said) == (1, f"proctor: {closed.parent}: found a read-only folder, expected one to write to\n")


def test_a_store_that_may_not_be_read(path: Path) -> None:
    path.chmod(0)
    code, said = obeying("list", "runs", "--store", path)
    assert (code, said) == (1, f"proctor: {path}: found permission denied, expected a store that can be read\n")
    path.chmod(0o644)


@pytest.mark.parametrize("closed", ["both"], indirect=True)
@pytest.mark.parametrize("whole", [True, False])
def test_last_answers_that_lie_beside_a_store_are_read_or_missed_aloud(closed: Path, whole: bool) -> None:
    closed.parent.chmod(0o755)
    closed.chmod(0o644)
    assert closed_script(closed, "import os; os._exit(9)").returncode == 9
    if not whole:
        closed.with_name("runs.db-shm").unlink()  # which nobody copies
    closed.chmod(0o444)
    closed.parent.chmod(0o555)
    code, said = obeying("list", "runs", "--store", closed, "--format", "csv")
    if whole:
        assert (code, said.splitlines()[1].split(",")[:4]) == (0, ["toy", "one", "video", "2"])
    else:
        found = "its last answers in runs.db-wal, which can't be read without writing"
        assert said == f"proctor: {closed}: found {found}, expected both files copied into a folder to write to\n"
        assert code == 1


@pytest.mark.parametrize("closed", ["its folder"], indirect=True)
def test_who_reads_without_permission_to_write_is_told_that_the_file_changed(closed: Path) -> None:
    """SQLite itself would read pages of both states."""
    script = f"""
import sys
from proctor.core import InputError
from proctor.runs import Store
store = Store({str(closed)!r}, create=False)
print(store.settled(store.runs("toy")[0]), flush=True)
sys.stdin.readline()
try:
    store.settled(store.runs("toy")[0])
except InputError as error:
    print(error)
"""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*OBEYING, sys.executable, "-c", script], **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "{'q0'}\n"
        closed.parent.chmod(0o755)
        assert closed_script(closed, "").returncode == 0
        told, _ = process.communicate("\n")
    expected = "none while it is read without permission to write: run the command again"
    assert told == f"{closed}: found a change by another process, expected {expected}\n"
