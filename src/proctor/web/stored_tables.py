"""How the tables of a site come into a store's database, each kind with a version of its own in the store's `meta`.

Triggers refuse to change or delete rows of the trail, versions, and sealed readings. Tables of another version are
refused, not converted.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from proctor.runs import check_version, reading, shown_url, store_meta
from proctor.web.schema import (
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
from proctor.web.visibility import VISIBLE_READINGS_SQL

_REFUSE = """
create or replace function proctor_lasting() returns trigger language plpgsql as
$$ begin raise exception 'rows of % stay as they are', tg_table_name; end $$
"""


@dataclass(frozen=True)
class StoredTables:
    """Tables beside a store's own, whose version is in the store's `meta` under `key`. Triggers protect the rows of the
    tables in `lasting` from change and deletion, always or under a condition (SQL, of the row `old`); `views` are SQL.
    """

    what: str
    key: str
    version: int
    tables: tuple[sa.Table, ...]
    lasting: tuple[tuple[str, str], ...] = ()
    views: tuple[str, ...] = ()

    def prepare(self, engine: sa.Engine) -> None:
        """Creates the tables where they are missing. Raises `InputError` for those of another version."""
        if self.are_in(engine):
            return
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("lock table meta in share row exclusive mode"))  # one process creates
            if self._are_known(connection):
                return
            self.tables[0].metadata.create_all(connection, tables=self.tables)
            for statement in (*self.views, *_triggers(connection, self.lasting)):
                connection.execute(sa.text(statement))
            connection.execute(sa.insert(store_meta).values(key=self.key, value=str(self.version)))

    def are_in(self, engine: sa.Engine) -> bool:
        """Whether a store has these tables. Raises `InputError` for those of another version."""
        with reading(engine) as connection:
            return self._are_known(connection)

    def _are_known(self, connection: sa.Connection) -> bool:
        shown = shown_url(str(connection.engine.url))
        return check_version(connection, shown, self.what, self.version, self.key, "start over in another store")


ACCOUNT_TABLES = StoredTables(
    "accounts", "accounts_version", 2, (accounts, invitations, sessions, logins, trail), (("trail", ""),)
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


def _triggers(connection: sa.Connection, lasting: tuple[tuple[str, str], ...]) -> list[str]:
    if connection.dialect.name == "postgresql":
        return [
            *([_REFUSE] if lasting else []),
            *(_postgres_trigger(name, condition) for name, condition in lasting),
            *(
                f"create or replace trigger {name}_stay_whole before truncate on {name} "
                "execute function proctor_lasting()"
                for name, _ in lasting
            ),
        ]
    return [
        f"create trigger if not exists {name}_stay_on_{change} before {change} on {name} "
        f"{f'when {condition} ' if condition else ''}begin select raise(abort, 'rows of {name} stay as they are'); end"
        for name, condition in lasting
        for change in ("update", "delete")
    ]


def _postgres_trigger(name: str, condition: str) -> str:
    when = f"when ({condition}) " if condition else ""
    return (
        f"create or replace trigger {name}_stay before update or delete on {name} "
        f"for each row {when}execute function proctor_lasting()"
    )
