"""Videos that are parts of longer ones: whole, trimmed and cropped files show the same, and none is shown wrongly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.core import Excerpt, InputError, Item, Region, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import Excerpts, MediaAs, MediaLibrary, MediaSettings, view
from proctor.media.clip_locations import ClipLocation
from proctor.media.video import VideoInfo
from tests.support.clock_video import BITS, read_clock

WIDTH, HEIGHT, RATE = 640, 360, 10
SECONDS, START, END = 20, 6.0, 14.0
REGION = Region(x=0.25, y=0.25, width=0.3, height=0.5)
EXCERPTS = {"v": Excerpt(start=START, end=END, url="https://example.org/v")}
ITEM = Item(
    id="q1",
    group="v",
    question="?",
    answer=BinaryFormat(),
    media=(VideoClip(source="v", start=2.0, end=5.0, region=REGION),),
)


def picture(number: int) -> NDArray[np.uint8]:
    """Grey, and in the region the frame's number in columns."""
    pixels = np.full((HEIGHT, WIDTH, 3), 128, dtype=np.uint8)
    left, top = round(REGION.x * WIDTH), round(REGION.y * HEIGHT)
    width, height = round(REGION.width * WIDTH), round(REGION.height * HEIGHT)
    for bit in range(BITS):
        column = slice(left + bit * width // BITS, left + (bit + 1) * width // BITS)
        on = bool(number >> bit & 1)
        pixels[top : top + height // 2, column] = 255 * on
        pixels[top + height // 2 : top + height, column] = 255 * (not on)
    return pixels


def of_region(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    left, top = round(REGION.x * WIDTH), round(REGION.y * HEIGHT)
    return np.ascontiguousarray(
        pixels[top : top + round(REGION.height * HEIGHT), left : left + round(REGION.width * WIDTH)]
    )


def write(path: Path, numbers: range, cropped: Callable[[NDArray[np.uint8]], NDArray[np.uint8]] | None = None) -> None:
    with av.open(str(path), "w") as container:
        pictures = [picture(number) if cropped is None else cropped(picture(number)) for number in numbers]
        stream = container.add_stream("libx264", rate=RATE, options={"preset": "ultrafast", "crf": "10"})
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for pixels in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[MediaAs, Path]:
    """The same excerpt as three kinds of files."""
    root = tmp_path_factory.mktemp("kinds")
    for kind in MediaAs:
        (root / kind.value).mkdir()
    part = range(int(START * RATE), int(END * RATE))
    write(root / "full" / "v.mp4", range(SECONDS * RATE))
    write(root / "trimmed" / "v.mp4", part)
    write(root / "cropped" / "v.mp4", part, of_region)
    return {kind: root / kind.value for kind in MediaAs}


def library(folder: Path, cache: Path, media_as: MediaAs | None) -> MediaLibrary:
    return MediaLibrary(folder, MediaSettings(), cache, excerpts=Excerpts(EXCERPTS, media_as))


@pytest.mark.parametrize("kind", [*MediaAs, None])
def test_every_kind_of_file_shows_the_same_frames(
    folders: dict[MediaAs, Path], tmp_path: Path, kind: MediaAs | None
) -> None:
    seen = view(ITEM, "video", library(folders[kind or MediaAs.TRIMMED], tmp_path, kind))
    frames = asyncio.run(seen.frames(fps=1.0))
    assert seen.span == (2.0, 5.0)
    assert [frame.time for frame in frames] == [2.0, 3.0, 4.0]
    assert [read_clock(frame.jpeg) for frame in frames] == [80, 90, 100]


@pytest.mark.parametrize("kind", [*MediaAs])
@pytest.mark.parametrize("condition", ["video", "black", "reversed"])
def test_every_kind_of_file_makes_the_same_clip(
    folders: dict[MediaAs, Path], tmp_path: Path, kind: MediaAs, condition: str
) -> None:
    seen = view(ITEM, condition, library(folders[kind], tmp_path, kind))
    (file,) = asyncio.run(seen.files())  # type: ignore[attr-defined]
    (tmp_path / "clip.mp4").write_bytes(file.mp4)
    with av.open(str(tmp_path / "clip.mp4")) as container:
        assert [stream.type for stream in container.streams] == ["video"]
        shown = [np.asarray(frame.to_ndarray(format="gray"), np.uint8) for frame in container.decode(video=0)]
    assert len(shown) == 30
    if condition == "black":
        assert max(int(one.max()) for one in shown) < 24
        return
    numbers = [number_in(one) for one in shown]
    right = list(range(80, 110))
    assert numbers == (right if condition == "video" else right[::-1])


def number_in(gray: NDArray[np.uint8]) -> int:
    upper = gray[gray.shape[0] // 4]
    positions = [(2 * bit + 1) * upper.shape[0] // (2 * BITS) for bit in range(BITS)]
    return sum(int(upper[position] > 128) << bit for bit, position in enumerate(positions))


WRONG = [
    (MediaAs.FULL, None, ("v: length: found a video of 20.0 s, expected the excerpt of 8.0 s; for whole videos pass "
                         "--media-as full")),
    (MediaAs.FULL, MediaAs.CROPPED, "for whole videos pass --media-as full"),
    (MediaAs.TRIMMED, MediaAs.FULL, ("v: length: found a video of 8.0 s (for that, --media-as trimmed), expected the "
                                    "whole video of 14.0 s or more")),
    (MediaAs.CROPPED, None, ("v: picture: found a picture of 192 × 180: the region alone, expected a whole one (for "
                            "cropped files: --media-as cropped)")),
    (MediaAs.CROPPED, MediaAs.TRIMMED, "found a picture of 192 × 180: the region alone"),
    (MediaAs.TRIMMED, MediaAs.CROPPED, ("v: picture: found a picture of 640 × 360: a whole one, expected the region "
                                       "alone (else --media-as trimmed)")),
]  # fmt: skip


@pytest.mark.parametrize(("there", "said", "message"), WRONG)
def test_another_kind_than_is_said_is_never_shown(
    folders: dict[MediaAs, Path], tmp_path: Path, there: MediaAs, said: MediaAs | None, message: str
) -> None:
    media = library(folders[there], tmp_path, said)
    for told in (media.check, media.check_excerpts):
        with pytest.raises(InputError) as raised:
            told([ITEM])
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)
    with pytest.raises(InputError):
        asyncio.run(view(ITEM, "video", media).frames(fps=1.0))


def info(seconds: float, width: int = 1280, height: int = 720) -> VideoInfo:
    return VideoInfo(seconds, width, height, 25.0, 0.0, "h264")


def test_a_length_that_fits_nothing() -> None:
    with pytest.raises(
        InputError,
        match=r"found a video of 3.0 s, expected the excerpt of 8.0 s, or the whole video of 14.0 s or more with "
        r"--media-as full",
    ):
        Excerpts(EXCERPTS).locate("v", None, info(3.0))


def test_an_excerpt_that_begins_before_its_video() -> None:
    """How_to_Scan_the_Pancreas: what was cut from the video's start lacks 0.43 s, as the authors' script has it."""
    pancreas = Excerpts({"p": Excerpt(start=-0.43, end=103.0)})
    assert pancreas.locate("p", None, info(103.0)) == ClipLocation(-0.43, False, 103.43)
    assert pancreas.locate("p", None, info(103.43)).offset == 0.0
    whole = Excerpts(pancreas.known, MediaAs.FULL)
    assert whole.locate("p", None, info(240.0)).offset == -0.43


SAME_SHAPE = Region(x=0.459016, y=0.297917, width=0.440281, height=0.4375)  # 1st_Trimester_Scan's


@pytest.mark.parametrize(
    ("size", "media_as", "message"),
    [
        ((854, 480), None, ""),
        ((1280, 720), None, ""),
        ((376, 210), None, "the region alone, expected a whole one"),
        ((563, 315), None, "the region alone, expected a whole one"),
        ((500, 280), None, "which may be whole or the region alone, expected --media-as trimmed, full or cropped"),
        ((500, 280), MediaAs.TRIMMED, ""),
        ((500, 280), MediaAs.CROPPED, ""),
        ((500, 500), None, "which may be whole or the region alone"),
    ],
)
def test_where_the_shape_can_not_tell_the_size_does_or_a_person(
    size: tuple[int, int], media_as: MediaAs | None, message: str
) -> None:
    excerpts = Excerpts({"v": Excerpt(start=18.22, end=131.15)}, media_as)
    if not message:
        assert excerpts.locate("v", SAME_SHAPE, info(112.93, *size)).offset == 0.0
        return
    with pytest.raises(InputError, match=message):
        excerpts.locate("v", SAME_SHAPE, info(112.93, *size))


def test_a_video_of_which_nothing_is_known_is_taken_as_it_is() -> None:
    assert Excerpts({}).locate("v", REGION, info(3.0, 10, 10)) == ClipLocation()
