"""The scene at a moment: where the camera looks, where objects, covers and instruments are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from proctor.core import generator
from proctor.tasks.simulated.construction.script import APPROACH, RETREAT, Event, Script

Point = tuple[float, float]

GRIP = 11.0
"""Units (216 to the picture's height) between an instrument's tip and the centre of what it holds."""
SLIDE = 0.7
"""Seconds that a cover needs to slide over an object, and again to slide away."""


@dataclass(frozen=True)
class PlacedObject:
    """An instance at a place of the picture, in pixels; `held` while an instrument carries it."""

    instance: str
    x: float
    y: float
    held: bool


@dataclass(frozen=True)
class Tool:
    """An instrument: its tip and a point of its shaft outside the picture, in pixels; `opening` of the jaws 0–1."""

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
    """Everything that is to be drawn, from back to front: background, objects at rest, covers, held objects, tools."""

    camera: Point
    objects: tuple[PlacedObject, ...]
    covers: tuple[Cover, ...]
    tools: tuple[Tool, ...]


class Scene:
    """Turns a script into states. Pure: the state depends on nothing but script, seed, size and time."""

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
        """How far the picture has drifted over the tissue, in pixels: slow wandering and breathing."""
        across, across_too, down, breath = (
            amount * math.sin(math.tau * time / period + phase) for amount, period, phase in self._drift
        )
        return across + across_too, down + breath

    def at(self, time: float) -> SceneState:
        """The state at `time` seconds."""
        objects, covers, tools = [], [], []
        for instance, events in self._events.items():
            for index, event in enumerate(events):
                before = events[index - 1].place if index else event.place
                tool = self._tool(event, before, time)
                if tool is not None:
                    tools.append(tool)
                if event.kind == "hidden" and event.start <= time < event.end:
                    covers.append(self._cover(event, time))
            placed = self._placed(instance, events, time)
            if placed is not None:
                objects.append(placed)
        objects.sort(key=lambda placed: placed.held)
        return SceneState(self.camera(time), tuple(objects), tuple(covers), tuple(tools))

    def _seen(self, place: Point, time: float) -> Point:
        """A place on the tissue (fractions) as a point of the picture (pixels)."""
        drift = self.camera(time)
        return place[0] * self.width - drift[0], place[1] * self.height - drift[1]

    def _pivot(self, event: Event, origin: Point) -> Point:
        x, y = self._pivots[event.hand or "left", origin[1] < 0.5]
        return x * self.width, y * self.height

    def _gate(self, event: Event, origin: Point, time: float) -> Point:
        """Where the line from the pivot to the object crosses the picture's edge at `time`."""
        pivot, target = self._pivot(event, origin), self._seen(origin, time)
        share = 0.0
        for start, end, limit in zip(pivot, target, (self.width, self.height), strict=True):
            edge = 0.0 if start < 0 else float(limit)
            share = max(share, (edge - start) / (end - start))
        return _between(pivot, target, share)

    def _placed(self, instance: str, events: list[Event], time: float) -> PlacedObject | None:
        first = events[0]
        if first.kind != "inserted" or time < first.start - 1:
            return None
        if time < first.end:
            return PlacedObject(instance, *self._inserting(first, time), held=True)
        place = first.place
        for event in events[1:]:
            if time < event.start:
                break
            if event.kind == "retrieved":
                if time > event.end + 1:
                    return None
                return PlacedObject(instance, *self._retrieving(event, time), held=True)
            if event.kind == "moved" and time < event.end:
                share = _ease_both((time - event.start) / (event.end - event.start))
                return PlacedObject(instance, *self._seen(_between(place, event.place, share), time), held=True)
            place = event.place
        return PlacedObject(instance, *self._seen(place, time), held=False)

    def _inserting(self, event: Event, time: float) -> Point:
        """Crosses the edge at the start, slows down to its place at the end."""
        gate, goal = self._gate(event, event.place, event.start), self._seen(event.place, time)
        share = (time - event.start) / (event.end - event.start)
        return _between(gate, goal, 2 * share if share < 0 else 1 - (1 - share) ** 2)

    def _retrieving(self, event: Event, time: float) -> Point:
        """Speeds up from its place, crosses the edge at the end and goes on."""
        gate, origin = self._gate(event, event.place, event.end), self._seen(event.place, time)
        share = (time - event.start) / (event.end - event.start)
        return _between(origin, gate, 2 * share - 1 if share > 1 else share**2)

    def _tool(self, event: Event, before: Point, time: float) -> Tool | None:
        """The instrument of an event while it is in the picture."""
        phases: dict[str, Callable[[Event, Point, float], tuple[Point, float] | None]] = {
            "inserted": self._insert_point,
            "moved": self._move_point,
            "retrieved": self._retrieve_point,
        }
        if event.kind not in phases:
            return None
        origin = event.place if event.kind != "moved" else before
        found = phases[event.kind](event, before, time)
        if found is None:
            return None
        point, opening = found
        pivot = self._pivot(event, origin)
        length = math.dist(pivot, point)
        return Tool(_between(pivot, point, 1 - GRIP * self.unit / length), pivot, opening)

    def _insert_point(self, event: Event, before: Point, time: float) -> tuple[Point, float] | None:
        del before
        if event.start - 1 <= time < event.end:
            return self._inserting(event, time), 0.15
        return self._retreat(event, event.place, time)

    def _move_point(self, event: Event, before: Point, time: float) -> tuple[Point, float] | None:
        if event.start <= time < event.end:
            share = _ease_both((time - event.start) / (event.end - event.start))
            return self._seen(_between(before, event.place, share), time), 0.15
        return self._approach(event, before, time) or self._retreat(event, before, time)

    def _retrieve_point(self, event: Event, before: Point, time: float) -> tuple[Point, float] | None:
        del before
        if event.start <= time < event.end + 1:
            return self._retrieving(event, time), 0.15
        return self._approach(event, event.place, time)

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
        return _between(self._seen(event.place, time), outside, share**2), 0.9

    def _outside(self, event: Event, origin: Point, time: float) -> Point:
        """A point on the way to the pivot from where the instrument is out of the picture."""
        gate, pivot = self._gate(event, origin, time), self._pivot(event, origin)
        return _between(gate, pivot, 30 * self.unit / max(math.dist(gate, pivot), 1.0))

    def _cover(self, event: Event, time: float) -> Cover:
        x, y = self._seen(event.place, time)
        slid = _ease_both(min(1.0, (time - event.start) / SLIDE, (event.end - time) / SLIDE))
        above = event.place[1] < 0.5
        edge, full = (0.0, y + 40 * self.unit) if above else (float(self.height), y - 40 * self.unit)
        return Cover(event.cover or "tissue", x, edge + slid * (full - edge), above)


def _between(a: Point, b: Point, share: float) -> Point:
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def _ease_both(share: float) -> float:
    share = min(1.0, max(0.0, share))
    return share * share * (3 - 2 * share)
