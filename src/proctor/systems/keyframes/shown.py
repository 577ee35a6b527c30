"""An item's key frames, found by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from proctor.core import Frame, InputError, Item, View
from proctor.core.formats import OrderingFormat

__all__ = ["KeyFrames", "key_frames", "ordering_labels", "orders_frames"]


@dataclass(frozen=True)
class KeyFrames:
    """The labels to be put in order, and the frames that are shown: all of them, some, or none (text-only)."""

    labels: tuple[str, ...]
    frames: tuple[Frame, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """The labels of the frames that are there, in the order in which they are given."""
        return tuple(frame.label for frame in self.frames)

    @property
    def unseen(self) -> tuple[str, ...]:
        """The labels without a frame."""
        return tuple(label for label in self.labels if label not in self.shown)

    def captioned(self, labels: Sequence[str] | None = None) -> list[Frame]:
        """The frames of these labels (all that are shown, if none are named), with "Picture A" above each.

        >>> KeyFrames(("A", "B"), (Frame(b"", None, "A"), Frame(b"", None, "B"))).captioned(["B"])[0].label
        'Picture B'
        """
        known = {frame.label: frame for frame in self.frames}
        return [
            replace(known[label], label=f"Picture {label}")
            for label in (self.shown if labels is None else labels)
        ]


def orders_frames(item: Item) -> bool:
    """Whether an order is asked for."""
    return isinstance(item.answer, OrderingFormat)


def ordering_labels(item: Item) -> tuple[str, ...]:
    """The labels that are to be put in order. Raises `ValueError` for another format."""
    if not isinstance(item.answer, OrderingFormat):
        raise ValueError(f"an answer of the format {item.answer.kind} has no order")
    return item.answer.labels


async def key_frames(item: Item, view: View) -> KeyFrames:
    """Looks at the item's frames, once. Raises `ValueError` for another format, and `InputError` for a frame
    whose label is not one of the item's, or comes twice."""
    labels = ordering_labels(item)
    frames = await view.frames()
    found = [frame.label for frame in frames]
    wrong = next(
        (label for place, label in enumerate(found) if label not in labels or label in found[:place]), None
    )
    if wrong is not None:
        what = "twice" if wrong in labels else "that the answer does not know"
        expected = f"{', '.join(labels)}, each at most once"
        raise InputError(
            None, f"item {item.id!r}", found=f"a picture labelled {wrong!r} {what}", expected=expected
        )
    return KeyFrames(labels, tuple(frames))
