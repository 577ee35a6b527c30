"""What a judge of dimensions is shown: one answer to one patient's question, and never who gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Case", "Dimension", "RatedCase", "ReferenceAnswer"]


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing that people rate an answer on, with the values that they may give, lowest first.

    A judge may give any number between the lowest and the highest. A flag (0 or 1) is yes or no.

    >>> Dimension("overall", (0.0, 0.5, 1.0)).is_flag, Dimension("disagree_flag", (0.0, 1.0)).is_flag
    (False, True)
    """

    name: str
    levels: tuple[float, ...]

    @property
    def is_flag(self) -> bool:
        """Whether it is yes or no."""
        return self.levels == (0.0, 1.0)


class ReferenceAnswer(BaseModel):
    """A clinician's answer. `frequency` says how far it is what most clinicians answered, `completeness`
    how complete it is; higher is more, None is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    text: str
    frequency: float | None = Field(default=None, ge=0)
    completeness: float | None = Field(default=None, ge=0)


@dataclass(frozen=True, slots=True)
class Case:
    """One answer (`candidate`, possibly empty) to be judged on `dimensions`.

    `id` is the item: an encounter's question in one language. `encounter` is what both languages of it
    share, so no split may part it. `images` are names below `image_root`, which is None where the images
    are not at hand. The system that answered is not here, so that no judge can know it.

    >>> case = Case("iiyi/E1/en", "iiyi/E1", "iiyi", "en", "What is it?", (
    ...     ReferenceAnswer(text="Wart."), ReferenceAnswer(text="Eczema.", frequency=1, completeness=0.5),
    ...     ReferenceAnswer(text="Eczema, use a steroid.", frequency=1, completeness=1)), "Eczema.", ())
    >>> [one.text for one in case.sorted_references]
    ['Eczema, use a steroid.', 'Eczema.', 'Wart.']
    """

    id: str
    encounter: str
    dataset: str
    language: str
    query: str
    references: tuple[ReferenceAnswer, ...]
    candidate: str
    dimensions: tuple[Dimension, ...]
    images: tuple[str, ...] = ()
    image_root: Path | None = None

    @property
    def sorted_references(self) -> tuple[ReferenceAnswer, ...]:
        """The references, most reliable first: by frequency, then by completeness, what is not known last;
        among equals as they came."""
        return tuple(sorted(self.references, key=lambda one: (_rank(one.frequency), _rank(one.completeness))))


@dataclass(frozen=True, slots=True)
class RatedCase:
    """An answer with what people gave it: the mean of its raters, by dimension. For learning from, never of
    the encounter that is judged."""

    case: Case
    values: Mapping[str, float]


def _rank(value: float | None) -> tuple[bool, float]:
    return (value is None, -(value or 0.0))
