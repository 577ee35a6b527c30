"""Ground truth of one video: the log of its events, and per second where each instance is and how much of it shows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from proctor.build.simulate.scene import SLIDE
from proctor.build.simulate.script import Event
from proctor.build.tracks.annotation import Annotation, Box, Moment, Sighting
from proctor.build.tracks.timeline import Timeline

__all__ = ["EventLog", "Truth", "moments_of", "sighting"]

SHOWN = 0.6
"""From this visible share on an instance counts as in view."""
UNSEEN = 0.03
"""Up to this visible share it counts as not in view. What lies between is asked about by no question."""


class EventLog(BaseModel):
    """The events of one video in order of their start; the content of `events/*.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    video: str
    seconds: float
    events: tuple[Event, ...]


def moments_of(events: tuple[Event, ...]) -> tuple[Moment, ...]:
    """The moments of importance: an insertion when the object crosses the picture's edge on the way in, a
    retrieval when it does so on the way out."""
    return tuple(
        Moment(kind="insertion", instance=event.instance, class_name=event.class_name, time=event.start)
        if event.kind == "inserted"
        else Moment(kind="retrieval", instance=event.instance, class_name=event.class_name, time=event.end)
        for event in events
        if event.kind in {"inserted", "retrieved"}
    )


def sighting(second: int, instance: str, class_name: str, shown: NDArray[np.bool_], area: int) -> Sighting:
    """The sighting from the mask of pixels that show the instance, and the area it has when all of it shows.

    The box holds all of these pixels, and is None where there is none: then the instance is in the scene and
    covered. Less than `SHOWN` of it in view is occluded.
    """
    rows, columns = np.flatnonzero(shown.any(axis=1)), np.flatnonzero(shown.any(axis=0))
    box = None
    if rows.size:
        left, top = int(columns[0]), int(rows[0])
        box = Box(x=left, y=top, width=int(columns[-1]) + 1 - left, height=int(rows[-1]) + 1 - top)
    visibility = round(min(1.0, float(shown.sum()) / max(1, area)), 3)
    return Sighting(
        second=second,
        instance=instance,
        class_name=class_name,
        box=box,
        occluded=visibility < SHOWN,
        visibility=visibility,
    )


class Truth(Timeline):
    """What is known of one simulated video; nothing but its log and its tracks goes in.

    The log says more than an annotation can: when something was covered, so what can be followed (`plain`)
    and at which seconds it is clear what is in view (`quiet`) is known exactly.
    """

    def __init__(self, log: EventLog, tracks: Annotation) -> None:
        super().__init__(tracks)
        self.log = log
        self.tracks = tracks
        self._shares: dict[str, dict[int, float]] = {}
        for seen in tracks.sightings:
            self._shares.setdefault(seen.instance, {})[seen.second] = seen.visibility or 0.0

    def of(self, kind: str, class_name: str | None = None) -> list[Event]:
        """Events of a kind, of one class or of all, in order of their start."""
        return [
            event
            for event in self.log.events
            if event.kind == kind and class_name in {None, event.class_name}
        ]

    def visibility(self, instance: str) -> dict[int, float]:
        """The visible share of an instance at every second at which it is in the scene."""
        return self._shares.get(instance, {})

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

    def quiet(self) -> list[int]:
        """Seconds of which it can be said what is in view: nothing is just coming, going or half covered."""
        changes: list[tuple[float, float]] = []
        for event in self.log.events:
            if event.kind == "inserted":
                changes.append((event.start, event.start))
            elif event.kind == "retrieved":
                changes.append((event.end, event.end))
            elif event.kind == "hidden":
                changes += [(event.start, event.start + SLIDE), (event.end - SLIDE, event.end)]
        partly = {
            second
            for shares in self._shares.values()
            for second, share in shares.items()
            if UNSEEN < share < SHOWN
        }
        return [
            second
            for second in range(2, self.tracks.video.whole_seconds)
            if second <= self.log.seconds - 1
            and second not in partly
            and not any(a - 0.7 < second < b + 0.7 for a, b in changes)
        ]
