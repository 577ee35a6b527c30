"""What a judge says of one answer: per dimension a number or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proctor.core import ProctorError
from proctor.judges.dimensions.case import Case

__all__ = ["IMAGES_ABSENT", "IMAGES_BROKEN", "DimensionScores"]

IMAGES_ABSENT = "images-absent"
"""Flag: the question has images, none of which is at hand; judged from text."""

IMAGES_BROKEN = "images-broken"
"""Flag: some of the question's images could not be loaded; judged from the others and from text."""


@dataclass(frozen=True)
class DimensionScores:
    """The scores of one answer by one judge.

    Every dimension of the case is either in `values` or in `missing`, with the reason: a score that was
    not given is never a number. `breaks` names the rules of the task that the judge's scores break (they
    stand as given), `flags` what a person should look at ("steering", `IMAGES_ABSENT` …), `disagreement`
    how far the members of an ensemble are apart, per dimension. `evidence` is what the scores rest on
    (reasons, claims, passages …), plain JSON in whatever form the judge has. `votes` are the keys of the
    votes behind the scores.

    Raises `ValueError` for a dimension that is in both, and for a value that is not finite.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    breaks: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    disagreement: Mapping[str, float] = field(default_factory=dict)
    evidence: tuple[Mapping[str, JsonValue], ...] = ()
    votes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        both = sorted(self.values.keys() & self.missing.keys())
        if both:
            raise ValueError(f"{both[0]} has a value and is missing")
        for name, value in self.values.items():
            if not math.isfinite(value):
                raise ValueError(f"{name} is {value}")

    @classmethod
    def none(cls, case: Case, reason: str, *, flags: Iterable[str] = ()) -> DimensionScores:
        """No score at all, for one reason."""
        return cls(missing={one.name: reason for one in case.dimensions}, flags=tuple(flags))

    def check(self, case: Case, judge: str) -> None:
        """Raises `ProctorError`, naming the judge, unless these are scores of exactly the case's dimensions,
        each between the lowest and the highest level."""
        wanted = {one.name: one for one in case.dimensions}
        given = self.values.keys() | self.missing.keys()
        odd = sorted(given ^ wanted.keys())
        if odd:
            verb = "left out" if odd[0] in wanted else "scored the unknown dimension"
            raise ProctorError(f"{judge}: {case.id}: {verb} {odd[0]}")
        for name, value in self.values.items():
            levels = wanted[name].levels
            if not levels[0] <= value <= levels[-1]:
                raise ProctorError(
                    f"{judge}: {case.id}: {name} is {value:g}, not {levels[0]:g} to {levels[-1]:g}"
                )
