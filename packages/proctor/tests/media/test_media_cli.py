"""`proctor media`, and a run with media options, as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.core import UsageError
from proctor.shell import size_in_bytes
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video
from tests.support.program import proctor, proctor_forked


@pytest.fixture
def root(tmp_path: Path) -> Path:
    video = ClockVideo(times_ms=range(0, 4000, 100), rate=10, b_frames=2)
    write_clock_video(tmp_path / "v.mp4", video)
    return tmp_path


def test_frames_fills_the_store_writes_and_tells(root: Path) -> None:
    def once() -> list[dict[str, object]]:
        run = proctor(
            *("media", "frames", root / "v.mp4", "--fps", "2", "--start", "1", "--out", root / "out"),
            *("--cache", root / "cache", "--format", "json"),
        )
        assert (run.returncode, run.stderr) == (0, "")
        return list(json.loads(run.stdout))

    (told,) = once()
    assert {key: told[key] for key in ("codec", "width", "height", "fps", "duration_s", "frames")} == {
        "codec": "h264",
        "width": 192,
        "height": 96,
        "fps": 10.0,
        "duration_s": 4.0,
        "frames": 6,
    }
    written = sorted((root / "out" / "v").iterdir())
    assert [path.name for path in written][::5] == ["000000_1.000s.jpg", "000005_3.500s.jpg"]
    assert [read_clock(path.read_bytes()) for path in written] == [10, 15, 20, 25, 30, 35]
    assert once() == [told]
    assert len(list((root / "cache").rglob("*.zip"))) == 1


def test_a_region_and_a_bad_one(root: Path) -> None:
    given = ("media", "frames", root / "v.mp4", "--count", "1", "--cache", root / "cache")
    good = proctor(*given, "--region", "0,0,0.5,1", "--out", root / "out")
    assert good.returncode == 0
    bad = proctor(*given, "--region", "0,0,2,1")
    assert bad.returncode == 2
    assert "give four fractions of the frame" in " ".join(bad.stderr.split())


@pytest.mark.parametrize(("start", "end"), [("2", "1"), ("1", "1"), ("0", "nan"), ("0", "inf")])
def test_an_end_that_is_not_after_the_start_is_one_line(root: Path, start: str, end: str) -> None:
    run = proctor("media", "frames", root / "v.mp4", "--start", start, "--end", end, "--cache", root / "cache")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"proctor: --end {end} is not after --start: give a second after {start}.\n"
    assert proctor("media", "frames", root / "v.mp4", "--start", "inf", "--cache", root / "cache").returncode == 2


def test_videos_of_one_stem_are_not_written_into_one_folder(root: Path) -> None:
    for other in (root / "a" / "v.mp4", root / "b" / "v.mp4", root / "a" / "v.ts"):
        other.parent.mkdir(exist_ok=True)
        other.write_bytes((root / "v.mp4").read_bytes())
    given = ("media", "frames", "--count", "1", "--cache", root / "cache")
    both = root / "a" / "v.mp4", root / "b" / "v.mp4"
    for first, second in (both, (root / "a" / "v.mp4", root / "a" / "v.ts")):
        run = proctor(*given, "--out", root / "out", first, second)
        assert (run.returncode, run.stdout) == (2, "")
        expected = f"proctor: {first} and {second} would both go to v. Give another --out for one of them."
        assert run.stderr == f"{expected}\n"
        assert not (root / "out").exists()
    assert proctor(*given, *both).returncode == 0


def test_a_broken_video_is_one_line(root: Path) -> None:
    (root / "w.mp4").write_bytes(b"")
    run = proctor("media", "frames", root / "w.mp4", "--cache", root / "cache")
    assert run.returncode == 1
    assert run.stderr == (
        f"proctor: {root}/w.mp4: found an unreadable video (Invalid data found when processing input)\n"
    )


def test_the_cache_is_listed_verified_and_pruned(root: Path) -> None:
    cache = ("--cache", root / "cache")

    def asked() -> None:  # in a process that ends: one that reads frames holds them
        assert proctor_forked("media", "frames", root / "v.mp4", "--count", "3", *cache).returncode == 0

    asked()
    (entry,) = json.loads(proctor("media", "cache", "--format", "json", *cache).stdout)
    assert (entry["of"], entry["bytes"]) == ("v.mp4", Path(entry["entry"]).stat().st_size)
    assert proctor("media", "cache", "--verify", *cache).stdout == "Damaged entries: none\n"
    content = bytearray(Path(entry["entry"]).read_bytes())
    content[200] ^= 1
    Path(entry["entry"]).write_bytes(content)
    found = proctor("media", "cache", "--verify", *cache)
    assert (found.returncode, found.stderr) == (1, "1 damaged entry\n")
    assert proctor("media", "cache", "--verify", "--remove", *cache).returncode == 0
    assert not Path(entry["entry"]).exists()
    asked()
    pruned = proctor("media", "cache", "--prune", "1KB", "--format", "csv", *cache)
    assert pruned.stdout.splitlines()[1].startswith("v.mp4,")
    assert pruned.stderr.startswith("1 entry removed, ")
    assert json.loads(proctor("media", "cache", "--format", "json", *cache).stdout) == []


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("12b", 12), ("2k", 2000), ("1.5 GB", 1_500_000_000), ("3TB", 3 * 10**12)]
)
def test_sizes(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "1.5.2GB", "-3MB", "many"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="is no size: write it like 20GB or 500MB"):
        size_in_bytes(text)


def test_a_run_leaves_out_broken_media_and_bounds_its_cache(tmp_path: Path) -> None:
    made = proctor("new", "simulated", tmp_path / "sim", "--videos", "2", "--seed", "1")
    assert made.returncode == 0, made.stderr
    videos = sorted((tmp_path / "sim").rglob("*.mp4"))
    broken = videos[0]
    broken.write_bytes(broken.read_bytes()[:2000])
    given = (
        *("run", "simulated", "--data", tmp_path / "sim", "--system", "random"),
        *("--store", tmp_path / "runs.db", "--cache", tmp_path / "cache", "--cache-size", "1MB"),
    )
    refused = proctor(*given)
    assert refused.returncode == 1
    assert "found an unreadable video" in refused.stderr
    gone_on = proctor(*given, "--skip-broken", "--overlay", "clip", "--limit", "40")
    assert gone_on.returncode == 0, gone_on.stderr
    assert "left out: broken or missing media." in gone_on.stderr


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("--fps", "1e9"), "fps=1e+09 from 0 to"),
        (("--fps", "1e308"), "fps=1e+308 from 0 to"),
        (("--count", "1000000000"), "count=1e+09 from 0 to"),
    ],
)
def test_more_frames_than_the_video_has_are_refused(tmp_path: Path, asked: tuple[str, ...], found: str) -> None:
    write_clock_video(tmp_path / "v.mp4", ClockVideo(range(0, 2000, 100), rate=10))
    answer = proctor("media", "frames", tmp_path / "v.mp4", *asked)
    (line,) = answer.stderr.splitlines()
    assert answer.returncode == 1
    assert line.startswith(f"proctor: v.mp4: found {found} 2 s, expected at most 20")
    assert line.endswith("000 frames; the video has 20 there")
    few = proctor("media", "frames", tmp_path / "v.mp4", "--fps", "1e9", "--count", "3", "--format", "json")
    assert json.loads(few.stdout)[0]["frames"] == 3
