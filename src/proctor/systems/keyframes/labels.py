"""The labels that a model names, read as it meant them: in any case, with file endings, with a word before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

__all__ = ["LabelReading", "read_labels", "spelled"]

_ENDING = re.compile(r"\.(?:jpe?g|png|webp|bmp|gif|tiff?)$", re.IGNORECASE)
_WORD = re.compile(r"^(?:key[ _-]?frame|frame|image|picture|photo|img|pic|label)[ _:#-]*", re.IGNORECASE)
_AROUND = " \t\n.,;:!?*_`'\"()[]{}<>"


@dataclass(frozen=True, slots=True)
class LabelReading:
    """What was named. `said` is all of it in its order, known labels in their own spelling; `known` has each
    known label at its first place; the rest is what is wrong with it."""

    said: tuple[str, ...]
    known: tuple[str, ...]
    missing: tuple[str, ...]
    repeated: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every label is named once, and nothing else."""
        return not (self.missing or self.repeated or self.unknown)

    def faults(self) -> dict[str, JsonValue]:
        """What is wrong, for an answer's `extra`; empty where nothing is."""
        parts = {"missing": self.missing, "repeated": self.repeated, "unknown": self.unknown}
        return {name: list(labels) for name, labels in parts.items() if labels}


def read_labels(names: Iterable[str], labels: Sequence[str]) -> LabelReading:
    """Reads names as labels. Only the spelling is mended: nothing is added, guessed or put elsewhere.

    >>> read_labels(["b", "A.jpg", "Frame B", "7"], ["A", "B", "C"])
    LabelReading(said=('B', 'A', 'B', '7'), known=('B', 'A'), missing=('C',), repeated=('B',), unknown=('7',))
    """
    known_by = {label.casefold(): label for label in labels}
    said = tuple(_label(name, labels, known_by) for name in names)
    known = tuple(dict.fromkeys(label for label in said if label in labels))
    return LabelReading(
        said=said,
        known=known,
        missing=tuple(label for label in labels if label not in known),
        repeated=tuple(label for label in known if said.count(label) > 1),
        unknown=tuple(dict.fromkeys(label for label in said if label not in labels)),
    )


def spelled(names: Iterable[str]) -> list[str]:
    """Names of facts or steps as a workflow spells them, each once.

    >>> spelled([" Pads_On", "pads_on", "hands on chest"])
    ['pads_on', 'hands_on_chest']
    """
    return list(dict.fromkeys("_".join(name.casefold().replace("-", " ").split()) for name in names))


def _label(name: str, labels: Sequence[str], known_by: dict[str, str]) -> str:
    if name in labels:
        return name
    plain = _ENDING.sub("", re.split(r"[/\\]", name.strip(_AROUND))[-1]).strip(_AROUND)
    for form in (plain, _WORD.sub("", plain).strip(_AROUND)):
        if form.casefold() in known_by:
            return known_by[form.casefold()]
    return " ".join(name.split())[:40]
