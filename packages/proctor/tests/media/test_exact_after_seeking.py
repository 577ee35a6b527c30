"""Where a seek lands after the keyframe that it was for, or a keyframe is not a whole picture: still the right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.media import MediaLibrary, Picture
from proctor.media.video import probe
from proctor.media.video_clock import read_index
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video

STEADY = range(0, 4000, 40)
REFRESHED = {"x264-params": "intra-refresh=1:keyint=30:bframes=0"}


@pytest.mark.parametrize(
    ("name", "video"),
    [
        ("v.ts", ClockVideo(STEADY, codec="mpeg2video", b_frames=2, keyint=15)),
        ("v.mpg", ClockVideo(STEADY, codec="mpeg2video", b_frames=2, keyint=15)),
        ("v.mpg", ClockVideo(STEADY, codec="mpeg2video", b_frames=2, keyint=15, options={"flags": "+ilme+ildct"})),
        ("v.mp4", ClockVideo(STEADY, options=REFRESHED)),
        ("v.mkv", ClockVideo(STEADY, options=REFRESHED)),
        ("v.avi", ClockVideo(STEADY, options=REFRESHED)),
        ("v.wmv", ClockVideo(STEADY, codec="wmv2", keyint=15)),
    ],
    ids=["transport-stream", "program-stream", "interlaced", "refresh-mp4", "refresh-matroska", "refresh-avi", "wmv"],
)
def test_each_picture_asked_for_alone_and_all_that_follow_it(tmp_path: Path, name: str, video: ClockVideo) -> None:
    """The n-th timestamp shows the number n, whatever was asked before."""
    index = read_index(write_clock_video(tmp_path / name, video))
    times = [index.seconds(pts) for pts in index.pts]
    assert len(times) == len(STEADY)
    assert len(index.keys) > 3
    for number, time in enumerate(times):
        alone = MediaLibrary(tmp_path, cache_dir=tmp_path / "alone")
        assert read_clock(alone.jpegs([Picture(name, time)])[0]) == number
    for first in (25, 47, 64):
        together = MediaLibrary(tmp_path, cache_dir=tmp_path / f"from {first}")
        shown = together.jpegs([Picture(name, time) for time in times[first:]])
        assert [read_clock(jpeg) for jpeg in shown] == list(range(first, len(times)))


def test_a_wmv_with_b_frames_has_decoding_times(tmp_path: Path) -> None:
    """Its packets' times are those of decoding: the third picture was shown as the first after the start."""
    path = write_clock_video(tmp_path / "v.wmv", ClockVideo(STEADY, codec="mpeg2video", b_frames=2, keyint=15))
    index = read_index(path)
    times = [index.seconds(pts) for pts in index.pts]
    assert times == pytest.approx([k / 25 for k in range(len(STEADY))])
    together = MediaLibrary(tmp_path, cache_dir=tmp_path / "all").jpegs([Picture("v.wmv", time) for time in times])
    assert [read_clock(jpeg) for jpeg in together] == list(range(len(STEADY)))
    alone = MediaLibrary(tmp_path, cache_dir=tmp_path / "alone")
    assert [read_clock(alone.jpegs([Picture("v.wmv", times[k])])[0]) for k in (1, 2, 50, 51)] == [1, 2, 50, 51]


def test_an_avi_with_b_frames_lasts_as_long_as_its_pictures(tmp_path: Path) -> None:
    video = ClockVideo(range(0, 2000, 40), codec="mpeg4", b_frames=2)
    path = write_clock_video(tmp_path / "v.avi", video)
    index, info = read_index(path), probe(path)
    assert len(index.pts) == 50
    assert info.duration_s == pytest.approx(2.0)
