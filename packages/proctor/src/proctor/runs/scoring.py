"""Scoring stored answers by code or by judges, and importing recorded answers with their scores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from proctor import core, judges
from proctor.judges import AWAITING_VOTES, NO_VERDICT, RESOLVED, TIE, UNRESOLVED, PartialScoresError
from proctor.runs.engine import scores_of
from proctor.runs.run_identity import REPEATS, refuse_other_metrics, repeats_of, same_run, scorer_settings
from proctor.runs.store import Run, Store

if TYPE_CHECKING:
    from proctor.runs.judge_repetitions import JudgedScore


async def score_answers(store: Store, runs: Sequence[Run], scorer: core.Scorer, *, all_items: bool = False) -> int:
    """Scores every answer that the scorer applies to, of items that count (or of all); returns their number.

    Stored scores are replaced: the function may have changed. Raises `InputError` if the store has a metric of that name
    with another range or direction.
    """
    core.admit_scorer(scorer)
    scored = 0
    for run in runs:
        refuse_other_metrics(store, run.benchmark, scorer.metrics, scorer.name)
        pairs = [pair for pair in _answered(store, run, all_items=all_items) if scorer.applies(pair[0])]
        found: list[core.Score] = []
        for item, answer in pairs:
            found += of_repetition(answer, await core.scored(scorer, item, answer))
        store.declare_metrics(run.benchmark, scorer.metrics)
        await asyncio.to_thread(store.add_scores, run, found)
        scored += len(pairs)
    return scored


async def score_changed(store: Store, benchmark: str, scorers: Sequence[core.Scorer]) -> list[str]:
    """Scores all stored answers again by those scorers from outside Proctor whose code has changed since they scored
    them, so that no table mixes two versions; returns notes that say so. Records the code of all of them."""
    notes: list[str] = []
    now = {scorer.name: scorer_settings(scorer) for scorer in scorers if core.code_hash(scorer)}
    before = store.card(benchmark).scorers
    for scorer in scorers:
        if scorer.name in now and not same_run(before.get(scorer.name, now[scorer.name]), now[scorer.name]):
            count = await score_answers(store, store.runs(benchmark), scorer, all_items=True)
            notes.append(f"{scorer.name} has changed: {core.count_of(count, 'stored answer')} scored again")
    if any(before.get(name) != settings for name, settings in now.items()):
        store.change_card(benchmark, lambda card: card.model_copy(update={"scorers": card.scorers | now}))
    return notes


def of_repetition(answer: core.Answer, scores: Sequence[core.Score]) -> list[core.Score]:
    """The scores as those of an answer: with its repetition."""
    number = answer.repetition
    return [
        score if score.repetition == number else score.model_copy(update={"repetition": number}) for score in scores
    ]


_WRITE_EVERY = 64


@runtime_checkable
class SeesAnswers(Protocol):
    """A scorer that needs all answers before it scores the first one."""

    async def see(self, answers: Sequence[tuple[core.Item, core.Answer]]) -> None:
        """Receives the answers of all runs, scored ones included."""


@dataclass(frozen=True)
class JudgeLimits:
    """The number of concurrent judgements, the number of infrastructure errors in a row that ends the pass, and the largest
    number of answers to judge (`most`; None: all). `shard` (k, n) takes only items of part k of n (1 to n), so that n
    processes share a store; an item's part depends only on its id."""

    concurrency: int = core.CONCURRENCY
    give_up_after: int = core.GIVE_UP_AFTER
    most: int | None = None
    shard: tuple[int, int] | None = None

    def takes(self, item: core.Item) -> bool:
        """Whether the item is in the shard."""
        return self.shard is None or int(core.content_hash(item.id), 16) % self.shard[1] == self.shard[0] - 1


class PaidJudgements:
    """A judgement cache that adds up what is paid. `count` is the number of new judgements, `lost` that of questions
    that were paid for and no judgement came of; `usage` is that of both."""

    def __init__(self, judgements: core.JudgementCache) -> None:
        self._judgements = judgements
        self.count = 0
        self.lost = 0
        self.usage = core.Usage()

    def get(self, key: str) -> core.Judgement | None:
        """A judgement by its key (see `JudgementCache`)."""
        return self._judgements.get(key)

    def put(self, judgement: core.Judgement) -> None:
        """Stores a new, paid judgement (see `JudgementCache`)."""
        self._judgements.put(judgement)
        self.count += 1
        self.usage += judgement.usage

    def add_cost(self, usage: core.Usage) -> None:
        """Counts what was paid for a question that no judgement came of."""
        self.lost += usage.requests
        self.usage += usage


@dataclass
class JudgeTally:
    """Progress: of `total` answers (with repetitions of the judge: judgements), `scored` ones have a score; on `unresolved` ones a panel found no majority; `unscored`
    ones got no verdict, and are stored as unresolved. `awaiting` ones of the first two lack a judge's vote, and another
    pass asks for it."""

    total: int = 0
    scored: int = 0
    unresolved: int = 0
    unscored: int = 0
    awaiting: int = 0
    rejected: int = 0
    """Answers without a verdict because the judge's server rejected the request, which it would reject again."""
    last_reason: str = ""

    @property
    def done(self) -> int:
        """The number of judged answers, with or without a verdict."""
        return self.scored + self.unresolved + self.unscored

    @property
    def left(self) -> int:
        """The number of answers for another pass."""
        return self.total - self.scored - self.unresolved + self.awaiting

    def count(self, scores: Sequence[core.Score]) -> None:
        panel = next((score for score in scores if score.metric == UNRESOLVED.name), None)
        if panel is not None and panel.value == 1:
            self.unresolved += 1
        else:
            self.scored += 1
        self.awaiting += panel is not None and panel.label in AWAITING_VOTES


async def judge_all(
    store: Store,
    runs: Sequence[Run],
    scorer: core.Scorer,
    limits: JudgeLimits | None = None,
    *,
    all_items: bool = False,
    stop: asyncio.Event | None = None,
    on_change: Callable[[JudgeTally], None] = lambda _: None,
    repeats: int = 1,
) -> JudgeTally:
    """Judges every answer that the judge applies to and has not scored, of items that count (or of all), without failed
    answers; and unresolved answers that another pass may settle. Answers of all repetitions are judged.

    With `repeats` each answer is judged that often, and its score is the mean (`judge_repetitions`): all answers once
    before any twice. More can be asked for later, and fewer change nothing.

    An answer without a verdict (a refusal, a malformed reply or none) is stored as unresolved, so that it is listed and
    judged again and stays in the denominators. Answers beyond the limits are left for the next call. Raises all other
    errors of the judge.
    """
    tally, limits = JudgeTally(), limits or JudgeLimits()
    stop = stop or asyncio.Event()
    several = {run.id: max(repeats, _recorded_repeats(store, run, scorer)) > 1 for run in runs}
    passes: list[list[_ToJudge]] = []
    for number in range(repeats):
        passes.append([])
        for run in runs:
            own = [pair for pair in _answered(store, run, all_items=all_items) if limits.takes(pair[0])]
            by = _once(store, run, scorer) if not several[run.id] else _several_times(store, run, scorer, number)
            passes[-1] += [one for one in map(by, own) if one is not None]
    tally.total = sum(map(len, passes))
    left = tally.total if limits.most is None else limits.most
    for number, found in enumerate(passes):
        work, left = found[:left], max(0, left - len(found))
        if not work or stop.is_set():
            continue
        done: list[JudgedScore] = []

        def keep(
            row: int,
            scores: Sequence[core.Score],
            work: Sequence[_ToJudge] = work,
            done: list[JudgedScore] = done,
            number: int = number,
        ) -> None:
            done.extend((work[row].run, score, number) for score in of_repetition(work[row].answer, scores))
            if len(done) >= _WRITE_EVERY:
                _flush(store, done, scorer, several)
            on_change(tally)

        with core.as_repetition(number):
            if isinstance(scorer, SeesAnswers):
                every = [_answered(store, run, all_items=all_items, failed=True) for run in runs]
                await scorer.see([pair for own in every for pair in own])
            try:
                answers = [(one.item, one.answer, one.open_before) for one in work]
                await judge_each(scorer, answers, limits, tally, stop, keep)
            finally:
                _flush(store, done, scorer, several)
    return tally


@dataclass(frozen=True)
class _ToJudge:
    """An answer to judge, and whether it was left without a verdict before."""

    run: Run
    item: core.Item
    answer: core.Answer
    open_before: bool


_Choice = Callable[[tuple[core.Item, core.Answer]], _ToJudge | None]


def _recorded_repeats(store: Store, run: Run, scorer: core.Scorer) -> int:
    return repeats_of(store.card(run.benchmark).scorers.get(scorer.name, {}))


def _once(store: Store, run: Run, scorer: core.Scorer) -> _Choice:
    """Which answers of a run the judge has to judge, where each is judged once."""
    opened = {number: _awaiting(store, run, scorer, number) for number in store.repetitions(run)}
    scored = {number: store.scored(run, scorer.name, number) - waiting for number, waiting in opened.items()}

    def choice(pair: tuple[core.Item, core.Answer]) -> _ToJudge | None:
        item, answer = pair
        if item.id in scored[answer.repetition] or not scorer.applies(item):
            return None
        return _ToJudge(run, item, answer, item.id in opened[answer.repetition])

    return choice


def _several_times(store: Store, run: Run, scorer: core.Scorer, number: int) -> _Choice:
    """Which answers of a run the judge has to judge in its repetition `number`; none that a person has decided."""
    from proctor.runs.judge_repetitions import judged_items

    fallback = isinstance(scorer, judges.WithFallback)
    scored, opened, decided = {}, {}, {}
    for answered in store.repetitions(run):
        found, states = judged_items(store, run, scorer.name, answered, number)
        opened[answered] = {item for item, label in states.items() if _is_open(label, fallback=fallback)}
        scored[answered] = found - opened[answered]
        rows = store.score_rows(run, scorer=scorer.name, metric=UNRESOLVED.name, repetition=answered)
        decided[answered] = {row.item_id for row in rows if judges.is_decided(row.label)}

    def choice(pair: tuple[core.Item, core.Answer]) -> _ToJudge | None:
        item, answer = pair
        if item.id in scored[answer.repetition] | decided[answer.repetition] or not scorer.applies(item):
            return None
        return _ToJudge(run, item, answer, item.id in opened[answer.repetition])

    return choice


async def judge_each(
    scorer: core.Scorer,
    answers: Sequence[tuple[core.Item, core.Answer, bool]],
    limits: JudgeLimits,
    tally: JudgeTally,
    stop: asyncio.Event,
    keep: Callable[[int, Sequence[core.Score]], None],
) -> None:
    """Judges answers concurrently, each with whether it was unresolved before, until `stop` is set, also by
    `give_up_after` infrastructure errors in a row. `keep` gets the place of each judged answer and its scores."""
    left, faults = iter(enumerate(answers)), list[core.ProctorError]()
    in_a_row = 0

    async def worker() -> None:
        nonlocal in_a_row
        for row, (item, answer, open_before) in left:
            if stop.is_set():
                return
            try:
                scores, broken = await _judged(scorer, item, answer, open_before, tally)
            except core.ProctorError as error:  # the judgements under way are paid for: they are waited for, and kept
                faults.append(error)
                stop.set()
                return
            in_a_row = in_a_row + 1 if broken else 0
            if in_a_row >= limits.give_up_after:
                stop.set()
            keep(row, scores)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(limits.concurrency):
                tasks.create_task(worker())
    except* core.ProctorError as errors:
        raise errors.exceptions[0] from None
    if faults:
        raise faults[0]


async def _judged(
    scorer: core.Scorer, item: core.Item, answer: core.Answer, open_before: bool, tally: JudgeTally
) -> tuple[list[core.Score], bool]:
    """The scores to store of one answer, and whether an infrastructure error occurred."""
    try:
        scores = await core.scored(scorer, item, answer)
    except (PartialScoresError, core.InfrastructureError, core.RefusalError, core.SystemFaultError) as error:
        tally.unscored += 1
        tally.rejected += bool(error.rejected)
        tally.last_reason = str(error)
        came = error.scores if isinstance(error, PartialScoresError) else ()
        state = [] if open_before else [_state(item, scorer, NO_VERDICT)]
        return [*came, *state], type(error) is core.InfrastructureError
    tally.count(scores)
    if open_before and all(score.metric != UNRESOLVED.name for score in scores):
        scores = [*scores, _state(item, scorer, RESOLVED)]
    return scores, False


def _state(item: core.Item, scorer: core.Scorer, how: str) -> core.Score:
    """The score that says that an answer has no verdict, or has one now."""
    value = float(how == NO_VERDICT)
    return core.Score(item_id=item.id, metric=UNRESOLVED.name, value=value, scorer=scorer.name, label=how)


def _answered(store: Store, run: Run, *, all_items: bool, failed: bool = False) -> list[tuple[core.Item, core.Answer]]:
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
    rows = store.score_rows(run, scorer=scorer.name, metric=UNRESOLVED.name, repetition=repetition)
    return {row.item_id for row in rows if _is_open(row.label, fallback=fallback)}


def _is_open(label: str, *, fallback: bool) -> bool:
    return label in (AWAITING_VOTES | {TIE} if fallback else AWAITING_VOTES)


def _flush(store: Store, done: list[JudgedScore], scorer: core.Scorer, several: Mapping[int, bool]) -> None:
    runs = {run.id: run for run, _, _ in done}
    if any(score.metric == UNRESOLVED.name for _, score, _ in done):
        formats = tuple(dict.fromkeys(kind for metric in scorer.metrics for kind in metric.formats))
        if any(metric.name == core.ACCURACY.name for metric in scorer.metrics):
            formats = UNRESOLVED.formats  # code completes a panel's accuracy; its verdicts are on free text
        for name in {run.benchmark for run in runs.values()}:
            store.declare_metrics(name, [replace(UNRESOLVED, formats=formats)])
    if any(several.values()):
        from proctor.runs.judge_repetitions import add_judge_scores

        add_judge_scores(store, [one for one in done if several[one[0].id]])
    for number, run in runs.items():
        if not several[number]:
            store.add_scores(run, [score for owner, score, _ in done if owner.id == number])
    done.clear()


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
    rows = [row for number in repetitions for row in store.score_rows(run, repetition=number)]
    rated = {
        (row.item_id, row.repetition, row.metric, row.scorer): row.value
        for row in rows
        if row.scorer.startswith(core.HUMAN)
    }
    for score in recorded.scores:
        value = rated.get((score.item_id, score.repetition, score.metric, score.scorer), score.value)
        if value != score.value:
            location = (
                f"the rating of {score.item_id}, {name[0]}, {score.metric} by {score.scorer.removeprefix(core.HUMAN)}"
            )
            expected = f"{value:g}, as {store.shown} has it already, or another --store"
            raise core.InputError(location, found=f"{score.value:g}", expected=expected)


def _free(name: str, taken: set[str]) -> str:
    """The name with the first free number from 2."""
    return next(new for number in range(2, len(taken) + 3) if (new := f"{name}-{number}") not in taken)
