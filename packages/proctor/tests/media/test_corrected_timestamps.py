"""Timestamps that are repeated, missing or wrong move no other picture; time that goes back is refused."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from proctor.core import InputError
from proctor.media import MediaLibrary, Picture, Redaction, redact
from proctor.media.timestamps import corrected
from proctor.media.video_clock import read_index
from tests.support.clock_video import ClockVideo, read_clock, shown_by_decoding, write_clock_video


@pytest.mark.parametrize(
    ("given", "expected", "finer"),
    [
        ([0, 40, 80], [0, 40, 80], 1),
        ([0, 40, 40, 80], [0, 40, 41, 80], 1),
        ([0, 40, 40, 40, 80], [0, 40, 41, 42, 80], 1),
        ([0, None, 80, None, None, 200], [0, 40, 80, 120, 160, 200], 1),
        ([None, None, 90, 130], [10, 50, 90, 130], 1),
        ([None, None, 1, 41], [-79, -39, 1, 41], 1),
        ([0, 40, None, None], [0, 40, 80, 120], 1),
        ([0, 3600, 7200, 0, 14400, 18000, 10800, 25200], [3600 * k for k in range(8)], 1),
        ([3, 3, 4, 5], [30, 31, 40, 50], 10),
        ([3, None, None, 4], [30, 33, 36, 40], 10),
        ([7, 7, None], [7, 8, 48], 1),
        ([None, 5], [-35, 5], 1),
        ([0, 40, 80, 40, 80, 120], [0, 40, 80, 81, 82, 120], 1),
        ([7, None, 7, 8], [70, 71, 72, 80], 10),
    ],
)
def test_each_is_corrected_between_its_neighbours(given: list[int | None], expected: list[int], finer: int) -> None:
    usual = Fraction(3600 if 3600 in given else 40)
    stamps, found = corrected(given, usual)
    assert (stamps.tolist(), found) == (expected, finer)


@drawn(st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=40).filter(any))
def test_whatever_is_given_they_ascend(given: list[int | None]) -> None:
    stamps, finer = corrected(given, None)
    assert len(stamps) == len(given)
    assert np.all(np.diff(stamps) > 0)
    assert finer <= 100


@drawn(st.lists(st.integers(1, 90), min_size=2, max_size=60), st.data())
def test_what_is_told_stays_and_all_ascend(gaps: list[int], data: st.DataObject) -> None:
    told = np.cumsum(gaps).tolist()
    lost = data.draw(st.sets(st.integers(0, len(told) - 1), max_size=len(told) - 1))
    stamps, finer = corrected([None if k in lost else stamp for k, stamp in enumerate(told)], Fraction(40))
    assert np.all(np.diff(stamps) > 0)
    assert all(stamps[k] == told[k] * finer for k in range(len(told)) if k not in lost)


UNEVEN = [*range(0, 1200, 40), *range(2800, 4000, 40)]


def restamped(source: Path, out: Path, shift: Callable[[int], int]) -> Path:
    """The same packets with each time of showing changed by this many ticks; times of decoding well before."""
    options = {"avoid_negative_ts": "disabled"}
    with av.open(str(source)) as first, av.open(str(out), "w", options=options) as second:
        copy = second.add_stream_from_template(first.streams.video[0])
        for number, packet in enumerate(packet for packet in first.demux(video=0) if packet.size):
            assert packet.pts is not None
            packet.dts, packet.pts = packet.pts - 1000, packet.pts + shift(number)
            packet.stream = copy
            second.mux(packet)
    return out


def served(path: Path, times: Sequence[float], cache: Path) -> list[int]:
    jpegs = MediaLibrary(path.parent, cache_dir=cache).jpegs([Picture(path.name, time) for time in times])
    return [read_clock(jpeg) for jpeg in jpegs]


def test_one_repeated_timestamp_moves_no_other_picture(tmp_path: Path) -> None:
    """After a gap of 1.6 s, picture 36 has the timestamp of picture 35; at that time the later one is shown."""
    source = write_clock_video(tmp_path / "plain.mkv", ClockVideo(UNEVEN))
    path = restamped(source, tmp_path / "v.mkv", lambda number: -40 * (number == 36))
    with av.open(str(path)) as container:
        stamps = [frame.pts or 0 for frame in container.decode(video=0)]
    assert (len(stamps), stamps[35], stamps[36]) == (60, stamps[36], 3000)
    times = [*(0.013 + 0.04 * k for k in range(95)), 3.0]
    right = [bisect.bisect_right(stamps, 1000 * time) - 1 for time in times[:-1]]
    assert served(path, times, tmp_path / "cache") == [*right, 35]
    assert right[75] == 36
    out = tmp_path / "out.mp4"
    done = redact(path, out, [Redaction(start=2.81, end=2.9, how="black")])
    assert (done.check.hidden, done.check.pictures) == (3, 60)
    with av.open(str(out)) as container:
        dark = [frame.to_ndarray(format="gray").max() < 24 for frame in container.decode(video=0)]
    assert [number for number, one in enumerate(dark) if one] == [30, 31, 32]


def test_pictures_before_the_clock_begins_have_no_timestamps_in_matroska(tmp_path: Path) -> None:
    """Begun 0.5 s early: the first 12 pictures are over at 0, picture 13 begins at 0.02 s."""
    source = write_clock_video(tmp_path / "plain.mkv", ClockVideo(range(0, 4000, 40)))
    path = restamped(source, tmp_path / "v.mkv", lambda _: -500)
    index = read_index(path)
    assert [index.seconds(int(pts)) for pts in index.pts[12:15]] == pytest.approx([-0.04, 0, 0.04], abs=1e-6)
    assert served(path, [0.0, 0.01, 1.0, 3.0], tmp_path / "cache") == [13, 13, 38, 88]
    done = redact(path, tmp_path / "out.mp4", [Redaction(start=1.0, end=1.03, how="remove")])
    assert [round(piece.at, 3) for piece in done.pieces] == [0.0, 1.0]
    assert [number for _, number in shown_by_decoding(tmp_path / "out.mp4")] == [*range(13, 38), *range(39, 100)]


@pytest.mark.parametrize("start", [0, 53])
def test_joined_recordings_are_refused(tmp_path: Path, start: int) -> None:
    """The second one's times lie among the first one's: equal, or between them."""
    first = write_clock_video(tmp_path / "a.ts", ClockVideo(range(0, 4000, 40), keyint=25)).read_bytes()
    second = write_clock_video(tmp_path / "b.ts", ClockVideo(range(start, 4000 + start, 40), keyint=25)).read_bytes()
    (tmp_path / "v.ts").write_bytes(first + second)
    with pytest.raises(InputError) as caught:
        read_index(tmp_path / "v.ts")
    assert str(caught.value).startswith(f"{tmp_path / 'v.ts'}: picture 101: found timestamps that go back to ")
    assert str(caught.value).endswith(" s, expected times that go on (joined recordings: encode them as one)")


def test_streams_without_timestamps_are_counted(tmp_path: Path) -> None:
    with av.open(str(write_clock_video(tmp_path / "v.mp4", ClockVideo(range(0, 2000, 40))))) as source:
        stream = source.streams.video[0]
        annex_b = av.bitstream.BitStreamFilterContext("h264_mp4toannexb", stream)
        raw = b"".join(bytes(one) for packet in source.demux(stream) for one in annex_b.filter(packet))
    (tmp_path / "raw.h264").write_bytes(raw)
    index = read_index(tmp_path / "raw.h264")
    assert (index.time_base, index.pts.tolist()) == (Fraction(1, 25), list(range(50)))
    assert served(tmp_path / "raw.h264", [0.0, 0.5, 1.99], tmp_path / "cache") == [0, 12, 49]
