"""What arrives at a server where a part of a picture is hidden: against pictures made here by other means, to the byte."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from proctor.core import Evidence, EvidenceBox, Image, Item, Region, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import CONDITIONS, ConditionContext, MediaLibrary, MediaSettings, from_jpegs
from proctor.media.evidence_conditions import EvidenceCondition
from proctor.media.pictures import touched_pixels
from tests.support.jpeg_planes import Mask, assert_same_but_for, touched
from tests.support.medical_files import dicom
from tests.support.sent_pictures import sent_pictures

BOTH = ("occlude-evidence", "occlude-elsewhere")


def noise(seed: int, width: int, height: int) -> NDArray[np.uint8]:
    """Coloured noise, coarse and fine: every block has all frequencies, and its colours differ from its neighbours'."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 200, (height // 5 + 1, width // 5 + 1, 3)).repeat(5, axis=0).repeat(5, axis=1)
    fine = rng.integers(0, 56, (height, width, 3))
    found: NDArray[np.uint8] = (coarse[:height, :width] + fine).astype(np.uint8)
    return found


def boxes_at(rng: np.random.Generator, medium: int, number: int, largest: float = 0.3) -> list[EvidenceBox]:
    """Boxes of a still image: anywhere, at an edge, in a corner, thinner than a pixel, or on the grid of blocks."""
    found = []
    for _ in range(number):
        width, height = (float(rng.uniform(0.001, largest)) for _ in range(2))
        x, y = (float(rng.choice([0.0, 1 - size, rng.uniform(0, 1 - size)])) for size in (width, height))
        found.append(EvidenceBox(medium=medium, x=x, y=y, width=width, height=height))
    return found


def mask_of(regions: tuple[Region, ...], width: int, height: int) -> Mask:
    """The pixels that a region touches by more than a hundredth, in exact arithmetic, pixel by pixel."""

    def row(start: float, size: float, pixels: int) -> list[bool]:
        a, b = Fraction(start) * pixels, Fraction(start + size) * pixels
        lowest = Fraction(1, 100)
        return [b - max(a, k) > lowest and k + 1 - a > lowest for k in map(Fraction, range(pixels))]

    mask = np.zeros((height, width), dtype=bool)
    for one in regions:
        mask |= np.outer(row(one.y, one.height, height), row(one.x, one.width, width))
    return mask


def reconstructed(picture: Pillow.Image, hidden: Mask, quality: int) -> bytes:
    """The picture with black where it is hidden, as the documentation says that it is encoded."""
    pixels = np.asarray(picture).copy()
    pixels[hidden] = 0
    out = io.BytesIO()
    Pillow.fromarray(pixels).save(out, "JPEG", quality=quality)
    return out.getvalue()


def hidden_in(root: Path, asked: Item, condition: str) -> list[tuple[Region, ...]]:
    """What the condition's arithmetic, which has tests of its own, hides of each still image."""
    found = CONDITIONS.get(condition)
    assert isinstance(found, EvidenceCondition)
    return [one.at(None) for one in found.hidden(ConditionContext(asked, (), 0, MediaLibrary(root), whole=True))]


def question(media: list[Image] | list[VideoClip], boxes: list[EvidenceBox]) -> Item:
    evidence = Evidence(boxes=tuple(boxes))
    return Item(id="q1", group="g", question="?", answer=BinaryFormat(), media=tuple(media), evidence=evidence)


@pytest.mark.parametrize(("quality", "max_side"), [(85, None), (40, None), (85, 71)])
def test_images_of_all_sizes_with_boxes_anywhere(tmp_path: Path, quality: int, max_side: int | None) -> None:
    rng = np.random.default_rng(quality + (max_side or 0))
    sizes = [(int(rng.integers(17, 200)), int(rng.integers(17, 200))) for _ in range(22)] + [(16, 16), (64, 48)]
    boxes: list[EvidenceBox] = []
    for number, (width, height) in enumerate(sizes):
        Pillow.fromarray(noise(number, width, height)).save(tmp_path / f"{number}.png")
        boxes += boxes_at(rng, number, int(rng.integers(1, 4)), 0.25)
    on_the_grid = EvidenceBox(medium=23, x=0.25, y=1 / 3, width=0.25, height=1 / 3)  # a block of 64 by 48 pixels
    asked = question([Image(source=f"{k}.png") for k in range(24)], [*boxes, on_the_grid])
    settings = MediaSettings(quality=quality, max_side=max_side)
    plain = sent_pictures(tmp_path, tmp_path / "cache", asked, "video", settings)
    for condition in BOTH:
        arrived = sent_pictures(tmp_path, tmp_path / "cache", asked, condition, settings)
        regions = hidden_in(tmp_path, asked, condition)
        for number, (before, after, own) in enumerate(zip(plain, arrived, regions, strict=True)):
            with Pillow.open(tmp_path / f"{number}.png") as picture:
                width, height = Pillow.open(io.BytesIO(before)).size
                scaled = picture.resize((width, height), Pillow.Resampling.BICUBIC)
            mask = mask_of(own, width, height)
            assert mask.any()
            assert after == reconstructed(scaled, mask, quality)
            assert_same_but_for(mask, before, after)
            one, other = (np.asarray(Pillow.open(io.BytesIO(jpeg))).astype(int) for jpeg in (before, after))
            near = touched(mask, 16)  # and a pixel around: there a decoder mixes the colour of two blocks
            beside = np.pad(near, 1)
            around = beside[:-2, :-2] | beside[:-2, 2:] | beside[2:, :-2] | beside[2:, 2:] | near
            around |= beside[1:-1, :-2] | beside[1:-1, 2:] | beside[:-2, 1:-1] | beside[2:, 1:-1]
            assert (one[~around] == other[~around]).all()


def test_nothing_below_the_black_leaves_a_trace(tmp_path: Path) -> None:
    """Two pictures that differ in each pixel of the evidence, and in no other, arrive as the same bytes."""
    rng = np.random.default_rng(7)
    boxes: list[EvidenceBox] = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    for number in range(24):
        width, height = int(rng.integers(16, 160)), int(rng.integers(16, 160))
        own = boxes_at(rng, number, int(rng.integers(1, 4)), 0.5)
        pixels = noise(number, width, height)
        below = pixels.copy()
        mask = mask_of(tuple(own), width, height)
        below[mask] = 255 - below[mask]
        Pillow.fromarray(pixels).save(tmp_path / "one" / f"{number}.png")
        Pillow.fromarray(below).save(tmp_path / "other" / f"{number}.png")
        boxes += own
    asked = question([Image(source=f"{k}.png") for k in range(24)], boxes)
    sent = {
        (folder, condition): sent_pictures(tmp_path / folder, tmp_path / f"cache-{folder}", asked, condition)
        for folder in ("one", "other")
        for condition in ("video", "occlude-evidence")
    }
    assert sent["one", "occlude-evidence"] == sent["other", "occlude-evidence"]
    assert not set(sent["one", "video"]) & set(sent["other", "video"])


def test_the_control_hides_no_pixel_of_the_evidence(tmp_path: Path) -> None:
    """In pictures of 200 pixels a side and more, also where both meet in one block."""
    rng = np.random.default_rng(3)
    sizes = [(int(rng.integers(200, 500)), int(rng.integers(200, 400))) for _ in range(60)]
    for number, (width, height) in enumerate(sizes):
        Pillow.fromarray(np.zeros((height, width, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    boxes = [one for number in range(60) for one in boxes_at(rng, number, int(rng.integers(1, 4)), 0.3)]
    asked = question([Image(source=f"{k}.png") for k in range(60)], boxes)
    own, other = (hidden_in(tmp_path, asked, condition) for condition in BOTH)
    for (width, height), evidence, away in zip(sizes, own, other, strict=True):
        assert not (mask_of(evidence, width, height) & mask_of(away, width, height)).any()


def test_a_touched_pixels_has_every_pixel_it_touches() -> None:
    rng = np.random.default_rng(5)
    for _ in range(500):
        width, height = int(rng.integers(16, 400)), int(rng.integers(16, 400))
        (box,) = boxes_at(rng, 0, 1, 0.9)
        region = Region(x=box.x, y=box.y, width=box.width, height=box.height)
        left, top, right, bottom = touched_pixels(region, width, height)
        mask = mask_of((region,), width, height)
        if not mask.any():  # less than a hundredth of a pixel is one all the same
            assert (right - left, bottom - top) >= (1, 1)
            continue
        found = np.zeros_like(mask)
        found[top:bottom, left:right] = True
        assert (found == mask).all()


def write_noise_video(path: Path, width: int, height: int, pictures: int) -> Path:
    def jpeg(number: int) -> bytes:
        out = io.BytesIO()
        Pillow.fromarray(noise(number, width, height)).save(out, "JPEG", quality=95)
        return out.getvalue()

    path.write_bytes(from_jpegs((number / 10, jpeg(number)) for number in range(pictures)))
    return path


@pytest.mark.parametrize(
    ("size", "max_side", "shown"),
    [((176, 144), None, (176, 144)), ((130, 94), None, (130, 94)), ((176, 98), 77, (77, 43))],
)
def test_videos_with_boxes_that_come_and_go(
    tmp_path: Path, size: tuple[int, int], max_side: int | None, shown: tuple[int, int]
) -> None:
    write_noise_video(tmp_path / "noise.mp4", *size, 30)
    moving = [
        EvidenceBox(x=0.03 * k, y=0.5 - 0.02 * k, width=0.2, height=0.31, start=0.5 + k / 5, end=0.7 + k / 5)
        for k in range(10)
    ]
    still = EvidenceBox(x=0.7, y=0.6, width=0.3, height=0.4, start=1.0, end=2.0)
    asked = question([VideoClip(source="noise.mp4")], [*moving, still])
    settings = MediaSettings(max_side=max_side)
    plain, arrived = (
        sent_pictures(tmp_path, tmp_path / "cache", asked, name, settings) for name in ("video", "occlude-evidence")
    )
    assert len(plain) == len(arrived) == 30
    with av.open(str(tmp_path / "noise.mp4")) as container:
        frames = list(container.decode(video=0))
    for number, frame in enumerate(frames):
        scaled = frame if shown == size else frame.reformat(*shown, interpolation="BICUBIC")
        own: list[Region] = [still] if 10 <= number < 20 else []
        own += [moving[(number - 5) // 2]] if 5 <= number < 25 else []
        mask = mask_of(tuple(own), *shown)
        rgb = Pillow.fromarray(scaled.to_ndarray(format="rgb24"))
        assert arrived[number] == reconstructed(rgb, mask, 85)
        assert_same_but_for(mask, plain[number], arrived[number])
        if not own:
            assert arrived[number] == plain[number]


def test_the_black_lies_above_a_painted_time(tmp_path: Path) -> None:
    write_noise_video(tmp_path / "noise.mp4", 176, 144, 10)
    box = EvidenceBox(x=0.0, y=0.75, width=0.25, height=0.25, start=0.3, end=0.6)
    asked = question([VideoClip(source="noise.mp4")], [box])
    settings = MediaSettings(overlay="absolute")
    plain, arrived = (
        sent_pictures(tmp_path, tmp_path / "cache", asked, name, settings) for name in ("video", "occlude-evidence")
    )
    mask = mask_of((box,), 176, 144)
    for number, (before, after) in enumerate(zip(plain, arrived, strict=True)):
        there = 3 <= number < 6
        assert (before == after) is not there
        assert_same_but_for(mask & there, before, after)


def test_frames_of_a_medical_file_are_hidden_alike(tmp_path: Path) -> None:
    frames = np.stack([noise(number, 60, 50)[..., 0] for number in range(10)])
    dicom(tmp_path / "cine.dcm", frames, FrameTime="100", NumberOfFrames=10)
    box = EvidenceBox(x=0.3, y=0.2, width=0.25, height=0.3, start=0.0, end=0.5)
    asked = question([VideoClip(source="cine.dcm")], [box])
    plain, arrived = (
        sent_pictures(tmp_path, tmp_path / "cache", asked, name) for name in ("video", "occlude-evidence")
    )
    assert len(plain) == len(arrived)
    changed = 0
    for before, after in zip(plain, arrived, strict=True):
        mask = mask_of((box,), *Pillow.open(io.BytesIO(before)).size)
        assert_same_but_for(mask if before != after else np.zeros_like(mask), before, after)
        changed += before != after
    assert 0 < changed < len(plain)
