"""Clips as video files: the pictures and times in them are what the condition says, and are made once."""

from __future__ import annotations

import asyncio
import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import Image, Item, Region, Stopwatch, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import ClipFile, MediaLibrary, MediaSettings, ShowsFiles, damaged, view
from proctor.media.mp4 import _may_copy_clip
from proctor.media.video_clock import read_index
from tests.support.clock_video import HEIGHT, WIDTH, ClockVideo, read_clock, write_clock_video


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`plain` has a keyframe a second and no B-frames, `mixed` has them, and begins at 5 s."""
    root = tmp_path_factory.mktemp("media")
    write_clock_video(root / "plain.mp4", ClockVideo(times_ms=range(0, 8000, 100), rate=10, keyint=10))
    mixed = ClockVideo(times_ms=range(5000, 11000, 100), rate=10, keyint=20, b_frames=2)
    write_clock_video(root / "mixed.mkv", mixed)
    write_clock_video(root / "old.avi", ClockVideo(times_ms=range(40), rate=10, codec="mpeg4", keyint=12))
    return root


def item(*clips: VideoClip) -> Item:
    return Item(id="q", group="g", question="?", answer=BinaryFormat(), media=clips)


def clip(source: str, start: float, end: float, region: Region | None = None) -> Item:
    return item(VideoClip(source=source, start=start, end=end, region=region))


def files(
    root: Path,
    one: Item,
    condition: str = "video",
    *,
    others: tuple[Item, ...] = (),
    settings: MediaSettings | None = None,
    cache: str = "cache",
) -> list[ClipFile]:
    shown = view(one, condition, MediaLibrary(root, settings, root / cache), seed=1, others=others)
    assert isinstance(shown, ShowsFiles)
    return asyncio.run(shown.files())


def shown(file: ClipFile) -> list[tuple[float, int]]:
    """All pictures by plain decoding: time and number."""
    pictures = []
    with av.open(io.BytesIO(file.mp4), "r") as container:
        assert "mp4" in container.format.name
        assert [stream.type for stream in container.streams] == ["video"]
        for frame in container.decode(video=0):
            out = io.BytesIO()
            Pillow.fromarray(frame.to_ndarray(format="rgb24")).save(out, "JPEG", quality=90)
            assert frame.time is not None
            pictures.append((round(frame.time, 3), read_clock(out.getvalue())))
    return pictures


def test_a_clip_from_keyframe_on_is_copied_packet_by_packet(root: Path) -> None:
    (file,) = files(root, clip("plain", 2.0, 4.5))
    assert shown(file) == [(round(k / 10, 3), 20 + k) for k in range(25)]
    assert (file.label, file.span) == ("", (2.0, 4.5))
    with av.open(str(root / "plain.mp4")) as source, av.open(io.BytesIO(file.mp4), "r") as copy:
        own = [bytes(packet) for packet in source.demux(video=0) if packet.size]
        copied = [bytes(packet) for packet in copy.demux(video=0) if packet.size]
    assert copied == own[20:45]


@pytest.mark.parametrize(
    ("source", "start", "end", "first", "count"),
    [("plain", 2.35, 4.0, 23, 17), ("mixed", 1.0, 3.0, 10, 20), ("mixed", 2.0, 6.0, 20, 40), ("old", 1.0, 2.0, 10, 10)],
)
def test_every_clip_has_its_own_pictures_from_0_on(
    root: Path, source: str, start: float, end: float, first: int, count: int
) -> None:
    found = shown(files(root, clip(source, start, end))[0])
    assert [number for _, number in found] == list(range(first, first + count))
    assert [time for time, _ in found] == pytest.approx([k / 10 for k in range(count)], abs=0.002)


@pytest.mark.parametrize(
    ("source", "end", "max_side", "copied"),
    [
        ("plain.mp4", 40, 512, True),
        ("plain.mp4", 40, 64, False),
        ("mixed.mkv", 3000, 512, False),
        ("mixed.mkv", 99000, 512, True),
        ("old.avi", 40, 512, False),
    ],
)
def test_only_what_stays_exact_is_copied(root: Path, source: str, end: int, max_side: int, copied: bool) -> None:
    assert _may_copy_clip(root / source, read_index(root / source), end, max_side) is copied


@pytest.mark.parametrize("keyint", [20, 200])
def test_a_copied_clip_of_matroska_with_b_frames_has_its_first_pictures(tmp_path: Path, keyint: int) -> None:
    """Matroska tells no times of decoding; of the first packets FFmpeg does not know them either."""
    video = ClockVideo(times_ms=range(0, 6000, 100), rate=10, keyint=keyint, b_frames=3)
    write_clock_video(tmp_path / "v.mkv", video)
    found = shown(files(tmp_path, clip("v", 0.0, 6.0))[0])
    assert [number for _, number in found] == list(range(60))
    assert [time for time, _ in found] == pytest.approx([k / 10 for k in range(60)], abs=0.002)


def test_a_clip_that_begins_at_an_intra_refresh_has_its_first_pictures(tmp_path: Path) -> None:
    refreshed = {"x264-params": "intra-refresh=1:keyint=30:bframes=0"}
    video = ClockVideo(times_ms=range(0, 4000, 40), options=refreshed)
    index = read_index(write_clock_video(tmp_path / "v.mp4", video))
    assert index.seconds(int(index.keys[1])) == pytest.approx(1.2)
    found = shown(files(tmp_path, clip("v", 1.2, 4.0))[0])
    assert [number for _, number in found] == list(range(30, 100))


@pytest.mark.parametrize(("end", "count"), [(1.47, 37), (1.48, 37), (1.5, 38), (1.52, 38), (1.53, 39)])
def test_a_clip_ends_with_the_last_picture_that_begins_before_its_end(tmp_path: Path, end: float, count: int) -> None:
    """At 25 pictures a second the n-th begins at n / 25: 37 pictures begin before 1.48 s, 38 before 1.5 s."""
    write_clock_video(tmp_path / "v.avi", ClockVideo(times_ms=range(60), codec="mpeg4"))
    write_clock_video(tmp_path / "v.mp4", ClockVideo(times_ms=range(0, 2400, 40)))
    for source in ("v.avi", "v.mp4"):
        assert [number for _, number in shown(files(tmp_path, clip(source, 0.0, end))[0])] == list(range(count))


def test_a_region_is_cut_and_large_pictures_scaled(root: Path) -> None:
    half = Region(x=0, y=0, width=0.5, height=1)
    (file,) = files(root, clip("plain", 0.0, 1.0, half), settings=MediaSettings(max_side=48))
    with av.open(io.BytesIO(file.mp4), "r") as container:
        (stream,) = container.streams.video
        assert (stream.width, stream.height) == (48, 48)
    (small,) = files(root, clip("plain", 0.0, 1.0), settings=MediaSettings(max_side=101))
    with av.open(io.BytesIO(small.mp4), "r") as container:
        assert (container.streams.video[0].width, container.streams.video[0].height) == (100, 50)


def test_a_turned_video_is_upright(root: Path) -> None:
    turned = ClockVideo(times_ms=range(0, 2000, 100), rate=10, rotation=90)
    write_clock_video(root / "turned.mp4", turned)
    (file,) = files(root, clip("turned", 0.0, 1.0))
    with av.open(io.BytesIO(file.mp4), "r") as container:
        frame = next(container.decode(video=0))
        assert (frame.width, frame.height, frame.rotation) == (HEIGHT, WIDTH, 0)


def test_pictures_follow_the_condition(root: Path) -> None:
    one = clip("plain", 2.0, 4.0)
    other = clip("mixed", 0.0, 2.0).model_copy(update={"id": "o", "group": "o"})
    plain = [number for _, number in shown(files(root, one)[0])]
    backwards = shown(files(root, one, "reversed")[0])
    assert [number for _, number in backwards] == plain[::-1]
    assert [time for time, _ in backwards] == [round(k / 10, 3) for k in range(20)]
    mixed = [number for _, number in shown(files(root, one, "shuffled")[0])]
    assert sorted(mixed) == plain != mixed
    assert [n for _, n in shown(files(root, one, "other-video", others=(one, other))[0])] == list(range(20))
    assert [number for _, number in shown(files(root, one, "single-frame")[0])] == [30]
    assert files(root, one, "text-only") == []


def test_every_condition_has_the_pictures_of_the_file(root: Path) -> None:
    """A clip that begins between two pictures: the one that is shown then, and each that begins in it."""
    one = clip("mixed", 0.15, 3.51)
    pictures = {name: [number for _, number in shown(files(root, one, name)[0])] for name in ("video", "reversed")}
    assert pictures == {"video": list(range(1, 36)), "reversed": list(range(35, 0, -1))}
    (black,) = files(root, one, "black")
    with av.open(io.BytesIO(black.mp4), "r") as container:
        assert len(list(container.decode(video=0))) == 35


def test_black_is_black_for_as_long(root: Path) -> None:
    (file,) = files(root, clip("plain", 2.0, 4.0), "black")
    with av.open(io.BytesIO(file.mp4), "r") as container:
        frames = list(container.decode(video=0))
    assert len(frames) == 20
    assert max(int(frame.to_ndarray(format="gray").max()) for frame in frames) <= 16
    assert frames[-1].time == pytest.approx(1.9)


def test_the_burned_in_time_is_in_the_file_as_well(root: Path) -> None:
    painted = MediaSettings(overlay="clip")
    one = clip("plain", 2.0, 4.0)
    with_time, without = (files(root, one, settings=settings)[0] for settings in (painted, None))
    lower = []
    for file in (with_time, without):
        with av.open(io.BytesIO(file.mp4), "r") as container:
            lower.append(next(container.decode(video=0)).to_ndarray(format="gray")[-12:, :44].astype(int))
    assert np.abs(lower[0] - lower[1]).mean() > 20


def test_several_clips_are_told_apart_and_images_come_as_frames(root: Path) -> None:
    two = item(VideoClip(source="plain", end=1.0), VideoClip(source="mixed", end=1.0))
    assert [(file.label, file.span) for file in files(root, two)] == [("clip 1", (0.0, 1.0)), ("clip 2", (0.0, 1.0))]
    Pillow.new("RGB", (10, 10)).save(root / "i.png")
    mixed = two.model_copy(update={"media": (*two.media, Image(source="i"))})
    assert files(root, mixed) == []


@pytest.mark.parametrize("number", range(6))
def test_another_video_is_none_of_the_item_s_own_clips(root: Path, number: int) -> None:
    write_clock_video(root / "other.mp4", ClockVideo(times_ms=range(0, 8000, 100), rate=10))
    parts = VideoClip(source="plain.mp4", start=0.0, end=2.0), VideoClip(source="mixed.mkv", start=0.0, end=2.0)
    asked = item(*parts).model_copy(update={"id": f"q{number}"})
    others = [
        asked.model_copy(update={"id": f"o{k}", "group": f"o{k}", "media": (part,)}) for k, part in enumerate(parts)
    ]
    third = clip("other.mp4", 5.0, 7.0).model_copy(update={"id": "third", "group": "third"})
    both = files(root, asked, "other-video", others=(*others, third, asked))
    assert len(both) == 2
    expected = [number for _, number in shown(files(root, third)[0])]
    assert [[number for _, number in shown(one)] for one in both] == [expected, expected]


def test_a_file_is_made_once_and_kept_like_frames(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = clip("mixed", 1.0, 3.0)
    made = [files(root, one, condition, cache="once") for condition in ("video", "reversed")]
    assert damaged(root / "once") == []

    def never(*_: object) -> bytes:
        raise AssertionError("made a second time")

    monkeypatch.setattr("proctor.media.mp4.cut", never)
    monkeypatch.setattr("proctor.media.mp4.from_jpegs", never)
    assert [files(root, one, condition, cache="once") for condition in ("video", "reversed")] == made


def test_making_a_file_is_media_time(root: Path) -> None:
    async def watched() -> float | None:
        watch = Stopwatch()
        with watch.running():
            shown = view(clip("mixed", 0.5, 2.5), "video", MediaLibrary(root, cache_dir=root / "timed"))
            assert isinstance(shown, ShowsFiles)
            await shown.files()
        return watch.timing().media_s

    assert (asyncio.run(watched()) or 0) > 0


def test_real_clips_keep_their_times(data: Path, tmp_path: Path) -> None:
    library = MediaLibrary(data / "video", MediaSettings(max_side=None), tmp_path)
    with av.open(str(data / "video" / "02_cups.mp4")) as source:
        expected = [frame.pts for frame in source.decode(video=0)]
        base = source.streams.video[0].time_base
    mp4 = library.mp4(VideoClip(source="02_cups"))
    with av.open(io.BytesIO(mp4), "r") as copy:
        found = [Fraction(frame.pts or 0) * Fraction(frame.time_base or 0) for frame in copy.decode(video=0)]
    assert base is not None
    assert found == [(pts or 0) * base for pts in expected]
