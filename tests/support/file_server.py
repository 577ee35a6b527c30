"""A server of files that does what a script says: breaks off, forgets ranges, leads elsewhere, fails and comes back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Served:
    """One reply. `cut` is after how many bytes of the body the connection ends; `ranges`: whether a part is sent where
    one is asked for; `length`: whether the size is told."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    ranges: bool = True
    length: bool = True


@dataclass
class FileServer:
    """Where it listens, and what was asked for, each with its headers. The last reply of a path is given again."""

    port: int
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://127.0.0.1:{self.port}/{path}"


@contextmanager
def file_server(script: dict[str, Sequence[Served]]) -> Iterator[FileServer]:
    """The server, in threads of its own; `script` says by path what the first, second … request gets."""
    left = {f"/{path}": list(replies) for path, replies in script.items()}
    served = FileServer(0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            replies = left.get(self.path)
            reply = Served(status=404) if not replies else replies[0] if len(replies) == 1 else replies.pop(0)
            self._send(reply)

        def _send(self, reply: Served) -> None:
            start, asked = 0, self.headers.get("Range", "")
            same = self.headers.get("If-Range") in {None, reply.headers.get("ETag")}
            if reply.status == 200 and reply.ranges and same and asked.startswith("bytes="):
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
            body = reply.body[start:]
            self.send_response(206 if start else reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(reply.body) - 1}/{len(reply.body)}")
            if reply.length:
                self.send_header("Content-Length", str(len(body)))
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body if reply.cut is None else body[: max(0, reply.cut - start)])
            self.close_connection = reply.cut is not None or not reply.length

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
