"""Workers, containers, scorers and the server are killed at drawn moments, and the database is restarted: nothing is
stuck, no quota is lost, nothing is scored twice. `bench/killed.py` does it sixty times."""

from __future__ import annotations

from pathlib import Path

from proctor.core import generator
from tests.support.hosted_work import asked_folder
from tests.support.killed_workers import TARGETS, Storm
from tests.support.means import missing
from tests.support.postgres import binaries, restartable_postgres


def test_whoever_is_killed_nothing_is_lost(tmp_path: Path) -> None:
    storm = Storm(asked_folder(tmp_path / "trays"), None, seed=1)
    targets = [*TARGETS, *TARGETS]
    storm.rage([targets[one] for one in generator(1, "targets").permutation(len(targets))])
    storm.check()
    assert storm.killed == dict.fromkeys(TARGETS, 2)
    assert storm.states["scored"] >= 3


def test_a_database_that_is_restarted_loses_nothing(tmp_path: Path) -> None:
    programs = binaries()
    if programs is None:
        missing("no PostgreSQL server here (Debian: apt-get install postgresql)")
        return
    with restartable_postgres(programs) as (url, restart):
        storm = Storm(asked_folder(tmp_path / "trays"), f"{url}/postgres", restart, seed=2)
        storm.rage(["database", "worker", "database"])
        storm.check()
        storm.challenge.close()
    assert storm.killed == {"database": 2, "worker": 1}
    assert storm.states["scored"] >= 1
