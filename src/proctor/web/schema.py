"""The tables of accounts and of a review, in the store's database, and the rule of who may see whose readings.

Times are UTC in ISO 8601. Triggers refuse to change or delete rows of the trail, versions, and sealed readings.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

import sqlalchemy as sa

from proctor.core import InputError
from proctor.runs import id_column, reading, shown_url, store_meta, time_column

Role = Literal["organiser", "reviewer", "annotator", "adjudicator", "participant", "public"]
ROLES: tuple[Role, ...] = get_args(Role)

metadata = sa.MetaData()


def _account(name: str = "account", *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, sa.ForeignKey("accounts.id"), nullable=nullable)


def _role(choices: tuple[str, ...]) -> sa.Column[str]:
    check = sa.CheckConstraint(f"role in ({', '.join(map(repr, choices))})")
    return sa.Column("role", sa.String(20), check, nullable=False)


accounts = sa.Table(
    "accounts",
    metadata,
    id_column(),
    sa.Column("name", sa.String(80), nullable=False, unique=True),
    sa.Column("pseudonym", sa.String(40), nullable=False, unique=True),
    _role(ROLES),
    sa.Column("password", sa.Text, nullable=False),  # argon2's own text; empty: nobody can log in yet
    sa.Column("language", sa.String(8), nullable=False),
    time_column("created"),
    time_column("disabled", nullable=True),
)

invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("token_hash", sa.String(64), primary_key=True),
    _account(),
    time_column("expires"),
    time_column("used", nullable=True),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("token_hash", sa.String(64), primary_key=True),
    _account(),
    sa.Column("csrf", sa.String(64), nullable=False),
    time_column("created"),
    time_column("seen"),
    time_column("expires"),
)
sa.Index("sessions_by_account", sessions.c.account)

logins = sa.Table(
    "logins",
    metadata,
    id_column(),
    sa.Column("name", sa.String(80), nullable=False),
    sa.Column("address", sa.String(80), nullable=False),
    time_column("at"),
    sa.Column("ok", sa.Integer, nullable=False),
)
sa.Index("logins_by_name", logins.c.name, logins.c.at)
sa.Index("logins_by_address", logins.c.address, logins.c.at)

studies = sa.Table(
    "studies",
    metadata,
    id_column(),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("form", sa.String(40), nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
)

study_items = sa.Table(
    "study_items",
    metadata,
    id_column(),
    sa.Column("study", sa.ForeignKey("studies.id"), nullable=False),
    sa.Column("key", sa.String(1000), nullable=False),
    sa.Column("group_name", sa.Text, nullable=False),
    sa.Column("media", sa.JSON, nullable=False),
    sa.Column("gold", sa.JSON(none_as_null=True)),
    sa.Column("position", sa.Integer, nullable=False),
    sa.UniqueConstraint("study", "key"),
)

versions = sa.Table(
    "versions",
    metadata,
    id_column(),
    sa.Column("item", sa.ForeignKey("study_items.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("body", sa.JSON, nullable=False),
    _account("author", nullable=True),
    time_column("created"),
    sa.Column("why", sa.Text, nullable=False),
    sa.UniqueConstraint("item", "number"),
)

assignments = sa.Table(
    "assignments",
    metadata,
    id_column(),
    sa.Column("item", sa.ForeignKey("study_items.id"), nullable=False),
    _account(),
    sa.Column("position", sa.Integer, nullable=False),
    _role(("reader", "adjudicator")),
    sa.UniqueConstraint("item", "account"),
)
sa.Index("assignments_by_account", assignments.c.account, assignments.c.position)

readings = sa.Table(
    "readings",
    metadata,
    id_column(),
    sa.Column("version", sa.ForeignKey("versions.id"), nullable=False),
    _account(),
    sa.Column("payload", sa.JSON, nullable=False),
    sa.Column("comment", sa.Text, nullable=False, default=""),
    sa.Column("seconds", sa.Float, nullable=False, default=0.0),
    sa.Column("revision", sa.Integer, nullable=False, default=0),
    time_column("saved"),
    time_column("sealed", nullable=True),
    sa.Column("by_page", sa.JSON(none_as_null=True)),
    sa.UniqueConstraint("version", "account"),
)
sa.Index("readings_by_account", readings.c.account)

consensus = sa.Table(
    "consensus",
    metadata,
    sa.Column("version", sa.ForeignKey("versions.id"), primary_key=True),
    sa.Column("payload", sa.JSON, nullable=False),
    _account(nullable=True),  # null: the readings agreed
    sa.Column("reason", sa.Text, nullable=False),
    time_column("at"),
)

trail = sa.Table(
    "trail",
    metadata,
    id_column(),
    time_column("at"),
    _account(nullable=True),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
    sa.Column("previous", sa.String(64), nullable=False, unique=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
)

visible_readings = sa.table("visible_readings", sa.column("viewer", sa.Integer), sa.column("reading", sa.Integer))
"""Which account (`viewer`) may see which reading. Every query that shows a reading joins it, with the viewer's id:

    select(readings).join(visible_readings, visible_readings.c.reading == readings.c.id).where(
        visible_readings.c.viewer == visitor.account
    )

People always see their own readings. Once every assigned reader has sealed a reading of a version, its readings are
visible to those readers, the item's adjudicators, and organisers. Participants and the public see no others.
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
    """Tables beside a store's own, whose version is in the store's `meta` under `key`. Triggers protect the rows of the
    tables in `lasting` from change and deletion, always or under a condition (SQL, of the row `old`); `views` are SQL.
    Stores of the `former` versions get the tables and columns that are new, and the present version.
    """

    what: str
    key: str
    version: int
    tables: tuple[sa.Table, ...]
    lasting: tuple[tuple[str, str], ...] = ()
    views: tuple[str, ...] = ()
    former: tuple[int, ...] = ()

    def prepare(self, engine: sa.Engine) -> None:
        """Creates missing tables and missing newer columns. Raises `InputError` where a newer Proctor wrote them."""
        with reading(engine) as connection:
            if self._stored(connection) == str(self.version) and self._are_complete(connection):
                return
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("lock table meta in share row exclusive mode"))  # one process creates
            if self._stored(connection) is not None:
                self._create(connection)
                _add_new_columns(connection, self.tables)
                present = sa.update(store_meta).where(store_meta.c.key == self.key)
                connection.execute(present.values(value=str(self.version)))
                return
            self._create(connection)
            for statement in (*self.views, *_triggers(connection, self.lasting)):
                connection.execute(sa.text(statement))
            connection.execute(sa.insert(store_meta).values(key=self.key, value=str(self.version)))

    def are_in(self, engine: sa.Engine) -> bool:
        """Whether a store has these tables. Raises `InputError` where a newer Proctor wrote them."""
        with reading(engine) as connection:
            return self._stored(connection) is not None

    def _create(self, connection: sa.Connection) -> None:
        self.tables[0].metadata.create_all(connection, tables=self.tables)

    def _are_complete(self, connection: sa.Connection) -> bool:
        """Whether the tables and columns that are newer than the store are there, too."""
        known = set(sa.inspect(connection).get_table_names())
        return known.issuperset(table.name for table in self.tables) and not _new_columns(connection, self.tables)

    def _stored(self, connection: sa.Connection) -> str | None:
        """The version that is stored; None where there are no tables yet."""
        version = connection.execute(sa.select(store_meta.c.value).where(store_meta.c.key == self.key)).scalar()
        if version is not None and version not in map(str, (self.version, *self.former)):
            raise InputError(
                shown_url(str(connection.engine.url)),
                found=f"{self.what} of version {version[:20]}",
                expected=f"version {self.version}: update Proctor to open it",
            )
        return None if version is None else str(version)


ACCOUNT_TABLES = StoredTables(
    "accounts", "accounts_version", 1, (accounts, invitations, sessions, logins, trail), (("trail", ""),)
)
"""The tables of every site."""

REVIEW_TABLES = StoredTables(
    "a review",
    "web_version",
    1,
    (studies, study_items, versions, assignments, readings, consensus),
    (("versions", ""), ("readings", "old.sealed is not null")),
    (_VISIBLE_READINGS,),
)
"""A review's own tables."""


def _new_columns(connection: sa.Connection, tables: tuple[sa.Table, ...]) -> list[sa.Column[object]]:
    """Columns that are newer than the stored tables. They are nullable, so that an older Proctor can go on, too."""
    inspector = sa.inspect(connection)
    known = {table.name: {found["name"] for found in inspector.get_columns(table.name)} for table in tables}
    return [column for table in tables for column in table.columns if column.name not in known[table.name]]


def _add_new_columns(connection: sa.Connection, tables: tuple[sa.Table, ...]) -> None:
    for new in _new_columns(connection, tables):
        kind = new.type.compile(connection.dialect)
        connection.execute(sa.text(f"alter table {new.table.name} add column {new.name} {kind}"))


def prepare_accounts(engine: sa.Engine) -> None:
    """Creates the tables of accounts and the trail where they are missing.

    Raises `InputError` where a newer Proctor wrote them.
    """
    ACCOUNT_TABLES.prepare(engine)


def prepare(engine: sa.Engine) -> None:
    """Creates a review's tables, view and triggers where they are missing.

    Raises `InputError` where a newer Proctor wrote them.
    """
    prepare_accounts(engine)
    REVIEW_TABLES.prepare(engine)


@contextmanager
def one_connection(engine: sa.Engine, *, reading: bool = False) -> Iterator[sa.Connection]:
    """A connection with one transaction; afterwards the engine is disposed."""
    try:
        with engine.connect().execution_options(reading=reading) as connection, connection.begin():
            yield connection
    finally:
        engine.dispose()


def one_at_a_time(connection: sa.Connection, what: str) -> None:
    """Waits until no other transaction that does the same is under way, so that what is read stays true until it is
    written. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("select pg_advisory_xact_lock(hashtext(:what))"), {"what": f"proctor {what}"})


def utc_text(at: datetime) -> str:
    """A time as all tables store it: texts sort as times do.

    >>> utc_text(datetime(2026, 11, 23, 9, tzinfo=UTC))
    '2026-11-23T09:00:00.000+00:00'
    """
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def new_token() -> str:
    """A random secret for a link or a cookie."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """The hash by which a secret is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


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
