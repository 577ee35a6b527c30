"""The votes that a person should look at: attempts to steer a judge, verdicts that contradict themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from proctor.core import Vote
from proctor.runs import schema
from proctor.runs.results import chosen_runs
from proctor.runs.store import Run, Store

__all__ = ["FlaggedVote", "flagged_votes"]


@dataclass(frozen=True)
class FlaggedVote:
    """One flagged vote on one answer of a run: what its judge replied, and the answer as it came."""

    system: str
    condition: str
    item: str
    judge: str
    flags: tuple[str, ...]
    reply: dict[str, Any]
    text: str

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self) | {"flags": list(self.flags)}


def flagged_votes(
    store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> list[FlaggedVote]:
    """All flagged votes behind the scores of the chosen runs, by run, item (in the benchmark's order) and judge.

    Raises `InputError` for an unknown system or condition.
    """
    order = {item.id: place for place, item in enumerate(store.items(benchmark))}
    found = []
    for run in chosen_runs(store, benchmark, systems, conditions):
        behind = _votes(store, run)
        votes = {key: vote for key, vote in store.votes(key for _, key in behind).items() if vote.flags}
        if not votes:
            continue
        answers = store.answers(run)
        found += [
            _flagged(run, item, votes[key], answers[item].text)
            for item, key in sorted(behind, key=lambda one: (order[one[0]], one[1]))
            if key in votes
        ]
    return sorted(found, key=lambda one: (one.system, one.condition, order[one.item], one.judge))


def _votes(store: Store, run: Run) -> set[tuple[str, str]]:
    """Each item with the keys of the votes behind its scores."""
    scores, items = schema.scores, schema.items
    query = (
        select(items.c.item, scores.c.vote_key)
        .join(items, items.c.id == scores.c.item)
        .where(scores.c.run == run.id, scores.c.vote_key != "")
        .distinct()
    )
    with store.reading() as connection:
        return {(row.item, row.vote_key) for row in connection.execute(query)}


def _flagged(run: Run, item: str, vote: Vote, text: str) -> FlaggedVote:
    return FlaggedVote(run.system, run.condition, item, vote.judge, vote.flags, dict(vote.reply), text)
