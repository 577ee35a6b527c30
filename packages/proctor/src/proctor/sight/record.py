"""The result of a sight test, and where it is kept: one file for each model, server and settings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue, ValidationError

from proctor.core import FrozenModel, content_hash, count_of, write_whole

VERSION = 1

RouteState = Literal["sees", "fault", "could not check", "not offered", "pending"]
"""`sees`: better than the best constant answer. `fault`: something is wrong that a finding names. `not offered`: the server
rejects such requests. `pending`: replies of a batch are to come."""


class SightFinding(FrozenModel):
    """What is wrong: its `code` for programs, a sentence, and the counts behind it."""

    code: Literal[
        "blind",
        "single",
        "first",
        "last",
        "dropped",
        "order",
        "times",
        "shrunk",
        "video",
        "cached",
        "tools",
        "schema",
        "sound",
    ]
    route: str
    text: str
    evidence: str

    @property
    def advice(self) -> str:
        """What to do about it."""
        from proctor.sight.advice import advice_for  # runs and results read records, and print no advice

        return advice_for(self.code, self.route)


class RouteResult(FrozenModel):
    """What a route showed: `right` of `replies` that are evidence; `note` says why it could not be checked, `at` when it was
    tested."""

    state: RouteState
    right: int = 0
    replies: int = 0
    note: str = ""
    at: str = ""


class KindResult(FrozenModel):
    """The replies to one kind of question by one route. `constant` is the share that the best constant answer gets right, `p`
    the probability that it gets as many right as the model. Other states: see `Reading`."""

    kind: str
    route: str
    asked: int
    right: int
    wrong: int
    nothing_seen: int
    unreadable: int
    refused: int
    rejected: int
    failed: int
    pending: int = 0
    constant: float
    p: float | None = None


class SightResult(FrozenModel):
    """The result of a sight test. `findings` say what is wrong, `routes` what each route showed, and `kinds` count the
    replies. `digits_px` is the height of the smallest digits that were read, in a picture whose longest side is `side_px`.
    `settings` are those of the model, `media` those of frames; `seed` draws all pictures again. `notes` are for people."""

    version: int = VERSION
    model: str
    settings: dict[str, JsonValue]
    media: dict[str, JsonValue]
    at: str
    seed: int
    calls: int
    seconds: float
    routes: dict[str, RouteResult]
    required: tuple[str, ...]
    findings: tuple[SightFinding, ...] = ()
    kinds: tuple[KindResult, ...] = ()
    digits_px: int | None = None
    side_px: int = 0
    notes: tuple[str, ...] = ()
    cost_usd: float | None = Field(default=None)

    @property
    def state(self) -> Literal["sees", "fault", "could not check"]:
        """`fault` if anything is wrong, `sees` if all required routes were checked, and nothing is. A required route that was
        not tested, and none at all, are not checked."""
        if self.findings:
            return "fault"
        return "sees" if self.required and self.passed(self.required) else "could not check"

    @property
    def exit_code(self) -> int:
        """0 for `sees`, 1 for `fault`, 2 for `could not check`."""
        return {"sees": 0, "fault": 1, "could not check": 2}[self.state]

    @property
    def advice(self) -> str:
        """What to do where a required route could not be checked; "" where all were, or something is wrong."""
        if self.state != "could not check":
            return ""
        from proctor.sight.advice import advice_unchecked

        states: Counter[str] = Counter()
        for one in self.kinds:
            if one.route in self.required and self.routes[one.route].state != "sees":
                states.update(
                    {
                        name: getattr(one, name)
                        for name in ("right", "wrong", "unreadable", "refused", "rejected", "failed")
                    }
                )
                states["nothing seen"] += one.nothing_seen
        return advice_unchecked(states)

    def wrong(self, routes: Collection[str]) -> list[str]:
        """What is wrong with these routes, in sentences."""
        return [finding.text for finding in self.findings if finding.route in routes]

    def passed(self, routes: Collection[str]) -> bool:
        """Whether all these routes were tested, and are seen."""
        return all(name in self.routes and self.routes[name].state == "sees" for name in routes)

    def beyond(self, media: Mapping[str, Any]) -> list[str]:
        """What a run with these settings of media sends beyond what was tested: more frames of a clip, larger pictures."""
        return _beyond(self.media, media)

    @property
    def pending(self) -> bool:
        """Whether replies of a batch are to come."""
        return any(route.state == "pending" for route in self.routes.values())

    def to_json(self) -> dict[str, Any]:
        """All of it, for programs, with its state and what to do."""
        told = self.model_dump(mode="json")
        for row, finding in zip(told["findings"], self.findings, strict=True):
            row["advice"] = finding.advice
        return {"state": self.state, "advice": self.advice, **told}

    def note(self) -> dict[str, JsonValue]:
        """What a run keeps of it."""
        seen = [name for name, route in self.routes.items() if route.state == "sees"]
        return {
            "state": self.state,
            "at": self.at,
            "calls": self.calls,
            "routes": [*seen],
            "found": [finding.text for finding in self.findings],
            "media": {name: self.media.get(name) for name in _SIZES},
        }


_SIZES = ("max_frames", "max_side")


def _beyond(tested: Mapping[str, Any], sent: Mapping[str, Any]) -> list[str]:
    """See `SightResult.beyond`; None for a side is no limit. What is not recorded on either side is not compared.

    >>> _beyond({"max_frames": 8, "max_side": 512}, {"max_frames": 64, "max_side": None})
    ['64 frames of a clip (tested: 8)', 'pictures of any size (tested: 512 pixels)']
    """
    found: list[str] = []
    few, most = tested.get("max_frames"), sent.get("max_frames")
    if isinstance(few, int) and isinstance(most, int) and most > few:
        found.append(f"{most} frames of a clip (tested: {few})")
    if "max_side" not in tested or "max_side" not in sent or not isinstance(side := tested["max_side"], int):
        return found
    larger = sent["max_side"]
    if larger is None or (isinstance(larger, int) and larger > side):
        size = "any size" if larger is None else f"{larger} pixels"
        found.append(f"pictures of {size} (tested: {side} pixels)")
    return found


def key_of(settings: Mapping[str, Any]) -> str:
    """What a result is kept by: the model, its servers, its settings, and how structured replies are requested.

    >>> key_of({"model": "m", "base_url": "http://a/v1"}) == key_of({"model": "m", "base_url": "http://b/v1"})
    False
    >>> key_of({"model": "m", "prompt": "x"}) == key_of({"model": "m", "prompt": "y"})
    True
    """
    kept = {name: settings.get(name) for name in ("model", "base_url", "servers", "model_settings", "structured")}
    return content_hash({**kept, "version": VERSION})


def record_file(settings: Mapping[str, Any], cache: str | Path | None = None) -> Path:
    """The file of a model's result, in the folder of the cache on this machine."""
    from proctor.media import cache_folder

    return cache_folder(cache) / "sight" / f"{key_of(settings)[:32]}.json"


def keep(result: SightResult, cache: str | Path | None = None) -> Path:
    """Writes a result to replace the one before, whole or not at all. Routes that were not tested again, and what was wrong
    with them, are kept."""
    before, file = kept_result(result.settings, cache), record_file(result.settings, cache)
    if before is not None:
        others = {name: route for name, route in before.routes.items() if name not in result.routes}
        wrong = tuple(one for one in before.findings if one.route in others)
        required = tuple(dict.fromkeys((*(name for name in before.required if name in others), *result.required)))
        update = {"routes": {**others, **result.routes}, "findings": (*wrong, *result.findings), "required": required}
        result = result.model_copy(update=update)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(result.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")
    return file


def kept_result(settings: Mapping[str, Any], cache: str | Path | None = None) -> SightResult | None:
    """The last result for these settings; None without one, and for a file that is none (of another version, cut off)."""
    try:
        said = json.loads(record_file(settings, cache).read_bytes())
        if not isinstance(said, dict):
            return None
        said.pop("state", None)
        return SightResult.model_validate(said)
    except (OSError, ValueError, ValidationError):
        return None


def sight_note(told: Mapping[str, Any], media: object = None) -> str:
    """One line on the sight test of the model behind a run: of what the run keeps of it (`SightResult.note`), and the run's
    own settings of media.

    >>> sight_note({"state": "sees", "at": "2026-11-29T10:00:00+00:00", "calls": 46, "routes": ["frames"]})
    'sight test passed on 2026-11-29 by frames (46 calls)'
    >>> sight_note({"state": "fault", "at": "2026-11-29", "found": ["No picture arrives."]})
    'sight test of 2026-11-29: No picture arrives.'
    """
    day, state = str(told.get("at", ""))[:10], told.get("state")
    if state == "fault":
        return f"sight test of {day}: {' '.join(map(str, told.get('found', [])))}"
    if state != "sees":
        return f"sight test of {day}: could not check"
    calls = told.get("calls")
    count = f" ({count_of(calls, 'call')})" if isinstance(calls, int) else ""
    tested, sent = (one if isinstance(one, dict) else {} for one in (told.get("media"), media))
    more = _beyond(tested, sent)
    beyond = f"; the run sends up to {' and '.join(more)}" if more else ""
    return f"sight test passed on {day} by {', '.join(map(str, told.get('routes', [])))}{count}{beyond}"
