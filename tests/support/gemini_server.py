"""A server on localhost that answers like Google's API, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class Gemini(BaseHTTPRequestHandler):
    """Says B to whatever it is asked."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.asked.append(json.loads(body))
        reply = {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "Answer: B"}]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {
                "promptTokenCount": 90,
                "cachedContentTokenCount": 60,
                "candidatesTokenCount": 3,
                "totalTokenCount": 93,
            },
            "modelVersion": "gemini-3-pro",
        }
        sent = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def gemini_server() -> Iterator[str]:
    """Its address; `Gemini.asked` is empty at first."""
    Gemini.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gemini)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
