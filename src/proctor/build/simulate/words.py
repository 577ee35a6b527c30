"""How the simulated procedures ask: what is seen of an object, in phrases that are equally long."""

from __future__ import annotations

from proctor.build.simulate.looks import CLASSES
from proctor.build.tracks.offers import Dialect

__all__ = ["NAMES", "WORDS"]

NAMES = tuple(kind.name for kind in CLASSES)

WORDS = Dialect(
    names=NAMES,
    phrases={kind.name: kind.phrase for kind in CLASSES},
    texts={
        "seen": "Does {an_a} come into view at any time?",
        "seen-at": "Is {an_a} in view at {time}?",
        "kinds-seen": "Which kinds of foreign object come into view at any time?",
        "kinds-seen-at": "Which kinds of foreign object are in view at {time}?",
        "never": "Which of these objects never comes into view?",
        "how-many": "How many times is {an_a} brought into view?",
        "how-many-at": "How many foreign objects are in view at {time}?",
        "plural": "Which of these objects is brought into view more than once?",
        "how-many-out": "How many foreign objects are carried out of view by an instrument?",
        "when-seen": "When does {an_a} first come into view?",
        "when-each": "At which times is {an_a} brought into view?",
        "when-out": "When is {an_a} carried out of view?",
        "before": "Does {an_a} come into view before the first {b} does?",
        "first-seen": "Which of these objects comes into view first?",
        "order-seen": "In which order do these kinds of object first come into view?",
        "order-out": "In which order are these kinds of object first carried out of view?",
        "out": "Is {an_a} carried out of view by an instrument?",
        "kinds-out": "Which kinds of foreign object are carried out of view by an instrument?",
        "first-out": "Which of these objects is carried out of view first?",
        "where": "In which part of the picture is the {a} at {time}?",
        "hidden": "Is the {a} covered completely for a while and then seen again?",
        "which-hidden": "Which of these objects is covered completely for a while and then seen again?",
        "moved": "Is the {a} picked up and put down at another place?",
        "which-moved": "Which of these objects is picked up and put down at another place?",
    },
)
"""The text of every rule: here an insertion is a coming into view, and a retrieval a carrying out of it."""
