"""The size that a picture is scaled to: by its longest side, with square pixels, never enlarged."""

from __future__ import annotations

from fractions import Fraction


def fitted(width: int, height: int, max_side: int | None, aspect: Fraction) -> tuple[int, int]:
    """The size to scale to: pixels made square by shrinking the longer direction, then the longest side."""
    wide, high = width * min(aspect, Fraction(1)), height / max(aspect, Fraction(1))
    scale = Fraction(1) if max_side is None else min(Fraction(1), max_side / max(wide, high))
    return max(1, round(wide * scale)), max(1, round(high * scale))
