"""What the container says, everywhere alike: mirrors, rotations, cropping, tracks, transparency, dynamic range."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from proctor.core import InputError, Item, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, MediaSettings, Picture, Redaction, inspect_video, redact
from proctor.media.container import Cropping, _matroska_cropping, turn_of
from proctor.media.decode import sampled
from proctor.media.video import probe, read_container
from tests.support.container_video import (
    HEIGHT,
    ORIENTATIONS,
    WIDTH,
    Pixels,
    Track,
    in_sample_entry,
    matrix,
    rotated,
    scene,
    with_cropping,
    write_tracks,
)
from tests.support.means import missing
from tests.support.program import proctor

NEAR = 14  # of 255, on average over a smooth picture after JPEG or a second encoding


@pytest.fixture(scope="module")
def ffmpeg() -> str:
    found = shutil.which("ffmpeg")
    if found is None:
        missing("ffmpeg is not here (Debian: apt-get install ffmpeg)")
    return str(found)


def by_ffmpeg(ffmpeg: str, path: Path, number: int = 0) -> Pixels:
    """The picture of this number as the program shows it, with its own choice of track and its own rotation."""
    chosen = f"select=eq(n\\,{number})"
    command = [ffmpeg, "-v", "error", "-i", str(path), "-vf", chosen, "-frames:v", "1", "-f", "image2pipe"]
    run = subprocess.run([*command, "-c:v", "png", "-"], capture_output=True, check=True)
    with Image.open(io.BytesIO(run.stdout)) as opened:
        return np.asarray(opened.convert("RGB"))


def shown(path: Path) -> Pixels:
    return next(iter(sampled(path, 1.0, None))).pixels


def apart(first: Pixels, second: Pixels) -> float:
    """The mean difference; of pictures of different sizes it is infinite."""
    same = first.shape == second.shape
    return float(np.abs(first.astype(int) - second.astype(int)).mean()) if same else float("inf")


def of_jpeg(jpeg: bytes) -> Pixels:
    with Image.open(io.BytesIO(jpeg)) as opened:
        return np.asarray(opened.convert("RGB"))


def first_in(video: bytes | Path) -> Pixels:
    """The first picture of a written file, by its pixels alone: what a player that knows no matrix shows."""
    with av.open(io.BytesIO(video) if isinstance(video, bytes) else str(video), "r") as container:
        frame = next(container.decode(video=0))
        assert not frame.side_data.get("DISPLAYMATRIX") or frame.rotation == 0
        return np.asarray(frame.to_ndarray(format="rgb24"))


def moved(pixels: Pixels, a: int, b: int, c: int, d: int) -> Pixels:
    """Each pixel at its own position, by the arithmetic of ISO/IEC 14496-12, 6.2.2."""
    high, wide = pixels.shape[:2]
    out = np.zeros((wide, high, 3) if b else (high, wide, 3), dtype=np.uint8)
    left, top = min(0, a * (wide - 1), c * (high - 1)), min(0, b * (wide - 1), d * (high - 1))
    for y in range(high):
        for x in range(wide):
            out[b * x + d * y - top, a * x + c * y - left] = pixels[y, x]
    return out


@pytest.mark.parametrize("name", ORIENTATIONS)
def test_the_eight_orientations_everywhere(name: str, tmp_path: Path) -> None:
    """Frames, arrays, clip files, files for a browser and de-identified copies are the scene with each pixel moved."""
    path = write_tracks(tmp_path / "v.mp4", Track(matrix=matrix(*ORIENTATIONS[name])))
    right = moved(scene(), *ORIENTATIONS[name])
    library = MediaLibrary(tmp_path, MediaSettings(max_side=None, quality=95), tmp_path / "cache")
    info = library.probe("v")
    assert (info.width, info.height, info.remarks) == (right.shape[1], right.shape[0], ())
    assert apart(shown(path), right) < 3
    assert apart(of_jpeg(library.jpegs([Picture("v", 0.0)])[0]), right) < 3
    assert apart(first_in(library.mp4(VideoClip(source="v"))), right) < 3
    assert apart(first_in(library.playback("v")), right) < 3  # 4:4:4 is encoded, so nothing is left to the player
    done = redact(path, tmp_path / "out.mp4")
    assert done.how == ("copied" if name == "as it is" else "encoded")
    assert apart(first_in(tmp_path / "out.mp4"), right) < 3
    half = MediaLibrary(tmp_path, MediaSettings(max_side=32, quality=95), tmp_path / "cache")
    small = of_jpeg(half.jpegs([Picture("v", 0.0)])[0])
    assert apart(small, np.asarray(Image.fromarray(right).resize((small.shape[1], small.shape[0])))) < 3


@pytest.mark.parametrize("name", ORIENTATIONS)
def test_a_copy_for_a_browser_leaves_only_quarter_turns_to_it(name: str, tmp_path: Path) -> None:
    path = write_tracks(tmp_path / "v.mp4", Track(planes="yuv420p", matrix=matrix(*ORIENTATIONS[name])))
    played = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache").playback("v")
    assert apart(shown(played), shown(path)) < NEAR
    turned = read_container(played).display.turn
    mirrored = np.linalg.det(np.reshape(ORIENTATIONS[name], (2, 2))) < 0
    assert turned.steps == (() if mirrored else turn_of(tuple(matrix(*ORIENTATIONS[name]))).steps)


@pytest.mark.parametrize("name", ["v.mp4", "v.mov", "v.mkv", "v.webm"])
def test_random_matrices_as_ffmpeg_shows_them(name: str, ffmpeg: str, tmp_path: Path) -> None:
    """Rotations by any angle, with and without a mirror, stretched."""
    rng = random.Random(7)
    codec = "libvpx-vp9" if name.endswith("webm") else "libx264"
    for _ in range(8):
        degrees = rng.choice((0, 90, 180, 270, rng.uniform(0, 360), rng.choice((90, 270)) + rng.uniform(-0.4, 0.4)))
        a, b, _, c, d = rotated(degrees, mirrored=rng.random() < 0.5)[:5]
        size = rng.choice((1.0, 1.0, 0.5))
        told = matrix(*(size * number / 65536 for number in (a, b, c, d)))
        path = write_tracks(tmp_path / name, Track(codec=codec, planes="yuv420p", matrix=told))
        assert apart(shown(path), by_ffmpeg(ffmpeg, path)) < 4, (degrees, told)


@pytest.mark.parametrize(("name", "codec"), [("v.mkv", "libx264"), ("v.webm", "libvpx-vp9"), ("v.mov", "libx264")])
def test_the_eight_orientations_in_other_containers(name: str, codec: str, ffmpeg: str, tmp_path: Path) -> None:
    for orientation in ORIENTATIONS.values():
        path = write_tracks(tmp_path / name, Track(codec=codec, planes="yuv420p", matrix=matrix(*orientation)))
        assert apart(shown(path), moved(scene(), *orientation)) < 3
        assert apart(shown(path), by_ffmpeg(ffmpeg, path)) < 1


CROPPED = Cropping(top=6, bottom=2, left=10, right=4)
KINDS = {"v.mp4": "libx264", "v.mov": "libx264", "v.mkv": "libx264", "v.webm": "libvpx-vp9", "w.mov": "qtrle"}


@pytest.mark.parametrize("name", KINDS)
def test_what_the_container_crops_is_shown_nowhere(name: str, tmp_path: Path) -> None:
    """A bright name in the hidden lines, and a bright mark at each other edge."""
    dark = scene() // 3
    for edge in (np.s_[:6], np.s_[-2:], np.s_[:, :10], np.s_[:, -4:]):
        dark[edge] = 255
    planes = "rgb24" if KINDS[name] == "qtrle" else "yuv444p"
    path = with_cropping(write_tracks(tmp_path / name, Track([dark] * 3, KINDS[name], planes)), *CROPPED)
    right = dark[6:-2, 10:-4]
    assert right.max() < 80
    facts = read_container(path)
    assert facts.display.cropping == CROPPED
    assert facts.remarks == ("cropping by the container: 8 lines and 14 columns are not shown",)
    library = MediaLibrary(tmp_path, MediaSettings(max_side=None, quality=95), tmp_path / "cache")
    assert (library.probe(name).width, library.probe(name).height) == (WIDTH - 14, HEIGHT - 8)
    redacted = redact(path, tmp_path / "out.mp4", [Redaction(start=0.04, end=0.08, how="black")])
    assert (redact(path, tmp_path / "copy.mp4").how, redacted.how) == ("encoded", "encoded")
    found = [
        shown(path),
        of_jpeg(library.jpegs([Picture(name, 0.0)])[0]),
        first_in(library.mp4(VideoClip(source=name))),
        first_in(library.playback(name)),
        first_in(tmp_path / "out.mp4"),
        first_in(tmp_path / "copy.mp4"),
    ]
    for pixels in found:
        assert pixels.max() < 110
        assert apart(pixels[:40, :50], right) < 6
    assert inspect_video(path).width == WIDTH - 14


def test_cropping_comes_before_turning(tmp_path: Path) -> None:
    path = write_tracks(tmp_path / "v.mp4", Track(matrix=matrix(*ORIENTATIONS["turned clockwise"])))
    with_cropping(path, *CROPPED)
    assert apart(shown(path), moved(scene()[6:-2, 10:-4], *ORIENTATIONS["turned clockwise"])) < 3
    assert (probe(path).width, probe(path).height) == (HEIGHT - 8, WIDTH - 14)


class Counted(io.BytesIO):
    """Remembers the most bytes that were asked for at once."""

    most = 0

    def read(self, size: int | None = -1) -> bytes:
        self.most = max(self.most, 10**9 if size is None or size < 0 else size)
        return super().read(size)


def test_an_element_that_ends_before_it_begins_is_empty() -> None:
    """A track's type, whose length lies behind the end of its track: not all of the file is its number."""
    entry = b"\xae\x81" + b"\x83"
    tracks = b"\x16\x54\xae\x6b" + bytes([0x80 + len(entry)]) + entry
    file = Counted(b"\x18\x53\x80\x67" + bytes([0x80 + len(tracks)]) + tracks + b"\x81" * 10_000)
    assert _matroska_cropping(file, 0) == Cropping()
    assert file.most <= 12


@pytest.mark.parametrize("told", [(0, 1, 40, 1), (64, 0, 48, 1), (80, 1, 48, 1), (20, 1, 20, 1, 60, 1, 0, 1)])
def test_an_impossible_clean_aperture_crops_nothing(told: tuple[int, ...], tmp_path: Path) -> None:
    path = write_tracks(tmp_path / "v.mp4", Track())
    box = b"".join(number.to_bytes(4) for number in (*told, 0, 1, 0, 1)[:8])
    path.write_bytes(in_sample_entry(path.read_bytes(), (40).to_bytes(4) + b"clap" + box))
    cropping = read_container(path).display.cropping
    assert cropping == Cropping()
    assert shown(path).shape == (HEIGHT, WIDTH, 3)


SMALL = [scene(k, 32, 24) for k in range(3)]
LARGE = [scene(k) for k in range(3)]


@pytest.mark.parametrize("name", ["v.mp4", "v.mkv", "v.mov"])
@pytest.mark.parametrize(
    ("tracks", "right"),
    [
        ([(SMALL, False), (LARGE, True)], 2),
        ([(LARGE, False), (SMALL, True)], 2),
        ([(SMALL, True), (LARGE, True)], 2),
        ([(LARGE, True), (SMALL, True)], 1),
        ([(LARGE, True), (LARGE, True)], 1),
        ([(SMALL, False), (SMALL, False), (LARGE, False)], 3),
    ],
)
def test_the_track_that_ffmpeg_chooses(
    name: str, tracks: list[tuple[list[Pixels], bool]], right: int, ffmpeg: str, tmp_path: Path
) -> None:
    written = [
        Track([pixels // (number + 1) for pixels in pictures], default=default)
        for number, (pictures, default) in enumerate(tracks)
    ]
    path = write_tracks(tmp_path / name, *written)
    facts = read_container(path)
    if name != "v.mkv" and not any(default for _, default in tracks):
        right = 1  # an MP4 has its first track enabled where its writer is told of none
    assert (facts.video_tracks, facts.shown_track) == (len(tracks), right)
    assert facts.remarks == (f"{len(tracks)} video tracks, of which number {right} is shown",)
    assert apart(shown(path), written[right - 1].pictures[0]) < 4
    assert apart(shown(path), by_ffmpeg(ffmpeg, path)) < 4
    with av.open(str(path)) as container:
        if sum(default for _, default in tracks) == 1:
            assert container.streams.best("video") is container.streams.video[right - 1]
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    assert apart(first_in(library.mp4(VideoClip(source="v"))), written[right - 1].pictures[0]) < NEAR
    assert apart(first_in(library.playback("v")), written[right - 1].pictures[0]) < NEAR


def see_through() -> Pixels:
    """The scene, transparent in its right half, where red is hidden."""
    pixels = np.dstack([scene(), np.full((HEIGHT, WIDTH), 255, dtype=np.uint8)])
    pixels[:, WIDTH // 2 :] = (250, 0, 0, 0)
    return pixels


@pytest.mark.parametrize(
    ("name", "codec", "planes"),
    [
        ("v.webm", "libvpx-vp9", "yuva420p"),
        ("v.webm", "libvpx", "yuva420p"),
        ("v.mov", "qtrle", "argb"),
        ("v.mov", "prores_ks", "yuva444p10le"),
        ("v.mkv", "ffv1", "yuva420p"),
    ],
)
def test_behind_what_is_transparent_is_white(name: str, codec: str, planes: str, tmp_path: Path) -> None:
    path = write_tracks(tmp_path / name, Track([see_through()] * 3, codec, planes))
    library = MediaLibrary(tmp_path, MediaSettings(max_side=None, quality=95), tmp_path / "cache")
    assert library.probe("v").remarks == ("transparent parts, which are shown on white",)
    redact(path, tmp_path / "out.mp4")
    found = [
        shown(path),
        of_jpeg(library.jpegs([Picture("v", 0.04)])[0]),
        of_jpeg(MediaLibrary(tmp_path, MediaSettings(max_side=32), tmp_path / "cache").jpegs([Picture("v", 0.04)])[0]),
        first_in(library.mp4(VideoClip(source="v"))),
        first_in(library.playback("v")),
        first_in(tmp_path / "out.mp4"),
    ]
    for pixels in found:
        right = pixels[:, pixels.shape[1] // 2 + 4 :]
        assert right.min() > 235
        assert apart(pixels[2:8, 2:8], np.asarray(Image.fromarray(scene()).resize(pixels.shape[1::-1]))[2:8, 2:8]) < 12


def test_transparent_pictures_after_a_seek(tmp_path: Path) -> None:
    """VP9's transparency has a decoder of its own: the same alone, together and backwards."""
    pictures = [np.dstack([scene(k), np.full((HEIGHT, WIDTH), 255, np.uint8)]) for k in range(0, 120, 2)]
    path = write_tracks(tmp_path / "v.webm", Track(pictures, "libvpx-vp9", "yuva420p", options={"g": "10"}))
    alone = [MediaLibrary(tmp_path, cache_dir=tmp_path / f"{k}").jpegs([Picture("v", k / 25)])[0] for k in range(60)]
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "all")
    assert library.jpegs([Picture("v", k / 25) for k in range(60)]) == alone
    assert [MediaLibrary(tmp_path, cache_dir=tmp_path / "x").jpegs([Picture("v", k / 25)])[0] for k in (50, 3)] == [
        alone[50],
        alone[3],
    ]
    levels = [float(of_jpeg(jpeg)[20:28, 28:36].mean()) for jpeg in alone]
    assert levels == pytest.approx([60 + k for k in range(0, 120, 2)], abs=2.5)
    assert probe(path).width == WIDTH


@pytest.mark.parametrize(("name", "number"), [("PQ", "smpte2084"), ("HLG", "arib-std-b67")])
def test_high_dynamic_range_is_said(name: str, number: str, tmp_path: Path) -> None:
    options = {"x265-params": f"log-level=none:transfer={number}:colorprim=bt2020:colormatrix=bt2020nc"}
    write_tracks(tmp_path / "v.mp4", Track(codec="libx265", planes="yuv420p10le", options=options))
    told = f"high dynamic range ({name}), shown without tone mapping"
    items = [
        Item(id=f"q{k}", group="g", question="?", answer=BinaryFormat(), media=(VideoClip(source="v"),))
        for k in range(2)
    ]
    assert MediaLibrary(tmp_path).warnings(items) == [f"1 video with {told} (first v, of item 'q0')"]
    run = proctor("media", "frames", tmp_path / "v.mp4", "--count", "1", "--cache", tmp_path / "cache")
    assert run.returncode == 0
    assert run.stderr.replace("\n", " ").strip() == f"{tmp_path / 'v.mp4'}: {told}"


def test_a_rotation_within_the_picture_is_said(tmp_path: Path) -> None:
    path = write_tracks(tmp_path / "v.mp4", Track(matrix=rotated(30)))
    told = "a rotation by 30° within the picture, whose corners are cut off"
    assert read_container(path).remarks == (told,)
    assert first_in(MediaLibrary(tmp_path, cache_dir=tmp_path / "c").playback("v"))[0, 0].max() < 30


def _shaped(path: Path, shape: Fraction, codec: str) -> bytes:
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=25, options={"bf": "2"})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.sample_aspect_ratio = shape
        for number in range(20):
            frame = av.VideoFrame.from_ndarray(scene(number), format="rgb24")
            frame.pts, frame.time_base = number + (0 if shape == 1 else 20), Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path.read_bytes()


@pytest.mark.parametrize("codec", ["mpeg2video", "libx264"])
def test_a_shape_of_pixels_that_changes_is_refused_from_there_on(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "v.ts"
    path.write_bytes(_shaped(tmp_path / "a.ts", Fraction(1), codec) + _shaped(tmp_path / "b.ts", Fraction(4, 3), codec))
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    assert len(library.jpegs([Picture("v.ts", k / 25) for k in range(15)])) == 15
    with pytest.raises(InputError) as caught:
        library.jpegs([Picture("v.ts", k / 25) for k in (3, 30)])
    found = "found pixels whose shape changes from 1:1 to"
    assert str(caught.value).startswith(f"{path}: {found} ")
    assert str(caught.value).endswith(", expected one shape: encode it as one video")


def test_times_that_no_mp4_holds_are_an_error_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer's own errors are not the program's."""

    def refusing(*_: object, **__: object) -> None:
        raise av.error.ArgumentError(22, "Invalid argument", "v")

    path = write_tracks(tmp_path / "v.mkv", Track())
    calls: list[Callable[[], object]] = [
        lambda: MediaLibrary(tmp_path, cache_dir=tmp_path / "a").playback("v"),
        lambda: MediaLibrary(tmp_path, cache_dir=tmp_path / "b").mp4(VideoClip(source="v", start=0.05)),
        lambda: redact(path, tmp_path / "out.mp4"),
    ]
    monkeypatch.setattr("av.container.OutputContainer.mux", refusing, raising=False)
    for call in calls:
        with pytest.raises(InputError, match=r"found pictures or times that a video file can't hold \(Invalid arg"):
            call()
    assert not (tmp_path / "out.mp4").exists()
