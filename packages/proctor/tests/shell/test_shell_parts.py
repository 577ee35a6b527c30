"""Small parts of what commands share: actors that end, work that is cancelled, files of dimensions."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import proctor
from proctor.core import ConfigurationError
from proctor.judges.dimensions import DimensionScorer
from proctor.judges.dimensions.ensemble import RecordedJudge
from proctor.runs import declare_scorer
from proctor.shell import scorers, stores
from proctor.shell import workers as ray_workers
from tests.support.judgements import Judgements
from tests.support.lamp_benchmark import lamps
from tests.support.pretended_ray import PretendedRay


@pytest.mark.parametrize(("address", "told"), [("nowhere:1", "nowhere:1"), ("", "this machine")])
def test_a_cluster_that_is_not_there(address: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(PretendedRay):
        def init(self, **given: Any) -> None:
            raise ConnectionError(f"no cluster at {given['address']}")

    monkeypatch.setitem(sys.modules, "ray", Away())
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    with pytest.raises(ConfigurationError, match=f"no Ray cluster at {told}: no cluster at {address or 'local'}"):
        ray_workers.RayWorkers(2, address, {})
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"  # nothing phones home


def test_actors_are_told_once_to_stop_and_none_takes_the_place_of_one_that_is_lost_then() -> None:
    stops: list[int] = []

    class Waiting(PretendedRay):
        def _actor(self, kind: Any) -> Any:
            self.started += 1
            ended: Future[Any] = Future()

            def stop() -> None:
                stops.append(1)
                asyncio.get_running_loop().call_later(0.05, ended.set_exception, self.exceptions.RayActorError())

            return SimpleNamespace(work=SimpleNamespace(remote=lambda _: ended), stop=SimpleNamespace(remote=stop))

    async def stopped(ray: PretendedRay) -> ray_workers.RayWorkers:
        workers, stop = ray_workers.RayWorkers(3, "", {}), asyncio.Event()
        stop.set()
        async with asyncio.timeout(600):
            await workers.wait(lambda: False, stop)
        return workers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_workers, "_RAY_POLL_S", 0.01)
        patch.setitem(sys.modules, "ray", ray := Waiting())
        workers = asyncio.run(stopped(ray))
    assert (len(stops), workers.lost, ray.started, ray.killed) == (3, 3, 3, 3)


def test_ctrl_c_in_a_notebook_stops_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop runs in this thread, so the work runs beside it, and is cancelled there."""
    begun, ended = threading.Event(), list[str]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    class Pool(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *given: Any, **more: Any) -> Any:
            future = super().submit(fn, *given, **more)

            def result() -> Any:
                assert begun.wait(600)
                raise KeyboardInterrupt

            monkeypatch.setattr(future, "result", result)
            return future

    async def cell() -> None:
        with pytest.raises(KeyboardInterrupt):
            stores.wait_for(work)

    monkeypatch.setattr(stores, "ThreadPoolExecutor", Pool)
    asyncio.run(cell())
    assert ended == ["cancelled"]


def test_a_file_of_dimensions_brings_the_prompts_beside_it(tmp_path: Path) -> None:
    made = proctor.run(lamps(free_text=True), "random", conditions="text-only", store=":memory:")
    where = stores.stored(made)
    file = tmp_path / "dimensions.yaml"
    file.write_text("dimensions:\n  - {name: tone, levels: [0, 1, 2]}\n")
    scheme, prompts = scorers._scheme(where, file)
    assert (scheme is not None and [one.name for one in scheme.dimensions], prompts) == (["tone"], None)
    (tmp_path / "prompts").mkdir()
    assert scorers._scheme(where, file)[1] == tmp_path / "prompts"
    assert where.store.card("lamps").rating is None  # until the judge may score by it
    assert scheme is not None
    declare_scorer(where.store, "lamps", DimensionScorer(RecordedJudge("rater", {}), scheme, Judgements()), scheme)
    assert where.store.card("lamps").rating == scheme
    assert scorers._scheme(where, None) == (scheme, None)
