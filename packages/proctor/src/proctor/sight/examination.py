"""The course of a sight test: the same first questions for all, and fresh ones for what they make suspicious."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from proctor.core import CONCURRENCY, count_of
from proctor.media import MediaLibrary, MediaSettings
from proctor.models import ModelClient
from proctor.sight import verdicts
from proctor.sight.asking import OUT_OF_CALLS, OUT_OF_TIME, ROUTES, Asker, Reading, count
from proctor.sight.evidence import ALPHA, RightOf
from proctor.sight.probes import CHOSEN, READ, Deck, DrawnClip, Kind, SightProbe
from proctor.sight.record import RouteResult, RouteState, SightFinding, SightResult

MOST_CALLS, MOST_SECONDS = 64, 120.0
"""The most calls of one test, and the seconds after which no more are made."""

_SHOWN = 2  # numbers of a clip in wrong replies: what shows these is not ignored
_ONE_HEIGHT = 8  # calls that tell whether digits of one height are lost
_DOWN = (36, 20, 11)  # heights of digits, where no ladder was read
_LARGE = 192  # pixels: smaller pictures are not compared with the small one
_RESTS = (0, 3, 2, 1, 3, 0, 1, 2)  # of positions modulo 4: neither early nor late ones are mostly even
_LEGIBLE = 48  # pixels: numbers in smaller pictures are lower than digits that can be read
_OUT = {OUT_OF_CALLS, OUT_OF_TIME}


@dataclass(frozen=True)
class SightPlan:
    """What is tested, and how: `routes`, of which those `required` decide the exit code; the media settings of a run; limits."""

    routes: tuple[str, ...] = ROUTES
    required: tuple[str, ...] = ("frames",)
    settings: MediaSettings = field(default_factory=MediaSettings)
    seed: int = 0
    calls: int = MOST_CALLS
    seconds: float = MOST_SECONDS
    concurrency: int = CONCURRENCY


async def examine(
    client: ModelClient, plan: SightPlan, on_change: Callable[[int], None] = lambda _: None
) -> SightResult:
    """Asks a model a sight test's questions and returns what they show. `on_change` is called with the number of calls.

    Pictures are drawn by the plan's seed into a folder that is removed at the end. Raises `ConfigurationError` if the model
    can't be asked at all; every other failure is a state of the result.
    """
    with tempfile.TemporaryDirectory(prefix="proctor-sight-") as folder:
        library = MediaLibrary(Path(folder), plan.settings, Path(folder) / "cache")
        asker = Asker(client, library, calls=plan.calls, seconds=plan.seconds, concurrency=plan.concurrency)
        course = Course(plan, Deck(Path(folder), plan.seed, plan.settings), asker, on_change)
        started = time.monotonic()
        await course.run()
        spent = time.monotonic() - started
    return SightResult(
        model=client.name,
        settings=client.settings,
        media=plan.settings.model_dump(mode="json"),
        at=course.at,
        seed=plan.seed,
        calls=asker.asked,
        seconds=round(spent, 1),
        routes={route: course.result(route) for route in plan.routes},
        required=plan.required,
        findings=tuple(course.findings),
        kinds=verdicts.kind_results(asker.readings),
        digits_px=verdicts.smallest_read(asker.readings),
        side_px=course.deck.large[0],
        notes=tuple(course.notes()),
        cost_usd=asker.usage.cost_usd,
    )


class Course:
    """One test under way: `run` asks, and `findings` are what it finds. Apart from `examine`, so that it can be run with other
    askers."""

    def __init__(self, plan: SightPlan, deck: Deck, asker: Asker, on_change: Callable[[int], None]) -> None:
        self.plan, self.deck, self.asker = plan, deck, asker
        self.findings: list[SightFinding] = []
        self.unsure: dict[str, str] = {}
        self.at = datetime.now(UTC).isoformat(timespec="seconds")
        self._on_change = on_change
        self._clips: dict[str, tuple[DrawnClip, DrawnClip]] = {}
        self._noted: list[str] = []
        self._ended = ""  # why nothing else can be decided

    async def run(self) -> None:
        """Asks, and finds. A cache and blindness end the test: nothing else can be found then. Pictures in which nobody can read
        a number show neither."""
        await self._ask(self.deck.numbers(1))  # alone, so that a cache is filled before the others come
        await self._ask(self._first_questions())
        if any(one.state == "pending" for one in self.asker.readings):
            return
        if self._found(verdicts.cached(self.asker.of())):
            self._ended = "nothing else can be decided behind a cache"
            return
        if verdicts.is_blind(self.asker.of()):
            if self.deck.large[0] < _LEGIBLE:
                return
            await self._ask([*self.deck.numbers(4), *self.deck.colours(4), *self.deck.positions(4)])
            if self._found(verdicts.blind(self.asker.of())):
                self._ended = "not checked further: no picture arrives by frames"
                return
        await self._sequence()
        for route in ("tools", "schema", "video", "sound"):
            if route in self.plan.routes:
                await self._other(route)
        await self._acuity()

    @property
    def stills(self) -> RightOf:
        """How many numbers in still pictures were read."""
        return count(self.asker.of(Kind.NUMBER))

    def result(self, route: str) -> RouteResult:
        """What a route showed."""
        readings = [one for one in self.asker.readings if one.probe.route == route]
        told, state = count(readings, *READ, Kind.TONES), self._state(route, readings)
        note = "" if state in {"sees", "fault"} else self.unsure.get(route) or self._ended or _why(readings)
        if state == "fault":
            note = ", ".join(dict.fromkeys(finding.code for finding in self.findings if finding.route == route))
        return RouteResult(state=state, right=told.right, replies=told.of, note=note, at=self.at)

    def notes(self) -> list[str]:
        """What people should know beside the findings."""
        told = []
        black = self.asker.of(Kind.BLACK)
        if black and black[0].state == "wrong" and not any(one.code == "cached" for one in self.findings):
            told.append(f"In a black picture the model reads a number ({black[0].value}).")
        unasked = [one for one in self.asker.readings if one.state == "not asked" and one.said in _OUT]
        if unasked:
            told.append(f"Not asked: {count_of(len(unasked), 'question')} ({unasked[0].said}).")
        if self.deck.large[0] < _LEGIBLE:
            told.append(f"Numbers in pictures of {self.deck.large[0]} pixels can't be read: test larger ones.")
        if "frames" in self._clips and not self._clips["frames"][0].tells_frames_apart:
            told.append("Frames less than 0.1 s apart have the same label: whether all arrive was not checked.")
        read, chosen = count(self.asker.of(), *READ), self._chosen_p()
        if read.of and not read.right and chosen < ALPHA:
            told.append("The model sees colours and positions, and reads no number: too weak to check more.")
        return [*told, *self._noted, *self._unlike()]

    def _chosen_p(self) -> float:
        return verdicts.seen_p(self.asker.of(), sorted(CHOSEN))

    def _unlike(self) -> list[str]:
        """Whether different still pictures get different replies, where none of these can be used."""
        said = [one.said for one in self.asker.of(Kind.NUMBER) if one.state == "unreadable" and one.said]
        if len(said) < 4:
            return []
        if len(set(said)) == 1:
            return [f"Different pictures get the same reply, which can't be read: {said[0]}"]
        return ["Replies change with the picture, and can't be read."] if len(set(said)) == len(said) else []

    def _state(self, route: str, readings: Sequence[Reading]) -> RouteState:
        if any(one.state == "pending" for one in readings):
            return "pending"
        if any(finding.route == route for finding in self.findings):
            return "fault"
        if any(finding.code == "cached" for finding in self.findings):
            return "could not check"
        kinds = (Kind.END, Kind.FRAME) if route in {"frames", "video"} else (Kind.NUMBER, Kind.TONES)
        if readings and verdicts.seen_p(readings, kinds) < ALPHA:
            return "could not check" if route in self.unsure else "sees"
        rejected = any(one.state == "rejected" for one in readings)
        return "not offered" if rejected and not count(readings).of else "could not check"

    def _first_questions(self) -> list[SightProbe]:
        """The questions that everybody is asked, most important first."""
        deck, routes = self.deck, self.plan.routes
        asked: list[SightProbe] = []
        if "frames" in routes:
            one, other = self._clips["frames"] = deck.clip(), deck.clip()
            size = len(one.values)
            asked += [*one.ends(), *other.ends(), *one.frames(_spread(size, 8)), *one.times(_spread(size, 4, shift=1))]
        asked += [*deck.numbers(4 if "frames" in routes else 6), deck.black()]
        for route in ("tools", "schema"):
            asked += deck.numbers(4, route) if route in routes else []
        if "video" in routes:
            one, other = self._clips["video"] = deck.file(), deck.file()
            asked += [*one.ends(), *other.ends(), *one.times(_spread(len(one.values), 3, shift=1))]
        if "frames" in routes:
            asked += deck.ladders(2) if deck.large[0] >= _LARGE else []
            asked += [*deck.colours(2), *deck.positions(2), *deck.sizes(1), *deck.motions(2)]
        return asked + (deck.tones(4) if "sound" in routes else [])

    async def _sequence(self) -> None:
        """Whether all frames arrive, in their order, with their times."""
        if "frames" not in self._clips or self._found(verdicts.single(self.asker.of(), self.asker.of())):
            return
        if not await self._part("frames") and not self._found(verdicts.order(self.asker.of())):
            await self._times("frames")

    async def _part(self, route: str) -> bool:
        """Whether only a part of a clip arrives. What refutes one suspicion may raise another, with a later end."""
        size = len(self._clips[route][0].values)
        for _ in range(2):
            for suspicion in verdicts.suspected_parts(self.asker.of(route=route), size):
                if await self._confirmed(suspicion, route, size):
                    return True
        return False

    async def _confirmed(self, suspicion: verdicts.Suspicion, route: str, size: int) -> bool:
        """Whether it is so: asked again within and without the part, on both clips."""
        one, other = self._clips[route]
        fresh: list[Reading] = []
        for clip, within in ((other, 3), (one, 2)):
            known = {reading.probe.at for reading in self.asker.of(Kind.FRAME, route=route) if clip.has(reading.probe)}
            fresh += await self._ask(_again(clip, suspicion, within, known))
            if count([reading for reading in fresh if suspicion.outside(reading.probe.at)]).right:
                return False
        readings = self.asker.of(route=route)
        again = [found for found in verdicts.suspected_parts(readings, size) if found.code == suspicion.code]
        found = bool(again) and self._found(verdicts.part(again[0], fresh, readings, self.stills, size))
        if not found:
            self.unsure[route] = (
                f"perhaps only a part of the frames arrives ({suspicion.code} {suspicion.least} of {size})"
            )
        return found

    async def _times(self, route: str) -> None:
        readings = self.asker.of(route=route)
        if verdicts.may_be_out_of_step(readings):
            other = self._clips[route][1]
            fresh = await self._ask(other.frames(_spread(len(other.values), 8)))
            if self._found(verdicts.out_of_step([*readings, *fresh], self.stills, route)):
                return
            if not count(fresh).right:
                self.unsure[route] = f"frames by their times: {count([*readings, *fresh], Kind.FRAME)} right"
        told = count(readings, Kind.TIME)
        if not told.of or told.right > 1 or not count(readings, Kind.END).right:
            return
        await self._ask(self._clips[route][1].times(_spread(len(self._clips[route][1].values), 8)))
        if not self._found(verdicts.times(self.asker.of(route=route), self.stills, route)):
            told = count(self.asker.of(Kind.TIME, route=route))
            if told.right * 4 < told.of:
                self.unsure[route] = f"times: {told} right, which is too little to be sure"

    async def _other(self, route: str) -> None:
        """Whether another route shows what frames show; asked again where it seems not to."""
        told = self._told(route)
        if told.of and told.right * 4 <= told.of:
            await self._ask(
                [*self._more(route), *self.deck.numbers(3 if self.stills.of < 8 and self.stills.right < 5 else 0)]
            )
        elif route == "video" and told.right < told.of:
            await self._ask(self._more(route))  # an end is missed: perhaps only a part arrives
        readings = self.asker.of(route=route)
        others = sum(one.position is not None for one in readings if not one.right)
        if others < _SHOWN and self._found(verdicts.lost(route, self._told(route), self._usual)):
            return
        if route != "video" or not (self._told(route).right or others) or await self._part("video"):
            return
        ends = count(readings, Kind.END)
        if self._found(verdicts.order(readings, "video")):
            return
        if ends.right * 4 >= ends.of * 3:
            await self._times("video")
        else:
            self.unsure.setdefault("video", f"first and last numbers: {ends} right, which is too little to be sure")

    @property
    def _usual(self) -> RightOf:
        """What the model reads by frames: alone, and as first and last of many, if nothing is wrong with these."""
        wrong = any(finding.route == "frames" for finding in self.findings)
        return self.stills if wrong else self.stills + count(self.asker.of(Kind.END))

    def _told(self, route: str) -> RightOf:
        return count(self.asker.of(*READ, Kind.TONES, route=route))

    def _more(self, route: str) -> list[SightProbe]:
        if route == "sound":
            return self.deck.tones(4)
        if route == "video":
            other = self._clips["video"][1]
            return other.frames(_spread(len(other.values), 4))
        return self.deck.numbers(4, route)

    async def _acuity(self) -> None:
        """Whether large pictures are shrunk: digits of one height in a large and in a small picture."""
        side = self.deck.large[0]
        await self._stairs()
        height = verdicts.suspected_height(self.asker.of())
        if height is None or not self.stills.right:
            return
        while True:
            await self._ask([*self.deck.small(height, 5, large=True), *self.deck.small(height, 3, large=False)])
            found = verdicts.shrunk(self.asker.of(), self.stills, side, height)
            if found is not None or height <= verdicts.LEAST_FAULT or self.asker.left < _ONE_HEIGHT:
                break
            height = verdicts.below(height)  # some of these were read: where it ends may be a rung lower
        if found is not None and self.asker.left > 1:  # how much smaller?
            smaller = verdicts.smaller_than(height)
            few = smaller[1:2] if self.asker.left < 4 else smaller  # one alone tells most in the middle
            fresh = [self.deck.small(one, 2, large=False) for one in few]
            fresh += [self.deck.small(one, 2, large=True) for one in verdicts.between(self.asker.of(), height)]
            await self._ask([probe for some in fresh for probe in some])
            found = verdicts.shrunk(self.asker.of(), self.stills, side, height)
        if found is None or verdicts.is_fault(height):
            self._found(found)
        else:
            self._noted.append(f"{found.text} Digits of {height} pixels are lost, of {verdicts.LEAST_FAULT} are read.")

    async def _stairs(self) -> None:
        """Digits alone in a large picture, where the ladder ends: its last line is easily misread, or read by luck."""
        if not count(self.asker.of(Kind.SMALLEST)).of:
            return
        best = verdicts.smallest_read(self.asker.of())
        for step in _DOWN if best is None else verdicts.up_from(best):
            some = count(await self._ask(self.deck.small(step, 2, large=True)))
            if bool(some.right) != (best is None):
                return

    def _found(self, finding: SightFinding | None) -> bool:
        if finding is not None:
            self.findings.append(finding)
        return finding is not None

    async def _ask(self, probes: Sequence[SightProbe]) -> list[Reading]:
        made = await self.asker.ask(probes)
        self._on_change(self.asker.asked)
        return made


def _why(readings: Sequence[Reading]) -> str:
    """Why a route could not be checked: the commonest state that is no evidence, with an example; else the count."""
    silent = [one for one in readings if not one.counts]
    if not silent:
        return f"{count(readings)} right, which is too little to be sure"
    asked = [one for one in silent if one.state != "not asked"]
    states = [one.state for one in asked or silent]
    most = max(dict.fromkeys(states), key=states.count)
    said = next(one.said for one in silent if one.state == most)
    return f"{states.count(most)} of {len(readings)} {most}: {said}"


def _spread(size: int, count: int, shift: int = 0) -> list[int]:
    """Positions spread over a clip, with all rests modulo 4 early and late; all of a short clip.

    >>> _spread(64, 8), _spread(4, 8)
    ([4, 15, 22, 29, 39, 44, 53, 62], [0, 1, 2, 3])
    """
    if size <= count:
        return list(range(size))
    middles = [int((k + 0.5) * size / count) + shift for k in range(count)]
    moved = [at + (rest - at) % 4 for at, rest in zip(middles, _RESTS * (count // 8 + 1), strict=False)]
    return [at if at < size else at - 4 for at in moved]


def _again(clip: DrawnClip, suspicion: verdicts.Suspicion, within: int, known: Container[int]) -> list[SightProbe]:
    """Questions outside and inside a part of a clip, for other frames than those known."""
    left = [at for at in range(len(clip.values)) if at not in known]
    without = _some([at for at in left if suspicion.outside(at)], 4)
    return clip.frames([*without, *_some([at for at in left if suspicion.inside(at)], within)])


def _some(positions: Sequence[int], count: int) -> list[int]:
    """At most `count` of these positions, spread and all different.

    >>> _some(range(16, 64), 4), _some([0], 3)
    ([22, 34, 46, 58], [0])
    """
    return list(dict.fromkeys(positions[int((k + 0.5) * len(positions) / count)] for k in range(count) if positions))
