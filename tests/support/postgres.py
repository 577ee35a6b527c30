"""A PostgreSQL server of the tests' own, on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """Where initdb and postgres are (Debian keeps them out of PATH), or None."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


@contextmanager
def running_postgres(programs: Path) -> Iterator[str]:
    """Starts a server and yields the URL of its administration database, without the database's name."""
    with restartable_postgres(programs) as (url, _):
        yield url


@contextmanager
def restartable_postgres(programs: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The same, and what ends all its connections at once and starts it again."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-postgres-"))
    port = _free_port()
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
    data = folder / "data"
    start = [*as_user, str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "proctor", "--no-sync"]
    subprocess.run(start, check=True, capture_output=True)
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [*as_user, str(programs / "pg_ctl"), "-D", str(data), "-w"]
    started = [*control, "-o", options, "-l", str(folder / "log"), "start"]
    subprocess.run(started, check=True, capture_output=True)

    def restart() -> None:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, capture_output=True)
        subprocess.run(started, check=True, capture_output=True)

    try:
        yield f"postgresql+psycopg://proctor@127.0.0.1:{port}", restart
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
