"""The tables of accounts and of a review, in the same database as the store's; and who may see whose readings.

Times are UTC in ISO 8601. What people said is not changed behind their backs: triggers refuse to change or delete
rows of the trail, versions, and sealed readings.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from sqlalchemy import (
    JSON,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    column,
    insert,
    inspect,
    select,
    table,
    text,
)

from proctor.core import InputError
from proctor.runs import reading, shown_url, store_meta

Role = Literal["organiser", "reviewer", "annotator", "adjudicator", "participant", "public"]
ROLES: tuple[Role, ...] = get_args(Role)

metadata = MetaData()


def _time(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, String(40), nullable=nullable)


def _account(name: str = "account", *, nullable: bool = False) -> Column[int]:
    return Column(name, Integer, ForeignKey("accounts.id"), nullable=nullable)


def _one_of(name: str, choices: tuple[str, ...]) -> CheckConstraint:
    return CheckConstraint(f"{name} in ({', '.join(map(repr, choices))})")


accounts = Table(
    "accounts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("pseudonym", String(40), nullable=False, unique=True),
    Column("role", String(20), _one_of("role", ROLES), nullable=False),
    Column("password", Text, nullable=False),  # argon2's own text; empty: nobody can log in yet
    Column("language", String(8), nullable=False),
    _time("created"),
    _time("disabled", nullable=True),
)

invitations = Table(
    "invitations",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    _account(),
    _time("expires"),
    _time("used", nullable=True),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    _account(),
    Column("csrf", String(64), nullable=False),
    _time("created"),
    _time("seen"),
    _time("expires"),
)
Index("sessions_by_account", sessions.c.account)

logins = Table(
    "logins",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(80), nullable=False),
    Column("address", String(80), nullable=False),
    _time("at"),
    Column("ok", Integer, nullable=False),
)
Index("logins_by_name", logins.c.name, logins.c.at)
Index("logins_by_address", logins.c.address, logins.c.at)

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("form", String(40), nullable=False),
    Column("settings", JSON, nullable=False),
)

study_items = Table(
    "study_items",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study", ForeignKey("studies.id"), nullable=False),
    Column("key", String(400), nullable=False),
    Column("group_name", Text, nullable=False),
    Column("media", JSON, nullable=False),
    Column("gold", JSON(none_as_null=True)),
    Column("position", Integer, nullable=False),
    UniqueConstraint("study", "key"),
)

versions = Table(
    "versions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item", ForeignKey("study_items.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("body", JSON, nullable=False),
    _account("author", nullable=True),
    _time("created"),
    Column("why", Text, nullable=False),
    UniqueConstraint("item", "number"),
)

assignments = Table(
    "assignments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item", ForeignKey("study_items.id"), nullable=False),
    _account(),
    Column("position", Integer, nullable=False),
    Column("role", String(20), _one_of("role", ("reader", "adjudicator")), nullable=False),
    UniqueConstraint("item", "account"),
)
Index("assignments_by_account", assignments.c.account, assignments.c.position)

readings = Table(
    "readings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", ForeignKey("versions.id"), nullable=False),
    _account(),
    Column("payload", JSON, nullable=False),
    Column("comment", Text, nullable=False, default=""),
    Column("seconds", Float, nullable=False, default=0.0),
    Column("revision", Integer, nullable=False, default=0),
    _time("saved"),
    _time("sealed", nullable=True),
    Column("by_page", JSON(none_as_null=True)),
    UniqueConstraint("version", "account"),
)
Index("readings_by_account", readings.c.account)

consensus = Table(
    "consensus",
    metadata,
    Column("version", ForeignKey("versions.id"), primary_key=True),
    Column("payload", JSON, nullable=False),
    _account(nullable=True),  # null: the readings agreed
    Column("reason", Text, nullable=False),
    _time("at"),
)

trail = Table(
    "trail",
    metadata,
    Column("id", Integer, primary_key=True),
    _time("at"),
    _account(nullable=True),
    Column("action", String(40), nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", JSON, nullable=False),
    Column("previous", String(64), nullable=False, unique=True),
    Column("hash", String(64), nullable=False, unique=True),
)

visible_readings = table("visible_readings", column("viewer", Integer), column("reading", Integer))
"""Which account (`viewer`) may see which reading. Whatever shows a reading joins it, with the viewer's id:

    select(readings).join(visible_readings, visible_readings.c.reading == readings.c.id).where(
        visible_readings.c.viewer == visitor.account
    )

One's own readings are always there. Others' are there once they are sealed and every assigned reader has sealed a
reading of that version, to those who sealed a reading of that version, the item's adjudicators, and organisers. A
participant and the public see nobody's.
"""

_VISIBLE_READINGS = """
create view visible_readings as
select accounts.id as viewer, readings.id as reading
from readings
join versions on versions.id = readings.version
join accounts on accounts.id = readings.account or (
  readings.sealed is not null
  and accounts.role not in ('participant', 'public')
  and exists (
    select 1 from assignments where assignments.item = versions.item and assignments.role = 'reader'
  )
  and not exists (
    select 1 from assignments
    left join readings due
      on due.version = versions.id and due.account = assignments.account and due.sealed is not null
    where assignments.item = versions.item and assignments.role = 'reader' and due.id is null
  )
  and (
    accounts.role = 'organiser'
    or exists (
      select 1 from readings mine
      where mine.version = versions.id and mine.account = accounts.id and mine.sealed is not null
    )
    or exists (
      select 1 from assignments
      where assignments.item = versions.item and assignments.account = accounts.id and assignments.role = 'adjudicator'
    )
  )
)
"""

_REFUSE = """
create or replace function proctor_lasting() returns trigger language plpgsql as
$$ begin raise exception 'rows of % stay as they are', tg_table_name; end $$
"""


@dataclass(frozen=True)
class StoredTables:
    """Tables that stand beside a store's own, with a version of theirs in its `meta` under `key`. Rows of the tables in
    `lasting` are never changed or deleted, some from a condition (SQL, of the row `old`) on; `views` are SQL."""

    what: str
    key: str
    version: int
    tables: tuple[Table, ...]
    lasting: tuple[tuple[str, str], ...] = ()
    views: tuple[str, ...] = ()

    def prepare(self, engine: Engine) -> None:
        """Creates them in a store that has none, and columns that came since in one that has, else changes nothing.
        Raises `InputError` where a newer Proctor wrote them."""
        with reading(engine) as connection:
            if self._are_there(connection) and not _new_columns(connection, self.tables):
                return
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("lock table meta in share row exclusive mode"))  # of two, one creates
            if self._are_there(connection):
                _add_new_columns(connection, self.tables)
                return
            self.tables[0].metadata.create_all(connection, tables=self.tables)
            for statement in (*self.views, *_triggers(connection, self.lasting)):
                connection.execute(text(statement))
            connection.execute(insert(store_meta).values(key=self.key, value=str(self.version)))

    def _are_there(self, connection: Connection) -> bool:
        version = connection.execute(select(store_meta.c.value).where(store_meta.c.key == self.key)).scalar()
        if version not in {None, str(self.version)}:
            raise InputError(
                shown_url(str(connection.engine.url)),
                found=f"{self.what} of version {version[:20]}",
                expected=f"version {self.version}: update Proctor to open it",
            )
        return version is not None


ACCOUNT_TABLES = StoredTables(
    "accounts", "accounts_version", 1, (accounts, invitations, sessions, logins, trail), (("trail", ""),)
)
"""What every site has: who may come in, and who changed what."""

REVIEW_TABLES = StoredTables(
    "a review",
    "web_version",
    1,
    (studies, study_items, versions, assignments, readings, consensus),
    (("versions", ""), ("readings", "old.sealed is not null")),
    (_VISIBLE_READINGS,),
)
"""A review's own tables."""


def _new_columns(connection: Connection, tables: tuple[Table, ...]) -> list[Column[object]]:
    """Columns that came since these tables were made: they may be empty, so that an older Proctor can go on, too."""
    inspector = inspect(connection)
    known = {one.name: {found["name"] for found in inspector.get_columns(one.name)} for one in tables}
    return [each for one in tables for each in one.columns if each.name not in known[one.name]]


def _add_new_columns(connection: Connection, tables: tuple[Table, ...]) -> None:
    for new in _new_columns(connection, tables):
        kind = new.type.compile(connection.dialect)
        connection.execute(text(f"alter table {new.table.name} add column {new.name} {kind}"))


def prepare_accounts(engine: Engine) -> None:
    """Creates the tables of accounts and of the trail in a store that has none, else changes nothing.

    Raises `InputError` where a newer Proctor wrote them.
    """
    ACCOUNT_TABLES.prepare(engine)


def prepare(engine: Engine) -> None:
    """Creates a review's tables, view and triggers in a store that has none, else changes nothing.

    Raises `InputError` where a newer Proctor wrote them.
    """
    prepare_accounts(engine)
    REVIEW_TABLES.prepare(engine)


def utc_text(at: datetime) -> str:
    """A moment as all tables keep it: texts sort as the moments do.

    >>> utc_text(datetime(2026, 11, 23, 9, tzinfo=UTC))
    '2026-11-23T09:00:00.000+00:00'
    """
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def new_token() -> str:
    """A secret that nobody guesses, fit for a link or a cookie."""
    return secrets.token_urlsafe(32)


def _triggers(connection: Connection, lasting: tuple[tuple[str, str], ...]) -> list[str]:
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
