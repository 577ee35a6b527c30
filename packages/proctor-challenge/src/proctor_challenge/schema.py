"""The tables of a challenge, in the same database as accounts, sessions and the trail. It never holds references,
hidden questions or answers to them.

Times are UTC in ISO 8601 (`proctor_web.utc_text`). Rows of `events`, `openings`, `results` and `receipts` are never
changed or deleted.
"""

from __future__ import annotations

import sqlalchemy as sa

from proctor.runs import id_column, time_column

CHALLENGE_VERSION = 2

metadata = sa.MetaData()


teams = sa.Table(
    "teams",
    metadata,
    id_column(),
    sa.Column("name", sa.String(80), nullable=False, unique=True),
    sa.Column("folded", sa.String(80), nullable=False, unique=True),  # case-folded, so that no two look alike
    sa.Column("institution", sa.String(200), nullable=False),
    sa.Column("country", sa.String(2), nullable=False),
    sa.Column("eligible", sa.Integer, nullable=False, default=1),  # for awards
    sa.Column("listed", sa.Integer, nullable=False, default=1),  # its results may be made public
    sa.Column("terms", sa.String(64), nullable=False),  # SHA-256 of the terms it agreed to
    sa.Column("join_hash", sa.String(64), nullable=False, unique=True),  # of the secret by which members join
    time_column("created"),
    time_column("withdrawn", nullable=True),
    sa.Column("disqualified", sa.Text),  # the reason, if an organiser withdrew it with one
)

members = sa.Table(
    "members",
    metadata,
    sa.Column("account", sa.Integer, primary_key=True),  # of `accounts`: a person is in one team
    sa.Column("team", sa.ForeignKey("teams.id"), nullable=False),
    time_column("joined"),
)
sa.Index("members_by_team", members.c.team)

submissions = sa.Table(
    "submissions",
    metadata,
    id_column(),
    sa.Column("team", sa.ForeignKey("teams.id"), nullable=False),
    sa.Column("account", sa.Integer, nullable=False),
    sa.Column("phase", sa.String(80), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),  # of the team in the phase, from 1
    sa.Column("kind", sa.String(10), nullable=False),  # file, image
    sa.Column("name", sa.String(200), nullable=False),  # given by its team
    sa.Column("description", sa.Text, nullable=False, default=""),
    sa.Column("upload", sa.String(64), nullable=False),  # SHA-256 of the bytes, which are its file's name
    sa.Column("suffix", sa.String(16), nullable=False, default=""),  # of its file's name, for readers that depend on it
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("image_digest", sa.String(80), nullable=False, default=""),
    sa.Column("seed", sa.Integer, nullable=False),  # of the order of its questions
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("fault", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False, default=""),  # for its team: a key of `REASONS`
    sa.Column("attempted", sa.Integer, nullable=False, default=0),
    sa.Column("scored", sa.Integer, nullable=False, default=0),
    sa.Column("requeued", sa.Integer, nullable=False, default=0),
    sa.Column("worker", sa.String(200), nullable=False, default=""),
    sa.Column(
        "fence", sa.Integer, nullable=False, default=0
    ),  # grows with each lease; a worker with an older one can't write
    sa.Column("lease_until", sa.Float),  # seconds since 1970 by the database's clock
    sa.Column("progress", sa.JSON),  # questions by status: counts alone
    sa.Column("log", sa.JSON),  # the blind log
    sa.Column("disqualified", sa.Text),  # the reason, if an organiser disqualified it
    time_column("submitted"),
    time_column("changed"),
    sa.UniqueConstraint("team", "phase", "number"),
)
sa.Index("submissions_by_state", submissions.c.state, submissions.c.id)

descriptions = sa.Table(
    "descriptions",  # of methods, one after the other: see `proctor_challenge.descriptions` for which one counts
    metadata,
    id_column(),
    sa.Column("team", sa.ForeignKey("teams.id"), nullable=False),
    sa.Column("account", sa.Integer, nullable=False),
    sa.Column("phase", sa.String(80), nullable=False),
    sa.Column("kind", sa.String(10), nullable=False),  # text, pdf
    sa.Column("name", sa.String(200), nullable=False),  # of its file, given by its team
    sa.Column("upload", sa.String(64), nullable=False),  # SHA-256 of the bytes, which are its file's name
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("insufficient", sa.Text),  # why an organiser ruled that it does not suffice
    time_column("submitted"),
)
sa.Index("descriptions_by_team", descriptions.c.team, descriptions.c.phase, descriptions.c.id)

quotas = sa.Table(
    "quotas",
    metadata,
    sa.Column("team", sa.ForeignKey("teams.id"), primary_key=True),
    sa.Column("phase", sa.String(80), primary_key=True),
    sa.Column("submitted", sa.Integer, nullable=False, default=0),  # all uploads; numbers them
    sa.Column("holding", sa.Integer, nullable=False, default=0),  # in the states `HOLDING`
    sa.Column("attempted", sa.Integer, nullable=False, default=0),
    sa.Column("scored", sa.Integer, nullable=False, default=0),
)

account_charges = sa.Table(
    "account_charges",  # submissions of former teams that count for the quota of their former members
    metadata,
    sa.Column("account", sa.Integer, primary_key=True),
    sa.Column("submission", sa.ForeignKey("submissions.id"), primary_key=True),
)

team_charges = sa.Table(
    "team_charges",  # submissions of other teams that count for this team's quota, since a member came with them
    metadata,
    sa.Column("team", sa.ForeignKey("teams.id"), primary_key=True),
    sa.Column("submission", sa.ForeignKey("submissions.id"), primary_key=True),
)

events = sa.Table(
    "events",
    metadata,
    id_column(),
    sa.Column("submission", sa.ForeignKey("submissions.id"), nullable=False),
    time_column("at"),
    sa.Column("before", sa.String(20), nullable=False),
    sa.Column("after", sa.String(20), nullable=False),
    sa.Column("worker", sa.String(200), nullable=False),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)
sa.Index("events_by_submission", events.c.submission, events.c.id)

openings = sa.Table(
    "openings",
    metadata,
    id_column(),
    sa.Column("phase", sa.String(80), nullable=False),
    sa.Column("state", sa.String(10), nullable=False),  # open, closed: the newest of a phase holds
    sa.Column("commitment", sa.String(64), nullable=False),  # to questions, references and rules
    sa.Column("checks", sa.JSON, nullable=False),  # that it passed, one line each
    time_column("at"),
)
sa.Index("openings_by_phase", openings.c.phase, openings.c.id)

scorers = sa.Table(
    "scorers",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True),
    time_column("at"),
    sa.Column("fingerprint", sa.String(64), nullable=False),  # of the code, judge and references that score
    sa.Column("why", sa.Text, nullable=False),
)

results = sa.Table(
    "results",
    metadata,
    sa.Column("submission", sa.ForeignKey("submissions.id"), primary_key=True),
    sa.Column("scorer", sa.ForeignKey("scorers.version"), primary_key=True),
    sa.Column("figures", sa.JSON, nullable=False),  # aggregates: mean by board with interval, counts by status, seconds
    time_column("at"),
)

boards = sa.Table(
    "boards",
    metadata,
    id_column(),
    sa.Column("phase", sa.String(80), nullable=False),
    sa.Column("scorer", sa.ForeignKey("scorers.version"), nullable=False),
    sa.Column("content", sa.JSON, nullable=False),  # as shown: rounded, without rows per question
    time_column("at"),
)
sa.Index("boards_by_phase", boards.c.phase, boards.c.id)

receipts = sa.Table(
    "receipts",
    metadata,
    sa.Column("submission", sa.ForeignKey("submissions.id"), primary_key=True),
    sa.Column("scorer", sa.ForeignKey("scorers.version"), primary_key=True),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Column("signature", sa.String(128), nullable=False),
)
