"""Records, a benchmark and its items as rows of a store, and back."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select

from proctor.core import Answer, Benchmark, InputError, Item, Judgement, Score, Status, Timing, Usage, kept_text, unfit
from proctor.runs import schema


def tags_text(item: Item) -> str:
    """Tags as canonical JSON, so that items with the same tags have the same text."""
    return json.dumps(item.model_dump(mode="json")["tags"], sort_keys=True, ensure_ascii=False)


def answer_row(run_id: int, item_number: int, answer: Answer) -> dict[str, Any]:
    """The row of an answer."""
    timing = answer.timing
    return {
        "run": run_id,
        "item": item_number,
        "status": answer.status.value,
        "readable": int(answer.parsed is not None),
        "text": answer.text,
        "parsed": json.dumps(answer.parsed),
        "problem": answer.problem,
        "reason": answer.reason,
        "requests": answer.usage.requests,
        "input_tokens": answer.usage.input_tokens,
        "output_tokens": answer.usage.output_tokens,
        "cached_tokens": answer.usage.cached_tokens,
        "cost_usd": answer.usage.cost_usd,
        "model_s": timing.model_s if timing else None,
        "media_s": timing.media_s if timing else None,
        "queue_s": timing.queue_s if timing else None,
        "retry_s": timing.retry_s if timing else None,
        "extra": json.dumps(answer.extra),
    }


def answer_from_row(item_id: str, row: RowMapping) -> Answer:
    """The answer of a row."""
    timing = None
    if row["model_s"] is not None:
        timing = Timing(model_s=row["model_s"], media_s=row["media_s"], queue_s=row["queue_s"], retry_s=row["retry_s"])
    return Answer(
        item_id=item_id,
        text=row["text"],
        parsed=json.loads(row["parsed"]),
        problem=row["problem"],
        status=Status(row["status"]),
        reason=row["reason"],
        usage=Usage(
            requests=row["requests"],
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            cached_tokens=row["cached_tokens"],
            cost_usd=row["cost_usd"],
        ),
        timing=timing,
        extra=json.loads(row["extra"]),
    )


def score_row(run_id: int, item_number: int, score: Score) -> dict[str, Any]:
    """The row of a score."""
    return {
        "run": run_id,
        "item": item_number,
        "metric": score.metric,
        "scorer": score.scorer,
        "value": score.value,
        "label": score.label,
        "vote_key": score.vote_key,
    }


def vote_row(vote: Judgement) -> dict[str, Any]:
    """The row of a vote."""
    return {"key": vote.key, "judge": vote.judge, "item": vote.item_id, "body": vote.model_dump_json()}


def check_text(place: str, text: str) -> None:
    """Raises `InputError` for a name that some store can't keep: all stores answer alike."""
    if found := unfit(text):
        raise InputError(None, place, found=f"{found} in {kept_text(text)!r}", expected="a name that can be kept")


def check_texts(benchmark: Benchmark) -> None:
    """The same for all names of a benchmark, and for half characters anywhere in its items."""
    check_text("the benchmark's name", benchmark.name)
    for item in benchmark.items:
        place = f"item {kept_text(item.id)!r}"
        for field, text in (("id", item.id), ("group", item.group), *(("tags", name) for name in item.tags)):
            check_text(f"{place}, field {field!r}", text)
        try:
            item.model_dump_json()
        except ValueError as error:
            raise InputError(
                None, place, found="half a character (a lone surrogate)", expected="text that can be kept"
            ) from error


def benchmark_row(connection: Connection, name: str) -> RowMapping | None:
    table = schema.benchmarks
    return connection.execute(select(table).where(table.c.name == name)).mappings().first()


def insert_benchmark(connection: Connection, benchmark: Benchmark, fingerprint: str, card: dict[str, Any]) -> None:
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
