"""Other names for frames, so that their alphabetical order says nothing; undone in what the model says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proctor.systems.keyframes import read_labels

__all__ = ["Names", "drawn_names", "kept_names"]

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_DIGITS = "23456789"
_WORDS = {"A", "I"}  # labels that are also words: renamed only where they clearly are labels
_BEFORE = r"(?:[Pp]ictures?|[Ff]rames?|[Ii]mages?)"


@dataclass(frozen=True)
class Names:
    """The name under which each label is shown, in the labels' order."""

    by_label: Mapping[str, str]

    @property
    def changed(self) -> bool:
        """Whether any label has another name."""
        return any(label != name for label, name in self.by_label.items())

    def of(self, labels: Sequence[str]) -> list[str]:
        """The names of labels."""
        return [self.by_label[label] for label in labels]

    def asked(self, question: str) -> str:
        """A text with the names for the labels. A label that is also a word (A, I) is renamed only after "picture",
        "frame" or "image", and in a list with other labels.

        >>> Names({"A": "K7Q", "B": "B4X"}).asked("A rescuer is seen in A and B. Does B come first?")
        'A rescuer is seen in K7Q and B4X. Does B4X come first?'
        """
        if not self.changed:
            return question
        one = "|".join(sorted(map(re.escape, self.by_label), key=len, reverse=True))
        joint = r"(?:\s*(?:,|;|>|→|->|&|and|or)\s*)+"
        listed = re.compile(rf"(?<!\w)(?:{one})(?:{joint}(?:{one})(?!\w))+")
        single = re.compile(rf"(?<!\w)(?:{one})(?!\w)")
        named = re.compile(rf"(?<=\s)(?<!\w)(?:{one})(?!\w)")
        question = listed.sub(lambda run: single.sub(self._named, run[0]), question)
        question = re.sub(
            rf"(?<!\w){_BEFORE}\s(?:{one})(?!\w)", lambda run: named.sub(self._named, run[0]), question
        )
        return single.sub(lambda hit: hit[0] if hit[0] in _WORDS else self._named(hit), question)

    def order(self, said: Sequence[str]) -> tuple[str, ...]:
        """What the model said, name by name, as labels. What is none of the names stays what it is, marked as such
        where it is spelled like a label, which the model was never shown."""
        labels = {name: label for label, name in self.by_label.items()}
        read = read_labels(said, list(labels)).said
        known = {label.casefold() for label in self.by_label}
        return tuple(
            labels[one] if one in labels else f"{one} (not shown)" if one.casefold() in known else one
            for one in read
        )

    def told(self, text: str) -> str:
        """A text by the model with the labels for the names, whatever their case."""
        if not self.changed:
            return text
        labels = {name.casefold(): label for label, name in self.by_label.items()}
        any_name = "|".join(map(re.escape, labels))
        return re.sub(
            rf"(?<!\w)(?:{any_name})(?!\w)", lambda hit: labels[hit[0].casefold()], text, flags=re.IGNORECASE
        )

    def _named(self, hit: re.Match[str]) -> str:
        return self.by_label[hit[0]]


def kept_names(labels: Sequence[str]) -> Names:
    """The labels as they are."""
    return Names({label: label for label in labels})


def drawn_names(labels: Sequence[str], rng: np.random.Generator) -> Names:
    """A letter, a digit and a letter for each, no two alike: neither their order nor their look says anything."""
    taken = {label.casefold() for label in labels}
    names: list[str] = []
    while len(names) < len(labels):
        name = "".join(str(rng.choice(list(kind))) for kind in (_LETTERS, _DIGITS, _LETTERS))
        if name.casefold() not in taken:
            taken.add(name.casefold())
            names.append(name)
    return Names(dict(zip(labels, names, strict=True)))
