"""A challenge asks, imports and scores at one height: through `proctor.shell` and `proctor.api`, never past them."""

from __future__ import annotations

import ast
from pathlib import Path

import proctor_challenge

BELOW = {"execute", "import_answers", "join", "plan", "score_answers", "score_changed"}
"""What `proctor.runs` does with answers; a challenge may use its types, its clocks and its store."""


def taken(source: str) -> set[str]:
    """The names that a module imports from the rooms that ask and score."""
    rooms = ("proctor.runs", "proctor.judges", "proctor.models")
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = {name.name for node in nodes if node.module in rooms for name in node.names}
    whole = {name.name for node in nodes if node.module == "proctor" for name in node.names}
    return (names & BELOW) | (whole & {"runs", "judges", "models"})


def test_no_module_of_challenges_asks_or_scores_below() -> None:
    (folder,) = proctor_challenge.__path__
    files = sorted(Path(folder).rglob("*.py"))
    assert len(files) > 30
    assert {file.name: found for file in files if (found := taken(file.read_text("utf-8")))} == {}


def test_one_that_would_is_seen() -> None:
    assert taken("def f():\n    from proctor.runs import Store, execute\n") == {"execute"}
    assert taken("from proctor import core, runs\n") == {"runs"}
