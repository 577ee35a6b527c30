"""Bringing recorded answers into a store, as if they had just been given."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import Benchmark, InputError, RecordedAnswers, Score, Scorer, Status
from proctor.runs.store import Run, Store

__all__ = ["import_answers"]


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
    settings = recorded.settings | {"notes": list(recorded.notes)}
    run = store.start_run(benchmark.name, name, condition, settings)
    with store.owning([run]):
        before = store.answers(run)
        if before and before != {answer.item_id: answer for answer in recorded.answers}:
            raise InputError(
                store.shown,
                f"run of {name} under {condition}",
                found="other answers under this name",
                expected="a new name with --as",
            )
        store.put_votes(recorded.votes)
        store.write(run, [(answer, marked[answer.item_id]) for answer in recorded.answers])
    return run
