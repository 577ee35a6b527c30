"""Which picture a timestamp has: one by one, all at once and by plain decoding, in files whose times are wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from proctor.core import InputError
from proctor.media import MediaLibrary, Picture
from proctor.media.decode import VideoSource, decode_at
from proctor.media.timestamps import corrected, tell_the_order
from proctor.media.video_clock import FrameIndex, read_index
from tests.support.clock_video import ClockVideo, number_in, read_clock, write_clock_video

PICTURES = 32
TIMES = range(0, 40 * PICTURES, 40)
SEEDS = {
    "plain.mp4": ClockVideo(TIMES, keyint=10),
    "b.mp4": ClockVideo(TIMES, keyint=12, b_frames=3),
    "one-group.mp4": ClockVideo(TIMES, keyint=250, b_frames=3),
    "open-groups.mp4": ClockVideo(TIMES, keyint=12, b_frames=3, options={"x264-params": "open-gop=1"}),
    "b.mkv": ClockVideo(TIMES, keyint=12, b_frames=2),
    "one-group.mkv": ClockVideo(TIMES, keyint=250),
    "vp9.webm": ClockVideo(TIMES, keyint=10, codec="libvpx-vp9"),
    "vp8.webm": ClockVideo(TIMES, keyint=250, codec="libvpx"),
    "b.ts": ClockVideo(TIMES, keyint=12, b_frames=2),
}
_TABLES = (b"stts", b"ctts", b"stss", b"elst", b"mdhd", b"stsc")
MUTANTS = 6


def spoiled(path: Path, source: Path, rng: random.Random) -> bool:
    """One picture with another time, near or far; or one bit of a table of times that is flipped. Whether it could be
    written."""
    tables = [position for name in _TABLES if (position := source.read_bytes().find(name)) > 0]
    if source.suffix == ".mp4" and rng.random() < 0.5:
        raw = bytearray(source.read_bytes())
        start = rng.choice(tables)
        size = int.from_bytes(raw[start - 4 : start])
        raw[rng.randrange(start + 4, start - 4 + size)] ^= 1 << rng.randrange(8)
        path.write_bytes(raw)
        return True
    number = rng.randrange(1, PICTURES)
    near = number / 25 + rng.choice((-3, -2, -1, 1, 2, 3, 5, 8)) / 25 + rng.choice((0.0, 0.013))
    return with_odd_time(source, path, number, max(0.001, rng.choice((9.0, rng.random() * 1.28, near))))


def with_odd_time(source: Path, out: Path, number: int, seconds: float) -> bool:
    """The same packets; the one of this number in the order of decoding is to be shown at another time."""
    try:
        with av.open(str(source)) as first, av.open(str(out), "w") as second:
            copy = second.add_stream_from_template(first.streams.video[0])
            for position, packet in enumerate(packet for packet in first.demux(video=0) if packet.size):
                if position == number:
                    packet.pts = int(seconds / packet.time_base)
                    packet.dts = packet.dts if packet.dts is not None and packet.dts <= packet.pts else None
                packet.stream = copy
                second.mux(packet)
    except av.FFmpegError:
        return False  # the writer refuses such a time
    return True


def served(path: Path, index: FrameIndex, requests: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """By timestamp the numbers that requests to one reader gave; a request ends with an error of the file."""
    found: dict[int, set[int]] = {}
    source = VideoSource(path)
    for wanted in requests:
        try:
            for shot in decode_at(source, index, wanted):
                found.setdefault(shot.pts, set()).add(
                    number_in(np.asarray(shot.frame.to_ndarray(format="gray"), dtype=np.uint8))
                )
        except InputError as error:
            check_line(path, error)
            source.close()
            source = VideoSource(path)
    source.close()
    return found


def check_line(path: Path, error: InputError) -> None:
    assert str(error).startswith(f"{path}: ")
    assert "\n" not in str(error)


def decoded(path: Path) -> dict[int, int]:
    found: dict[int, int] = {}
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            if frame.pts is not None:
                found.setdefault(frame.pts, number_in(np.asarray(frame.to_ndarray(format="gray"), dtype=np.uint8)))
    return found


@pytest.mark.parametrize("name", SEEDS)
def test_one_by_one_is_all_at_once_is_plain_decoding(name: str, tmp_path: Path) -> None:
    """What is served of a spoiled file is the same in any company; all else is one line about the file."""
    source = write_clock_video(tmp_path / name, SEEDS[name])
    rng, path = random.Random(name), tmp_path / f"spoiled-{name}"
    for _ in range(MUTANTS):
        if not spoiled(path, source, rng):
            continue
        try:
            index = read_index(path)
        except InputError as error:
            check_line(path, error)
            continue
        stamps = [int(pts) for pts in index.pts]
        alone = [[pts] for pts in stamps]
        rng.shuffle(alone)
        found = served(path, index, [*alone, stamps, stamps[1::3]])
        assert all(len(numbers) == 1 for numbers in found.values())
        plain = decoded(path) if index.stamped else {}
        assert all(found[pts] == {plain[pts]} for pts in found if pts in plain)
    index = read_index(source)
    stamps = [int(pts) for pts in index.pts]
    assert served(source, index, [stamps]) == {pts: {number} for number, pts in enumerate(stamps)}


@pytest.mark.parametrize("name", ["v.webm", "v.mkv", "v.mp4"])
@pytest.mark.parametrize("keyint", [25, 250])
@pytest.mark.parametrize("b_frames", [0, 3])
def test_one_picture_far_from_its_position_is_refused(name: str, keyint: int, b_frames: int, tmp_path: Path) -> None:
    """It says 9 s instead of about 1.2 s: pictures up to there were taken for the one before it, silently."""
    codec = "libvpx-vp9" if name == "v.webm" else "libx264"
    video = ClockVideo(range(0, 4000, 40), keyint=keyint, codec=codec, b_frames=0 if name == "v.webm" else b_frames)
    source = write_clock_video(tmp_path / f"plain{Path(name).suffix}", video)
    assert with_odd_time(source, tmp_path / name, 30, 9.0)
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    for times in ([1.6], [k / 25 for k in range(100)]):
        with pytest.raises(InputError, match=r": found timestamps that go back to 1\.\d+ s after 9\.0\d+ s, expected"):
            library.jpegs([Picture(name, time) for time in times])


def test_a_picture_a_little_out_of_order_is_put_back(tmp_path: Path) -> None:
    """Without B-frames the order of decoding is that of showing: the third of three that disagree is the odd one."""
    source = write_clock_video(tmp_path / "plain.mkv", ClockVideo(range(0, 4000, 40), keyint=25))
    assert with_odd_time(source, tmp_path / "v.mkv", 30, 1.333)
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    jpegs = library.jpegs([Picture("v.mkv", 0.001 + k / 25) for k in range(100)])
    assert [read_clock(jpeg) for jpeg in jpegs] == list(range(100))


def test_with_b_frames_it_is_an_error_where_its_position_decides(tmp_path: Path) -> None:
    source = write_clock_video(tmp_path / "plain.mkv", ClockVideo(range(0, 4000, 40), keyint=25, b_frames=2))
    with av.open(str(source)) as container:
        stamps = [packet.pts for packet in container.demux(video=0) if packet.size]
    assert with_odd_time(source, tmp_path / "v.mkv", stamps.index(1200), 1.333)
    for times, right in (([1.16], [29]), ([1.24], [31]), ([1.334], [30]), ([1.36], [34]), ([3.0], [75])):
        library = MediaLibrary(tmp_path, cache_dir=tmp_path / f"cache {times}")
        assert [read_clock(jpeg) for jpeg in library.jpegs([Picture("v.mkv", time) for time in times])] == right
    for times in ([1.24, 1.334], [1.0, 1.24, 1.334, 1.5]):
        library = MediaLibrary(tmp_path, cache_dir=tmp_path / f"cache {times}")
        with pytest.raises(InputError) as caught:
            library.jpegs([Picture("v.mkv", time) for time in times])
        assert str(caught.value) == (
            f"{tmp_path / 'v.mkv'}: after 1.333 s: found a timestamp that goes back to 1.240 s, expected pictures in the "
            "order of their times"
        )


@pytest.mark.parametrize("keyint", [12, 250])
def test_an_mp4_that_has_lost_its_offsets_shows_its_pictures_in_order(keyint: int, tmp_path: Path) -> None:
    """Without `ctts` all times are those of decoding: picture 3 was shown as the first after the start."""
    video = ClockVideo(range(0, 4000, 40), keyint=keyint, b_frames=3)
    raw = write_clock_video(tmp_path / "plain.mp4", video).read_bytes()
    (tmp_path / "v.mp4").write_bytes(raw.replace(b"ctts", b"free").replace(b"edts", b"free"))
    index = read_index(tmp_path / "v.mp4")
    times = [index.seconds(int(pts)) for pts in index.pts]
    assert np.diff(times) == pytest.approx(0.04)
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    assert [read_clock(jpeg) for jpeg in library.jpegs([Picture("v", time) for time in times])] == list(range(100))
    alone = MediaLibrary(tmp_path, cache_dir=tmp_path / "alone")
    assert [read_clock(alone.jpegs([Picture("v", times[k])])[0]) for k in (1, 2, 50)] == [1, 2, 50]


def test_the_fewest_timestamps_are_corrected() -> None:
    """One that is too late among three that are right: the one is corrected, not the three."""
    stamps, finer = corrected([0, 40, 170, 120, 160, 200], Fraction(40))
    assert (stamps.tolist(), finer) == ([0, 40, 80, 120, 160, 200], 1)


@pytest.mark.parametrize(
    ("given", "keys", "reordered", "told"),
    [
        ([0, 1, 2, 3], [0], False, True),
        ([0, 3, 1, 2], [0], False, False),
        ([0, 3, 1, 2, 6, 4, 5], [0], True, True),
        ([0, 3, 1, 2, 6, 4, 5], [0, 4], True, True),  # an open group: 4 and 5 are shown before their keyframe
        ([0, 3, 1, 2, 6, 4, 5], [0, 3], True, False),  # 2 would be before 3, which was decoded before its keyframe
        ([0, 99, *range(1, 99)], [0], True, False),
        ([*range(1, 99), 0], [0], True, False),
    ],
)
def test_what_the_packets_say_of_the_order(given: list[int], keys: list[int], reordered: bool, told: bool) -> None:
    at_keys = np.isin(np.arange(len(given)), keys)
    assert tell_the_order(np.array(given), at_keys, reordered=reordered) == told
