"""Rules on annotators' own attributes: what an object is like, where in the body it lies, what is done with it and what
for. Boxes know none of that, so nothing is asked where nothing was annotated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from proctor.build.tracks.annotation import Annotation, Sighting
from proctor.build.tracks.focus_instances import brought_in, last_sighting
from proctor.build.tracks.offers import Dialect, Offer, clock
from proctor.build.tracks.rules import Rule, only_one
from proctor.build.tracks.timeline import Timeline
from proctor.core.formats import BinaryFormat, ChoiceFormat

__all__ = ["ATTRIBUTE_RULES", "MEANINGS", "known_attributes"]

MEANINGS: Mapping[str, frozenset[str]] = {
    "site": frozenset({"location", "situs", "site", "anatomy", "region"}),
    "use": frozenset({"purpose", "usage", "use"}),
    "action": frozenset({"action", "interaction", "activity"}),
    "holder": frozenset({"held_by", "holder", "instrument"}),
}
"""Names of attributes that mean where an object lies in the body, what it is used for, what is done with it, and what
holds it. All others are properties of the object."""

_YES_NO = {"true", "false"}
_MOST_VALUES = 12  # an attribute with more values is a remark
_OPTIONS = 4


def known_attributes(annotations: Sequence[Annotation]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The attributes of every class that have two to twelve values, with these values."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in annotations:
        for seen in one.sightings:
            for name, value in seen.attributes.items():
                found.setdefault((seen.class_name, name), set()).add(value)
    return {key: tuple(sorted(some)) for key, some in found.items() if 2 <= len(some) <= _MOST_VALUES}


def _meaning(attribute: str) -> str:
    folded = attribute.casefold().replace(" ", "_")
    return next((meaning for meaning, names in MEANINGS.items() if folded in names), "property")


def _steady(line: Timeline, second: int, seen: Sighting, attribute: str) -> str | None:
    """The value of an attribute, where it is the same a second before and after."""
    around = [
        one.attributes.get(attribute)
        for other in (second - 1, second + 1)
        for one in line.in_view(other)
        if one.instance == seen.instance
    ]
    value = seen.attributes.get(attribute)
    return value if value is not None and all(one == value for one in around) else None


def _choices(question: str, key: tuple[str, str], value: str, values: tuple[str, ...]) -> Iterator[Offer]:
    """A choice among the values; of many for every three others."""
    name, attribute = key
    others = [one for one in values if one != value]
    for some in combinations(others, min(_OPTIONS - 1, len(others))):
        cue = f"{name} {attribute}"
        yield Offer(question, ChoiceFormat(), value, value, cue, (value, *some), mentions=(name,))


def _at_a_time(line: Timeline, say: Dialect, meaning: str) -> Iterator[Offer]:
    """Questions on the only instance of a class in view at a second."""
    for (name, attribute), values in say.attributes.items():
        yes_no = set(values) == _YES_NO
        if _meaning(attribute) != meaning or (yes_no and meaning != "property"):
            continue
        words = attribute.replace("_", " ")
        for second in line.times_to_ask():
            seen = only_one(line, second, name)
            value = None if seen is None else _steady(line, second, seen, attribute)
            if value is None:
                continue
            if yes_no:
                question = say.text("is-property", name, time=clock(second), attribute=words)
                yield say.yes_no(question, value == "true", f"{name} {attribute}", (name,))
            else:
                question = say.text(meaning, name, time=clock(second), attribute=words)
                yield from _choices(question, (name, attribute), value, values)


def _rule(meaning: str, *, yes_no: bool = False) -> Rule:
    """The rule for attributes of a meaning: those that are true or false, or the others."""

    def rule(line: Timeline, say: Dialect) -> Iterator[Offer]:
        for offer in _at_a_time(line, say, meaning):
            if isinstance(offer.format, BinaryFormat) is yes_no:
                yield offer

    return rule


def _sites(say: Dialect) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for (name, attribute), values in say.attributes.items():
        if _meaning(attribute) == "site" and set(values) != _YES_NO:
            yield name, attribute, values


def _one_site(line: Timeline, say: Dialect) -> Iterator[Offer]:
    """Where the object that came in at a time was last seen."""
    for name, attribute, values in _sites(say):
        for moment in brought_in(line, name):
            seen = line.last_clear(moment.instance)
            value = None if seen is None else _steady(line, seen.second, seen, attribute)
            if value is not None:
                question = say.text("one-site", name, time=clock(int(moment.time + 0.5)))
                yield from _choices(question, (name, attribute), value, values)


def _last_site(line: Timeline, say: Dialect) -> Iterator[Offer]:
    """Where the one that is left, and out of view, was last seen."""
    for name, attribute, values in _sites(say):
        seen = last_sighting(line, name)
        value = None if seen is None else _steady(line, seen.second, seen, attribute)
        if value is not None:
            yield from _choices(say.text("last-site", name), (name, attribute), value, values)


ATTRIBUTE_RULES: dict[str, Rule] = {
    "property": _rule("property"),
    "is-property": _rule("property", yes_no=True),
    "site": _rule("site"),
    "use": _rule("use"),
    "action": _rule("action"),
    "holder": _rule("holder"),
    "one-site": _one_site,
    "last-site": _last_site,
}
"""These rules by name."""
