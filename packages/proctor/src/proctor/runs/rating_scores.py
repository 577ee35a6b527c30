"""Ratings and external scores on their way into a store: a benchmark's dimensions, and scores by named scorers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from proctor.core import HUMAN, InputError, RatingScheme, Score
from proctor.judges import JUDGE_FLAGS, UNRESOLVED, is_decided
from proctor.runs.run_identity import CODE, chosen_runs, delete_command, refuse_other_metrics, run_name
from proctor.runs.schema import BenchmarkCard
from proctor.runs.store import Run, Store

if TYPE_CHECKING:
    from proctor.audits import Key


def refuse_other_scale(store: Store, benchmark: str, scheme: RatingScheme) -> None:
    """Raises `InputError` if a dimension is called as another metric of the benchmark with another range, or if its scale
    or direction differs from the one on which an automatic scorer has scored."""
    card, scorers = store.card(benchmark), store.scorers(benchmark)
    before = {metric.name: metric for metric in card.rating.metrics} if card.rating else {}
    refuse_other_metrics(store, benchmark, [one for one in scheme.metrics if one.name not in before], "the ratings")
    for metric in scheme.metrics:
        known = before.get(metric.name, metric)
        same = (known.low, known.high, known.higher_is_better) == (metric.low, metric.high, metric.higher_is_better)
        owner = next((who for who, some in scorers.items() if metric.name in some and not who.startswith(HUMAN)), "")
        if not same and owner:
            raise InputError(
                store.shown,
                f"dimension {metric.name}",
                found=f"a scale from {metric.low:g} to {metric.high:g}, and scores by {owner} on {known.low:g} to {known.high:g}",
                expected=f"the same scale, or none of these scores: {delete_command(store, benchmark, owner)}",
            )


def declare_ratings(store: Store, benchmark: str, scheme: RatingScheme) -> None:
    """Makes a scheme the benchmark's, with its dimensions as metrics. Raises as `refuse_other_scale`."""
    refuse_other_scale(store, benchmark, scheme)
    new = {metric.name: metric for metric in scheme.metrics}

    def declared(card: BenchmarkCard) -> BenchmarkCard:
        rated = {dimension.name for dimension in card.rating.dimensions} if card.rating else set()
        metrics = tuple(new.get(metric.name, metric) if metric.name in rated else metric for metric in card.metrics)
        changed = card.model_copy(update={"metrics": metrics, "rating": scheme})
        return changed.with_metrics(scheme.metrics)

    store.change_card(benchmark, declared)


def add_recorded_scores(
    store: Store, benchmark: str, scorer: str, scores: Mapping[Key, float | None], *, more: bool = False
) -> int:
    """Stores external scores as those of `scorer`, and returns their number. None is no score. With `more` the scorer may
    have scores of other answers.

    Raises `InputError` if `scorer` is a person's name, or has other scores of these answers already.
    """
    if scorer.startswith(HUMAN) or scorer == CODE or not scorer.strip():
        raise InputError("scorer", found=repr(scorer), expected="the name of an automatic scorer")
    runs = chosen_runs(store, benchmark)
    named = {run_name(run, runs, short=True): run for run in runs}
    before = {key: value for name, run in named.items() for key, value in _given(store, run, name, scorer)}
    known = {key: value for key, value in before.items() if not more or key in scores}
    other = next((key for key, value in known.items() if scores.get(key) != value), None)
    if other is not None:
        raise InputError(
            store.shown,
            f"scores by {scorer}",
            found=f"other ones already, the first for {', '.join(other)}",
            expected="the same scores, or a new name",
        )
    metrics = store.card(benchmark)
    for key, value in scores.items():
        metric = metrics.metric(key[2])
        if value is not None and not metric.low <= value <= metric.high:  # nor is NaN
            expected = f"a number from {metric.low:g} to {metric.high:g}"
            raise InputError(f"score of {', '.join(key)} by {scorer}", found=f"{value:g}", expected=expected)
    by_run: dict[str, list[Score]] = {}
    for (item, system, dimension), value in scores.items():
        if value is not None:
            score = Score(item_id=item, metric=dimension, value=value, scorer=scorer)
            by_run.setdefault(system, []).append(score)
    for system, own in by_run.items():
        store.add_scores(named[system], own)
    return sum(map(len, by_run.values()))


def _given(store: Store, run: Run, name: str, scorer: str) -> Iterator[tuple[Key, float]]:
    """A scorer's scores of a run's answers, without those that a person decided."""
    rows = store.score_rows(run, scorer=scorer)
    by_people = {row.item_id for row in rows if row.metric == UNRESOLVED.name and is_decided(row.label)}
    for row in rows:
        if row.metric not in JUDGE_FLAGS and row.item_id not in by_people:
            yield (row.item_id, name, row.metric), row.value
