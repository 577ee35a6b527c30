"""Interactions: does the difference of two runs depend on a facet of the items?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import FailedPolicy, Metric
from proctor.results.arrays import ItemTable
from proctor.results.run_scores import RunScores
from proctor.stats import Interaction, interaction

Cells = Sequence[tuple[dict[str, str], NDArray[np.bool_]]]


@dataclass(frozen=True)
class FacetInteraction:
    """The differences of two runs (first minus second) in one metric by one scorer, compared between the parts of the items.

    `parts` are the facets of each part, in the order of `found.parts`. `policy` says how lacking scores count; it is empty if none
    lacks. Where no policy is chosen and one lacks, there is one for each."""

    metric: Metric
    scorer: str
    first: tuple[str, str]
    second: tuple[str, str]
    policy: str
    parts: tuple[dict[str, str], ...]
    found: Interaction
    level: float

    def to_json(self) -> dict[str, Any]:
        """The interaction as plain data."""
        parts = [
            {
                "facets": facets,
                "n": one.n,
                "groups": one.groups,
                "difference": one.difference,
                "difference_of_differences": one.estimate.value,
                "ci_low": one.estimate.ci_low,
                "ci_high": one.estimate.ci_high,
                "p": one.p,
                "p_holm": one.p_holm,
                "degrees": one.degrees,
            }
            for facets, one in zip(self.parts, self.found.parts, strict=True)
        ]
        sides = {"first": " / ".join(self.first), "second": " / ".join(self.second)}
        whole = {name: value for name, value in asdict(self.found).items() if name != "parts"}
        return {
            "metric": self.metric.name,
            "scorer": self.scorer,
            **sides,
            "policy": self.policy,
            **whole,
            "parts": parts,
        }


def interactions_of(
    first: RunScores,
    second: RunScores,
    sides: tuple[tuple[str, str], tuple[str, str]],
    items: ItemTable,
    cells: Cells,
    chosen: tuple[FailedPolicy, ...],
    level: float,
) -> list[FacetInteraction]:
    """The interaction under each policy that matters; none if fewer than two parts have items with a score on both sides."""
    complete = first.settled and second.settled
    made = []
    for policy in (FailedPolicy.EXCLUDE,) if complete else chosen:
        apart = first.values(policy) - second.values(policy)
        kept = [(facets, mask & ~np.isnan(apart)) for facets, mask in cells]
        kept = [(facets, mask) for facets, mask in kept if mask.any()]
        if len(kept) < 2:
            continue
        rows = np.concatenate([np.flatnonzero(mask) for _, mask in kept])
        names = [str(number) for number, (_, mask) in enumerate(kept) for _ in range(int(mask.sum()))]
        found = interaction(apart[rows], names, items.group[rows], level)
        shown = "" if complete else policy.value
        facets = tuple(one for one, _ in kept)
        made.append(FacetInteraction(first.metric, first.scorer, *sides, shown, facets, found, level))
    return made
