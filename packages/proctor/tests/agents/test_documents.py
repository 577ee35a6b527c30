"""SKILL.md and llms.txt: in the package, true of the program, and run as they stand."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from proctor.agents import document, document_names
from proctor.core import UsageError
from tests.docs.test_docs import command_tree, parsed
from tests.support.paths import ROOT
from tests.support.program import proctor

MOST_CALLS = 6
_NAMED = re.compile(r"`(proctor [^`]+)`")


def commands_of(text: str) -> list[str]:
    """The commands that stand in a document, in code spans and blocks; `…` and `|` stand for more."""
    spans = [span for span in _NAMED.findall(text) if "…" not in span and "NAME --help" not in span]
    spans += re.findall(r"^\$ (proctor .+)$", text, re.MULTILINE)
    return [re.sub(r"\|\S+", "", span) for span in spans]


@pytest.mark.parametrize("name", ["skill", "llms"])
def test_every_command_is_one_of_the_program(name: str) -> None:
    known = {" ".join(("proctor", *path)) for path, _ in command_tree()}
    lines = commands_of(document(name))
    assert len(lines) > 8
    for line in lines:
        words = line.split()
        assert any(" ".join(words[:count]) in known for count in (2, 3)), line
        if len(words) > 3 and name == "skill":
            parsed(line)


def test_llms_names_every_command() -> None:
    text = document("llms")
    for path, command in command_tree():
        if not command.hidden:
            assert f"- `{' '.join(('proctor', *path))}`: " in text


def test_the_skill_leads_from_nothing_to_a_compared_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of the skill, call by call, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    block = document("skill").split("```console skill\n")[1].split("```")[0]
    calls = [shlex.split(line.removeprefix("$ "))[1:] for line in block.splitlines() if line]
    assert 1 < len(calls) <= MOST_CALLS
    for words in calls:
        done = proctor(*words)
        assert done.returncode == 0, (words, done.stderr)
    (row,) = json.loads(done.stdout)
    assert row["metric"] == "accuracy"
    assert row["first"]["system"] == "longest-option"
    assert -1 <= row["ci_low"] <= row["difference"] <= row["ci_high"] <= 1
    assert row["decides"] is False  # three groups: the skill says what that means
    assert "`decides: false`" in document("skill")


def test_a_wrong_call_of_the_skill_says_what_to_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    proctor("new", "questions", "mine")
    done = proctor("compare", "mine", "--store", "runs.db", "--formt", "json", "--format", "json")
    assert json.loads(done.stderr.splitlines()[-1])["error"]["next"] == "proctor compare --help"


def test_the_head_of_the_skill_is_what_agents_read() -> None:
    _, head, body = document("skill").split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["name"] == "proctor"
    assert 100 < len(about["description"]) <= 1024
    assert len(body.splitlines()) < 100


def test_the_fields_that_the_skill_explains_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    proctor("new", "questions", "mine")
    proctor("run", "mine", "--system", "random", "--condition", "text-only", "--store", "runs.db")
    names = ("--system", "random/text-only", "--system", "majority/text-only")
    (row,) = json.loads(
        proctor("compare", "mine", "--store", "runs.db", *names, "--metric", "accuracy", "--format", "json").stdout
    )
    for name in (
        "difference",
        "ci_low",
        "ci_high",
        "p_holm",
        "n",
        "groups",
        "decides",
        "policy",
        "difference_if_wrong",
    ):
        assert name in row
        assert f"`{name}" in document("skill")


def test_both_are_in_the_wheel() -> None:
    """What `setuptools` packs of the folder, by the project's own patterns."""
    project = tomllib.loads((ROOT / "packages/proctor/pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    folder = ROOT / "packages/proctor/src/proctor/agents"
    for file in ("SKILL.md", "llms.txt", "__init__.py"):
        assert (folder / file).is_file()
        assert file.endswith(".py") or any(fnmatch(file, pattern) for pattern in patterns)


def test_documents_are_printed_and_others_refused() -> None:
    for name in document_names():
        assert proctor("mcp", "--show", name).stdout == document(name)
    with pytest.raises(
        UsageError, match="There is no document 'skil': choose one of skill, llms; did you mean 'skill'"
    ):
        document("skil")
