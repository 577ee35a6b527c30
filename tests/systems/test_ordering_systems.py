"""Systems that order frames without a model: what they answer, and the shortest path against all paths."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from itertools import pairwise, permutations
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from proctor.core import Answer, ConfigurationError, Frame, Item, generator
from proctor.core.formats import BinaryFormat, OrderingFormat
from proctor.systems import build_system, shortest_path
from proctor.systems.seriation import MOST_EXACT, Seriation
from tests.support.virtual_time import steps_of


class Shown:
    """A view of still pictures."""

    condition = "video"
    span = None

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._frames = list(frames)

    async def frames(self, **_: Any) -> list[Frame]:
        return self._frames


def picture(step: int, spots: int = 0) -> bytes:
    """A bright bar that moves to the right with every step, and some spots below it."""
    points = np.zeros((64, 96, 3), dtype=np.uint8)
    points[8:30, 6 * step : 6 * step + 40] = (200, 120, 40)
    for spot in range(spots):
        points[44:56, 4 + 14 * spot : 10 + 14 * spot] = (40, 200, 220)
    out = io.BytesIO()
    Image.fromarray(points).save(out, "JPEG", quality=95)
    return out.getvalue()


def item(labels: str = "ABCD") -> Item:
    return Item(id="q1", group="v1", question="In which order?", answer=OrderingFormat(labels=tuple(labels)))


def asked(name: str, steps: dict[str, bytes], **more: Any) -> Answer:
    view = Shown([Frame(jpeg, None, label) for label, jpeg in steps.items()])
    return asyncio.run(build_system(name, options=more).answer(item("".join(steps)), view))


def test_as_given_answers_with_the_labels_as_they_are() -> None:
    found = asked("as-given", {"A": b"", "B": b"", "C": b""})
    assert (found.text, found.parsed) == ("Answer: A > B > C", ["A", "B", "C"])


def test_seriation_follows_what_moves() -> None:
    steps = {"A": picture(2), "B": picture(0), "C": picture(3), "D": picture(1)}
    found = asked("seriation", steps)
    assert found.parsed == ["B", "D", "A", "C"]  # of the ends B and C, B is given earlier
    assert found.extra["evidence"] == "pixels"


def test_the_direction_is_the_stated_prior() -> None:
    steps = {"A": picture(1, 2), "B": picture(2, 3), "C": picture(0, 1), "D": picture(3, 5)}
    assert asked("seriation", steps, start="plainer").parsed == list("CABD")
    assert asked("seriation", steps, start="busier").parsed == list("DBAC")
    assert asked("seriation", steps, start="given").parsed == list("CABD")
    with pytest.raises(ConfigurationError, match=r"^seriation: option 'start': .*'given', 'plainer' or 'busier'"):
        build_system("seriation", options={"start": "left"})


@pytest.mark.parametrize(
    ("frames", "because"),
    [
        ({}, "there is not one picture for each label"),
        ({"A": picture(0), "B": picture(1)}, "there is not one picture for each label"),
        (dict.fromkeys("ABCD", picture(0)), "all pictures look the same"),
    ],
)
def test_where_there_is_nothing_to_see_it_guesses(frames: dict[str, bytes], because: str) -> None:
    view = Shown([Frame(jpeg, None, label) for label, jpeg in frames.items()])
    found = asyncio.run(Seriation(seed=3).answer(item(), view))
    assert found.extra == {"evidence": "guess", "because": because}
    assert sorted(map(str, found.parsed if isinstance(found.parsed, list) else ())) == list("ABCD")
    assert asyncio.run(Seriation(seed=3).answer(item(), view)) == found


@pytest.mark.parametrize("name", ["as-given", "seriation"])
def test_orderings_alone_are_answered(name: str) -> None:
    other = Item(id="q1", group="v1", question="Is it?", answer=BinaryFormat())
    system = build_system(name, seed=1)
    assert system.supports(item())
    assert not system.supports(other)
    assert system.name == name
    with pytest.raises(ValueError, match="an answer of the format binary has no order"):
        asyncio.run(system.answer(other, Shown([])))


def drawn(n: int, seed: int) -> NDArray[np.float64]:
    points = generator(seed, "path").random((n, n))
    return np.triu(points, 1) + np.triu(points, 1).T


def length(path: Sequence[int], table: NDArray[np.float64]) -> float:
    return sum(float(table[a, b]) for a, b in pairwise(path))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 7), st.integers(0, 1000))
def test_the_path_is_the_shortest_of_all(n: int, seed: int) -> None:
    table = drawn(n, seed)
    found = shortest_path(table)
    assert sorted(found) == list(range(n))
    assert n < 2 or found[0] < found[-1]
    best = min(length(path, table) for path in permutations(range(n)))
    assert length(found, table) == pytest.approx(best)


def test_ten_are_exact_at_the_cost_of_their_subsets_and_more_are_still_a_path() -> None:
    n = MOST_EXACT
    assert steps_of(lambda: shortest_path(drawn(n, 0))) < 2 * n * n * 2**n < factorial(n) / 10
    line = np.abs(np.subtract.outer(np.arange(16.0), np.arange(16.0)))
    mixed = generator(0, "mixed").permutation(16)
    found = shortest_path(line[np.ix_(mixed, mixed)])
    assert [int(mixed[place]) for place in found] in (list(range(16)), list(range(16))[::-1])
