"""What the gateway costs: 2,000 questions with a picture to a container that says how long each took it, and deadlines
that are missed.

Wanted: less than 5 ms a question on top of the container's own time, and deadlines kept within 50 ms.

    python bench/gateway.py --executor podman
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor.core import Answer, Item, Status
from proctor.core.formats import FreeTextFormat
from proctor.runs import ask
from proctor_challenge.containers import BoxedSystem, BoxLimits, executor_of, program_image
from tests.support.doubles_of_boxes import Shows

PROGRAM = """
import json, os, socket, time
path = os.environ["PROCTOR_SOCKET"]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, 0o666)
listener.listen(16)
while True:
    connection = listener.accept()[0]
    started = time.perf_counter()
    with connection, connection.makefile("rb") as source:
        length = 0
        while line := source.readline().strip():
            length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
        body = source.read(length)
        said = {}
        if body:
            asked = json.loads(body)
            if asked["question"] == "hang":
                connection.recv(1)  # until the other side has gone
                continue
            with open(asked["media"][0]["path"], "rb") as picture:
                seen = len(picture.read())
            time.sleep(float(asked["question"]))
            said = {"answer": json.dumps([seen, time.perf_counter() - started])}
        reply = json.dumps(said).encode()
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(reply) + reply)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--executor", default="podman", help="podman, docker or process")
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--picture", type=int, default=100_000, help="bytes of each question's picture")
    parser.add_argument("--own", type=float, default=0.002, help="seconds that the container takes itself")
    parser.add_argument("--late", type=int, default=50, help="questions that are never answered")
    given = parser.parse_args()
    asyncio.run(measure(given))


async def measure(given: argparse.Namespace) -> None:
    """Prints the table."""
    executor = executor_of(given.executor)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        image = await program_image(executor, program)
        began = time.perf_counter()
        async with system(image, given, question_s=60) as boxed:
            print(f"{given.executor}: ready after {time.perf_counter() - began:.2f} s")
            extra = [await on_top(boxed, number, given) for number in range(given.questions)]
        async with system(image, given, question_s=0.1) as boxed:
            over = [await overrun(boxed, number) for number in range(min(given.late, 9))]
        while len(over) < given.late:
            async with system(image, given, question_s=0.1) as boxed:
                over += [await overrun(boxed, number) for number in range(min(given.late - len(over), 9))]
    print(f"{'':34}{'median':>10}{'95 %':>10}{'most':>10}")
    shown(f"{given.questions} questions, on top", extra)
    shown(f"{given.late} late ones, after the deadline", over)


def system(image: str, given: argparse.Namespace, *, question_s: float) -> BoxedSystem:
    limits = BoxLimits(memory=2**28, cpus=1, processes=32, shared_memory=2**20, scratch=2**20, log=2**16)
    return BoxedSystem(
        "bench", executor_of(given.executor), image, limits,
        question_s=question_s, startup_s=60, seed=0, label="bench/gateway/1",
    )  # fmt: skip


async def on_top(boxed: BoxedSystem, number: int, given: argparse.Namespace) -> float:
    """Milliseconds of one question, in total (its file is written and removed, too), without the container's own."""
    started = time.perf_counter()
    answer = await asked(boxed, f"q{number}", str(given.own), bytes(given.picture))
    taken = time.perf_counter() - started
    seen, own = json.loads(answer.text)
    assert seen == given.picture
    return float(1000 * (taken - own))


async def overrun(boxed: BoxedSystem, number: int) -> float:
    """Milliseconds after the deadline at which a question without an answer ended."""
    answer = await asked(boxed, f"q{number}", "hang", b"")
    assert answer.status is Status.TIMED_OUT
    assert answer.timing is not None
    return 1000 * (answer.timing.model_s - 0.1)


async def asked(boxed: BoxedSystem, name: str, question: str, jpeg: bytes) -> Answer:
    item = Item(id=name, group="v", question=question, answer=FreeTextFormat())
    return await ask(boxed, item, lambda _: Shows(jpeg))


def shown(what: str, milliseconds: list[float]) -> None:
    ordered = sorted(milliseconds)
    rows = (len(ordered) // 2, int(0.95 * len(ordered)), -1)
    print(f"{what:34}" + "".join(f"{ordered[row]:7.2f} ms" for row in rows))


if __name__ == "__main__":
    main()
