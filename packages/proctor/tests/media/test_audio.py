"""Sound: every stretch is exact to the sample, whatever keeps it; what can't be heard is told, and hostile files
end."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from proctor.core import InputError
from proctor.media.audio import audio_duration, cut_sound
from tests.support.sounds import CODECS, heard, hertz, sounding, tones, write_sound, write_sounds, write_video

BURSTS = [(1.25, 1.75, 1000.0), (2.0, 2.5, 2000.0)]


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
def test_a_stretch_of_a_wav_is_exact_to_the_sample(tmp_path: Path, rate: int) -> None:
    ramp = np.linspace(-0.9, 0.9, 3 * rate, dtype=np.float32)
    path = write_sound(tmp_path / "ramp.wav", ramp, rate)
    got = heard(cut_sound(path, (0.5, 1.75)))
    assert len(got) == 20_000
    expected = np.interp(0.5 + np.arange(20_000) / 16_000, np.arange(len(ramp)) / rate, ramp)
    edge, bound = (0, 2 / 32768) if rate == 16_000 else (200, 2e-3)  # a filter knows nothing beyond the cut
    assert np.max(np.abs(got - expected)[edge : len(got) - edge]) < bound


@pytest.mark.parametrize("suffix", sorted(CODECS))
def test_every_format_is_cut_where_it_sounds(tmp_path: Path, suffix: str) -> None:
    path = write_sound(tmp_path / f"a{suffix}", tones(3.0, BURSTS))
    assert audio_duration(path) == pytest.approx(3.0, abs=0.03)
    got = heard(cut_sound(path, (1.0, 1.9)))
    assert len(got) == 14_400
    assert sounding(got) == pytest.approx((0.25, 0.75), abs=0.002)
    assert hertz(got[4000:12_000]) == pytest.approx(1000, abs=4)
    got = heard(cut_sound(path, (1.9, 2.6)))
    assert sounding(got) == pytest.approx((0.1, 0.6), abs=0.002)
    assert hertz(got[1600:9600]) == pytest.approx(2000, abs=4)


@pytest.mark.parametrize("name", ["v.mkv", "v.mp4"])
@pytest.mark.parametrize(
    ("tracks", "right"),
    [
        ([(1, False), (1, True)], 1),
        ([(1, True), (2, True)], 1),
        ([(2, True), (1, True)], 0),
        ([(1, True), (1, True)], 0),
    ],
)
def test_the_default_track_is_heard_then_the_one_with_most_channels(
    tmp_path: Path, name: str, tracks: list[tuple[int, bool]], right: int
) -> None:
    """The first one was, as a commentary or a silent one."""
    written = [
        (tones(2.0, [(0.0, 2.0, 1000.0 * (number + 1))]), channels, default)
        for number, (channels, default) in enumerate(tracks)
    ]
    path = write_sounds(tmp_path / name, *written)
    assert hertz(heard(cut_sound(path, (0.5, 1.5)))) == pytest.approx(1000 * (right + 1), abs=4)


@pytest.mark.parametrize("suffix", sorted(CODECS))
def test_a_far_stretch_is_sought_and_is_the_same(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    noise = np.convolve(rng.normal(0, 0.1, 16_000 * 30), np.ones(8) / 8, "same").astype(np.float32)
    path = write_sound(tmp_path / f"far{suffix}", noise, 16_000)
    sought = heard(cut_sound(path, (25.0625, 26.0)))
    monkeypatch.setattr("proctor.media.audio._FAR_S", 1e9)
    assert np.max(np.abs(sought - heard(cut_sound(path, (25.0625, 26.0))))) <= 2 / 32768


@pytest.mark.parametrize(
    ("name", "codec"), [("v.mp4", "aac"), ("v.mkv", "libopus"), ("v.mkv", "pcm_s16le"), ("v.mov", "aac")]
)
@pytest.mark.parametrize("offset", [0.0, 0.6])
def test_the_sound_of_a_video_keeps_its_place(tmp_path: Path, name: str, codec: str, offset: float) -> None:
    """A sound that begins 0.6 s after the pictures is heard 0.6 s later; before it there is silence."""
    path = write_video(tmp_path / name, 4.0, tones(3.0, BURSTS), codec=codec, offset=offset)
    got = heard(cut_sound(path, (0.0, 3.5)))
    assert len(got) == 56_000
    assert sounding(got[: round((1.9 + offset) * 16_000)]) == pytest.approx((1.25 + offset, 1.75 + offset), abs=0.003)
    part = heard(cut_sound(path, (1.0 + offset, 1.9 + offset)))
    assert sounding(part) == pytest.approx((0.25, 0.75), abs=0.003)


def test_nothing_from_outside_the_stretch_is_in_it(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", tones(3.0, [(0.0, 1.0, 3000.0), (1.0, 2.0, 500.0), (2.0, 3.0, 3000.0)]))
    spectrum = np.abs(np.fft.rfft(heard(cut_sound(path, (1.0, 2.0)))))
    assert spectrum[2900:3100].max() < spectrum[500] / 500


def test_channels_are_mixed_to_one(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "s.flac", tones(1.0, [(0.2, 0.8, 440.0)]), channels=2)
    assert sounding(heard(cut_sound(path, (0.0, 1.0)))) == pytest.approx((0.2, 0.8), abs=0.002)


def test_what_can_not_be_heard_is_a_fault(tmp_path: Path) -> None:
    silent = write_sound(tmp_path / "silent.wav", tones(2.0, []))
    with pytest.raises(
        InputError, match=r"silent.wav: found silence from 0 s to 2 s, expected sound that can be heard$"
    ):
        cut_sound(silent, (0.0, 2.0))
    mute = write_video(tmp_path / "mute.mp4", 1.0, None)
    with pytest.raises(InputError, match=r"mute.mp4: found no audio track, expected sound$"):
        cut_sound(mute, (0.0, 1.0))
    short = write_video(tmp_path / "short.mp4", 4.0, tones(1.0, [(0.0, 1.0, 440.0)]))
    with pytest.raises(
        InputError, match=r"short.mp4: found no sound from 2 s to 3 s, expected a stretch of its sound$"
    ):
        cut_sound(short, (2.0, 3.0))


def test_a_long_sound_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", tones(1.0, [(0.0, 1.0, 440.0)]))
    with pytest.raises(
        InputError, match=r"a.wav: found 600.5 s of sound, expected at most 600 s: cut it with start and end$"
    ):
        cut_sound(path, (0.0, 600.5))


@pytest.mark.parametrize("suffix", [".wav", ".mp3", ".flac"])
def test_a_truncated_file_is_a_fault(tmp_path: Path, suffix: str) -> None:
    path = write_sound(tmp_path / f"t{suffix}", tones(6.0, [(0.0, 6.0, 440.0)]))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    with pytest.raises(
        InputError, match=rf"t{suffix}: found a truncated sound: it ends at \d\.\d s, expected 6\.0 s as its"
    ):
        audio_duration(path)


def _header(rate: int, data: int) -> bytes:
    form = struct.pack("<HHIIHH", 1, 1, rate, rate * 2 % 2**32, 2, 16)
    return (
        b"RIFF"
        + struct.pack("<I", 36 + data)
        + b"WAVEfmt "
        + struct.pack("<I", 16)
        + form
        + b"data"
        + struct.pack("<I", data)
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.wav", b""),
        ("text.wav", b"no sound at all\n" * 100),
        ("list.wav", b"ffconcat version 1.0\nfile /etc/passwd\n"),
        ("playlist.mp3", b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n"),
        ("rate.wav", _header(4_000_000_000, 1000) + bytes(1000)),
        ("zero.wav", _header(0, 1000) + bytes(1000)),
        ("head.wav", _header(16_000, 2_000_000_000)),
        ("ogg.ogg", b"OggS" + bytes(200)),
        ("m4a.m4a", b"\0\0\0\x18ftypM4A \0\0\0\0" + b"\xff\xff\xff\xffmoov" * 20),
        ("flac.flac", b"fLaC\x00\x00\x00\x22" + b"\xff" * 34),
    ],
)
def test_what_is_no_sound_is_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: found ") as told:
        cut_sound(path, (0.0, min(1.0, audio_duration(path))))
    assert "\n" not in str(told.value)


def test_a_damaged_part_is_passed_over_and_a_recording_with_gaps_is_a_fault(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.mp3", tones(6.0, [(0.0, 6.0, 440.0)]))
    content = path.read_bytes()
    path.write_bytes(content[:3000] + b"\xff" * 400 + content[3400:])
    assert len(heard(cut_sound(path, (0.0, 2.0), whole=True))) == 32_000
    path.write_bytes(content[:1200] + b"\x55" * (len(content) - 1200))
    found = r"a.mp3: found 0\.\d s that can be decoded of 2\.0 s, expected a recording without gaps$"
    with pytest.raises(InputError, match=found):
        cut_sound(path, (0.0, 2.0), whole=True)
