"""What a model was asked, as a text that can be frozen."""

from __future__ import annotations

import json

from tests.support.faulty_server import Request


def asked_text(request: Request) -> str:
    """What a request asked: the settings, the texts with the positions of pictures, the form of the reply."""
    parts = []
    for message in request.body["messages"]:
        content = message["content"]
        split = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts += [part["text"] if part["type"] == "text" else "[picture]" for part in split]
    form = json.dumps(request.body["response_format"], indent=1, ensure_ascii=False)
    return "\n---\n".join([f"temperature {request.body['temperature']}", *parts, form])
