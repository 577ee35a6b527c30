"""The engine: every answer is timed, kept and counted as what it is; a second call asks what is left."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue

from proctor.core import (
    Answer,
    ConfigurationError,
    InfrastructureError,
    InputError,
    Item,
    ProctorError,
    RefusalError,
    Status,
    SystemFaultError,
    Usage,
    View,
    aside,
)
from proctor.metrics import AccuracyScorer
from proctor.results import load_items
from proctor.results.arrays import load_labels
from proctor.results.run_scores import load_run_scores
from proctor.runs import Limits, Store, Tally, ask
from proctor.runs.engine import Job, ask_all
from tests.support.failures import failed_items
from tests.support.toy_run import BlindView, toy
from tests.support.virtual_time import run_in_virtual_time


@pytest.mark.parametrize("kind", [RefusalError, SystemFaultError, InfrastructureError])
def test_what_was_consumed_before_an_error_is_kept_with_the_answer(kind: type[ProctorError], tmp_path: Path) -> None:
    spent = Usage(requests=1, input_tokens=100, output_tokens=5, cost_usd=0.25)

    def ends(item: Item) -> Answer:
        raise kind("no").after(spent)

    store = Store(tmp_path / "runs.db")
    store.add_benchmark(toy(2))
    run = store.start_run("toy", "scripted", "text-only", {})
    job = Job(run, Scripted(ends), store.items("toy"), lambda _: BlindView(), (AccuracyScorer(),))
    tally = asyncio.run(ask_all([job], store))
    assert [one.usage for one in store.answers(run).values()] == [spent, spent]
    assert tally.usage == spent + spent
    store.close()


class Scripted:
    """A system that does to each item what a function says."""

    name = "scripted"

    def __init__(self, act: Callable[[Item], Answer]) -> None:
        self.settings: dict[str, JsonValue] = {}
        self.act = act
        self.asked: list[str] = []

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        self.asked.append(item.id)
        await asyncio.sleep(0)
        return self.act(item)


def blind(_: Item) -> View:
    return BlindView()


def job(store: Store, system: Scripted, items: Sequence[Item] | None = None) -> Job:
    benchmark = toy()
    store.add_benchmark(benchmark)
    run = store.start_run("toy", system.name, "text-only", {})
    known = store.settled(run)
    left = [item for item in (items or benchmark.items) if item.id not in known]
    return Job(run, system, left, blind, [AccuracyScorer()])


def right(item: Item) -> Answer:
    return Answer(item_id=item.id, text="Answer: 1", usage=Usage(requests=1, cost_usd=0.01))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.db")


def test_every_item_is_asked_once_and_scored(store: Store) -> None:
    system = Scripted(right)
    first = job(store, system)
    tally = asyncio.run(ask_all([first], store, limits=Limits(concurrency=3)))
    assert sorted(system.asked) == [f"q{number:03d}" for number in range(10)]
    assert tally.by_status[Status.ANSWERED] == 10
    assert tally.remaining == 0
    assert tally.usage.cost_usd == pytest.approx(0.10)
    assert store.scored(first.run, "code") == store.settled(first.run)
    again = asyncio.run(ask_all([job(store, system)], store))
    assert again.total == 0
    assert len(system.asked) == 10


@pytest.mark.parametrize("frozen_before", [False, True])
def test_what_is_there_at_the_start_is_frozen_until_the_end(store: Store, *, frozen_before: bool) -> None:
    """What the program around a run has frozen stays so."""
    seen: list[int] = []

    def count(item: Item) -> Answer:
        seen.append(gc.get_freeze_count())
        return right(item)

    gc.unfreeze()  # what the tests' start has frozen
    if frozen_before:
        gc.freeze()
    try:
        asyncio.run(ask_all([job(store, Scripted(count))], store))
        assert min(seen) > 1000
        assert (gc.get_freeze_count() > 0) is frozen_before
    finally:
        gc.freeze()


def test_the_system_sees_neither_key_nor_tags_nor_media(store: Store) -> None:
    seen: list[Item] = []

    def look(item: Item) -> Answer:
        seen.append(item)
        return right(item)

    asyncio.run(ask_all([job(store, Scripted(look))], store))
    assert all(item.reference is None and item.tags == {} and item.media == () for item in seen)


def raising(error: Exception) -> Callable[[Item], Answer]:
    def act(item: Item) -> Answer:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (InfrastructureError("connection refused"), Status.FAILED, "connection refused"),
        (RefusalError("I can't help with that"), Status.REFUSED, "I can't help with that"),
        (TimeoutError("socket"), Status.FAILED, "TimeoutError: socket"),
        (ConnectionResetError("by peer"), Status.FAILED, "ConnectionResetError: by peer"),
        (OSError(28, "No space left"), Status.FAILED, "OSError: [Errno 28] No space left"),
        (SystemFaultError("context too long"), Status.ERROR, "context too long"),
        (MemoryError("too many frames"), Status.ERROR, "MemoryError: too many frames"),
        (ZeroDivisionError("a bug\nof the system"), Status.ERROR, "ZeroDivisionError: a bug of the system"),
    ],
)
def test_what_goes_wrong_gets_its_status(error: Exception, status: Status, reason: str) -> None:
    answer = asyncio.run(ask(Scripted(raising(error)), toy().items[0], blind))
    assert (answer.status, answer.reason, answer.parsed) == (status, reason, None)


def test_an_unreadable_answer_is_an_answer_with_a_problem() -> None:
    system = Scripted(lambda item: Answer(item_id=item.id, text="many"))
    answer = asyncio.run(ask(system, toy().items[0], blind))
    assert answer.status is Status.ANSWERED
    assert answer.parsed is None
    assert answer.problem == "expected one whole number of 0 or more, found 'many'"


class Slow(Scripted):
    """Takes its time in several ways."""

    def __init__(self, *, model_s: float = 0.0, media_s: float = 0.0, blocking_s: float = 0.0) -> None:
        super().__init__(right)
        self.model_s, self.media_s, self.blocking_s = model_s, media_s, blocking_s

    async def answer(self, item: Item, view: View) -> Answer:
        with aside("media"):
            await asyncio.sleep(self.media_s)
        await asyncio.sleep(self.model_s)
        time.sleep(self.blocking_s)
        return self.act(item)


@pytest.mark.parametrize(
    ("system", "status"),
    [
        (Slow(model_s=0.16), Status.TIMED_OUT),
        (Slow(media_s=0.3, model_s=0.14), Status.ANSWERED),
        (Slow(blocking_s=0.16), Status.TIMED_OUT),
        (Slow(), Status.ANSWERED),
    ],
)
def test_the_budget_is_the_models_time_alone(system: Slow, status: Status) -> None:
    answer = run_in_virtual_time(ask(system, toy().items[0], blind, budget_s=0.15))
    assert answer.status is status
    assert answer.timing is not None
    assert answer.timing.media_s == pytest.approx(system.media_s)
    if status is Status.TIMED_OUT:
        assert answer.parsed is None
        assert "0.15 s" in answer.reason


def test_failed_is_never_scored_and_is_asked_again(store: Store) -> None:
    broken = {"q001", "q004"}

    def act(item: Item) -> Answer:
        if item.id in broken:
            raise InfrastructureError("500")
        return right(item)

    system = Scripted(act)
    first = job(store, system)
    asyncio.run(ask_all([first], store))
    assert failed_items(store, first.run) == {"q001", "q004"}
    assert store.scored(first.run, "code") == store.settled(first.run)
    broken.clear()
    asyncio.run(ask_all([job(store, system)], store))
    assert failed_items(store, first.run) == set()
    assert len(store.scored(first.run, "code")) == 10
    assert len(system.asked) == 12


def test_a_systems_own_error_is_its_answer_wrong_and_never_asked_again(store: Store) -> None:
    def act(item: Item) -> Answer:
        if item.id in {"q001", "q004"}:
            raise ValueError("hard")
        return right(item)

    system = Scripted(act)
    first = job(store, system)
    asyncio.run(ask_all([first], store))
    assert failed_items(store, first.run) == set()
    card = store.card("toy")
    items = load_items(store, card)
    (accuracy,) = (one for one in load_run_scores(store, first.run, items, card) if one.metric.name == "accuracy")
    assert not np.any(accuracy.lacking | accuracy.waiting | accuracy.unsupported)
    assert accuracy.scores[[1, 4]].tolist() == [0.0, 0.0]
    assert set(load_labels(store, first.run, items, "accuracy", "code").values()) == {"right", "error"}
    asyncio.run(ask_all([job(store, system)], store))
    assert len(system.asked) == 10


def test_a_system_that_can_answer_nothing_is_given_up_on(store: Store) -> None:
    system = Scripted(raising(ValueError("a bug")))
    tally = asyncio.run(ask_all([job(store, system)], store, limits=Limits(concurrency=1, give_up_after=4)))
    assert tally.stopped == "gave up after 4 errors of the system in a row: ValueError: a bug"
    assert tally.remaining == 6


def test_one_example_is_kept_of_what_cannot_be_read_and_of_what_went_wrong(store: Store) -> None:
    def act(item: Item) -> Answer:
        if item.id == "q003":
            raise ValueError("a long video")
        return Answer(item_id=item.id, text="many") if item.id > "q004" else right(item)

    tally = asyncio.run(ask_all([job(store, Scripted(act))], store, limits=Limits(concurrency=1)))
    assert tally.unreadable == 5
    assert tally.unreadable_example == "q005: expected one whole number of 0 or more, found 'many'"
    assert tally.error_example == "q003: ValueError: a long video"


def test_errors_after_an_answer_do_not_end_a_run(store: Store) -> None:
    def act(item: Item) -> Answer:
        if item.id == "q000":
            return right(item)
        raise ValueError("a long video")

    limits = Limits(concurrency=1, give_up_after=4)
    tally = asyncio.run(ask_all([job(store, Scripted(act))], store, limits=limits))
    assert (tally.stopped, tally.by_status[Status.ERROR]) == ("", 9)


def test_a_configuration_error_stops_everything_and_records_nothing(store: Store) -> None:
    system = Scripted(raising(ConfigurationError("no such model")))
    first = job(store, system)
    with pytest.raises(ConfigurationError, match="no such model"):
        asyncio.run(ask_all([first], store, limits=Limits(concurrency=1)))
    assert store.answers(first.run) == {}
    assert system.asked == ["q000"]


def test_a_machinery_that_is_down_is_given_up_on(store: Store) -> None:
    system = Scripted(raising(InfrastructureError("connection refused")))
    tally = asyncio.run(ask_all([job(store, system)], store, limits=Limits(concurrency=1, give_up_after=4)))
    assert tally.by_status[Status.FAILED] == 4
    assert tally.stopped == "gave up after 4 failures in a row: connection refused"
    assert tally.remaining == 6


def test_a_stop_lets_answers_come_in_and_asks_no_more(store: Store) -> None:
    async def stopped() -> tuple[Tally, int]:
        stop = asyncio.Event()

        def act(item: Item) -> Answer:
            if len(system.asked) >= 4:
                stop.set()
            return right(item)

        system = Scripted(act)
        tally = await ask_all([job(store, system)], store, limits=Limits(concurrency=2), stop=stop)
        return tally, len(system.asked)

    tally, asked = asyncio.run(stopped())
    assert tally.done == asked < 10


def test_progress_counts_what_is_on_disk(store: Store) -> None:
    first = job(store, Scripted(right))
    seen: list[tuple[int, int]] = []

    def look(tally: Tally) -> None:
        seen.append((tally.done, len(store.settled(first.run))))

    asyncio.run(ask_all([first], store, on_change=look, limits=Limits(concurrency=2)))
    assert len(seen) == 10
    assert all(done <= on_disk for done, on_disk in seen)


def test_a_store_that_fails_ends_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(rows: object, fence: object = None) -> None:
        raise OSError("no space left on device")

    first = job(store, Scripted(right))
    monkeypatch.setattr(store, "write_many", full)
    with pytest.raises(BaseExceptionGroup) as raised:
        asyncio.run(ask_all([first], store))
    assert raised.group_contains(OSError, match="no space left")


def test_an_unknown_item_is_an_input_error(store: Store) -> None:
    stranger = toy().items[0].model_copy(update={"id": "stranger"})
    with pytest.raises(BaseExceptionGroup) as raised:
        asyncio.run(ask_all([job(store, Scripted(right), [stranger])], store))
    assert raised.group_contains(InputError, match="an answer to 'stranger'")
