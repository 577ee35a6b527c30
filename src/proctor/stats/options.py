"""How intervals are drawn: the options that all functions with an interval share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from proctor.core import InputError

Method = Literal["bca", "percentile"]


class Options(TypedDict, total=False):
    """The keywords that every function with an interval takes; `Resampling` explains them.

    >>> Resampling(**Options(draws=500, seed=3)).seed
    3
    """

    draws: int
    level: float
    seed: int
    two_level: bool
    bounds: tuple[float, float] | None
    method: Method


@dataclass(frozen=True, slots=True)
class Resampling:
    """How an interval is drawn.

    draws: bootstrap samples, at least 1. level: the coverage asked for, from 0.5 to below 1.
    seed: the same seed gives the same numbers. two_level: resample groups and then the items within
    each; else whole groups (see `mean_interval`). bounds: the lowest and highest value an item can
    have, where the caller knows them (one may be infinite); intervals then stay inside, and with two
    finite ones they are better for few groups.
    method: "bca" (the default, made for few groups of unequal size) or "percentile" (the plain one,
    too narrow for few groups, for comparison with other programs).

    Raises `InputError` where one of them makes no sense.

    >>> Resampling(draws=500).level
    0.95
    >>> Resampling(level=95)
    Traceback (most recent call last):
    proctor.core.errors.InputError: level: found 95, expected a share from 0.5 to below 1
    """

    draws: int = 2000
    level: float = 0.95
    seed: int = 0
    two_level: bool = False
    bounds: tuple[float, float] | None = None
    method: Method = "bca"

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InputError(None, "draws", found=str(self.draws), expected="at least 1")
        if not 0.5 <= self.level < 1:
            raise InputError(None, "level", found=str(self.level), expected="a share from 0.5 to below 1")
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise InputError(None, "bounds", found=str(self.bounds), expected="a low and a higher number")
        if self.method not in ("bca", "percentile"):
            raise InputError(None, "method", found=repr(self.method), expected="'bca' or 'percentile'")
