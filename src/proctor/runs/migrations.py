"""How a store of an older version becomes one of today's: one step a version, written with Alembic's operations, which
both databases understand. A step is never changed once it has been released, whatever `schema` says later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, Float, Integer, String, Text, update

from proctor.runs import schema

if TYPE_CHECKING:
    from alembic.operations import Operations


def migrate(connection: Connection, version: int) -> None:
    """Brings the tables from this version to today's, in the transaction of the connection: all steps, or none."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    operations = Operations(MigrationContext.configure(connection))
    for number in range(version, schema.VERSION):
        STEPS[number](operations)
    own = schema.meta.c.key == "version"
    connection.execute(update(schema.meta).where(own).values(value=str(schema.VERSION)))


def _shared_runs(operations: Operations) -> None:
    """From 1 to 2: what several workers share. Stores of version 1 that were shared have some of these tables."""
    operations.create_table(
        "claims",
        Column("run", Integer, primary_key=True),
        Column("item", Integer, primary_key=True),
        Column("worker", String(64), nullable=False),
        Column("until", Float, nullable=False),
        if_not_exists=True,
    )
    operations.create_index("claims_by_worker", "claims", ["worker"], if_not_exists=True)
    operations.create_table(
        "parcels",
        Column("sha256", String(64), primary_key=True),
        Column("body", Text, nullable=False),
        if_not_exists=True,
    )
    operations.create_table(
        "orders",
        Column("run", Integer, primary_key=True),
        Column("parcel", String(64), nullable=False),
        Column("items", Integer, nullable=False),
        if_not_exists=True,
    )


STEPS: dict[int, Callable[[Operations], None]] = {1: _shared_runs}
"""By the version that a store has the step to the next one."""
