"""Near-duplicates are found whatever was done to them, as far as the documentation says, and nothing else is."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps

from proctor.core import InputError
from proctor.media import Tolerance, distances, find_leaks, hashes, look_at, write_page
from proctor.media.duplicates import BITS, fingerprint
from tests.support.program import proctor

Change = Callable[[Image.Image], Image.Image]


def scene(seed: int, width: int = 320, height: int = 180) -> NDArray[np.uint8]:
    """A picture with structure at every scale, its own for each seed."""
    rng = np.random.default_rng(seed)
    light = np.zeros((height, width, 3))
    for points in (3, 6, 12, 24):
        coarse = rng.uniform(0, 255, (points, points, 3)).astype(np.uint8)
        light += np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)) / points
    light -= light.min()
    levels: NDArray[np.uint8] = (light * 255 / light.max()).astype(np.uint8)
    return levels


def write_video(path: Path, seed: int, change: Change = lambda picture: picture, crf: int = 20) -> Path:
    """Four seconds: the scene drifts, so that every frame is another."""
    wide = Image.fromarray(scene(seed, 640, 180))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"crf": str(crf), "preset": "ultrafast"})
        assert isinstance(stream, av.VideoStream)
        for number in range(40):
            picture = change(wide.crop((6 * number, 0, 6 * number + 320, 180)))
            even = picture.crop((0, 0, picture.width // 2 * 2, picture.height // 2 * 2))
            if number == 0:
                stream.width, stream.height, stream.pix_fmt = even.width, even.height, "yuv420p"
            frame = av.VideoFrame.from_ndarray(np.asarray(even), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def cropped(edge: float) -> Change:
    return lambda picture: picture.crop(
        (
            round(edge * picture.width),
            round(edge * picture.height),
            round((1 - edge) * picture.width),
            round((1 - edge) * picture.height),
        )
    )


CHANGES: dict[str, tuple[str, Change, int]] = {
    "encoded": ("alike", lambda picture: picture, 36),
    "small": ("alike", lambda picture: picture.resize((160, 90)), 20),
    "bright": ("alike", lambda picture: ImageEnhance.Brightness(picture).enhance(1.3), 20),
    "dull": ("alike", lambda picture: ImageEnhance.Contrast(picture).enhance(0.6), 20),
    "grey": ("alike", lambda picture: ImageOps.grayscale(picture).convert("RGB"), 20),
    "mirror": ("mirrored", ImageOps.mirror, 20),
    "edge": ("cropped by a twentieth", cropped(0.05), 20),
    "part": ("cropped by a tenth", cropped(0.1), 20),
}


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Three videos and two images for training; of the first video all kinds of copies, and others, for test."""
    root = tmp_path_factory.mktemp("leaks")
    train, test = root / "train", root / "test"
    train.mkdir()
    test.mkdir()
    for seed in range(3):
        write_video(train / f"v{seed}.mp4", seed)
    for name, (_, change, crf) in CHANGES.items():
        write_video(test / f"{name}.mp4", 0, change, crf)
    for seed in range(10, 14):
        write_video(test / f"other{seed}.mkv", seed)
    shutil.copy(train / "v2.mp4", test / "copy.mp4")
    Image.fromarray(scene(20)).save(train / "still.png")
    Image.fromarray(scene(20)).save(test / "still.jpg", quality=60)
    Image.fromarray(scene(21)).save(test / "unlike.jpg")
    return train, test


def pairs(train: Path, test: Path, cache: Path, tolerance: Tolerance | None = None) -> dict[str, str]:
    first, second = look_at(train, cache)[0], look_at(test, cache)[0]
    return {
        f"{leak.first.path.stem} {leak.second.path.stem}": leak.how
        for leak in find_leaks(first, second, tolerance or Tolerance())
    }


def test_copies_are_found_whatever_was_done_to_them_and_nothing_else_is(
    sets: tuple[Path, Path], tmp_path: Path
) -> None:
    expected = {f"v0 {name}": how for name, (how, _, _) in CHANGES.items()}
    expected |= {"v2 copy": "the same file", "still still": "alike"}
    assert pairs(*sets, tmp_path) == expected


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("turned", lambda picture: picture.transpose(Image.Transpose.ROTATE_90)),
        ("upside down", ImageOps.flip),
        ("a third cut off", cropped(0.17)),
    ],
)
def test_what_is_beyond_it(tmp_path: Path, name: str, change: Change) -> None:
    """The documented limits: a turn, a picture upside down and a wide border make another picture of it."""
    one = write_video(tmp_path / "one.mp4", 0)
    other = write_video(tmp_path / "other.mp4", 0, change)
    assert pairs(one, other, tmp_path / "cache") == {}


def test_a_part_of_a_long_video_is_found_with_its_times(tmp_path: Path) -> None:
    """A clip of one second from second 2 on; 30 % of the long one would not be enough, all of the clip is."""
    long = write_video(tmp_path / "long.mp4", 0)
    clip = tmp_path / "clip.mp4"
    with av.open(str(long)) as source, av.open(str(clip), "w") as target:
        stream = target.add_stream("libx264", rate=10, options={"preset": "ultrafast"})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
        for number, frame in enumerate(source.decode(video=0)):
            if 20 <= number < 30:
                frame.pts, frame.time_base = number - 20, Fraction(1, 10)
                target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    (leak,) = find_leaks(look_at(long, tmp_path)[0], look_at(clip, tmp_path)[0], Tolerance(share=0.9))
    assert (leak.share, leak.how) == (1.0, "alike")
    assert leak.times in {(2.0, 0.0), (2.5, 0.5)}


def test_doubles_within_one_set_are_told_once(sets: tuple[Path, Path], tmp_path: Path) -> None:
    found = pairs(sets[1], sets[1], tmp_path)
    assert found["bright dull"] == "alike"
    assert "dull bright" not in found
    assert not any(a == b for a, b in map(str.split, found))


def test_flat_pictures_are_like_nothing(tmp_path: Path) -> None:
    for name, grey in (("a", 0), ("b", 3), ("c", 200)):
        Image.new("RGB", (64, 64), (grey, grey, grey)).save(tmp_path / f"{name}.png")
    assert len(fingerprint([(tmp_path / "a.png").read_bytes()])) == 0
    assert pairs(tmp_path, tmp_path, tmp_path / "cache") == {}


def test_broken_files_are_told_and_the_others_compared(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", 0)
    (tmp_path / "b.mp4").write_bytes(b"")
    looked, problems = look_at(tmp_path, tmp_path / "cache")
    assert [one.source for one in looked] == ["a.mp4"]
    assert problems == [f"{tmp_path}/b.mp4: found an unreadable video (Invalid data found when processing input)"]


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        look_at(tmp_path)
    assert str(caught.value) == f"{tmp_path}: found no video and no image, expected a folder of them, or one"


def test_hashes_against_a_plain_loop(tmp_path: Path) -> None:
    """The same by definition: cosine sums written out, and bits counted one by one."""
    jpegs = []
    for seed in (0, 1):
        Image.fromarray(scene(seed, 64, 64)).save(tmp_path / "i.jpg", quality=95)
        jpegs.append((tmp_path / "i.jpg").read_bytes())
    points = np.arange(64)
    basis = np.cos(np.pi * (2 * points[None, :] + 1) * np.arange(16)[:, None] / 128) / np.sqrt(32)
    basis[0] /= np.sqrt(2)
    rows = []
    for jpeg in jpegs:
        (tmp_path / "j.jpg").write_bytes(jpeg)
        with Image.open(tmp_path / "j.jpg") as opened:
            light = np.asarray(opened.convert("L"), dtype=float)
        slow = (basis @ light @ basis.T).ravel()[1:]
        rows.append(slow > np.median(slow))
    expected = float(np.mean(rows[0] != rows[1]))
    found = distances(hashes(jpegs[0])[None], hashes(jpegs[1])[None])
    assert found[0, 0] == pytest.approx(expected, abs=2.5 / BITS)
    assert 0.35 < expected < 0.65


def test_the_page_is_self_contained_and_escaped(sets: tuple[Path, Path], tmp_path: Path) -> None:
    evil = tmp_path / "<img src=x onerror=alert(1)>.mp4"
    shutil.copy(sets[0] / "v0.mp4", evil)
    leaks = find_leaks(look_at(sets[0], tmp_path)[0], look_at(evil, tmp_path)[0])
    write_page(leaks, tmp_path / "leaks.html", title="<script>alert(2)</script>")
    page = (tmp_path / "leaks.html").read_text(encoding="utf-8")
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<img src=x" not in page
    assert "<script" not in page
    assert page.count("data:image/jpeg;base64,/9j/") == 2
    assert re.findall(r"""(?:src|href)=["'](?!data:image/jpeg;base64,)|url\(""", page) == []


def test_the_command(sets: tuple[Path, Path], tmp_path: Path) -> None:
    run = proctor(
        *(
            "media",
            "duplicates",
            *sets,
            "--cache",
            tmp_path / "cache",
            "--format",
            "json",
            "--out",
            tmp_path / "leaks.html",
        )
    )
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout)
    assert len(rows) == len(CHANGES) + 2
    assert rows[0]["how"] == "the same file"
    assert "10 pairs among 4 × 15 files" in run.stderr
    assert (tmp_path / "leaks.html").read_text(encoding="utf-8").count("<article>") == 10


def test_only_a_page_is_replaced(sets: tuple[Path, Path]) -> None:
    video = next(file for file in sorted(sets[0].iterdir()) if file.is_file())
    before = video.read_bytes()
    run = proctor("media", "duplicates", *sets, "--out", video)
    assert run.stderr.startswith(f"proctor: {video}: found a file of another kind, ")
    with pytest.raises(InputError, match="found a file of another kind"):
        write_page([], video, title="")
    assert video.read_bytes() == before


def test_real_clips_are_alike_to_their_copies_alone(data: Path, tmp_path: Path) -> None:
    for name in ("02_cups", "04_coffee"):
        with av.open(str(data / "video" / f"{name}.mp4")) as source:
            frames = [frame.reformat(480, 270) for frame in source.decode(video=0)]
        with av.open(str(tmp_path / f"{name}.webm"), "w") as target:
            stream = target.add_stream(
                "libvpx-vp9", rate=30, options={"crf": "45", "b": "0", "deadline": "realtime", "cpu-used": "8"}
            )
            assert isinstance(stream, av.VideoStream)
            stream.width, stream.height, stream.pix_fmt = 480, 270, "yuv420p"
            for number, frame in enumerate(frames):
                frame.pts, frame.time_base = number, Fraction(1, 30)
                target.mux(stream.encode(frame))
            target.mux(stream.encode(None))
    found = find_leaks(look_at(data / "video", tmp_path / "cache")[0], look_at(tmp_path, tmp_path / "cache")[0])
    assert {leak.first.path.stem for leak in found} == {"02_cups", "04_coffee"}
    assert all(leak.first.path.stem == leak.second.path.stem for leak in found)
    assert all(leak.how == "alike" and leak.share > 0.9 for leak in found)
