"""Holm's adjustment and cross tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core import InputError
from proctor.stats import cross_table, holm


def test_holm_by_hand() -> None:
    # ascending 0.01, 0.02, 0.03, 0.5 times 4, 3, 2, 1: 0.04, 0.06, 0.06 and 0.5, never falling
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([0.2]).tolist() == [0.2]
    assert holm([]).size == 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_rejects_what_the_step_down_rule_rejects(p: list[float]) -> None:
    adjusted = holm(p)
    for level in (0.01, 0.05, 0.3):
        rejected: set[int] = set()
        for position in sorted(range(len(p)), key=lambda k: p[k]):
            if p[position] * (len(p) - len(rejected)) > level:
                break
            rejected.add(position)
        assert {k for k in range(len(p)) if adjusted[k] <= level} == rejected


def test_holm_errors() -> None:
    with pytest.raises(InputError, match=r"^p value 1: found 1.5, expected a number from 0 to 1$"):
        holm([0.1, 1.5])
    with pytest.raises(InputError, match=r"^p value 0: found nan, expected a finite number$"):
        holm([float("nan")])


def test_cross_table_by_hand() -> None:
    a = ["right", "right", "wrong", "wrong", "right"]
    b = ["right", "wrong", "wrong", "right", "wrong"]
    table = cross_table(a, b, ["right", "wrong"])
    assert table.tolist() == [[1, 2], [1, 1]]
    assert table.dtype == np.int64
    assert cross_table(b, a, ["right", "wrong"]).tolist() == table.T.tolist()
    assert cross_table([], [], [2, 1, 0]).tolist() == [[0] * 3] * 3


def test_cross_table_errors() -> None:
    with pytest.raises(InputError, match=r"^label of item 1: found 3, expected one of 2, 1, 0$"):
        cross_table([2, 2], [1, 3], [2, 1, 0])
    with pytest.raises(InputError, match=r"^labels: found 1 and 2, expected pairs$"):
        cross_table([2], [1, 2], [2, 1])
    with pytest.raises(InputError, match=r"^levels: found \[1, 1\], expected each level once$"):
        cross_table([1], [1], [1, 1])
