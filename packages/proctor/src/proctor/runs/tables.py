"""What the tables of runs, accounts, reviews and challenges have in common: columns, a version for each set of tables,
and rows that stay as they are."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlalchemy as sa

from proctor import __version__
from proctor.core import InputError

STORE_KEY = "version"
"""The key in `meta` of the version of a store's own tables. All other sets of tables stand beside these."""

MADE_BY = "made_by"
"""The key in `meta` of the version of Proctor that made the store."""

_META = sa.table("meta", sa.column("key", sa.String), sa.column("value", sa.String))
_DIGITS = re.compile("[0-9]{1,9}")
_REFUSE = """
create or replace function proctor_lasting() returns trigger language plpgsql as
$$ begin raise exception 'rows of % stay as they are', tg_table_name; end $$
"""


def id_column() -> sa.Column[int]:
    """The primary key `id` of a table."""
    return sa.Column("id", sa.Integer, primary_key=True)


def time_column(name: str, *, nullable: bool = False) -> sa.Column[str]:
    """A column for times in ISO 8601."""
    return sa.Column(name, sa.String(40), nullable=nullable)


def one_at_a_time(connection: sa.Connection, what: str) -> None:
    """Waits until no other transaction that does the same is under way, so that what is read stays true until it is
    written. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("select pg_advisory_xact_lock(hashtext(:what))"), {"what": f"proctor {what}"})


@dataclass(frozen=True)
class StoredTables:
    """A set of tables that are made together, and whose version the database's `meta` has under `key`. They are never
    converted: a change to them raises `version`, and those of another version are refused; `again` says how an older
    database is replaced. Triggers protect the rows of the tables in `lasting` from change and deletion, always or under
    a condition (SQL, of the row `old`); `views` are SQL.
    """

    what: str
    key: str
    version: int
    tables: tuple[sa.Table, ...]
    lasting: tuple[tuple[str, str], ...] = ()
    views: tuple[str, ...] = ()
    again: str = "start over in another store"

    def prepare(self, engine: sa.Engine) -> None:
        """Creates the tables where they are missing. Raises `InputError` for those of another version."""
        if not self.are_in(engine):
            with engine.begin() as connection:
                self.create(connection)

    def are_in(self, engine: sa.Engine) -> bool:
        """Whether a database has these tables. Raises `InputError` for those of another version."""
        with engine.connect().execution_options(reading=True) as connection, connection.begin():
            return self.known(connection)

    def create(self, connection: sa.Connection, shown: str = "") -> None:
        """Creates the tables in this transaction, unless another process has just done so."""
        one_at_a_time(connection, "tables")
        if self.known(connection, shown):
            return
        self.tables[0].metadata.create_all(connection, tables=self.tables)
        for statement in (*self.views, *_triggers(connection, self.lasting)):
            connection.execute(sa.text(statement))
        made = {self.key: str(self.version)} | ({MADE_BY: __version__} if self.key == STORE_KEY else {})
        connection.execute(sa.insert(_META), [{"key": key, "value": value} for key, value in made.items()])

    def known(self, connection: sa.Connection, shown: str = "") -> bool:
        """Whether the tables are there; `shown` names the database in messages (by default, by its URL). Raises
        `InputError` for those of another version, and for a store without one."""
        if not connection.dialect.has_table(connection, _META.name):
            return False
        stored = dict(iter(connection.execute(sa.select(_META.c.key, _META.c.value))))
        found = stored.get(self.key)
        if found == str(self.version):
            return True
        if found is None and self.key != STORE_KEY:
            return False
        shown_version = "unknown version" if found is None else f"version {found[:20]}"
        former = bool(found and _DIGITS.fullmatch(found) and 0 < int(found) < self.version)
        program = f"Proctor {stored[MADE_BY][:20]}, which made it" if MADE_BY in stored else "the Proctor that made it"
        way = f"{self.again}, or open it with {program}" if former else "update Proctor to open it"
        location = shown or connection.engine.url.render_as_string(hide_password=True)
        raise InputError(location, found=f"{self.what} of {shown_version}", expected=f"version {self.version}: {way}")


def _triggers(connection: sa.Connection, lasting: tuple[tuple[str, str], ...]) -> list[str]:
    """The statements that make triggers; each can be repeated."""
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
