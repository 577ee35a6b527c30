"""A seeded search for blocks of questions that exchange their right answers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CUES = 400.0
"""The weight of the cues: a share that is 5 points off chance costs as much as 1.0 in the mean cost of an option."""
FORBIDDEN = 1e6
"""The cost of a forbidden option: more than everything else together."""
_ROUNDING = 1e-6  # error of sums of costs


@dataclass(frozen=True)
class Exchange:
    """Questions 0 to n − 1, in `classes` within which they may exchange right answers. `cost[i, j]` is the cost of the
    right answer of j as an option of i, `forbidden[i, j]` rules it out; `cues` are its scores by text-only baselines
    (cues × n × n). `options` is the number of options of each question. `spare` questions are not asked: they lend
    their right answers as wrong options that are right nowhere."""

    classes: Sequence[Sequence[int]]
    cost: Floats
    forbidden: Bools
    cues: Floats
    options: int
    spare: frozenset[int] = frozenset()
    lent: int = 1


@dataclass(frozen=True)
class Blocks:
    """The result of a search: the blocks (with the `spare` questions used in them), the mean cost of an option, the share of questions whose right option has each
    rank by each cue (cues × ranks, the lowest score first; ties are shared), the forbidden pairs (question, source), and
    the objective."""

    blocks: tuple[tuple[int, ...], ...]
    cost: float
    cues: Floats
    forbidden: tuple[tuple[int, int], ...]
    objective: float
    spare: frozenset[int] = frozenset()

    def options(self, width: int) -> dict[int, list[int]]:
        """By question that is asked the questions whose right answers are its options, its own first."""
        return {
            block[slot]: _offered(block, slot, width)
            for block in self.blocks
            for slot in range(len(block))
            if block[slot] not in self.spare
        }


def _offered(block: Sequence[int], slot: int, width: int) -> list[int]:
    return [block[(slot + step) % len(block)] for step in range(width)]


@cache
def _round(size: int, width: int) -> NDArray[np.int64]:
    """The positions in a block of the options of each position."""
    return np.asarray((np.arange(size)[:, None] + np.arange(width)) % size)


def exchange(
    problem: Exchange, rng: np.random.Generator, *, rounds: int, progress: Callable[[int, int], None] | None = None
) -> Blocks:
    """Forms blocks of m questions (m = `options`) whose options are the right answers of the block. The last block of a
    class has up to 2m − 1 questions; there a question offers its own right answer and those of the next m − 1. As many
    of the other blocks as possible have spare questions among the m, at most `lent` each.

    Each text is then offered as often as the others of its block, and right once, or never if it is spare. In a block
    of m, any rule that reads the options alone selects the same option in all questions and is right in one of them, or
    in none if that option is spare: length, wording, form, numbers and frequency of a text reveal nothing, as long as
    spare texts look like the others. Without spare texts, somebody who answers all questions of a block at once gains
    from using each option once; with them much less. For everything else a search minimises

        J = mean of cost[i, j] over the wrong options + 400 · Σ over cues [Σ over ranks (share − 1/m)² + (gap / 4)²]

    where the share of rank k is that of the questions whose right option has rank k by a cue's score, and the gap is the
    mean difference between right and wrong options in standard deviations of the score. A baseline then gains neither
    from the highest or lowest score, nor from any other rank, nor from differences. A forbidden option costs 1e6.

    The search is simulated annealing: `rounds` times the number of questions, two questions of a class swap positions, or
    a spare one is replaced by an unused one; the temperature falls from 0.02 to 0. Without cues it stops at the minimum. The same `rng` gives the same blocks. Raises
    `ValueError` for a class of fewer than m questions that are asked.
    """
    search = _Search(problem, rng)
    steps = rounds * sum(map(len, problem.classes))
    for step in range(steps):
        if search.perfect:
            break
        search.step(0.02 * (1 - step / steps) + 1e-9)
        if progress is not None and (step % 1000 == 0 or step == steps - 1):
            progress(step + 1, steps)
    return search.found()


class _Search:
    def __init__(self, problem: Exchange, rng: np.random.Generator) -> None:
        self._problem, self._rng = problem, rng
        self._cost = np.ascontiguousarray(problem.cost + FORBIDDEN * problem.forbidden)
        self._least = float(self._cost.min())
        self._asked = np.array([row not in problem.spare for row in range(len(problem.cost))])
        self._n = sum(int(self._asked[list(rows)].sum()) for rows in problem.classes)
        self._spread = np.maximum(problem.cues.std(axis=(1, 2)), 1e-9)
        scores = np.ascontiguousarray(problem.cues.transpose(1, 2, 0))  # of each pair its cues lie side by side
        own = np.einsum("iic->ic", scores)[:, None]
        beside = ((scores < own) * (problem.options + 1) + (scores == own)).astype(np.int16, order="C")
        self._scores, self._beside = (some.reshape(len(own) ** 2, len(problem.cues)) for some in (scores, beside))
        self._shares = _shares(problem.options)
        self._target = np.append(np.full(problem.options, 1 / problem.options), 0.0)
        self._blocks: list[list[int]] = []
        self._of_class: list[list[int]] = []
        self._unused: list[list[int]] = []  # spare questions of each class
        for rows in problem.classes:
            asked, spare = ([row for row in rows if (row in problem.spare) == lent] for lent in (False, True))
            mixed, lent = ([some[int(slot)] for slot in rng.permutation(len(some))] for some in (asked, spare))
            used = spare_used(len(mixed), len(lent), problem.options, problem.lent)
            start = len(self._blocks)
            sizes = block_sizes(len(mixed) + used, problem.options)
            whole = sum(size == problem.options for size in sizes)
            for number, size in enumerate(sizes):
                share = used // whole + (number < used % whole) if number < whole else 0
                own = [lent.pop() for _ in range(share)]
                self._blocks.append([*own, *(mixed.pop() for _ in range(size - share))])
            self._of_class.append(list(range(start, len(self._blocks))))
            self._unused.append(lent)
        sizes = [int(self._asked[list(rows)].sum()) for rows in problem.classes]
        self._weights = (np.cumsum(sizes) / self._n).tolist()
        found = [self._measure([block]) for block in self._blocks]
        self._hits = np.concatenate([hits for hits, _ in found])
        self._costs = np.concatenate([costs for _, costs in found])
        self._all_hits, self._all_cost = self._hits.sum(axis=0), sum(self._costs.tolist())
        self.value = self._objective(self._all_hits, self._all_cost)

    @property
    def perfect(self) -> bool:
        """Whether the objective has reached its bound, which is known without cues only."""
        return not len(self._spread) and self.value <= self._least + _ROUNDING

    def step(self, temperature: float) -> None:
        number = bisect_right(self._weights, self._rng.random())
        blocks = self._of_class[number]
        one, other = (blocks[int(slot)] for slot in self._rng.integers(len(blocks), size=2))
        here, there = int(self._rng.integers(len(self._blocks[one]))), int(self._rng.integers(len(self._blocks[other])))
        first, second = self._blocks[one][here], self._blocks[other][there]
        if self._asked[first] != self._asked[second]:  # a block keeps its number of spare questions
            self._replace(number, *((one, here) if self._asked[second] else (other, there)), temperature)
            return
        if one == other and (here == there or len(self._blocks[one]) == self._problem.options):
            return  # nothing would change
        slots = [one] if one == other else [one, other]
        changed = {slot: list(self._blocks[slot]) for slot in slots}
        changed[one][here], changed[other][there] = second, first
        self._try(changed, temperature)

    def _replace(self, number: int, block: int, slot: int, temperature: float) -> None:
        """Tries an unused spare question of the class instead of a used one."""
        unused = self._unused[number]
        if unused:
            at = int(self._rng.integers(len(unused)))
            changed = list(self._blocks[block])
            old, changed[slot] = changed[slot], unused[at]
            if self._try({block: changed}, temperature):
                unused[at] = old

    def _try(self, changed: dict[int, list[int]], temperature: float) -> bool:
        """Accepts changed blocks if they are better, or by chance."""
        slots = list(changed)
        new_hits, new_costs = self._measured([changed[slot] for slot in slots])
        hits = self._all_hits + (new_hits - self._hits[slots]).sum(axis=0)
        cost = self._all_cost + float((new_costs - self._costs[slots]).sum())
        value = self._objective(hits, cost)
        if value > self.value and self._rng.random() >= math.exp((self.value - value) / temperature):
            return False
        self.value, self._all_hits, self._all_cost = value, hits, cost
        self._hits[slots], self._costs[slots] = new_hits, new_costs
        for slot in slots:
            self._blocks[slot] = changed[slot]
        return True

    def found(self) -> Blocks:
        width = self._problem.options
        blocks = tuple(tuple(block) for block in self._blocks)
        pairs = [
            (block[slot], source)
            for block in blocks
            for slot in range(len(block))
            for source in _offered(block, slot, width)[1:]
            if self._asked[block[slot]]
        ]
        bad = tuple((item, source) for item, source in pairs if self._problem.forbidden[item, source])
        cost = float(np.mean([self._problem.cost[item, source] for item, source in pairs]))
        shares = self._all_hits[:, :-1] / self._n
        return Blocks(blocks, cost, shares, bad, self.value, self._problem.spare)

    def _objective(self, hits: Floats, cost: float) -> float:
        return cost / self._n + CUES * float(((hits / self._n - self._target) ** 2).sum())

    def _measured(self, blocks: list[list[int]]) -> tuple[Floats, Floats]:
        """`_measure` for blocks of any sizes; blocks of one size are measured together."""
        if len({len(block) for block in blocks}) == 1:
            return self._measure(blocks)
        found = [self._measure([block]) for block in blocks]
        return np.concatenate([hits for hits, _ in found]), np.concatenate([costs for _, costs in found])

    def _measure(self, blocks: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """For each of several blocks of one size: the number of right options with each rank by each cue, and the sum of
        the mean costs of an option over its questions that are asked."""
        width, rows = self._problem.options, np.asarray(blocks)
        asked = self._asked[rows]
        pairs = rows[:, :, None] * len(self._cost) + rows.take(_round(rows.shape[1], width), axis=1)
        hits = np.empty((len(rows), len(self._spread), width + 1))
        ranks = self._shares.take(self._beside.take(pairs, axis=0).sum(axis=2), axis=0)
        hits[:, :, :-1] = (ranks * asked[:, :, None, None]).sum(axis=1)
        scores = self._scores.take(pairs, axis=0)
        gaps = scores[:, :, 0] - scores[:, :, 1:].sum(axis=2) / max(1, width - 1)
        hits[:, :, -1] = (gaps * asked[:, :, None]).sum(axis=1) / (4 * self._spread)
        costs = (self._cost.take(pairs[:, :, 1:]) * asked[:, :, None]).reshape(len(rows), -1).sum(axis=1)
        return hits, costs / max(1, width - 1)


def _shares(width: int) -> Floats:
    """The share of each rank that the right option has if b options score lower and e equal it, itself included: row
    b · (width + 1) + e."""
    below, equal, slots = np.arange(width)[:, None, None], np.arange(width + 1)[:, None], np.arange(width)
    taken = (below <= slots) & (slots < below + equal)
    return (taken / np.maximum(equal, 1)).reshape(-1, width)


def block_sizes(count: int, width: int) -> list[int]:
    """The sizes of blocks of `width`, the last of which has the remainder, too.

    >>> block_sizes(12, 4), block_sizes(7, 4), block_sizes(11, 4)
    ([4, 4, 4], [7], [4, 7])
    """
    if count < width:
        raise ValueError(f"a class of {count} questions can't exchange {width} options")
    blocks, rest = divmod(count, width)
    return [*[width] * (blocks - 1), width + rest]


def spare_used(count: int, spare: int, width: int, lent: int = 1) -> int:
    """How many of `spare` questions are used in blocks beside `count` questions that are asked: as many as possible, at most
    `lent` in a block, and none in a block that is larger than `width`.

    >>> spare_used(12, 0, 4), spare_used(12, 9, 4), spare_used(7, 9, 4), spare_used(4, 9, 4), spare_used(12, 20, 4, 2)
    (0, 4, 1, 0, 12)
    """
    lent = min(lent, width - 1)
    for used in range(min(spare, lent * count // max(1, width - lent)), 0, -1):
        if used <= lent * sum(size == width for size in block_sizes(count + used, width)):
            return used
    return 0
