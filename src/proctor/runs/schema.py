"""What a store keeps: its tables, a benchmark's card, records as rows and back, and the steps from older tables.

A change to the tables raises VERSION and adds the step from the old version to `STEPS`.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, JsonValue
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    select,
    update,
)

from proctor.core import (
    Answer,
    Benchmark,
    Excerpt,
    FailedPolicy,
    InputError,
    Item,
    Judgement,
    Metric,
    PublishedTable,
    RatingScheme,
    Score,
    Status,
    Timing,
    Usage,
    clean,
    count_of,
    kept_text,
    unfit,
)
from proctor.runs.bulk import in_parts, insert_rows

if TYPE_CHECKING:
    from alembic.operations import Operations

VERSION = 2

metadata = MetaData()


def id_column() -> Column[int]:
    """The primary key `id` of a table."""
    return Column("id", Integer, primary_key=True)


def time_column(name: str, *, nullable: bool = False) -> Column[str]:
    """A column for times in ISO 8601."""
    return Column(name, String(40), nullable=nullable)


meta = Table("meta", metadata, Column("key", String(40), primary_key=True), Column("value", Text, nullable=False))

benchmarks = Table(
    "benchmarks",
    metadata,
    id_column(),
    Column("name", String(200), nullable=False, unique=True),
    Column("fingerprint", String(64), nullable=False),
    Column("card", JSON, nullable=False),
)

items = Table(
    "items",
    metadata,
    id_column(),
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
    id_column(),
    Column("benchmark", ForeignKey("benchmarks.id"), nullable=False),
    Column("system", Text, nullable=False),
    Column("condition", String(80), nullable=False),
    Column("settings", JSON, nullable=False),
    time_column("created"),
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
    id_column(),
    Column("key", String(64), nullable=False, unique=True),
    Column("judge", Text, nullable=False),
    Column("item", Text, nullable=False),
    Column("body", Text, nullable=False),
)

Index("votes_by_item", votes.c.item)

claims = Table(
    "claims",  # who of several workers asks which item
    metadata,
    Column("run", Integer, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("worker", String(64), nullable=False),
    Column("until", Float, nullable=False),
)

Index("claims_by_worker", claims.c.worker)

parcels = Table(
    "parcels",  # texts that workers need, by their content: orders, prompts, lists of media
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("body", Text, nullable=False),
)

orders = Table(
    "orders",  # how a shared run is asked, so that a worker needs nothing but the store; and how many items it has
    metadata,
    Column("run", Integer, primary_key=True),
    Column("parcel", String(64), nullable=False),
    Column("items", Integer, nullable=False),
)


class Ruling(BaseModel):
    """A person's decision to disqualify a system, with reason and time (UTC, ISO 8601); `lifted` and `lifted_because`
    say when and why it was reversed."""

    model_config = ConfigDict(defer_build=True, frozen=True)

    system: str
    reason: str
    since: str
    lifted: str = ""
    lifted_because: str = ""

    def __str__(self) -> str:
        """
        >>> str(Ruling(system="team-a", reason="it addressed the judge", since="2026-08-01T10:00:00+00:00"))
        'team-a since 2026-08-01 (it addressed the judge)'
        """
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.system} since {self.since[:10]}{why}"


class BenchmarkCard(BaseModel):
    """What results and reports need of a benchmark besides its items."""

    model_config = ConfigDict(defer_build=True, frozen=True)

    name: str
    title: str
    metrics: tuple[Metric, ...]
    headline: str
    facets: tuple[str, ...]
    conditions: tuple[str, ...]
    only: dict[str, JsonValue]
    seeds: dict[str, int]
    notes: tuple[str, ...]
    simulated: bool
    buckets: tuple[str, ...] = ()
    relevance: str = ""
    published: PublishedTable | None = None
    failed: FailedPolicy | None = None
    excerpts: dict[str, Excerpt] = {}
    rating: RatingScheme | None = None
    judge: str = ""
    budget_s: float | None = None
    reading: tuple[str, ...] = ()  # the notes on how files were read
    chance: dict[str, float] = {}  # the chance level on the items that count by metric, where it is known

    own: tuple[str, ...] = ()  # names of the benchmark's own metrics; the others come from scorers

    scorers: dict[str, dict[str, JsonValue]] = {}
    """The settings of each scorer by its name, without the addresses of servers. Scorers of older stores are missing."""

    folders: dict[str, str] = {}
    """Where the files were on this machine at the last run or import: `data`, `media`; and the `track`."""

    rulings: tuple[Ruling, ...] = ()  # all disqualifications, reversed ones included

    @property
    def disqualified(self) -> dict[str, Ruling]:
        """The disqualified systems, each with its ruling."""
        return {one.system: one for one in self.rulings if not one.lifted}

    def metric(self, name: str) -> Metric:
        """The declaration of a metric; a plain one where it is unknown."""
        known = {metric.name: metric for metric in self.metrics}
        return known.get(name, Metric(name, name))

    def counts(self, item: Item) -> bool:
        """Whether an item counts (see `Benchmark.only`)."""
        return all(item.tags.get(tag) == value for tag, value in self.only.items())

    def with_metrics(self, metrics: Sequence[Metric]) -> BenchmarkCard:
        """The card with further metrics. A metric that it has already keeps its declaration, and gets the formats of both:
        a judge gives the accuracy of answers that code can't compare."""
        given = {metric.name: metric for metric in metrics}
        known = tuple(_widened(metric, given.pop(metric.name, metric)) for metric in self.metrics)
        return self.model_copy(update={"metrics": (*known, *given.values())})


def _widened(metric: Metric, other: Metric) -> Metric:
    if not metric.formats or not other.formats:
        return replace(metric, formats=())
    more = tuple(kind for kind in other.formats if kind not in metric.formats)
    return replace(metric, formats=metric.formats + more)


def card_of(benchmark: Benchmark) -> BenchmarkCard:
    from proctor.metrics import chance_level, graded_metrics

    counted = benchmark.counted()
    known = {metric.name for metric in benchmark.metrics}
    more = [metric for scorer in benchmark.scorers for metric in scorer.metrics if metric.name not in known]
    kinds = {item.answer.kind for item in benchmark.items}
    known |= {metric.name for metric in more}
    more += [metric for metric in graded_metrics(kinds) if metric.name not in known]
    metrics = (*benchmark.metrics, *more)
    levels = {metric.name: chance_level(metric, counted) for metric in metrics}
    made = {"metrics", "excerpts", "chance", "own", "scorers", "folders", "rulings"}
    same = set(BenchmarkCard.model_fields) - made
    return BenchmarkCard(
        **{name: getattr(benchmark, name) for name in same},
        metrics=metrics,
        own=tuple(metric.name for metric in metrics),
        excerpts=dict(benchmark.excerpts),
        chance={name: level for name, level in levels.items() if level is not None},
    )


def tags_text(item: Item) -> str:
    """Tags as canonical JSON: equal tags give equal texts."""
    return json.dumps(item.model_dump(mode="json")["tags"], sort_keys=True, ensure_ascii=False)


def answer_row(run_id: int, item_number: int, answer: Answer) -> dict[str, Any]:
    return {
        "run": run_id,
        "item": item_number,
        "status": answer.status.value,
        "readable": int(answer.parsed is not None),
        "text": answer.text,
        "parsed": json.dumps(answer.parsed),
        "problem": answer.problem,
        "reason": answer.reason,
        **vars(answer.usage),
        **(dict.fromkeys(Timing.model_fields) if answer.timing is None else vars(answer.timing)),
        "extra": json.dumps(answer.extra),
    }


def answer_from_row(item_id: str, row: Mapping[Any, Any]) -> Answer:
    timing = None
    if row["model_s"] is not None:
        timing = Timing(**{name: row[name] for name in Timing.model_fields})
    return Answer(
        item_id=item_id,
        text=row["text"],
        parsed=json.loads(row["parsed"]),
        problem=row["problem"],
        status=Status(row["status"]),
        reason=row["reason"],
        usage=Usage(**{name: row[name] for name in Usage.model_fields}),
        timing=timing,
        extra=json.loads(row["extra"]),
    )


def score_row(run_id: int, item_number: int, score: Score) -> dict[str, Any]:
    row = {"run": run_id, "item": item_number, **vars(score)}
    del row["item_id"]
    return row


def vote_row(vote: Judgement) -> dict[str, Any]:
    return {"key": vote.key, "judge": vote.judge, "item": vote.item_id, "body": vote.model_dump_json()}


def kept_votes(connection: Connection, keys: Iterable[str]) -> list[Judgement]:
    """The judgements with these keys, as far as they are stored."""
    wanted = (votes.c.key.in_(part) for part in in_parts(sorted(set(keys))))
    bodies = (connection.scalars(select(votes.c.body).where(part)) for part in wanted)
    return [Judgement.model_validate_json(body) for some in bodies for body in some]


def write_card(connection: Connection, benchmark: int, card: BenchmarkCard) -> None:
    table = benchmarks
    values = {"card": card.model_dump(mode="json")}
    connection.execute(update(table).where(table.c.id == benchmark).values(values))


def check_text(place: str, text: str) -> None:
    """Raises `InputError` for a name that SQLite or PostgreSQL can't store."""
    if found := unfit(text):
        raise InputError(place, found=f"{found} in {kept_text(text)!r}", expected="a name that can be kept")


def check_name(place: str, name: str) -> None:
    """As `check_text`, for the name of a system or a condition, which must have a visible character."""
    check_text(place, name)
    if not any(unicodedata.category(one)[0] not in "CZ" for one in name):
        raise InputError(place, found=repr(name[:80]), expected="a name that can be seen")


def check_given_name(name: str) -> None:
    """As `check_name`, for a name that a person or a file gives a system: control characters are refused."""
    check_name("the system's name", name)
    if clean(name) != name or {"\n", "\t"} & set(name):
        expected = "a name without control characters"
        raise InputError("the system's name", found=repr(name[:80]), expected=expected)


def check_texts(benchmark: Benchmark) -> None:
    """Raises `InputError` for a name of a benchmark or its items that can't be stored, repeated ids, and lone surrogates
    anywhere in the items."""
    check_text("the benchmark's name", benchmark.name)
    twice = [name for name, count in Counter(item.id for item in benchmark.items).items() if count > 1]
    if twice:
        raise InputError(benchmark.name, found=f"ids twice: {', '.join(twice[:3])}", expected="each id once")
    for item in benchmark.items:
        place = f"item {kept_text(item.id)!r}"
        for field, text in (("id", item.id), ("group", item.group), *(("tags", name) for name in item.tags)):
            check_text(f"{place}, field {field!r}", text)
        try:
            item.model_dump_json()
        except ValueError as error:
            raise InputError(
                place, found="half a character (a lone surrogate)", expected="text that can be kept"
            ) from error


def benchmark_row(connection: Connection, name: str) -> RowMapping | None:
    table = benchmarks
    return connection.execute(select(table).where(table.c.name == name)).mappings().first()


def insert_benchmark(connection: Connection, benchmark: Benchmark, fingerprint: str, card: dict[str, Any]) -> None:
    table = benchmarks
    values = {"name": benchmark.name, "fingerprint": fingerprint, "card": card}
    number = connection.execute(insert(table).values(values).returning(table.c.id)).scalar_one()
    rows = [
        {
            "benchmark": number,
            "position": position,
            "item": item.id,
            "group_name": item.group,
            "format": item.answer.kind,
            "tags": tags_text(item),
            "body": item.model_dump_json(),
        }
        for position, item in enumerate(benchmark.items)
    ]
    insert_rows(connection, items, rows)


def difference(connection: Connection, benchmark_id: int, benchmark: Benchmark) -> str:
    table = items
    query = select(table.c.item, table.c.body).where(table.c.benchmark == benchmark_id)
    old = {row.item: row.body for row in connection.execute(query)}
    new = {item.id: item.model_dump_json() for item in benchmark.items}
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return f"changed: {count_of(len(changed), 'item')}, first {changed[0]}" if changed else "in order only"


def migrate(connection: Connection, version: int) -> None:
    """Upgrades the tables from `version` to VERSION in the connection's transaction: all steps, or none."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    operations = Operations(MigrationContext.configure(connection))
    for number in range(version, VERSION):
        STEPS[number](operations)
    own = meta.c.key == "version"
    connection.execute(update(meta).where(own).values(value=str(VERSION)))


def _shared_runs(operations: Operations) -> None:
    """From 1 to 2: tables for shared runs. Stores of version 1 that were shared have some of them."""
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
"""The step from each version to the next. A step never changes once it has been released, whatever the tables above are."""
