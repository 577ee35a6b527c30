"""Time that turns out not to be the model's is taken off it afterwards, and given back to the budget."""

import asyncio
import time

import pytest

from proctor.core import Stopwatch, Timing, aside, rebook


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

    return asyncio.run(spend())


def test_lost_time_is_the_retrys_and_the_rest_the_models() -> None:
    started = time.monotonic()
    timing = run(None, ("lost", 0.1), ("wait", 0.1), ("work", 0.1), ("lost", 0.05))
    taken = time.monotonic() - started
    assert timing.retry_s is not None
    assert timing.retry_s >= 0.24
    assert 0.09 <= timing.model_s <= taken - timing.retry_s


def test_the_budget_gets_lost_time_back_each_time() -> None:
    timing = run(0.8, *[("lost", 0.2), ("wait", 0.1)] * 3, ("work", 0.05))
    assert timing.retry_s is not None
    assert timing.model_s < 0.8 < timing.retry_s


def test_the_budget_still_ends_the_models_own_time() -> None:
    with pytest.raises(TimeoutError):
        run(0.25, ("lost", 0.15), ("work", 0.15), ("work", 0.5))


def test_nobody_measuring_is_fine() -> None:
    rebook(1.0, "retry")
