"""ROUGE: how many n-grams, or how long a common sequence, a candidate shares with a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from proctor.core import InputError
from proctor.metrics.text.tokens import Units, tokens

__all__ = ["rouge_l", "rouge_n"]


def rouge_n(candidate: str, reference: str, n: int = 1, units: Units = "words") -> float:
    """ROUGE-n as F1, 0 to 1, higher is more alike (Lin 2004, Text Summarization Branches Out).

    Each n-gram counts as often as it stands in both texts; F1 is twice the shared number over the sum of
    both texts' numbers. No stemming, no stop words. 0 where either text has no n-gram. Raises
    `InputError` for n below 1.

    >>> rouge_n("the cat sat", "the cat ran")
    0.6666666666666666
    >>> rouge_n("the cat sat", "the cat ran", 2)
    0.5
    >>> rouge_n("湿疹", "慢性湿疹")
    0.6666666666666666
    """
    if n < 1:
        raise InputError(None, "n", found=str(n), expected="1 or more")
    first, second = _grams(tokens(candidate, units), n), _grams(tokens(reference, units), n)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if first and second else 0.0


def rouge_l(candidate: str, reference: str, units: Units = "words") -> float:
    """ROUGE-L as F1, 0 to 1: twice the longest common subsequence over the sum of both lengths.

    The texts are taken whole, not by sentence. 0 where either text has no tokens.

    >>> rouge_l("the cat sat here", "the dog sat")
    0.5714285714285714
    """
    first, second = tokens(candidate, units), tokens(reference, units)
    if not first or not second:
        return 0.0
    return 2 * _common(first, second) / (len(first) + len(second))


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1))


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence (Hirschberg 1975, two rows at a time)."""
    before = [0] * (len(second) + 1)
    for one in first:
        now = [0]
        for k, other in enumerate(second):
            now.append(before[k] + 1 if one == other else max(before[k + 1], now[k]))
        before = now
    return before[-1]
