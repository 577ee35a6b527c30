"""The architecture page: its files and names are there, and the core stays small enough to read."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from radon.raw import analyze

from proctor.core import DISTRIBUTIONS
from tests.support.paths import CORE as CORE_ROOMS
from tests.support.paths import ROOT, source_file
from tools.docs import CORE, OTHERS, ROOMS

_ROW = re.compile(r"^\| (.+?) \| `([\w/.]+)` \| `([\w.]+)` \|$", re.MULTILINE)
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_FILES, MOST_LINES = 30, 11_000
MOST_OF_THE_PACKAGE = 85_000
"""Lines of code of the core, without empty lines, comments and docstrings: 72,000 when the five packages parted; then came
repetitions, margins, evidence, confidences, explanations, the sight test, studies and the server for agents."""


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def names_of(file: Path) -> set[str]:
    """The functions, classes, constants and fields that a file defines; those of a class as `Class.name`."""
    return set(_defined(ast.parse(file.read_text(encoding="utf-8")), ""))


def _defined(node: ast.AST, within: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield within + child.name
        elif isinstance(child, ast.ClassDef):
            yield within + child.name
            yield from _defined(child, f"{within}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            yield from (within + one.id for one in targets if isinstance(one, ast.Name))


def parts() -> dict[str, list[tuple[str, str, str]]]:
    """The rows (question, file, name) of the table of rules, by the heading above them. A row that is written otherwise is
    in none, which `test_the_table_of_rules_is_whole` finds."""
    titled = [part.partition("\n") for part in section("Where is what decided").split("\n### ")[1:]]
    return {title: _ROW.findall(rows) for title, _, rows in titled}


def decided() -> list[tuple[str, str]]:
    return [(file, name) for rows in parts().values() for _, file, name in rows]


def test_the_core_is_read_in_an_hour() -> None:
    lines = sum(len(source_file(file).read_text(encoding="utf-8").splitlines()) for file in CORE)
    assert (len(CORE) <= MOST_FILES, lines <= MOST_LINES) == (True, True), (len(CORE), lines)


def test_the_package_of_the_core_stays_smaller_than_what_it_was_cut_from() -> None:
    code = sum(analyze(file.read_text(encoding="utf-8")).sloc for file in CORE_ROOMS.rglob("*.py"))
    assert code <= MOST_OF_THE_PACKAGE, code


def test_every_file_of_a_walk_is_there() -> None:
    walked = re.findall(r"`([\w/]+\.py)`", section("Five walks"))
    assert len(walked) > 50
    assert [file for file in walked if not source_file(file).is_file()] == []


def test_the_table_of_rules_is_whole() -> None:
    """Every line of a table is a row but its head and its rule, every part has some, and no question is there twice."""
    lines = [line for line in section("Where is what decided").splitlines() if line.startswith("| ")]
    assert len(decided()) == len(lines) - 2 * len(parts()) >= 25
    assert [title for title, rows in parts().items() if not rows] == []
    asked = Counter(question for rows in parts().values() for question, _, _ in rows)
    assert [question for question, count in asked.items() if count > 1] == []


def test_every_part_of_the_table_is_linked_above_it() -> None:
    linked = re.findall(r"\[([^]]+)\]\(#", section("Where is what decided").split("\n### ")[0])
    assert linked == list(parts())


@pytest.mark.parametrize(("file", "name"), decided())
def test_a_rule_is_where_the_page_says(file: str, name: str) -> None:
    assert name in names_of(source_file(file))


def test_every_room_says_what_it_promises() -> None:
    """In the table of CONTRIBUTING, which `tools/docs.py` writes, and in a page of its own."""
    rooms = sorted(folder.name for folder in CORE_ROOMS.iterdir() if (folder / "__init__.py").is_file())
    assert sorted(ROOMS) == rooms
    assert sorted(OTHERS) == sorted(set(DISTRIBUTIONS) - {"proctor"})
    for room, (_, first) in (ROOMS | OTHERS).items():
        assert source_file(f"{room}/{first}").is_file(), first
        said = source_file(f"{room}/AGENTS.md").read_text(encoding="utf-8")
        assert all(f"**{part}" in said for part in ("Promises", "Must not", "Tests")), room
        (tests,) = re.findall(r"-q (packages/[\w/-]+)", said)
        assert (ROOT / tests).is_dir(), tests
