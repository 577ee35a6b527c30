"""What all tests share: where the real data are, and servers that several rooms need."""

from __future__ import annotations

import gc
import os
import re
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import create_engine, text

from tests.support.means import missing
from tests.support.postgres import binaries, running_postgres

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # how long an example takes says something of the machine alone


SLOW = frozenset((Path(__file__).parent / "tests" / "slow.txt").read_text(encoding="utf-8").split())
"""The tests that `make test` leaves out; tools/slow_tests.py writes them from measured times."""

gc.disable()  # until all is collected: what is imported stays


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was imported and collected stays: the garbage collector need not look through it again and again."""
    del session
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a fixture of their module, or a package's for the session, run in one process, which makes it
    once; so do those that need PyTorch or other programs' packages, which take seconds to load. xdist begins with the
    largest of these groups, so that none is left to the end."""
    for item in items:
        if item.nodeid.partition("[")[0] in SLOW:
            item.add_marker(pytest.mark.slow)
        definitions = getattr(item, "_fixtureinfo", None)
        if definitions is None or item.get_closest_marker("xdist_group"):
            continue
        shared = {one.baseid for found in definitions.name2fixturedefs.values() for one in found if _lasts(one)}
        if "tests.support.foreign import" in _text(item.path):
            item.add_marker(pytest.mark.xdist_group("foreign"))
        elif _needs_torch(item.path) and all(one.endswith(".py") for one in shared):
            item.add_marker(pytest.mark.xdist_group("torch"))
        elif shared:
            item.add_marker(pytest.mark.xdist_group(min(shared, key=len)))


@cache
def _needs_torch(file: Path) -> bool:
    """Whether a file of tests speaks of it, or of what needs it."""
    said = r"torch|transformers|bert_score|default_encoder|tiny_(?:clip|vlm|whisper)|rated_answers|test_detector"
    return re.search(said, _text(file)) is not None


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _lasts(fixture: Any) -> bool:
    """Whether it is made once for several tests that lie together: the fixtures of this file serve all."""
    return fixture.scope in {"module", "session"} and fixture.baseid.count("/") > 0


@pytest.fixture(autouse=True, scope="session")
def _patience() -> Iterator[None]:
    """No limit of time fires because the machine is busy: the short ones, of connecting, are long in tests. Tests of
    time-outs have a clock of their own (`tests.support.virtual_time`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("proctor.models.provider._CONNECT_S", 600.0)
        patch.setattr("proctor.models.provider._PATIENCE_S", 600.0)
        patch.setattr("proctor.judges.documents._PDF_TIMEOUT_S", 600)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_power_cut() -> Iterator[None]:
    """Stores of this process do not wait for the disk; those of processes that tests start, and kill, do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("proctor.runs.database._SYNCHRONOUS", "OFF")
        yield


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with real data."""
    named = os.environ.get("PROCTOR_DATA")
    if not named or not Path(named).is_dir():
        missing(f"PROCTOR_DATA is {named!r}: no folder with real data")
    return Path(str(named))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL server for the whole session."""
    programs = binaries()
    if programs is None:
        missing("no PostgreSQL server here (Debian: apt-get install postgresql)")
        return
    with running_postgres(programs) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty PostgreSQL database."""
    name = f"proctor_{uuid.uuid4().hex}"
    admin = create_engine(f"{postgres_server}/postgres", isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"create database {name}"))
    yield f"{postgres_server}/{name}"
    with admin.connect() as connection:
        connection.execute(text(f"drop database {name} with (force)"))
    admin.dispose()
