"""The elapsed time burned into pictures: the one that is told, under every condition."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from proctor.core import Frame, Image, Item, VideoClip, clock_text
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, MediaSettings, view
from proctor.media.pictures import paint
from tests.support.clock_video import HEIGHT, WIDTH, ClockVideo, read_clock, write_clock_video

Overlay = Literal["none", "absolute", "clip"]
ITEM = Item(id="q", group="g", question="?", answer=BinaryFormat(), media=(VideoClip(source="v", start=4.0, end=14.0),))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("media")
    write_clock_video(root / "v.mp4", ClockVideo(times_ms=range(0, 20000, 100), rate=10, keyint=50))
    Pillow.new("RGB", (WIDTH, HEIGHT), (200, 0, 0)).save(root / "i.png")
    return root


def show(root: Path, overlay: Overlay, condition: str = "video", item: Item = ITEM, fps: float = 1.0) -> list[Frame]:
    library = MediaLibrary(root, MediaSettings(overlay=overlay, quality=95), cache_dir=root / "cache")
    return asyncio.run(view(item, condition, library, seed=1).frames(fps=fps))


def corner(picture: Pillow.Image) -> NDArray[np.int64]:
    """Where the time stands: nothing of the clock's lower half is left there."""
    return np.asarray(picture.convert("L"), dtype=int)[HEIGHT - 13 :, :44]


def reading(frame: Frame) -> str:
    """The one time of 0 to 20 s whose own painting is nearest to what the picture shows."""
    with Pillow.open(io.BytesIO(frame.jpeg)) as opened:
        found = corner(opened)
    distances = {}
    for second in range(21):
        blank = Pillow.new("RGB", (WIDTH, HEIGHT), (128, 128, 128))
        paint(blank, clock_text(second))
        distances[clock_text(second)] = float(np.abs(corner(blank) - found).mean())
    best, other = sorted(distances.values())[:2]
    assert best < 12, distances
    assert best + 1 < other, distances
    return min(distances, key=distances.__getitem__)


def test_a_clock_of_hours_minutes_and_whole_seconds() -> None:
    assert [clock_text(time) for time in (0, 0.99, 59.9999999, 61.5, 3600, 359999)] == [
        "00:00:00",
        "00:00:00",
        "00:01:00",
        "00:01:01",
        "01:00:00",
        "99:59:59",
    ]


@pytest.mark.parametrize(("overlay", "first"), [("absolute", 4), ("clip", 0)])
def test_the_told_time_is_burned_in(root: Path, overlay: Overlay, first: int) -> None:
    frames = show(root, overlay)
    assert [frame.time for frame in frames] == [4.0 + k for k in range(10)]
    assert [reading(frame) for frame in frames] == [clock_text(first + k) for k in range(10)]
    assert [read_top(frame) for frame in frames] == [read_top(frame) for frame in show(root, "none")]


def read_top(frame: Frame) -> int:
    """The clock's number by its upper half alone, which nothing is painted on."""
    with Pillow.open(io.BytesIO(frame.jpeg)) as opened:
        top = opened.convert("RGB").crop((0, 0, WIDTH, HEIGHT // 2))
    whole = Pillow.new("RGB", (WIDTH, HEIGHT))
    whole.paste(top, (0, 0))
    whole.paste(Pillow.eval(top, lambda value: 255 - value), (0, HEIGHT // 2))
    out = io.BytesIO()
    whole.save(out, "JPEG", quality=95)
    return read_clock(out.getvalue())


@pytest.mark.parametrize("condition", ["shuffled", "reversed"])
def test_the_painted_time_does_not_give_the_order_away(root: Path, condition: str) -> None:
    frames = show(root, "clip", condition)
    assert [reading(frame) for frame in frames] == [clock_text(k) for k in range(10)]
    numbers = [read_top(frame) for frame in frames]
    assert sorted(numbers) == [40 + 10 * k for k in range(10)]
    assert numbers != sorted(numbers)


def test_black_is_black_and_stills_have_no_time(root: Path) -> None:
    for frame in show(root, "absolute", "black"):
        with Pillow.open(io.BytesIO(frame.jpeg)) as opened:
            assert np.asarray(opened).max() == 0
    still = ITEM.model_copy(update={"media": (Image(source="i"),)})
    assert show(root, "absolute", item=still)[0].jpeg == show(root, "none", item=still)[0].jpeg


def test_one_picture_told_as_two_times_is_painted_twice(root: Path) -> None:
    """At 15 a second some pictures of the ten are told twice, on both sides of a full second."""
    frames = show(root, "absolute", fps=15.0)
    assert [reading(frame) for frame in frames[::15]] == [clock_text(4 + k) for k in range(10)]
    assert [reading(frame) for frame in frames[14::15]] == [clock_text(4 + k) for k in range(10)]


def test_windows_that_grow_read_ahead_with_their_times(root: Path, tmp_path: Path) -> None:
    library = MediaLibrary(root, MediaSettings(overlay="clip", quality=95), cache_dir=tmp_path)
    for end in (5.0, 6.0, 8.0, 11.0, 12.0):
        item = ITEM.model_copy(update={"media": (VideoClip(source="v", start=2.0, end=end),)})
        frames = asyncio.run(view(item, "video", library).frames(fps=1.0))
        assert [reading(frame) for frame in frames] == [clock_text(k) for k in range(round(end) - 2)]
    assert len(list(tmp_path.rglob("*.zip"))) == 3
