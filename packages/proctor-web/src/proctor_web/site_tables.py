"""The sets of tables of a site: accounts with the trail, which all sites have, and those of a review.

Triggers refuse to change or delete rows of the trail, versions, and sealed readings.
"""

from __future__ import annotations

import sqlalchemy as sa

from proctor.runs import StoredTables
from proctor_web.schema import (
    accounts,
    assignments,
    consensus,
    invitations,
    logins,
    readings,
    sessions,
    studies,
    study_items,
    trail,
    versions,
)
from proctor_web.visibility import VISIBLE_READINGS_SQL

ACCOUNT_TABLES = StoredTables(
    "accounts", "accounts_version", 3, (accounts, invitations, sessions, logins, trail), (("trail", ""),)
)
"""The tables of every site."""

REVIEW_TABLES = StoredTables(
    "a review",
    "web_version",
    1,
    (studies, study_items, versions, assignments, readings, consensus),
    (("versions", ""), ("readings", "old.sealed is not null")),
    (VISIBLE_READINGS_SQL,),
)
"""A review's own tables."""


def prepare_accounts(engine: sa.Engine) -> None:
    """Creates the tables of accounts and the trail where they are missing. Raises `InputError` for those of another
    version."""
    ACCOUNT_TABLES.prepare(engine)


def prepare(engine: sa.Engine) -> None:
    """Creates a review's tables, view and triggers where they are missing. Raises `InputError` for those of another
    version."""
    prepare_accounts(engine)
    REVIEW_TABLES.prepare(engine)
