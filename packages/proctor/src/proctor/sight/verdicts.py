"""What readings say: suspicions from the first questions, and findings where exact tests confirm them.

Everything here is a function of readings. A weak model misses some pictures at random; what a server loses is missing in a
pattern, which is what is tested.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

from proctor.core import p_value
from proctor.sight import pictures
from proctor.sight.asking import Reading, count
from proctor.sight.evidence import ALPHA, RightOf, constant_share, is_gone, p_fewer, p_misplaced, p_seen
from proctor.sight.probes import CHOSEN, READ, SECONDS_A_NUMBER, Kind
from proctor.sight.record import KindResult, SightFinding

NUMBERS = 900
"""Numbers of three digits: a constant answer is right once in 900 questions, whatever it is."""

_LEGIBLE_PX = (7.0, 9.0)  # the smallest digits that can be read are about as high as this
_ILLEGIBLE_PX = 4  # a digit has five lines
_NEXT_SMALLER = 0.8  # of the smallest height that was asked for, if it was read
_FEW = 6  # replies without which nothing is said
_LUCKY_TONES = 2  # right of eight: a quarter are by chance
_REPEATED = 2  # numbers of other requests: one may be a guess
_MODULI = (2, 4)

LEAST_FAULT = 11
"""Pixels: a large picture in which digits of this height are read is no fault, however much smaller it arrived."""

Part = Callable[[int], bool]
"""Which positions of a clip are seen."""


def constant_of(kind: Kind, readings: Sequence[Reading]) -> float:
    """The share of questions that a system without sight gets right by its best constant answer."""
    if kind in CHOSEN or kind is Kind.TONES:
        some = [one.probe for one in readings if one.probe.kind is kind and one.counts]
        return constant_share([str(one.truth) for one in some], 4)
    if kind is Kind.TIME:
        return 0.1
    return 1 / NUMBERS


def seen_p(readings: Sequence[Reading], kinds: Sequence[Kind]) -> float:
    """The p of `p_seen` over these kinds."""
    return p_seen([(count(readings, kind), constant_of(kind, readings)) for kind in kinds if count(readings, kind).of])


def kind_results(readings: Sequence[Reading]) -> tuple[KindResult, ...]:
    """The counts of each kind by each route, in the order of their first question."""
    groups = dict.fromkeys((one.probe.route, one.probe.kind) for one in readings if one.state != "not asked")
    made = []
    for route, kind in groups:
        some = [one for one in readings if (one.probe.route, one.probe.kind) == (route, kind)]
        states = Counter(one.state for one in some)
        told, constant = count(some), constant_of(kind, some)
        made.append(
            KindResult(
                kind=kind.value,
                route=route,
                asked=len(some) - states["not asked"],
                right=states["right"],
                wrong=states["wrong"],
                nothing_seen=states["nothing seen"],
                unreadable=states["unreadable"],
                refused=states["refused"],
                rejected=states["rejected"],
                failed=states["failed"],
                pending=states["pending"],
                constant=round(constant, 4),
                p=p_seen([(told, constant)]) if told.of and kind in READ | CHOSEN | {Kind.TONES} else None,
            )
        )
    return tuple(made)


def cached(readings: Sequence[Reading]) -> SightFinding | None:
    """Replies with the number of another request that was made in the same words: that of the first one twice, or those of
    two different ones. A constant answer may be the number of one later picture by chance."""
    found = [one for words in _wordings(readings) for one in _of_another(words)]
    if not found:
        return None
    first = found[0]
    evidence = f"{len(found)} replies with the number of another picture, such as {first.value}"
    evidence += "" if first.probe.truth is None else f" for {first.probe.truth}"
    text = "Replies come from a cache: they belong to other requests with the same words."
    return SightFinding(code="cached", route="frames", text=text, evidence=evidence)


def _wordings(readings: Sequence[Reading]) -> list[list[Reading]]:
    """The readings of numbers by the words of their question."""
    groups: dict[str, list[Reading]] = {}
    for one in readings:
        if one.probe.kind in READ | {Kind.BLACK}:
            groups.setdefault(one.probe.item.question, []).append(one)
    return list(groups.values())


def _of_another(readings: Sequence[Reading]) -> list[Reading]:
    """Wrong replies with the number of another one of these pictures, if they are no accident."""
    shown = [one.probe.truth for one in readings if one.probe.truth is not None]
    wrong = [one for one in readings if one.state == "wrong" and one.value in shown]
    values = {one.value for one in wrong}
    first = [one for one in wrong if one.value == shown[0]]
    return wrong if len(values) > 1 or len(first) >= _REPEATED else []


def _without_constant(readings: Sequence[Reading]) -> list[Reading]:
    """The readings without right numbers that were also said, wrongly, of two pictures or more: a constant answer."""
    said = Counter(one.value for one in readings if one.state == "wrong" and one.probe.kind in READ)
    return [one for one in readings if not (one.right and one.probe.kind in READ and said[one.value] > 1)]


def is_blind(readings: Sequence[Reading]) -> bool:
    """Whether no number that was read by frames is right, apart from a constant answer, of enough replies; and whether colours
    and the like are chosen no better than by the best constant answer."""
    read = count(_without_constant(readings), *READ)
    return read.of >= _FEW and not read.right and seen_p(readings, sorted(CHOSEN)) >= ALPHA


def _read_of(readings: Sequence[Reading]) -> list[Reading]:
    return [one for one in readings if one.probe.kind in READ and one.counts]


def blind(readings: Sequence[Reading]) -> SightFinding | None:
    """Nothing arrives."""
    if not is_blind(readings):
        return None
    read, chosen = count(readings, *READ), count(readings, *CHOSEN)
    said = Counter(
        "nothing can be seen" if one.state == "nothing seen" else str(one.value) for one in _read_of(readings)
    )
    most, many = said.most_common(1)[0]
    evidence = f"{read} numbers right"
    evidence += f", and {chosen} colours, positions, sizes and motions" if chosen.of else ""
    evidence += f"; {many} replies say {most}" if 2 * many > read.of else ""
    return SightFinding(
        code="blind",
        route="frames",
        text="No picture arrives, or none is used: the model answers without them.",
        evidence=evidence,
    )


def single(stills: Sequence[Reading], many: Sequence[Reading]) -> SightFinding | None:
    """Single pictures arrive, and of several none."""
    read, alone = count(many, Kind.END, Kind.FRAME), count(stills, Kind.NUMBER)
    arrived = [one for one in many if one.probe.kind in READ and one.position is not None]
    if arrived or not is_gone(read, alone):
        return None
    evidence = f"alone {alone} numbers right, among many {read}"
    return SightFinding(
        code="single", route="frames", text="Single pictures arrive, several in one request do not.", evidence=evidence
    )


def arrived(readings: Sequence[Reading]) -> list[int]:
    """The positions of all numbers that were read, also twice where another frame was asked for: once may be a misreading."""
    seen = Counter[int]()
    for one in readings:
        if one.probe.kind in READ and one.position is not None:
            seen[one.position] += 2 if one.right else 1
    return sorted(at for at, weight in seen.items() if weight > 1)


class Suspicion(NamedTuple):
    """That a part of a clip alone arrives: the `first` or `last` `least` to `most` pictures, or every `least`-th (`dropped`).
    `inside` says which positions belong to it, and `outside` which do not, as far from the edge as that is known."""

    code: Literal["first", "last", "dropped"]
    least: int
    most: int
    inside: Part
    outside: Part


def suspected_parts(readings: Sequence[Reading], size: int) -> list[Suspicion]:
    """Which parts of a clip alone may be seen, the likelier first; none if all of it may be."""
    seen = arrived(readings)
    asked = [one for one in readings if one.probe.kind in {Kind.END, Kind.FRAME} and one.counts]
    if not seen or len(asked) < _FEW:
        return []
    found = _dropped([one for one in asked if one.probe.kind is Kind.FRAME])
    low, high, margin = seen[0], seen[-1], max(2, size // 16)
    if size - 1 - high >= margin and low <= margin:
        later = min((one.probe.at for one in asked if one.probe.at > high), default=high + 1)
        most = high + 1 if _said_twice(asked, high) else later
        found.append(Suspicion("first", high + 1, most, lambda at: at <= high, lambda at: at >= most + margin - 2))
    elif low >= margin and size - 1 - high <= margin:
        earlier = max((one.probe.at for one in asked if one.probe.at < low), default=low - 1)
        most = size - low if _said_twice(asked, low) else size - 1 - earlier
        found.append(
            Suspicion("last", size - low, most, lambda at: at >= low, lambda at: at < size - most - margin + 2)
        )
    return found


def _said_twice(asked: Sequence[Reading], at: int) -> bool:
    """Whether the first or last picture was this one, each time."""
    return sum(one.probe.kind is Kind.END and one.position == at for one in asked) > 1


def _dropped(frames: Sequence[Reading]) -> list[Suspicion]:
    for every in _MODULI:
        for rest in range(every):
            inside = count([one for one in frames if one.probe.at % every == rest])
            outside = count([one for one in frames if one.probe.at % every != rest])
            if inside.of >= 2 and outside.of >= 2 and inside.right * 4 >= inside.of * 3 and not outside.right:
                is_kept, is_lost = partial(_is_every, every, rest), partial(_is_other, every, rest)
                return [Suspicion("dropped", every, every, is_kept, is_lost)]
    return []


def _is_every(every: int, rest: int, at: int) -> bool:
    return at % every == rest


def _is_other(every: int, rest: int, at: int) -> bool:
    return at % every != rest


def part(
    suspicion: Suspicion, fresh: Sequence[Reading], readings: Sequence[Reading], stills: RightOf, size: int
) -> SightFinding | None:
    """The finding, if in `fresh` readings nothing is read outside the part, significantly less than inside and alone."""
    outside = count([one for one in fresh if suspicion.outside(one.probe.at)])
    within = count([one for one in fresh if suspicion.inside(one.probe.at)])
    if any(suspicion.outside(at) for at in arrived(readings)) or not is_gone(outside, within + stills):
        return None
    evidence = f"in this part {within} right, single pictures {stills}, outside {outside} ({_p(p_fewer(outside, within + stills))})"
    route = fresh[0].probe.route
    return SightFinding(code=suspicion.code, route=route, text=_part_text(suspicion, size, route), evidence=evidence)


def _part_text(suspicion: Suspicion, size: int, route: str) -> str:
    code, least, most = suspicion[:3]
    if route == "video":
        return _video_part_text(suspicion, size)
    if code == "dropped":
        return f"Frames are dropped: only every {_ORDINAL[least]} of {size} arrives."
    if most == 1:
        return f"Only the {code} of {size} frames arrives."
    many = f"{least}" if least == most else f"{least} to {most}"
    return f"Only the {code} {many} of {size} frames arrive."


def _video_part_text(suspicion: Suspicion, size: int) -> str:
    """In seconds: each of the `size` numbers is shown for some."""
    code, *parts = suspicion[:3]
    whole = f"{size * SECONDS_A_NUMBER:.0f} s"
    if code == "dropped":
        every = _ORDINAL[suspicion.least]
        return f"Parts of a video file are lost: of {size} numbers, each {SECONDS_A_NUMBER:.0f} s long, only every {every} arrives."
    seconds = [f"{many * SECONDS_A_NUMBER:.0f}" for many in parts]
    return f"Only the {code} {' to '.join(dict.fromkeys(seconds))} s of a video file of {whole} arrive."


_ORDINAL = {2: "second", 4: "fourth"}


def misplaced(readings: Sequence[Reading]) -> list[Reading]:
    """Replies with the number of another frame of the same clip than the one asked for by its time."""
    frames = [one for one in readings if one.probe.kind is Kind.FRAME]
    return [one for one in frames if one.position not in {None, one.probe.at}]


def order(readings: Sequence[Reading], route: str = "frames") -> SightFinding | None:
    """Frames arrive, and in another order: the first and last are others, and so is the frame at a time."""
    moved, frames, ends = misplaced(readings), count(readings, Kind.FRAME), count(readings, Kind.END)
    other_ends = [one for one in readings if one.probe.kind is Kind.END and one.position not in {None, one.probe.at}]
    if not moved or 2 * len(moved) < frames.of or p_misplaced(len(moved), frames.of) >= ALPHA:
        return None
    if len(other_ends) < 2 or ends.right * 4 > ends.of:
        return None
    first = moved[0]
    evidence = f"{len(moved)} of {frames.of} frames asked for by time are others (such as {first.position + 1} for {first.probe.at + 1}), "  # type: ignore[operator]
    evidence += f"{ends} first and last ones are right"
    what = "Frames arrive" if route == "frames" else "The pictures of a video file arrive"
    text = f"{what} in another order than they were sent."
    return SightFinding(code="order", route=route, text=text, evidence=evidence)


def may_be_out_of_step(readings: Sequence[Reading]) -> bool:
    """Whether no frame is found by its time, some others are, and most first and last ones are right."""
    frames, ends = count(readings, Kind.FRAME), count(readings, Kind.END)
    return frames.of >= _FEW and not frames.right and len(misplaced(readings)) > 1 and ends.right * 4 >= ends.of * 3


def out_of_step(readings: Sequence[Reading], stills: RightOf, route: str) -> SightFinding | None:
    """Frames arrive in their order, and each time stands with another frame than the one that it was sent with."""
    frames, ends, moved = count(readings, Kind.FRAME), count(readings, Kind.END), misplaced(readings)
    if 2 * len(moved) < frames.of or not is_gone(frames, ends + stills, least=12):
        return None
    if p_misplaced(len(moved), frames.of) >= ALPHA:
        return None
    apart = Counter(one.position - one.probe.at for one in moved)  # type: ignore[operator]  # misplaced ones have a position
    most, many = apart.most_common(1)[0]
    evidence = f"asked for by time: {frames} right, {len(moved)} times another frame"
    evidence += f", {many} times {abs(most)} {'later' if most > 0 else 'earlier'}" if 2 * many > len(moved) else ""
    text = "Times and frames are out of step: by its time another frame is found."
    return SightFinding(code="times", route=route, text=text, evidence=f"{evidence}; first and last: {ends}")


def times(readings: Sequence[Reading], stills: RightOf, route: str) -> SightFinding | None:
    """Numbers are read, and their times are not those that were sent."""
    told, ends = count(readings, Kind.TIME), count(readings, Kind.END)
    if not is_gone(told, ends + stills, least=10, luck=1) or not ends.right:
        return None
    wrong = next((one for one in readings if one.probe.kind is Kind.TIME and one.state == "wrong"), None)
    evidence = f"{told} times right, first and last numbers {ends}"
    if wrong is not None:
        evidence += f"; such as {_seconds(wrong.value)} for {_seconds(wrong.probe.truth)}"
    return SightFinding(
        code="times", route=route, text="Times are invented: they are not those of the frames.", evidence=evidence
    )


def _p(p: float) -> str:
    """As `p = 0.0042`, or `p < 0.001`."""
    said = p_value(p)
    return f"p {said}" if said.startswith("<") else f"p = {said}"


def _seconds(value: object) -> str:
    some = value[0] if isinstance(value, list) and value else value
    return f"{some:.0f} s" if isinstance(some, int | float) else str(some)


def smallest_read(readings: Sequence[Reading]) -> int | None:
    """The height of the smallest digits that were read alone in a large picture, or on a ladder, unless digits alone of that
    height were not; None if none were."""
    heights = [
        pictures.RUNGS[len(pictures.RUNGS) - len(one.probe.rungs) + one.probe.rungs.index(one.value)]
        for one in readings
        if one.probe.kind is Kind.SMALLEST and one.right and isinstance(one.value, int)
    ]
    alone = _by_height([one for one in readings if one.probe.kind is Kind.SMALL_DIGITS and one.probe.large])
    unread = max((height for height, one in alone.items() if not one.right), default=0)
    read = [height for height, one in alone.items() if one.right]
    return min([*(height for height in heights if height > unread), *read], default=None)


def is_fault(height: int) -> bool:
    """Whether digits of this height that are lost in large pictures are a fault, and not just worth a note."""
    return height >= LEAST_FAULT


def suspected_height(readings: Sequence[Reading]) -> int | None:
    """The height of digits that a shrunk picture would hide; None where the smallest are read, or no ladder was."""
    best = smallest_read(readings)
    if not count(readings, Kind.SMALLEST).of or best == pictures.RUNGS[-1]:
        return None
    known = pictures.RUNGS
    if best is None:
        return known[2]
    return known[min(known.index(best) + 2, known.index(LEAST_FAULT))] if best > LEAST_FAULT else known[-1]


def legible(readings: Sequence[Reading]) -> tuple[float, float]:
    """Between which heights, in pixels, digits become legible to the model: above the largest that it never reads in a small
    picture, up to the smallest from which on it reads half or more. Without smaller digits in small pictures (`Deck.small`)
    about seven to nine pixels, which is what there is to a digit."""
    told = _by_height([one for one in readings if one.probe.kind is Kind.SMALL_DIGITS and not one.probe.large])
    if len(told) < 2:
        return _LEGIBLE_PX
    most = max(told)
    for height in sorted(told, reverse=True):
        if 2 * told[height].right < told[height].of:
            break
        most = height
    unread = [height for height, one in told.items() if height < most and not one.right]
    return max(unread, default=_NEXT_SMALLER * min(told)), most


def _by_height(readings: Sequence[Reading]) -> dict[int, RightOf]:
    """The counts of small digits by their height, of those with any evidence."""
    heights = dict.fromkeys(one.probe.height for one in readings if one.counts)
    return {height: count([one for one in readings if one.probe.height == height]) for height in heights}


def smaller_than(height: int) -> list[int]:
    """Three smaller heights of digits, in even steps down to one that nobody can read.

    >>> smaller_than(11), smaller_than(27)
    ([8, 6, 4], [14, 8, 4])
    """
    return [round(height * (_ILLEGIBLE_PX / height) ** (step / 3)) for step in (1, 2, 3)]


def between(readings: Sequence[Reading], height: int) -> list[int]:
    """The rungs between digits that are not read in large pictures and the smallest that are, which were not asked for alone."""
    best = smallest_read(readings) or 0
    asked = {one.probe.height for one in readings if one.probe.kind is Kind.SMALL_DIGITS and one.probe.large}
    return [one for one in pictures.RUNGS if height < one < best and one not in asked]


def below(height: int) -> int:
    """The next smaller rung.

    >>> below(15)
    11
    """
    return pictures.RUNGS[pictures.RUNGS.index(height) + 1]


def up_from(height: int) -> list[int]:
    """A rung, the one above it, and one two steps higher: where the digits on a ladder may really end.

    >>> up_from(8), up_from(64)
    ([8, 11, 20], [64])
    """
    at = pictures.RUNGS.index(height)
    return [pictures.RUNGS[k] for k in (at, at - 1, at - 3) if k >= 0]


def shrunk(readings: Sequence[Reading], stills: RightOf, side: int, height: int) -> SightFinding | None:
    """Digits of this height are read in a small picture, and not in a large one: so that was made smaller on the way, by the
    server or by the model's own processor. Its size follows from the smallest digits that are read in it, and those that are
    legible in a small picture; where a processor enlarges that, it is the size relative to it."""
    every = [one for one in readings if one.probe.kind is Kind.SMALL_DIGITS]
    some = [one for one in every if one.probe.height == height]
    small = count([one for one in some if not one.probe.large])
    large = count([one for one in some if one.probe.large])
    if 2 * small.right <= small.of or not is_gone(large, small + stills, least=5):
        return None
    best = smallest_read(readings)
    above = best or pictures.RUNGS[0]
    unread = [one for one, told in _by_height([one for one in every if one.probe.large]).items() if not told.right]
    below = max((one for one in unread if one < above), default=height)
    least, most = legible(readings)
    low, high = side * least / above, min(side, side * most / below)
    evidence = (
        f"digits of {height} pixels: {large} right in pictures of {side}, {small} in pictures of {pictures.SMALL[0]}"
    )
    evidence += f"; smallest read: {best or 'none'}, legible in small pictures: {most:.0f}"
    text = f"Pictures of {side} pixels are seen as if shrunk to about {math.sqrt(low * high):.0f} ({low:.0f} to {high:.0f})."
    return SightFinding(code="shrunk", route="frames", text=text, evidence=evidence)


def lost(code: str, suspect: RightOf, usual: RightOf) -> SightFinding | None:
    """What arrives by frames is not seen by another route."""
    if not is_gone(suspect, usual, luck=_LUCKY_TONES if code == "sound" else 0):
        return None
    text = {
        "video": "The video file is ignored: what it shows is not seen.",
        "tools": "Pictures are stripped when tools are given.",
        "schema": "Pictures are stripped when a structured reply is requested.",
        "sound": "The sound is ignored: tones in it are not heard.",
    }[code]
    evidence = f"{suspect} right, by frames {usual} ({_p(p_fewer(suspect, usual))})"
    return SightFinding(code=code, route=code, text=text, evidence=evidence)  # type: ignore[arg-type]
