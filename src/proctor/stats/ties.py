"""Who can't be told apart from whom."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.core import InputError

__all__ = ["tie_groups"]


def tie_groups(count: int, different: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The largest sets of 0 … `count` − 1 in which no two are `different`, by their first members.

    Everyone is in at least one; who is in two stands between them. "Not different" is no equality: of
    three, the outer two may differ while neither differs from the middle one (insert and absorb: Piepho
    2004, Journal of Computational and Graphical Statistics 13:456). Raises `InputError` for a pair that
    is not of two numbers in the range.

    >>> tie_groups(3, [(0, 2)])
    [(0, 1), (1, 2)]
    >>> tie_groups(2, [])
    [(0, 1)]
    """
    sets = [frozenset(range(count))] if count else []
    for first, second in different:
        if first == second or not (0 <= first < count and 0 <= second < count):
            raise InputError(None, "pair", found=f"{first}, {second}", expected=f"two of 0 to {count - 1}")
        split: set[frozenset[int]] = set()
        for one in sets:
            both = {first, second} <= one
            split |= {one - {first}, one - {second}} if both else {one}
        sets = [one for one in split if not any(one < other for other in split)]
    return sorted(tuple(sorted(one)) for one in sets)
