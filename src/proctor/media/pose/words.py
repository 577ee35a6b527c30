"""Facts about a picture in sentences, for people and for models."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.media.pose.predicates import PersonFacts, PictureFacts

__all__ = ["WORDS", "sentences"]

WORDS: Mapping[str, tuple[str, str, str]] = {
    "kneeling": ("kneels", "does not kneel", "kneeling"),
    "leaning_over": ("leans over", "is upright", "leaning over"),
    "arms_straight_and_vertical": (
        "has the arms straight and vertical",
        "does not have the arms straight and vertical",
        "arms straight and vertical",
    ),
    "arm_stretched_out": ("stretches an arm out", "stretches no arm out", "an arm stretched out"),
    "hands_on_chest": (
        "has a hand on the manikin's chest",
        "has no hand on the manikin's chest",
        "hands on the chest",
    ),
    "hands_at_head": (
        "has a hand at the manikin's head",
        "has no hand at the manikin's head",
        "hands at the head",
    ),
    "reaching_for_device": (
        "reaches for the device",
        "does not reach for the device",
        "reaching for a device",
    ),
    "hands_off": ("keeps the hands off the manikin", "has hands on the manikin", "hands off"),
}
"""Of each predicate: how a yes is said, how a no, and what it is called."""

_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six")


def sentences(facts: PictureFacts, *, unknown: bool = True) -> list[str]:
    """One sentence on who is there, one or two for each person from left to right, one on who is nearest to the
    manikin. What can't be decided is said to be unknown, or left out (`unknown=False`).

    >>> sentences(PictureFacts((), "", None))
    ['No person is seen. The manikin is not found.']
    """
    count = len(facts.rescuers)
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    seen = f"{number} {'person is' if count < 2 else 'people are'} seen"
    if facts.manikin == "a lying body":
        said = [f"{seen}, and the manikin, by the looks of it a lying body."]
    elif facts.manikin:
        said = [f"{seen}. Where the manikin lies is marked."]
    else:
        said = [f"{seen}. The manikin is not found."]
    for person in facts.rescuers:
        said += _person(person, count, unknown=unknown)
    if facts.manikin and count > 1 and (facts.nearest is not None or unknown):
        who = f"is person {facts.nearest}" if facts.nearest is not None else "can't be decided"
        said.append(f"Nearest to the manikin {who}.")
    return said


def _person(person: PersonFacts, count: int, *, unknown: bool) -> list[str]:
    name = f"Person {person.number} of {count} from the left" if count > 1 else "The person"
    said = [WORDS[key][0] for key, holds in person.holds.items() if holds is True]
    said += [WORDS[key][1] for key, holds in person.holds.items() if holds is False]
    open_ = [WORDS[key][2] for key, holds in person.holds.items() if holds is None]
    found = [f"{name} {', '.join(said)}."] if said else []
    if unknown and open_:
        found.append(f"Unknown of {name[0].lower()}{name[1:]}: {', '.join(open_)}.")
    return found
