"""Many times are turned into ticks at once, and to the same ticks as one by one in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from proctor.media.video_clock import FrameIndex

BASES = [Fraction(1, 90_000), Fraction(1, 1000), Fraction(1001, 30_000), Fraction(1, 10**6), Fraction(1, 10**9)]


@given(
    st.sampled_from(BASES),
    st.lists(st.floats(0, 86_400) | st.integers(0, 10**7).map(lambda k: k / 30) | st.integers(0, 10**6).map(float)),
    st.integers(-5, 5),
)
def test_at_once_as_one_by_one(base: Fraction, times: list[float], zero: int) -> None:
    index = FrameIndex(base, zero, np.arange(3), np.arange(1))
    on_ticks = [*times, *(float(int(time / base) * base) for time in times)]
    near = [*on_ticks, *(max(0.0, time - 1e-6) for time in on_ticks)]
    assert index._ticks(near).tolist() == [index.tick(time) for time in near]
