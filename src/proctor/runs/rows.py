"""Records to table rows and back."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import RowMapping

from proctor.core import Answer, Item, Score, Status, Timing, Usage, Vote

__all__ = ["answer_from_row", "answer_row", "score_row", "tags_text", "vote_row"]


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
        timing = Timing(
            model_s=row["model_s"], media_s=row["media_s"], queue_s=row["queue_s"], retry_s=row["retry_s"]
        )
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


def vote_row(vote: Vote) -> dict[str, Any]:
    """The row of a vote."""
    return {
        "key": vote.key,
        "judge": vote.judge,
        "item": vote.item_id,
        "body": vote.model_dump_json(),
    }
