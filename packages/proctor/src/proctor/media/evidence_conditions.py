"""Conditions on the evidence of an item: it is blacked out, as much elsewhere is, it is cut out, or it alone is shown.

What is hidden depends on the item, its media and the run's seed, never on a request: a system that asks for many small
windows sees nothing else. Items without evidence are not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from proctor.core import AudioClip, Evidence, Image, InputError, Item, VideoClip, generator
from proctor.media.condition import Condition, ConditionContext, FrameSlot, SoundSlot
from proctor.media.occlusion import Hidden, Interval, elsewhere, evident, within, without
from proctor.media.sampling import picture_starts

NO_EVIDENCE = "no evidence"
NOT_SHOWN = "evidence after the end of the file"
NO_ROOM = "no free place for as much elsewhere"
NOTHING_LEFT = "the evidence is all that is shown"


class EvidenceCondition(Condition):
    """The base: what is hidden of each medium."""

    elsewhere = False

    def unfit(self, items: Sequence[Item]) -> str:
        if any(item.evidence is not None for item in items):
            return ""
        return "no item says where and when its answer is visible (evidence)"

    def unable(self, scene: ConditionContext) -> str:
        found = self._found(scene)
        return found if isinstance(found, str) else ""

    def hidden(self, scene: ConditionContext) -> tuple[Hidden, ...]:
        """What is hidden of each medium. Raises `InputError` for an item that the condition can't be applied to."""
        found = self._found(scene)
        if isinstance(found, str):
            raise InputError(f"item {scene.item.id!r}", found=found, expected="evidence that the condition can use")
        return found

    def _found(self, scene: ConditionContext) -> tuple[Hidden, ...] | str:
        """What is hidden of each medium, or why the item can't be shown."""
        item, evidence = scene.item, scene.item.evidence
        if evidence is None:
            return NO_EVIDENCE
        named = evidence.media
        clocks = tuple(
            _clock(scene, medium) if position in named else None for position, medium in enumerate(item.media)
        )
        hidden = _hidden(evidence, clocks, (item.id, scene.seed) if self.elsewhere else None)
        if hidden is None:
            return NO_ROOM
        return hidden if any(one.windows or one.stretches for one in hidden) else NOT_SHOWN


_Clock = tuple[Interval, tuple[float, ...]]


def _clock(scene: ConditionContext, medium: VideoClip | Image | AudioClip) -> _Clock | None:
    """The span of a medium, and when its pictures begin; None for a still image."""
    if isinstance(medium, Image):
        return None
    if isinstance(medium, AudioClip):
        return scene.library.sound_span(medium), ()
    span = scene.library.span(medium)
    return span, tuple(picture_starts(scene.library, medium, span))


@lru_cache(maxsize=128)
def _hidden(
    evidence: Evidence, clocks: tuple[_Clock | None, ...], drawn: tuple[str, int] | None
) -> tuple[Hidden, ...] | None:
    """What is hidden of each medium: the evidence or, `drawn` for an item with a seed, as much elsewhere; None if there is
    no place for that."""
    found = []
    for position, clock in enumerate(clocks):
        span, starts = clock or (None, ())
        hidden = evident(evidence, position, span, starts)
        if drawn is not None:
            name, seed = drawn
            other = elsewhere(hidden, span, starts, generator(seed, "occlude-elsewhere", name, str(position)))
            if other is None:
                return None
            hidden = other
        found.append(hidden)
    return tuple(found)


class OccludeEvidence(EvidenceCondition):
    """Boxes are filled with black, and in windows pictures are black and the sound is silent. A picture is black if it is on
    display at any time of a window.

    The black shows where and when something was: compare with `occlude-elsewhere`.
    """

    summary = "where and when the answer is visible it is black, and silent"

    def arrange(self, slots: list[FrameSlot], scene: ConditionContext) -> list[FrameSlot]:
        hidden = self.hidden(scene)
        hides = [hidden[slot.medium].at(slot.picture.at) for slot in slots]
        return [replace(slot, picture=replace(slot.picture, hides=own)) for slot, own in zip(slots, hides, strict=True)]

    def listen(self, slots: list[SoundSlot], scene: ConditionContext) -> list[SoundSlot]:
        hidden = self.hidden(scene)
        return [replace(slot, silent=hidden[slot.position].windows) for slot in slots]


class OccludeElsewhere(OccludeEvidence):
    """The control of `occlude-evidence`: black boxes of the same sizes at the same times, windows of the same lengths, at
    places drawn by the run's seed and the item, which overlap no evidence.

    Where no such place was found, the item is not asked under this condition.
    """

    summary = "as much is black, and silent, where the answer is not (seeded)"
    elsewhere = True


class CutEvidence(EvidenceCondition):
    """Pictures of the times with evidence are left out, and frames are spread over what is left; the sound is silent there.
    Of still images those without evidence are left.

    Times and labels stay, so that a gap can be seen in them. An item of which nothing is left is not asked.
    """

    summary = "without the stretches in which the answer is visible"
    parts_of_clips = True

    def unable(self, scene: ConditionContext) -> str:
        if why := super().unable(scene):
            return why
        return "" if any(map(self._shows_some, self.hidden(scene), _spans(scene))) else NOTHING_LEFT

    def parts(self, medium: int, span: Interval, scene: ConditionContext) -> list[Interval]:
        return self._shown(self.hidden(scene)[medium], span)

    def arrange(self, slots: list[FrameSlot], scene: ConditionContext) -> list[FrameSlot]:
        hidden = self.hidden(scene)
        return [slot for slot in slots if self._shows(hidden[slot.medium], slot.picture.at)]

    def listen(self, slots: list[SoundSlot], scene: ConditionContext) -> list[SoundSlot]:
        hidden = self.hidden(scene)
        silent = [without(slot.clip, self._shown(hidden[slot.position], slot.clip)) for slot in slots]
        return [replace(slot, silent=tuple(own)) for slot, own in zip(slots, silent, strict=True)]

    def _shows(self, hidden: Hidden, at: float | None) -> bool:
        """Whether the picture at a time, or a still image (None), is shown."""
        return not (hidden.stretches if at is None else within(at, hidden.times))

    def _shown(self, hidden: Hidden, span: Interval) -> list[Interval]:
        """The parts of a span that are shown."""
        return without(span, hidden.times)

    def _shows_some(self, hidden: Hidden, span: Interval | None) -> bool:
        return self._shows(hidden, None) if span is None else bool(self._shown(hidden, span))


class OnlyEvidence(CutEvidence):
    """Pictures of the times with evidence, whole, and frames are spread over these; elsewhere the sound is silent. Of still
    images those with evidence are shown.

    A score as high as under `video` says that the evidence is where the item says.
    """

    summary = "only the stretches in which the answer is visible"

    def _shows(self, hidden: Hidden, at: float | None) -> bool:
        return not super()._shows(hidden, at)

    def _shown(self, hidden: Hidden, span: Interval) -> list[Interval]:
        return without(span, super()._shown(hidden, span))


def _spans(scene: ConditionContext) -> list[Interval | None]:
    media = scene.item.media
    return [None if isinstance(medium, Image) else scene.library.sound_span(medium) for medium in media]
