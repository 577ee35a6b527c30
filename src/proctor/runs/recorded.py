"""Recorded answers: brought into a store as if they had just been given, scored as a file of predictions, or handed in."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import Benchmark, InputError, RecordedAnswers, Score, Scorer, Status
from proctor.runs.store import Run, Store


async def import_answers(
    store: Store,
    benchmark: Benchmark,
    recorded: RecordedAnswers,
    *,
    name: str,
    condition: str,
    scorers: Sequence[Scorer],
) -> Run:
    """Keeps recorded answers as the run of system `name` under `condition`, marked by `scorers`.

    Importing the same answers again changes nothing; a name that already has other answers is an
    `InputError`, and nothing is written.
    """
    store.add_benchmark(benchmark)
    items = {item.id: item for item in benchmark.items}
    marked: dict[str, list[Score]] = {answer.item_id: [] for answer in recorded.answers}
    for answer in recorded.answers:
        if answer.status is not Status.FAILED:
            item = items[answer.item_id]
            for scorer in scorers:
                if scorer.applies(item):
                    marked[answer.item_id].extend(await scorer.score(item, answer))
    for score in recorded.scores:
        marked[score.item_id].append(score)
    _refuse_others(store, benchmark.name, name, condition, recorded)
    settings = recorded.settings | {"notes": list(recorded.notes)}
    run = store.start_run(benchmark.name, name, condition, settings)
    with store.owning([run]):
        _refuse_others(store, benchmark.name, name, condition, recorded)
        store.put_votes(recorded.votes)
        store.write(run, [(answer, marked[answer.item_id]) for answer in recorded.answers])
    return run


async def import_systems(
    store: Store, benchmark: Benchmark, recorded: Sequence[RecordedAnswers], *, condition: str
) -> list[Run]:
    """Keeps the answers of several systems, each under its own name, with the scores that came with them.

    Raises `InputError` where one of these names has other answers already; then nothing is written.
    """
    store.add_benchmark(benchmark)
    for one in recorded:
        _refuse_others(store, benchmark.name, one.system, condition, one)
    return [
        await import_answers(store, benchmark, one, name=one.system, condition=condition, scorers=())
        for one in recorded
    ]


def _refuse_others(store: Store, benchmark: str, name: str, condition: str, recorded: RecordedAnswers) -> None:
    """Raises `InputError` where the name has answers already, and any of them is another one."""
    runs = store.runs(benchmark)
    given = {answer.item_id: answer for answer in recorded.answers}
    for run in runs:
        if (run.system, run.condition) == (name, condition) and store.answers(run) not in ({}, given):
            raise InputError(
                store.shown,
                f"run of {name} under {condition}",
                found="other answers already",
                expected=f"the same answers, or a new name: --name {_free(name, {one.system for one in runs})}",
            )


def _free(name: str, taken: set[str]) -> str:
    """The name with the first number from 2 that is not taken."""
    return next(new for number in range(2, len(taken) + 3) if (new := f"{name}-{number}") not in taken)
