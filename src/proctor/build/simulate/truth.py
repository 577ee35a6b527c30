"""Ground truth of one video: the log of its events, and per second where each instance is and how much of it shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from proctor.build.simulate.scene import SLIDE
from proctor.build.simulate.script import Event
from proctor.core import Region

__all__ = ["EventLog", "Moment", "Sighting", "Tracks", "Truth", "sighting"]

SHOWN = 0.6
"""From this visible share on an instance counts as in view."""
UNSEEN = 0.03
"""Up to this visible share it counts as not in view. What lies between is asked about by no question."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EventLog(_Frozen):
    """The events of one video in order of their start; the content of `events/*.json`."""

    video: str
    seconds: float
    events: tuple[Event, ...]


class Sighting(_Frozen):
    """One instance at one moment: the share of it that shows (0–1) and the box around that part.

    `box` is None where nothing of it shows although it is in the scene: it is hidden.
    """

    instance: str
    class_name: str
    visibility: float = Field(ge=0, le=1)
    box: Region | None


class Moment(_Frozen):
    """Everything that is in the scene at one time; an instance that is not listed is not there."""

    time: float
    objects: tuple[Sighting, ...]


class Tracks(_Frozen):
    """A moment for every whole second of one video; the content of `tracks/*.json`."""

    video: str
    width: int
    height: int
    moments: tuple[Moment, ...]


def sighting(instance: str, class_name: str, shown: NDArray[np.bool_], area: int) -> Sighting:
    """The sighting from the mask of pixels that show the instance, and the area it has when all of it shows."""
    height, width = shown.shape
    rows, columns = np.flatnonzero(shown.any(axis=1)), np.flatnonzero(shown.any(axis=0))
    box = None
    if rows.size:
        # edges are rounded, not extents: a box that ends at the picture's edge must not end beyond it
        left, right = round(int(columns[0]) / width, 4), round((int(columns[-1]) + 1) / width, 4)
        top, bottom = round(int(rows[0]) / height, 4), round((int(rows[-1]) + 1) / height, 4)
        box = Region(x=left, y=top, width=round(right - left, 4), height=round(bottom - top, 4))
    visibility = round(min(1.0, float(shown.sum()) / max(1, area)), 3)
    return Sighting(instance=instance, class_name=class_name, visibility=visibility, box=box)


@dataclass(frozen=True)
class Truth:
    """What is known of one video, and what questions need to know of it; nothing but log and tracks goes in."""

    log: EventLog
    tracks: Tracks

    def of(self, kind: str, class_name: str | None = None) -> list[Event]:
        """Events of a kind, of one class or of all, in order of their start."""
        return [
            event
            for event in self.log.events
            if event.kind == kind and class_name in {None, event.class_name}
        ]

    def first_seen(self) -> dict[str, float]:
        """Per class that comes into view: when it does so first, in order of time."""
        first: dict[str, float] = {}
        for event in self.of("inserted"):
            first.setdefault(event.class_name, event.start)
        return first

    def first_out(self) -> dict[str, float]:
        """Per class that is carried out: when that happens first, in order of time."""
        first: dict[str, float] = {}
        for event in sorted(self.of("retrieved"), key=lambda event: event.end):
            first.setdefault(event.class_name, event.end)
        return first

    def visibility(self, instance: str) -> dict[float, float]:
        """The visible share of an instance at every moment at which it is in the scene."""
        return {
            moment.time: seen.visibility
            for moment in self.tracks.moments
            for seen in moment.objects
            if seen.instance == instance
        }

    def plain(self, instance: str) -> bool:
        """Whether the instance lies openly from its insertion to its retrieval, and is hidden when the script says so."""
        mine = [event for event in self.log.events if event.instance == instance]
        hidden = [(event.start, event.end) for event in mine if event.kind == "hidden"]
        last = min([event.end for event in mine if event.kind == "retrieved"], default=self.log.seconds)
        shares = [
            share
            for time, share in self.visibility(instance).items()
            if mine[0].start + 0.7 < time < last - 0.7 and not any(a <= time <= b for a, b in hidden)
        ]
        covered = all(
            any(share <= UNSEEN for time, share in self.visibility(instance).items() if a <= time <= b)
            for a, b in hidden
        )
        return covered and bool(shares) and min(shares) >= SHOWN

    def quiet(self) -> list[Moment]:
        """Moments of which it can be said what is in view: nothing is just coming, going or half covered."""
        changes: list[tuple[float, float]] = []
        for event in self.log.events:
            if event.kind == "inserted":
                changes.append((event.start, event.start))
            elif event.kind == "retrieved":
                changes.append((event.end, event.end))
            elif event.kind == "hidden":
                changes += [(event.start, event.start + SLIDE), (event.end - SLIDE, event.end)]
        return [
            moment
            for moment in self.tracks.moments
            if 2 <= moment.time <= self.log.seconds - 1
            and not any(a - 0.7 < moment.time < b + 0.7 for a, b in changes)
            and not any(UNSEEN < seen.visibility < SHOWN for seen in moment.objects)
        ]


def in_view(moment: Moment) -> list[Sighting]:
    """What is to be seen at a quiet moment."""
    return [seen for seen in moment.objects if seen.visibility >= SHOWN]
