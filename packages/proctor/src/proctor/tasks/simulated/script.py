"""The script of a simulated procedure, and the scene at a time: the camera, objects, covers and instruments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from proctor.core import FrozenModel, generator

EventKind = Literal["inserted", "moved", "hidden", "retrieved"]
Hand = Literal["left", "right"]

APPROACH = 0.7
"""Seconds from an instrument's appearance to its grasp."""
RETREAT = 0.6
"""Seconds from an instrument's release to its disappearance."""

AT_MOST = {"clip": 3, "gallstone": 3, "needle": 3, "specimen bag": 2, "sponge": 3}
"""The largest number of objects of each class in a procedure; classes in alphabetical order."""

_LEAD, _TAIL = (0.4, 2.4), 0.9  # seconds without events at the start and the end
_SPACING = 1.9  # seconds between two actions
_MOST_ACTIONS = 24
_REST = 0.9  # seconds between two events of an object
_COLUMNS, _ROWS = (0.17, 0.39, 0.61, 0.83), (0.30, 0.69)


class Event(FrozenModel):
    """One event of one instance; times in seconds of the video, positions as fractions of the frame without drift.

    `inserted`: from its centre crossing the frame's edge until the instrument releases it. `moved`: from the grasp to
    the release at `position`. `hidden`: while `cover` slides or lies over it. `retrieved`: from the grasp until its centre
    crosses the frame's edge. `hand` is the side of the instrument.
    """

    kind: EventKind
    instance: str = Field(min_length=1)
    class_name: str = Field(min_length=1)
    start: float = Field(ge=0)
    end: float = Field(gt=0)
    position: tuple[float, float]
    hand: Hand | None = None
    cover: Literal["tissue", "retractor"] | None = None


class Script(FrozenModel):
    """All events of one video in order of their start; the content of `events/*.json`."""

    video: str
    seconds: float
    events: tuple[Event, ...]


@dataclass
class _Resident:
    instance: str
    class_name: str
    cell: tuple[int, int]
    position: tuple[float, float]
    free_at: float


class _Stage:
    """The state while a script is drawn: objects at rest, and when each hand is free again."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.residents: list[_Resident] = []
        self.events: list[Event] = []
        self.hands: dict[Hand, float] = {"left": 0.0, "right": 0.0}
        self.counts: dict[str, int] = {}
        self.tidy = float(rng.uniform(0.05, 0.95))  # the share of retrievals varies between procedures

    def free_cells(self) -> list[tuple[int, int]]:
        taken = {resident.cell for resident in self.residents}
        return [(c, r) for c in range(len(_COLUMNS)) for r in range(len(_ROWS)) if (c, r) not in taken]

    def position(self, cell: tuple[int, int]) -> tuple[float, float]:
        x = _COLUMNS[cell[0]] + float(self.rng.uniform(-0.02, 0.02))
        y = _ROWS[cell[1]] + float(self.rng.uniform(-0.02, 0.02))
        return round(x, 4), round(y, 4)

    def hand(self, x: float, at: float) -> Hand | None:
        """The nearer hand if it is free, else the other one, else None."""
        near: Hand = "left" if x < 0.5 else "right"
        far: Hand = "right" if near == "left" else "left"
        return next((hand for hand in (near, far) if self.hands[hand] <= at), None)

    def idle(self, at: float) -> list[_Resident]:
        return [resident for resident in self.residents if resident.free_at <= at]

    def insert(self, class_name: str, at: float) -> bool:
        cells = self.free_cells()
        if not cells:
            return False
        cell = cells[int(self.rng.integers(len(cells)))]
        location = self.position(cell)
        hand = self.hand(location[0], at - 0.5)
        if hand is None:
            return False
        self.counts[class_name] = self.counts.get(class_name, 0) + 1
        resident = _Resident(f"{class_name}-{self.counts[class_name]}", class_name, cell, location, 0.0)
        self.residents.append(resident)
        self._log("inserted", resident, at, at + float(self.rng.uniform(1.1, 1.5)), hand=hand)
        return True

    def retrieve(self, resident: _Resident, at: float) -> bool:
        hand = self.hand(resident.position[0], at)
        if hand is None:
            return False
        grasp = at + APPROACH
        self._log("retrieved", resident, grasp, grasp + float(self.rng.uniform(1.0, 1.4)), hand=hand)
        self.residents.remove(resident)
        return True

    def move(self, resident: _Resident, at: float) -> bool:
        cells = [c for c in self.free_cells() if c[1] == resident.cell[1]]
        hand = self.hand(resident.position[0], at)
        if hand is None or not cells:
            return False
        resident.cell = cells[int(self.rng.integers(len(cells)))]
        resident.position = self.position(resident.cell)
        grasp = at + APPROACH
        self._log("moved", resident, grasp, grasp + float(self.rng.uniform(1.2, 1.6)), hand=hand)
        return True

    def hide(self, resident: _Resident, at: float, latest: float) -> bool:
        end = at + float(self.rng.uniform(3.0, 4.2))
        if end > latest:
            return False
        cover: Literal["tissue", "retractor"] = "tissue" if self.rng.random() < 0.5 else "retractor"
        self._log("hidden", resident, at, end, cover=cover)
        return True

    def _log(
        self,
        kind: EventKind,
        resident: _Resident,
        start: float,
        end: float,
        *,
        hand: Hand | None = None,
        cover: Literal["tissue", "retractor"] | None = None,
    ) -> None:
        event = Event(
            kind=kind,
            instance=resident.instance,
            class_name=resident.class_name,
            start=round(start, 3),
            end=round(end, 3),
            position=resident.position,
            hand=hand,
            cover=cover,
        )
        self.events.append(event)
        resident.free_at = event.end + _REST
        if hand is not None:
            self.hands[hand] = event.end + RETREAT


def draw_script(seed: int, video: str, seconds: float) -> Script:
    """A script by seed: three to five classes, some with several objects, and an action about every two seconds.

    Insertions are spread over the whole video; between them objects are retrieved, moved and hidden. Each object rests
    in its own cell, so that none covers another.
    """
    rng = generator(seed, "simulate", video, "script")
    lead = float(rng.uniform(*_LEAD))
    usable = seconds - lead - _TAIL - 2.2  # the last action must end before the tail
    actions = min(max(2, int(usable / _SPACING) + 1), _MOST_ACTIONS)
    spacing = usable / max(1, actions - 1)
    pending = _cast(rng, actions)
    stage = _Stage(rng)
    for index in range(actions):
        at = max(lead, lead + spacing * (index + float(rng.uniform(-0.18, 0.18))))
        insert_now = not stage.residents or rng.random() < len(pending) / (actions - index)
        if pending and insert_now and stage.insert(pending[-1], at):
            pending.pop()
            continue
        _act(stage, at, seconds - _TAIL)
    events = sorted(stage.events, key=lambda event: (event.start, event.instance))
    return Script(video=video, seconds=seconds, events=tuple(events))


def _cast(rng: np.random.Generator, actions: int) -> list[str]:
    """The classes of the insertions, in order: three to five classes, each at least once."""
    wanted = max(2, round(actions * float(rng.uniform(0.42, 0.66))))
    names = list(AT_MOST)
    order = [names[int(index)] for index in rng.permutation(len(names))]
    present = order[: min(wanted, int(rng.choice([3, 4, 4, 5])))]
    cast = list(present)
    while len(cast) < wanted:
        room = [name for name in present if cast.count(name) < AT_MOST[name]]
        if not room:
            break
        cast.append(room[int(rng.integers(len(room)))])
    return [cast[int(index)] for index in rng.permutation(len(cast))]


def _act(stage: _Stage, at: float, latest: float) -> None:
    """Retrieves, moves or hides an idle object, if there is one."""
    idle = stage.idle(at)
    if not idle:
        return
    resident = idle[int(stage.rng.integers(len(idle)))]
    if stage.rng.random() < stage.tidy and stage.retrieve(resident, at):
        return
    hide_first = stage.rng.random() < 0.55
    if hide_first and stage.hide(resident, at, latest):
        return
    if not stage.move(resident, at):
        stage.hide(resident, at, latest)


Point = tuple[float, float]

GRIP = 11.0
"""Units (216 to the frame's height) between an instrument's tip and the centre of the object that it holds."""
SLIDE = 0.7
"""Seconds that a cover takes to slide over an object, and to slide away."""


@dataclass(frozen=True)
class LocatedObject:
    """An instance at a position in the frame, in pixels; `held` while an instrument carries it."""

    instance: str
    x: float
    y: float
    held: bool


@dataclass(frozen=True)
class Tool:
    """An instrument: its tip and a point of its shaft outside the frame, in pixels; `opening` of the jaws 0–1."""

    tip: Point
    pivot: Point
    opening: float


@dataclass(frozen=True)
class Cover:
    """A fold of tissue or a retractor blade that comes from above or below and ends at (x, y) pixels."""

    material: str
    x: float
    y: float
    from_above: bool


@dataclass(frozen=True)
class SceneState:
    """The content of a frame, drawn from back to front: background, objects at rest, covers, held objects, tools."""

    camera: Point
    objects: tuple[LocatedObject, ...]
    covers: tuple[Cover, ...]
    tools: tuple[Tool, ...]


class Scene:
    """The states of a script; each depends only on script, seed, size and time."""

    def __init__(self, script: Script, size: tuple[int, int], seed: int) -> None:
        self.width, self.height = size
        self.unit = self.height / 216
        rng = generator(seed, "simulate", script.video, "scene")
        self._drift = [
            (float(rng.uniform(a, b)) * self.unit, float(rng.uniform(*period)), float(rng.uniform(0, math.tau)))
            for a, b, period in ((8, 11, (9, 14)), (2, 3, (4, 6)), (5, 6.5, (8, 12)), (1.2, 1.8, (3.4, 4.4)))
        ]
        self._pivots = {
            (hand, above): (
                (-1 if hand == "left" else 1) * float(rng.uniform(0.62, 0.8)) + 0.5,
                (-1 if above else 1) * float(rng.uniform(0.65, 0.9)) + 0.5,
            )
            for hand in ("left", "right")
            for above in (True, False)
        }
        self._events: dict[str, list[Event]] = {}
        for event in script.events:
            self._events.setdefault(event.instance, []).append(event)

    def camera(self, time: float) -> Point:
        """The drift of the frame over the tissue, in pixels: slow wandering and breathing."""
        across, across_too, down, breath = (
            amount * math.sin(math.tau * time / period + phase) for amount, period, phase in self._drift
        )
        return across + across_too, down + breath

    def at(self, time: float) -> SceneState:
        """The state at `time` seconds."""
        objects, covers, tools = [], [], []
        for instance, events in self._events.items():
            for index, event in enumerate(events):
                before = events[index - 1].position if index else event.position
                tool = self._tool(event, before, time)
                if tool is not None:
                    tools.append(tool)
                if event.kind == "hidden" and event.start <= time < event.end:
                    covers.append(self._cover(event, time))
            positioned = self._positioned(instance, events, time)
            if positioned is not None:
                objects.append(positioned)
        objects.sort(key=lambda positioned: positioned.held)
        return SceneState(self.camera(time), tuple(objects), tuple(covers), tuple(tools))

    def _seen(self, location: Point, time: float) -> Point:
        """A position on the tissue (fractions) as a point of the frame (pixels)."""
        drift = self.camera(time)
        return location[0] * self.width - drift[0], location[1] * self.height - drift[1]

    def _pivot(self, event: Event, origin: Point) -> Point:
        x, y = self._pivots[event.hand or "left", origin[1] < 0.5]
        return x * self.width, y * self.height

    def _gate(self, event: Event, origin: Point, time: float) -> Point:
        """Where the line from the pivot to the object crosses the frame's edge at `time`."""
        pivot, target = self._pivot(event, origin), self._seen(origin, time)
        share = 0.0
        for start, end, limit in zip(pivot, target, (self.width, self.height), strict=True):
            edge = 0.0 if start < 0 else float(limit)
            share = max(share, (edge - start) / (end - start))
        return _between(pivot, target, share)

    def _positioned(self, instance: str, events: list[Event], time: float) -> LocatedObject | None:
        first = events[0]
        if first.kind != "inserted" or time < first.start - 1:
            return None
        if time < first.end:
            return LocatedObject(instance, *self._inserting(first, time), held=True)
        location = first.position
        for event in events[1:]:
            if time < event.start:
                break
            if event.kind == "retrieved":
                if time > event.end + 1:
                    return None
                return LocatedObject(instance, *self._retrieving(event, time), held=True)
            if event.kind == "moved" and time < event.end:
                share = _ease_both((time - event.start) / (event.end - event.start))
                return LocatedObject(instance, *self._seen(_between(location, event.position, share), time), held=True)
            location = event.position
        return LocatedObject(instance, *self._seen(location, time), held=False)

    def _inserting(self, event: Event, time: float) -> Point:
        """Crosses the edge at the start, slows down to its position at the end."""
        gate, goal = self._gate(event, event.position, event.start), self._seen(event.position, time)
        share = (time - event.start) / (event.end - event.start)
        return _between(gate, goal, 2 * share if share < 0 else 1 - (1 - share) ** 2)

    def _retrieving(self, event: Event, time: float) -> Point:
        """Speeds up from its position, crosses the edge at the end and goes on."""
        gate, origin = self._gate(event, event.position, event.end), self._seen(event.position, time)
        share = (time - event.start) / (event.end - event.start)
        return _between(origin, gate, 2 * share - 1 if share > 1 else share**2)

    def _tool(self, event: Event, before: Point, time: float) -> Tool | None:
        """The instrument of an event while it is in the frame; `before` is where the object was."""
        if event.kind == "hidden":
            return None
        origin = before if event.kind == "moved" else event.position
        found = self._holding(event, origin, time)
        if found is None and event.kind != "inserted":
            found = self._approach(event, origin, time)
        if found is None and event.kind != "retrieved":
            found = self._retreat(event, origin, time)
        if found is None:
            return None
        point, opening = found
        pivot = self._pivot(event, origin)
        length = math.dist(pivot, point)
        return Tool(_between(pivot, point, 1 - GRIP * self.unit / length), pivot, opening)

    def _holding(self, event: Event, origin: Point, time: float) -> tuple[Point, float] | None:
        """The position of the object while the instrument holds it, and the opening of the jaws."""
        if event.kind == "inserted" and event.start - 1 <= time < event.end:
            return self._inserting(event, time), 0.15
        if event.kind == "moved" and event.start <= time < event.end:
            share = _ease_both((time - event.start) / (event.end - event.start))
            return self._seen(_between(origin, event.position, share), time), 0.15
        if event.kind == "retrieved" and event.start <= time < event.end + 1:
            return self._retrieving(event, time), 0.15
        return None

    def _approach(self, event: Event, origin: Point, time: float) -> tuple[Point, float] | None:
        share = (time - event.start) / APPROACH + 1
        if not 0 <= share < 1:
            return None
        outside = self._outside(event, origin, event.start - APPROACH)
        return _between(outside, self._seen(origin, time), 1 - (1 - share) ** 2), 0.9

    def _retreat(self, event: Event, origin: Point, time: float) -> tuple[Point, float] | None:
        share = (time - event.end) / RETREAT
        if not 0 <= share < 1:
            return None
        outside = self._outside(event, origin, event.end + RETREAT)
        return _between(self._seen(event.position, time), outside, share**2), 0.9

    def _outside(self, event: Event, origin: Point, time: float) -> Point:
        """A point towards the pivot at which the instrument is outside the frame."""
        gate, pivot = self._gate(event, origin, time), self._pivot(event, origin)
        return _between(gate, pivot, 30 * self.unit / max(math.dist(gate, pivot), 1.0))

    def _cover(self, event: Event, time: float) -> Cover:
        x, y = self._seen(event.position, time)
        slid = _ease_both(min(1.0, (time - event.start) / SLIDE, (event.end - time) / SLIDE))
        above = event.position[1] < 0.5
        edge, full = (0.0, y + 40 * self.unit) if above else (float(self.height), y - 40 * self.unit)
        return Cover(event.cover or "tissue", x, edge + slid * (full - edge), above)


def _between(a: Point, b: Point, share: float) -> Point:
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def _ease_both(share: float) -> float:
    share = min(1.0, max(0.0, share))
    return share * share * (3 - 2 * share)
