"""Conditions: which of an item's media a system may see and hear. Applied inside the view, so none can bypass them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from proctor.core import Image, InputError, Item, Registry, VideoClip, generator
from proctor.media.condition import Condition, ConditionContext, FrameSlot, SoundSlot
from proctor.media.evidence_conditions import CutEvidence, OccludeElsewhere, OccludeEvidence, OnlyEvidence
from proctor.media.library import Picture
from proctor.media.pictures import blackened

_BLOCKS = 64  # parts of a clip that are shuffled when a window of it is shown


class Video(Condition):
    """Everything as it is."""

    summary = "the item's media as they are"
    unchanged = True


class TextOnly(Condition):
    """The question alone."""

    summary = "no media at all: the question and its options alone"
    sees = shows = hears = False


class Black(Condition):
    """Everything but the pixels."""

    summary = "black pictures of the same number, sizes and times"

    def paint(self, jpeg: bytes) -> bytes:
        return blackened(jpeg)


class SoundCondition(Condition):
    """The base of conditions that remove pictures or sound: they need items that have both."""

    def unfit(self, items: Sequence[Item]) -> str:
        if not any(item.sounding for item in items):
            return "no item has sound (`audio: true` in benchmark.yaml says that a video's belongs to the question)"
        return "" if any(item.sounding and item.pictured for item in items) else "no item has pictures beside its sound"


class Muted(SoundCondition):
    """The pictures without the sound."""

    summary = "the same pictures without the sound that belongs to them"
    hears = False
    unchanged = True


class SpeechOnly(SoundCondition):
    """The sound without the pictures."""

    summary = "the sound without any picture"
    shows = False


class Shuffled(Condition):
    """Shuffles the frames; the result never equals the original order, if there are two.

    A window of the clip gets pictures from all over the clip (its 64 parts are shuffled), else a system that requests
    many small windows would see the order.
    """

    summary = "the same pictures in a seeded order, while times and labels stay"

    def arrange(self, slots: list[FrameSlot], scene: ConditionContext) -> list[FrameSlot]:
        draw = generator(scene.seed, "shuffled", scene.item.id)
        if not scene.whole:
            order = _disorder(draw, _BLOCKS)
            return [_moved(slot, _in_block(slot, order)) for slot in slots]
        return _reordered(slots, _disorder(draw, len(slots)))


class Reversed(Condition):
    """Reverses the frames; a window shows the opposite part of the clip."""

    summary = "the same pictures from last to first, while times and labels stay"

    def arrange(self, slots: list[FrameSlot], scene: ConditionContext) -> list[FrameSlot]:
        if not scene.whole:
            return [_moved(slot, _opposite(slot)) for slot in slots]
        return _reordered(slots, list(range(len(slots)))[::-1])


class SingleFrame(Condition):
    """One picture, whatever the request."""

    summary = "one picture alone: the middle of the (first) clip, or the first image"

    def arrange(self, slots: list[FrameSlot], scene: ConditionContext) -> list[FrameSlot]:
        del scene
        if not slots or slots[0].clip is None:
            return slots[:1]
        middle = sum(slots[0].clip) / 2
        return [replace(_moved(slots[0], middle), time=middle, label=time_label(middle))]


class OtherVideo(Condition):
    """Shows a seeded other item with media of the same kinds, from another group if there is one.

    Number, times and labels stay the item's own; a moment shows the same relative moment of the other clip.
    """

    summary = "the pictures of another item (seeded), while number, times and labels stay"
    borrows = True

    def unfit(self, items: Sequence[Item]) -> str:
        alike = {(frozenset(_kinds(item)), frozenset(_sources(item))): item for item in items}
        alone = [item.id for item in alike.values() if not any(_lends(other, item) for other in alike.values())]
        return f"no other item has other media of the same kind as item {alone[0]!r}" if alone else ""

    def listen(self, slots: list[SoundSlot], scene: ConditionContext) -> list[SoundSlot]:
        if not slots:
            return slots
        others = self._other(scene).sounding
        kinds = {kind: [one for one in others if one.kind == kind] for kind in ("video", "audio")}
        heard = []
        for position, slot in enumerate(slots):
            medium = kinds[slot.medium.kind][position % len(kinds[slot.medium.kind])]
            start, end = scene.library.sound_span(medium)
            shares = [(time - slot.clip[0]) / (slot.clip[1] - slot.clip[0]) for time in slot.span]
            span = start + shares[0] * (end - start), start + shares[1] * (end - start)
            heard.append(replace(slot, medium=medium, span=span))
        return heard

    def arrange(self, slots: list[FrameSlot], scene: ConditionContext) -> list[FrameSlot]:
        other = self._other(scene)
        clips = [medium for medium in other.media if isinstance(medium, VideoClip)]
        stills = [medium for medium in other.media if isinstance(medium, Image)]
        arranged = []
        for position, slot in enumerate(slots):
            if slot.clip is None:
                still = stills[position % len(stills)]
                picture = Picture(still.source, None, still.region, scan=still.scan)
            else:
                clip = clips[0]
                start, end = scene.library.span(clip)
                at = start + _share(slot) * (end - start)
                picture = Picture(clip.source, at, clip.region, scan=clip.scan)
            arranged.append(replace(slot, picture=picture))
        return arranged

    @staticmethod
    def _other(scene: ConditionContext) -> Item:
        candidates = sorted((item for item in scene.others if _lends(item, scene.item)), key=lambda item: item.id)
        choice = [item for item in candidates if item.group != scene.item.group] or candidates
        if not choice:
            raise InputError(
                f"item {scene.item.id!r}, condition 'other-video'",
                found="no other item with other media of the same kind",
                expected="at least one",
            )
        draw = generator(scene.seed, "other-video", scene.item.id)
        return choice[int(draw.integers(len(choice)))]


CONDITIONS: Registry[Condition] = Registry(
    "condition",
    group="proctor.conditions",
    fits=lambda thing: isinstance(thing, Condition),
    expected="an instance of Condition",
)
CONDITIONS.add("video", Video())
CONDITIONS.add("text-only", TextOnly())
CONDITIONS.add("black", Black())
CONDITIONS.add("shuffled", Shuffled())
CONDITIONS.add("single-frame", SingleFrame())
CONDITIONS.add("reversed", Reversed())
CONDITIONS.add("other-video", OtherVideo())
CONDITIONS.add("muted", Muted())
CONDITIONS.add("speech-only", SpeechOnly())
CONDITIONS.add("occlude-evidence", OccludeEvidence())
CONDITIONS.add("occlude-elsewhere", OccludeElsewhere())
CONDITIONS.add("cut-evidence", CutEvidence())
CONDITIONS.add("only-evidence", OnlyEvidence())


def time_label(time: float) -> str:
    """A moment's label, such as "t = 12.5 s"."""
    return f"t = {time:.1f} s"


def _kinds(item: Item) -> set[str]:
    """The kinds of an item's media; a video whose sound belongs to it is of a kind of its own."""
    return {medium.kind for medium in item.media} | {f"{one.kind} with sound" for one in item.sounding}


def _sources(item: Item) -> set[str]:
    return {medium.source for medium in item.media}


def _lends(other: Item, item: Item) -> bool:
    """Whether another item's media can stand for an item's: all its kinds, and none of its files."""
    return _kinds(item) <= _kinds(other) and _sources(item).isdisjoint(_sources(other))


def _reordered(slots: Sequence[FrameSlot], order: Sequence[int]) -> list[FrameSlot]:
    return [replace(slot, picture=slots[k].picture) for slot, k in zip(slots, order, strict=True)]


def _disorder(draw: np.random.Generator, count: int) -> list[int]:
    """A random order other than the given one, where there is another."""
    while True:
        order = [int(k) for k in draw.permutation(count)]
        if count < 2 or order != list(range(count)):
            return order


def _moved(slot: FrameSlot, at: float | None) -> FrameSlot:
    return slot if at is None else replace(slot, picture=replace(slot.picture, at=at))


def _share(slot: FrameSlot) -> float:
    """The relative position of a frame in its clip, 0 to 1."""
    if slot.clip is None or slot.time is None:
        return 0.0
    start, end = slot.clip
    return (slot.time - start) / (end - start)


def _opposite(slot: FrameSlot) -> float | None:
    return None if slot.clip is None or slot.time is None else sum(slot.clip) - slot.time


def _in_block(slot: FrameSlot, order: Sequence[int]) -> float | None:
    if slot.clip is None:
        return None
    start, end = slot.clip
    whole, part = divmod(_share(slot) * len(order), 1.0)
    return start + (order[min(int(whole), len(order) - 1)] + part) / len(order) * (end - start)
