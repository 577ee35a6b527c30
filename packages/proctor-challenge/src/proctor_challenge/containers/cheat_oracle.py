"""A program that cheats: it searches for the references from inside a container, answers with what it finds, and
guesses otherwise. Run before a phase opens, it must score at chance level. It prints what it reached. It needs only
Python's standard library and imports nothing of Proctor, since an image holds only this file.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from typing import Any

_MOST_BYTES = 2**28
_MOST_FILE = 2**24
_SURE_CHARS = 16  # of a text that is found within another one
_OF_THE_SYSTEM = re.compile(
    r"/((proc|sys|dev|usr|lib|lib64|bin|sbin)(/|$)|(etc/(passwd|group|mtab|hosts|hostname|resolv\.conf)|program\.py|run/\.containerenv)$)"
)
_ANSWERS = re.compile(r"answer|reference|correct|gold|label|key|truth|solution|target", re.IGNORECASE)
_ADDRESSES = (("127.0.0.1", 80), ("169.254.169.254", 80), ("10.0.2.2", 80), ("192.0.2.1", 443), ("8.8.8.8", 53))
_SOCKETS = ("/run/podman/podman.sock", "/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock")

Record = dict[str, Any]


class Oracle:
    """What was reached, and the answers that follow from it. `roots` are the folders that are searched."""

    def __init__(self, roots: tuple[str, ...] = ("/", "/proc/1/root", "/proc/1/cwd")) -> None:
        self.reached: list[str] = []
        self.records: list[Record] = []
        read = 0
        for path, content in _files(roots):
            self.reached.append(f"file {path}")
            read += len(content)
            if read > _MOST_BYTES:
                break
            self.records += _records(content)
        self.reached += [f"address {host}:{port}" for host, port in _ADDRESSES if _answers_at(host, port)]
        self.reached += [f"socket {name}" for name in _SOCKETS if Path(name).exists()]

    def answer(self, question: Record) -> str:
        """The answer in a file, else a guess by the question's id."""
        found = self._look_up(str(question.get("question")))
        return guessed(question) if found is None else found

    def _look_up(self, text: str) -> str | None:
        """The answer in a record with the question's text, or in a record with or under an id from such a record. A
        file may hold only a part of the text that a system gets."""
        asked = [record for record in self.records if any(_is_of(value, text) for value in record.values())]
        names = {str(value) for record in asked for value in record.values() if isinstance(value, str | int)} - {text}
        same = [record for record in self.records if any(str(value) in names for value in record.values())]
        for record in [*asked, *same]:
            for field, value in record.items():
                if _ANSWERS.search(field) and not _is_of(value, text) and str(value) != "":
                    return _as_answer(value)
        return next((_as_answer(one[name]) for one in self.records for name in names & one.keys()), None)


def _is_of(value: Any, text: str) -> bool:
    return isinstance(value, str) and (value == text or (len(value) >= _SURE_CHARS and value in text))


def guessed(question: Record) -> str:
    """One of the options, or yes or no, drawn by the id, so that it is right at chance level."""
    drawn = hashlib.sha256(str(question.get("id")).encode()).digest()[0]
    options = question.get("options") or ["yes", "no"]
    return str(options[drawn % len(options)])


def _as_answer(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value)


def _files(roots: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    seen = set()
    for root in roots:
        for folder, folders, names in os.walk(root):
            inside = folder.removeprefix("/proc/1/root").removeprefix("/proc/1/cwd") or "/"
            folders[:] = [one for one in folders if not _OF_THE_SYSTEM.match(f"{inside.rstrip('/')}/{one}")]
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    about = path.lstat()
                    key = (about.st_dev, about.st_ino)
                    system = _OF_THE_SYSTEM.match(f"{inside.rstrip('/')}/{name}")
                    if path.is_file() and not system and key not in seen and about.st_size <= _MOST_FILE:
                        seen.add(key)
                        yield str(path), path.read_bytes()


def _records(content: bytes) -> list[Record]:
    text = content.decode(errors="replace")
    with contextlib.suppress(ValueError, RecursionError):
        return list(_objects(json.loads(text)))
    lines = text.splitlines()
    with contextlib.suppress(ValueError, RecursionError):
        return [one for line in lines if line.strip() for one in _objects(json.loads(line))]
    with contextlib.suppress(csv.Error, ValueError):
        between = "\t" if lines and "\t" in lines[0] else ","
        return [
            {str(name): value for name, value in row.items()}
            for row in csv.DictReader(io.StringIO(text), delimiter=between)
        ]
    return []


def _objects(value: Any) -> Iterator[Record]:
    """Every object in a JSON value, with the fields of the objects right below it."""
    if isinstance(value, dict):
        below = {
            f"{name}.{inner}": one
            for name, part in value.items()
            if isinstance(part, dict)
            for inner, one in part.items()
        }
        yield {name: part for name, part in value.items() if not isinstance(part, dict)} | below
        for part in value.values():
            yield from _objects(part)
    elif isinstance(value, list):
        for part in value:
            yield from _objects(part)


def _answers_at(host: str, port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex((host, port)) == 0


class _Handler(BaseHTTPRequestHandler):
    oracle: Oracle

    def do_GET(self) -> None:
        self._reply({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._reply({"answer": self.oracle.answer(json.loads(body))})

    def _reply(self, content: Record) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name of the library
        """Logs nothing."""


def main() -> None:
    """Searches, prints what was reached, and answers questions."""
    _Handler.oracle = Oracle()
    for one in _Handler.oracle.reached:
        sys.stdout.write(f"reached: {one}\n")
    sys.stdout.flush()
    location = os.environ["PROCTOR_SOCKET"]
    server = UnixStreamServer(location, _Handler)
    Path(location).chmod(0o666)  # the client is another user
    server.serve_forever()


if __name__ == "__main__":
    main()
