"""Study files that runs were made by: kept in the store under the hash of what they say, so that a report can name it."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import select

from proctor.runs.controls import make_tables, now
from proctor.runs.store import Store
from proctor.runs.tables import StoredTables, time_column

_metadata = sa.MetaData()

_studies = sa.Table(
    "study_files",
    _metadata,
    sa.Column("benchmark", sa.String(200), primary_key=True),
    sa.Column("sha256", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    time_column("at"),
    sa.Column("body", sa.Text, nullable=False),
)

STUDIES = StoredTables("study files", "study_files", 1, (_studies,))
"""The table of study files."""


@dataclass(frozen=True)
class StoredStudy:
    """A study file that a benchmark's runs were made by: its name, the SHA-256 of what it says, when it was first used (UTC),
    and what it says, as canonical JSON."""

    name: str
    sha256: str
    at: str
    body: str


def record_study(store: Store, benchmark: str, name: str, sha256: str, body: str) -> None:
    """Keeps a study file for a benchmark; one that is there stays as it is."""
    make_tables(store, STUDIES)
    row = {"benchmark": benchmark, "sha256": sha256, "name": name, "at": now(), "body": body}
    keep = store.upsert(_studies).on_conflict_do_nothing(index_elements=["benchmark", "sha256"])
    with store.writing() as connection:
        connection.execute(keep, [row])


def studies_of(store: Store, benchmark: str) -> list[StoredStudy]:
    """The study files that a benchmark's runs were made by, the first one first."""
    with store.reading() as connection:
        if not STUDIES.known(connection, store.shown):
            return []
        query = select(_studies).where(_studies.c.benchmark == benchmark)
        rows = connection.execute(query.order_by(_studies.c.at, _studies.c.sha256)).all()
    return [StoredStudy(row.name, row.sha256, row.at, row.body) for row in rows]
