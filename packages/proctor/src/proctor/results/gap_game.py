"""The game behind an explained gap: the score for every combination of what can be swapped between two sides.

A combination takes the treatment of missing answers, the reader, the judge and what was asked each from the first or the
second side. Every one has a value on the items of both sides, computed from stored answers and scores alone:

- *missing* answers count by the policy of the side that is taken.
- The *reader* of Proctor reads replies of both. The reader of another program is known by its scores of its own replies
  only: what it changes there, item by item, is taken to be what it changes.
- A *judge* of the first side may have scored the answers of the second one; else what it changes is known from the side
  that both judges scored. Where neither judge scored answers of the other side, judges can't be swapped.
- *asked* holds the rest: all that only another run could tell apart. Runs between the two sides (`between`), with some of
  the settings of the second one, split it.

The items of one side alone are no matter of such a swap: what they add to the side's own score is a term of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from proctor.core import FailedPolicy
from proctor.results.arrays import Mask
from proctor.results.explained_run import ExplainedRun, Floats, Scoring

ITEMS, MISSING, READER, JUDGE, ASKED = "items", "missing", "reader", "judge", "asked"

_FIRST, _SECOND = 0, 1


@dataclass(frozen=True, eq=False)
class GapGame:
    """`steps` are the parts of what was asked that runs between the two sides tell apart; `between` holds a run for every
    set of steps that is taken from the second side, but for none (the first side), and for all where that is the second
    side itself. ASKED is then what no step explains."""

    first: ExplainedRun
    second: ExplainedRun
    steps: tuple[str, ...] = ()
    between: Mapping[frozenset[str], ExplainedRun] = field(default_factory=dict)

    @cached_property
    def sides(self) -> tuple[ExplainedRun, ExplainedRun]:
        return self.first, self.second

    @cached_property
    def common(self) -> Mask:
        """The items that both sides' own scores count, and all runs between."""
        found: Mask = np.logical_and.reduce([side.items for side in (*self.sides, *self.between.values())])
        return found

    @property
    def ends_at_second(self) -> bool:
        """Whether all steps together lead to the second side."""
        return bool(self.steps) and frozenset(self.steps) not in self.between

    @cached_property
    def judges_meet(self) -> bool:
        """Whether a judge has scored answers of both sides, so that the judges' difference is known."""
        return any(self._cross(at) is not None for at in (_FIRST, _SECOND))

    @cached_property
    def players(self) -> tuple[str, ...]:
        """What is swapped, in a fixed order that changes no value."""
        own = [MISSING] if self.first.policy != self.second.policy and self._lacks else []
        own += [READER] if any(np.any(side.read_otherwise & self.common) for side in self.sides) else []
        own += [JUDGE] if self._other_judges and self.judges_meet else []
        rest = () if self.ends_at_second else (ASKED,)
        return (*own, *self.steps, *rest)

    @property
    def _lacks(self) -> bool:
        every = (*self.sides, *self.between.values())
        return any(np.any((side.own.missing | side.reread.missing) & self.common) for side in every)

    @property
    def _other_judges(self) -> bool:
        judged = self.common & ~self.first.by_code
        return self.first.scorer != self.second.scorer and bool(judged.any())

    def _cross(self, at: int) -> Scoring | None:
        """The scores of a side's answers by the other side's judge; None where it has not scored all of them."""
        found = self.sides[at].judged.get(self.sides[1 - at].scorer)
        needed = self.common & ~self.first.by_code
        if found is None or not needed.any() or not bool(np.all(found.counted[needed])):
            return None
        return found

    @cached_property
    def values(self) -> Floats:
        """The value of each item in each combination (subsets of `players` × items), NaN where it does not count: bit j
        is set where player j is taken from the first side."""
        rows = []
        for subset in range(2 ** len(self.players)):
            taken = {name: _FIRST if subset >> j & 1 else _SECOND for j, name in enumerate(self.players)}
            rows.append(self._row(taken))
        found: Floats = np.where(self.common, np.stack(rows), np.nan)
        return found

    def _row(self, taken: Mapping[str, int]) -> Floats:
        """The values of all items in one combination: which side each player is taken from."""
        steps = frozenset(name for name in self.steps if taken[name] == _SECOND)
        if taken.get(ASKED, _FIRST) == _FIRST:
            return self._scored(self._run(steps), taken)
        if len(steps) == len(self.steps):
            return self._scored(self.second, taken)
        last = self.between.get(frozenset(self.steps), self.first)
        change = self._scored(self.second, taken) - self._scored(last, taken)
        return _changed(self._scored(self._run(steps), taken), change)

    def _run(self, steps: frozenset[str]) -> ExplainedRun:
        """The run with these steps taken from the second side."""
        if not steps:
            return self.first
        return self.between.get(steps, self.second)

    def _scored(self, run: ExplainedRun, taken: Mapping[str, int]) -> Floats:
        """The values of a run's answers by the reader, the judge and the policy that are taken."""
        policy = self.sides[taken[MISSING]].policy if MISSING in taken else run.policy
        read = self._read(run, taken.get(READER), policy)
        judged = self._judged(run, taken.get(JUDGE), policy)
        values: Floats = np.where(run.by_code, read, judged)
        return values

    def _read(self, run: ExplainedRun, whose: int | None, policy: FailedPolicy) -> Floats:
        """By the reader of a side, on items that code can compare."""
        if whose is None or run is self.sides[whose]:
            return run.values(run.own, policy)
        side = self.sides[whose]
        change = side.values(side.own, policy) - side.values(side.reread, policy)
        return _changed(run.values(run.reread, policy), change)

    def _judged(self, run: ExplainedRun, whose: int | None, policy: FailedPolicy) -> Floats:
        """By the judge of a side, on all other items."""
        own = run.values(run.own, policy)
        if whose is None or run.scorer == self.sides[whose].scorer:
            return own
        other, side = self.sides[1 - whose], self.sides[whose]
        direct, there = self._cross(1 - whose), self._cross(whose)
        if direct is not None and run is other:
            return run.values(direct, policy)
        if there is not None:
            return _changed(own, side.values(side.own, policy) - side.values(there, policy))
        if direct is not None:
            return _changed(own, other.values(direct, policy) - other.values(other.own, policy))
        return own


def _changed(values: Floats, change: Floats) -> Floats:
    """The values, with a change where it is known."""
    found: Floats = values + np.nan_to_num(change)
    return found
