"""Which stored answers a judge still has to judge, once or in one of its repetitions; and keeping what it said.

Of several judgements of one answer by the same judge each is kept, and their mean is the answer's score. A judgement's key
in the cache is the hash of the request and, beyond the first, the number of the judge's repetition (`CachedModel`): what
was paid for is found again, and no two repetitions share a reply. The scores of each repetition are rows of
`judge_scores`; `scores` has their mean, which is written in the same transaction. So a reader of scores needs to know
nothing of this, and one of `judge_scores` has judge × item × repetition whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, select, tuple_

from proctor import core, judges
from proctor.core import Score, environment_scrubber
from proctor.judges import AWAITING_JUDGEMENTS, RESOLVED, UNRESOLVED, is_decided
from proctor.runs import schema
from proctor.runs.bulk_sql import in_parts, upsert_rows
from proctor.runs.run_identity import repeats_of
from proctor.runs.store import Run, Store
from proctor.runs.tables import one_at_a_time


@dataclass(frozen=True)
class ToJudge:
    """An answer to judge, and whether it was left without a verdict before."""

    run: Run
    item: core.Item
    answer: core.Answer
    open_before: bool


Choice = Callable[[tuple[core.Item, core.Answer]], ToJudge | None]


def recorded_repeats(store: Store, run: Run, scorer: core.Scorer) -> int:
    return repeats_of(store.card(run.benchmark).scorers.get(scorer.name, {}))


def judged_once(store: Store, run: Run, scorer: core.Scorer) -> Choice:
    """Which answers of a run the judge has to judge, where each is judged once."""
    opened = {number: _awaiting(store, run, scorer, number) for number in store.repetitions(run)}
    scored = {number: store.scored(run, scorer.name, number) - waiting for number, waiting in opened.items()}

    def choice(pair: tuple[core.Item, core.Answer]) -> ToJudge | None:
        item, answer = pair
        if item.id in scored[answer.repetition] or not scorer.applies(item):
            return None
        return ToJudge(run, item, answer, item.id in opened[answer.repetition])

    return choice


def judged_several_times(store: Store, run: Run, scorer: core.Scorer, number: int) -> Choice:
    """Which answers of a run the judge has to judge in its repetition `number`; none that a person has decided."""
    fallback = isinstance(scorer, judges.WithFallback)
    scored, opened, decided = {}, {}, {}
    for answered in store.repetitions(run):
        found, states = judged_items(store, run, scorer.name, answered, number)
        opened[answered] = {item for item, label in states.items() if _is_open(label, fallback=fallback)}
        scored[answered] = found - opened[answered]
        rows = store.score_rows(run, scorer=scorer.name, metric=judges.UNRESOLVED.name, repetition=answered)
        decided[answered] = {row.item_id for row in rows if judges.is_decided(row.label)}

    def choice(pair: tuple[core.Item, core.Answer]) -> ToJudge | None:
        item, answer = pair
        if item.id in scored[answer.repetition] | decided[answer.repetition] or not scorer.applies(item):
            return None
        return ToJudge(run, item, answer, item.id in opened[answer.repetition])

    return choice


def answers_to_judge(
    store: Store, run: Run, *, all_items: bool, failed: bool = False
) -> list[tuple[core.Item, core.Answer]]:
    """The answers of a run to items that count (or to all), repetition by repetition; with `failed` also those that
    failed."""
    card, items = store.card(run.benchmark), store.items(run.benchmark)
    counted = [item for item in items if all_items or card.counts(item)]
    found = []
    for number in store.repetitions(run):
        answers = store.answers(run, number)
        found += [
            (item, answers[item.id])
            for item in counted
            if item.id in answers and (failed or answers[item.id].status is not core.Status.FAILED)
        ]
    return found


def _awaiting(store: Store, run: Run, scorer: core.Scorer, repetition: int) -> set[str]:
    """The items to judge again: those without a verdict, those that lack a judgement of a panel, and, if there is a fallback
    judge, those with a tie of the panel."""
    fallback = isinstance(scorer, judges.WithFallback)
    rows = store.score_rows(run, scorer=scorer.name, metric=judges.UNRESOLVED.name, repetition=repetition)
    return {row.item_id for row in rows if _is_open(row.label, fallback=fallback)}


def _is_open(label: str, *, fallback: bool) -> bool:
    return label in (judges.AWAITING_JUDGEMENTS | {judges.TIE} if fallback else judges.AWAITING_JUDGEMENTS)


def keep_judged(store: Store, done: list[JudgedScore], scorer: core.Scorer, several: Mapping[int, bool]) -> None:
    runs = {run.id: run for run, _, _ in done}
    if any(score.metric == judges.UNRESOLVED.name for _, score, _ in done):
        formats = tuple(dict.fromkeys(kind for metric in scorer.metrics for kind in metric.formats))
        if any(metric.name == core.ACCURACY.name for metric in scorer.metrics):
            formats = judges.UNRESOLVED.formats  # code completes a panel's accuracy; its verdicts are on free text
        for name in {run.benchmark for run in runs.values()}:
            store.declare_metrics(name, [replace(judges.UNRESOLVED, formats=formats)])
    if any(several.values()):
        add_judge_scores(store, [one for one in done if several[one[0].id]])
    for number, run in runs.items():
        if not several[number]:
            store.add_scores(run, [score for owner, score, _ in done if owner.id == number])
    done.clear()


JudgedScore = tuple[Run, Score, int]
"""A run, a score of one of its answers, and the number of the judge's repetition, from 0."""

_Key = tuple[int, int, str, int]
"""What a mean belongs to: the numbers of run and item, the scorer, and the answer's repetition."""


def judged_items(
    store: Store, run: Run, scorer: str, repetition: int, judge_repetition: int
) -> tuple[set[str], dict[str, str]]:
    """The ids of the items whose answer (of a repetition) a scorer has scored in one of its own repetitions; and the
    labels of those that it left without a verdict there."""
    names = {number: name for name, number in store.item_numbers(run.benchmark).items()}
    table = schema.judge_scores
    query = select(table.c.item, table.c.metric, table.c.value, table.c.label).where(
        schema.repetition_of(table, run.id, repetition),
        table.c.scorer == scorer,
        table.c.judge_repetition == judge_repetition,
    )
    with store.reading() as connection:
        rows = connection.execute(query).all()
    states = {names[row.item]: row.label for row in rows if row.metric == UNRESOLVED.name}
    return {names[row.item] for row in rows}, states


def judge_score_rows(store: Store, run: Run, *, scorer: str = "", repetition: int = 0) -> list[Any]:
    """The single scores behind the means of a run's answers of one repetition, as rows with the fields of `Score` and
    `judge_repetition`; optionally those of one scorer. Empty where each answer was judged once."""
    table, items = schema.judge_scores, schema.items
    fields = [table.c[name] for name in (*Score.model_fields, "judge_repetition") if name != "item_id"]
    query = select(items.c.item.label("item_id"), *fields).join(items, items.c.id == table.c.item)
    query = query.where(schema.repetition_of(table, run.id, repetition))
    query = query.where(table.c.scorer == scorer) if scorer else query
    with store.reading() as connection:
        return list(connection.execute(query.order_by(items.c.position, table.c.metric, table.c.judge_repetition)))


def add_judge_scores(store: Store, scores: Sequence[JudgedScore]) -> None:
    """Writes single scores and the means that follow from all there are now: all, or none. A single score replaces one of
    the same metric, scorer and repetitions. What a person has decided stays (`decide`)."""
    if not scores:
        return
    table, hide = schema.judge_scores, environment_scrubber()
    rows = [
        schema.score_row(run.id, store.item_numbers(run.benchmark)[score.item_id], score)
        | {"judge_repetition": number, "label": hide.text(score.label)}
        for run, score, number in scores
    ]
    new = store.upsert(table)
    values = {name: new.excluded[name] for name in ("value", "label", "judgement_key")}
    upsert = new.on_conflict_do_update(index_elements=list(table.primary_key.columns), set_=values)
    keys = sorted({_key(row) for row in rows})
    with store.writing() as connection:
        one_at_a_time(connection, "judge_scores")  # a mean is of all that is there
        upsert_rows(connection, table, upsert, rows)
        decided = _decided(connection, keys)
        means = [
            {"run": run, "item": item, **vars(score)}
            for (run, item, scorer, repetition), found in _singles(connection, keys).items()
            if (run, item, scorer, repetition) not in decided
            for score in mean_scores(found)
        ]
        for row in means:
            del row["item_id"]
        store.write_scores(connection, means)


def mean_scores(singles: Mapping[int, Sequence[Score]]) -> list[Score]:
    """The scores of an answer from those of each repetition of one scorer: of each metric the mean over the repetitions
    that gave it. The label is theirs if they agree, the judgement that of the first one.

    An answer is unresolved if no repetition came to a verdict; those without one are missing from the mean, and the next
    pass asks them again.

    >>> def one(metric: str, value: float, label: str = "") -> Score:
    ...     return Score(item_id="q1", metric=metric, value=value, scorer="judge", label=label)
    >>> found = mean_scores({0: [one("rubric", 2, "2")], 1: [one("rubric", 1, "1")], 2: [one("unresolved", 1, "tie")]})
    >>> [(score.metric, score.value, score.label) for score in found]
    [('rubric', 1.5, ''), ('unresolved', 0.0, 'resolved')]
    """
    by_metric: dict[str, list[Score]] = {}
    for number in sorted(singles):
        for score in singles[number]:
            by_metric.setdefault(score.metric, []).append(score)
    found = []
    for metric, scores in by_metric.items():
        if metric == UNRESOLVED.name:
            found.append(_state(singles, scores))
            continue
        labels = {score.label for score in scores}
        mean = sum(score.value for score in scores) / len(scores)
        update = {"value": mean, "label": labels.pop() if len(labels) == 1 else ""}
        found.append(scores[0].model_copy(update=update))
    return found


def _state(singles: Mapping[int, Sequence[Score]], states: Sequence[Score]) -> Score:
    """Whether an answer has a verdict in any repetition."""
    without = sum(score.value == 1 for score in states)
    if without < len(singles):
        solved = next((score for score in states if score.value != 1), states[0])
        return solved.model_copy(update={"value": 0.0, "label": solved.label if solved.value != 1 else RESOLVED})
    return next((score for score in states if score.label in AWAITING_JUDGEMENTS), states[0])


def _key(row: Mapping[str, Any]) -> _Key:
    return row["run"], row["item"], row["scorer"], row["repetition"]


def _singles(connection: Connection, keys: Sequence[_Key]) -> dict[_Key, dict[int, list[Score]]]:
    """The single scores of these answers, by the judge's repetition."""
    table, found = schema.judge_scores, dict[_Key, dict[int, list[Score]]]()
    for row in _rows(connection, table, keys, table.c.judge_repetition, table.c.metric):
        score = Score(item_id="", **{name: row[name] for name in Score.model_fields if name != "item_id"})
        found.setdefault(_key(row), {}).setdefault(row["judge_repetition"], []).append(score)
    return found


def _decided(connection: Connection, keys: Sequence[_Key]) -> set[_Key]:
    """Those of the answers that a person has decided."""
    rows = _rows(connection, schema.scores, keys)
    return {_key(row) for row in rows if row["metric"] == UNRESOLVED.name and is_decided(row["label"])}


def _rows(connection: Connection, table: Any, keys: Sequence[_Key], *order: Any) -> Iterable[Mapping[str, Any]]:
    columns = tuple_(table.c.run, table.c.item, table.c.scorer, table.c.repetition)
    for part in in_parts(keys):
        query = select(table).where(columns.in_(part)).order_by(*order)
        yield from (dict(row) for row in connection.execute(query).mappings())
