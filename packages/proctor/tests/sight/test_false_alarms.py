"""How often weak eyes are taken for a broken server, and a broken server for weak eyes: simulated without pictures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import generator
from proctor.media import MediaSettings
from proctor.sight import SightPlan, pictures
from proctor.sight.asking import Asker, Reading
from proctor.sight.examination import Course
from proctor.sight.probes import READ, Deck, Kind, SightProbe
from tests.support.simulation import assert_share, repetitions

FRAMES = 64


class _Undrawn(Deck):
    """Probes without their pictures."""

    def _write(self, content: bytes, suffix: str) -> str:
        return f"nothing{suffix}"

    def _picture(self, picture: object) -> str:
        return "nothing.png"

    def _video(self, shown: object, end: float) -> str:
        return "nothing.mp4"


class _Simulated(Asker):
    """Each question is answered right with the probability `sees(probe)`; else it is a guess, or nothing is seen."""

    def __init__(
        self, sees: Callable[[SightProbe], float], draw: np.random.Generator, *, calls: int = 64, seconds: float = 1e9
    ) -> None:
        super().__init__(None, None, calls=calls, seconds=seconds, concurrency=1)  # type: ignore[arg-type]  # nobody is asked
        self._sees, self._draw = sees, draw

    async def _one(self, probe: SightProbe) -> Reading:
        if self.left <= 0:
            return Reading(probe, "not asked", said="no calls are left")
        self.asked += 1
        if self._draw.random() < self._sees(probe) and probe.truth is not None:
            value: Any = probe.rungs[-1] if probe.kind is Kind.SMALLEST else probe.truth
            return Reading(probe, "right", value)
        if self._draw.random() < 0.5:
            return Reading(probe, "nothing seen")
        return self._guess(probe)

    def _guess(self, probe: SightProbe) -> Reading:
        if probe.kind in READ or probe.kind in {Kind.SMALLEST, Kind.SMALL_DIGITS, Kind.BLACK}:
            value = int(self._draw.integers(100, 1000))
            return Reading(probe, "right" if value == probe.truth else "wrong", value)
        right = self._draw.random() < (0.1 if probe.kind is Kind.TIME else 0.25)
        return Reading(probe, "right" if right else "wrong", probe.truth if right else "?")  # type: ignore[arg-type]


@pytest.fixture(autouse=True, scope="module")
def _blank() -> Iterator[None]:
    """Nothing is drawn: nobody looks."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("number", "small_number", "ladder", "disc", "discs", "moving"):
            patch.setattr(pictures, name, lambda *_, **__: [None])
        yield


def found(sees: Callable[[SightProbe], float], seed: int) -> tuple[list[str], int]:
    """The codes of what one simulated test finds, and its calls."""
    plan = SightPlan(
        routes=("frames", "video", "tools", "schema"), seed=seed, settings=MediaSettings(max_frames=FRAMES)
    )
    asker = _Simulated(sees, generator(seed, "simulated eyes"))
    course = Course(plan, _Undrawn(Path(), seed, plan.settings), asker, lambda _: None)
    asyncio.run(course.run())
    return [finding.code for finding in course.findings], asker.asked


EYES: dict[str, tuple[Callable[[SightProbe], float], float]] = {
    "sharp": (lambda _: 0.98, 0.01),
    "good": (lambda _: 0.8, 0.01),
    "middling": (lambda _: 0.6, 0.01),
    "weak": (lambda _: 0.4, 0.01),
    "very weak": (lambda _: 0.2, 0.01),
    "weak with small digits": (lambda probe: 0.1 if probe.kind in {Kind.SMALL_DIGITS, Kind.SMALLEST} else 0.8, 0.01),
    "weak with late frames": (lambda probe: 0.9 - 0.6 * probe.at / FRAMES if probe.clip else 0.9, 0.01),
    # much weaker at one thing than at all others, which looks most like a fault
    "weak with many frames": (lambda probe: 0.35 if probe.clip else 0.9, 0.05),
    "weak with tools": (lambda probe: 0.4 if probe.route == "tools" else 0.9, 0.05),
    "weak at times": (lambda probe: 0.4 if probe.kind is Kind.TIME else 0.9, 0.05),
}
"""How well a model sees, and the largest share of tests with a false alarm."""


@pytest.mark.simulation
@pytest.mark.parametrize("eyes", EYES)
def test_weak_eyes_are_rarely_taken_for_a_broken_server(eyes: str) -> None:
    """All routes and all findings together, within 64 calls."""
    (sees, most), many, alarms = EYES[eyes], repetitions(400), 0
    for seed in range(many):
        codes, calls = found(sees, seed)
        assert calls <= 64
        alarms += bool(codes)
    assert_share(alarms, many, 0.0, most)


FAULTS: dict[str, Callable[[SightProbe], bool]] = {
    "blind": lambda _: True,
    "first": lambda probe: probe.route == "frames" and bool(probe.clip) and probe.at >= 16,
    "last": lambda probe: probe.route == "frames" and bool(probe.clip) and probe.at < 48,
    "dropped": lambda probe: probe.route == "frames" and bool(probe.clip) and probe.at % 2 == 1,
    "times": lambda probe: probe.route == "frames" and probe.kind in {Kind.TIME, Kind.FRAME},
    "shrunk": lambda probe: probe.kind is Kind.SMALLEST or (probe.kind is Kind.SMALL_DIGITS and probe.large),
    "video": lambda probe: probe.route == "video",
    "tools": lambda probe: probe.route == "tools",
    "schema": lambda probe: probe.route == "schema",
}
"""Which questions a fault makes unanswerable."""


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("fault", "sharpness", "least"), [(one, *how) for one in FAULTS for how in ((0.95, 0.85), (0.7, 0.2))]
)
def test_a_fault_is_found_behind_good_and_middling_eyes(fault: str, sharpness: float, least: float) -> None:
    """Behind middling eyes many faults stay "could not check": 64 calls are too few to be sure."""
    many = repetitions(200)
    hits = sum(
        found(lambda probe: 0.0 if FAULTS[fault](probe) else sharpness, seed)[0] == [fault] for seed in range(many)
    )
    assert_share(hits, many, least, 1.0)
