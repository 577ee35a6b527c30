"""Videos as browsers play them: whose packets are copied, when each picture is shown, and what is left out."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from proctor.core import InputError, VideoClip
from proctor.media import MediaLibrary, Picture, damaged, inspect_video, kept, prune
from tests.support.clock_video import ClockVideo, read_clock, shown_by_decoding, write_clock_video
from tests.support.marked_video import SECRETS, write_marked_video
from tests.support.web_player import clock_kinds, write_clock_kinds

ENCODED = {"re-encoded", "re-encoded, turned"}


@pytest.mark.parametrize("kind", clock_kinds())
def test_each_picture_is_played_at_its_own_time(kind: str, tmp_path: Path) -> None:
    source = write_clock_kinds(tmp_path, [kind], 60)[kind]
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    index = library.index(source.name)
    played = library.playback(source.name)
    expected = [float((pts - int(index.pts[0])) * index.time_base) for pts in index.pts.tolist()]
    with av.open(str(played)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == ("vp9" if kind == "VP9" else "h264")
        copied = stream.codec_context.extradata == _extradata(source)
        found = [frame.time for frame in container.decode(stream)]
    lead = library.playback_lead(source.name)
    assert lead == (pytest.approx(0.56) if kind == "edit list" else 0.0)  # pictures 24 to 37 of 25 a second
    assert found[-len(expected) :] == pytest.approx([lead + time for time in expected], abs=1e-6)
    assert len(found) - len(expected) == round(lead * 25)
    assert copied == (kind not in ENCODED)
    if kind not in ENCODED:  # copies are turned by the player, as the original is
        own = [number for _, number in shown_by_decoding(played)]
        assert own[-len(expected) :] == [number for _, number in shown_by_decoding(source)]


def _extradata(path: Path) -> bytes | None:
    """The header of a video in the form in which an MP4 holds it."""
    copy = path.with_suffix(".header.mp4")
    with av.open(str(path)) as source, av.open(str(copy), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    with av.open(str(copy)) as container:
        return container.streams.video[0].codec_context.extradata


def test_the_pictures_before_the_first_visible_keyframe_are_the_right_ones(tmp_path: Path) -> None:
    source = write_clock_kinds(tmp_path, ["edit list"], 90)["edit list"]
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    truth = shown_by_decoding(source)
    assert truth[0][1] == 38  # the group begins with 24: the edit list hides 24 to 37
    jpegs = library.jpegs([Picture(source.name, float(time)) for time, _ in truth])
    assert [read_clock(jpeg) for jpeg in jpegs] == [number for _, number in truth]


def test_nothing_but_the_pictures_reaches_a_browser(tmp_path: Path) -> None:
    source = write_marked_video(tmp_path / "marked.mp4", ClockVideo(range(0, 2000, 40), b_frames=2, audio_s=1.0))
    played = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache").playback(source.name)
    facts = inspect_video(played)
    assert facts.held.audio_tracks == facts.held.chapters == 0
    assert (facts.held.tags, facts.held.other_streams) == ((), ())
    content = played.read_bytes()
    assert not [secret for secret in (*SECRETS.values(), "x264 - core") if secret.encode() in content]
    assert content.index(b"moov") < content.index(b"mdat")  # it plays while it loads


def test_a_video_is_made_once_and_made_again_when_it_was_removed(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "a.mp4", ClockVideo(range(0, 800, 40)))
    cache = tmp_path / "cache"
    first = MediaLibrary(tmp_path, cache_dir=cache).playback("a.mp4")
    before = first.stat().st_ino
    library = MediaLibrary(tmp_path, cache_dir=cache)
    assert library.playback("a.mp4") == first
    assert first.stat().st_ino == before
    assert [(one.path, one.size) for one in kept(cache)] == [(first, first.stat().st_size)]
    assert damaged(cache) == []
    whole = first.read_bytes()
    first.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert [one.path for one in damaged(cache)] == [first]
    first.unlink()
    assert library.playback("a.mp4").read_bytes() == whole


def test_a_video_that_is_watched_is_not_removed_to_make_room(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "a.mp4", ClockVideo(range(0, 800, 40)))
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    path = library.playback("a.mp4")
    assert prune(tmp_path / "cache", 0) == []
    assert path.is_file()
    del library
    assert [one.path for one in prune(tmp_path / "cache", 0)] == [path]


def test_what_is_no_video_is_not_played(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"no video")
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    with pytest.raises(InputError, match=r"a\.mp4: found an unreadable video"):
        library.playback("a.mp4")
    assert not list((tmp_path / "cache").rglob("*.mp4"))
    with pytest.raises(InputError, match="no such file"):
        library.playback(VideoClip(source="b.mp4").source)
