"""Looking after a store: list, rename, delete, check, correct references, disqualify and reinstate."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping, delete, func, select, text, update
from sqlalchemy.exc import DBAPIError

from proctor.core import Benchmark, InputError, Item, Judgement, count_of, first_problem, one_of
from proctor.runs import schema
from proctor.runs.controls import forget_runs
from proctor.runs.database import READING_FAULTS
from proctor.runs.run_identity import servers_of
from proctor.runs.run_leases import claim
from proctor.runs.schema import BenchmarkCard, Ruling, answer_from_row, check_given_name, tags_text
from proctor.runs.served import served_by
from proctor.runs.store import Run, Store


def stored_runs(store: Store) -> list[dict[str, Any]]:
    """All runs: the numbers of their answers, start time, model, the models that answered, servers and settings."""
    table = schema.runs
    with store.reading() as connection:
        begun = {row.id: row.created for row in connection.execute(select(table.c.id, table.c.created))}
    found = []
    for name in store.benchmark_names():
        for run in store.runs(name):
            answered, failed = store.count_answers(run)
            system = run.settings.get("system")
            plain = system if isinstance(system, dict) else {}
            found.append(
                {
                    "benchmark": name,
                    "system": run.system,
                    "condition": run.condition,
                    "answered": answered,
                    "failed": failed,
                    "begun": begun[run.id],
                    "model": plain.get("model"),
                    "answered_by": ", ".join(served_by(run.settings)),
                    "servers": ", ".join(servers_of(run.settings)),
                    "settings": run.settings,
                }
            )
    return found


def delete_runs(store: Store, runs: Sequence[Run]) -> int:
    """Deletes runs with their answers and scores, all or none; returns the number of answers.

    Judgements stay, so that nobody pays for them again. Raises `InputError` if another process is at work on a run.
    """
    ids = [run.id for run in runs]
    with store.writing() as connection:
        claim(connection, ids, store.shown)
        for table in (schema.scores, schema.judge_scores):
            connection.execute(delete(table).where(table.c.run.in_(ids)))
        gone = connection.execute(delete(schema.answers).where(schema.answers.c.run.in_(ids)))
        connection.execute(delete(schema.orders).where(schema.orders.c.run.in_(ids)))
        forget_runs(connection, store.shown, ids)
        connection.execute(delete(schema.runs).where(schema.runs.c.id.in_(ids)))
    return gone.rowcount


def delete_benchmark(store: Store, benchmark: str) -> int:
    """Deletes a benchmark with its items and all its runs (see `delete_runs`); returns the number of answers."""
    count = delete_runs(store, store.runs(benchmark))
    table, items = schema.benchmarks, schema.items
    with store.writing() as connection:
        number = connection.scalar(select(table.c.id).where(table.c.name == benchmark))
        own = select(items.c.id).where(items.c.benchmark == number)
        connection.execute(delete(schema.flags).where(schema.flags.c.item.in_(own)))
        connection.execute(delete(items).where(items.c.benchmark == number))
        connection.execute(delete(table).where(table.c.id == number))
    return count


def rename_system(store: Store, benchmark: str, runs: Sequence[Run], name: str) -> None:
    """Renames a system in all its runs and rulings.

    Raises `InputError` if the name has a run of the benchmark already, is not valid (`check_given_name`), or another
    process is at work on a run.
    """
    check_given_name(name)
    if any(run.system == name for run in store.runs(benchmark)):
        raise InputError(store.shown, found=f"a run of {name!r} already", expected="a name that is free")
    ids = [run.id for run in runs]
    old = {run.system for run in runs}
    table = schema.runs
    with store.writing() as connection:
        claim(connection, ids, store.shown)
        connection.execute(update(table).where(table.c.id.in_(ids)).values(system=name))
    card = store.card(benchmark)
    if any(ruling.system in old for ruling in card.rulings):
        rulings = tuple(
            ruling.model_copy(update={"system": name}) if ruling.system in old else ruling for ruling in card.rulings
        )
        store.change_card(benchmark, lambda card: card.model_copy(update={"rulings": rulings}))


def check_store(store: Store) -> Iterator[str]:
    """Yields one line for each damaged row or unreadable table; nothing for a sound store, and changes nothing.

    Checks the pages of the file first (SQLite), then that each benchmark, item, run, answer, score and judgement can be
    read and refers to existing rows.
    """
    with store.reading() as connection:
        if connection.dialect.name == "sqlite":
            yield from _pages(connection)
        for name, columns, check in _TABLES:
            yield from _rows(connection, name, columns, check)


def check_file(path: Path) -> Iterator[str]:
    """Yields one line for each fault of a store's file (SQLite) that is too damaged to be opened as a store, and for each
    table how many of its rows can be read. Changes nothing."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        for name, table in schema.metadata.tables.items():
            count = 0
            try:
                for _ in connection.execute(str(select(table))):
                    count += 1
            except sqlite3.Error as error:
                if "no such table" not in str(error):
                    yield f"table {name}: {count_of(count, 'row')} can be read, then: {error}"
    except sqlite3.Error as error:
        yield f"the file: {error}"
    finally:
        connection.close()


def _pages(connection: Connection) -> Iterator[str]:
    try:
        found = connection.execute(text("PRAGMA integrity_check(20)")).scalars().all()
        lost = connection.execute(text("PRAGMA foreign_key_check")).all()
    except DBAPIError as error:
        yield f"the file: {error.orig}"
        return
    yield from (f"the file: {line}" for line in found if line != "ok")
    yield from (f"table {row[0]}: a row that belongs to no row of table {row[2]}" for row in lost[:20])


def _rows(
    connection: Connection, name: str, columns: tuple[str, ...], check: Callable[[RowMapping], object]
) -> Iterator[str]:
    table = schema.metadata.tables[name]
    try:
        for row in connection.execute(select(table).execution_options(yield_per=1000)).mappings():
            try:
                check(row)
            except READING_FAULTS as error:
                location = ", ".join(f"{column} {row[column]!r}"[:80] for column in columns)
                yield f"table {name}, row with {location}: {_reason(error)}"
    except DBAPIError as error:
        yield f"table {name}: {error.orig}"
    except READING_FAULTS as error:  # in a column that SQLAlchemy decodes
        yield f"table {name}: a row that can't be read ({_reason(error)})"


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return str(first_problem(error))
    return f"{type(error).__name__}: {error}"[:200]


def _item(row: RowMapping) -> None:
    item = Item.model_validate_json(row["body"])
    kept = (row["item"], row["group_name"], row["format"])
    if kept != (item.id, item.group, item.answer.kind):
        raise ValueError(f"the item in it is {item.id!r}")


def _score(row: RowMapping) -> None:
    if not math.isfinite(row["value"]):
        raise ValueError("a value that is no finite number")


def _judgement(row: RowMapping) -> None:
    judgement = Judgement.model_validate_json(row["body"])
    if judgement.key != row["key"]:
        raise ValueError("the judgement in it has another key")


def _run(row: RowMapping) -> None:
    if not isinstance(row["settings"], dict):
        raise ValueError("settings that are no object")


def _flag(row: RowMapping) -> None:
    if not isinstance(row["value"], str):
        raise ValueError("a value that is no text")


_TABLES: tuple[tuple[str, tuple[str, ...], Callable[[RowMapping], Any]], ...] = (
    ("benchmarks", ("name",), lambda row: BenchmarkCard.model_validate(row["card"])),
    ("items", ("item",), _item),
    ("flags", ("item", "name"), _flag),
    ("runs", ("system", "condition"), _run),
    ("answers", ("run", "item", "repetition"), lambda row: answer_from_row(str(row["item"]), row)),
    ("scores", ("run", "metric", "scorer", "item", "repetition"), _score),
    ("judge_scores", ("run", "metric", "scorer", "item", "repetition", "judge_repetition"), _score),
    ("judgements", ("key",), _judgement),
)


def disqualify(store: Store, benchmark: str, system: str, reason: str, *, at: str) -> Ruling:
    """Disqualifies a system: no board ranks it, its answers and scores stay. `at` is the time in UTC (ISO 8601).

    Raises `InputError` for an unknown or disqualified system, and an empty reason.
    """
    known = sorted({run.system for run in store.runs(benchmark)})
    if system not in known:
        raise InputError(store.shown, found=f"no run of {system!r}", expected=one_of(known, system))
    ruling = Ruling(system=system, reason=_stated(reason), since=at)

    def ruled(card: BenchmarkCard) -> BenchmarkCard:
        if system in card.disqualified:
            found = f"{card.disqualified[system]}, disqualified already"
            raise InputError(store.shown, found=found, expected="a system that is not")
        return card.model_copy(update={"rulings": (*card.rulings, ruling)})

    store.change_card(benchmark, ruled)
    return ruling


def reinstate(store: Store, benchmark: str, system: str, reason: str, *, at: str) -> Ruling:
    """Reverses a disqualification; the ruling stays on record. Raises `InputError` for a system that is not disqualified,
    and an empty reason."""
    update = {"lifted": at, "lifted_because": _stated(reason)}

    def ruled(card: BenchmarkCard) -> BenchmarkCard:
        if system not in card.disqualified:
            expected = one_of(sorted(card.disqualified), system)
            raise InputError(store.shown, found=f"{system!r}, not disqualified", expected=expected)
        mine = card.disqualified[system]
        rulings = tuple(ruling.model_copy(update=update) if ruling is mine else ruling for ruling in card.rulings)
        return card.model_copy(update={"rulings": rulings})

    store.change_card(benchmark, ruled)
    return next(ruling for ruling in reversed(store.card(benchmark).rulings) if ruling.system == system)


def _stated(reason: str) -> str:
    plain = " ".join(reason.split())
    if not plain:
        raise InputError("--reason is empty. Say why, in a sentence.")
    return plain


def count_scores(store: Store, benchmark: str, scorer: str) -> int:
    """The number of a scorer's scores. Raises `InputError` if there are none."""
    known = sorted(store.scorers(benchmark))
    if scorer not in known:
        raise InputError(
            store.shown, f"scores of {benchmark}", found=f"none by {scorer!r}", expected=one_of(known, scorer)
        )
    table, ids = schema.scores, [run.id for run in store.runs(benchmark)]
    with store.reading() as connection:
        query = select(func.count()).select_from(table).where(table.c.run.in_(ids), table.c.scorer == scorer)
        return int(connection.execute(query).scalar_one())


def delete_scores(store: Store, benchmark: str, scorer: str) -> int:
    """Deletes a scorer with all its scores; returns their number. Answers and judgements stay. Metrics without scores that
    are not the benchmark's own are removed from the card.

    Raises `InputError` for a scorer without scores, and if another process is at work on a run.
    """
    count_scores(store, benchmark, scorer)
    gone, table, ids = store.scorers(benchmark)[scorer], schema.scores, [run.id for run in store.runs(benchmark)]
    with store.writing() as connection:
        claim(connection, ids, store.shown)
        count = connection.execute(delete(table).where(table.c.run.in_(ids), table.c.scorer == scorer)).rowcount
        single = schema.judge_scores
        connection.execute(delete(single).where(single.c.run.in_(ids), single.c.scorer == scorer))
    declared = store.card(benchmark).gives
    others = [*store.scorers(benchmark).values(), *(names for name, names in declared.items() if name != scorer)]
    gone = gone.union(declared.get(scorer, ())).difference(*others)

    def without(card: BenchmarkCard) -> BenchmarkCard:
        metrics = tuple(metric for metric in card.metrics if metric.name not in gone or metric.name in card.own)
        scorers = {name: known for name, known in card.scorers.items() if name != scorer}
        gives = {name: known for name, known in card.gives.items() if name != scorer}
        return card.model_copy(update={"metrics": metrics, "scorers": scorers, "gives": gives})

    store.change_card(benchmark, without)
    return int(count)


def revise_benchmark(store: Store, benchmark: Benchmark) -> int:
    """Updates references and tags in a store, and deletes the scores and derived facets of the changed items; returns
    their number. Answers stay, also those of runs that use the references: delete these runs.

    Raises `InputError` if anything else in an item differs, since its answers were given to the former question.
    """
    table, new = schema.items, {item.id: item for item in benchmark.items}
    with store.writing() as connection:
        known = connection.execute(
            select(schema.benchmarks).where(schema.benchmarks.c.name == benchmark.name)
        ).mappings()
        row = known.one()
        rows = connection.execute(select(table.c.id, table.c.item, table.c.body).where(table.c.benchmark == row["id"]))
        old = {one.item: (one.id, Item.model_validate_json(one.body)) for one in rows}
        changed = {}
        for name in sorted(old.keys() | new.keys()):
            if name not in old or name not in new or _asked(old[name][1]) != _asked(new[name]):
                found = f"another question {name!r}, or none"
                raise InputError(
                    store.shown, found=found, expected="the same ones: only references and tags may change"
                )
            if old[name][1] != new[name]:
                changed[old[name][0]] = new[name]
        for number, item in changed.items():
            values = {"body": item.model_dump_json(), "tags": tags_text(item)}
            connection.execute(update(table).where(table.c.id == number).values(values))
            for scores in (schema.scores, schema.judge_scores):
                connection.execute(delete(scores).where(scores.c.item == number))
            connection.execute(delete(schema.flags).where(schema.flags.c.item == number))
        now = {"fingerprint": benchmark.fingerprint}
        connection.execute(update(schema.benchmarks).where(schema.benchmarks.c.id == row["id"]).values(now))
    store.add_benchmark(benchmark)  # updates the card: chance levels depend on references
    return len(changed)


def _asked(item: Item) -> str:
    return item.model_dump_json(exclude={"reference", "tags"})
