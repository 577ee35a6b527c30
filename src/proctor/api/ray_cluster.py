"""Workers on Ray: each an actor that joins the open runs of a store. Ray starts, places and replaces them; the store is
the record, so nothing depends on what Ray remembers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from proctor.api.working import work_async
from proctor.core import ConfigurationError, pip_install

_LOOK_S = 0.5
_REPLACED = 3  # times as many as there are workers


class RayWorker:
    """What runs in an actor."""

    def __init__(self) -> None:
        self._stop = asyncio.Event()

    async def work(self, options: dict[str, Any]) -> list[str]:
        """Joins what is open; what it said."""
        said: list[str] = []
        await work_async(**options, once=True, stop=self._stop, said=said.append)
        return said

    async def stop(self) -> None:
        """Lets the answers under way come in."""
        self._stop.set()


class RayWorkers:
    """`count` workers on a cluster: the one at `address`, or ("") one of this machine alone. `options` are those of
    `work_async`. Raises `ConfigurationError` without Ray or the cluster."""

    def __init__(self, count: int, address: str, options: dict[str, Any], *, gpu: bool = False) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing phones home
        try:
            import ray
        except ImportError as error:
            raise ConfigurationError(f"--on ray needs ray: {pip_install('ray')}") from error
        self._ray: Any = ray
        own: dict[str, Any] = {} if address else {"include_dashboard": False, "configure_logging": False}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigurationError(f"no Ray cluster at {address or 'this machine'}: {error}"[:300]) from error
        gpus = 1 if gpu and ray.cluster_resources().get("GPU", 0) else 0
        self._actor = ray.remote(num_cpus=1, num_gpus=gpus)(RayWorker)
        self._options = options
        self._left = _REPLACED * count
        self.lost = 0
        self.said: list[str] = []
        self._running: dict[Any, Any] = {}
        for _ in range(count):
            self._start()

    async def wait(self, settled: Callable[[], bool], stop: asyncio.Event) -> None:
        """Until all have ended, or all is settled; one that is lost is replaced. Once `stop` is set, until the answers
        under way are in. Raises what a worker raised that is no loss of its machine."""
        stopping = False
        while self._running and not settled():
            if stop.is_set() and not stopping:
                stopping = True
                for actor in self._running.values():
                    actor.stop.remote()
            done, _ = await asyncio.to_thread(self._ray.wait, [*self._running], timeout=_LOOK_S)
            for one in done:
                actor = self._running.pop(one)
                try:
                    self.said += self._ray.get(one)
                except self._ray.exceptions.RayActorError:
                    self.lost += 1
                    if self._left and not stopping:
                        self._left -= 1
                        self._start()
                self._ray.kill(actor)

    def close(self) -> None:
        """Ends what still waits for a place, and leaves the cluster."""
        self._ray.shutdown()

    def _start(self) -> None:
        actor = self._actor.remote()
        self._running[actor.work.remote(self._options)] = actor
