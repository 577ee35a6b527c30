"""What other programs' files state of how a model was asked, by the names that Proctor has for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

SAMPLING = (
    "temperature", "top_p", "top_k", "max_tokens", "seed", "stop", "stop_seqs", "frequency_penalty", "presence_penalty",
    "reasoning_effort", "reasoning_tokens", "num_beams", "do_sample", "max_new_tokens", "max_gen_toks", "until",
)  # fmt: skip
"""The settings of a model that change its replies."""

_NAMES = {"max_new_tokens": "max_tokens", "max_gen_toks": "max_tokens", "stop_seqs": "stop", "until": "stop"}
_SHOWN = {
    "fps": "fps",
    "video_fps": "fps",
    "max_frames_num": "max_frames",
    "max_num_frames": "max_frames",
    "max_frames": "max_frames",
    "num_frames": "max_frames",
    "nframe": "max_frames",
    "max_pixels": "max_pixels",
    "min_pixels": "min_pixels",
    "max_side": "max_side",
}
"""Arguments that say what is shown of a video."""
_LONGEST = 200


def stated_settings(sampling: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The settings of a model (`sampling`), and what of its or the task's `arguments` says what is `shown`; without what is
    not stated.

    >>> stated_settings({"max_new_tokens": 16, "until": None}, {"pretrained": "m", "max_frames_num": "32"})
    {'sampling': {'max_tokens': 16}, 'shown': {'max_frames': 32}}
    """
    drawn = {
        _NAMES.get(name, name): _plain(one) for name, one in sampling.items() if name in SAMPLING and one is not None
    }
    shown = {_SHOWN[name]: _plain(one) for name, one in arguments.items() if name in _SHOWN and one is not None}
    found: dict[str, JsonValue] = {"sampling": drawn} if drawn else {}
    return found | ({"shown": shown} if shown else {})


def _plain(value: Any) -> JsonValue:
    """A number, also one that is written as a text; else what is stated, as a text of bounded length."""
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list):
        return [_plain(one) for one in value[:10]]
    text = str(value)[:_LONGEST]
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    return text
