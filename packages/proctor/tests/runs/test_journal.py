"""Group commit: answers share transactions, none counts before it is written, and none that came is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any, cast

import pytest

from proctor.core import Answer, Score
from proctor.runs import Run, Store
from proctor.runs.journal import Journal
from tests.support.virtual_time import run_in_virtual_time

RUN = Run(1, "toy", "one", "video", {})
Rows = Sequence[tuple[Run, Answer, Sequence[Score]]]


class SlowDisk:
    """A store that takes its time and remembers what each transaction held."""

    def __init__(self, takes_s: float = 0.002) -> None:
        self.takes_s = takes_s
        self.transactions: list[list[str]] = []
        self.broken: Exception | None = None
        self.threads: set[str] = set()

    def write_many(self, rows: Rows, fence: object = None) -> list[bool]:
        self.threads.add(threading.current_thread().name)
        time.sleep(self.takes_s)
        if self.broken is not None:
            raise self.broken
        self.transactions.append([answer.item_id for _, answer, _ in rows])
        return [True] * len(rows)

    @property
    def written(self) -> list[str]:
        return [item for transaction in self.transactions for item in transaction]


class StuckDisk(SlowDisk):
    """Its first transaction is under way until told."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.reached, self.go = threading.Event(), threading.Event()

    def write_many(self, rows: Rows, fence: object = None) -> list[bool]:
        self.reached.set()
        self.go.wait()
        return super().write_many(rows)


def journal(disk: SlowDisk, writers: int) -> Journal:
    return Journal(cast("Store", disk), writers)


async def write(book: Journal, item: str) -> None:
    assert await book.write(RUN, Answer(item_id=item, text="1"), [])


def test_answers_that_come_fast_share_transactions() -> None:
    disk = SlowDisk()

    async def run() -> None:
        async def work(number: int) -> None:
            for turn in range(10):
                await asyncio.sleep(0.001 * (number % 7))
                await write(book, f"q{number}-{turn}")
                assert f"q{number}-{turn}" in disk.written

        with journal(disk, 40) as book:
            await asyncio.gather(*(work(number) for number in range(40)))

    run_in_virtual_time(run())
    assert sorted(disk.written) == sorted(f"q{number}-{turn}" for number in range(40) for turn in range(10))
    assert len(disk.transactions) < 100
    assert disk.threads == {"proctor-journal_0"}


def rests(book: Journal) -> list[float]:
    """From now on, for how long transactions were held back to the end."""
    loop, held = asyncio.get_running_loop(), list[float]()
    call_later = loop.call_later

    def spy(delay: float, callback: Any, *arguments: Any) -> asyncio.TimerHandle:
        def over() -> None:
            held.append(delay)
            callback(*arguments)

        if callback == book._commit:
            return call_later(delay, over)
        return call_later(delay, callback, *arguments)

    loop.call_later = spy  # type: ignore[method-assign, assignment]
    return held


@pytest.mark.parametrize("writers", [1, 4])
def test_where_all_wait_none_is_held_back(writers: int) -> None:
    disk = SlowDisk()

    async def run() -> list[float]:
        with journal(disk, writers) as book:
            held = rests(book)

            async def work(number: int) -> None:
                for turn in range(20):
                    await write(book, f"q{turn}-{number}")

            await asyncio.gather(*(work(number) for number in range(writers)))
        return held

    held = run_in_virtual_time(run())
    assert len(disk.written) == 20 * writers
    assert len(held) < writers  # the last ones only, whose fellows have nothing more to write


def test_answers_that_come_slowly_are_not_held_back() -> None:
    disk = SlowDisk()

    async def run() -> list[float]:
        with journal(disk, 8) as book:
            held = rests(book)
            for turn in range(5):
                await asyncio.sleep(0.05)
                await write(book, f"q{turn}")
        return held

    assert run_in_virtual_time(run()) == []
    assert disk.transactions == [[f"q{turn}"] for turn in range(5)]


def test_who_comes_right_after_a_transaction_waits_for_others_a_little() -> None:
    disk = SlowDisk(0.02)

    async def run() -> list[float]:
        with journal(disk, 8) as book:
            held = rests(book)
            await write(book, "q0")
            await asyncio.gather(write(book, "q1"), write(book, "q2"))
        return held

    (rest,) = run_in_virtual_time(run())
    assert 0 < rest <= 0.01
    assert disk.transactions == [["q0"], ["q1", "q2"]]


def test_an_answer_whose_writer_was_cancelled_is_written_all_the_same() -> None:
    disk = StuckDisk()

    async def run() -> None:
        with journal(disk, 8) as book:
            tasks = [asyncio.create_task(write(book, f"q{number}")) for number in range(3)]
            await asyncio.to_thread(disk.reached.wait)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert all(task.cancelled() for task in tasks)
            disk.go.set()

    asyncio.run(run())
    assert sorted(disk.written) == ["q0", "q1", "q2"]


def test_a_store_that_fails_tells_all_who_wait_and_may_recover() -> None:
    disk = SlowDisk()
    disk.broken = OSError("no space left on device")

    async def run() -> list[BaseException | None]:
        with journal(disk, 3) as book:
            errors = await asyncio.gather(*(write(book, f"q{number}") for number in range(3)), return_exceptions=True)
            disk.broken = None
            await write(book, "q3")
        return errors

    errors = run_in_virtual_time(run())
    assert [str(error) for error in errors] == ["no space left on device"] * 3
    assert disk.written == ["q3"]


@pytest.mark.parametrize("writers", [1, 64])
def test_nothing_to_write_is_no_transaction(writers: int) -> None:
    disk = SlowDisk()

    async def run() -> None:
        with journal(disk, writers):
            await asyncio.sleep(0)

    run_in_virtual_time(run())
    assert disk.transactions == []
