"""What to do about what a sight test found, in a sentence or two for each finding and each cause of no decision."""

from __future__ import annotations

from collections.abc import Mapping

_LIMIT = "Raise the server's limit (vLLM: --limit-mm-per-prompt, --max-model-len)"

_FOUND: Mapping[str, str] = {
    "blind": "See that the server was started with the model's vision part (llama.cpp: --mmproj), and that every gateway "
    "on the way passes image_url parts on.",
    "cached": "Turn the cache of replies off, in the server and in every gateway: its key leaves out the pictures.",
    "single": f"{_LIMIT}, or run with --max-frames 1.",
    "first": f"{_LIMIT}, or run with fewer frames (--max-frames).",
    "last": f"{_LIMIT}, or run with fewer frames (--max-frames).",
    "dropped": "The server samples again what it gets: switch that off, or send fewer frames (--fps, --max-frames).",
    "order": "Do not use answers that depend on order or time. Look for a server or chat template that keeps parts in their "
    "order.",
    "times": "Do not use answers with times. See that the chat template keeps each text before its picture; else the model "
    "itself may not tell times.",
    "shrunk": "Raise the limit of the model's processor (Qwen: max_pixels), or crop what matters: smaller details are lost.",
    "video": "Send frames (--video-as frames).",
    "tools": "Give this model no tools, or look for another server or chat template.",
    "schema": "Request structured replies otherwise (--structured prompted, --orders text).",
    "sound": "Give this model no sound, or look for one that hears.",
}
_FIRST_OF_VIDEO = (
    "Cut the clips shorter, raise the number of pictures that the server takes of a video, or send frames."
)
_VIDEO = {"first": _FIRST_OF_VIDEO, "last": _FIRST_OF_VIDEO, "dropped": _FIRST_OF_VIDEO}

_UNCHECKED: Mapping[str, str] = {
    "unreadable": "Replies came and no answer could be read from them: give more room (--settings max_tokens=1024), and see "
    "that it is a chat model.",
    "refused": "The model refuses to look at drawn pictures: ask its provider, or take another.",
    "rejected": "The server rejects such requests: see its message above, and its log.",
    "failed": "The server did not answer: see its log, and test again when it does (--within, if it is slow).",
    "not asked": "Allow more calls or time (--calls, --within).",
}
_FEW = "Test again: other pictures are drawn. If it stays so, the model reads too little for 64 calls to tell."


def advice_for(code: str, route: str = "frames") -> str:
    """What to do about a finding by its code and route.

    >>> advice_for("video")
    'Send frames (--video-as frames).'
    """
    return _VIDEO.get(code, _FOUND[code]) if route == "video" else _FOUND[code]


def advice_unchecked(states: Mapping[str, int]) -> str:
    """What to do where a required route could not be checked: by the commonest state of its replies that is no evidence, if
    those outnumber the others. `states` counts all replies by state.

    >>> advice_unchecked({"refused": 9, "right": 1})
    'The model refuses to look at drawn pictures: ask its provider, or take another.'
    >>> advice_unchecked({"wrong": 9, "refused": 1}).partition(":")[0]
    'Test again'
    """
    silent = {name: states.get(name, 0) for name in _UNCHECKED}
    most = max(silent, key=lambda name: silent[name])
    return _UNCHECKED[most] if 2 * sum(silent.values()) > sum(states.values()) else _FEW
