"""From ground truth to questions: every rule looks at one video and offers all questions it can ask of it.

A rule offers a question only where the picture settles it: times far enough apart, nothing half covered
at the moment asked for, instances that lie openly. Which of the offers are asked is decided elsewhere
(`balance`), so that answers are balanced over all videos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from proctor.build.simulate.offers import (
    NAMES,
    Offer,
    apart,
    choice,
    clock,
    count,
    kinds,
    order,
    phrase,
    third,
    when,
    yes_no,
)
from proctor.build.simulate.truth import Moment, Truth, in_view
from proctor.core.formats import ChoiceFormat

__all__ = ["QUESTION_TYPES", "RULES", "offers"]

QUADRANTS = ("upper left", "upper right", "lower left", "lower right")


def offers(truth: Truth) -> list[Offer]:
    """All that the rules can ask of one video."""
    return [replace(offer, rule=name) for name, rule in RULES.items() for offer in rule(truth)]


def _plain_classes(truth: Truth) -> list[str]:
    """Classes with one instance, which lies openly but where the script hides it."""
    return [
        name
        for name in NAMES
        if len(found := truth.of("inserted", name)) == 1 and truth.plain(found[0].instance)
    ]


# Presence


def _seen(truth: Truth) -> Iterator[Offer]:
    first = truth.first_seen()
    for name in NAMES:
        question = f"Does a {phrase(name)} come into view at any time?"
        yield yes_no(question, name in first, name)


def _seen_at(truth: Truth) -> Iterator[Offer]:
    for moment in truth.quiet():
        shown = {seen.class_name for seen in in_view(moment)}
        for name in NAMES:
            question = f"Is a {phrase(name)} in view at {clock(moment.time)}?"
            yield yes_no(question, name in shown, third(truth, moment.time))


def _kinds_seen(truth: Truth) -> Iterator[Offer]:
    question = "Which kinds of foreign object come into view at any time?"
    yield kinds(question, set(truth.first_seen()))


def _kinds_seen_at(truth: Truth) -> Iterator[Offer]:
    for moment in truth.quiet():
        shown = {seen.class_name for seen in in_view(moment)}
        question = f"Which kinds of foreign object are in view at {clock(moment.time)}?"
        yield kinds(question, shown, third(truth, moment.time))


def _never(truth: Truth) -> Iterator[Offer]:
    first = truth.first_seen()
    for name in NAMES:
        if name not in first:
            yield from choice("Which of these objects never comes into view?", name, list(first))


# Counting


def _how_many(truth: Truth) -> Iterator[Offer]:
    for name in NAMES:
        found = truth.of("inserted", name)
        if all(truth.plain(event.instance) for event in found):
            question = f"How many times is a {phrase(name)} brought into view?"
            yield from count(question, len(found), name)


def _how_many_at(truth: Truth) -> Iterator[Offer]:
    for moment in truth.quiet():
        question = f"How many foreign objects are in view at {clock(moment.time)}?"
        yield from count(question, len(in_view(moment)), third(truth, moment.time))


def _how_many_out(truth: Truth) -> Iterator[Offer]:
    question = "How many foreign objects are carried out of view by an instrument?"
    yield from count(question, len(truth.of("retrieved")), "")


def _plural(truth: Truth) -> Iterator[Offer]:
    times = {name: len(truth.of("inserted", name)) for name in NAMES}
    several = [name for name in NAMES if times[name] > 1]
    if len(several) == 1:
        others = [name for name in NAMES if times[name] <= 1]
        yield from choice("Which of these objects is brought into view more than once?", several[0], others)


# Timing


def _when_seen(truth: Truth) -> Iterator[Offer]:
    for name, time in truth.first_seen().items():
        if truth.plain(truth.of("inserted", name)[0].instance):
            yield when(f"When does a {phrase(name)} first come into view?", truth, [time])


def _when_each(truth: Truth) -> Iterator[Offer]:
    for name in truth.first_seen():
        found = truth.of("inserted", name)
        if len(found) <= 3 and all(truth.plain(event.instance) for event in found):
            question = f"At which times is a {phrase(name)} brought into view?"
            yield when(question, truth, [event.start for event in found], several=True)


def _when_out(truth: Truth) -> Iterator[Offer]:
    for name in truth.first_out():
        out = truth.of("retrieved", name)
        if len(out) == 1:
            yield when(f"When is a {phrase(name)} carried out of view?", truth, [out[0].end])


# Sequence


def _before(truth: Truth) -> Iterator[Offer]:
    first = truth.first_seen()
    for one, other in combinations(first, 2):
        for a, b in ((one, other), (other, one)):
            if apart([first[a], first[b]]):
                question = f"Does a {phrase(a)} come into view before the first {phrase(b)} does?"
                yield yes_no(question, first[a] < first[b], a)


def _first(question: str, times: dict[str, float]) -> Iterator[Offer]:
    """Which of four classes is the first; those to which it never happens are options too."""
    for four in combinations(NAMES, 4):
        known = [times[name] for name in four if name in times]
        if len(known) >= 2 and apart(known):
            right = next(name for name in four if times.get(name) == min(known))
            options = (right, *(name for name in four if name != right))
            phrases = tuple(phrase(name) for name in options)
            yield Offer(question, ChoiceFormat(), phrases[0], right, options=phrases)


def _first_seen(truth: Truth) -> Iterator[Offer]:
    yield from _first("Which of these objects comes into view first?", truth.first_seen())


def _order_seen(truth: Truth) -> Iterator[Offer]:
    question = "In which order do these kinds of object first come into view?"
    yield from order(question, truth.first_seen())


def _order_out(truth: Truth) -> Iterator[Offer]:
    question = "In which order are these kinds of object first carried out of view?"
    yield from order(question, truth.first_out())


# Retrieval


def _out(truth: Truth) -> Iterator[Offer]:
    gone = truth.first_out()
    for name in truth.first_seen():
        yield yes_no(f"Is a {phrase(name)} carried out of view by an instrument?", name in gone, name)


def _kinds_out(truth: Truth) -> Iterator[Offer]:
    question = "Which kinds of foreign object are carried out of view by an instrument?"
    yield kinds(question, set(truth.first_out()))


def _first_out(truth: Truth) -> Iterator[Offer]:
    yield from _first("Which of these objects is carried out of view first?", truth.first_out())


# Occlusion, motion, location


def _singled_out(question: str, truth: Truth, kind: str) -> Iterator[Offer]:
    """Which one class something happens to: exactly one class, and the others are plainly spared."""
    happened = {event.class_name for event in truth.of(kind)}
    if len(happened) == 1:
        yield from choice(question, happened.pop(), [n for n in NAMES if not truth.of(kind, n)])


def _hidden(truth: Truth) -> Iterator[Offer]:
    for name in _plain_classes(truth):
        question = f"Is the {phrase(name)} covered completely for a while and then seen again?"
        yield yes_no(question, bool(truth.of("hidden", name)), name)


def _which_hidden(truth: Truth) -> Iterator[Offer]:
    question = "Which of these objects is covered completely for a while and then seen again?"
    if all(truth.plain(event.instance) for event in truth.of("inserted")):
        yield from _singled_out(question, truth, "hidden")


def _moved(truth: Truth) -> Iterator[Offer]:
    for name in _plain_classes(truth):
        question = f"Is the {phrase(name)} picked up and put down at another place?"
        yield yes_no(question, bool(truth.of("moved", name)), name)


def _which_moved(truth: Truth) -> Iterator[Offer]:
    question = "Which of these objects is picked up and put down at another place?"
    yield from _singled_out(question, truth, "moved")


def _where(truth: Truth) -> Iterator[Offer]:
    for moment in truth.quiet():
        for name in NAMES:
            quadrant = _quadrant(moment, name)
            if quadrant is not None:
                others = [other for other in QUADRANTS if other != quadrant]
                question = f"In which part of the picture is the {phrase(name)} at {clock(moment.time)}?"
                options = (quadrant, *others)
                yield Offer(question, ChoiceFormat(), quadrant, quadrant, name, options)


def _quadrant(moment: Moment, name: str) -> str | None:
    """The quarter in which the only instance of a class is clearly to be seen."""
    shown = [seen for seen in in_view(moment) if seen.class_name == name]
    if len(shown) != 1 or shown[0].box is None or shown[0].visibility < 0.85:
        return None
    box = shown[0].box
    x, y = box.x + box.width / 2, box.y + box.height / 2
    if min(abs(x - 0.5), abs(y - 0.5)) < 0.06:
        return None
    return QUADRANTS[2 * int(y > 0.5) + int(x > 0.5)]


RULES: dict[str, Callable[[Truth], Iterator[Offer]]] = {
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
    "hidden": _hidden,
    "which-hidden": _which_hidden,
    "moved": _moved,
    "which-moved": _which_moved,
    "where": _where,
}
"""All rules by name."""

QUESTION_TYPES: dict[str, tuple[str, ...]] = {
    "presence": ("seen", "seen-at", "kinds-seen", "kinds-seen-at", "never"),
    "counting": ("how-many", "how-many-at", "plural"),
    "timing": ("when-seen", "when-each"),
    "sequence": ("before", "first-seen", "order-seen"),
    "retrieval": ("how-many-out", "when-out", "order-out", "out", "kinds-out", "first-out"),
    "occlusion": ("hidden", "which-hidden"),
    "motion": ("moved", "which-moved"),
    "location": ("where",),
}
"""The taxonomy: question type to its rules; every rule in exactly one."""
