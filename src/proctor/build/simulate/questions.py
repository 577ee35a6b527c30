"""From ground truth to questions. What boxes and moments settle is asked by the rules for any annotated video
(`proctor.build.tracks`); only what the event log alone knows is asked here: what was hidden, and what moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from proctor.build.simulate.truth import Truth
from proctor.build.simulate.words import NAMES, WORDS
from proctor.build.tracks.offers import Offer
from proctor.build.tracks.rules import TRACK_RULES, Rule

__all__ = ["QUESTION_TYPES", "RULES", "offers"]


def offers(truth: Truth) -> list[Offer]:
    """All that the rules can ask of one video."""
    return [replace(offer, rule=name) for name, rule in RULES.items() for offer in rule(truth)]


def _plain_classes(truth: Truth) -> list[str]:
    """Classes with one instance, which lies openly but where the script hides it."""
    return [
        name for name in NAMES if len(found := truth.insertions(name)) == 1 and truth.plain(found[0].instance)
    ]


def _singled_out(question: str, truth: Truth, kind: str) -> Iterator[Offer]:
    """Which one class something happens to: exactly one class, and the others are plainly spared."""
    happened = {event.class_name for event in truth.of(kind)}
    if len(happened) == 1:
        yield from WORDS.choice(question, happened.pop(), [n for n in NAMES if not truth.of(kind, n)])


def _hidden(truth: Truth) -> Iterator[Offer]:
    for name in _plain_classes(truth):
        yield WORDS.yes_no(WORDS.text("hidden", name), bool(truth.of("hidden", name)), name, (name,))


def _which_hidden(truth: Truth) -> Iterator[Offer]:
    if all(truth.plain(moment.instance) for moment in truth.insertions()):
        yield from _singled_out(WORDS.text("which-hidden"), truth, "hidden")


def _moved(truth: Truth) -> Iterator[Offer]:
    for name in _plain_classes(truth):
        yield WORDS.yes_no(WORDS.text("moved", name), bool(truth.of("moved", name)), name, (name,))


def _which_moved(truth: Truth) -> Iterator[Offer]:
    yield from _singled_out(WORDS.text("which-moved"), truth, "moved")


def _in_our_words(rule: Rule) -> Callable[[Truth], Iterator[Offer]]:
    return lambda truth: rule(truth, WORDS)


_OWN: dict[str, Callable[[Truth], Iterator[Offer]]] = {
    "hidden": _hidden,
    "which-hidden": _which_hidden,
    "moved": _moved,
    "which-moved": _which_moved,
}

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

# The order decides how lots fall among equals, so it is part of what a seed means.
_BEFORE = [name for name in TRACK_RULES if name != "where"]
RULES: dict[str, Callable[[Truth], Iterator[Offer]]] = {
    name: _OWN[name] if name in _OWN else _in_our_words(TRACK_RULES[name])
    for name in (*_BEFORE, *_OWN, "where")
}
"""All rules by name."""
