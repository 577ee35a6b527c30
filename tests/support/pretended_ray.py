"""A cluster that is none: what `RayWorkers` asks of Ray, on threads of this process. The first actor is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from types import SimpleNamespace
from typing import Any


class LostActorError(Exception):
    """What Ray raises of an actor whose machine is gone."""


class PretendedRay:
    """As far as it is used. `started` counts actors, `killed` those that were ended. With `said` actors do nothing and
    say this."""

    exceptions = SimpleNamespace(RayActorError=LostActorError)

    def __init__(self, *, lost: int = 1, said: list[str] | None = None) -> None:
        self.lost = lost
        self.said = said
        self.started = self.killed = 0
        self.given: dict[str, Any] = {}
        self.wanted: dict[str, Any] = {}

    def init(self, **given: Any) -> None:
        if given["address"] == "nowhere:1":
            raise ConnectionError("no cluster there")
        self.given = given

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "GPU": 1.0}

    def remote(self, **wanted: Any) -> Callable[[Callable[[], Any]], Any]:
        self.wanted = wanted
        return lambda kind: SimpleNamespace(remote=lambda: self._actor(kind))

    def wait(self, refs: list[Future[Any]], timeout: float) -> tuple[list[Future[Any]], list[Future[Any]]]:
        done, left = wait_for(refs, timeout, FIRST_COMPLETED)
        return [*done], [*left]

    def get(self, ref: Future[Any]) -> Any:
        return ref.result(0)

    def kill(self, actor: object) -> None:
        del actor
        self.killed += 1

    def shutdown(self) -> None:
        self.given = {}

    def _actor(self, kind: Callable[[], Any]) -> Any:
        self.started += 1
        lost, found, loops = self.started <= self.lost, kind(), list[asyncio.AbstractEventLoop]()

        def work(options: dict[str, Any]) -> Future[Any]:
            future: Future[Any] = Future()

            async def working() -> Any:
                loops.append(asyncio.get_running_loop())
                return await found.work(options)

            def run() -> None:
                try:
                    future.set_result(asyncio.run(working()))
                except BaseException as error:  # noqa: BLE001 - handed over
                    future.set_exception(error)

            if self.said is not None:
                future.set_result(self.said)
            elif lost:
                future.set_exception(LostActorError())
            else:
                threading.Thread(target=run, daemon=True).start()
            return future

        def stop() -> None:
            for loop in loops:
                asyncio.run_coroutine_threadsafe(found.stop(), loop)

        return SimpleNamespace(work=SimpleNamespace(remote=work), stop=SimpleNamespace(remote=stop))
