"""One run at a time: who asks the same twice in one program is refused, before any call is made twice."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import proctor
from proctor import InputError
from tests.support.lamp_benchmark import lamps

TAKEN = "run of coin under text-only: found another one in this process at work on it, expected one process a run"


def scores_fit(store: Path) -> bool:
    """Whether every answer has its own score: the third lamp of a room is off, the others are on."""
    told = proctor.export(store, systems="coin")
    right = (told["text"] == "no") == told["item"].str.endswith("q3")
    return bool((right == (told["value"] == 1)).all()) and len(told) == len(lamps().items)


def answer_of(question: str, call: int) -> str:
    """Right the first time, wrong ever after."""
    return "yes" if (question != "Is lamp 3 on?") == (call == 1) else "no"


def test_two_at_once_in_one_loop(tmp_path: Path) -> None:
    store, calls = tmp_path / "runs.db", Counter[str]()
    refused = asyncio.Event()

    async def coin(item: proctor.Item) -> str:
        calls[item.id] += 1
        await asyncio.wait_for(refused.wait(), 60)
        return answer_of(item.question, calls[item.id])

    async def one() -> str:
        try:
            return (await proctor.run_async(lamps(), coin, conditions="text-only", store=store)).done[0]
        except InputError as error:
            refused.set()
            return str(error)

    async def both() -> list[str]:
        return list(await asyncio.gather(one(), one()))

    told = asyncio.run(both())
    assert sum(TAKEN in line for line in told) == 1
    assert sum(line.startswith("Asked 12: 12 answered") for line in told) == 1
    assert set(calls.values()) == {1}
    assert scores_fit(store)


def test_two_at_once_in_two_threads(tmp_path: Path) -> None:
    store, calls, lock = tmp_path / "runs.db", Counter[str](), threading.Lock()
    begun, refused = threading.Event(), threading.Event()

    def coin(item: proctor.Item) -> str:
        with lock:
            calls[item.id] += 1
            call = calls[item.id]
        begun.set()
        assert refused.wait(60)
        return answer_of(item.question, call)

    def run() -> list[str]:
        return list(proctor.run(lamps(), coin, conditions="text-only", store=store).done)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run)
        assert begun.wait(600)
        with pytest.raises(InputError, match=TAKEN):
            run()
        refused.set()
        assert first.result()[0].startswith("Asked 12: 12 answered")
    assert set(calls.values()) == {1}
    assert scores_fit(store)
    assert run()[0].startswith("Asked 0: nothing left to ask")
