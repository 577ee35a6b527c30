"""What the media engine costs: one long video, a hundred questions, and every further model or condition.

python bench/media.py --format json

Makes a video (30 minutes, 640×360, 25 a second, H.264, grain) once in the folder for temporary files, and
asks for the frames of questions spread over it, each at 1 frame a second from the start to the question's
time. `--from s3` asks for them from a local server that speaks S3 (moto's), too: the video, and then the frames that
another process has kept there. Costs are given as shares of one plain decoding of the file, measured in the same run. On
a machine that others use as well, the processor's time says more than the clock's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, RATE = 640, 360, 25
MAX_SHARE, MAX_AGAIN, MAX_MIB = 1.15, 0.02, 600.0
MAX_REMOTE = 1.3


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock and of the processor (all threads), and the most memory that was in use."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    frames: int


def make_video(path: Path, minutes: float) -> None:
    """Grain that is redrawn for every frame, over a scene that moves."""
    import av
    import numpy as np

    rng = np.random.default_rng(0)
    grain = rng.normal(0, 7, (4 * HEIGHT, 4 * WIDTH)).astype(np.float32)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    scene = 110 + 60 * np.sin(x / 90) * np.cos(y / 70)
    grey = np.full((HEIGHT // 2, WIDTH), 128, dtype=np.uint8)
    draft = path.with_suffix(".part.mp4")
    with av.open(str(draft), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"preset": "superfast", "b": "1500000"})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number in range(round(minutes * 60 * RATE)):
            across, down = rng.integers(0, 3 * WIDTH), rng.integers(0, 3 * HEIGHT)
            picture = np.roll(scene, number // 3 % WIDTH, axis=1)
            left, top = round(300 + 220 * np.sin(number / 40)), round(160 + 110 * np.cos(number / 33))
            picture[top : top + 40, left : left + 60] = 220
            picture += grain[down : down + HEIGHT, across : across + WIDTH]
            light = np.clip(picture, 16, 235).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(np.concatenate([light, grey]), format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    draft.replace(path)


def decode_all(path: Path) -> int:
    """Every frame once, from the start, with the decoder's own threads: the yardstick."""
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        return sum(1 for _ in container.decode(stream))


def ask_all(
    path: Path, cache: Path, questions: int, conditions: tuple[str, ...], location: str = "", frames_at: str = ""
) -> list[Cost]:
    """The frames of all questions under one condition after the other, in one process; of the video in its folder, or
    at another `location`. Fetching it is part of the first one. Frames are kept in the cache, and at a URL if there is
    one."""
    from proctor.core import Item, VideoClip
    from proctor.core.formats import BinaryFormat
    from proctor.media import MediaLibrary, MediaSettings, media_folder, view

    os.environ["PROCTOR_CACHE"] = str(cache)
    settings = MediaSettings(fps=1.0, max_frames=10_000)
    library = MediaLibrary(media_folder(location or path.parent, cache), settings, frames_at or cache)

    def item(number: int, duration: float) -> Item:
        return Item(
            id=f"q{number}",
            group="video",
            question="What happens next?",
            answer=BinaryFormat(),
            media=(VideoClip(source=path.name, end=(number + 1) * duration / questions),),
        )

    async def frames(condition: str) -> int:
        duration = library.probe(path.name).duration_s
        items = [item(number, duration) for number in range(questions)]
        return sum([len(await view(item, condition, library, seed=1).frames()) for item in items])

    return [measured(lambda one=condition: asyncio.run(frames(one))) for condition in conditions]  # type: ignore[misc]


def measured(work: Callable[[], int]) -> Cost:
    """Does the work and says what it cost."""
    wall, cpu = time.perf_counter(), time.process_time()
    frames = work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu, _peak_mib(), frames)


def _peak_mib() -> float:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _measured_decoding(path: Path) -> list[Cost]:
    return [measured(lambda: decode_all(path))]


def apart(work: Callable[..., list[Cost]], *given: object) -> list[Cost]:
    """In a process of its own, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


@contextmanager
def bucket_with(video: Path) -> Iterator[str]:
    """A bucket that holds the video, on a server in a process of its own; the environment says where it is."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    told = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1"}
    told["ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
    os.environ.update({f"AWS_{name}": value for name, value in told.items()})
    try:
        while server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        client.upload_file(str(video), "bucket", f"videos/{video.name}")
        yield "s3://bucket/videos"
    finally:
        server.terminate()
        server.wait()


def from_s3(video: Path, folder: Path, questions: int) -> dict[str, Cost]:
    """All questions by a new process with an empty cache: from the disk, from the bucket, and from the frames that are
    in the bucket."""
    found = []
    with bucket_with(video) as bucket, tempfile.TemporaryDirectory(dir=folder) as caches:
        frames = f"{bucket}/frames"
        positions = [("", ""), (bucket, ""), (bucket, ""), ("", "")]  # in turn, so that neither has the better machine
        for number, position in enumerate([*positions, (bucket, frames), (bucket, frames)]):
            found += apart(ask_all, video, Path(caches) / str(number), questions, ("video",), *position)
    return {
        "best of two, disk": min(found[0], found[3], key=lambda one: one.wall_s),
        "best of two, S3": min(found[1:3], key=lambda one: one.wall_s),
        "S3, frames kept there": found[4],
        "frames from S3, no video": found[5],
    }


def run(folder: Path, minutes: float, questions: int, *, s3: bool = False) -> dict[str, Any]:
    """All measurements."""
    folder.mkdir(parents=True, exist_ok=True)
    video = folder / f"grain-{minutes:g}min.mp4"
    if not video.exists():
        make_video(video, minutes)
    cache = Path(tempfile.mkdtemp(prefix="cache-", dir=folder))
    try:
        before = apart(_measured_decoding, video)[0]
        conditions = ("video", "video", "black", "shuffled", "reversed")
        first, *again = apart(ask_all, video, cache, questions, conditions)
        resumed = apart(ask_all, video, cache, questions, ("video",))[0]
        after = apart(_measured_decoding, video)[0]
        remote = from_s3(video, folder, questions) if s3 else {}
        kept = sum(path.stat().st_size for path in cache.rglob("*.zip"))
    finally:
        shutil.rmtree(cache)
    names = ["a second model", "condition black", "condition shuffled", "condition reversed"]
    costs = {
        "a plain decoding": before,
        "the same afterwards": after,
        "all questions": first,
        **dict(zip(names, again, strict=True)),
        "all questions in a new process": resumed,
        **remote,
    }
    yardstick = {clock: (getattr(before, clock) + getattr(after, clock)) / 2 for clock in ("wall_s", "cpu_s")}
    return {
        "video": {"minutes": minutes, "mib": video.stat().st_size / 2**20, "questions": questions},
        "store_mib": kept / 2**20,
        "costs": {
            name: asdict(cost)
            | {"wall_share": cost.wall_s / yardstick["wall_s"], "cpu_share": cost.cpu_s / yardstick["cpu_s"]}
            for name, cost in costs.items()
        },
        "holds": {
            f"all questions ≤ {MAX_SHARE} of a decoding's processor time": first.cpu_s
            <= MAX_SHARE * yardstick["cpu_s"],
            f"again ≤ {MAX_AGAIN:.0%} of a decoding's processor time": all(
                cost.cpu_s <= MAX_AGAIN * yardstick["cpu_s"] for cost in (*again, resumed)
            ),
            f"peak memory < {MAX_MIB:.0f} MiB": max(cost.peak_mib for cost in (first, *again, resumed)) < MAX_MIB,
        }
        | (
            {
                f"from S3 within {MAX_REMOTE} × the time from the disk": all(
                    remote[name].wall_s <= MAX_REMOTE * remote["best of two, disk"].wall_s
                    for name in ("best of two, S3", "frames from S3, no video")
                )
            }
            if remote
            else {}
        ),
    }


def show(found: dict[str, Any]) -> None:
    """A table for people."""
    video = found["video"]
    print(f"{video['questions']} questions on {video['minutes']:g} minutes ({video['mib']:.0f} MiB)")
    print(f"{'':32}{'clock s':>9}{'share':>8}{'CPU s':>9}{'share':>8}{'peak MiB':>10}{'frames':>9}")
    for name, cost in found["costs"].items():
        print(
            f"{name:32}{cost['wall_s']:9.2f}{cost['wall_share']:8.3f}{cost['cpu_s']:9.2f}"
            f"{cost['cpu_share']:8.3f}{cost['peak_mib']:10.0f}{cost['frames']:9d}"
        )
    print(f"kept pictures: {found['store_mib']:.0f} MiB")
    for claim, holds in found["holds"].items():
        print(f"{'yes' if holds else 'NO '}  {claim}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "proctor-bench-media")
    parser.add_argument("--from", choices=("disk", "s3"), default="disk", dest="source")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    given = parser.parse_args()
    found = run(given.folder, given.minutes, given.questions, s3=given.source == "s3")
    print(json.dumps(found, indent=1, ensure_ascii=False)) if given.format == "json" else show(found)


if __name__ == "__main__":
    main()
