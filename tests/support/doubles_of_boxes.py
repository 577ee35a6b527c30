"""Boxes for tests: programs that answer in a given way, a view that shows given bytes, and how to ask."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path

from proctor.core import Answer, Frame, Item
from proctor.core.formats import BinaryFormat
from proctor.runs.engine import ask
from proctor_challenge.containers import BoxedSystem, BoxLimits, Executor, ProcessExecutor

LABEL = f"test-{os.getpid()}/1/1"
"""Of this process alone: others test at the same time."""

TEMPLATE = Path(__file__).parents[2] / "examples" / "algorithm" / "algorithm.py"

_SERVER = '''
import json, os, socket, sys, time

class Box:
    """One request at a time; `reply` gives the bytes that are sent."""
    def __init__(self, address=os.environ["PROCTOR_SOCKET"]):
        self.number = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        os.chmod(address, 0o666)
        self.listener.listen(5)

    def serve(self, reply):
        while True:
            connection = self.listener.accept()[0]
            with connection, connection.makefile("rb") as source:
                first = source.readline().split()
                length = 0
                while (line := source.readline().strip()):
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                body = source.read(length)
                if first[:1] == [b"GET"]:
                    connection.sendall(http({}))
                    continue
                self.number += 1
                try:
                    sent = reply(json.loads(body), connection)
                    connection.sendall(sent if sent is not None else b"")
                except (BrokenPipeError, ConnectionResetError):
                    pass

def http(said, status=200):
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return b"HTTP/1.1 %d OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % (status, len(body)) + body

'''


def program(folder: Path, code: str, name: str = "box.py") -> str:
    """A program that serves what `code` says: it has `Box`, `http` and Python's own library."""
    file = folder / name
    file.write_text(_SERVER + textwrap.dedent(code))
    return str(file)


class Shows:
    """A view that shows pictures with these bytes."""

    condition = "video"
    span = None

    def __init__(self, *jpegs: bytes) -> None:
        self._jpegs = jpegs

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        return [Frame(jpeg, None, "") for jpeg in self._jpegs]


def question(name: str = "q1", text: str = "Is a clip visible?") -> Item:
    return Item(id=name, group="v1", question=text, answer=BinaryFormat())


def boxed(image: str, *, executor: Executor | None = None, question_s: float = 60.0, startup_s: float = 60.0,
          limits: BoxLimits | None = None, label: str = LABEL) -> BoxedSystem:  # fmt: skip
    return BoxedSystem(
        "team#1", executor or ProcessExecutor(), image, limits or BoxLimits(),
        question_s=question_s, startup_s=startup_s, seed=7, label=label,
    )  # fmt: skip


async def answers(system: BoxedSystem, items: Sequence[Item], *jpegs: bytes) -> list[Answer]:
    """What the engine records, one question after another."""
    return [await ask(system, item, lambda _: Shows(*jpegs)) for item in items]
