"""A folder with the files of OpenAI's batch protocol in place of a server: questions are written, replies are read when
somebody has brought them, hours or days later."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from proctor.core import InputError, JsonError, PendingError, load_json, whole_file
from proctor.models.body_limit import MOST_BYTES
from proctor.models.connections import Posted

_WRITTEN = "requests-"
_MOST_LINES = 50_000  # in one file, as OpenAI takes it
_MOST_FILE = 100 * 2**20
_BY_US = re.compile(rb'\{"custom_id":"([0-9a-f]{32})"')
_MAY_COME = {408, 409, 425, 429}
_OK, _ERROR, _SERVER_ERROR = 200, 400, 500


class BatchFolder:
    """Stands where `Connections` stands. A question is known by a hash of its whole request: the same one is written
    once, and its reply serves all who ask it. Files `requests-….jsonl` are written here; all other `.jsonl` files are
    replies, as OpenAI's batches and `vllm run-batch` give them. A request that failed for no fault of its own is
    written again, one that was written and has no reply yet is not.

    Raises `InputError` with file and line for what is no reply.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[Path] = []
        """The files of this session, once it is closed."""
        self._places: dict[str, tuple[Path, int]] | None = None
        self._waiting: set[str] = set()
        self._open = ExitStack()
        self._file: BinaryIO | None = None
        self._lines = 0

    async def post(self, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Posted:
        """The reply to a request, if it came; else raises `PendingError`, and the request stands in a file. Nothing is
        sent, and headers, which hold keys, are not written."""
        del headers
        digest = hashlib.sha256(urlsplit(url).path.encode())
        for piece in body:
            digest.update(piece)
        key = digest.hexdigest()[:32]
        if self._places is None:
            self._look()
        if (place := (self._places or {}).get(key)) is not None:
            return self._reply(*place)
        if key not in self._waiting:
            self._write(key, urlsplit(url).path, body)
            self._waiting.add(key)
        raise PendingError(f"the reply comes by {self.folder}")

    async def aclose(self) -> None:
        """The files that were begun are there from now on."""
        self._file = None
        self._open.close()

    def _look(self) -> None:
        self._places, failed = {}, set[str]()
        ours = sorted(self.folder.glob(f"{_WRITTEN}*.jsonl"))
        for file in sorted(set(self.folder.glob("*.jsonl")) - set(ours)):
            for place, line, number in _lines(file):
                key, status, _ = _read(file, number, line)
                if status == _OK or (_ERROR <= status < _SERVER_ERROR and status not in _MAY_COME):
                    self._places[key] = file, place
                else:
                    failed.add(key)
        for file in ours:
            with file.open("rb") as lines:
                found = (_BY_US.match(line) for line in lines)
                self._waiting |= {one[1].decode() for one in found if one} - failed

    def _reply(self, file: Path, place: int) -> Posted:
        with file.open("rb") as stream:
            stream.seek(place)
            _, status, body = _read(file, 0, stream.readline(MOST_BYTES))
        return Posted(status, {"content-type": "application/json"}, json.dumps(body).encode())

    def _write(self, key: str, path: str, body: Sequence[bytes]) -> None:
        size = sum(map(len, body))
        if self._file is None or self._lines >= _MOST_LINES or self._file.tell() + size > _MOST_FILE:
            known = [int(found[1]) for one in self._names() if (found := re.search(r"-(\d{4,9})\.jsonl$", one))]
            name = f"{_WRITTEN}{max(known, default=0) + 1:04d}.jsonl"
            self.written.append(self.folder / name)
            self._file = self._open.enter_context(self._open.enter_context(whole_file(self.written[-1])).open("wb"))
            self._lines = 0
        head = f'{{"custom_id":"{key}","method":"POST","url":{json.dumps(path)},"body":'
        self._file.writelines([head.encode(), *body, b"}\n"])
        self._lines += 1

    def _names(self) -> list[str]:
        return [one.name for one in (*self.folder.glob(f"{_WRITTEN}*.jsonl"), *self.written)]


def _lines(file: Path) -> Iterator[tuple[int, bytes, int]]:
    """Each line with its place in bytes and its number."""
    with file.open("rb") as stream:
        place, number = 0, 1
        while line := stream.readline(MOST_BYTES + 1):
            if len(line) > MOST_BYTES:
                raise InputError(file, f"line {number}", found="more than 16 MB", expected="a reply")
            if line.strip():
                yield place, line, number
            place, number = place + len(line), number + 1


def _read(file: Path, number: int, line: bytes) -> tuple[str, int, object]:
    """Whose reply a line is, its status (500 where there is none) and its body."""
    try:
        said = load_json(line.decode(), halves=True)
        key, response = said["custom_id"], said.get("response")
        status = _SERVER_ERROR if response is None else int(response["status_code"])
        body = None if response is None else response["body"]
    except (JsonError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(
            file, f"line {number}", found=line[:60].decode(errors="replace"), expected="a reply of a batch"
        ) from error
    return str(key), status, body
