"""Videos that are damaged inside: one line that names the file and the time, and never a wrong answer of a system."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import av
import pytest
from pydantic import JsonValue

from proctor.core import Answer, Benchmark, InputError, Item, Reference, Status, VideoClip, View
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, Picture, redact
from proctor.media.video_clock import read_index
from proctor.metrics import AccuracyScorer
from proctor.runs import Limits, PlanOptions, Store, execute, plan
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video
from tests.support.program import proctor

STEADY = range(0, 8000, 40)
X265 = {"x265-params": "log-level=none"}
KINDS = {
    "v.mp4": ClockVideo(STEADY, b_frames=3, keyint=50),
    "v.ts": ClockVideo(STEADY, b_frames=3, keyint=50),
    "v.webm": ClockVideo(STEADY, codec="libvpx-vp9", keyint=50),
    "v.avi": ClockVideo(STEADY, codec="mpeg4", keyint=50),
    "v.mov": ClockVideo(STEADY, codec="libx265", keyint=50, options=X265),
    "v.mpg": ClockVideo(STEADY, codec="mpeg2video", keyint=15, b_frames=2),
}


def spoil(path: Path, number: int) -> None:
    """Zeros in the packet of this number (in the order of decoding), which no decoder takes for a picture."""
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        position, size = packets[number].pos or 0, packets[number].size
    content = bytearray(path.read_bytes())
    content[position : position + size] = bytes(size)
    path.write_bytes(content)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Eight seconds with a keyframe every two; the picture at 4 s is damaged, so what follows it up to 6 s is lost."""
    path = write_clock_video(tmp_path / "v.mp4", ClockVideo(STEADY, keyint=50))
    spoil(path, 101)
    return path


def test_what_is_whole_is_shown_and_what_is_not_is_named_with_its_time(damaged: Path, tmp_path: Path) -> None:
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    whole = library.jpegs([Picture("v", time) for time in (0.0, 3.96, 4.0, 6.0, 7.96)])
    assert [read_clock(jpeg) for jpeg in whole] == [0, 99, 100, 150, 199]
    with pytest.raises(InputError) as caught:
        library.jpegs([Picture("v", time) for time in (1.0, 4.2, 6.0)])
    assert str(caught.value) == (
        f"{damaged}: at 4.200 s: found a damaged video (Invalid data found when processing input)"
    )


@pytest.mark.parametrize("name", KINDS)
def test_random_damage_is_an_error_of_the_file_or_goes_by(tmp_path: Path, name: str) -> None:
    whole, rng = write_clock_video(tmp_path / name, KINDS[name]).read_bytes(), random.Random(1)
    for number in range(12):
        content, start = bytearray(whole), rng.randrange(len(whole) // 5, len(whole) * 4 // 5)
        for position in range(start, start + rng.choice((1, 30, 300))):
            content[position % len(content)] = rng.randrange(256)
        (tmp_path / name).write_bytes(content)
        library = MediaLibrary(tmp_path, cache_dir=tmp_path / f"cache {number}")
        try:
            told = str(len(library.jpegs([Picture(name, float(time)) for time in range(8)])))
        except InputError as error:
            told = str(error)
        assert told == "8" or told.startswith(f"{tmp_path / name}: ")


def test_a_clip_file_and_a_copy_without_what_is_hidden(damaged: Path, tmp_path: Path) -> None:
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    with pytest.raises(InputError, match=r"v\.mp4: at 4\.040 s: found a damaged video"):
        library.mp4(VideoClip(source="v", start=3.5, end=5.0))
    with pytest.raises(InputError, match=r"v\.mp4: at 4\.040 s: found a damaged video"):
        redact(damaged, tmp_path / "out.mp4")
    assert not (tmp_path / "out.mp4").exists()
    assert len(read_index(damaged).pts) == len(STEADY)


def test_the_program_says_one_line(damaged: Path, tmp_path: Path) -> None:
    run = proctor("media", "frames", damaged, "--fps", "5", "--cache", tmp_path / "cache")
    assert run.returncode == 1
    expected = f"proctor: {damaged}: at 4.200 s: found a damaged video (Invalid data found when processing input)\n"
    assert run.stderr == expected


class Watcher:
    """Says yes, after it has looked at five frames a second."""

    name = "watcher"

    def __init__(self) -> None:
        self.settings: dict[str, JsonValue] = {}

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        await view.frames(fps=5)
        return Answer(item_id=item.id, text="yes")


@pytest.mark.parametrize("skip", [False, True])
def test_in_a_run_it_is_no_answer_of_the_system(damaged: Path, tmp_path: Path, skip: bool) -> None:
    """Questions on the first and the third stretch; the third is damaged."""
    items = tuple(
        Item(
            id=f"q{start}",
            group="g",
            question="?",
            answer=BinaryFormat(),
            media=(VideoClip(source="v", start=start, end=start + 1),),
            reference=Reference(answer=True),
        )
        for start in (1.0, 4.0)
    )
    benchmark = Benchmark("toy", "Toy", items, AccuracyScorer().metrics, "accuracy", media_root=tmp_path)
    store = Store(str(tmp_path / "runs.db"))
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    options = PlanOptions(skip_broken=skip)
    planned = plan(store, benchmark, [Watcher()], ["video"], library, scorers=[], options=options)
    if not skip:
        with pytest.raises(InputError, match=r"v\.mp4: at 4\.200 s: found a damaged video .* \(item 'q4\.0'\)$"):
            asyncio.run(execute(store, planned, Limits(concurrency=1)))
        return
    outcome = asyncio.run(execute(store, planned, Limits(concurrency=1)))
    assert (outcome.tally.by_status[Status.ANSWERED], outcome.failed) == (1, 1)
    assert outcome.tally.by_status[Status.ERROR] == 0
    assert "v.mp4: at 4.200 s: found a damaged video" in outcome.tally.last_reason
