"""The exact tests of a sight test: few questions, so nothing is approximated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

ALPHA = 0.01
"""The level of each test. There are several, some on the questions that raised the suspicion: the share of false alarms is
that of the simulations (`test_false_alarms.py`)."""


class RightOf(NamedTuple):
    """How many replies were right, of how many that say something: right, wrong, or that nothing can be seen."""

    right: int
    of: int

    def __add__(self, other: object) -> RightOf:
        """The sum of two counts: they add up, unlike other tuples.

        >>> RightOf(1, 2) + RightOf(3, 4)
        RightOf(right=4, of=6)
        """
        if not isinstance(other, RightOf):
            return NotImplemented
        return RightOf(self.right + other.right, self.of + other.of)

    def __str__(self) -> str:
        return f"{self.right} of {self.of}"


def constant_share(references: Sequence[JsonValue], options: int = 0) -> float:
    """The share of questions that the best constant answer gets right; at least that of a draw among `options`.

    >>> constant_share(["red", "blue", "red"], 4), constant_share(["red", "blue", "green", "yellow"], 2)
    (0.6666666666666666, 0.5)
    """
    most = max(Counter(map(str, references)).values(), default=0)
    return max(most / len(references) if references else 1.0, 1 / options if options else 0.0)


def p_seen(kinds: Sequence[tuple[RightOf, float]]) -> float:
    """The probability that a system that sees nothing gets at least as many right, over all kinds of question: each has its
    count and the share of its best constant answer. Exact: the sum of independent binomials. 1 without a reply.

    >>> round(p_seen([(RightOf(2, 2), 0.5), (RightOf(3, 4), 0.25)]), 4)
    0.0146
    >>> p_seen([])
    1.0
    """
    import numpy as np
    from scipy.stats import binom

    mass = np.ones(1)
    for count, share in kinds:
        mass = np.convolve(mass, binom.pmf(np.arange(count.of + 1), count.of, share))
    return float(min(1.0, mass[sum(count.right for count, _ in kinds) :].sum()))


def p_fewer(suspect: RightOf, usual: RightOf) -> float:
    """The one-sided p of Fisher's exact test that `suspect` is right less often than `usual`; 1 without replies in either.

    >>> round(p_fewer(RightOf(0, 4), RightOf(5, 5)), 4), p_fewer(RightOf(0, 0), RightOf(5, 5))
    (0.0079, 1.0)
    """
    from scipy.stats import hypergeom

    if not suspect.of or not usual.of:
        return 1.0
    total, right = suspect.of + usual.of, suspect.right + usual.right
    return float(min(1.0, hypergeom.cdf(suspect.right, total, right, suspect.of)))


def is_gone(suspect: RightOf, usual: RightOf, *, least: int = 8, luck: int = 0) -> bool:
    """Whether what is seen usually is not seen here: at most `luck` right of at least `least` replies, and significantly less
    often. A weak model that reads two numbers in five reads none of 8 once in 60 times.

    >>> is_gone(RightOf(0, 8), RightOf(5, 5)), is_gone(RightOf(1, 8), RightOf(5, 5)), is_gone(RightOf(0, 8), RightOf(2, 5))
    (True, False, False)
    """
    return suspect.of >= least and suspect.right <= luck and p_fewer(suspect, usual) < ALPHA


def p_misplaced(misplaced: int, of: int) -> float:
    """The probability of this many answers with the number of another picture, where a system confuses one picture in five.

    >>> round(p_misplaced(6, 8), 4)
    0.0012
    """
    from scipy.stats import binom

    return float(binom.sf(misplaced - 1, of, 0.2)) if of else 1.0
