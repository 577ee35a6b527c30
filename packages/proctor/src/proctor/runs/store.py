"""The store: items, runs, answers, scores and judgements on disk, shared by any number of processes; which runs
resume, and which answers stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import JsonValue
from sqlalchemy import Connection, RowMapping, delete, func, insert, select, tuple_, update
from sqlalchemy.exc import DBAPIError

from proctor import core
from proctor.core import Answer, Benchmark, InputError, Judgement, Metric, Score, Status, Usage, one_of, shell_word
from proctor.runs import schema
from proctor.runs.bulk_sql import in_parts, upsert_rows
from proctor.runs.database import (
    READING_FAULTS,
    StoreAwayError,
    StoreWriteError,
    away,
    clock,
    damaged,
    open_engine,
    outlasting,
    reading,
    shown_url,
)
from proctor.runs.run_identity import changed_settings, same_run, with_servers
from proctor.runs.schema import BenchmarkCard

if TYPE_CHECKING:
    from proctor.core import Item
    from proctor.runs.run_leases import RunLease

ORACLE = "oracle_baseline"
"""The setting of a run that says whether its system uses the reference answers."""


@dataclass(frozen=True)
class Run:
    """One benchmark × system × condition in a store."""

    id: int
    benchmark: str
    system: str
    condition: str
    settings: dict[str, JsonValue]


class Fence(Protocol):
    """Decides for each answer whether it may be written, within the transaction that writes it."""

    def __call__(self, connection: Connection, answers: Sequence[tuple[Run, Answer]]) -> list[bool]: ...


class Store:
    """An open store. Several threads and processes may read and write at once. Answers and judgements are written without
    the secrets of this process (`core.Scrubber`). A store that is opened `read_only` refuses every change."""

    def __init__(self, store: str | Path, *, create: bool = True, read_only: bool = False) -> None:
        self._engine = open_engine(store, create=create, read_only=read_only)
        core.when_gone(self, self._engine.dispose)
        self.shown = shown_url(store)
        self._driver_error: type[Exception] = self._engine.dialect.loaded_dbapi.Error  # of rows past SQLAlchemy
        self._item_ids: dict[str, dict[str, int]] = {}
        self._fingerprints: dict[str, str] = {}
        self.derived: dict[tuple[str, str], dict[str, str]] = {}
        """Facets by (benchmark, name) that were computed while this store is open; they are not stored."""

    def __repr__(self) -> str:
        """The path or URL, without a password."""
        return f"Store({self.shown!r})"

    @property
    def dialect(self) -> str:
        """The database: "sqlite" or "postgresql"."""
        return str(self._engine.dialect.name)

    @cached_property
    def upsert(self) -> Any:
        """The dialect's `insert`, which supports ON CONFLICT."""
        return import_module(f"sqlalchemy.dialects.{self.dialect}").insert

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, which sees one state of the store and blocks nobody. Raises `InputError` for what
        can't be read, or decoded inside the block: the store is damaged."""
        try:
            with reading(self._engine) as connection:
                yield connection
        except (DBAPIError, self._driver_error, *READING_FAULTS) as error:
            raise away(self.shown, error, self.dialect) or damaged(self.shown, error) from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction, which is on disk when the block ends without an exception. Raises
        `StoreWriteError` where writing fails (a full disk, a damaged store), and `StoreAwayError` without the server, or
        while another process has locked the file for a minute."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except (DBAPIError, self._driver_error) as error:
            raw = getattr(error, "orig", error)
            reason = str(raw).strip() or type(raw).__name__
            full = StoreWriteError(self.shown, found=reason, expected="a store that can be written")
            raise away(self.shown, error, self.dialect) or full from error

    def add_benchmark(self, benchmark: Benchmark) -> None:
        """Stores a benchmark's items. Raises `InputError` for other items under a known name, since answers must not be
        scored against items that they were not given to, and for a text that can't be stored."""
        schema.check_texts(benchmark)
        fingerprint = benchmark.fingerprint
        with self.writing() as connection:
            known = schema.benchmark_row(connection, benchmark.name)
            if known is not None and known["fingerprint"] != fingerprint:
                raise InputError(
                    self.shown,
                    f"benchmark {benchmark.name}",
                    found=f"answers to items with fingerprint {known['fingerprint'][:12]}, "
                    f"but the data now give {fingerprint[:12]} ({schema.difference(connection, known['id'], benchmark)})",
                    expected="the same items: use another --store for the changed benchmark",
                )
            card = schema.card_of(benchmark)
            if known is None:
                schema.insert_benchmark(connection, benchmark, fingerprint, card.model_dump(mode="json"))
                return
            before = BenchmarkCard.model_validate(known["card"])
            kept = {name: getattr(before, name) for name in ("rulings", "folders", "scorers", "gives")}
            kept |= {} if card.rating else {"rating": before.rating}  # declared by ratings or a judge's file
            card = card.with_metrics(before.metrics).model_copy(update=kept)
            if card != before:
                schema.write_card(connection, known["id"], card)

    def benchmark_names(self) -> list[str]:
        """The benchmarks in this store."""
        with self.reading() as connection:
            return list(connection.scalars(select(schema.benchmarks.c.name).order_by(schema.benchmarks.c.name)))

    def card(self, benchmark: str) -> BenchmarkCard:
        """The card of a benchmark."""
        with self.reading() as connection:
            return BenchmarkCard.model_validate(self._benchmark(connection, benchmark)["card"])

    def fingerprint(self, benchmark: str) -> str:
        """The fingerprint of a benchmark's items."""
        with self.reading() as connection:
            return str(self._benchmark(connection, benchmark)["fingerprint"])

    def declare_metrics(self, benchmark: str, metrics: Sequence[Metric]) -> None:
        """Adds a scorer's metrics to the benchmark's card."""
        self.change_card(benchmark, lambda card: card.with_metrics(metrics))

    def change_card(self, benchmark: str, change: Callable[[BenchmarkCard], BenchmarkCard]) -> None:
        """Replaces the card by `change(card)`, in one transaction."""
        with self.writing() as connection:
            known = self._benchmark(connection, benchmark)
            schema.write_card(connection, known["id"], change(BenchmarkCard.model_validate(known["card"])))

    def items(self, benchmark: str) -> list[Item]:
        """All items of a benchmark, in its order."""
        table = schema.items
        with self.reading() as connection:
            known = self._benchmark(connection, benchmark)
            query = select(table.c.body).where(table.c.benchmark == known["id"]).order_by(table.c.position)
            return [core.Item.model_validate_json(body) for body in connection.scalars(query)]

    def set_flags(self, benchmark: str, name: str, values: dict[str, str]) -> None:
        """Replaces one derived facet (such as `guessable`) of a benchmark's items."""
        ids = self.item_numbers(benchmark)
        rows = [{"item": ids[item], "name": name, "value": value} for item, value in values.items()]
        with self.writing() as connection:
            own = select(schema.items.c.id).where(
                schema.items.c.benchmark == self._benchmark(connection, benchmark)["id"]
            )
            connection.execute(delete(schema.flags).where(schema.flags.c.name == name, schema.flags.c.item.in_(own)))
            if rows:
                connection.execute(insert(schema.flags), rows)

    def start_run(self, benchmark: str, system: str, condition: str, settings: dict[str, JsonValue]) -> Run:
        """The run of that name, new or to be resumed.

        A server's address may change: all addresses are kept as `servers`. A run without a settled answer that nobody
        works on takes the new settings. Otherwise other settings under the same name raise `InputError`: one name must
        not mix two systems.
        """
        from proctor.runs import run_leases

        plain = json.loads(json.dumps(settings))
        table = schema.runs
        for what, name in (("system", system), ("condition", condition)):
            schema.check_name(f"the {what}'s name", name)
        with self.writing() as connection:
            benchmark_id = self._benchmark(connection, benchmark)["id"]
            query = select(table).where(
                table.c.benchmark == benchmark_id, table.c.system == system, table.c.condition == condition
            )
            known = connection.execute(query).mappings().first()
            if known is None:
                created = datetime.now(UTC).isoformat(timespec="seconds")
                names = {"benchmark": benchmark_id, "system": system, "condition": condition}
                new = insert(table).values(names | {"settings": plain, "created": created}).returning(table.c.id)
                run_id = connection.execute(new).scalar_one()
                return Run(run_id, benchmark, system, condition, plain)
            run_id = int(known["id"])
            if same_run(known["settings"], plain):
                plain = with_servers(known["settings"], plain)
            elif run_leases.at_work(known, clock(connection)) or _begun(connection, run_id):
                raise self._other_settings(system, condition, known["settings"], plain)
            if known["settings"] != plain:
                connection.execute(update(table).where(table.c.id == run_id).values(settings=plain))
            return Run(run_id, benchmark, system, condition, plain)

    def runs(self, benchmark: str) -> list[Run]:
        """All runs of a benchmark, by system and condition."""
        table = schema.runs
        with self.reading() as connection:
            known = self._benchmark(connection, benchmark)
            query = select(table).where(table.c.benchmark == known["id"]).order_by(table.c.system, table.c.condition)
            return [
                Run(row["id"], benchmark, row["system"], row["condition"], row["settings"])
                for row in connection.execute(query).mappings()
            ]

    def _other_settings(self, system: str, condition: str, old: dict[str, Any], new: dict[str, Any]) -> InputError:
        return InputError(
            self.shown,
            f"run of {system} under {condition}",
            found=f"other settings ({changed_settings(old, new)})",
            expected="the same settings, another name with --name, or another --store",
        )

    @contextmanager
    def owning(self, runs: Sequence[Run]) -> Iterator[RunLease]:
        """Owns these runs within the block, so that nobody else pays for the same answers; the lease is the fence for what
        is written. Raises `RunTakenError` (an `InputError`) where a run has another owner, in this or another living
        process, and `InputError` where a run's settings have changed since it was read."""
        from proctor.runs import run_leases

        with run_leases.owner() as me:
            lease = run_leases.RunLease(self, runs, me)
            outlasting(lease.take)
            try:
                self._check_settings(runs)
                yield lease
            except BaseException:
                with suppress(InputError):  # a lease ends by itself
                    lease.release()
                raise
            with suppress(StoreAwayError):
                lease.release()

    def _check_settings(self, runs: Sequence[Run]) -> None:
        table = schema.runs
        with self.reading() as connection:
            kept = connection.execute(select(table.c.id, table.c.settings).where(table.c.id.in_([r.id for r in runs])))
            settings = {row.id: row.settings for row in kept}
        for run in runs:
            if not same_run(settings[run.id], run.settings):
                raise self._other_settings(run.system, run.condition, settings[run.id], run.settings)

    def repetitions(self, run: Run) -> list[int]:
        """The repetitions of which a run has an answer, in order."""
        table = schema.answers
        query = select(table.c.repetition).where(table.c.run == run.id).distinct().order_by(table.c.repetition)
        with self.reading() as connection:
            return list(connection.scalars(query))

    def settled_repetitions(self, run: Run) -> dict[int, int]:
        """The numbers of answers of a run that are not `failed`, by repetition."""
        table = schema.answers
        own = table.c.run == run.id, table.c.status != Status.FAILED.value
        query = select(table.c.repetition, func.count()).where(*own).group_by(table.c.repetition)
        with self.reading() as connection:
            return {int(row[0]): int(row[1]) for row in connection.execute(query.order_by(table.c.repetition))}

    def settled(self, run: Run, repetition: int = 0) -> set[str]:
        """The ids of items with an answer of this repetition that is not `failed`."""
        answers, items = schema.answers, schema.items
        query = select(items.c.item).join(answers, answers.c.item == items.c.id)
        with self.reading() as connection:
            mine = schema.repetition_of(answers, run.id, repetition)
            own = query.where(mine, answers.c.status != Status.FAILED.value)
            return set(connection.scalars(own))

    def count_repetitions(self, run: Run) -> int:
        """How many repetitions a run has: one more than the highest number among its answers; 0 without answers."""
        table = schema.answers
        with self.reading() as connection:
            highest = connection.scalar(select(func.max(table.c.repetition)).where(table.c.run == run.id))
        return 0 if highest is None else int(highest) + 1

    def paid_in_vain(self, run: Run, repetition: int = 0) -> dict[str, Usage]:
        """What failed answers of a repetition used, by item: another answer will replace them."""
        table, items = schema.answers, schema.items
        columns = [table.c[name] for name in Usage.model_fields]
        query = select(items.c.item, *columns).join(table, table.c.item == items.c.id)
        mine = schema.repetition_of(table, run.id, repetition)
        failed = query.where(mine, table.c.status == Status.FAILED.value, table.c.requests > 0)
        with self.reading() as connection:
            rows = connection.execute(failed).mappings()
            return {row["item"]: Usage(**{name: row[name] for name in Usage.model_fields}) for row in rows}

    def count_by_status(self, run: Run) -> dict[Status, int]:
        """The number of answers of a run by status, of all repetitions."""
        table = schema.answers
        query = select(table.c.status, func.count()).where(table.c.run == run.id).group_by(table.c.status)
        with self.reading() as connection:
            return {Status(row[0]): int(row[1]) for row in connection.execute(query)}

    def count_answers(self, run: Run) -> tuple[int, int]:
        """The numbers of settled and of failed answers of a run, of all repetitions."""
        counts = self.count_by_status(run)
        failed = counts.pop(Status.FAILED, 0)
        return sum(counts.values()), failed

    def write(
        self, run: Run, scored: Iterable[tuple[Answer, Sequence[Score]]], fence: Fence | None = None
    ) -> list[bool]:
        """Writes answers with their scores in one transaction, each under the answer's repetition. A stored `failed` answer
        is replaced; any other stays, with its scores. Returns for each answer whether it is on disk."""
        return self.write_many([(run, answer, scores) for answer, scores in scored], fence)

    def write_many(self, rows: Sequence[tuple[Run, Answer, Sequence[Score]]], fence: Fence | None = None) -> list[bool]:
        """As `write`, for several runs at once; with a `fence` only the answers that it lets through. A repeated call
        changes nothing and returns the same."""
        if not rows:
            return []
        for run, answer, _ in rows:
            if answer.item_id not in self.item_numbers(run.benchmark):
                raise InputError(self.shown, found=f"an answer to {answer.item_id!r}", expected="a known item")
        hide = core.environment_scrubber()
        rows = [(run, schema.without_secrets(answer, hide), scores) for run, answer, scores in rows]
        answers = [
            schema.answer_row(run.id, self.item_numbers(run.benchmark)[answer.item_id], answer)
            for run, answer, _ in rows
        ]
        with self.writing() as connection:
            let = [True] * len(rows) if fence is None else fence(connection, [(run, answer) for run, answer, _ in rows])
            through = [answer for answer, passes in zip(answers, let, strict=True) if passes]
            on_disk = let
            if upsert_rows(connection, schema.answers, self._answer_upsert, through) < len(rows):
                # Stored answers stay, so scores of other answers are dropped. The upsert has locked the rows.
                there = _answers_at(connection, [_answer_key(one) for one in answers])
                on_disk = [there.get(_answer_key(one)) == one for one in answers]
            scores: list[dict[str, Any]] = []
            for (run, answer, given), own in zip(rows, map(all, zip(let, on_disk, strict=True)), strict=True):
                ids = self.item_numbers(run.benchmark)
                new = [schema.score_row(run.id, ids[score.item_id], score) for score in given if own]
                for row in new:
                    row["repetition"] = answer.repetition
                scores += new
            upsert_rows(connection, schema.scores, self._score_upsert, scores)
        return on_disk

    def write_scores(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Writes rows of scores in a transaction; they replace those of the same metric and scorer."""
        upsert_rows(connection, schema.scores, self._score_upsert, rows)

    def add_scores(self, run: Run, scores: Sequence[Score]) -> None:
        """Writes scores of stored answers; they replace those of the same metric and scorer."""
        self.add_decisions((), [(run, score) for score in scores])

    def add_decisions(self, judgements: Sequence[Judgement], scores: Sequence[tuple[Run, Score]]) -> None:
        """Writes judgements and the scores that follow from them: all, or none. Scores replace those of the same metric and
        scorer; a stored judgement stays as it is."""
        rows = [
            schema.score_row(run.id, self.item_numbers(run.benchmark)[score.item_id], score) for run, score in scores
        ]
        keep = self.upsert(schema.judgements).on_conflict_do_nothing(index_elements=["key"])
        if not (judgements or rows):
            return
        hide = core.environment_scrubber()
        judgements = [schema.judgement_without_secrets(judgement, hide) for judgement in judgements]
        with self.writing() as connection:
            if judgements:
                connection.execute(keep, [schema.judgement_row(judgement) for judgement in judgements])
            upsert_rows(connection, schema.scores, self._score_upsert, rows)

    def answers(self, run: Run, repetition: int = 0) -> dict[str, Answer]:
        """The answers of a run by item id: those of one repetition."""
        names = {number: name for name, number in self.item_numbers(run.benchmark).items()}
        table = schema.answers
        with self.reading() as connection:
            found = connection.execute(select(table).where(schema.repetition_of(table, run.id, repetition))).mappings()
            return {names[row["item"]]: schema.answer_from_row(names[row["item"]], row) for row in found}

    def count_scored(self, run: Run, scorer: str) -> int:
        """The number of answers of a run that a scorer has scored, of all repetitions."""
        return sum(len(self.scored(run, scorer, number)) for number in self.repetitions(run))

    def scored(self, run: Run, scorer: str, repetition: int = 0) -> set[str]:
        """The ids of items whose answer of this repetition a scorer has scored."""
        names = {number: name for name, number in self.item_numbers(run.benchmark).items()}
        table = schema.scores
        mine = schema.repetition_of(table, run.id, repetition)
        query = select(table.c.item).where(mine, table.c.scorer == scorer).distinct()
        with self.reading() as connection:
            return {names[number] for number in connection.scalars(query)}

    def scorers(self, benchmark: str) -> dict[str, set[str]]:
        """All scorers of a benchmark's answers, each with its metrics."""
        scores, found = schema.scores, dict[str, set[str]]()
        query = select(scores.c.scorer, scores.c.metric).where(
            scores.c.run.in_([run.id for run in self.runs(benchmark)])
        )
        with self.reading() as connection:
            for row in connection.execute(query.distinct()):
                found.setdefault(row.scorer, set()).add(row.metric)
        return found

    def score_rows(
        self, run: Run, *, scorer: str = "", metric: str = "", item: str = "", judged: bool = False, repetition: int = 0
    ) -> list[Any]:
        """The scores of a run's answers of one repetition, as rows with the fields of `Score`; optionally those of one
        scorer, metric or item, or (with `judged`) those that follow from a judgement."""
        scores, items = schema.scores, schema.items
        fields = [scores.c[name] for name in Score.model_fields if name != "item_id"]
        query = select(items.c.item.label("item_id"), *fields).join(items, items.c.id == scores.c.item)
        query = query.where(schema.repetition_of(scores, run.id, repetition))
        for column, name in ((scores.c.scorer, scorer), (scores.c.metric, metric), (items.c.item, item)):
            query = query.where(column == name) if name else query
        query = query.where(scores.c.judgement_key != "") if judged else query
        with self.reading() as connection:
            return list(connection.execute(query))

    def get(self, key: str) -> Judgement | None:
        """A judgement by its key (see `JudgementCache`)."""
        with self.reading() as connection:
            body = connection.scalar(select(schema.judgements.c.body).where(schema.judgements.c.key == key))
        return None if body is None else Judgement.model_validate_json(body)

    def put(self, judgement: Judgement) -> None:
        """Stores a judgement (see `JudgementCache`)."""
        self.put_judgements([judgement])

    def put_judgements(self, judgements: Sequence[Judgement]) -> None:
        """Stores several judgements in one transaction; stored ones stay as they are."""
        self.add_decisions(judgements, ())

    def judgements(self, keys: Iterable[str]) -> dict[str, Judgement]:
        """The judgements with these keys."""
        with self.reading() as connection:
            return {judgement.key: judgement for judgement in schema.kept_judgements(connection, keys)}

    def _benchmark(self, connection: Connection, name: str) -> RowMapping:
        known = schema.benchmark_row(connection, name)
        if known is None:
            names = connection.scalars(select(schema.benchmarks.c.name)).all()
            found, expected = f"no benchmark {name!r}", "a store with answers: run something first"
            if not names and connection.scalar(select(func.count()).select_from(schema.judgements)):
                # `store delete --all` keeps judgements without answers.
                found = "judgements and no answers"
                expected = f"answers beside them: proctor import {shell_word(name)} PATH --data FOLDER --store {shell_word(self.shown)}"
            raise InputError(self.shown, found=found, expected=one_of(names, name) if names else expected)
        return known

    def item_numbers(self, benchmark: str) -> dict[str, int]:
        """The number of each item in this store by its id."""
        if benchmark not in self._item_ids:
            table = schema.items
            with self.reading() as connection:
                known = self._benchmark(connection, benchmark)
                query = select(table.c.item, table.c.id).where(table.c.benchmark == known["id"])
                self._item_ids[benchmark] = {row.item: row.id for row in connection.execute(query)}
                self._fingerprints[benchmark] = known["fingerprint"]
        return self._item_ids[benchmark]

    def item_number(self, benchmark: str, item: str) -> int:
        """The number of one item: a single look-up, unless all are known. Raises `KeyError` for an unknown item."""
        if benchmark in self._item_ids:
            return self._item_ids[benchmark][item]
        table = schema.items
        with self.reading() as connection:
            known = self._benchmark(connection, benchmark)
            query = select(table.c.id).where(table.c.benchmark == known["id"], table.c.item == item)
            number: int | None = connection.scalar(query)
        if number is None:
            raise KeyError(item)
        return number

    def known_fingerprint(self, benchmark: str) -> str:
        """The fingerprint of a benchmark's items when their numbers were read: without a look at the database from then
        on."""
        self.item_numbers(benchmark)
        return self._fingerprints[benchmark]

    @cached_property
    def _answer_upsert(self) -> Any:
        statement = self.upsert(schema.answers)
        new = {
            column.name: statement.excluded[column.name] for column in schema.answers.columns if not column.primary_key
        }
        return statement.on_conflict_do_update(
            index_elements=list(schema.answers.primary_key.columns),
            set_=new,
            where=schema.answers.c.status == Status.FAILED.value,
        )

    @cached_property
    def _score_upsert(self) -> Any:
        statement = self.upsert(schema.scores)
        new = {name: statement.excluded[name] for name in ("value", "label", "judgement_key")}
        return statement.on_conflict_do_update(index_elements=list(schema.scores.primary_key.columns), set_=new)


def _begun(connection: Connection, run_id: int) -> bool:
    """Whether a run has a settled answer, or a worker at work on it."""
    from proctor.runs import run_leases

    table = schema.answers
    query = select(table.c.item).where(table.c.run == run_id, table.c.status != Status.FAILED.value).limit(1)
    return connection.execute(query).first() is not None or run_leases.shared_run(connection, [run_id]) is not None


_AnswerKey = tuple[int, int, int]
"""A stored answer's key: the numbers of its run and item, and its repetition."""


def _answer_key(row: Mapping[Any, Any]) -> _AnswerKey:
    return row["run"], row["item"], row["repetition"]


def _answers_at(connection: Connection, keys: Sequence[_AnswerKey]) -> dict[_AnswerKey, dict[str, Any]]:
    table, found = schema.answers, dict[_AnswerKey, dict[str, Any]]()
    for part in in_parts(keys):
        query = select(table).where(tuple_(*table.primary_key.columns).in_(part))
        found |= {_answer_key(row): dict(row) for row in connection.execute(query).mappings()}
    return found
