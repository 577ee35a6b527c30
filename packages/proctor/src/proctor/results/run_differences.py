"""What differs between two sides of an explained gap: items, missing answers, reader, judge, and all that was asked."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from proctor.core import count_of, shorten
from proctor.results.explained_run import ExplainedRun
from proctor.runs import recorded

if TYPE_CHECKING:
    from proctor.core import Answer, Item
    from proctor.media import ShownRecord
    from proctor.results.arrays import Mask
    from proctor.results.gap_game import GapGame

ITEMS, MISSING, READER, JUDGE = "items", "missing", "reader", "judge"
MODEL, CONDITION, FRAMES, OPTIONS, PROMPT, SAMPLING, OTHER = (
    "model", "condition", "frames", "options", "prompt", "sampling", "other",
)  # fmt: skip

KINDS = (ITEMS, MISSING, READER, JUDGE, MODEL, CONDITION, FRAMES, OPTIONS, PROMPT, SAMPLING, OTHER)
"""The kinds of differences, in the order in which they are listed. From MODEL on they are of what was asked."""

ASKED_KINDS = KINDS[4:]

UNRECORDED = "not recorded"
MEDIA_FILES = "media files (by hash)"
_ASKED, _ABSENCES, _READER = "items asked", "missing answers", "reader of replies"
_FRAMES_SHOWN, _PICTURES, _OPTION_ORDER = "frames shown", "pictures (by hash)", "order of the options"
_TEMPLATE, _AS_SENT = "hash of the prompt's template", "prompt as sent"

_MEDIA = {
    "fps": "frames per second",
    "max_frames": "most frames",
    "max_side": "longest side of a frame (pixels)",
    "quality": "JPEG quality",
    "overlay": "elapsed time on frames",
    "video_as": "video sent as",
    "max_pixels": "most pixels of a frame",
    "min_pixels": "fewest pixels of a frame",
}
DIFFERENCE_NAMES = frozenset({_ASKED, _ABSENCES, _READER, JUDGE, MODEL, CONDITION, _FRAMES_SHOWN, _PICTURES, MEDIA_FILES,
                              _OPTION_ORDER, _TEMPLATE, _AS_SENT, *_MEDIA.values()})  # fmt: skip
"""The names of differences (`RunDifference.what`) that are Proctor's own; any other is the name of somebody's setting."""

_ASKED_HERE = {"model", "base_url", "servers", "model_settings", "prompt", "prompt_sha256", "sampling"}
_NOT_LISTED = {"media", "system", "notes", "served", "servers", "recorded", "sha256", "format", "model", "sampling",
               "shown", "oracle", "unsupported", "created", "task"}  # fmt: skip
_DIFF_LINES = 24
_DIGITS = 8
_SHOWN_KEY = "shown"
_SHOWN = 200
_ABSENT = "none"


@dataclass(frozen=True)
class RunDifference:
    """One difference: its kind (`KINDS`), what it is, and what it is on each side. `items` of the `of` common items on
    which it could be compared show it (None: it is one of the settings); `lines` say more, such as the difference of two
    prompts."""

    kind: str
    what: str
    first: str
    second: str
    items: int | None = None
    of: int | None = None
    lines: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self) | {"lines": list(self.lines)}


def differences_of(game: GapGame) -> tuple[RunDifference, ...]:
    """All differences of the two sides, in the order of `KINDS`. What one side has not recorded is listed where the other
    side has recorded it, as `UNRECORDED`: it may differ."""
    common = [game.first.shared.listed[row] for row in np.flatnonzero(game.common)]
    found = [*_scoring(game), *_settings(game.first, game.second), *_by_item(game.first, game.second, common)]
    return tuple(sorted(found, key=lambda one: KINDS.index(one.kind)))


def _scoring(game: GapGame) -> Iterator[RunDifference]:
    """Differences of items, missing answers, readers and judges."""
    first, second = game.sides
    alone = [int((side.items & ~game.common).sum()) for side in game.sides]
    if any(alone):
        one, other = (f"{int(side.items.sum())} ({count} alone)" for side, count in zip(game.sides, alone, strict=True))
        yield RunDifference(ITEMS, _ASKED, one, other)
    if first.policy != second.policy:
        one, other = (f"{side.policy.value} ({int(side.own.missing.sum())} missing)" for side in game.sides)
        yield RunDifference(MISSING, _ABSENCES, one, other)
    read = [int((side.read_otherwise & game.common).sum()) for side in game.sides]
    if first.reader != second.reader or any(read):
        several = int((game.common & first.by_code).sum())
        lines = [line for side in game.sides for line in _read_lines(side, side.read_otherwise & game.common, several)]
        yield RunDifference(READER, _READER, first.reader, second.reader, sum(read), several, tuple(lines))
    judged = game.common & ~first.by_code
    if first.scorer != second.scorer and judged.any():
        yield RunDifference(JUDGE, JUDGE, first.scorer, second.scorer, None, int(judged.sum()))


def _read_lines(side: ExplainedRun, otherwise: Mask, several: int) -> list[str]:
    """How many replies of a side have another score as they are read now, and how many of these name an option by a letter
    that another program may have read in the order of the questions here."""
    count = int(otherwise.sum())
    if not count:
        return []
    items = [side.shared.listed[row] for row in np.flatnonzero(otherwise).tolist()]
    turned = sum(_order(side, item) not in (None, "; ".join(item.options)) for item in items if len(item.options) > 1)
    lines = [f"{side.name}: {count} of {several} replies have another score as Proctor reads them now"]
    if turned:
        lines.append(f"{side.name}: {turned} of these {count} were shown their options in another order than here")
    return lines


def _settings(first: ExplainedRun, second: ExplainedRun) -> Iterator[RunDifference]:
    """Differences of the settings that both sides, or one of them, state."""
    one, other = (StatedSettings.of(side.settings) for side in (first, second))
    if not _same_model(one.model, other.model):
        yield RunDifference(MODEL, MODEL, one.model or UNRECORDED, other.model or UNRECORDED)
    if first.condition != second.condition:
        yield RunDifference(CONDITION, CONDITION, first.condition or UNRECORDED, second.condition or UNRECORDED)
    kinds: tuple[_Kind, ...] = (
        (FRAMES, one.media, other.media, _MEDIA),
        (PROMPT, one.prompt, other.prompt, {"prompt_sha256": _TEMPLATE}),
        (SAMPLING, one.sampling, other.sampling, {}),
        (OTHER, one.other, other.other, {}),
    )
    if first.condition != second.condition and {} in (one.media, other.media):
        kinds = kinds[1:]  # one side shows nothing: that is its condition
    for kind, mine, theirs, named in kinds:
        yield from _pairs(kind, mine, theirs, named)


def _same_model(first: str, second: str) -> bool:
    """Whether two names may be of one model: with and without a provider's before it ("openai:m", "openai/m", "m").

    >>> _same_model("openai:gpt-5.2", "openai/gpt-5.2"), _same_model("m", "vllm/m"), _same_model("m", "n")
    (True, True, False)
    """
    one, other = (name.replace(":", "/") for name in (first, second))
    return one == other or (bool(one and other) and (one.endswith(f"/{other}") or other.endswith(f"/{one}")))


_Kind = tuple[str, Mapping[str, Any] | None, Mapping[str, Any] | None, Mapping[str, str]]


def _pairs(
    kind: str, first: Mapping[str, Any] | None, second: Mapping[str, Any] | None, named: Mapping[str, str]
) -> Iterator[RunDifference]:
    """The entries that differ. A side that states nothing of the kind (None) has it unrecorded."""
    for name in dict.fromkeys([*(first or {}), *(second or {})]):
        one, other = (
            UNRECORDED if side is None else _text(side[name]) if name in side else _ABSENT for side in (first, second)
        )
        if one != other:
            yield RunDifference(kind, named.get(name, name), _short(name, one), _short(name, other))


@dataclass(frozen=True)
class StatedSettings:
    """What settings state of how a run was asked; None where they state nothing of the kind."""

    model: str
    media: Mapping[str, Any] | None
    prompt: Mapping[str, Any] | None
    sampling: Mapping[str, Any] | None
    other: Mapping[str, Any] | None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> StatedSettings:
        """Of a run of Proctor, or of a log of another program (see `proctor.interchange`)."""
        system = settings.get("system")
        if isinstance(system, dict):
            return cls._of_run(settings, system)
        sampling, shown = settings.get("sampling"), settings.get("shown")
        return cls(
            str(settings.get("model", "")),
            shown if isinstance(shown, dict) else None,
            None,
            sampling if isinstance(sampling, dict) else None,
            None if "recorded" in settings else _others(settings),
        )

    @classmethod
    def _of_run(cls, settings: Mapping[str, Any], system: Mapping[str, Any]) -> StatedSettings:
        """Of a run: under a condition that shows nothing there are no settings of frames."""
        media, drawn = _object(settings.get("media")), _object(system.get("sampling"))
        shown = media | {name: one for name, one in drawn.items() if one is not None} if media else {}
        prompt = {name: system[name] for name in ("prompt_sha256",) if name in system}
        more = {name: one for name, one in system.items() if name not in _ASKED_HERE}
        sampling = _object(system.get("model_settings"))
        return cls(str(system.get("model", "")), shown, prompt, sampling, _others(settings) | more)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _others(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in settings.items() if name not in _NOT_LISTED}


def _by_item(first: ExplainedRun, second: ExplainedRun, common: Sequence[Item]) -> Iterator[RunDifference]:
    """Differences of what was sent with each item, as far as both sides, or one of them, record it."""
    pairs = [(first.answers[0].get(item.id), second.answers[0].get(item.id)) for item in common]
    shown = [tuple(None if one is None else _shown(one) for one in pair) for pair in pairs]
    yield from _compared(FRAMES, _FRAMES_SHOWN, [tuple(map(_number, pair)) for pair in shown])
    yield from _compared(FRAMES, _PICTURES, [tuple(map(_hashes, pair)) for pair in shown])
    yield from _compared(FRAMES, MEDIA_FILES, [tuple(map(_files, pair)) for pair in shown])
    orders = [(_order(first, item), _order(second, item)) for item in common if len(item.options) > 1]
    yield from _compared(OPTIONS, _OPTION_ORDER, orders)
    yield from _prompts(first, second, common)


def _shown(answer: Answer) -> Sequence[ShownRecord] | None:
    """What was shown, as recorded (empty: nothing was); None without a record."""
    found = recorded(answer)
    return found if found or answer.extra.get(_SHOWN_KEY) == [] else None


def _number(shown: Sequence[ShownRecord] | None) -> int | None:
    return None if shown is None else sum(len(one.prefixes) for one in shown)


def _hashes(shown: Sequence[ShownRecord] | None) -> str | None:
    return " ".join(one.sha256[:_DIGITS] for one in shown) if shown else None


def _files(shown: Sequence[ShownRecord] | None) -> str | None:
    found = {name: digest for one in shown or () for name, digest in one.media.items()}
    return ", ".join(f"{name} {digest[:_DIGITS]}" for name, digest in sorted(found.items())) or None


def _order(side: ExplainedRun, item: Item) -> str | None:
    """The options in the order in which they were shown: as the record of an answer says, and by Proctor as they stand."""
    answer = side.answers[0].get(item.id)
    listed = None if answer is None else answer.extra.get("options_shown")
    if not isinstance(listed, list):
        listed = [*item.options] if side.asked_here else None
    return None if listed is None else "; ".join(map(str, listed))


def _compared(kind: str, what: str, pairs: Sequence[tuple[Any, ...]]) -> Iterator[RunDifference]:
    """A difference of what both sides record of items (None: nothing), with the values of the items that show it; or that one
    side has no record of it."""
    both = [pair for pair in pairs if None not in pair]
    if not both:
        there = [any(pair[side] is not None for pair in pairs) for side in (0, 1)]
        if any(there):
            first, second = ("recorded" if one else UNRECORDED for one in there)
            yield RunDifference(kind, what, first, second)
        return
    other = [pair for pair in both if pair[0] != pair[1]]
    if other:
        first, second = (_range([pair[side] for pair in other]) for side in (0, 1))
        yield RunDifference(kind, what, first, second, len(other), len(both))


def _range(values: Sequence[Any]) -> str:
    """Numbers as a range; of texts the first one."""
    if all(isinstance(one, int) for one in values):
        low, high = min(values), max(values)
        return f"{low}" if low == high else f"{low} to {high}"
    return shorten(f"for example {values[0]}", _SHOWN)


def _prompts(first: ExplainedRun, second: ExplainedRun, common: Sequence[Item]) -> Iterator[RunDifference]:
    """A difference of the prompts as they were sent: by their hashes where both sides have them, else by their texts."""
    hashes = [(item, first.prompt_hash(item), second.prompt_hash(item)) for item in common]
    known = [one for one in hashes if one[1] and one[2]]
    if not known:
        yield from _prompt_texts(first, second, common)
        return
    other = [one for one in known if one[1] != one[2]]
    if not other:
        return
    item, mine, theirs = other[0]
    one, two = first.prompt_of(item), second.prompt_of(item)
    if one and two:
        yield RunDifference(PROMPT, _AS_SENT, _size(one), _size(two), len(other), len(known), _diff(item.id, one, two))
    else:  # a template is not here
        sides = (f"hash {mine[:_DIGITS]}", f"hash {theirs[:_DIGITS]}")
        yield RunDifference(PROMPT, _AS_SENT, *sides, len(other), len(known))


def _prompt_texts(first: ExplainedRun, second: ExplainedRun, common: Sequence[Item]) -> Iterator[RunDifference]:
    both = [(item, first.prompt_of(item, whole=False), second.prompt_of(item, whole=False)) for item in common]
    read = [one for one in both if one[1] and one[2]]
    differing = [one for one in read if one[1].split() != one[2].split()]
    if differing:
        item, one, two = differing[0]
        lines = _diff(item.id, one, two)
        yield RunDifference(PROMPT, _AS_SENT, _size(one), _size(two), len(differing), len(read), lines)
    elif not read:
        yield from _compared(PROMPT, _AS_SENT, [(one or None, two or None) for _, one, two in both])


def _size(text: str) -> str:
    return count_of(len(text.split()), "word")


def _diff(name: str, one: str, two: str) -> tuple[str, ...]:
    """The lines in which two prompts of an item differ."""
    changed = difflib.unified_diff(one.split("\n"), two.split("\n"), "first", "second", name, name, 1, "")
    lines = [shorten(line, _SHOWN) for line in changed]
    more = [f"… and {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
    return (*lines[:_DIFF_LINES], *more)


def _short(name: str, text: str) -> str:
    """A setting as it is listed: of a hash the first digits, of a text one line."""
    return text[:_DIGITS] if name.endswith("sha256") and text not in (UNRECORDED, _ABSENT) else shorten(text, _SHOWN)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
