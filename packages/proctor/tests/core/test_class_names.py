"""Two classes never share a name: a reader who finds one by its name has found it."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import proctor

SHARED = {
    "Answer", "Curve", "Entry", "Limits",
    "Panel", "Reference", "Story",
}  # fmt: skip
"""Names that two classes still have; the list may only become shorter."""


@cache
def class_names() -> Counter[str]:
    files = sorted(Path(proctor.__file__).parent.rglob("*.py"))
    named = (re.findall(r"^class ([A-Za-z]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE) for file in files)
    return Counter(name for names in named for name in names)


def test_no_two_classes_share_a_name() -> None:
    shared = {name for name, times in class_names().items() if times > 1}
    assert sorted(shared - SHARED) == []


def test_the_list_of_exceptions_holds_no_other_name() -> None:
    shared = {name for name, times in class_names().items() if times > 1}
    assert sorted(SHARED - shared) == []
