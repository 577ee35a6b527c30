"""Two classes never share a name: a reader who finds one by its name has found it."""

from __future__ import annotations

import ast
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
    package = Path(proctor.__file__).parent
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in sorted(package.rglob("*.py"))]
    return Counter(
        node.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def test_no_two_classes_share_a_name() -> None:
    shared = {name for name, times in class_names().items() if times > 1}
    assert sorted(shared - SHARED) == []


def test_the_list_of_exceptions_holds_no_other_name() -> None:
    shared = {name for name, times in class_names().items() if times > 1}
    assert sorted(SHARED - shared) == []
