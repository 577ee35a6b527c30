"""Wrong usage is told in a sentence, the mistake first; "found, expected" is for files."""

from __future__ import annotations

import ast

import pytest

from tests.support.paths import CORE


@pytest.mark.parametrize("room", ["api", "cli", "shell"])
def test_no_wrong_usage_is_told_as_found_and_expected(room: str) -> None:
    found = [
        f"{file.name}:{node.lineno}"
        for file in sorted((CORE / room).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("UsageError")
        and (len(node.args) > 1 or node.keywords)
    ]
    assert found == []
