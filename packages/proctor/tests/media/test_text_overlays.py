"""The detector of text that stands still: what it flags, where and when, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from proctor.media.overlays import TextOverlay, find_text, text_in
from tests.support.labelled_pictures import LABELS, LaidText, Pixels, moving_tissue, sampled_at, with_text


def covers(found: TextOverlay, box: tuple[float, ...]) -> float:
    """Which share of the box the overlay's region holds."""
    one = found.region
    across = min(box[2], one.x + one.width) - max(box[0], one.x)
    down = min(box[3], one.y + one.height) - max(box[1], one.y)
    return max(0.0, across) * max(0.0, down) / ((box[2] - box[0]) * (box[3] - box[1]))


@pytest.mark.parametrize("seed", range(4))
def test_a_line_of_text_is_flagged_with_its_place_and_span(seed: int) -> None:
    laid = LaidText(LABELS[seed], 0.07, 90.0, (0.1 + 0.2 * seed, 0.9 - 0.25 * seed), 3.0, 9.0)
    pictures, box = with_text(moving_tissue(seed, 12.0), laid)
    found = text_in(sampled_at(pictures))
    assert len(found) == 1
    assert covers(found[0], box) > 0.4  # the letters' own box; the font's box is higher
    assert found[0].start == pytest.approx(laid.start, abs=1.51)
    assert found[0].end == pytest.approx(laid.end, abs=1.51)
    assert found[0].score > 0.5


@pytest.mark.parametrize("seed", range(4, 8))
def test_a_moving_scene_without_text_has_no_flag(seed: int) -> None:
    assert text_in(sampled_at(moving_tissue(seed, 6.0))) == []


def test_text_that_moves_with_the_scene_is_no_overlay() -> None:
    """A label in the room slides by: no stroke stands still."""
    plain = moving_tissue(9, 4.0)
    moving: list[Pixels] = []
    for k, one in enumerate(plain):
        laid = LaidText("Gallbladder", 0.08, 120.0, (0.1 * k, 0.5), 0.0, 1.0)
        moving += with_text([one], laid)[0]
    assert text_in(sampled_at(moving)) == []


def test_a_jumble_of_marks_that_stands_still_is_no_line_of_text() -> None:
    """Marks as large as letters everywhere, as in a hedge or a knitted jumper: around a line it is no calmer."""
    rng = np.random.default_rng(2)
    picture = np.full((270, 480, 3), 110, dtype=np.uint8)
    for top, left in rng.integers(0, (262, 474), (2600, 2)):
        picture[top : top + int(rng.integers(2, 9)), left : left + int(rng.integers(2, 7))] = rng.choice([60, 210])
    assert text_in(sampled_at([picture] * 6)) == []
    words, _ = with_text(
        [np.full((270, 480, 3), 110, dtype=np.uint8)] * 6, LaidText("Smith", 0.1, 90, (0.5, 0.5), 0, 3)
    )
    assert len(text_in(sampled_at(words))) == 1


def test_one_picture_alone_and_blank_ones_are_no_error() -> None:
    assert text_in([]) == []
    assert text_in(sampled_at([np.zeros((90, 160, 3), dtype=np.uint8)])) == []


def test_a_video_file_is_sampled_at_its_own_times(tmp_path: Path) -> None:
    pictures, _ = with_text(moving_tissue(1, 8.0), LaidText("Smith John", 0.09, 110.0, (0.5, 0.1), 2.0, 8.0))
    file = tmp_path / "a.mp4"
    with av.open(str(file), "w") as container:
        stream = container.add_stream("libx264", rate=2, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 480, 270, "yuv420p"
        for one in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(one, format="rgb24")))
        container.mux(stream.encode(None))
    found = find_text(file)
    assert [(round(one.start), round(one.end)) for one in found] in ([(2, 8)], [(1, 8)], [(3, 8)])
