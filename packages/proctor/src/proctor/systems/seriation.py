"""`seriation`: key frames ordered by appearance and motion alone, without a model."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import Answer, ConfigurationError, Frame, Item, View, need_extra
from proctor.core.formats import OrderingFormat
from proctor.systems.baselines import RandomGuess
from proctor.systems.demonstrations import Demonstrations
from proctor.systems.registry import NO_OPTIONS, SystemOptions, read_options
from proctor.systems.replies import reply

Look = NDArray[np.float64]

_SIDE = 32


def look(jpeg: bytes) -> Look:
    """A picture as 32 × 32 points of colour, 0 to 1, whatever its aspect ratio."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        opened.draft("RGB", (4 * _SIDE, 4 * _SIDE))
        small = opened.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float64) / 255


def unlikeness(looks: list[Look]) -> NDArray[np.float64]:
    """n × n, symmetric, from 0: the mean over all points of the distance between their colours."""
    points = np.stack([one.reshape(-1, 3) for one in looks])
    apart = np.linalg.norm(points[:, None] - points[None, :], axis=3)
    unlike: NDArray[np.float64] = apart.mean(axis=2)
    return unlike


def busyness(one: Look) -> float:
    """The mean difference of neighbouring points, from 0 (a single colour)."""
    across = np.linalg.norm(np.diff(one, axis=1), axis=2).mean()
    down = np.linalg.norm(np.diff(one, axis=0), axis=2).mean()
    return float(across + down) / 2


Table = NDArray[np.float64]
Motion = tuple[Table, Table]

_MOTION_SIDE = 128


def moved(jpegs: Sequence[bytes]) -> Motion:
    """Two tables, n × n, symmetric, from 0: the mean length of the optical flow between two pictures, in widths; and
    the mean difference in brightness (0 to 1) that remains after one is warped onto the other.

    Dense flow by inverse search (Kroeger and others 2016, ECCV) on pictures of 128 points width, once for each pair,
    from the picture with the smaller bytes, so that the result does not depend on the order of the pictures. Pictures
    of another shape are stretched to that of the first.
    """
    need_extra("vision", "seriation", "cv2")
    import cv2

    greys = _greys(jpegs)
    far, left = np.zeros((len(greys), len(greys))), np.zeros((len(greys), len(greys)))
    finder = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    high, wide = greys[0].shape if greys else (0, 0)
    rows, columns = np.mgrid[:high, :wide].astype(np.float32)
    ranked = sorted(range(len(greys)), key=lambda position: greys[position].tobytes())
    for one, other in combinations(ranked, 2):
        here, there = greys[one], greys[other]
        flow = finder.calc(here, there, np.zeros((high, wide, 2), np.float32))
        back = cv2.remap(
            there, columns + flow[..., 0], rows + flow[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        far[one, other] = float(np.hypot(flow[..., 0], flow[..., 1]).mean()) / wide
        left[one, other] = float(cv2.absdiff(back, here).mean()) / 255
    return far + far.T, left + left.T


def _greys(jpegs: Sequence[bytes]) -> list[NDArray[np.uint8]]:
    from PIL import Image

    greys: list[NDArray[np.uint8]] = []
    size = (0, 0)
    for jpeg in jpegs:
        with Image.open(io.BytesIO(jpeg)) as opened:
            opened.draft("L", (2 * _MOTION_SIDE, 2 * _MOTION_SIDE))
            if size == (0, 0):
                size = _MOTION_SIDE, max(16, round(_MOTION_SIDE * opened.height / opened.width))
            greys.append(np.asarray(opened.convert("L").resize(size, Image.Resampling.BOX), dtype=np.uint8))
    return greys


MOST_EXACT = 10
"""With more points the path is not guaranteed to be the shortest."""


def shortest_path(distances: NDArray[np.float64]) -> list[int]:
    """The order of the shortest path through all points, from the end with the lower number.

    `distances` is n × n, symmetric. Up to `MOST_EXACT` points by dynamic programming over subsets (Held and Karp
    1962, Journal of the Society for Industrial and Applied Mathematics 10:196); beyond, the best of the nearest
    neighbour paths from every point, each improved by 2-opt (Croes 1958, Operations Research 6:791). Deterministic.
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
    paths = [_two_opt(_nearest(table, start), table) for start in range(len(table))]
    return min(paths, key=lambda path: _length(path, table))


def _nearest(table: list[list[float]], start: int) -> list[int]:
    path, left = [start], set(range(len(table))) - {start}
    while left:
        path.append(min(left, key=lambda point: (table[path[-1]][point], point)))
        left.remove(path[-1])
    return path


def _two_opt(path: list[int], table: list[list[float]]) -> list[int]:
    """2-opt: reverses stretches as long as that makes the path shorter."""
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


Start = Literal["given", "plainer", "busier"]
"""The end that comes first: the one given earlier (no knowledge), the one with less detail, the one with more."""

_LEVEL = 0.05


@dataclass(frozen=True)
class LearnedStart:
    """For each solved instance by its id, whether it begins with the plainer of its two ends."""

    votes: Mapping[str, bool]

    def start(self, item: str) -> Start:
        """The majority of all instances but the item itself, where it is significant (exact binomial test, two-sided, at
        0.05); else "given".

        >>> LearnedStart(dict.fromkeys("abcdef", True)).start("z"), LearnedStart({"a": True}).start("z")
        ('plainer', 'given')
        """
        from scipy.stats import binomtest

        votes = [plainer for name, plainer in self.votes.items() if name != item]
        if not votes or binomtest(sum(votes), len(votes)).pvalue > _LEVEL:
            return "given"
        return "plainer" if 2 * sum(votes) > len(votes) else "busier"


def learned(solved: Iterable[tuple[str, bytes, bytes]]) -> LearnedStart:
    """Learned from ids with the true first and last picture; instances with equally busy ends are left out."""
    votes = {}
    for name, first, last in solved:
        begins, ends = busyness(look(first)), busyness(look(last))
        if begins != ends:
            votes[name] = begins < ends
    return LearnedStart(votes)


VERSION = "3"
"""Changes whenever the same frames may give another answer."""


class SeriationOptions(SystemOptions):
    """`start`: the end that comes first (`given`, `plainer`, `busier`). `learn`: a file or folder of solved instances
    from which it is learned."""

    start: Start | None = None
    learn: str | None = None


class Seriation:
    """The shortest path through the frames by their dissimilarity: similar frames follow each other.

    The dissimilarity is the mean of three distances, each divided by its mean over all pairs: colours over 32 × 32
    points, the length of the optical flow, and the difference after warping (see `unlikeness` and `moved`). The path is
    the shortest one for up to `MOST_EXACT` frames (Held and Karp), an approximation beyond.

    A path has no direction, so the order is correct at best up to reversal. The direction is a prior: `start="given"`
    begins with the end that is given earlier (no knowledge: the direction stays at chance), `"plainer"` with the end
    with less detail (things are brought in), `"busier"` with the other one; `prior` learns it from solved instances, see
    `LearnedStart`. Without one frame for each label, or with equal frames (black ones), it answers by a seeded guess.
    It is named `seriation`, with a direction `seriation[plainer]`, `seriation[busier]` or `seriation[learned]`.
    `Answer.extra` is `{"evidence": "pixels", "length": …, "exact": …, "start": …}` (length of the path, 1 being the mean
    of all pairs) or `{"evidence": "guess", "because": …}`.
    """

    def __init__(self, *, seed: int = 0, start: Start = "given", prior: LearnedStart | None = None) -> None:
        self._start: Start = start
        self._prior = prior
        self._seed = seed
        self._guess = RandomGuess(seed)
        direction = start if prior is None else "learned"
        self.name = "seriation" if direction == "given" else f"seriation[{direction}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Version, the prior of the direction (a learned one as votes), and the seed of the guesses."""
        votes = None if self._prior is None else [sum(self._prior.votes.values()), len(self._prior.votes)]
        start: JsonValue = self._start if votes is None else {"plainer_of_solved": [*votes]}
        return {"version": VERSION, "start": start, "seed": self._seed}

    def supports(self, item: Item) -> bool:
        return isinstance(item.answer, OrderingFormat)

    async def answer(self, item: Item, view: View) -> Answer:
        """Compares all frames, outside of the event loop. Raises `ValueError` for another format."""
        if not isinstance(item.answer, OrderingFormat):
            raise ValueError(f"an answer of the format {item.answer.kind} has no order")
        frames = await view.frames()
        labels = [frame.label for frame in frames]
        if sorted(labels) != sorted(item.answer.labels):
            return self._guessed(item, view, "there is not one picture for each label")
        return await asyncio.to_thread(self._look, item, view, frames)

    def _look(self, item: Item, view: View, frames: Sequence[Frame]) -> Answer:
        looks = [look(frame.jpeg) for frame in frames]
        unlike = unlikeness(looks)
        if not unlike.any():
            return self._guessed(item, view, "all pictures look the same")
        apart = _together(unlike, *moved([frame.jpeg for frame in frames]))
        path = shortest_path(apart)
        first, last = path[0], path[-1]
        start = self._start if self._prior is None else self._prior.start(item.id)
        turn = False  # the path already begins with the end that is given earlier
        if start != "given":
            turn = (busyness(looks[first]) > busyness(looks[last])) == (start == "plainer")
        order = path[::-1] if turn else path
        length = sum(float(apart[a, b]) for a, b in pairwise(order))
        return reply(
            item,
            [frames[position].label for position in order],
            evidence="pixels",
            length=round(length, 6),
            exact=len(frames) <= MOST_EXACT,
            start=start,
        )

    def _guessed(self, item: Item, view: View, because: str) -> Answer:
        return reply(item, self._guess.draw(item, view.span), evidence="guess", because=because)


def _together(*tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of tables of distances, each divided by its own mean over all pairs; tables of zeros are left out."""
    scaled = [table * (table.size - len(table)) / table.sum() for table in tables if table.any()]
    mean: NDArray[np.float64] = np.mean(scaled, axis=0)
    return mean


def build(options: Mapping[str, JsonValue] = NO_OPTIONS, seed: int = 0) -> Seriation:
    """Frames ordered by similarity; the direction is unknown unless an option gives it.

    `start` is the end that comes first: the one `given` earlier, the `plainer` or the `busier` one; `learn` takes it
    from solved instances. Raises `ConfigurationError` for both.
    """
    need_extra("vision", "seriation", "cv2")
    chosen = read_options("seriation", SeriationOptions, options)
    if chosen.start is not None and chosen.learn is not None:
        raise ConfigurationError("seriation: expected one of the options start and learn")
    if chosen.learn is None:
        return Seriation(seed=seed, start=chosen.start or "given")
    solved = Demonstrations(Path(chosen.learn)).all()
    return Seriation(
        seed=seed,
        prior=learned(
            (
                demonstration.id,
                demonstration.frames[demonstration.order[0]].jpeg,
                demonstration.frames[demonstration.order[-1]].jpeg,
            )
            for demonstration in solved
        ),
    )
