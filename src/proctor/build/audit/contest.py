"""Guessers of one answer format against each other: each one's accuracy, and that of the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proctor.build.audit.records import FacetAccuracy, GuesserResult, SelectedGuesser
from proctor.build.audit.selection import chosen_for_folds, own_fold
from proctor.build.audit.significance import surplus_p
from proctor.core import Item, TagValue, generator
from proctor.stats import Estimate, holm, mean_interval

__all__ = ["Contest", "Guesser", "by_lot"]

_Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Guesser:
    """Its hits as the selection needs them: `hits[i, f]` is whether item i is answered by a fit that
    saw neither i's own fold nor fold f."""

    name: str
    label: str
    kind: Literal["rule", "learned", "lot"]
    hits: NDArray[np.bool_]

    @classmethod
    def of_rule(
        cls, name: str, label: str, hits: NDArray[np.bool_], folds: int, kind: Literal["rule", "lot"] = "rule"
    ) -> Guesser:
        """One that fits nothing: the same hits whatever is left out."""
        return cls(name, label, kind, np.repeat(hits[:, None], folds, axis=1))


def by_lot(items: Sequence[Item], chance: NDArray[np.float64], fold: _Rows, seed: int) -> Guesser:
    """Right by lot, each item with its own probability, but systematically: fold after fold, items in an
    order by lot, so that each fold has as many hits as expected (give or take one). What is right
    is luck, how many is not; so falling back on the lot is never mistaken for a finding.
    """
    lots = [float(generator(seed, "audit", "by lot", item.id).random()) for item in items]
    order = np.lexsort((np.asarray(lots), fold))
    start = generator(seed, "audit", "by lot").random()
    reached = np.floor(np.cumsum(chance[order]) + start + 1e-9)
    hits = np.zeros(len(items), dtype=np.bool_)
    hits[order] = np.diff(reached, prepend=0.0) > 0
    return Guesser.of_rule("by-lot", "by lot", hits, int(fold.max()) + 1, "lot")


@dataclass(frozen=True)
class Contest:
    """The items of one format with the fold of each, the chance level of each (None where the format
    has none), and how intervals are drawn."""

    items: Sequence[Item]
    fold: _Rows
    chance: NDArray[np.float64] | None
    draws: int
    seed: int

    @property
    def groups(self) -> _Rows:
        """A number for each item's group."""
        return np.asarray(np.unique([item.group for item in self.items], return_inverse=True)[1])

    def results(self, guessers: Sequence[Guesser]) -> tuple[GuesserResult, ...]:
        """Every guesser but the lot, best first (of equals in their order)."""
        contestants = [guesser for guesser in guessers if guesser.kind != "lot"]
        if not contestants:
            return ()
        hits = np.stack([own_fold(guesser.hits, self.fold) for guesser in contestants])
        p = adjusted = None
        if self.chance is not None:
            p = surplus_p(hits, self.chance, self.groups)
            adjusted = holm(p)
        found = [
            GuesserResult(
                name=guesser.name,
                label=guesser.label,
                kind="rule" if guesser.kind == "rule" else "learned",
                accuracy=self.estimate(hits[place]),
                chance=self.mean_chance(),
                p=None if p is None else float(p[place]),
                p_holm=None if adjusted is None else float(adjusted[place]),
            )
            for place, guesser in enumerate(contestants)
        ]
        return tuple(sorted(found, key=lambda result: -(result.accuracy.value or 0.0)))

    def selected(
        self, guessers: Sequence[Guesser], facets: Sequence[str]
    ) -> tuple[SelectedGuesser, NDArray[np.bool_]]:
        """The selection, and the items that a selected guesser solves (what the lot hits is nobody's doing).
        The first guesser is the one to fall back on."""
        hits = np.stack([guesser.hits for guesser in guessers])
        chosen = chosen_for_folds(hits, self.fold, self.groups, self.chance)[self.fold]
        solved = hits[chosen, np.arange(len(self.items)), self.fold]
        accuracy = self.estimate(solved)
        chance = self.mean_chance()
        record = SelectedGuesser(
            accuracy=accuracy,
            chance=chance,
            covers_chance=_covers(accuracy, chance),
            chosen={guessers[place].name: int((chosen == place).sum()) for place in np.unique(chosen)},
            folds=hits.shape[2],
            facets=tuple(part for facet in facets for part in self._by_facet(facet, solved)),
        )
        skilled = np.array([guesser.kind != "lot" for guesser in guessers])
        return record, solved & skilled[chosen]

    def estimate(self, hits: NDArray[np.bool_], rows: _Rows | None = None) -> Estimate:
        """The accuracy over the items (or these rows), with its clustered interval."""
        places = np.arange(len(self.items)) if rows is None else rows
        return mean_interval(
            hits[places].astype(np.float64),
            self.groups[places],
            draws=self.draws,
            seed=self.seed,
            bounds=(0.0, 1.0),
        )

    def mean_chance(self, rows: _Rows | None = None) -> float | None:
        """What guessing by lot reaches over the items (or these rows)."""
        if self.chance is None:
            return None
        return float(np.mean(self.chance if rows is None else self.chance[rows]))

    def _by_facet(self, facet: str, solved: NDArray[np.bool_]) -> list[FacetAccuracy]:
        rows: dict[str, list[int]] = {}
        for row, item in enumerate(self.items):
            for value in facet_values(item.tags.get(facet)):
                rows.setdefault(value, []).append(row)
        return [
            FacetAccuracy(facet, value, self.estimate(solved, np.array(of)), self.mean_chance(np.array(of)))
            for value, of in sorted(rows.items())
        ]


def facet_values(value: TagValue | None) -> tuple[str, ...]:
    """The values under which an item counts; none where it lacks the tag."""
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (str(value),)


def _covers(estimate: Estimate, chance: float | None) -> bool | None:
    if chance is None or estimate.ci_low is None or estimate.ci_high is None:
        return None
    return estimate.ci_low <= chance <= estimate.ci_high
