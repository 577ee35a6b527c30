"""Which stored answers a judge still has to judge, once or in one of its repetitions; and keeping what it said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from proctor import core, judges
from proctor.runs.run_identity import repeats_of
from proctor.runs.store import Run, Store

if TYPE_CHECKING:
    from proctor.runs.judge_repetitions import JudgedScore


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
    from proctor.runs.judge_repetitions import judged_items

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
        from proctor.runs.judge_repetitions import add_judge_scores

        add_judge_scores(store, [one for one in done if several[one[0].id]])
    for number, run in runs.items():
        if not several[number]:
            store.add_scores(run, [score for owner, score, _ in done if owner.id == number])
    done.clear()
