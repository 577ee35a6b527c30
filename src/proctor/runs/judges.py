"""One judge of a store held against another, or against people whose marks were imported: their scores as
ratings and as a metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.core import InputError
from proctor.judges import CONTRADICTION, UNRESOLVED
from proctor.runs.results import chosen_runs
from proctor.runs.store import Store
from proctor.runs.table import load_items, load_raw_series

if TYPE_CHECKING:
    from proctor.audit import MetricScores, Rating, RatingsTable
    from proctor.audit.ratings import Key

__all__ = ["judged_by", "judges_of"]

_OWN = {CONTRADICTION.name, UNRESOLVED.name}


def judges_of(store: Store, benchmark: str) -> list[str]:
    """The names of all scorers that have marked answers, code left out; sorted."""
    table = load_items(store, store.card(benchmark), all_items=True)
    found = {
        one.scorer for run in chosen_runs(store, benchmark) for one in load_raw_series(store, run, table)
    }
    return sorted(found - {"code"})


def judged_by(
    store: Store, benchmark: str, judge: str, against: str, *, all_items: bool = False
) -> tuple[RatingsTable, MetricScores]:
    """What `against` said as ratings, and what `judge` said of the same answers as a metric.

    A dimension is a metric that both gave (that a judge contradicts itself, or a panel comes to no majority, is no
    score of an answer and is left out), a system is a run: its system and condition. Answers that only one of the two has marked
    are left out and counted in the notes. Raises `InputError` for an unknown judge, for one against
    itself, and where they share nothing.
    """
    from proctor.audit import MetricScores, RatingsTable

    known = judges_of(store, benchmark)
    for name in (judge, against):
        if name not in known:
            listed = f"one of {', '.join(known)}" if known else "a judge, and none has marked anything"
            raise InputError(store.shown, f"judge of {benchmark}", found=repr(name), expected=listed)
    if judge == against:
        raise InputError(store.shown, "judges", found=f"{judge} twice", expected="two judges")
    marks = {name: _marks(store, benchmark, name, all_items=all_items) for name in (judge, against)}
    shared = [key for key in marks[against] if key in marks[judge]]
    if not shared:
        raise InputError(
            store.shown, f"judges {judge} and {against}", found="no answer that both marked", expected="some"
        )
    ratings = tuple(_rated(store, benchmark, against, {key: marks[against][key] for key in shared}))
    alone = [len(marks[name]) - len(shared) for name in (judge, against)]
    notes = tuple(
        f"{count} scores by {name} alone are left out"
        for name, count in zip((judge, against), alone, strict=True)
        if count
    )
    return RatingsTable(ratings), MetricScores(judge, {key: marks[judge][key] for key in shared}, notes)


def _marks(store: Store, benchmark: str, judge: str, *, all_items: bool) -> dict[Key, float]:
    table = load_items(store, store.card(benchmark), all_items=all_items)
    found: dict[Key, float] = {}
    for run in chosen_runs(store, benchmark):
        for one in load_raw_series(store, run, table):
            if one.scorer == judge and one.metric not in _OWN:
                system = _named(run.system, run.condition)
                found |= {
                    (table.ids[place], system, one.metric): float(one.values[place])
                    for place in one.marked.nonzero()[0].tolist()
                }
    return found


def _rated(store: Store, benchmark: str, judge: str, marks: dict[Key, float]) -> Sequence[Rating]:
    from proctor.audit import Rating

    groups = {item.id: item.group for item in store.items(benchmark)}
    texts = {
        (name, _named(run.system, run.condition)): answer.text
        for run in chosen_runs(store, benchmark)
        for name, answer in store.answers(run).items()
    }
    return [
        Rating(item, texts[item, system], system, metric, judge, value, group=groups[item])
        for (item, system, metric), value in marks.items()
    ]


def _named(system: str, condition: str) -> str:
    return f"{system} / {condition}"
