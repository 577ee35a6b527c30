"""What a store keeps: its tables, a benchmark's card, records as rows and back.

A change to the tables raises VERSION; stores of any other version are refused (`StoredTables`). An answer's key is
(run, item, repetition), and its scores, claims and content carry the same key: several answers of a system to one item
differ in the repetition alone, which counts from 0. Where a judge was asked several times for each answer, a score is the
mean of its single ones, which are in `judge_scores` (`runs.judge_work`).
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, JsonValue

from proctor import core
from proctor.runs.bulk_sql import in_parts, insert_rows
from proctor.runs.tables import STORE_KEY, StoredTables, id_column, time_column

VERSION = 4

REJECTED = "rejected"
"""The key of an answer's `extra` for a rejection that a retry can't resolve: the kind of `ProctorError.rejected`."""

MODEL = "model"
"""The key of an answer's `extra` for the model's name as the server gives it."""

metadata = sa.MetaData()


meta = sa.Table(
    "meta", metadata, sa.Column("key", sa.String(40), primary_key=True), sa.Column("value", sa.Text, nullable=False)
)

benchmarks = sa.Table(
    "benchmarks",
    metadata,
    id_column(),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("card", sa.JSON, nullable=False),
)

items = sa.Table(
    "items",
    metadata,
    id_column(),
    sa.Column("benchmark", sa.ForeignKey("benchmarks.id"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("group_name", sa.Text, nullable=False),
    sa.Column("format", sa.String(40), nullable=False),
    sa.Column("tags", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.UniqueConstraint("benchmark", "item"),
)

flags = sa.Table(
    "flags",
    metadata,
    sa.Column("item", sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("name", sa.String(80), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

runs = sa.Table(
    "runs",
    metadata,
    id_column(),
    sa.Column("benchmark", sa.ForeignKey("benchmarks.id"), nullable=False),
    sa.Column("system", sa.Text, nullable=False),
    sa.Column("condition", sa.String(80), nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    time_column("created"),
    sa.Column("owner", sa.Text, nullable=False, default=""),
    sa.Column("owned_until", sa.Float, nullable=False, default=0.0),
    sa.UniqueConstraint("benchmark", "system", "condition"),
)

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("run", sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("item", sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("repetition", sa.Integer, primary_key=True),
    sa.Column("status", sa.String(12), nullable=False),
    sa.Column("readable", sa.Integer, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("parsed", sa.Text, nullable=False),
    sa.Column("problem", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("input_tokens", sa.Integer, nullable=False),
    sa.Column("output_tokens", sa.Integer, nullable=False),
    sa.Column("cached_tokens", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Float),
    sa.Column("model_s", sa.Float),
    sa.Column("media_s", sa.Float),
    sa.Column("queue_s", sa.Float),
    sa.Column("retry_s", sa.Float),
    sa.Column("extra", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)

scores = sa.Table(
    "scores",
    metadata,
    sa.Column("run", sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("metric", sa.String(120), primary_key=True),
    sa.Column("scorer", sa.String(200), primary_key=True),
    sa.Column("item", sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("repetition", sa.Integer, primary_key=True),
    sa.Column("value", sa.Float, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("judgement_key", sa.String(64), nullable=False),
    sqlite_with_rowid=False,
)

judge_scores = sa.Table(
    "judge_scores",  # the single scores behind those that are a mean over a judge's repetitions
    metadata,
    sa.Column("run", sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("metric", sa.String(120), primary_key=True),
    sa.Column("scorer", sa.String(200), primary_key=True),
    sa.Column("item", sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("repetition", sa.Integer, primary_key=True),
    sa.Column("judge_repetition", sa.Integer, primary_key=True),
    sa.Column("value", sa.Float, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("judgement_key", sa.String(64), nullable=False),
    sqlite_with_rowid=False,
)

judgements = sa.Table(
    "judgements",
    metadata,
    id_column(),
    sa.Column("key", sa.String(64), nullable=False, unique=True),
    sa.Column("judge", sa.Text, nullable=False),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)

sa.Index("judgements_by_item", judgements.c.item)

claims = sa.Table(
    "claims",  # who of several workers asks which item
    metadata,
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("item", sa.Integer, primary_key=True),
    sa.Column("repetition", sa.Integer, primary_key=True),
    sa.Column("worker", sa.String(64), nullable=False),
    sa.Column("until", sa.Float, nullable=False),
)

sa.Index("claims_by_worker", claims.c.worker)

parcels = sa.Table(
    "parcels",  # texts that workers need, by their content: orders, prompts, lists of media
    metadata,
    sa.Column("sha256", sa.String(64), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)

orders = sa.Table(
    "orders",  # how a shared run is asked, so that a worker needs nothing but the store; and how many answers it wants
    metadata,
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("parcel", sa.String(64), nullable=False),
    sa.Column("answers", sa.Integer, nullable=False),
)

STORE = StoredTables(
    "a store", STORE_KEY, VERSION, tuple(metadata.tables.values()), again="make it again (proctor run, proctor import)"
)
"""A store's own tables."""


def repetition_of(table: sa.Table, run_id: int, repetition: int = 0) -> sa.ColumnElement[bool]:
    """The condition of a run's rows of `answers`, `scores` or `judge_scores` that belong to one repetition: at most one answer per item."""
    return (table.c.run == run_id) & (table.c.repetition == repetition)


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
    metrics: tuple[core.Metric, ...]
    headline: str
    facets: tuple[str, ...]
    conditions: tuple[str, ...]
    only: dict[str, JsonValue]
    seeds: dict[str, int]
    notes: tuple[str, ...]
    simulated: bool
    buckets: tuple[str, ...] = ()
    relevance: str = ""
    published: core.PublishedTable | None = None
    failed: core.FailedPolicy | None = None
    excerpts: dict[str, core.Excerpt] = {}
    rating: core.RatingScheme | None = None
    judge: str = ""
    budget_s: float | None = None
    reader: str = ""
    reading: tuple[str, ...] = ()  # the notes on how files were read
    chance: dict[str, float] = {}  # the chance level on the items that count by metric, where it is known

    own: tuple[str, ...] = ()  # names of the benchmark's own metrics; the others come from scorers

    scorers: dict[str, dict[str, JsonValue]] = {}
    """The settings of each scorer by its name, without the addresses of servers."""

    gives: dict[str, tuple[str, ...]] = {}
    """The names of the metrics that each scorer gives, by its name."""

    folders: dict[str, str] = {}
    """Where the files were on this machine at the last run or import: `data`, `media`; and the `track`."""

    rulings: tuple[Ruling, ...] = ()  # all disqualifications, reversed ones included

    @property
    def read_by(self) -> str:
        """The name of the benchmark's reader."""
        return self.reader or self.name

    @property
    def disqualified(self) -> dict[str, Ruling]:
        """The disqualified systems, each with its ruling."""
        return {ruling.system: ruling for ruling in self.rulings if not ruling.lifted}

    def metric(self, name: str) -> core.Metric:
        """The declaration of a metric; a plain one where it is unknown."""
        known = {metric.name: metric for metric in self.metrics}
        return known.get(name, core.Metric(name, name))

    def counts(self, item: core.Item) -> bool:
        """Whether an item counts (see `Benchmark.only`)."""
        return all(item.tags.get(tag) == value for tag, value in self.only.items())

    def with_metrics(self, metrics: Sequence[core.Metric]) -> BenchmarkCard:
        """The card with further metrics. A metric that it has already keeps its declaration, and gets the formats of both:
        a judge gives the accuracy of answers that code can't compare."""
        given = {metric.name: metric for metric in metrics}
        known = tuple(_widened(metric, given.pop(metric.name, metric)) for metric in self.metrics)
        return self.model_copy(update={"metrics": (*known, *given.values())})


def _widened(metric: core.Metric, other: core.Metric) -> core.Metric:
    if not metric.formats or not other.formats:
        return replace(metric, formats=())
    more = tuple(kind for kind in other.formats if kind not in metric.formats)
    return replace(metric, formats=metric.formats + more)


def card_of(benchmark: core.Benchmark) -> BenchmarkCard:
    from proctor.metrics import chance_level, graded_metrics

    counted = benchmark.counted()
    known = {metric.name for metric in benchmark.metrics}
    more = [metric for scorer in benchmark.scorers for metric in scorer.metrics if metric.name not in known]
    kinds = {item.answer.kind for item in benchmark.items}
    known |= {metric.name for metric in more}
    more += [metric for metric in graded_metrics(kinds) if metric.name not in known]
    metrics = (*benchmark.metrics, *more)
    levels = {metric.name: chance_level(metric, counted) for metric in metrics}
    made = {"metrics", "excerpts", "chance", "own", "scorers", "gives", "folders", "rulings"}
    same = set(BenchmarkCard.model_fields) - made
    return BenchmarkCard(
        **{name: getattr(benchmark, name) for name in same},
        metrics=metrics,
        own=tuple(metric.name for metric in metrics),
        excerpts=dict(benchmark.excerpts),
        chance={name: level for name, level in levels.items() if level is not None},
    )


def tags_text(item: core.Item) -> str:
    """Tags as canonical JSON: equal tags give equal texts."""
    return json.dumps(item.model_dump(mode="json")["tags"], sort_keys=True, ensure_ascii=False)


SHOWN = "shown"
"""The key of an answer's `extra` that lists what was shown: `proctor.media.ShownRecord` as JSON."""


def without_secrets(answer: core.Answer, hide: core.Scrubber) -> core.Answer:
    """The answer without keys and passwords of this process, wherever a server repeated one; the same if none did."""
    told = {name: hide.value(getattr(answer, name)) for name in ("text", "parsed", "problem", "reason")}
    told["extra"] = {name: value if name == SHOWN else hide.value(value) for name, value in answer.extra.items()}
    changed = {name: value for name, value in told.items() if value != getattr(answer, name)}
    return answer.model_copy(update=changed) if changed else answer


def judgement_without_secrets(judgement: core.Judgement, hide: core.Scrubber) -> core.Judgement:
    """As `without_secrets`, for a judgement."""
    return judgement.model_copy(
        update={"reply": hide.value(judgement.reply), "flags": tuple(map(hide.text, judgement.flags))}
    )


def answer_row(run_id: int, item_number: int, answer: core.Answer) -> dict[str, Any]:
    return {
        "run": run_id,
        "item": item_number,
        "repetition": answer.repetition,
        "status": answer.status.value,
        "readable": int(answer.parsed is not None),
        "text": answer.text,
        "parsed": json.dumps(answer.parsed),
        "problem": answer.problem,
        "reason": answer.reason,
        **vars(answer.usage),
        **(dict.fromkeys(core.Timing.model_fields) if answer.timing is None else vars(answer.timing)),
        "extra": json.dumps(answer.extra),
    }


def answer_from_row(item_id: str, row: Mapping[Any, Any]) -> core.Answer:
    timing = None
    if row["model_s"] is not None:
        timing = core.Timing(**{name: row[name] for name in core.Timing.model_fields})
    return core.Answer(
        item_id=item_id,
        repetition=row["repetition"],
        text=row["text"],
        parsed=json.loads(row["parsed"]),
        problem=row["problem"],
        status=core.Status(row["status"]),
        reason=row["reason"],
        usage=core.Usage(**{name: row[name] for name in core.Usage.model_fields}),
        timing=timing,
        extra=json.loads(row["extra"]),
    )


def score_row(run_id: int, item_number: int, score: core.Score) -> dict[str, Any]:
    row = {"run": run_id, "item": item_number, **vars(score)}
    del row["item_id"]
    return row


def judgement_row(judgement: core.Judgement) -> dict[str, Any]:
    return {
        "key": judgement.key,
        "judge": judgement.judge,
        "item": judgement.item_id,
        "body": judgement.model_dump_json(),
    }


def kept_judgements(connection: sa.Connection, keys: Iterable[str]) -> list[core.Judgement]:
    """The judgements with these keys, as far as they are stored."""
    wanted = (judgements.c.key.in_(part) for part in in_parts(sorted(set(keys))))
    bodies = (connection.scalars(sa.select(judgements.c.body).where(part)) for part in wanted)
    return [core.Judgement.model_validate_json(body) for some in bodies for body in some]


def write_card(connection: sa.Connection, benchmark: int, card: BenchmarkCard) -> None:
    table = benchmarks
    values = {"card": card.model_dump(mode="json")}
    connection.execute(sa.update(table).where(table.c.id == benchmark).values(values))


def check_text(location: str, text: str) -> None:
    """Raises `InputError` for a name that SQLite or PostgreSQL can't store."""
    if found := core.unfit(text):
        raise core.InputError(
            location, found=f"{found} in {core.kept_text(text)!r}", expected="a name that can be kept"
        )


def check_name(location: str, name: str) -> None:
    """As `check_text`, for the name of a system or a condition, which must have a visible character."""
    check_text(location, name)
    if not any(unicodedata.category(one)[0] not in "CZ" for one in name):
        raise core.InputError(location, found=repr(name[:80]), expected="a name that can be seen")


def check_given_name(name: str) -> None:
    """As `check_name`, for a name that a person or a file gives a system: control characters are refused."""
    check_name("the system's name", name)
    if core.clean(name) != name or {"\n", "\t"} & set(name):
        expected = "a name without control characters"
        raise core.InputError("the system's name", found=repr(name[:80]), expected=expected)


def check_texts(benchmark: core.Benchmark) -> None:
    """Raises `InputError` for a name of a benchmark or its items that can't be stored, repeated ids, and lone surrogates
    anywhere in the items."""
    check_text("the benchmark's name", benchmark.name)
    twice = [name for name, count in Counter(item.id for item in benchmark.items).items() if count > 1]
    if twice:
        raise core.InputError(benchmark.name, found=f"ids twice: {', '.join(twice[:3])}", expected="each id once")
    for item in benchmark.items:
        location = f"item {core.kept_text(item.id)!r}"
        for field, text in (("id", item.id), ("group", item.group), *(("tags", name) for name in item.tags)):
            check_text(f"{location}, field {field!r}", text)
        try:
            item.model_dump_json()
        except ValueError as error:
            raise core.InputError(
                location, found="half a character (a lone surrogate)", expected="text that can be kept"
            ) from error


def benchmark_row(connection: sa.Connection, name: str) -> sa.RowMapping | None:
    table = benchmarks
    return connection.execute(sa.select(table).where(table.c.name == name)).mappings().first()


def insert_benchmark(
    connection: sa.Connection, benchmark: core.Benchmark, fingerprint: str, card: dict[str, Any]
) -> None:
    table = benchmarks
    values = {"name": benchmark.name, "fingerprint": fingerprint, "card": card}
    number = connection.execute(sa.insert(table).values(values).returning(table.c.id)).scalar_one()
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


def difference(connection: sa.Connection, benchmark_id: int, benchmark: core.Benchmark) -> str:
    table = items
    query = sa.select(table.c.item, table.c.body).where(table.c.benchmark == benchmark_id)
    old = {row.item: row.body for row in connection.execute(query)}
    new = {item.id: item.model_dump_json() for item in benchmark.items}
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return f"changed: {core.count_of(len(changed), 'item')}, first {changed[0]}" if changed else "in order only"
