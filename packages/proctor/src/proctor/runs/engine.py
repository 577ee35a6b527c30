"""The engine: puts items to systems, decides the status of each answer, measures time, gives up after failures, writes
every answer to disk, and resumes.

One direction: item → view → system → answer → code scorers → store. Errors outside the system are retried where they
happen (`proctor.models`), then recorded as `failed`. What the system itself does wrong (too slow, refuses, unreadable,
an error of its own) is its answer.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from proctor import core
from proctor.media import RecordsShown
from proctor.runs.controls import PausedRuns, feed, reopen_errors
from proctor.runs.database import StoreAwayError, outlasting
from proctor.runs.journal import Journal
from proctor.runs.leases import beat_until_lost
from proctor.runs.run_leases import RunLease
from proctor.runs.schema import MODEL, REJECTED, SHOWN, without_secrets
from proctor.runs.served import note_served
from proctor.runs.store import Run, Store
from proctor.runs.tally import Spending, Tally, stop_after

if TYPE_CHECKING:
    from proctor.models import RejectionWatch
    from proctor.runs.item_leases import ItemClaims

SEEDS = "seeds"
"""The key of an answer's `extra` for the seeds that models were sent for its repetition."""


@dataclass(frozen=True)
class Job:
    """The outstanding items of one run, in the order of asking.

    `view` makes an item's view under the run's condition; `scorers` ask no model. Items whose media this machine does
    not have (`has`) are left to other workers. With `skip_broken` an item with damaged media is recorded as failed;
    otherwise it ends everything. `settled` is the number of answers that the run had when it was planned: other workers
    may have written more since. `paid` is what earlier failed answers used, by item: it counts with those that replace
    them. `rejected` are items that the server rejected in an earlier session that had answers: they say nothing of the
    others. `repetition` says which answer to each item is made, from 0.
    """

    run: Run
    system: core.System
    items: Sequence[core.Item]
    view: Callable[[core.Item], core.View]
    scorers: Sequence[core.Scorer] = ()
    has: Callable[[core.Item], bool] = lambda _: True
    skip_broken: bool = False
    settled: int = 0
    paid: Mapping[str, core.Usage] = field(default_factory=dict)
    rejected: Set[str] = frozenset()
    repetition: int = 0

    @property
    def answers(self) -> int:
        """How many answers the run has once nothing is left to ask."""
        return self.settled + len(self.items)


@dataclass(frozen=True)
class Limits:
    """Limits of concurrency, time and failures.

    `budget_s` is the model's time for one item (None: no limit). The run stops after `give_up_after` failed answers in a
    row, or that many errors of the system before any answer, and once its answers have cost `max_cost_usd` or `max_time_s`
    seconds are over: it costs at most what was under way by then more. Set `timed` to False where replies are not waited
    for: no time is recorded then.
    """

    concurrency: int = core.CONCURRENCY
    budget_s: float | None = None
    give_up_after: int = core.GIVE_UP_AFTER
    timed: bool = True
    max_cost_usd: float | None = None
    max_time_s: float | None = None


async def ask_all(
    jobs: Sequence[Job],
    store: Store,
    *,
    limits: Limits = Limits(),
    stop: asyncio.Event | None = None,
    on_change: Callable[[Tally], None] = lambda _: None,
    claims: ItemClaims | None = None,
) -> Tally:
    """Puts all items of all jobs to their systems and returns the tally: repetition by repetition, so that a run that is
    stopped has whole ones.

    With `claims` other workers may work on the same jobs: each item goes to one worker, and what a worker leaves behind
    goes to another. The tally then counts this worker's items.

    Once `stop` is set, answers in flight are awaited and no further item is asked. Items of a run that is paused
    (`runs.controls`) wait until it is resumed. A `ConfigurationError` ends
    everything and is raised; no item is recorded for it. Any other exception of a system is recorded as its error, so
    that one bad item can't end a night's run.

    A server that rejects the first few items of a run alike and answers none (`RejectionWatch`) is a
    `ConfigurationError`, too: these items are left `failed`, so that the next run asks them again. So is a run that
    another model answers than before (`note_served`).
    """
    with _objects_frozen():
        return await _ask_all(jobs, store, limits, stop or asyncio.Event(), on_change, claims)


@contextmanager
def _objects_frozen() -> Iterator[None]:
    """Python's search for unused cycles passes over what is there already (items, modules): some hundred thousand objects
    that stay, looked at every few hundred answers, took a fifth of the engine's time."""
    theirs = gc.get_freeze_count() > 0  # frozen by the program around us, which would not expect them released
    if not theirs:
        gc.freeze()
    try:
        yield
    finally:
        if not theirs:
            gc.unfreeze()


async def _ask_all(
    jobs: Sequence[Job],
    store: Store,
    limits: Limits,
    stop: asyncio.Event,
    on_change: Callable[[Tally], None],
    claims: ItemClaims | None,
) -> Tally:
    tally, runs = Tally(), [job.run for job in jobs]
    waiting: _Waiting = asyncio.Queue(maxsize=limits.concurrency)
    jobs = sorted(jobs, key=lambda job: job.repetition)
    with store.owning(runs) if claims is None else claims.sharing(runs) as lease:
        with Journal(store, limits.concurrency, lease.kept) as journal:
            held = PausedRuns(store, runs, tally, on_change)
            await held.begin()
            worker = _Worker(store, journal, limits, tally, stop, on_change, lease, held)
            async with asyncio.TaskGroup() as tasks:
                timer = stop_after(limits.max_time_s, worker.stop_for)
                beside = [tasks.create_task(one) for one in (worker.keep_lease(), held.watch(), timer)]
                workers = [tasks.create_task(worker.work(waiting)) for _ in range(limits.concurrency)]
                try:
                    if claims is None:
                        await feed(await asyncio.to_thread(_unsettled, store, jobs), waiting, stop, tally, held)
                    else:
                        from proctor.runs.item_leases import share_out

                        await share_out(jobs, waiting, stop, tally, claims, held)
                except core.ProctorError as error:  # what is under way still comes in
                    worker.end(error)
                for _ in workers:
                    await waiting.put(None)
                await asyncio.wait(workers)
                for task in beside:
                    task.cancel()
        if journal.fault is not None:
            raise journal.fault
        for run, repetition, items in worker.undecided() if lease.lost is None else ():
            reopen = partial(reopen_errors, store, run, items, lease.check, repetition=repetition)
            await asyncio.to_thread(outlasting, reopen)
    if worker.fatal is not None:
        raise worker.fatal
    return tally


_Waiting = asyncio.Queue[tuple[Job, core.Item, float] | None]


def _unsettled(store: Store, jobs: Sequence[Job]) -> list[Job]:
    """The jobs without the items that another process answered between the plan and the lease."""
    left = []
    for job in jobs:
        settled = store.settled(job.run, job.repetition)
        store.item_numbers(job.run.benchmark)  # known from here on, whatever becomes of the database
        left.append(replace(job, items=[item for item in job.items if item.id not in settled]))
    return left


@dataclass
class _Worker:
    """The concurrent tasks, and what they share."""

    store: Store
    journal: Journal
    limits: Limits
    tally: Tally
    stop: asyncio.Event
    on_change: Callable[[Tally], None]
    lease: RunLease | ItemClaims
    held: PausedRuns
    fatal: core.ProctorError | None = None
    hide: core.Scrubber = field(default_factory=core.environment_scrubber)
    watches: dict[int, RejectionWatch] = field(default_factory=dict)
    errors: dict[tuple[int, int], tuple[Run, list[str]]] = field(default_factory=dict)
    """The items that a server rejected before any answer, by run and repetition: the system's errors, unless it rejects
    every item."""
    served: dict[int, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spending = Spending(self.limits.max_cost_usd)

    async def work(self, waiting: _Waiting) -> None:
        while (entry := await waiting.get()) is not None:
            job, item, queued_at = entry
            if not self.stop.is_set() and job.run.id in self.held.paused:
                await self._set_aside(job, item)
            elif not self.stop.is_set() and await self._holds(job, item):
                await self._complete(job, item, queued_at)
            self.lease.done(job.run, item.id, job.repetition)
            waiting.task_done()

    async def _set_aside(self, job: Job, item: core.Item) -> None:
        """Leaves an item of a paused run: to any worker of a shared one, else to this process, once it is resumed."""
        back = partial(self.lease.give_back, job.run, item.id, job.repetition)
        if await asyncio.to_thread(outlasting, back):
            self.tally.total -= 1
        else:
            self.held.aside.append((job, item))

    async def _complete(self, job: Job, item: core.Item, queued_at: float) -> None:
        """Asks an item, and records and counts its answer."""
        answer = await self._asked(job, item, queued_at)
        if answer is None:
            return
        self._spend(answer.usage)
        answer = without_secrets(answer, self.hide)  # here, too, since it is scored and printed
        if not await self._is_one_model(job.run, answer):
            return
        if not self.limits.timed:
            answer = answer.model_copy(update={"timing": None})
        before = job.paid.get(item.id)
        kept = answer if before is None else answer.model_copy(update={"usage": before + answer.usage})
        if await self.journal.write(job.run, kept, await self._scores(job, item, kept)):
            self._count(answer)
        elif (fault := self.lease.lost or self.journal.fault) is not None:
            self.end(fault)
        else:
            self.tally.total -= 1  # another worker has the item by now

    async def keep_lease(self) -> None:
        """Renews the lease until it is lost, which ends everything. A database that stays away is left to those who
        write."""
        await beat_until_lost(self.lease)
        if self.lease.lost is not None:
            self.end(self.lease.lost)

    async def _asked(self, job: Job, item: core.Item, queued_at: float) -> core.Answer | None:
        """The answer to record; None where nothing is recorded."""
        answer = None
        watch = self._watch(job)
        try:
            await watch.begin()
        except core.ConfigurationError as error:
            self.end(error)
            return None
        try:
            if not self.stop.is_set():
                answer = await ask(job.system, item, job.view, self.limits.budget_s, queued_at, job.repetition)
        except core.PendingError:
            self.tally.pending += 1
            self.on_change(self.tally)
        except core.InputError as error:
            if job.skip_broken:
                answer = _ended(item, core.Status.FAILED, error).model_copy(update={"repetition": job.repetition})
            else:
                self.end(core.InputError(f"{error} (item {item.id!r})"))
        except core.ConfigurationError as error:
            self.end(error)
        finally:
            self._observe(job, item, answer, watch)
        return answer

    def _watch(self, job: Job) -> RejectionWatch:
        from proctor.models import RejectionWatch

        if job.run.id not in self.watches:
            self.watches[job.run.id] = RejectionWatch(len({item.group for item in job.items}))
        return self.watches[job.run.id]

    def _observe(self, job: Job, item: core.Item, answer: core.Answer | None, watch: RejectionWatch) -> None:
        """Tells the watch what came back, and ends everything if the server rejects every item."""
        kind = "" if answer is None else str(answer.extra.get(REJECTED, ""))
        if answer is None or (answer.status in {core.Status.FAILED, core.Status.ERROR} and not kind):
            watch.neither()
        elif not kind:
            watch.answered()
        elif item.id in job.rejected:
            watch.neither()
        else:
            watch.rejected(item.id, item.group, kind=kind, reason=answer.reason)
            if answer.status is core.Status.ERROR and not watch.over:
                self.errors.setdefault((job.run.id, job.repetition), (job.run, []))[1].append(item.id)
        if watch.fault is not None:
            self.end(watch.fault)

    def undecided(self) -> list[tuple[Run, int, list[str]]]:
        """The errors of runs whose server rejected every item, by repetition."""
        faulty = {run for run, watch in self.watches.items() if watch.fault is not None}
        return [
            (run, repetition, items) for (number, repetition), (run, items) in self.errors.items() if number in faulty
        ]

    async def _is_one_model(self, run: Run, answer: core.Answer) -> bool:
        """Whether the model that answered is the run's own; if not, everything ends."""
        name = answer.extra.get(MODEL)
        known = self.served.setdefault(run.id, set())
        if not isinstance(name, str) or not name or name in known:
            return True
        try:
            await asyncio.to_thread(outlasting, partial(note_served, self.store, run, name))
        except (core.ConfigurationError, StoreAwayError) as error:
            self.end(error)
            return isinstance(error, StoreAwayError)  # the answer is paid: it is kept
        known.add(name)
        return True

    def _spend(self, usage: core.Usage) -> None:
        try:
            why = self.spending.add(usage)
        except core.ConfigurationError as error:
            self.end(error)
            return
        if why:
            self.stop_for(why)

    def stop_for(self, why: str) -> None:
        """Asks nothing more, for this reason, unless it has stopped already."""
        if not self.stop.is_set():
            self.tally.stopped = why
            self.stop.set()

    def end(self, error: core.ProctorError) -> None:
        """Asks nothing more; the error is raised once all that is under way has come in."""
        self.fatal = self.fatal or error
        self.stop.set()

    async def _holds(self, job: Job, item: core.Item) -> bool:
        """Whether the item may be asked under the lease."""
        key = job.run, item.id, job.repetition
        try:
            fresh = self.lease.fresh
            held = self.lease.holds(*key) if fresh else await asyncio.to_thread(self.lease.holds, *key)
        except core.ProctorError as error:
            self.end(error)
            return False
        if self.lease.lost is not None:
            self.end(self.lease.lost)
        elif not held:
            self.tally.total -= 1  # another worker has it by now
        return held

    async def _scores(self, job: Job, item: core.Item, answer: core.Answer) -> list[core.Score]:
        """The scores of an answer. A scorer that breaks ends the run, but neither the answer (which is paid for) nor the
        other scorers' scores are lost."""
        found: list[core.Score] = []
        for scorer in job.scorers if answer.status is not core.Status.FAILED else ():
            try:
                found += await scores_of((scorer,), item, answer)
            except core.ProctorError as error:
                self.end(error)
        return found

    def _count(self, answer: core.Answer) -> None:
        self.tally.add(answer)
        failures, errors = self.tally.failures_in_a_row, self.tally.only_errors
        if max(failures, errors) >= self.limits.give_up_after:
            kind = (
                core.count_of(failures, "failure")
                if failures > errors
                else f"{core.count_of(errors, 'error')} of the system"
            )
            self.stop_for(f"gave up after {kind} in a row: {answer.reason}")
        self.on_change(self.tally)


async def ask(
    system: core.System,
    item: core.Item,
    view: Callable[[core.Item], core.View],
    budget_s: float | None = None,
    queued_at: float | None = None,
    repetition: int = 0,
) -> core.Answer:
    """Asks a system one item and returns the answer as it is recorded: timed, parsed, with its status.

    The system gets the item without reference, tags and media. Its time excludes time spent on media and on retries.
    What the view showed is in `extra` under `SHOWN`, the seeds that models were sent for this repetition under `SEEDS`.
    """
    from proctor.models import near

    queue_s = 0.0 if queued_at is None else time.monotonic() - queued_at
    asked, sources = core.Repetition(repetition), "\n".join(medium.source for medium in item.media)
    limit = asyncio.timeout(budget_s)
    watch, seen = core.Stopwatch(), view(item)
    try:
        async with limit:
            watch = core.Stopwatch(limit)
            with watch.running(), near(sources), core.as_repetition(repetition) as asked:
                answer = await core.answered(system, item.as_asked(), seen)
            _check_heard(system, item, seen)
    except TimeoutError as error:
        if limit.expired():
            answer = _ended(item, core.Status.TIMED_OUT, f"took longer than {budget_s:g} s")
        else:
            answer = _ended(item, core.Status.FAILED, core.error_line(error)[:500])
    except core.InfrastructureError as error:
        answer = _ended(item, core.Status.FAILED, error)
    except core.RefusalError as error:
        answer = _ended(item, core.Status.REFUSED, error)
    except core.SystemFaultError as error:
        answer = _ended(item, core.Status.ERROR, error)
    except core.ProctorError:
        raise
    except OSError as error:  # of the network or the machine, whichever code made the call
        answer = _ended(item, core.Status.FAILED, core.error_line(error)[:500])
    except Exception as error:  # noqa: BLE001 - a system is other people's code: its bugs are recorded item by item
        answer = _ended(item, core.Status.ERROR, core.error_line(error)[:500])
    timing = watch.timing(queue_s)
    if budget_s is not None and answer.status is core.Status.ANSWERED and timing.model_s > budget_s:
        # Code that never awaits can't be interrupted, but it is still late.
        late = f"took {timing.model_s:.1f} s of {budget_s:g} s"
        answer = answer.model_copy(update={"status": core.Status.TIMED_OUT, "reason": late})
    sent: dict[str, JsonValue] = {SEEDS: [*asked.seeds]} if asked.seeds else {}
    kept = {"item_id": item.id, "timing": timing, "extra": {**answer.extra, **_shown(seen), **sent}}
    kept["repetition"] = repetition
    return parsed_answer(item, answer.model_copy(update=kept))


def _check_heard(system: core.System, item: core.Item, seen: core.View) -> None:
    """Raises `ConfigurationError` where a system used the frames of a question with sound and not the sound."""
    if getattr(seen, "unheard", False):  # of `PlaysSounds`; isinstance with a protocol is slow
        raise core.ConfigurationError(
            f"{system.name} looked at item {item.id!r} and did not ask for its sound, which belongs to the question: "
            "use --condition muted, or a system that asks its view for sounds()"
        )


async def scores_of(scorers: Sequence[core.Scorer], item: core.Item, answer: core.Answer) -> list[core.Score]:
    return [score for scorer in scorers if scorer.applies(item) for score in await core.scored(scorer, item, answer)]


def parsed_answer(item: core.Item, answer: core.Answer) -> core.Answer:
    """The answer with its text parsed by the item's format, or with the `problem` of the text (`core.read_answer`)."""
    return core.read_answer(item, answer)


def _shown(seen: core.View) -> dict[str, JsonValue]:
    if not hasattr(seen, "shown"):  # isinstance with a protocol is slow
        return {}
    shown = cast("RecordsShown", seen).shown
    return {SHOWN: [shown_record.model_dump(mode="json", exclude_defaults=True) for shown_record in shown]}


def _ended(item: core.Item, status: core.Status, error: core.ProctorError | str) -> core.Answer:
    if isinstance(error, str):
        return core.Answer(item_id=item.id, status=status, reason=error)
    rejected: dict[str, JsonValue] = {REJECTED: error.rejected} if error.rejected else {}
    kept = {} if status is core.Status.REFUSED else rejected
    return core.Answer(item_id=item.id, status=status, reason=str(error), usage=error.usage or core.Usage(), extra=kept)
