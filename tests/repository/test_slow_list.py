"""The list of slow tests."""

from __future__ import annotations

import re

from tests.support.paths import ROOT


def test_every_slow_test_is_there() -> None:
    """A name that no test has any more would hide nothing, and say that it does."""
    listed = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines()
    assert listed == sorted(set(listed))
    for line in listed:
        file, _, name = line.partition("::")
        assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), line
