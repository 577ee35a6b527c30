"""A benchmark and its items as rows of a store."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select

from proctor.core import Benchmark
from proctor.runs import schema
from proctor.runs.rows import tags_text

__all__ = ["benchmark_row", "difference", "insert_benchmark"]


def benchmark_row(connection: Connection, name: str) -> RowMapping | None:
    table = schema.benchmarks
    return connection.execute(select(table).where(table.c.name == name)).mappings().first()


def insert_benchmark(
    connection: Connection, benchmark: Benchmark, fingerprint: str, card: dict[str, Any]
) -> None:
    table = schema.benchmarks
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
    if rows:
        connection.execute(insert(schema.items), rows)


def difference(connection: Connection, benchmark_id: int, benchmark: Benchmark) -> str:
    table = schema.items
    query = select(table.c.item, table.c.body).where(table.c.benchmark == benchmark_id)
    old = {row.item: row.body for row in connection.execute(query)}
    new = {item.id: item.model_dump_json() for item in benchmark.items}
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return f"{len(changed)} items differ, first {changed[0]}" if changed else "in order only"
