"""The script of a simulated procedure: which foreign object is inserted, moved, hidden and retrieved when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from proctor.core import generator
from proctor.tasks.simulated.construction.looks import CLASSES

EventKind = Literal["inserted", "moved", "hidden", "retrieved"]
Hand = Literal["left", "right"]

APPROACH = 0.7
"""Seconds that an instrument needs to reach an object before it grasps it."""
RETREAT = 0.6
"""Seconds in which it is out of the picture again."""

_LEAD, _TAIL = (0.4, 2.4), 0.9  # nothing happens in the first and the last seconds
_SPACING = 1.9  # seconds between two actions
_MOST_ACTIONS = 24
_REST = 0.9  # an object is left alone for so long after something happened to it
_COLUMNS, _ROWS = (0.17, 0.39, 0.61, 0.83), (0.30, 0.69)


class Event(BaseModel):
    """One event of one instance; times in seconds of the video, places as fractions of the picture at rest.

    `inserted`: from the moment its centre crosses the picture's edge until the instrument lets go of it.
    `moved`: from the grasp to the release at `place`. `hidden`: while `cover` lies over it or slides.
    `retrieved`: from the grasp until its centre crosses the picture's edge on the way out.
    `hand` is the side from which the instrument comes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: EventKind
    instance: str = Field(min_length=1)
    class_name: str = Field(min_length=1)
    start: float = Field(ge=0)
    end: float = Field(gt=0)
    place: tuple[float, float]
    hand: Hand | None = None
    cover: Literal["tissue", "retractor"] | None = None


@dataclass(frozen=True)
class Script:
    """All events of one video in order of their start."""

    video: str
    seconds: float
    events: tuple[Event, ...]


@dataclass
class _Resident:
    instance: str
    class_name: str
    cell: tuple[int, int]
    place: tuple[float, float]
    free_at: float


class _Stage:
    """What lies where while the script is drawn, and when the two hands are free again."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.residents: list[_Resident] = []
        self.events: list[Event] = []
        self.hands: dict[Hand, float] = {"left": 0.0, "right": 0.0}
        self.counts: dict[str, int] = {}
        self.tidy = float(
            rng.uniform(0.05, 0.95)
        )  # in some procedures nearly everything is retrieved, in others little

    def free_cells(self) -> list[tuple[int, int]]:
        taken = {resident.cell for resident in self.residents}
        return [(c, r) for c in range(len(_COLUMNS)) for r in range(len(_ROWS)) if (c, r) not in taken]

    def place(self, cell: tuple[int, int]) -> tuple[float, float]:
        x = _COLUMNS[cell[0]] + float(self.rng.uniform(-0.02, 0.02))
        y = _ROWS[cell[1]] + float(self.rng.uniform(-0.02, 0.02))
        return round(x, 4), round(y, 4)

    def hand(self, x: float, at: float) -> Hand | None:
        """The nearer hand where it is free, else the other one, else none."""
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
        place = self.place(cell)
        hand = self.hand(place[0], at - 0.5)
        if hand is None:
            return False
        self.counts[class_name] = self.counts.get(class_name, 0) + 1
        resident = _Resident(f"{class_name}-{self.counts[class_name]}", class_name, cell, place, 0.0)
        self.residents.append(resident)
        self._log("inserted", resident, at, at + float(self.rng.uniform(1.1, 1.5)), hand=hand)
        return True

    def retrieve(self, resident: _Resident, at: float) -> bool:
        hand = self.hand(resident.place[0], at)
        if hand is None:
            return False
        grasp = at + APPROACH
        self._log("retrieved", resident, grasp, grasp + float(self.rng.uniform(1.0, 1.4)), hand=hand)
        self.residents.remove(resident)
        return True

    def move(self, resident: _Resident, at: float) -> bool:
        cells = [c for c in self.free_cells() if c[1] == resident.cell[1]]
        hand = self.hand(resident.place[0], at)
        if hand is None or not cells:
            return False
        resident.cell = cells[int(self.rng.integers(len(cells)))]
        resident.place = self.place(resident.cell)
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
            place=resident.place,
            hand=hand,
            cover=cover,
        )
        self.events.append(event)
        resident.free_at = event.end + _REST
        if hand is not None:
            self.hands[hand] = event.end + RETREAT


def draw_script(seed: int, video: str, seconds: float) -> Script:
    """A seeded script: three to five of the classes, some of them several times, an action every two seconds.

    Insertions are spread over the whole video; between them objects are retrieved, moved and hidden.
    Objects lie in cells of their own, so that none covers another once it is put down.
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
    return Script(video, seconds, tuple(events))


def _cast(rng: np.random.Generator, actions: int) -> list[str]:
    """Which classes are to be inserted, in order: each of three to five at least once."""
    wanted = max(2, round(actions * float(rng.uniform(0.42, 0.66))))
    order = [CLASSES[int(index)] for index in rng.permutation(len(CLASSES))]
    present = order[: min(wanted, int(rng.choice([3, 4, 4, 5])))]
    cast = [kind.name for kind in present]
    while len(cast) < wanted:
        room = [kind for kind in present if cast.count(kind.name) < kind.at_most]
        if not room:
            break
        cast.append(room[int(rng.integers(len(room)))].name)
    return [cast[int(index)] for index in rng.permutation(len(cast))]


def _act(stage: _Stage, at: float, latest: float) -> None:
    """Something other than an insertion, with an object that is free for it; nothing where none is."""
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
