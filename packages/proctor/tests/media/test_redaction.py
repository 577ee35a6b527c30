"""Redacted videos: nothing of what was hidden is left, everything else is as it was, and the check sees each fault."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext

from proctor.core import InputError, Region
from proctor.media.mp4 import encode_pictures, redact
from proctor.media.redaction import (
    BLOCKS,
    MAX_DETAIL,
    CoarseError,
    Masking,
    Pixels,
    Redaction,
    hidden_box,
    mosaic,
    outside_of,
    planned,
    verify_redaction,
)
from proctor.media.video import inspect_video, metadata_of
from tests.support.clock_video import HEIGHT, WIDTH, ClockVideo, shown_by_decoding, write_clock_video
from tests.support.marked_video import SECRETS, write_marked_video

STEADY = range(0, 2000, 100)
UNEVEN = [0, 40, 80, 300, 340, 900, 1000, 1400, 1440, 1900]


def pixels_of(path: Path) -> list[Pixels]:
    with av.open(str(path)) as container:
        return [np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8) for frame in container.decode(video=0)]


@pytest.mark.parametrize(
    ("name", "video"),
    [
        ("a.mp4", ClockVideo(STEADY, rate=10, b_frames=2, keyint=5, audio_s=1.5)),
        ("a.mp4", ClockVideo(UNEVEN, b_frames=2, keyint=4)),
        ("a.mkv", ClockVideo(UNEVEN, audio_s=1.0)),
        ("a.mov", ClockVideo(STEADY, codec="libx265", rate=10, options={"x265-params": "log-level=none"})),
        ("a.webm", ClockVideo(STEADY, codec="libvpx-vp9", rate=10)),
        ("a.ts", ClockVideo(STEADY, rate=10, b_frames=2)),
    ],
    ids=["h264", "h264-uneven", "matroska", "hevc", "vp9", "transport-stream"],
)
def test_without_a_redaction_packets_are_copied_and_nothing_else_is(
    tmp_path: Path, name: str, video: ClockVideo
) -> None:
    source = write_marked_video(tmp_path / name, video)
    before = source.read_bytes()
    assert SECRETS["title"].encode() in before
    out = tmp_path / "out.mp4"
    done = redact(source, out)
    assert (done.how, done.check.pictures, done.check.worst_psnr) == ("copied", len(video.times_ms), None)
    assert shown_by_decoding(out) == shown_by_decoding(source)
    held, after = metadata_of(out), out.read_bytes()
    assert (held.audio_tracks, held.other_streams, held.chapters, held.tags) == (0, (), 0, ())
    assert [value for value in (*SECRETS.values(), "Closing", "x264 - core", "Lavf") if value.encode() in after] == []
    assert source.read_bytes() == before


def test_tags_that_every_file_has_tell_nothing_in_capitals_either(tmp_path: Path) -> None:
    """FFmpeg writes an MP4's names of tags into Matroska in capitals."""
    source = write_clock_video(tmp_path / "plain.mkv", ClockVideo(STEADY, rate=10))
    usual = {"HANDLER_NAME": "VideoHandler", "VENDOR_ID": "[0][0][0][0]"}
    remuxed = tmp_path / "a.mkv"
    with av.open(str(source)) as first, av.open(str(remuxed), "w") as second:
        copy = second.add_stream_from_template(first.streams.video[0])
        copy.metadata.update(usual | {"COMMENT": "ward 7"})
        second.metadata.update({"COMPATIBLE_BRANDS": "isomiso2avc1mp41", "MAJOR_BRAND": "isom", "MINOR_VERSION": "512"})
        for packet in first.demux(video=0):
            if packet.size:
                packet.stream = copy
                second.mux(packet)
    held = metadata_of(remuxed)
    assert sorted(name for name in held.tags if "DURATION" not in name and "ENCODER" not in name) == ["video: COMMENT"]
    assert not {*usual.values(), "isomiso2avc1mp41"} & set(held.values)
    assert redact(remuxed, tmp_path / "out.mp4").how == "copied"


def test_the_check_of_metadata_sees_what_the_made_video_holds(tmp_path: Path) -> None:
    source = write_marked_video(tmp_path / "a.mp4", ClockVideo(UNEVEN, audio_s=1.0))
    facts = inspect_video(source)
    assert (facts.held.audio_tracks, facts.held.chapters, facts.pictures) == (1, 2, len(UNEVEN))
    assert {"title", "comment", "artist", "chapter: title"} <= set(facts.held.tags)
    assert (facts.variable_rate, round(facts.longest_s, 3)) == (True, 0.56)
    steady = inspect_video(write_clock_video(tmp_path / "b.mp4", ClockVideo(STEADY, rate=10)))
    assert (steady.variable_rate, round(steady.fps, 6), steady.held.audio_tracks) == (False, 10.0, 0)


@pytest.mark.parametrize(
    ("name", "video"),
    [
        ("a.avi", ClockVideo(range(0, 800, 40), codec="mpeg4")),
        ("a.mp4", ClockVideo(range(0, 400, 40), codec="libsvtav1", options={"preset": "12"})),
        ("a.mp4", ClockVideo(range(0, 800, 40), rotation=90)),
        ("a.mkv", ClockVideo(UNEVEN, codec="libvpx", pixel_aspect=Fraction(4, 3))),
    ],
    ids=["avi", "av1", "rotated", "vp8"],
)
def test_what_cannot_be_copied_is_encoded_and_looks_the_same(tmp_path: Path, name: str, video: ClockVideo) -> None:
    source = write_clock_video(tmp_path / name, video)
    done = redact(source, tmp_path / "out.mp4")
    assert done.how == "encoded"
    assert done.check.worst_psnr is None or done.check.worst_psnr > 35  # black and white may come out the same
    first, second = inspect_video(source), inspect_video(tmp_path / "out.mp4")
    assert (second.width, second.height, second.pictures) == (first.width, first.height, first.pictures)
    assert second.duration_s == pytest.approx(first.duration_s, abs=0.05)


def test_pictures_shown_at_any_moment_of_a_span_are_hidden_and_times_stay(tmp_path: Path) -> None:
    """Ten pictures a second; 0.55 to 1.15 s shows pictures 5 (from 0.5) to 11."""
    source = write_clock_video(tmp_path / "a.mp4", ClockVideo(STEADY, rate=10, b_frames=2))
    out = tmp_path / "out.mp4"
    done = redact(source, out, [Redaction(start=0.55, end=1.15, how="black")])
    dark = [bool(one.max() < 24) for one in pixels_of(out)]
    assert dark == [5 <= k <= 11 for k in range(20)]
    assert (done.how, done.check.hidden, done.check.pictures) == ("encoded", 7, 20)
    with av.open(str(out)) as container:
        times = [float(frame.time or 0) for frame in container.decode(video=0)]
    assert times == pytest.approx([k / 10 for k in range(20)], abs=1e-6)
    assert [(one.start, one.at) for one in done.pieces] == [(0.0, 0.0)]


def test_removed_pictures_are_cut_out_and_the_pieces_say_where_the_rest_stands(tmp_path: Path) -> None:
    source = write_clock_video(tmp_path / "a.mp4", ClockVideo(STEADY, rate=10))
    out = tmp_path / "out.mp4"
    cut = [Redaction(end=0.25, how="remove"), Redaction(start=1.0, end=1.5, how="remove")]
    done = redact(source, out, cut)
    found = [time for one in done.pieces for time in (one.start, one.end, one.at)]
    assert found == pytest.approx([0.3, 1.0, 0.0, 1.5, 2.0, 0.7])
    numbers = [*range(3, 10), *range(15, 20)]
    assert shown_by_decoding(out) == [(Fraction(k, 10), number) for k, number in enumerate(numbers)]


def test_sound_that_begins_first_moves_no_picture_but_the_first(tmp_path: Path) -> None:
    source = write_clock_video(tmp_path / "a.mkv", ClockVideo([200, 300, 400, 500], rate=10, audio_s=0.6))
    redact(source, tmp_path / "out.mp4")
    assert [float(time) for time, _ in shown_by_decoding(source)] == pytest.approx([0.2, 0.3, 0.4, 0.5])
    assert [float(time) for time, _ in shown_by_decoding(tmp_path / "out.mp4")] == pytest.approx([0, 0.3, 0.4, 0.5])


def noisy(path: Path, size: tuple[int, int] = (161, 121), pictures: int = 8) -> Path:
    """Detail that changes with every picture, in odd sides, so that hiding has something to hide."""
    rng = np.random.default_rng(3)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=4, options={"crf": "8", "preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = *size, "yuv444p"
        for _ in range(pictures):
            grain = np.kron(rng.integers(40, 216, (31, 41, 1)), np.ones((4, 4, 3)))[: size[1], : size[0]]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(grain.astype(np.uint8), format="rgb24")))
        container.mux(stream.encode(None))
    return path


def test_a_blurred_region_holds_blocks_that_change_once_a_second_and_the_rest_stays(tmp_path: Path) -> None:
    source, region = noisy(tmp_path / "a.mp4"), Region(x=0.25, y=0.25, width=0.5, height=0.5)
    done = redact(source, tmp_path / "out.mp4", [Redaction(region=region)])
    assert done.check.detail_left is not None
    assert done.check.detail_left < 0.005
    assert done.check.worst_psnr is not None
    assert done.check.worst_psnr > 30
    top, bottom, left, right = hidden_box(region, 121, 161)
    assert (top, bottom, left, right) == (30, 92, 40, 122)  # outwards to even pixels
    before, after = pixels_of(source), pixels_of(tmp_path / "out.mp4")
    assert after[0].shape == (122, 162, 3)  # made even by repeating the last line
    inside = [one[top + 4 : bottom - 4, left + 4 : right - 4].astype(int) for one in after]
    for k in (1, 2, 3, 5, 6, 7):
        assert np.abs(inside[k] - inside[k // 4 * 4]).mean() < 3  # one mosaic for each second of four pictures
    assert np.abs(inside[4] - inside[0]).mean() > 3
    assert np.abs(before[1][:20].astype(int) - after[1][:20, :161]).mean() < 6


def test_a_black_region_in_a_blurred_picture_stays_black_and_passes_the_check(tmp_path: Path) -> None:
    source, out = noisy(tmp_path / "a.mp4"), tmp_path / "out.mp4"
    region = Region(x=0.5, y=0.5, width=0.25, height=0.25)
    done = redact(source, out, [Redaction(region=region, how="black"), Redaction(end=1.0)])
    top, bottom, left, right = hidden_box(region, 121, 161)
    assert max(int(one[top + 2 : bottom - 2, left + 2 : right - 2].max()) for one in pixels_of(out)) < 24
    assert done.check.detail_left is not None
    assert done.check.hidden == done.check.pictures == 8


def test_a_mosaic_has_at_most_eight_blocks_along_its_longer_side() -> None:
    grain = np.random.default_rng(1).integers(0, 256, (90, 160, 3)).astype(np.uint8)
    assert len(np.unique(mosaic(grain).reshape(-1, 3), axis=0)) <= BLOCKS * BLOCKS
    assert mosaic(grain[:, :3]).shape == (90, 3, 3)
    hidden = Masking().hide(grain, outside_of(Region(x=0.5, y=0.5, width=0.5, height=0.5)), 0.0)
    assert hidden[:45].max() == 0
    assert hidden[:, :80].max() == 0
    assert np.array_equal(hidden[46:, 80:], grain[46:, 80:])


@pytest.mark.parametrize("size", [(50, 50), (36, 64), (37, 81), (6, 8), (1, 30)])
def test_the_mosaic_of_a_mosaic_is_itself_so_that_no_detail_seems_to_be_left(size: tuple[int, int]) -> None:
    smooth = np.add.outer(np.arange(size[0]) * 3, np.arange(size[1]) * 2)[..., None] + np.array([0, 20, 40])
    once = mosaic(smooth.astype(np.uint8))
    assert np.array_equal(mosaic(once), once)
    edges = np.flatnonzero(np.abs(np.diff(once.astype(int), axis=1)).sum((0, 2))) + 1
    assert not (edges % 2).any()  # two pixels share colour


def test_what_the_encoder_smooths_too_much_is_encoded_finer(tmp_path: Path) -> None:
    source, out = tmp_path / "a.mp4", tmp_path / "out.mp4"
    with av.open(str(source), "w") as container:
        stream = container.add_stream("libx264", rate=4, options={"crf": "4"})
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for k in range(4):  # a steep ramp across a small area: its blocks' edges are smoothed into the ramp again
            ramp = np.clip(128 + 6 * (np.arange(320) - 60 - k), 0, 255)
            pixels = np.repeat(np.broadcast_to(ramp, (240, 320))[..., None], 3, axis=2).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    small = Redaction(region=Region(x=40 / 320, y=0.25, width=24 / 320, height=24 / 240))
    plan = planned(source, [small])
    encode_pictures(source, tmp_path / "coarse.mp4", plan)
    with pytest.raises(CoarseError, match="of the detail that should be hidden"):
        verify_redaction(source, tmp_path / "coarse.mp4", plan)
    check = redact(source, out, [small]).check
    assert check.detail_left is not None
    assert check.detail_left <= MAX_DETAIL


def test_four_letters_that_stand_in_a_long_video_by_chance_are_no_signature(tmp_path: Path) -> None:
    source = write_clock_video(tmp_path / "a.mp4", ClockVideo(STEADY, rate=10))
    redact(source, tmp_path / "b.mp4")
    whole, plan = (tmp_path / "b.mp4").read_bytes(), planned(source, [])
    for text, held in ((b"Lavc;V\xc9\xb9", False), (b"xLavf:", False), (b"Lavc61.3.100", True), (b"Lavf60.16", True)):
        free = len(text) + 8  # a box that players skip
        (tmp_path / "b.mp4").write_bytes(whole + free.to_bytes(4) + b"free" + text)
        if held:
            with pytest.raises(InputError, match=f"found the text '{text.decode()[:6]}"):
                verify_redaction(source, tmp_path / "b.mp4", plan, exact=True)
        else:
            verify_redaction(source, tmp_path / "b.mp4", plan, exact=True)


Change = Callable[[int, Pixels], Pixels]


def written(path: Path, frames: Sequence[Pixels], change: Change, shift: float = 0.0, **tags: str) -> Path:
    quiet = BitStreamFilterContext("filter_units=remove_types=6", "h264")
    with av.open(str(path), "w", options={} if tags else {"fflags": "+bitexact"}) as container:
        container.metadata.update(tags)
        stream = container.add_stream("libx264", rate=10, options={"crf": "10"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        for k, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(change(k, pixels), format="rgb24")
            frame.pts, frame.time_base = round(100 * k + 1000 * shift * k), Fraction(1, 1000)
            container.mux([one for packet in stream.encode(frame) for one in quiet.filter(packet)])
        container.mux([one for packet in stream.encode(None) for one in quiet.filter(packet)])
    return path


def _gaussian(_number: int, pixels: Pixels) -> Pixels:
    import cv2

    blurred: Pixels = np.array(cv2.GaussianBlur(pixels, (0, 0), 6), dtype=np.uint8)
    return blurred


def _brighter_seventh(number: int, pixels: Pixels) -> Pixels:
    brighter = pixels.astype(int) + 60 * (number == 7)
    return np.asarray(np.clip(brighter, 0, 255), dtype=np.uint8)


@pytest.mark.parametrize(
    ("change", "extra", "message"),
    [
        (lambda k, pixels: pixels, {"title": "Jane"}, "found metadata 'encoder', metadata 'title'"),
        (lambda k, pixels: pixels, {"shift": 0.05}, "picture 20: found 2.850000 s, expected 1.900000 s"),
        (_brighter_seventh, {}, "at 0.700 s: found a picture "),
        (_gaussian, {"blurred": True}, "% of the detail that should be hidden, expected at most 2 %"),
    ],
    ids=["metadata", "times", "one-picture", "gaussian"],
)
def test_the_check_sees_each_fault(tmp_path: Path, change: Change, extra: dict[str, object], message: str) -> None:
    """A Gaussian blur keeps what can be undone: the slowest waves of what the blocks don't show."""
    source = write_clock_video(tmp_path / "a.mp4", ClockVideo(STEADY, rate=10))
    plan = planned(source, [Redaction()] if extra.pop("blurred", False) else [])
    result = written(tmp_path / "b.mp4", pixels_of(source), change, **extra)  # type: ignore[arg-type]
    with pytest.raises(InputError) as raised:
        verify_redaction(source, result, plan)
    assert message in str(raised.value)


def test_originals_are_never_written_to_and_impossible_redactions_are_refused(tmp_path: Path) -> None:
    source = write_clock_video(tmp_path / "a.mp4", ClockVideo(STEADY, rate=10))
    before = hashlib.sha256(source.read_bytes()).hexdigest()
    (tmp_path / "link.mp4").symlink_to(source)
    for out, redactions, message in (
        (source, [], "found the original, expected another file"),
        (tmp_path / "link.mp4", [], "found the original, expected another file"),
        (tmp_path / "o.mp4", [Redaction(start=9.0)], "found a redaction that begins at 9 s, expected one within the"),
        (tmp_path / "o.mp4", [Redaction(how="remove")], "found redactions that remove every picture"),
    ):
        with pytest.raises(InputError, match="found") as raised:
            redact(source, out, redactions)
        assert message in str(raised.value)
    assert hashlib.sha256(source.read_bytes()).hexdigest() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.mp4", "link.mp4"]
    with pytest.raises(ValueError, match="a region can't be removed"):
        Redaction(region=Region(x=0, y=0, width=1, height=1), how="remove")
    with pytest.raises(ValueError, match="the end is not after the start"):
        Redaction(start=2, end=1)


def test_a_broken_video_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    source = tmp_path / "a.mp4"
    whole = write_clock_video(tmp_path / "whole.mp4", ClockVideo(STEADY, rate=10)).read_bytes()
    source.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"a\.mp4"):
        redact(source, tmp_path / "out.mp4")
    assert not (tmp_path / "out.mp4").exists()
    assert not list(tmp_path.glob(".*.part"))


def columns(path: Path, planes: str) -> Path:
    """Red and blue columns of one pixel each, which only a video with colour for every pixel holds."""
    pixels = np.zeros((64, 96, 3), dtype=np.uint8)
    pixels[:, ::2, 0] = pixels[:, 1::2, 2] = 255
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=4, options={"crf": "1", "preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 96, 64, planes
        for _ in range(4):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(("planes", "copied"), [("yuv420p", "yuv420p"), ("yuv444p", "yuv444p")])
def test_a_copy_has_as_much_colour_as_its_original(tmp_path: Path, planes: str, copied: str) -> None:
    source, out = columns(tmp_path / "a.mp4", planes), tmp_path / "out.mp4"
    done = redact(source, out, [Redaction(region=Region(x=0.0, y=0.0, width=0.25, height=0.25), how="black")])
    assert done.check.worst_psnr is not None
    assert done.check.worst_psnr >= 30
    with av.open(str(out)) as container:
        assert container.streams.video[0].codec_context.pix_fmt == copied


def test_rounding_in_a_nearly_flat_area_is_no_detail(tmp_path: Path) -> None:
    """Where the original has detail of one or two levels, what an encoder rounds resembles it by chance."""
    rng, path = np.random.default_rng(1), tmp_path / "a.mp4"
    rows, columns = np.mgrid[:96, :128]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=4, options={"crf": "1", "preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
        for number in range(16):
            shade = 100 + 0.35 * columns + 0.2 * rows * (number % 3 - 1) + rng.normal(0, 1.5, (96, 128))
            pixels = np.rint(np.stack([shade, 0.8 * shade + 20, 0.5 * shade], -1)).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    for x in range(8, 104, 12):
        position = Region(x=x / 128, y=0.3, width=20 / 128, height=14 / 96)
        redact(path, tmp_path / "out.mp4", [Redaction(region=position)])
    encode_pictures(path, tmp_path / "bare.mp4", planned(path, []))
    with pytest.raises(CoarseError, match="of the detail that should be hidden"):  # nothing was hidden
        verify_redaction(path, tmp_path / "bare.mp4", planned(path, [Redaction(region=position)]))
