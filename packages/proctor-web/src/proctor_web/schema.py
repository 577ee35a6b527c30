"""The tables of accounts and of a review, in the store's database. Times are UTC in ISO 8601.

`site_tables` creates them, `visibility` says who may see which reading.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal, get_args

import sqlalchemy as sa

from proctor.runs import id_column, time_column

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
    sa.Column("name_hash", sa.String(64), nullable=False),  # of what was typed, known or not: `keyed_hash`
    _account(nullable=True),  # null: no account has the name
    sa.Column("address", sa.String(80), nullable=False),
    time_column("at"),
    sa.Column("ok", sa.Integer, nullable=False),
)
sa.Index("logins_by_name", logins.c.name_hash, logins.c.at)
sa.Index("logins_by_account", logins.c.account)
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
    sa.Column("person", sa.String(40)),  # the pseudonym; null: the shell, or nobody (readings that agree)
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
    sa.Column("previous", sa.String(64), nullable=False, unique=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
)


@contextmanager
def one_connection(engine: sa.Engine, *, reading: bool = False) -> Iterator[sa.Connection]:
    """A connection with one transaction; afterwards the engine is disposed."""
    try:
        with engine.connect().execution_options(reading=reading) as connection, connection.begin():
            yield connection
    finally:
        engine.dispose()


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


def keyed_hash(key: str, text: str) -> str:
    """The hash by which a text is stored that could be guessed, such as a name: without the key, which is not in the
    database, nobody can try names against it.

    >>> keyed_hash("a key", "anna") == keyed_hash("a key", "anna"), keyed_hash("a key", "anna") == token_hash("anna")
    (True, False)
    """
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
