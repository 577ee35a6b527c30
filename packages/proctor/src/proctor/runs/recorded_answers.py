"""Recorded answers, and the scores recorded with them, as the runs of systems in a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proctor import core
from proctor.runs.engine import scores_of
from proctor.runs.run_identity import REPEATS
from proctor.runs.store import Run, Store

_AnswerKey = tuple[str, int]
"""An item's id, and the repetition."""


def _key(answer: core.Answer) -> _AnswerKey:
    return answer.item_id, answer.repetition


async def import_answers(
    store: Store,
    benchmark: core.Benchmark,
    recorded: core.RecordedAnswers,
    *,
    name: str,
    condition: str,
    scorers: Sequence[core.Scorer],
) -> Run:
    """Stores recorded answers as the run of system `name` under `condition`, scored by `scorers`.

    Importing the same answers again changes nothing. Raises `InputError`, and writes nothing, if the name has other
    answers already.
    """
    core.admit_recorded(recorded, benchmark, f"answers of {name}")
    store.add_benchmark(benchmark)
    items = {item.id: item for item in benchmark.items}
    scored: dict[_AnswerKey, list[core.Score]] = {_key(answer): [] for answer in recorded.answers}
    for answer in recorded.answers:
        if answer.status is not core.Status.FAILED:
            scored[_key(answer)] += await scores_of(scorers, items[answer.item_id], answer)
    return _kept(store, benchmark.name, recorded, scored, (name, condition))


async def import_systems(
    store: Store,
    benchmark: core.Benchmark,
    recorded: Sequence[core.RecordedAnswers],
    *,
    condition: str,
    scorers: Sequence[core.Scorer] = (),
) -> list[Run]:
    """Stores the answers of several systems, each under its own name, with their recorded scores and those of `scorers`.

    The answers may be a part of a system's answers, rated by further people. Raises `InputError`, and writes nothing, if
    a system has another answer already, or a person has rated an answer differently.
    """
    for recorded_answers in recorded:
        core.admit_recorded(recorded_answers, benchmark, f"answers of {recorded_answers.system}")
    _refuse_twice(recorded)
    store.add_benchmark(benchmark)
    for recorded_answers in recorded:
        _refuse_others(store, benchmark.name, recorded_answers, (recorded_answers.system, condition), part=True)
    items = {item.id: item for item in benchmark.items}
    scored = [
        {_key(answer): await scores_of(scorers, items[answer.item_id], answer) for answer in part.answers}
        for part in recorded
    ]
    return [
        _kept(store, benchmark.name, part, own, (part.system, condition), part=True)
        for part, own in zip(recorded, scored, strict=True)
    ]


def _refuse_twice(recorded: Sequence[core.RecordedAnswers]) -> None:
    """Raises `InputError` where two parts have an answer of the same system to the same question."""
    seen = set[tuple[str, _AnswerKey]]()
    for part in recorded:
        for answer in part.answers:
            if (part.system, _key(answer)) in seen:
                found = f"another answer to {core.answer_name(answer)}"
                raise core.InputError(f"answers of {part.system}", found=found, expected="one answer to each question")
            seen.add((part.system, _key(answer)))


def _kept(
    store: Store,
    benchmark: str,
    recorded: core.RecordedAnswers,
    scored: Mapping[_AnswerKey, list[core.Score]],
    name: tuple[str, str],
    *,
    part: bool = False,
) -> Run:
    """Stores the run of a system under a condition (`name`) with these answers, their recorded scores and those in
    `scored`."""
    for score in recorded.scores:
        scored[score.item_id, score.repetition].append(score)
    _refuse_others(store, benchmark, recorded, name, part=part)
    settings = recorded.settings | {"notes": list(recorded.notes)}
    repeats = 1 + max((answer.repetition for answer in recorded.answers), default=0)
    settings |= {REPEATS: repeats} if repeats > 1 else {}
    run = store.start_run(benchmark, *name, settings)
    with store.owning([run]) as lease:
        _refuse_others(store, benchmark, recorded, name, part=part)
        store.put_judgements(recorded.judgements)
        store.write(run, [(answer, scored[_key(answer)]) for answer in recorded.answers], lease.kept)
        if lease.lost is not None:
            raise lease.lost
    return run


def _refuse_others(
    store: Store, benchmark: str, recorded: core.RecordedAnswers, name: tuple[str, str], *, part: bool = False
) -> None:
    """Raises `InputError` if the run has a different answer already (or, unless these are a `part`, a further one), or
    another rating by the same person."""
    runs = {(run.system, run.condition): run for run in store.runs(benchmark)}
    if name not in runs:
        return
    run, given = runs[name], {_key(answer): answer for answer in recorded.answers}
    repetitions = store.repetitions(run)
    before = {_key(answer): answer for number in repetitions for answer in store.answers(run, number).values()}
    if part:
        before = {key: answer for key, answer in before.items() if key in given}
    if before not in ({}, given):
        other = f"a new name: --name {_free(name[0], {system for system, _ in runs})}"
        there, now = max(repetitions) + 1, max(number for _, number in given) + 1
        what = f"{core.count_of(there, 'repetition')} already, and {now} here"
        raise core.InputError(
            store.shown,
            f"run of {name[0]} under {name[1]}",
            found="other answers already" if part or there == now else what,
            expected=f"the same answers, or {'another --store' if part else other}",
        )
    _refuse_other_ratings(store, run, recorded)


def _refuse_other_ratings(store: Store, run: Run, recorded: core.RecordedAnswers) -> None:
    """Raises `InputError` if a person has rated an answer of the run otherwise."""
    rows = [row for number in store.repetitions(run) for row in store.score_rows(run, repetition=number)]
    rated = {
        (row.item_id, row.repetition, row.metric, row.scorer): row.value
        for row in rows
        if row.scorer.startswith(core.HUMAN)
    }
    for score in recorded.scores:
        value = rated.get((score.item_id, score.repetition, score.metric, score.scorer), score.value)
        if value != score.value:
            location = f"the rating of {score.item_id}, {run.system}, {score.metric} by {score.scorer.removeprefix(core.HUMAN)}"
            expected = f"{value:g}, as {store.shown} has it already, or another --store"
            raise core.InputError(location, found=f"{score.value:g}", expected=expected)


def _free(name: str, taken: set[str]) -> str:
    """The name with the first free number from 2."""
    return next(new for number in range(2, len(taken) + 3) if (new := f"{name}-{number}") not in taken)
