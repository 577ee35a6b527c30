"""Checks of `proctor.testing` in our own tests."""

from __future__ import annotations

from unittest import SkipTest

import pytest

from proctor.testing import Check, CheckFailedError


def passes(check: Check, *reasons: str) -> None:
    """The check passes, or does not apply for one of these reasons."""
    try:
        check()
    except SkipTest as error:
        skipped = str(error)
    else:
        return
    assert any(reason in skipped for reason in reasons), skipped


def finds(check: Check, told: str) -> None:
    """The check fails, each of its faults is one line that begins with its name, and one of them tells this."""
    with pytest.raises(CheckFailedError) as failed:
        check()
    assert any(told in fault for fault in failed.value.faults), failed.value.faults
    assert all(fault.startswith(f"{check}: ") and "\n" not in fault for fault in failed.value.faults)
