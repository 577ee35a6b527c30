"""One item with all that a store knows of it: the answers of every run, their scores, and what judges said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from proctor.core import Answer, InputError, Item, Judgement, Score, one_of
from proctor.runs import schema
from proctor.runs.results import chosen_runs
from proctor.runs.rows import answer_from_row
from proctor.runs.store import Run, Store

_LISTED = 5


@dataclass(frozen=True)
class GivenAnswer:
    """What one run has for an item; `answer` is None where it was not asked."""

    run: Run
    answer: Answer | None
    scores: tuple[Score, ...]
    votes: tuple[Judgement, ...]

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return {
            "system": self.run.system,
            "condition": self.run.condition,
            "answer": None if self.answer is None else self.answer.model_dump(mode="json"),
            "scores": [score.model_dump(mode="json") for score in self.scores],
            "judgements": [vote.model_dump(mode="json") for vote in self.votes],
        }


@dataclass(frozen=True)
class ItemHistory:
    """An item and what each run has for it, by system and condition."""

    item: Item
    given: tuple[GivenAnswer, ...]

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return {"item": self.item.model_dump(mode="json"), "runs": [one.to_json() for one in self.given]}


def item_history(
    store: Store, benchmark: str, item_id: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> ItemHistory:
    """Raises `InputError` for an unknown item, system or condition; the nearest id is named."""
    items = {item.id: item for item in store.items(benchmark)}
    if item_id not in items:
        raise InputError(store.shown, f"item of {benchmark}", found=repr(item_id), expected=_ids(items, item_id))
    runs = chosen_runs(store, benchmark, systems, conditions)
    return ItemHistory(items[item_id], tuple(_given(store, run, item_id) for run in runs))


def _ids(items: dict[str, Item], found: str) -> str:
    """The ids that there are: those that hold what was typed, else the first ones, where there are many."""
    alike = [name for name in items if found and found in name]
    shown = (alike or list(items))[:_LISTED]
    hint = "" if alike else one_of(items, found).partition("; ")[2]
    more = f" … ({len(items)} in all)" if len(items) > len(shown) else ""
    return f"one of {', '.join(shown)}{more}" + (f"; {hint}" if hint else "")


def _given(store: Store, run: Run, item_id: str) -> GivenAnswer:
    answers, scores, items = schema.answers, schema.scores, schema.items
    with store.reading() as connection:
        number = connection.scalar(
            select(items.c.id)
            .join(schema.benchmarks, schema.benchmarks.c.id == items.c.benchmark)
            .where(schema.benchmarks.c.name == run.benchmark, items.c.item == item_id)
        )
        where = (answers.c.run == run.id, answers.c.item == number)
        row = connection.execute(select(answers).where(*where)).mappings().first()
        answer = None if row is None else answer_from_row(item_id, row)
        query = select(scores).where(scores.c.run == run.id, scores.c.item == number)
        found = tuple(
            Score(
                item_id=item_id,
                metric=one.metric,
                value=one.value,
                scorer=one.scorer,
                label=one.label,
                vote_key=one.vote_key,
            )
            for one in connection.execute(query.order_by(scores.c.scorer, scores.c.metric))
        )
    votes = store.votes(score.vote_key for score in found if score.vote_key)
    while former := {str(one.reply.get("replaces") or "") for one in votes.values()} - {"", *votes}:
        more = store.votes(former)  # decisions of people that were replaced
        if not more:
            break
        votes |= more
    return GivenAnswer(run, answer, found, tuple(votes[key] for key in sorted(votes)))
