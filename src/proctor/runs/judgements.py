"""What judges of dimensions said of the answers of a store: one by one, and in short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import select

from proctor.core import Item, Metric, Status
from proctor.runs import schema
from proctor.runs.store import Run, Store


@dataclass(frozen=True)
class DimensionJudgement:
    """What one scorer said of one answer: its scores by dimension, the flags of a judge's reply, and the reply itself as
    plain JSON (reasons, broken rules, what is missing and why …; empty where a scorer keeps none)."""

    item: str
    system: str
    condition: str
    scorer: str
    values: Mapping[str, float]
    flags: tuple[str, ...]
    reply: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As programs read it: one flat object."""
        return asdict(self) | {"values": dict(self.values), "flags": list(self.flags), "reply": dict(self.reply)}

    @property
    def breaks(self) -> tuple[str, ...]:
        """The rules between dimensions that its scores break."""
        return tuple(self.reply.get("breaks", ()))


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """One dimension over all answers in one language. `disagreement` is the members' mean one, where the judge is an
    ensemble."""

    language: str
    dimension: str
    scores: int
    missing: int
    mean: float | None
    disagreement: float | None


def judgements_of(store: Store, benchmark: str, runs: Sequence[Run], scorer: str) -> list[DimensionJudgement]:
    """What a scorer said of the answers of these runs, by run and in the benchmark's order."""
    order = {item.id: place for place, item in enumerate(store.items(benchmark))}
    metrics = {metric.name for metric in _dimensions(store, benchmark)}
    scores, items = schema.scores, schema.items
    found: list[DimensionJudgement] = []
    for run in runs:
        query = (
            select(items.c.item, scores.c.metric, scores.c.value, scores.c.vote_key)
            .join(items, items.c.id == scores.c.item)
            .where(scores.c.run == run.id, scores.c.scorer == scorer)
        )
        with store.reading() as connection:
            rows = [row for row in connection.execute(query) if row.metric in metrics]
        votes = store.votes(row.vote_key for row in rows if row.vote_key)
        values: dict[str, dict[str, float]] = {}
        behind: dict[str, str] = {}
        for row in rows:
            values.setdefault(row.item, {})[row.metric] = float(row.value)
            behind[row.item] = row.vote_key
        for item in sorted(values, key=lambda name: order[name]):
            vote = votes.get(behind[item])
            found.append(
                DimensionJudgement(
                    item,
                    run.system,
                    run.condition,
                    scorer,
                    values[item],
                    vote.flags if vote else (),
                    vote.reply if vote else {},
                )
            )
    return found


def rating_summary(
    store: Store, benchmark: str, runs: Sequence[Run], scorer: str
) -> tuple[list[RatingSummary], Counter[str], Counter[str]]:
    """A scorer's scores in short: by language and dimension, how many answers break each rule, and how many have each
    flag. Missing are the dimensions of answers that the runs have (failed ones left out) and the scorer did not score."""
    items = {item.id: item for item in store.items(benchmark)}
    answered = [
        items[name] for run in runs for name, answer in store.answers(run).items() if answer.status is not Status.FAILED
    ]
    said = judgements_of(store, benchmark, runs, scorer)
    rows = []
    for language in dict.fromkeys(_language(item) for item in items.values()):
        for metric in _dimensions(store, benchmark):
            wanted = sum(_language(item) == language and metric.marks(item.answer.kind, language) for item in answered)
            inside = [one for one in said if _language(items[one.item]) == language]
            values = [one.values[metric.name] for one in inside if metric.name in one.values]
            apart = [
                float(one.reply["disagreement"][metric.name])
                for one in inside
                if metric.name in one.reply.get("disagreement", {})
            ]
            if wanted:
                missing = wanted - len(values)
                rows.append(RatingSummary(language, metric.name, len(values), missing, _mean(values), _mean(apart)))
    breaks = Counter(name for one in said for name in one.breaks)
    flags = Counter(name for one in said for name in one.flags if name not in one.breaks)
    return rows, breaks, flags


def _dimensions(store: Store, benchmark: str) -> Sequence[Metric]:
    scheme = store.card(benchmark).rating
    return scheme.metrics if scheme else ()


def _language(item: Item) -> str:
    return str(item.tags.get("language", ""))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
