"""Conditions on the evidence of an item: it is blacked out, as much elsewhere is, it is cut out, or it alone is shown.

What is hidden depends on the item, its media and the run's seed, never on a request: a system that asks for many small
windows sees nothing else. Items without evidence are not asked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from proctor.core import Evidence, Image, InputError, Item, Media, VideoClip, generator
from proctor.media.condition import Condition, ConditionContext, FrameSlot, SoundSlot
from proctor.media.sampling import picture_starts

if TYPE_CHECKING:
    from proctor.media.occlusion import Hidden, Interval

NO_EVIDENCE = "no evidence"
NOT_SHOWN = "evidence after the end of the file"
NO_ROOM = "no room for as much elsewhere"
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
        evidence = scene.item.evidence
        if evidence is None:
            return NO_EVIDENCE
        hidden = _remembered(scene, evidence, moved=self.elsewhere)
        if hidden is None:
            return NO_ROOM
        return hidden if any(one.windows or one.stretches for one in hidden) else NOT_SHOWN


_KEPT = 256  # items whose hidden parts are remembered: a view asks several times for each
_known: OrderedDict[tuple[Hashable, ...], tuple[Hidden, ...] | None] = OrderedDict()
_guard = threading.Lock()


def _remembered(scene: ConditionContext, evidence: Evidence, *, moved: bool) -> tuple[Hidden, ...] | None:
    """What is hidden of each medium, worked out once for the same evidence, files and draw."""
    library, item = scene.library, scene.item
    named = [medium for position, medium in enumerate(item.media) if position in evidence.media]
    excerpts = library.excerpts.known
    files = tuple((library.identity(one.source), one, _span(scene, one), excerpts.get(one.source)) for one in named)
    key: tuple[Hashable, ...] = (evidence, files, (item.id, scene.seed) if moved else None)
    with _guard:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    found = _hidden(scene, evidence, moved=moved)
    with _guard:
        _known[key] = found
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return found


def _hidden(scene: ConditionContext, evidence: Evidence, *, moved: bool) -> tuple[Hidden, ...] | None:
    """What is hidden of each medium: the evidence or, `moved`, as much elsewhere; None if there is no room for that."""
    from proctor.media.occlusion import Hidden, elsewhere, evident

    found = []
    for position, medium in enumerate(scene.item.media):
        if position not in evidence.media:
            found.append(Hidden())
            continue
        span = _span(scene, medium)
        starts = picture_starts(scene.library, medium, span) if isinstance(medium, VideoClip) and span else []
        hidden = evident(evidence, position, span, starts)
        if moved:
            draw = generator(scene.seed, "occlude-elsewhere", scene.item.id, str(position))
            other = elsewhere(hidden, span, starts, draw)
            if other is None:
                return None
            hidden = other
        found.append(hidden)
    return tuple(found)


def _span(scene: ConditionContext, medium: Media) -> Interval | None:
    """The span of a medium; None for a still image."""
    return None if isinstance(medium, Image) else scene.library.sound_span(medium)


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
    positions drawn by the run's seed and the item, which overlap no evidence.

    Where no such position was found, the item is not asked under this condition.
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
        pairs = zip(self.hidden(scene), scene.item.media, strict=True)
        return "" if any(self._shows_some(hidden, _span(scene, medium)) for hidden, medium in pairs) else NOTHING_LEFT

    def parts(self, medium: int, span: Interval, scene: ConditionContext) -> list[Interval]:
        return self._shown(self.hidden(scene)[medium], span)

    def arrange(self, slots: list[FrameSlot], scene: ConditionContext) -> list[FrameSlot]:
        hidden = self.hidden(scene)
        return [slot for slot in slots if self._shows(hidden[slot.medium], slot.picture.at)]

    def listen(self, slots: list[SoundSlot], scene: ConditionContext) -> list[SoundSlot]:
        hidden = self.hidden(scene)
        from proctor.media.occlusion import without

        silent = [without(slot.clip, self._shown(hidden[slot.position], slot.clip)) for slot in slots]
        return [replace(slot, silent=tuple(own)) for slot, own in zip(slots, silent, strict=True)]

    def _shows(self, hidden: Hidden, at: float | None) -> bool:
        """Whether the picture at a time, or a still image (None), is shown."""
        from proctor.media.occlusion import within

        return not (hidden.stretches if at is None else within(at, hidden.times))

    def _shown(self, hidden: Hidden, span: Interval) -> list[Interval]:
        """The parts of a span that are shown."""
        from proctor.media.occlusion import without

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
        from proctor.media.occlusion import without

        return without(span, super()._shown(hidden, span))
