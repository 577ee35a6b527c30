"""What all tests share: where the real data are, and servers that several rooms need."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import create_engine, text

from tests.support.postgres import binaries, running_postgres

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # how long an example takes says something of the machine alone


def missing(reason: str) -> None:
    """Skips a test whose means are not here; in CI it fails, so that nothing is left out there."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


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
