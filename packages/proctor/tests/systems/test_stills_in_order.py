"""Still pictures in order by what `classical-vision` finds in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from proctor.core import Frame, Item
from proctor.core.formats import OrderingFormat
from proctor.tasks.simulated.classical_vision import ClassicalVision
from proctor.tasks.simulated.vision import LONE, Detection, SeenPicture, in_order, moved
from tests.support.stills import Shown, picture

BOX = (0.0, 0.0, 0.1, 0.1)


def seen(*positions: tuple[str, float, float]) -> SeenPicture:
    return SeenPicture(tuple(Detection(name, x, y, 0.01, BOX) for name, x, y in positions), False, 1.0)


def test_how_far_objects_move_by_hand() -> None:
    one = seen(("clip", 0.1, 0.1), ("clip", 0.5, 0.5))
    assert moved(one, one) == 0.0
    # The clips change least when each is taken for the nearer one: 0.1 and 0.2.
    assert moved(one, seen(("clip", 0.5, 0.7), ("clip", 0.2, 0.1))) == pytest.approx(0.3)
    # A needle came, a clip went, the other stayed.
    assert moved(one, seen(("clip", 0.1, 0.1), ("needle", 0.9, 0.9))) == pytest.approx(2 * LONE)
    # Farther than LONE counts LONE.
    assert moved(seen(("clip", 0.0, 0.0)), seen(("clip", 0.9, 0.9))) == pytest.approx(LONE)


@pytest.mark.parametrize("mixed", [[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]])
def test_pictures_follow_what_moves_and_begin_with_fewer_objects(mixed: list[int]) -> None:
    steps: Sequence[list[tuple[str, float, float]]] = [
        [("sponge", 0.1, 0.5)],
        [("sponge", 0.2, 0.5)],
        [("sponge", 0.3, 0.5), ("clip", 0.8, 0.8)],
        [("sponge", 0.4, 0.5), ("clip", 0.7, 0.8)],
    ]
    order = in_order([seen(*steps[step]) for step in mixed])
    assert order is not None
    assert [mixed[position] for position in order] == [0, 1, 2, 3]


def test_pictures_without_objects_say_nothing() -> None:
    assert in_order([seen(), seen(), seen()]) is None


@pytest.mark.parametrize(
    ("labels", "because"), [("ABC", "no object tells the pictures apart"), ("AB", "there is not one picture")]
)
def test_where_it_finds_nothing_it_guesses(labels: str, because: str) -> None:
    item = Item(id="q1", group="v1", question="In which order?", answer=OrderingFormat(labels=("A", "B", "C")))
    black = picture(40)
    frames: list[Any] = [Frame(black, None, label) for label in labels]
    found = asyncio.run(ClassicalVision(seed=1).answer(item, Shown(frames)))
    assert found.extra["evidence"] == "guess"
    assert str(found.extra["because"]).startswith(because)
