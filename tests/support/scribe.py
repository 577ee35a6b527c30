"""A scripted model for the stages of a project: it does by rule what a good model does, from the prompt alone."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import pairwise

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


_HAPPENS = re.compile(r"^(?:- |\d+\. \[[\d.]+ s\] )(.+?)(?: \(what for: (.+)\))?$", re.MULTILINE)
_OTHER = (
    "we hold the camera still",
    "we wash the field",
    "we turn the table",
    "we wait for the light",
    "we clean the lens",
)
_OPTION = re.compile(r"^([A-J])\. (.+)$", re.MULTILINE)


def _pick(text: str, count: int) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % count


def chosen(text: str) -> tuple[dict[str, object], str]:
    """The type and the events that the writer chooses, and what happens in them; none where they are given."""
    happens = [
        f"{action} {intent}".strip()
        for action, intent in _HAPPENS.findall(text.rsplit("What happens in the", maxsplit=1)[-1])
    ]
    free = re.findall(r"the first of them most: (\d+)", text)
    if not free:
        return {}, "; ".join(happens)
    number, kind = int(free[0]), _pick(text, 3) + 1
    numbers = (
        [number]
        if kind < 3 or len(happens) < 2
        else sorted({number, number + 1 if number < len(happens) else number - 1})
    )
    return {"type": kind, "events": numbers}, "; ".join(happens[one - 1] for one in numbers)


def _question(text: str) -> str:
    about, told = chosen(text)
    location = hashlib.sha256(text.encode()).hexdigest()[:4]
    stem = (
        f"Based on the clip, which step is shown at this point ({'ABCDEFGH'[_pick(text, 8)]}{location}), and what for?"
    )
    truth = about | {"question": stem, "groundtruth": told}
    if '"key"' not in text:
        return json.dumps(truth | {"answer": told})
    key = _pick(text, 4)
    options = [f"{one} to go on later" for one in _OTHER[:3]]
    return json.dumps(truth | {"options": [*options[:key], told, *options[key:]], "key": key + 1})


def longest(request: Request) -> str:
    """A model that sees no video and takes the longest option."""
    options = _OPTION.findall(request.text)
    if not options:
        return "I would guess that something is moved."
    return f"Answer: {max(options, key=lambda one: (len(one[1]), one[1]))[0]}"


def scribe(request: Request) -> str:
    """The reply to a prompt of any stage."""
    if "You tidy the transcript" in request.text:
        lines = numbered(request.text.split("with its number.")[-1])
        return json.dumps({"sentences": [{"number": n, "text": normalised(line)} for n, line in lines]})
    if "into a log of its events" in request.text:
        return _log(request.text.split('"intent": "…"}, …]}')[-1])
    if "You write items of a benchmark" in request.text:
        return _question(request.text)
    if "You edit a multiple-choice question" in request.text:
        right = request.text.split("Right option: ")[1].splitlines()[0]
        lent = re.findall(r"^- (.+)$", request.text.split("Candidates:")[-1], re.MULTILINE)
        wanted = int(re.findall(r"you\s+write (\d+) wrong", request.text)[0])
        texts = [one for one in lent if one != right][:wanted]
        tail = " ".join(right.split()[4:])  # other steps in the words of the right one, as a clinician writes them
        texts += [f"{one} {tail}".strip() for one in _OTHER][: wanted - len(texts)]
        return json.dumps({"distractors": texts})
    if "You edit a question about a clip" in request.text:
        return json.dumps({"question": f"Based on the clip, what is done and why? ({_pick(request.text, 10**6)})"})
    if "key frames" in request.text:
        return _on_frames(request.text)
    if "error_type" in request.text:  # the judge of free responses
        return json.dumps({"score": 0, "error_type": "both", "explanation": "Nothing of it is right."})
    return longest(request)


def _log(text: str) -> str:
    events = []
    for number, line in numbered(text):
        found = _EVENT.search(line)
        if found:
            action, intent = found[1], found[2] or ""
            events.append({"sentences": [number], "quote": found[0], "action": action, "intent": intent})
    return json.dumps({"events": events})


def _on_frames(text: str) -> str:
    if "why the key frames of a clinical skill" in text:
        return _rationale(text.rsplit("Right order: ", maxsplit=1)[-1].splitlines()[0].split(" > "))
    if "You edit the rationale" in text:
        lines = re.findall(r"^- (.+) \[([A-Z, ]+)\]$", text.rsplit("Draft:", maxsplit=1)[-1], re.MULTILINE)
        sentences = [{"text": one.replace(" now ", " "), "frames": frames.split(", ")} for one, frames in lines]
        return json.dumps({"sentences": sentences})
    if "You check one sentence about key frames" in text:
        seen = _pick(text.rsplit("Sentence: ", maxsplit=1)[-1], 5) > 0
        return json.dumps({"verdict": "supported" if seen else "not visible", "why": "By hands and instruments."})
    return ""


def _rationale(order: list[str]) -> str:
    """A sentence on the first frame, and one on each step from a frame to the next."""
    sentences = [{"text": f"In {order[0]} the instruments are as they were at first.", "frames": [order[0]]}]
    sentences += [
        {"text": f"From {one} to {other} an instrument is now moved.", "frames": [one, other]}
        for one, other in pairwise(order)
    ]
    return json.dumps({"order": order, "sentences": sentences})
