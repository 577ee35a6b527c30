"""The tables of a challenge, in the same database as accounts, sessions and the trail. It never holds references,
hidden questions or answers to them.

Times are UTC in ISO 8601 (`proctor.web.utc_text`). Rows of `events`, `openings`, `results` and `receipts` are never
changed or deleted.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from proctor.runs import id_column, time_column

CHALLENGE_VERSION = 1

metadata = MetaData()


teams = Table(
    "teams",
    metadata,
    id_column(),
    Column("name", String(80), nullable=False, unique=True),
    Column("folded", String(80), nullable=False, unique=True),  # case-folded, so that no two look alike
    Column("institution", String(200), nullable=False),
    Column("country", String(2), nullable=False),
    Column("eligible", Integer, nullable=False, default=1),  # for awards
    Column("listed", Integer, nullable=False, default=1),  # its results may be made public
    Column("terms", String(64), nullable=False),  # SHA-256 of the terms it agreed to
    Column("join_hash", String(64), nullable=False, unique=True),  # of the secret by which members join
    time_column("created"),
    time_column("withdrawn", nullable=True),
)

members = Table(
    "members",
    metadata,
    Column("account", Integer, primary_key=True),  # of `accounts`: a person is in one team
    Column("team", ForeignKey("teams.id"), nullable=False),
    time_column("joined"),
)
Index("members_by_team", members.c.team)

submissions = Table(
    "submissions",
    metadata,
    id_column(),
    Column("team", ForeignKey("teams.id"), nullable=False),
    Column("account", Integer, nullable=False),
    Column("phase", String(80), nullable=False),
    Column("number", Integer, nullable=False),  # of the team in the phase, from 1
    Column("kind", String(10), nullable=False),  # file, image
    Column("name", String(200), nullable=False),  # given by its team
    Column("description", Text, nullable=False, default=""),
    Column("upload", String(64), nullable=False),  # SHA-256 of the bytes, which are its file's name
    Column("suffix", String(16), nullable=False, default=""),  # of its file's name, for readers that depend on it
    Column("bytes", BigInteger, nullable=False),
    Column("image_digest", String(80), nullable=False, default=""),
    Column("seed", Integer, nullable=False),  # of the order of its questions
    Column("state", String(20), nullable=False),
    Column("fault", String(20), nullable=False),
    Column("reason", Text, nullable=False, default=""),  # for its team: a key of `REASONS`
    Column("attempted", Integer, nullable=False, default=0),
    Column("scored", Integer, nullable=False, default=0),
    Column("requeued", Integer, nullable=False, default=0),
    Column("worker", String(200), nullable=False, default=""),
    Column(
        "fence", Integer, nullable=False, default=0
    ),  # grows with each lease; a worker with an older one can't write
    time_column("lease_until", nullable=True),
    Column("progress", JSON),  # questions by status: counts alone
    Column("log", JSON),  # the blind log
    Column("disqualified", Text),  # the reason, if an organiser disqualified it
    time_column("submitted"),
    time_column("changed"),
    UniqueConstraint("team", "phase", "number"),
)
Index("submissions_by_state", submissions.c.state, submissions.c.id)

quotas = Table(
    "quotas",
    metadata,
    Column("team", ForeignKey("teams.id"), primary_key=True),
    Column("phase", String(80), primary_key=True),
    Column("submitted", Integer, nullable=False, default=0),  # all uploads; numbers them
    Column("holding", Integer, nullable=False, default=0),  # in the states `HOLDING`
    Column("attempted", Integer, nullable=False, default=0),
    Column("scored", Integer, nullable=False, default=0),
)

events = Table(
    "events",
    metadata,
    id_column(),
    Column("submission", ForeignKey("submissions.id"), nullable=False),
    time_column("at"),
    Column("before", String(20), nullable=False),
    Column("after", String(20), nullable=False),
    Column("worker", String(200), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("reason", Text, nullable=False),
)
Index("events_by_submission", events.c.submission, events.c.id)

openings = Table(
    "openings",
    metadata,
    id_column(),
    Column("phase", String(80), nullable=False),
    Column("state", String(10), nullable=False),  # open, closed: the newest of a phase holds
    Column("commitment", String(64), nullable=False),  # to questions, references and rules
    Column("checks", JSON, nullable=False),  # that it passed, one line each
    time_column("at"),
)
Index("openings_by_phase", openings.c.phase, openings.c.id)

scorers = Table(
    "scorers",
    metadata,
    Column("version", Integer, primary_key=True),
    time_column("at"),
    Column("fingerprint", String(64), nullable=False),  # of the code, judge and references that mark
    Column("why", Text, nullable=False),
)

results = Table(
    "results",
    metadata,
    Column("submission", ForeignKey("submissions.id"), primary_key=True),
    Column("scorer", ForeignKey("scorers.version"), primary_key=True),
    Column("figures", JSON, nullable=False),  # aggregates: mean by board with interval, counts by status, seconds
    time_column("at"),
)

boards = Table(
    "boards",
    metadata,
    id_column(),
    Column("phase", String(80), nullable=False),
    Column("scorer", ForeignKey("scorers.version"), nullable=False),
    Column("content", JSON, nullable=False),  # as shown: rounded, without rows per question
    time_column("at"),
)
Index("boards_by_phase", boards.c.phase, boards.c.id)

receipts = Table(
    "receipts",
    metadata,
    Column("submission", ForeignKey("submissions.id"), primary_key=True),
    Column("scorer", ForeignKey("scorers.version"), primary_key=True),
    Column("content", JSON, nullable=False),
    Column("signature", String(128), nullable=False),
)
