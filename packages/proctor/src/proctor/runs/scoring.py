"""Scoring stored answers by code or by judges: how many at once, when a pass gives up, and what is recorded without a
verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from proctor import core, judges
from proctor.runs.judge_work import (
    JudgedScore,
    ToJudge,
    answers_to_judge,
    judged_once,
    judged_several_times,
    keep_judged,
    recorded_repeats,
)
from proctor.runs.run_identity import refuse_other_metrics, same_run, scorer_settings
from proctor.runs.store import Run, Store


async def score_answers(store: Store, runs: Sequence[Run], scorer: core.Scorer, *, all_items: bool = False) -> int:
    """Scores every answer that the scorer applies to, of items that count (or of all); returns their number.

    Stored scores are replaced: the function may have changed. Raises `InputError` if the store has a metric of that name
    with another range or direction.
    """
    core.admit_scorer(scorer)
    scored = 0
    for run in runs:
        refuse_other_metrics(store, run.benchmark, scorer.metrics, scorer.name)
        pairs = [pair for pair in answers_to_judge(store, run, all_items=all_items) if scorer.applies(pair[0])]
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
    ones got no verdict, and are stored as unresolved. `awaiting` ones of the first two lack a judgement, and another
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
        panel = next((score for score in scores if score.metric == judges.UNRESOLVED.name), None)
        if panel is not None and panel.value == 1:
            self.unresolved += 1
        else:
            self.scored += 1
        self.awaiting += panel is not None and panel.label in judges.AWAITING_JUDGEMENTS


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

    With `repeats` each answer is judged that often, and its score is the mean (`judge_work`): all answers once
    before any twice. More can be asked for later, and fewer change nothing.

    An answer without a verdict (a refusal, a malformed reply or none) is stored as unresolved, so that it is listed and
    judged again and stays in the denominators. Answers beyond the limits are left for the next call. Raises all other
    errors of the judge.
    """
    tally, limits = JudgeTally(), limits or JudgeLimits()
    stop = stop or asyncio.Event()
    several = {run.id: max(repeats, recorded_repeats(store, run, scorer)) > 1 for run in runs}
    passes: list[list[ToJudge]] = []
    for number in range(repeats):
        passes.append([])
        for run in runs:
            own = [pair for pair in answers_to_judge(store, run, all_items=all_items) if limits.takes(pair[0])]
            by = (
                judged_once(store, run, scorer)
                if not several[run.id]
                else judged_several_times(store, run, scorer, number)
            )
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
            work: Sequence[ToJudge] = work,
            done: list[JudgedScore] = done,
            number: int = number,
        ) -> None:
            done.extend((work[row].run, score, number) for score in of_repetition(work[row].answer, scores))
            if len(done) >= _WRITE_EVERY:
                keep_judged(store, done, scorer, several)
            on_change(tally)

        with core.as_repetition(number):
            if isinstance(scorer, SeesAnswers):
                every = [answers_to_judge(store, run, all_items=all_items, failed=True) for run in runs]
                await scorer.see([pair for own in every for pair in own])
            try:
                answers = [(one.item, one.answer, one.open_before) for one in work]
                await judge_each(scorer, answers, limits, tally, stop, keep)
            finally:
                keep_judged(store, done, scorer, several)
    return tally


async def judge_each(
    scorer: core.Scorer,
    answers: Sequence[tuple[core.Item, core.Answer, bool]],
    limits: JudgeLimits,
    tally: JudgeTally,
    stop: asyncio.Event,
    keep: Callable[[int, Sequence[core.Score]], None],
) -> None:
    """Judges answers concurrently, each with whether it was unresolved before, until `stop` is set, also by
    `give_up_after` infrastructure errors in a row. `keep` gets the position of each judged answer and its scores."""
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
    except (judges.PartialScoresError, core.InfrastructureError, core.RefusalError, core.SystemFaultError) as error:
        tally.unscored += 1
        tally.rejected += bool(error.rejected)
        tally.last_reason = str(error)
        came = error.scores if isinstance(error, judges.PartialScoresError) else ()
        state = [] if open_before else [_state(item, scorer, judges.NO_VERDICT)]
        return [*came, *state], type(error) is core.InfrastructureError
    tally.count(scores)
    if open_before and all(score.metric != judges.UNRESOLVED.name for score in scores):
        scores = [*scores, _state(item, scorer, judges.RESOLVED)]
    return scores, False


def _state(item: core.Item, scorer: core.Scorer, how: str) -> core.Score:
    """The score that says that an answer has no verdict, or has one now."""
    value = float(how == judges.NO_VERDICT)
    return core.Score(item_id=item.id, metric=judges.UNRESOLVED.name, value=value, scorer=scorer.name, label=how)
