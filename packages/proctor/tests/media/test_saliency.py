"""Regions worth a closer look: found where something stands out or moves, enlarged without covering anything."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from proctor.core import InputError, Region, generator
from proctor.media import MediaLibrary, Picture
from proctor.tasks.clinicalskillqa.keypoints import PersonBox
from proctor.tasks.clinicalskillqa.methods.saliency import COLOURS, Detail, details_of, enlarged, saliency
from tests.support.figures import kneeler, manikin, pose, standing

SIZE = (480, 270)


def drawn(*dots: tuple[int, int], size: tuple[int, int] = SIZE, noise: int = 6) -> bytes:
    """A grey ground with a little grain, the same in every picture, and dots of 30 pixels."""
    grain = generator(0, "grain").normal(120, noise, (size[1], size[0], 1)).clip(0, 255)
    picture = Image.fromarray(np.repeat(grain, 3, axis=2).astype(np.uint8))
    for x, y in dots:
        ImageDraw.Draw(picture).ellipse((x - 15, y - 15, x + 15, y + 15), fill=(250, 210, 40))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=95)
    return out.getvalue()


def points(jpeg: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(jpeg)) as opened:
        return np.asarray(opened.convert("RGB"), dtype=np.int16)


def inside(region: Region, x: float, y: float, size: tuple[int, int] = SIZE) -> bool:
    return region.x <= x / size[0] <= region.x + region.width and region.y <= y / size[1] <= region.y + region.height


# ── the map ──


def test_what_stands_out_is_found_by_itself() -> None:
    (found,) = saliency([drawn((360, 200))])
    assert found.shape == (54, 96)
    assert (found.min() >= 0, found.max()) == (True, 1.0)
    row, column = np.unravel_index(int(np.argmax(found)), found.shape)
    assert abs(column * 5 - 360) < 25
    assert abs(row * 5 - 200) < 25


def test_what_moves_counts_more_than_what_stays() -> None:
    moving = [drawn((100, 60), (x, 200)) for x in (150, 250, 350, 420)]
    for found, x in zip(saliency(moving), (150, 250, 350, 420), strict=True):
        there = found[36:44, x // 5 - 4 : x // 5 + 4].max()
        assert there == 1.0
        assert found[8:16, 16:24].max() < 0.75


def test_pictures_of_other_sizes_are_each_looked_at_alone() -> None:
    mixed = saliency([drawn((100, 60)), drawn((100, 60)), drawn((60, 100), size=(270, 480))])
    assert np.array_equal(mixed[0], saliency([drawn((100, 60))])[0])
    assert mixed[2].shape == (96, 54)


def test_where_nothing_is_there_is_nothing() -> None:
    out = io.BytesIO()
    Image.new("RGB", SIZE, (90, 90, 90)).save(out, "JPEG")
    (flat,) = saliency([out.getvalue()])
    assert not flat.any()
    assert details_of(flat, 16 / 9) == []
    assert enlarged(out.getvalue(), []) == out.getvalue()
    with pytest.raises(InputError, match="picture: found an unreadable image"):
        saliency([b"none"])


# ── the regions ──


def test_two_places_are_found_the_left_one_first() -> None:
    (found,) = saliency([drawn((400, 60), (70, 210))])
    first, second = details_of(found, 480 / 270)
    assert inside(first.region, 70, 210)
    assert inside(second.region, 400, 60)
    assert (first.what, second.what) == ("", "")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.3, 3.5))
def test_places_lie_in_the_picture_in_one_shape_and_apart(seed: int, aspect: float) -> None:
    rows, columns = (96, max(8, round(96 * aspect))) if aspect < 1 else (max(8, round(96 / aspect)), 96)
    found = generator(seed, "map").random((rows, columns)) ** 8
    details = details_of(found, aspect)
    assert 1 <= len(details) <= 2
    for detail in details:
        region = detail.region
        assert region.x + region.width <= 1 + 1e-6
        assert region.y + region.height <= 1 + 1e-6
        assert region.width * aspect / region.height == pytest.approx(4 / 3)
    if len(details) == 2:
        one, other = (detail.region for detail in details)
        across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
        down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
        shared = max(0.0, across) * max(0.0, down) / (one.width * one.height)
        assert shared < 0.5


def test_joints_tell_head_and_chest() -> None:
    flat = np.zeros((60, 96))
    found = details_of(flat, 1.6, pose(manikin(), kneeler()))
    assert [detail.what for detail in found] == ["head and airway", "chest and hands"]
    head, chest = (detail.region for detail in found)
    assert inside(head, 274, 380, (800, 500))
    assert inside(chest, 344, 380, (800, 500))
    # Without a manikin the hands are known, and the other region comes from the map.
    busy = np.zeros((60, 96))
    busy[5:10, 5:10] = 1.0
    alone = details_of(busy, 1.6, pose(standing()))
    assert [detail.what for detail in alone] == ["", "hands"]
    assert inside(alone[1].region, 600, 264, (800, 500))
    marked = details_of(flat, 1.6, None, {"chest": Region(x=0.7, y=0.1, width=0.1, height=0.1)})
    assert [detail.what for detail in marked] == ["chest and hands"]
    assert inside(marked[0].region, 600, 75, (800, 500))
    large = details_of(flat, 1.6, pose(marked={"head": PersonBox(0, 0, 800, 500)}))
    assert large[0].region.width == pytest.approx(0.45)  # more would not be enlarged


# ── the picture ──


@pytest.mark.parametrize(
    ("size", "whole"), [((480, 270), (480, 450)), ((270, 480), (590, 480)), ((400, 400), (400, 550))]
)
def test_nothing_of_the_picture_is_covered(size: tuple[int, int], whole: tuple[int, int]) -> None:
    jpeg = drawn((200, 200), size=size)
    details = [
        Detail(Region(x=0.1, y=0.1, width=0.25, height=0.25)),
        Detail(Region(x=0.6, y=0.5, width=0.25, height=0.25)),
    ]
    found = points(enlarged(jpeg, details))
    assert (found.shape[1], found.shape[0]) == whole
    before = points(jpeg)
    apart = np.abs(found[: size[1], : size[0]] - before).max(axis=2) > 40
    assert apart.mean() < 0.02  # the thin frames alone
    for number, colour in enumerate([*COLOURS.values()][:2]):
        lying = size[0] >= size[1]
        wide, high = (size[0] // 2, whole[1] - size[1]) if lying else (whole[0] - size[0], size[1] // 2)
        x, y = (number * wide, size[1]) if lying else (size[0], number * high)
        edge = found[y + 1, x + 10 : x + wide - 10]
        assert np.abs(edge - np.array(colour)).mean() < 40


def test_an_inset_shows_its_place_enlarged() -> None:
    dot = (240, 135)
    jpeg = drawn(dot, noise=0)
    region = Region(x=0.375, y=0.5 - 1 / 6, width=0.25, height=1 / 3)
    found = points(enlarged(jpeg, [Detail(region)]))

    def yellow(part: NDArray[np.int16]) -> int:
        return int(((part[..., 0] > 185) & (part[..., 1] > 165)).sum())

    assert yellow(found[270:]) / yellow(found[:270]) == pytest.approx(4.0, rel=0.15)  # twice as long each way


def test_an_inset_is_cut_from_the_original() -> None:
    """Stripes of 2 pixels are gone in a picture of a third of the size; the inset shows them."""
    stripes = np.zeros((1200, 1600, 3), dtype=np.uint8)
    stripes[:, np.arange(1600) % 4 < 2] = 255
    large = Image.fromarray(stripes)
    out, small = io.BytesIO(), io.BytesIO()
    large.save(out, "JPEG", quality=90)
    large.resize((512, 384)).save(small, "JPEG", quality=90)
    detail = [Detail(Region(x=0.2, y=0.2, width=0.25, height=0.25))]
    before = points(enlarged(small.getvalue(), detail))[384:, 20:230]
    after = points(enlarged(small.getvalue(), detail, out.getvalue()))[384:, 20:230]
    assert after.shape == before.shape
    apart = [float(np.abs(np.diff(one.astype(float), axis=1)).mean()) for one in (before, after)]
    assert apart[0] < 10
    assert apart[1] > 5 * apart[0]


def test_what_stands_out_may_stand_beside_head_and_chest() -> None:
    """Two regions by joints and two of the map, none of which covers another, in two rows."""
    flat = np.zeros((60, 96))
    flat[50, 90] = flat[5, 90] = 1.0
    known = {
        "head": Region(x=0.05, y=0.1, width=0.1, height=0.1),
        "chest": Region(x=0.05, y=0.7, width=0.1, height=0.1),
    }
    assert [one.what for one in details_of(flat, 1.6, None, known)] == ["head and airway", "chest and hands"]
    found = details_of(flat, 1.6, None, known, both=True)
    assert sorted(one.what for one in found) == ["", "", "chest and hands", "head and airway"]
    picture = io.BytesIO()
    Image.new("RGB", (640, 400), (90, 90, 90)).save(picture, "JPEG")
    assert points(enlarged(picture.getvalue(), found)).shape == (400 + 2 * 240, 640, 3)


def test_a_small_picture_grows_so_that_insets_can_be_read() -> None:
    jpeg = drawn((60, 40), size=(128, 72))
    whole = points(enlarged(jpeg, [Detail(Region(x=0.2, y=0.2, width=0.25, height=0.33))]))
    assert whole.shape == (216 + 144, 384, 3)


def test_on_real_clips_there_are_two_places_in_every_frame(data: Path, tmp_path: Path) -> None:
    library = MediaLibrary(data / "video", cache_dir=tmp_path)
    jpegs: list[Any] = library.jpegs([Picture("04_coffee.mp4", time) for time in (1.0, 2.0, 3.0, 4.0)])
    for jpeg, found in zip(jpegs, saliency(jpegs), strict=True):
        details = details_of(found, 16 / 9)
        assert len(details) == 2
        assert points(enlarged(jpeg, details)).shape == (480, 512, 3)
