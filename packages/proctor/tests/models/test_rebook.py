"""Time that turns out not to be the model's is taken off it afterwards, and given back to the budget."""

import asyncio
import time

import pytest

from proctor.core import Stopwatch, Timing, aside, rebook
from tests.support.virtual_time import run_in_virtual_time


def run(budget_s: float | None, *steps: tuple[str, float]) -> Timing:
    """Spends each step's seconds: "work", "lost" (rebooked when it is over) or "wait" (an aside)."""

    async def spend() -> Timing:
        async with asyncio.timeout(budget_s) as limit:
            watch = Stopwatch(limit)
            with watch.running():
                for kind, seconds in steps:
                    started = time.monotonic()
                    if kind == "wait":
                        with aside("retry"):
                            await asyncio.sleep(seconds)
                            rebook(seconds, "retry")  # inside an aside it is counted already
                    else:
                        await asyncio.sleep(seconds)
                    if kind == "lost":
                        rebook(time.monotonic() - started, "retry")
                return watch.timing()
        raise AssertionError("unreachable")

    return run_in_virtual_time(spend())


def test_lost_time_is_the_retrys_and_the_rest_the_models() -> None:
    timing = run(None, ("lost", 0.1), ("wait", 0.1), ("work", 0.1), ("lost", 0.05))
    assert timing.retry_s == pytest.approx(0.25)
    assert timing.model_s == pytest.approx(0.1)


def test_the_budget_gets_lost_time_back_each_time() -> None:
    timing = run(0.8, *[("lost", 0.2), ("wait", 0.1)] * 3, ("work", 0.79))
    assert timing.retry_s == pytest.approx(0.9)
    assert timing.model_s == pytest.approx(0.79)


def test_the_budget_still_ends_the_models_own_time() -> None:
    with pytest.raises(TimeoutError):
        run(0.25, ("lost", 0.15), ("work", 0.15), ("work", 0.11))


def test_nobody_measuring_is_fine() -> None:
    rebook(1.0, "retry")
