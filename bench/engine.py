"""Answers a second through the whole engine, durable store included, beside what the bare clients reach.

python bench/engine.py --format json
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor.core import ACCURACY, Benchmark, Frame, Image, Item, Reference, generator
from proctor.core.formats import CountFormat
from proctor.media import MediaLibrary
from proctor.metrics import AccuracyScorer
from proctor.models import ModelClient, ModelSpec
from proctor.runs import Limits, Store, execute, plan
from proctor.systems import ModelSystem

GROUPS = 50
SIDE = 238  # pixels of noise that take 40 kB at the library's own quality; the true size is printed
SYSTEM = "You are an expert in clinical procedures and you answer questions about them."
ENGINE = "proctor, store on disk"
Run = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Rate:
    """One way of asking: answers a second in each round, and milliseconds of this process's CPU time an
    answer (the least of all rounds), which other load on the machine hardly disturbs."""

    way: str
    rounds: tuple[float, ...]
    cpu_ms: float

    @property
    def best(self) -> float:
        return max(self.rounds)


@dataclass(frozen=True)
class Case:
    """Items with a number of images each, and how many answers a second are wanted."""

    name: str
    images: int
    answers: int
    target: float


@dataclass(frozen=True)
class Bench:
    """What all ways share."""

    port: int
    folder: Path
    benchmark: Benchmark
    jpegs: Sequence[bytes]
    concurrency: int

    @property
    def calls(self) -> int:
        return len(self.benchmark.items)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def library(self) -> MediaLibrary:
        return MediaLibrary(self.folder, cache_dir=self.folder / "cache")


Way = Callable[[Bench], AbstractAsyncContextManager[Run]]
"""Makes ready what is not measured, gives what is, and tidies up."""


def set_up(folder: Path, port: int, case: Case, concurrency: int) -> Bench:
    """Writes the images and has them encoded; items of one group share theirs, as questions on a video do."""
    folder.mkdir()
    names = [[f"g{group:02d}_{row}.jpg" for row in range(case.images)] for group in range(GROUPS)]
    write_noise(folder, [name for group in names for name in group])
    items = tuple(
        Item(
            id=f"q{number:06d}",
            group=f"g{number % GROUPS:02d}",
            question=_asked(number),
            answer=CountFormat(),
            reference=Reference(answer=3),
            media=tuple(Image(source=name, label=_label(row)) for row, name in enumerate(names[number % GROUPS])),
        )
        for number in range(case.answers)
    )
    benchmark = Benchmark(
        name="bench", title="Bench", items=items, metrics=(ACCURACY,), headline="accuracy", media_root=folder
    )
    bench = Bench(port, folder, benchmark, [], concurrency)
    return Bench(port, folder, benchmark, served(bench.library, items[0]), concurrency)


def write_noise(folder: Path, names: Sequence[str]) -> None:
    """Pictures that are hard to compress."""
    from PIL import Image as Picture

    rng = generator(0, "bench", "noise")
    for name in names:
        noise = rng.integers(0, 256, (SIDE, SIDE, 3), dtype="uint8")
        Picture.fromarray(noise).save(folder / name, "JPEG", quality=90)


def served(library: MediaLibrary, item: Item) -> list[bytes]:
    """The images of an item as a system gets them."""
    from proctor.media import view

    return [frame.jpeg for frame in asyncio.run(view(item, "video", library).frames())]


@contextmanager
def cheap_server() -> Iterator[int]:
    """A server in a process of its own that costs next to nothing; gives its port on this machine."""
    command = [sys.executable, str(Path(__file__).with_name("cheap_server.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.terminate()


async def in_parallel(calls: int, concurrency: int, call: Callable[[int], Awaitable[None]]) -> None:
    """All calls, a number at a time."""
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            await call(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(concurrency):
            tasks.create_task(work())


@asynccontextmanager
async def through_engine(bench: Bench) -> AsyncIterator[Run]:
    """Views, prompts, requests, parsing, scores, and every answer on disk."""
    store = Store(bench.folder / f"runs-{time.monotonic_ns()}.db")
    client = ModelClient(ModelSpec(name="local", base_url=bench.url))
    systems = [ModelSystem(client)]
    planned = plan(store, bench.benchmark, systems, ["video"], bench.library, scorers=[AccuracyScorer()])

    async def run() -> None:
        await execute(store, planned, Limits(concurrency=bench.concurrency))
        counted = store.count_answers(planned.runs[0])
        assert counted == (bench.calls, 0), f"answered and failed: {counted}"

    yield run
    await client.aclose()
    store.close()


@asynccontextmanager
async def through_client(bench: Bench) -> AsyncIterator[Run]:
    """Proctor's client alone: the requests that the engine makes, and nothing around them."""
    client = ModelClient(ModelSpec(name="local", base_url=bench.url))

    async def call(number: int) -> None:
        frames = [Frame(jpeg, None, _label(row)) for row, jpeg in enumerate(bench.jpegs)]
        reply = await client.ask([*frames, _asked(number)], system=SYSTEM)
        assert reply.text

    yield lambda: in_parallel(bench.calls, bench.concurrency, call)
    await client.aclose()


@asynccontextmanager
async def through_pydantic_ai(bench: Bench) -> AsyncIterator[Run]:
    """The model library alone, with the clients that it brings."""
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import BinaryContent, ModelRequest, SystemPromptPart, UserPromptPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from proctor.models.provider import http_client

    http = http_client(180.0)
    model = OpenAIChatModel("local", provider=OpenAIProvider(base_url=bench.url, api_key="none", http_client=http))

    async def call(number: int) -> None:
        user: list[Any] = []
        for row, jpeg in enumerate(bench.jpegs):
            user += [_label(row), BinaryContent(jpeg, media_type="image/jpeg", identifier="frame")]
        told = UserPromptPart([*user, _asked(number)])
        reply = await model_request(model, [ModelRequest(parts=[SystemPromptPart(SYSTEM), told])])
        assert reply.text

    yield lambda: in_parallel(bench.calls, bench.concurrency, call)
    await http.aclose()


@asynccontextmanager
async def through_openai(bench: Bench) -> AsyncIterator[Run]:
    """OpenAI's own client alone."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=bench.url, api_key="none", max_retries=0, timeout=180.0)

    async def call(number: int) -> None:
        parts: list[Any] = []
        for row, jpeg in enumerate(bench.jpegs):
            url = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
            parts.append({"type": "text", "text": _label(row)})
            parts.append({"type": "image_url", "image_url": {"url": url}})
        parts.append({"type": "text", "text": _asked(number)})
        reply = await client.chat.completions.create(
            model="local", messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": parts}]
        )
        assert reply.choices[0].message.content

    yield lambda: in_parallel(bench.calls, bench.concurrency, call)
    await client.close()


@asynccontextmanager
async def through_sockets(bench: Bench) -> AsyncIterator[Run]:
    """Ready bytes over plain sockets: what the server takes."""
    size = 1000 + sum(4 * len(jpeg) // 3 for jpeg in bench.jpegs)
    request = f"POST / HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * size
    free = [await asyncio.open_connection("127.0.0.1", bench.port) for _ in range(bench.concurrency)]

    async def call(_: int) -> None:
        reader, writer = free.pop()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.rpartition(b":")[2]))
        free.append((reader, writer))

    yield lambda: in_parallel(bench.calls, bench.concurrency, call)
    for _, writer in free:
        writer.close()


WAYS: dict[str, Way] = {
    ENGINE: through_engine,
    "proctor's client alone": through_client,
    "pydantic-ai alone": through_pydantic_ai,
    "openai alone": through_openai,
    "plain sockets (the server's limit)": through_sockets,
}


def measure(bench: Bench, rounds: int) -> list[Rate]:
    """All ways in turn in every round, so that other load on the machine meets them alike."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            found[name].append(asyncio.run(_timed(way, bench)))
    return [
        Rate(name, tuple(rate for rate, _ in times), min(cpu_ms for _, cpu_ms in times))
        for name, times in found.items()
    ]


async def _timed(way: Way, bench: Bench) -> tuple[float, float]:
    async with way(bench) as run:
        wall, cpu = time.perf_counter(), time.process_time()
        await run()
        taken, used = time.perf_counter() - wall, time.process_time() - cpu
    return bench.calls / taken, 1000 * used / bench.calls


def _asked(number: int) -> str:
    return f"Question: How many clips are on the tray in picture {number}?\n\nReply with one whole number."


def _label(row: int) -> str:
    return f"picture {row + 1}"


def table(case: Case, bench: Bench, rates: Sequence[Rate]) -> str:
    """For people."""
    size = f" of {sum(map(len, bench.jpegs)) / len(bench.jpegs) / 1000:.0f} kB" if bench.jpegs else ""
    lines = [f"{case.name}: {case.images} images{size}, {bench.calls} answers, {bench.concurrency} at once"]
    for rate in rates:
        wanted = f"  (wanted: {case.target:.0f})" if rate.way == ENGINE else ""
        each = ", ".join(f"{one:.0f}" for one in rate.rounds)
        lines.append(f"  {rate.way:<36}{rate.best:>8.0f} /s  {rate.cpu_ms:6.2f} ms CPU  rounds: {each}{wanted}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--answers", type=int, default=2000, help="per round; with 8 images a quarter of it, with 64 a sixteenth"
    )
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2, help="for client and server together")
    parser.add_argument("--folder", type=Path, help="on the disk that is meant [default: the system's]")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    cases = (
        Case("without images", 0, options.answers, 1000.0),
        Case("with images", 8, options.answers // 4, 400.0),
        Case("with many images", 64, options.answers // 16, 60.0),
    )
    found = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, cheap_server() as port:
        for number, case in enumerate(cases):
            bench = set_up(Path(folder) / str(number), port, case, options.concurrency)
            rates = measure(bench, options.rounds)
            if options.format == "table":
                print(table(case, bench, rates), flush=True)
            found.append(asdict(case) | {"ways": [asdict(rate) | {"best": rate.best} for rate in rates]})
    if options.format == "json":
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
