"""Simulations of statistics in two sizes: a small one with every run of the tests, and the full one on request
(`PROCTOR_SIMULATIONS=full`), whose bounds are those that the documentation states."""

from __future__ import annotations

import math
import os

_FULL = os.environ.get("PROCTOR_SIMULATIONS", "") == "full"
_SMALLER = 4
_ERRORS = 3.0  # of the standard error of a share at its bound: one chance in 700 a bound, and the seed is fixed


def repetitions(full: int) -> int:
    """How often something is simulated here: a quarter of the full number, unless all are asked for."""
    return full if _FULL else max(20, full // _SMALLER)


def assert_share(found: float, of: int, low: float, high: float) -> None:
    """A share of this many repetitions lies within the bounds that hold for the full number of them.

    Of fewer repetitions a bound is moved by three standard errors of a share at that bound, and no further.
    """
    errors = [0.0 if _FULL else _ERRORS * math.sqrt(bound * (1 - bound) / of) for bound in (low, high)]
    least, most = low - errors[0], high + errors[1]
    assert least <= found / of <= most, f"{found:g} of {of}: expected {least:.3f} to {most:.3f}"
