"""The frame served for a time is the last one at or before it, in every kind of file and sampling."""

from __future__ import annotations

import asyncio
import bisect
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from proctor.core import Frame, InputError, Item, Region, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, MediaSettings, Picture, view
from proctor.media.decode import VideoSource, decode_at
from proctor.media.video_clock import read_index
from tests.support.clock_video import ClockVideo, read_clock, shown_by_decoding, write_clock_video

KINDS = [("libx264", suffix) for suffix in (".mp4", ".mkv", ".mov", ".ts", ".avi")]
KINDS += [("mpeg4", ".mp4"), ("mpeg4", ".avi"), ("mpeg4", ".mkv"), ("libvpx-vp9", ".webm")]


def clip_item(source: str, start: float = 0.0, end: float | None = None, region: Region | None = None) -> Item:
    clip = VideoClip(source=source, start=start, end=end, region=region)
    return Item(id="q", group="g", question="?", answer=BinaryFormat(), media=(clip,))


def frames(
    library: MediaLibrary,
    item: Item,
    *,
    count: int | None = None,
    fps: float | None = None,
    window: tuple[float, float] | None = None,
) -> list[Frame]:
    return asyncio.run(view(item, "video", library).frames(count=count, fps=fps, window=window))


def expected(shown: list[tuple[Fraction, int]], time: float) -> int:
    """By search through all frames in order of time; before the first one, the first one."""
    times = [float(stamp) for stamp, _ in shown]
    return shown[max(0, bisect.bisect_right(times, time + 1e-6) - 1)][1]


@st.composite
def videos(draw: st.DrawFn) -> tuple[ClockVideo, str]:
    codec, suffix = draw(st.sampled_from(KINDS))
    number = draw(st.integers(10 if suffix == ".ts" else 1, 150))
    steps = st.just(40) if suffix == ".avi" or draw(st.booleans()) else st.integers(5, 400)
    gaps = draw(st.lists(steps, min_size=number - 1, max_size=number - 1))
    start = 0 if suffix == ".avi" else draw(st.sampled_from([0, 0, 1, 733, 5000]))
    video = ClockVideo(
        times_ms=list(accumulate(gaps, initial=start)),
        codec=codec,
        keyint=draw(st.integers(1, 300)),
        b_frames=0 if codec == "libvpx-vp9" else draw(st.integers(0, 3)),
        audio_s=draw(st.sampled_from([0.0, 0.0, 1.0])) if suffix in {".mp4", ".mkv"} else 0.0,
    )
    return video, suffix


@given(made=videos(), data=st.data())
@settings(
    max_examples=25, deadline=None, phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck)
)
def test_the_frame_for_a_time_is_the_last_one_at_or_before_it(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[ClockVideo, str], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("clock")
    video, suffix = made
    shown = shown_by_decoding(write_clock_video(folder / f"v{suffix}", video))
    assert [number for _, number in shown] == list(range(len(video.times_ms)))
    if suffix == ".avi":  # it tells no times of showing: the n-th picture is shown at n / rate
        shown = [(Fraction(number, video.rate), number) for number in range(len(shown))]
    written = [Fraction(time - video.times_ms[0], 1000) for time in video.times_ms]
    assert all(
        abs(stamp - shown[0][0] - true) <= Fraction(2, 1000) for (stamp, _), true in zip(shown, written, strict=True)
    )
    library = MediaLibrary(folder, cache_dir=folder / "cache")
    duration = library.probe("v").duration_s
    times = st.floats(0, duration, exclude_max=True)
    for _ in range(4):
        window = None
        if data.draw(st.booleans()):
            start, end = sorted((data.draw(times), data.draw(times)))
            window = (start, end) if start < end else None
        count, fps = data.draw(st.integers(1, 40)), data.draw(st.floats(0.2, 30))
        mode = data.draw(st.sampled_from(["count", "rate", "rate with a cap", "times"]))
        if mode == "times":
            at = data.draw(st.lists(times, min_size=1, max_size=20))
            jpegs = library.jpegs([Picture("v", time) for time in at])
            served = [Frame(jpeg, time, "") for jpeg, time in zip(jpegs, at, strict=True)]
        else:
            wish = {"count": {"count": count}, "rate": {"fps": fps}}.get(mode, {"count": count, "fps": fps})
            served = frames(library, clip_item("v"), window=window, **wish)  # type: ignore[arg-type]
            assert mode == "rate" or len(served) <= count
        assert served
        for frame in served:
            assert frame.time is not None
            assert read_clock(frame.jpeg) == expected(shown, frame.time), frame.time


def test_a_late_window_of_a_long_video_is_found_by_seeking(tmp_path: Path) -> None:
    video = ClockVideo(times_ms=range(0, 80000, 40), keyint=50, b_frames=2)
    write_clock_video(tmp_path / "v.mp4", video)
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    served = frames(library, clip_item("v"), fps=1.0, window=(70.02, 74.0))
    assert [frame.time for frame in served] == [70.02, 71.02, 72.02, 73.02]
    assert [read_clock(frame.jpeg) for frame in served] == [1750, 1775, 1800, 1825]


def test_sparse_frames_of_a_long_video(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mkv", ClockVideo(times_ms=range(0, 40000, 40), keyint=30, b_frames=3))
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    served = frames(library, clip_item("v"), count=5)
    assert [read_clock(frame.jpeg) for frame in served] == [100, 300, 500, 700, 900]


def test_a_picture_that_is_announced_and_never_shown_is_the_one_before(tmp_path: Path) -> None:
    """Unneeded pictures are skipped by the decoder; where a wanted one never comes, nothing may have been."""
    path = write_clock_video(tmp_path / "v.mp4", ClockVideo(times_ms=range(0, 4000, 40), keyint=50, b_frames=3))
    index = read_index(path)
    announced = [int(index.pts[number]) + 7 for number in (10, 30, 62, 99)]
    ghosts = replace(index, pts=np.sort(np.concatenate([index.pts, np.array(announced)])))
    wanted = sorted([*announced, int(index.pts[31]), int(index.pts[64])])
    with VideoSource(path) as source:
        shown = [(shot.pts, shot.frame.pts) for shot in decode_at(source, ghosts, wanted)]
    true = {pts: int(index.pts[index.pts.searchsorted(pts, side="right") - 1]) for pts in wanted}
    assert shown == [(pts, true[pts]) for pts in wanted]


def test_a_clips_frames_are_of_the_clip(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mp4", ClockVideo(times_ms=range(0, 10000, 100), rate=10))
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    item = clip_item("v", 2.0, 6.0)
    assert view(item, "video", library).span == (2.0, 6.0)
    assert [read_clock(frame.jpeg) for frame in frames(library, item, fps=1.0)] == [20, 30, 40, 50]
    assert [frame.label for frame in frames(library, item, count=2)] == ["t = 3.0 s", "t = 5.0 s"]
    cut = frames(library, item, fps=2.0, window=(5.0, 9.0))
    assert [(frame.time, read_clock(frame.jpeg)) for frame in cut] == [(5.0, 50), (5.5, 55)]
    assert frames(library, item, fps=2.0, window=(7.0, 9.0)) == []


def test_times_count_from_the_files_first_timestamp(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mp4", ClockVideo(times_ms=range(5000, 9000, 100)))
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    info = library.probe("v")
    assert (info.start_s, info.duration_s) == pytest.approx((5.0, 4.0), abs=0.1)
    assert [read_clock(frame.jpeg) for frame in frames(library, clip_item("v"), fps=1.0)] == [0, 10, 20, 30]


def test_without_wishes_the_default_rate_up_to_the_cap(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mp4", ClockVideo(times_ms=range(0, 10000, 100), rate=10))
    few = MediaLibrary(tmp_path, MediaSettings(max_frames=4), cache_dir=tmp_path / "cache")
    assert [frame.time for frame in frames(few, clip_item("v"))] == [1.25, 3.75, 6.25, 8.75]
    all_of_them = MediaLibrary(tmp_path, MediaSettings(fps=2.0), cache_dir=tmp_path / "cache")
    assert [frame.time for frame in frames(all_of_them, clip_item("v", 0, 2))] == [0.0, 0.5, 1.0, 1.5]
    capped = frames(all_of_them, clip_item("v", 0, 2), fps=2.0, count=2)
    assert [frame.time for frame in capped] == [0.5, 1.5]


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        ({"count": 0}, "frames: found count=0, expected at least 1"),
        ({"fps": 0.0}, "frames: found fps=0.0, expected a rate above 0"),
        ({"window": (3.0, 3.0)}, "frames: found window=(3.0, 3.0), expected its end after its start"),
    ],
)
def test_wishes_that_make_no_sense(tmp_path: Path, wish: dict[str, float], text: str) -> None:
    write_clock_video(tmp_path / "v.mp4", ClockVideo(times_ms=range(0, 1000, 100)))
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    with pytest.raises(InputError) as caught:
        asyncio.run(view(clip_item("v"), "video", library).frames(**wish))  # type: ignore[arg-type]
    assert str(caught.value) == text
