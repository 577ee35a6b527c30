"""The two real clips, compared with what ffprobe says of them."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Item, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, view
from proctor.media.decode import VideoSource, decode_at
from proctor.media.video_clock import read_index
from tests.support.means import missing

CLIPS = ("02_cups", "04_coffee")


@pytest.fixture(scope="module")
def ffprobe() -> str:
    """The program of FFmpeg that says what is in a file."""
    found = shutil.which("ffprobe")
    if found is None:
        missing("ffprobe is not here (Debian: apt-get install ffmpeg)")
    return str(found)


def probed(ffprobe: str, path: Path) -> dict[str, Any]:
    entries = "frame=pts,best_effort_timestamp_time:stream=codec_name,width,height,nb_frames,time_base,start_pts"
    run = subprocess.run(
        [ffprobe, "-v", "error", "-select_streams", "v:0", "-show_entries", entries, "-of", "json", str(path)],
        capture_output=True,
        check=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("name", CLIPS)
def test_counts_and_times_are_those_that_ffprobe_gives(data: Path, ffprobe: str, name: str) -> None:
    path = data / "video" / f"{name}.mp4"
    told = probed(ffprobe, path)
    (stream,) = told["streams"]
    expected = [frame["pts"] for frame in told["frames"]]
    index = read_index(path)
    assert [int(pts) for pts in index.pts] == expected
    assert len(expected) == int(stream["nb_frames"])
    top, bottom = map(int, stream["time_base"].split("/"))
    assert (index.time_base.numerator, index.time_base.denominator) == (top, bottom)
    seconds = [index.seconds(pts) for pts in expected]
    assert seconds == pytest.approx(
        [float(frame["best_effort_timestamp_time"]) - expected[0] * top / bottom for frame in told["frames"]], abs=1e-6
    )
    with VideoSource(path) as source:
        assert [shot.frame.pts for shot in decode_at(source, index, expected)] == expected


@pytest.mark.parametrize("name", CLIPS)
def test_every_frame_can_be_asked_for_by_its_time(data: Path, ffprobe: str, tmp_path: Path, name: str) -> None:
    """At the file's own rate each frame comes once, the same whether alone or with all others."""
    told = probed(ffprobe, data / "video" / f"{name}.mp4")
    library = MediaLibrary(data / "video", cache_dir=tmp_path / "all")
    info = library.probe(name)
    (stream,) = told["streams"]
    assert (info.codec, info.width, info.height) == (stream["codec_name"], stream["width"], stream["height"])
    times = [float(frame["best_effort_timestamp_time"]) for frame in told["frames"]]
    assert info.duration_s == pytest.approx(times[-1] + 1001 / 30000, abs=1e-3)
    item = Item(id="q", group="g", question="?", answer=BinaryFormat(), media=(VideoClip(source=name),))
    every = asyncio.run(view(item, "video", library).frames(fps=30000 / 1001))
    assert len(every) == len(times)
    assert [frame.time for frame in every] == pytest.approx(times, abs=1e-3)
    alone = MediaLibrary(data / "video", cache_dir=tmp_path / "alone")
    window = (times[-2] - 0.001, times[-1] + 0.001)  # a millisecond before a frame still shows the one before
    last = asyncio.run(view(item, "video", alone).frames(fps=30000 / 1001, window=window))
    assert [frame.jpeg for frame in last] == [every[-3].jpeg, every[-2].jpeg]
