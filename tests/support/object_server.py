"""A server of objects over plain HTTP, or the protocols of S3, Google Cloud Storage and Azure (keys below a bucket or
container, signatures ignored), read and written, that fails as a script says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import pytest

ObjectFault = Literal["503", "403", "dropped", "cut", "short", "whole", "replaced"]
"""`dropped`: no reply; `cut`: the connection ends within the body; `short`: a smaller part than was asked for, as if it
were all; `whole`: all of it where a part is asked for; `replaced`: from now on it is another version."""


_STATUS = {"403": 403, "503": 503}


@dataclass
class ObjectServer:
    """What it has, by path, and what the next requests for a part meet: a fault, or None for a good reply. The last one
    stays; `write_faults` are those of writing. `asked` are the requests, in order."""

    objects: dict[str, bytes]
    faults: list[ObjectFault | None] = field(default_factory=list)
    write_faults: list[ObjectFault | None] = field(default_factory=list)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    versions: int = 1
    port: int = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def next_fault(self, *, writing: bool = False) -> ObjectFault | None:
        """What this request meets."""
        faults = self.write_faults if writing else self.faults
        if not faults:
            return None
        return faults[0] if len(faults) == 1 else faults.pop(0)

    def tag(self, key: str) -> str:
        """What tells versions of an object apart."""
        return f'"v{self.versions}"' if key not in self.written else f'"{sha256(self.objects[key]).hexdigest()}"'

    def write(self, key: str, body: bytes, headers: Message) -> tuple[int, bytes, dict[str, str]] | None:
        """Takes an object where what is there is what the headers say. None: no reply."""
        self.asked.append(("PUT", key, ""))
        fault = self.next_fault(writing=True)
        if fault is not None:
            return (_STATUS[fault], b"", {}) if fault in _STATUS else None
        there = key in self.objects
        expected, generation = headers.get("If-Match"), headers.get("x-goog-if-generation-match")
        if (headers.get("If-None-Match") == "*" and there) or (expected and not (there and expected == self.tag(key))):
            return 412, b"", {}
        if generation is not None and int(generation) != self.written.count(key):
            return 412, b"", {}
        self.objects[key] = body
        self.written.append(key)
        return 201 if "x-ms-blob-type" in headers else 200, b"", self.described(key)

    def described(self, key: str) -> dict[str, str]:
        """The headers that say which version there is."""
        when = "Mon, 02 Nov 2026 10:00:00 GMT"
        return {"ETag": self.tag(key), "Last-Modified": when, "x-goog-generation": str(self.written.count(key))}

    def reply(
        self, key: str, asked: str, fault: ObjectFault | None, unless: str = ""
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers."""
        body = self.objects.get(key)
        if body is None or fault in _STATUS:
            return (404 if body is None else _STATUS[str(fault)]), b"", {}
        headers = self.described(key)
        if unless == headers["ETag"]:
            return 304, b"", headers
        if not asked or fault == "whole":
            return 200, body, headers
        start, end = (int(one) for one in asked.removeprefix("bytes=").split("-"))
        if start >= len(body):
            return 416, b"", {}
        end = min(end, len(body) - 1)
        end -= 7 if fault == "short" else 0
        return 206, body[start : end + 1], {**headers, "Content-Range": f"bytes {start}-{end}/{len(body)}"}


@contextmanager
def object_server(objects: dict[str, bytes]) -> Iterator[ObjectServer]:
    """The server, in threads of its own."""
    served, guard = ObjectServer(objects), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(None)

        def do_GET(self) -> None:
            with guard:
                fault = served.next_fault()
                served.versions += fault == "replaced"
            self._answer(fault)

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with guard:
                reply = served.write(unquote(urlsplit(self.path).path).lstrip("/"), body, self.headers)
            self._send(*reply) if reply else setattr(self, "close_connection", True)

        def _answer(self, fault: ObjectFault | None) -> None:
            key, asked = unquote(self.path).lstrip("/"), self.headers.get("Range", "")
            served.asked.append((self.command, key, asked))
            if fault == "dropped":
                self.close_connection = True
            else:
                unless = self.headers.get("If-None-Match", "")
                self._send(*served.reply(key, asked, fault, unless), cut=fault == "cut")

        def _send(self, status: int, body: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body[: len(body) // 2] if cut else body)
            self.close_connection = cut

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def moto_bucket(patch: pytest.MonkeyPatch) -> Iterator[Any]:
    """moto's server, which stands for S3, with an empty bucket `bucket`; the environment says where it is. Gives
    boto3's client."""
    boto3, moto = pytest.importorskip("boto3"), pytest.importorskip("moto.server")
    served = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    served.start()
    try:
        host, port = served.get_host_and_port()
        told = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1"}
        for name, value in {**told, "ENDPOINT_URL": f"http://{host}:{port}"}.items():
            patch.setenv(f"AWS_{name}", value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        yield client
    finally:
        served.stop()
