"""What each scorer of a benchmark is (its settings and dimensions), so that one name never mixes two scorers; and how a
scorer's scores are deleted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

from pydantic import JsonValue
from sqlalchemy import delete, func, select

from proctor.core import HUMAN, InputError, Metric, RatingScheme, Scorer, one_of
from proctor.judges import UNRESOLVED
from proctor.runs import schema
from proctor.runs.database import claim
from proctor.runs.schema import BenchmarkCard
from proctor.runs.settings import changed_settings, without_addresses
from proctor.runs.store import Store


@runtime_checkable
class HasSettings(Protocol):
    """A scorer that says what changes its scores."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Its models' settings, its prompts, its dimensions …"""


def refuse_other_metrics(store: Store, benchmark: str, metrics: Sequence[Metric], scorer: str) -> None:
    """Raises `InputError` where the benchmark knows one of these metrics with another range or direction."""
    known = {one.name: one for one in store.card(benchmark).metrics}
    for metric in metrics:
        before = known.get(metric.name, metric)
        if other := _differences(before, metric):
            expected = f"the same range and direction ({scorer}: {other}), or another name"
            expected += _way_out(store, benchmark, metric.name)
            raise InputError(store.shown, f"metric {metric.name}", found="another declaration", expected=expected)


def declare_scorer(store: Store, benchmark: str, scorer: Scorer, scheme: RatingScheme | None = None) -> None:
    """Keeps what a scorer is, before it scores, and declares its metrics; a `scheme` becomes what the benchmark's answers
    are rated on.

    Raises `InputError`, and changes nothing, where the store has scores under the same name by a scorer with other
    settings (a server's address is none), and as `refuse_other_metrics`. Scores of stores that were written before
    scorers were recorded are taken for the scorer's own.
    """
    refuse_other_metrics(store, benchmark, scorer.metrics, scorer.name)
    settings = scorer.settings if isinstance(scorer, HasSettings) else {}
    now: dict[str, Any] = without_addresses(json.loads(json.dumps(settings)))
    before = store.card(benchmark).scorers.get(scorer.name, now)
    if before != now and store.scorers(benchmark).get(scorer.name, set()) - {UNRESOLVED.name}:
        raise InputError(
            store.shown,
            f"scores by {scorer.name}",
            found=f"other settings ({changed_settings(before, now)})",
            expected=f"the same settings, another --store, or none of these scores: {_delete(store, benchmark, scorer.name)}",
        )

    def declared(card: BenchmarkCard) -> BenchmarkCard:
        update: dict[str, Any] = {"scorers": {**card.scorers, scorer.name: now}}
        return card.with_metrics(scorer.metrics).model_copy(update=update | ({"rating": scheme} if scheme else {}))

    store.change_card(benchmark, declared)


def count_scores(store: Store, benchmark: str, scorer: str) -> int:
    """How many scores a scorer has given. Raises `InputError` for one that has given none."""
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
    """Deletes all scores by one scorer, and what it was; returns how many there were. Answers stay, and so do
    judgements. A metric that no score is left of, and that is not the benchmark's own, is declared no more.

    Raises `InputError` for a scorer without scores, and where another process is at work on one of the runs.
    """
    count_scores(store, benchmark, scorer)
    gone, table, ids = store.scorers(benchmark)[scorer], schema.scores, [run.id for run in store.runs(benchmark)]
    with store.writing() as connection:
        claim(connection, ids, store.shown)
        count = connection.execute(delete(table).where(table.c.run.in_(ids), table.c.scorer == scorer)).rowcount
    gone -= {name for names in store.scorers(benchmark).values() for name in names}

    def without(card: BenchmarkCard) -> BenchmarkCard:
        metrics = tuple(one for one in card.metrics if one.name not in gone or one.name in _own(card))
        scorers = {name: known for name, known in card.scorers.items() if name != scorer}
        return card.model_copy(update={"metrics": metrics, "scorers": scorers})

    store.change_card(benchmark, without)
    return int(count)


def refuse_out_of_range(store: Store, benchmark: str, metric: Metric, scorer: str, low: float, high: float) -> None:
    """Raises `InputError`, with the way out, where a scorer's lowest or highest score is outside of the metric's
    range."""
    if low < metric.low or high > metric.high:
        found = f"{low if low < metric.low else high:g}"
        expected = f"a number from {metric.low:g} to {metric.high:g}; to be rid of these scores: "
        expected += _delete(store, benchmark, scorer)
        raise InputError(store.shown, f"{metric.name} by {scorer}", found=found, expected=expected)


def _differences(before: Metric, now: Metric) -> str:
    """What differs in two declarations, except for what only says how a metric is shown or where it marks."""
    old, new = asdict(before), asdict(now)
    names = [name for name in old if old[name] != new[name] and name not in {"label", "formats", "chance"}]
    return ", ".join(f"{name} {new[name]}, in the store {old[name]}" for name in names)


def _way_out(store: Store, benchmark: str, metric: str) -> str:
    """How the metric's name becomes free, where it is not the benchmark's own and one scorer has given all its scores."""
    owners = [name for name, metrics in store.scorers(benchmark).items() if metric in metrics]
    if metric in _own(store.card(benchmark)) or len(owners) != 1 or owners[0].startswith(HUMAN):
        return ""
    return f", or none of the old scores: {_delete(store, benchmark, owners[0])}"


def _own(card: BenchmarkCard) -> tuple[str, ...]:
    """The benchmark's own metrics; of a store that was written before they were recorded the one that is known."""
    return card.own or (card.headline,)


def _delete(store: Store, benchmark: str, scorer: str) -> str:
    return f"proctor store delete {benchmark} --scorer '{scorer}' --store {store.shown}"
