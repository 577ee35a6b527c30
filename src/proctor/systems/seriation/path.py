"""The shortest path through all points: exact for few, by repeated improvement for many."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_EXACT", "shortest_path"]

MOST_EXACT = 10
"""Of more points the path is good, not surely the shortest."""


def shortest_path(distances: NDArray[np.float64]) -> list[int]:
    """The order in which a path through all points is shortest; a path and its reverse are the same one, told
    from the end with the lower number.

    `distances` is n × n, symmetric. Up to `MOST_EXACT` points by dynamic programming over subsets (Held and Karp
    1962, Journal of the Society for Industrial and Applied Mathematics 10:196); beyond, the best of the nearest
    neighbours' paths from every point, each improved by turning stretches round (Croes 1958, Operations Research
    6:791). Equal input gives the equal path.
    """
    n = len(distances)
    if n < 2:
        return list(range(n))
    table = distances.tolist()
    path = _exact(table) if n <= MOST_EXACT else _improved(table)
    return path if path[0] < path[-1] else path[::-1]


def _exact(table: list[list[float]]) -> list[int]:
    """`best[S][j]`: the shortest path through the points in the bit set S that ends in j."""
    n = len(table)
    best = [[float("inf")] * n for _ in range(1 << n)]
    came = [[-1] * n for _ in range(1 << n)]
    for point in range(n):
        best[1 << point][point] = 0.0
    for some in range(1, 1 << n):
        inside = [point for point in range(n) if some >> point & 1]
        if len(inside) < 2:
            continue
        for last in inside:
            rest = best[some ^ (1 << last)]
            before = min((point for point in inside if point != last), key=lambda p: rest[p] + table[p][last])
            best[some][last] = rest[before] + table[before][last]
            came[some][last] = before
    some = (1 << n) - 1
    last = min(range(n), key=best[some].__getitem__)
    path = []
    while last >= 0:
        path.append(last)
        some, last = some ^ (1 << last), came[some][last]
    return path


def _improved(table: list[list[float]]) -> list[int]:
    paths = [_turned(_nearest(table, start), table) for start in range(len(table))]
    return min(paths, key=lambda path: _length(path, table))


def _nearest(table: list[list[float]], start: int) -> list[int]:
    path, left = [start], set(range(len(table))) - {start}
    while left:
        path.append(min(left, key=lambda point: (table[path[-1]][point], point)))
        left.remove(path[-1])
    return path


def _turned(path: list[int], table: list[list[float]]) -> list[int]:
    """Turns stretches round as long as that makes the path shorter."""
    length, shorter = _length(path, table), True
    while shorter:
        shorter = False
        for start in range(len(path) - 1):
            for end in range(start + 2, len(path) + 1):
                other = path[:start] + path[start:end][::-1] + path[end:]
                new = _length(other, table)
                if new < length - 1e-12:
                    path, length, shorter = other, new, True
    return path


def _length(path: list[int], table: list[list[float]]) -> float:
    return sum(table[a][b] for a, b in pairwise(path))
