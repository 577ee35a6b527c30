"""What a test does where its means are not here."""

from __future__ import annotations

import os

import pytest


def missing(reason: str) -> None:
    """Skips a test whose means are not here; in CI it fails, so that nothing is left out there."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
