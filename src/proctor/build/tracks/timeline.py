"""What questions need to know of an annotated video up to a time: who came, who went, who is to be seen when."""

from __future__ import annotations

from proctor.build.tracks.annotation import Annotation, Moment, MomentKind, Sighting
from proctor.build.tracks.vocabulary import ARISING, official_name

__all__ = ["Timeline", "arrivals"]

_CALM_S = 1.5  # around a moment of importance nobody can say to the second what is in view


class Timeline:
    """An annotated video up to `end` seconds (without it: all of it). Nothing later is known here.

    What is said about whole seconds (`quiet`) and about instances (`plain`) may be said better by somebody who
    knows more than an annotation does: the simulator overrides both.
    """

    def __init__(self, annotation: Annotation, end: float | None = None) -> None:
        self.annotation = annotation
        self.end = annotation.video.seconds if end is None else end
        self._moments = [one for one in annotation.moments if one.time <= self.end]
        self._by_second = {
            second: seen for second, seen in annotation.by_second().items() if second <= self.end
        }
        self._arrivals = [one for one in arrivals(annotation) if one.time <= self.end]

    def moments(self, kind: MomentKind, class_name: str | None = None) -> list[Moment]:
        """Insertions or retrievals, of one class or of all, in order of time."""
        return [one for one in self._moments if one.kind == kind and class_name in {None, one.class_name}]

    def insertions(self, class_name: str | None = None) -> list[Moment]:
        """Insertions, in order of time."""
        return self.moments("insertion", class_name)

    def retrievals(self, class_name: str | None = None) -> list[Moment]:
        """Retrievals, in order of time."""
        return self.moments("retrieval", class_name)

    def first(self, kind: MomentKind) -> dict[str, float]:
        """Per class to which it happens: when it does so first, in order of time."""
        found: dict[str, float] = {}
        for one in self.moments(kind):
            found.setdefault(one.class_name, one.time)
        return found

    def first_in(self) -> dict[str, float]:
        """Per class that is inserted: when that happens first, in order of time."""
        return self.first("insertion")

    def first_out(self) -> dict[str, float]:
        """Per class that is retrieved: when that happens first, in order of time."""
        return self.first("retrieval")

    def first_there(self) -> dict[str, float]:
        """Per class that is ever in the body, be it inserted or come loose there: since when, in order of time."""
        found: dict[str, float] = {}
        for one in self._arrivals:
            found.setdefault(one.class_name, one.time)
        return found

    def inside(self, class_name: str | None = None) -> list[str]:
        """The instances that are in the body at the end, in order of arrival."""
        return [name for name, there in self._stays(class_name).items() if there]

    def outside(self, class_name: str | None = None) -> list[str]:
        """The instances that were in the body and are not at the end: however often one went in and out, it is one."""
        return [name for name, there in self._stays(class_name).items() if not there]

    def returned(self) -> list[str]:
        """The instances that were taken out and are in the body again at the end."""
        went = {one.instance for one in self.retrievals()}
        return [name for name in self.inside() if name in went]

    def _stays(self, class_name: str | None) -> dict[str, bool]:
        """Per instance that ever was in the body whether it is at the end."""
        there: dict[str, bool] = {}
        # of what happens at one time the arrival comes first
        for one in sorted([*self._arrivals, *self.retrievals()], key=lambda one: one.time):
            if class_name in {None, one.class_name}:
                there[one.instance] = one.kind == "insertion"
        return there

    def in_view(self, second: int) -> list[Sighting]:
        """What is plainly to be seen at a second."""
        return [one for one in self._by_second.get(second, []) if one.clear]

    def last_clear(self, instance: str) -> Sighting | None:
        """The last sighting of an instance, where it is plainly to be seen then."""
        mine = [
            one
            for _, seen in sorted(self._by_second.items())
            for one in seen
            if one.instance == instance and one.box is not None
        ]
        return mine[-1] if mine and mine[-1].clear else None

    def shown(self, class_name: str) -> list[int]:
        """The seconds at which something of a class is to be seen inside the body, be it in part."""
        return [
            second
            for second, seen in sorted(self._by_second.items())
            if any(one.class_name == class_name and one.box is not None and one.in_patient for one in seen)
        ]

    def quiet(self) -> list[int]:
        """Seconds of which it can be said what is in view: the same instances a second before, then and a second
        after, each plainly to be seen once or not at all, and nothing is just coming or going."""
        changes = [one.time for one in self._moments]
        seconds = range(int(self.end) + 1)
        names = [[one.instance for one in self.in_view(second)] for second in seconds]
        settled = [self._settled(second) for second in seconds]
        return [
            second
            for second in seconds[2:-1]
            if settled[second - 1]
            and settled[second]
            and settled[second + 1]
            and names[second - 1] == names[second] == names[second + 1]
            and not any(abs(second - time) < _CALM_S for time in changes)
        ]

    def plain(self, instance: str) -> bool:
        """Whether the instance can be followed from its insertion on, as far as is known."""
        del instance
        return True

    def times_to_ask(self) -> list[int]:
        """The quiet seconds that questions may ask about."""
        return self.quiet()

    def _settled(self, second: int) -> bool:
        seen = self._by_second.get(second, [])
        instances = [one.instance for one in seen]
        return len(set(instances)) == len(instances) and all(one.clear or one.box is None for one in seen)


def arrivals(annotation: Annotation) -> list[Moment]:
    """When each instance came to be in the body, in order of time: its insertions; and for a specimen or a stone that
    nobody inserted the second at which it is first seen there, since it comes loose in the body itself."""
    inserted = {one.instance for one in annotation.moments if one.kind == "insertion"}
    found = [one for one in annotation.moments if one.kind == "insertion"]
    for instance, seen in annotation.by_instance().items():
        here = [one for one in seen if one.in_patient]
        if here and instance not in inserted and official_name(here[0].class_name) in ARISING:
            time, name = float(here[0].second), here[0].class_name
            found.append(Moment(kind="insertion", instance=instance, class_name=name, time=time))
    return sorted(found, key=lambda one: (one.time, one.instance))
