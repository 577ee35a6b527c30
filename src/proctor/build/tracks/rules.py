"""From an annotated video to questions: rules that need nothing but boxes and moments, in anybody's words.

A rule offers a question only where the annotation settles it: times far enough apart, nothing half covered
at the moment asked for. Which of the offers are asked is decided elsewhere (`balance`), so that answers are
balanced over all videos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from proctor.build.tracks.annotation import Sighting
from proctor.build.tracks.offers import Dialect, Offer, apart, clock, third
from proctor.build.tracks.timeline import Timeline
from proctor.core.formats import ChoiceFormat

__all__ = ["QUADRANTS", "TRACK_RULES", "Rule", "only_one", "quadrant_of"]

Rule = Callable[[Timeline, Dialect], Iterator[Offer]]

QUADRANTS = ("upper left", "upper right", "lower left", "lower right")

_PLAINLY = 0.85  # from this visible share on the middle of the box is the middle of the object


# Presence


def _seen(line: Timeline, say: Dialect) -> Iterator[Offer]:
    first = line.first_in()
    for name in say.names:
        yield say.yes_no(say.text("seen", name), name in first, name, (name,))


def _seen_at(line: Timeline, say: Dialect) -> Iterator[Offer]:
    for second in line.times_to_ask():
        shown = {seen.class_name for seen in line.in_view(second)}
        for name in say.names:
            question = say.text("seen-at", name, time=clock(second))
            yield say.yes_no(question, name in shown, third(second, line.end), (name,))


def _kinds_seen(line: Timeline, say: Dialect) -> Iterator[Offer]:
    yield say.kinds(say.text("kinds-seen"), set(line.first_in()))


def _kinds_seen_at(line: Timeline, say: Dialect) -> Iterator[Offer]:
    for second in line.times_to_ask():
        shown = {seen.class_name for seen in line.in_view(second)}
        yield say.kinds(say.text("kinds-seen-at", time=clock(second)), shown, third(second, line.end))


def _never(line: Timeline, say: Dialect) -> Iterator[Offer]:
    first = line.first_in()
    for name in say.names:
        if name not in first:
            yield from say.choice(say.text("never"), name, list(first))


# Counting


def _how_many(line: Timeline, say: Dialect) -> Iterator[Offer]:
    for name in say.names:
        found = line.insertions(name)
        if all(line.plain(moment.instance) for moment in found):
            yield from say.count(say.text("how-many", name), len(found), name, (name,))


def _how_many_at(line: Timeline, say: Dialect) -> Iterator[Offer]:
    for second in line.times_to_ask():
        question = say.text("how-many-at", time=clock(second))
        yield from say.count(question, len(line.in_view(second)), third(second, line.end))


def _how_many_out(line: Timeline, say: Dialect) -> Iterator[Offer]:
    if not line.returned():  # of what went out and came back nobody can say whether it "has been taken out"
        yield from say.count(say.text("how-many-out"), len(line.outside()))


def _plural(line: Timeline, say: Dialect) -> Iterator[Offer]:
    times = {name: len(line.insertions(name)) for name in say.names}
    several = [name for name in say.names if times[name] > 1]
    if len(several) == 1:
        others = [name for name in say.names if times[name] <= 1]
        yield from say.choice(say.text("plural"), several[0], others)


# Timing


def _when_seen(line: Timeline, say: Dialect) -> Iterator[Offer]:
    for name, time in line.first_in().items():
        if line.plain(line.insertions(name)[0].instance):
            yield say.when(say.text("when-seen", name), line.end, [time], (name,))


def _when_each(line: Timeline, say: Dialect) -> Iterator[Offer]:
    for name in line.first_in():
        found = line.insertions(name)
        if len(found) <= 3 and all(line.plain(moment.instance) for moment in found):
            times = [moment.time for moment in found]
            yield say.when(say.text("when-each", name), line.end, times, (name,), several=True)


def _when_out(line: Timeline, say: Dialect) -> Iterator[Offer]:
    for name in line.first_out():
        out = line.retrievals(name)
        if len(out) == 1:
            yield say.when(say.text("when-out", name), line.end, [out[0].time], (name,))


# Sequence


def _before(line: Timeline, say: Dialect) -> Iterator[Offer]:
    first = line.first_in()
    for one, other in combinations(first, 2):
        for a, b in ((one, other), (other, one)):
            if apart([first[a], first[b]]):
                yield say.yes_no(say.text("before", a, b), first[a] < first[b], a, (a, b))


def _first(question: str, times: dict[str, float], say: Dialect) -> Iterator[Offer]:
    """Which of four classes is the first; those to which it never happens are options too."""
    for four in combinations(say.names, 4):
        known = [times[name] for name in four if name in times]
        if len(known) >= 2 and apart(known):
            right = next(name for name in four if times.get(name) == min(known))
            yield say.among(question, right, (right, *(name for name in four if name != right)))


def _first_seen(line: Timeline, say: Dialect) -> Iterator[Offer]:
    yield from _first(say.text("first-seen"), line.first_in(), say)


def _order_seen(line: Timeline, say: Dialect) -> Iterator[Offer]:
    yield from say.order(say.text("order-seen"), line.first_in())


def _order_out(line: Timeline, say: Dialect) -> Iterator[Offer]:
    yield from say.order(say.text("order-out"), line.first_out())


# Retrieval


def _out(line: Timeline, say: Dialect) -> Iterator[Offer]:
    gone = line.first_out()
    for name in line.first_there():
        yield say.yes_no(say.text("out", name), name in gone, name, (name,))


def _kinds_out(line: Timeline, say: Dialect) -> Iterator[Offer]:
    yield say.kinds(say.text("kinds-out"), set(line.first_out()))


def _first_out(line: Timeline, say: Dialect) -> Iterator[Offer]:
    yield from _first(say.text("first-out"), line.first_out(), say)


# Location


def _where(line: Timeline, say: Dialect) -> Iterator[Offer]:
    for second in line.times_to_ask():
        for name in say.names:
            quadrant = _quadrant(line, second, name)
            if quadrant is not None:
                options = (quadrant, *(other for other in QUADRANTS if other != quadrant))
                question = say.text("where", name, time=clock(second))
                yield Offer(question, ChoiceFormat(), quadrant, quadrant, name, options, mentions=(name,))


def only_one(line: Timeline, second: int, name: str) -> Sighting | None:
    """The only instance of a class in view at a second, where all of it shows."""
    shown = [seen for seen in line.in_view(second) if seen.class_name == name]
    if len(shown) != 1 or (shown[0].visibility is not None and shown[0].visibility < _PLAINLY):
        return None
    return shown[0]


def _quadrant(line: Timeline, second: int, name: str) -> str | None:
    """The quarter in which the only instance of a class is clearly to be seen."""
    seen = only_one(line, second, name)
    return None if seen is None else quadrant_of(line, seen)


def quadrant_of(line: Timeline, seen: Sighting) -> str | None:
    """The quarter of the picture in which a sighting's middle lies; None too near to a border of two, and where not
    all of it shows."""
    if seen.box is None or (seen.visibility is not None and seen.visibility < _PLAINLY):
        return None
    x, y = seen.box.centre[0] / line.annotation.video.width, seen.box.centre[1] / line.annotation.video.height
    if min(abs(x - 0.5), abs(y - 0.5)) < 0.06:
        return None
    return QUADRANTS[2 * int(y > 0.5) + int(x > 0.5)]


TRACK_RULES: dict[str, Rule] = {
    "seen": _seen,
    "seen-at": _seen_at,
    "kinds-seen": _kinds_seen,
    "kinds-seen-at": _kinds_seen_at,
    "never": _never,
    "how-many": _how_many,
    "how-many-at": _how_many_at,
    "plural": _plural,
    "how-many-out": _how_many_out,
    "when-seen": _when_seen,
    "when-each": _when_each,
    "when-out": _when_out,
    "before": _before,
    "first-seen": _first_seen,
    "order-seen": _order_seen,
    "order-out": _order_out,
    "out": _out,
    "kinds-out": _kinds_out,
    "first-out": _first_out,
    "where": _where,
}
"""The rules by name."""
