"""A scripted model for the stages of a project: it does by rule what a good model does, from the prompt alone."""

from __future__ import annotations

import json
import re

from tests.support.faulty_server import Request

_LINE = re.compile(r"^(\d+)\. (?:\[[\d.]+ s\] )?(.+)$", re.MULTILINE)
_FILLERS = re.compile(r"\b(?:uh|um|so|okay|and now|well)\b ?", re.IGNORECASE)
_EVENT = re.compile(
    r"\b(we (?:bring|move|slide|take)\b.*?)(?: (to (?:have|clear|see|leave)\b[^.]*))?\.?$", re.IGNORECASE
)


def numbered(text: str) -> list[tuple[int, str]]:
    """The numbered lines of a prompt."""
    return [(int(number), line) for number, line in _LINE.findall(text)]


def normalised(text: str) -> str:
    """Without fillers."""
    plain = _FILLERS.sub("", text)
    return plain[:1].upper() + plain[1:]


def scribe(request: Request) -> str:
    """The reply to a prompt of the stages `normalise` and `events`."""
    user = request.text.split('"intent": "…"}, …]}')[-1]
    if "You tidy the transcript" in request.text:
        lines = numbered(request.text.split("with its number.")[-1])
        return json.dumps({"sentences": [{"number": n, "text": normalised(line)} for n, line in lines]})
    events = []
    for number, line in numbered(user):
        found = _EVENT.search(line)
        if found:
            action, intent = found[1], found[2] or ""
            events.append({"sentences": [number], "quote": found[0], "action": action, "intent": intent})
    return json.dumps({"events": events})
