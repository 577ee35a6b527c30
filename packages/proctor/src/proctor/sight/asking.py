"""Probes are asked by the same code as the questions of a run: views, prompts, labels, files and forms are those of a run."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, JsonValue

from proctor.core import (
    Answer,
    ConfigurationError,
    ParseError,
    PendingError,
    ProctorError,
    RefusalError,
    SystemFaultError,
    Usage,
)
from proctor.core.formats import sees_nothing
from proctor.media import MediaLibrary, view
from proctor.models import Agent, AgentLimits, AgentTool, ModelClient, ToolResult
from proctor.sight.evidence import RightOf
from proctor.sight.probes import SAYS_ZERO, Kind, SightProbe
from proctor.systems import ModelSystem, Sampling, frames_as_sent, prompt_for_benchmark

ROUTES = ("frames", "video", "tools", "schema", "sound")
"""The ways in which pictures and sound reach a model in a run: frames, a clip as a video file, frames beside tools, frames with
a structured reply, sound."""

State = Literal["right", "wrong", "nothing seen", "unreadable", "refused", "rejected", "failed", "pending", "not asked"]

OUT_OF_TIME, OUT_OF_CALLS = "the time is over", "no calls are left"
"""What a reading says that was not asked because of the limits of a test."""

_KEPT = 200  # characters of a reply in the record


@dataclass(frozen=True)
class Reading:
    """What came of a probe. `value` is what the answer format read; `said` is the beginning of the reply, or the error.

    `wrong` is another value, `nothing seen` a reply that says so; both count as replies, and so does `right`. `unreadable`,
    `refused`, `rejected` by the server, `failed` infrastructure, `pending` batches and `not asked` are no evidence.
    """

    probe: SightProbe
    state: State
    value: JsonValue = None
    said: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is evidence."""
        return self.state in {"right", "wrong", "nothing seen"}

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.state == "right"

    @property
    def position(self) -> int | None:
        """The position in the clip of the number that was read; None for another one."""
        return self.probe.clip.get(self.value) if isinstance(self.value, int) else None


def count(readings: Sequence[Reading], *kinds: Kind) -> RightOf:
    """How many of these kinds (none named: of all) are right, of those that count."""
    some = [one for one in readings if one.counts and (not kinds or one.probe.kind in kinds)]
    return RightOf(sum(one.right for one in some), len(some))


class NumberReply(BaseModel):
    """The number that the picture shows."""

    number: int


class _Nothing(BaseModel):
    """No arguments."""


async def _no_time(_: _Nothing) -> ToolResult:
    return ToolResult("unknown", failed=True)


_TOOLS = (AgentTool("time_of_day", "Tells the time of day at the hospital.", _Nothing, _no_time),)
_FINAL = "answer"


class Asker:
    """Asks probes, at most `calls` of them within `seconds`; what is left is `not asked`. `readings` are all, in order.

    A call without a reply by then has `failed`. A server that rejects the requests of a route is asked no more by this route.
    Retries after infrastructure errors are the client's, and count as one call.
    """

    def __init__(
        self, client: ModelClient, library: MediaLibrary, *, calls: int, seconds: float, concurrency: int
    ) -> None:
        self._client, self._library = client, library
        self._calls, self._ends = calls, time.monotonic() + seconds
        self._slots = asyncio.Semaphore(concurrency)
        self._closed: dict[str, str] = {}
        self._open: set[str] = set()
        self.readings: list[Reading] = []
        self.asked = 0
        self.usage = Usage()
        self._systems: dict[str, ModelSystem] = {}

    @property
    def left(self) -> int:
        """How many calls are left; none once the time is over."""
        return self._calls - self.asked if time.monotonic() < self._ends else 0

    async def ask(self, probes: Sequence[SightProbe]) -> list[Reading]:
        """The readings of probes, in their order. Raises `ConfigurationError` if the model can't be asked at all."""
        tasks = [asyncio.ensure_future(self._one(probe)) for probe in probes]
        try:
            made = list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
        self.readings += made
        return made

    def of(self, *kinds: Kind, route: str = "frames") -> list[Reading]:
        """The readings of these kinds by a route."""
        return [one for one in self.readings if one.probe.route == route and (not kinds or one.probe.kind in kinds)]

    async def _one(self, probe: SightProbe) -> Reading:
        async with self._slots:
            if why := self._closed.get(_way(probe)):
                return Reading(probe, "not asked", said=why)
            if self.left <= 0:
                return Reading(probe, "not asked", said=OUT_OF_TIME if time.monotonic() >= self._ends else OUT_OF_CALLS)
            self.asked += 1
            try:
                async with asyncio.timeout(None if self._ends == math.inf else max(0.0, self._ends - time.monotonic())):
                    text, usage = await self._reply(probe)
            except TimeoutError:
                return Reading(probe, "failed", said="no reply before the time was over")
            except ProctorError as error:
                self.usage += error.usage or Usage()
                return self._failed(probe, error)
            self.usage += usage
            self._open.add(_way(probe))
            return _read(probe, text)

    def _failed(self, probe: SightProbe, error: ProctorError) -> Reading:
        """The reading of a probe without a reply. Raises `ConfigurationError` where no probe would get one."""
        said = str(error)
        if isinstance(error, PendingError):
            return Reading(probe, "pending", said=said)
        if isinstance(error, RefusalError):
            return Reading(probe, "refused", said=said)
        if isinstance(error, ConfigurationError) and not error.rejected and probe.route == "frames":
            raise error
        if error.rejected or isinstance(error, ConfigurationError):
            if _way(probe) not in self._open:  # else it is this one that it rejects
                self._closed.setdefault(_way(probe), f"the server rejects such requests: {said}")
            return Reading(probe, "rejected", said=said)
        return Reading(probe, "unreadable" if isinstance(error, SystemFaultError) else "failed", said=said)

    async def _reply(self, probe: SightProbe) -> tuple[str, Usage]:
        shown = view(probe.item, probe.condition, self._library)
        item = probe.item.as_asked()
        if probe.route not in {"tools", "schema"}:
            answer: Answer = await self._system(probe.route).answer(item, shown)
            return answer.text, answer.usage
        prompt = prompt_for_benchmark("sight")
        system, frames, user = await frames_as_sent(item, shown, prompt)
        if probe.route == "schema":
            if not self._client.takes_schema:
                raise ConfigurationError(f"{self._client.name}: this model's protocol has no JSON schema for a reply")
            replied = await self._client.ask([*frames, user], system=system, shape=NumberReply)
        else:
            agent = Agent(self._client, _TOOLS, _FINAL, NumberReply, AgentLimits())
            replied = await agent.first([*frames, user], system)
        return replied.text, replied.usage

    def _system(self, route: str) -> ModelSystem:
        if route not in self._systems:
            sampling = Sampling(video_as="file" if route == "video" else "frames")
            prompt = prompt_for_benchmark("sight", sounding=route == "sound")
            self._systems[route] = ModelSystem(self._client, prompt, sampling=sampling)
        return self._systems[route]


def _way(probe: SightProbe) -> str:
    """What a server takes or rejects as one: a route, and by frames whether there are one or many."""
    return f"{probe.route}, many" if probe.route == "frames" and probe.clip else probe.route


def _read(probe: SightProbe, text: str) -> Reading:
    """What the answer format reads of a reply."""
    said, form = " ".join(text[:_KEPT].split()), probe.item.answer
    try:
        value = form.parse(text, probe.item.options)
    except ParseError:
        return Reading(probe, "nothing seen" if sees_nothing(text) else "unreadable", said=said)
    if probe.kind is Kind.SMALLEST:
        return Reading(probe, "right" if value in probe.rungs else "wrong", value, said)
    if value == 0 and probe.kind in SAYS_ZERO:
        return Reading(probe, "nothing seen", value, said)
    right = probe.truth is not None and form.match(probe.item.reference.answer, value)  # type: ignore[union-attr]
    return Reading(probe, "right" if right else "wrong", value, said)
