"""The tables of a store. A change to them raises VERSION and writes the step from the old one."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

VERSION = 1

metadata = MetaData()

meta = Table("meta", metadata, Column("key", String(40), primary_key=True), Column("value", Text, nullable=False))

benchmarks = Table(
    "benchmarks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("fingerprint", String(64), nullable=False),
    Column("card", JSON, nullable=False),
)

items = Table(
    "items",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("benchmark", ForeignKey("benchmarks.id"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("item", Text, nullable=False),
    Column("group_name", Text, nullable=False),
    Column("format", String(40), nullable=False),
    Column("tags", Text, nullable=False),
    Column("body", Text, nullable=False),
    UniqueConstraint("benchmark", "item"),
)

flags = Table(
    "flags",
    metadata,
    Column("item", ForeignKey("items.id"), primary_key=True),
    Column("name", String(80), primary_key=True),
    Column("value", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("benchmark", ForeignKey("benchmarks.id"), nullable=False),
    Column("system", Text, nullable=False),
    Column("condition", String(80), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("created", String(40), nullable=False),
    Column("owner", Text, nullable=False, default=""),
    Column("owner_seen", Float, nullable=False, default=0.0),
    UniqueConstraint("benchmark", "system", "condition"),
)

answers = Table(
    "answers",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("item", ForeignKey("items.id"), primary_key=True),
    Column("status", String(12), nullable=False),
    Column("readable", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("parsed", Text, nullable=False),
    Column("problem", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("cost_usd", Float),
    Column("model_s", Float),
    Column("media_s", Float),
    Column("queue_s", Float),
    Column("retry_s", Float),
    Column("extra", Text, nullable=False),
    sqlite_with_rowid=False,
)

scores = Table(
    "scores",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("metric", String(120), primary_key=True),
    Column("scorer", String(200), primary_key=True),
    Column("item", ForeignKey("items.id"), primary_key=True),
    Column("value", Float, nullable=False),
    Column("label", Text, nullable=False),
    Column("vote_key", String(64), nullable=False),
    sqlite_with_rowid=False,
)

votes = Table(
    "votes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String(64), nullable=False, unique=True),
    Column("judge", Text, nullable=False),
    Column("item", Text, nullable=False),
    Column("body", Text, nullable=False),
)

Index("votes_by_item", votes.c.item)
