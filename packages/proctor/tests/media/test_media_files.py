"""Files that are missing, broken or not what they seem: each a clear line, before anything is paid."""

from __future__ import annotations

import asyncio
import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import Image, InputError, Item, Media, Region, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, MediaSettings, view
from tests.support.clock_video import HEIGHT, WIDTH, ClockVideo, write_clock_video

TEN_SECONDS = ClockVideo(times_ms=range(0, 10000, 100), rate=10, keyint=10)


def item(*media: Media, item_id: str = "q1") -> Item:
    return Item(id=item_id, group="g", question="?", answer=BinaryFormat(), media=media)


def library(root: Path, settings: MediaSettings | None = None) -> MediaLibrary:
    return MediaLibrary(root, settings, cache_dir=root / "cache")


def complaint(root: Path, *media: Media) -> str:
    with pytest.raises(InputError) as caught:
        library(root).check([item(*media), item(*media, item_id="q2")])
    return str(caught.value).replace(f"{root}/", "")


def test_names_are_found_with_and_without_extension(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.mp4", "sub/b.MKV", "c.v2.webm", "d"):
        (tmp_path / name).touch()
    found = library(tmp_path)
    assert found.locate("a").name == found.locate("a.mp4").name == "a.mp4"
    assert found.locate("sub/b") == tmp_path / "sub" / "b.MKV"
    assert found.locate("c.v2").name == "c.v2.webm"
    assert found.locate("d").name == "d"


@pytest.mark.parametrize("name", ["../x", "sub/../../x", "/etc/hostname", "", "..", "a\0b", "..\\x"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path.parent / "x.mp4").touch()
    with pytest.raises(InputError) as caught:
        library(tmp_path).locate(name)
    assert str(caught.value) == f"{name!r}: found a name that leads out of the media folder"


def test_links_may_lead_within_the_folder_but_not_out_of_it(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "secret.mp4"
    root.mkdir()
    outside.touch()
    (root / "inside.mp4").touch()
    (root / "good.mp4").symlink_to(root / "inside.mp4")
    (root / "bad.mp4").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path)
    assert library(root).locate("good").name == "good.mp4"
    for name in ("bad", "folder/secret"):
        with pytest.raises(InputError, match="found a link that leads out of the media folder"):
            library(root).locate(name)


def test_missing_names_are_listed_once_and_sorted(tmp_path: Path) -> None:
    (tmp_path / "there.mp4").touch()
    (tmp_path / "folder").mkdir()
    items = [
        item(*(VideoClip(source=s) for s in ("z", "there", "folder"))),
        item(VideoClip(source="b"), VideoClip(source="z")),
    ]
    assert library(tmp_path).missing(items) == ["b", "folder", "z"]
    assert MediaLibrary(None, cache_dir=tmp_path).missing(items) == ["b", "folder", "there", "z"]


def test_no_media_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        MediaLibrary(None, cache_dir=tmp_path).locate("v")
    assert str(caught.value) == "v: found no media folder, expected the folder that holds this file"


def test_good_media_pass(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mp4", TEN_SECONDS)
    Pillow.new("RGB", (9, 9)).save(tmp_path / "i.png")
    library(tmp_path).check([item(VideoClip(source="v", start=2, end=10), Image(source="i"))])


def test_a_missing_file(tmp_path: Path) -> None:
    assert complaint(tmp_path, VideoClip(source="v")) == (
        f"v: below {tmp_path}: found no such file, expected a video or image of this name "
        "(needed by item 'q1' and 1 more)"
    )
    (tmp_path / "v").mkdir()
    assert "found a folder, expected a video" in complaint(tmp_path, VideoClip(source="v"))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "v.mp4: found an unreadable video (Invalid data found when processing input)"),
        (b"this is no video at all\n" * 500, "v.mp4: found an unreadable video (Invalid data found"),
    ],
)
def test_an_empty_file_and_a_text(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "v.mp4").write_bytes(content)
    assert complaint(tmp_path, VideoClip(source="v")).startswith(text)


def test_a_file_that_breaks_off(tmp_path: Path) -> None:
    whole = write_clock_video(tmp_path / "whole.mkv", TEN_SECONDS).read_bytes()
    (tmp_path / "v.mkv").write_bytes(whole[: len(whole) // 2])
    text = complaint(tmp_path, VideoClip(source="v"))
    assert text.startswith("v.mkv: found a truncated video: it ends at ")
    assert ", expected 10.0 s as its header says (needed by" in text


def test_an_mp4_that_breaks_off(tmp_path: Path) -> None:
    front = ClockVideo(times_ms=TEN_SECONDS.times_ms, rate=10, keyint=10)
    write_clock_video(tmp_path / "whole.mp4", front)
    with (
        av.open(str(tmp_path / "whole.mp4")) as source,
        av.open(str(tmp_path / "front.mp4"), "w", options={"movflags": "faststart"}) as target,
    ):
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    whole = (tmp_path / "front.mp4").read_bytes()
    (tmp_path / "v.mp4").write_bytes(whole[: len(whole) * 2 // 3])
    assert complaint(tmp_path, VideoClip(source="v")).startswith("v.mp4: found a truncated video: it ends at ")
    (tmp_path / "v.mp4").write_bytes((tmp_path / "whole.mp4").read_bytes()[:3000])
    assert "v.mp4: found an unreadable video" in complaint(tmp_path, VideoClip(source="v"))


def test_sound_alone(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "both.mkv", ClockVideo(times_ms=[0, 40], audio_s=1.0))
    with av.open(str(tmp_path / "both.mkv")) as source, av.open(str(tmp_path / "v.mp4"), "w") as target:
        stream = target.add_stream_from_template(source.streams.audio[0])
        for packet in source.demux(audio=0):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    text = complaint(tmp_path, VideoClip(source="v"))
    assert text == "v.mp4: found no video stream, expected a video (needed by item 'q1' and 1 more)"


def test_a_still_image_as_a_video_and_a_video_as_an_image(tmp_path: Path) -> None:
    Pillow.new("RGB", (16, 16)).save(tmp_path / "i.png")
    write_clock_video(tmp_path / "v.mp4", TEN_SECONDS)
    assert complaint(tmp_path, VideoClip(source="i")).startswith("i.png: found a still image, expected a video")
    assert complaint(tmp_path, Image(source="v")).startswith("v.mp4: found an unreadable image")


def test_a_broken_image(tmp_path: Path) -> None:
    out = io.BytesIO()
    Pillow.effect_noise((200, 200), 50).save(out, "JPEG")
    (tmp_path / "i.jpg").write_bytes(out.getvalue()[:4000])
    assert complaint(tmp_path, Image(source="i")).startswith("i.jpg: found an unreadable image (OSError)")


def test_sixteen_bits_are_not_guessed_at(tmp_path: Path) -> None:
    Pillow.fromarray(np.full((4, 4), 40000, dtype=np.uint16)).save(tmp_path / "i.png")
    assert complaint(tmp_path, Image(source="i")).startswith(
        "i.png: found an image of mode I;16, expected 8 bits a channel"
    )


def test_a_wrong_extension_does_no_harm(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mkv", TEN_SECONDS).rename(tmp_path / "v.mp4")
    library(tmp_path).check([item(VideoClip(source="v"))])


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (0.0, 10.6, "v: the clip's end: found 10.6 s, expected a time within the video's 10.00 s"),
        (10.0, None, "v: the clip's start: found 10 s, expected a time within the video's 10.00 s"),
    ],
)
def test_clips_beyond_the_video(tmp_path: Path, start: float, end: float | None, text: str) -> None:
    write_clock_video(tmp_path / "v.mp4", TEN_SECONDS)
    clip = VideoClip(source="v", start=start, end=end)
    assert complaint(tmp_path, clip) == f"{text} (needed by item 'q1' and 1 more)"


def test_an_end_that_was_rounded_up_is_the_videos_end(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mp4", TEN_SECONDS)
    rounded = item(VideoClip(source="v", start=5, end=10.5))
    library(tmp_path).check([rounded])
    assert view(rounded, "video", library(tmp_path)).span == (5.0, 10.0)


def test_all_problems_are_told_with_the_items_that_have_them(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mp4", TEN_SECONDS)
    items = [
        item(VideoClip(source="v", end=20), item_id="a"),
        item(VideoClip(source="gone"), item_id="b"),
        item(VideoClip(source="v"), item_id="c"),
        item(VideoClip(source="gone"), VideoClip(source="v", end=20), item_id="d"),
    ]
    problems = library(tmp_path).problems(items)
    assert [(problem.source, problem.item_ids) for problem in problems] == [("gone", ("b", "d")), ("v", ("a", "d"))]
    with pytest.raises(InputError, match=r"\(needed by item 'b' and 1 more\); media with problems: 2$"):
        library(tmp_path).check(items)


def served(root: Path, medium: Media, settings: MediaSettings | None = None) -> Pillow.Image:
    shown = view(item(medium), "video", library(root, settings))
    with Pillow.open(io.BytesIO(asyncio.run(shown.frames(count=1))[0].jpeg)) as opened:
        return opened.convert("L")


def test_a_region_is_cut_before_scaling(tmp_path: Path) -> None:
    """The left half is black and the right white; a quarter from the middle is half of each."""
    pixels = np.zeros((100, 400), dtype=np.uint8)
    pixels[:, 200:] = 255
    Pillow.fromarray(pixels).save(tmp_path / "i.png")
    right = served(tmp_path, Image(source="i", region=Region(x=0.5, y=0, width=0.5, height=1)))
    assert (right.size, np.asarray(right).min()) == ((200, 100), 255)
    middle = Image(source="i", region=Region(x=0.375, y=0.25, width=0.25, height=0.5))
    cut = np.asarray(served(tmp_path, middle, MediaSettings(max_side=50)))
    assert cut.shape == (25, 50)
    assert cut[:, :20].max() < 16
    assert cut[:, 30:].min() > 240


def test_pictures_are_scaled_down_and_never_up(tmp_path: Path) -> None:
    Pillow.new("RGB", (300, 100)).save(tmp_path / "i.png")
    assert served(tmp_path, Image(source="i"), MediaSettings(max_side=150)).size == (150, 50)
    assert served(tmp_path, Image(source="i"), MediaSettings(max_side=512)).size == (300, 100)
    assert served(tmp_path, Image(source="i"), MediaSettings(max_side=None)).size == (300, 100)


def test_a_turned_video_is_shown_upright(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "plain.mp4", TEN_SECONDS)
    write_clock_video(tmp_path / "turned.mp4", ClockVideo(times_ms=TEN_SECONDS.times_ms, rate=10, rotation=90))
    info = library(tmp_path).probe("turned")
    assert (info.width, info.height) == (HEIGHT, WIDTH)
    plain = np.asarray(served(tmp_path, VideoClip(source="plain")), dtype=int)
    turned = np.asarray(served(tmp_path, VideoClip(source="turned")), dtype=int)
    assert np.abs(np.rot90(plain) - turned).max() < 60


def test_pixels_that_are_not_square_are_made_so(tmp_path: Path) -> None:
    wide = ClockVideo(times_ms=TEN_SECONDS.times_ms, rate=10, pixel_aspect=Fraction(4, 3))
    write_clock_video(tmp_path / "v.mp4", wide)
    info = library(tmp_path).probe("v")
    assert (info.width, info.height) == (WIDTH * 4 // 3, HEIGHT)
    assert served(tmp_path, VideoClip(source="v")).size == (WIDTH, HEIGHT * 3 // 4)
