"""What all tables of an analysis are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import FailedPolicy, InputError, Item, Status
from proctor.runs.ranking import Entry
from proctor.runs.results import natural
from proctor.runs.table import ItemTable
from proctor.stats import Estimate, Options

__all__ = ["Gathered", "NothingMarkedError", "Row", "Said", "numbers"]

Row = dict[str, Any]


class NothingMarkedError(InputError):
    """No question has a mark from any system."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an analysis needs of an answer; whole answers of fifty systems would take gigabytes."""

    status: Status
    parsed: JsonValue


@dataclass(frozen=True)
class Gathered:
    """The chosen systems on the items that count, each with its own marks: what one lacks is lacking in no other's
    numbers. `labels` is the tag that an item may carry several values
    of (its capabilities), `factors` are the tags that stand in the regression, `facets` all that results are split by;
    `options` say how intervals are drawn, `policy` what becomes of what a run lacks."""

    items: ItemTable
    whole: dict[str, Item]
    entries: list[Entry]
    answers: dict[str, dict[str, Said]]
    causes: dict[str, dict[int, str]]
    labels: str
    factors: tuple[str, ...]
    facets: tuple[str, ...]
    options: Options
    policy: FailedPolicy = FailedPolicy.WRONG

    @property
    def names(self) -> list[str]:
        """The systems, by name."""
        return [entry.name for entry in self.entries]

    def carriers(self, tag: str) -> dict[str, NDArray[np.bool_]]:
        """Each value of a tag with the items that carry it."""
        column = self.items.facet(tag)
        values = sorted({value for row in column for value in row}, key=natural)
        return {value: np.array([value in row for row in column], dtype=np.bool_) for value in values}

    def marked(self) -> NDArray[np.int64]:
        """The items that some system has a mark for."""
        found = np.flatnonzero(np.logical_or.reduce([~np.isnan(entry.right) for entry in self.entries]))
        if not len(found):
            raise NothingMarkedError(None, "marks", found="no question with a mark", expected="one")
        return found


def numbers(estimate: Estimate) -> Row:
    """An estimate as columns."""
    return {
        "n": estimate.n,
        "groups": estimate.groups,
        "value": estimate.value,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
    }
