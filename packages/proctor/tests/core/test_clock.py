"""The stopwatch: time that is not the model's does not count against the budget."""

from __future__ import annotations

import asyncio

import pytest

from proctor.core import Stopwatch, aside
from tests.support.virtual_time import clock_standing_still, run_in_virtual_time


def test_time_aside_is_not_model_time() -> None:
    with clock_standing_still() as clock:
        watch = Stopwatch()
        with watch.running():
            clock.advance(0.02)
            with aside("media"):
                clock.advance(0.05)
            with aside("retry"):
                clock.advance(0.03)
        timing = watch.timing()
    assert timing.media_s == pytest.approx(0.05)
    assert timing.retry_s == pytest.approx(0.03)
    assert timing.model_s == pytest.approx(0.02)


def test_aside_without_a_stopwatch_does_nothing() -> None:
    with aside("media"):
        pass


def test_the_budget_stands_still_aside_and_runs_on_after_it() -> None:
    async def asking(media_s: float, model_s: float) -> bool:
        try:
            async with asyncio.timeout(0.1) as limit:
                with Stopwatch(limit).running():
                    with aside("media"):
                        await asyncio.sleep(media_s)
                    await asyncio.sleep(model_s)
        except TimeoutError:
            return False
        return True

    assert run_in_virtual_time(asking(media_s=0.3, model_s=0.09))
    assert not run_in_virtual_time(asking(media_s=0.3, model_s=0.11))


def test_overlapping_asides_count_once() -> None:
    async def both() -> float | None:
        watch = Stopwatch()

        async def one() -> None:
            with aside("media"):
                await asyncio.sleep(0.05)

        with watch.running():
            await asyncio.gather(one(), one())
        return watch.timing().media_s

    assert run_in_virtual_time(both()) == pytest.approx(0.05)
