"""Options are declared in one way, also by plug-ins; what a plug-in's command does is a function in Python; and no command
builds a table."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import proctor
from proctor.core import COMMANDS

SOURCE = Path(proctor.__file__).parent
MACHINERY = "cli/tree.py"

TWINS = {
    "build.clinicalskillqa": "proctor.tasks.clinicalskillqa.instances:build_instances",
    "build.convert": "proctor_build.commands:completed",
    "build.focus": "proctor_build.focus.builder:build_focus",
    "build.new": "proctor_build.pipeline:new_project",
    "build.repair": "proctor_build.repair:accepted_repair",
    "build.run": "proctor_build.pipeline:run_stages",
    "build.simulated": "proctor.tasks.simulated:simulate",
    "build.status": "proctor_build.pipeline:funnel",
    "build.table": "proctor_build.pipeline:StageFiles",
    "check": "proctor.core:check_path",
    "media.pose": "proctor.tasks.clinicalskillqa.pose:facts_of",
    "new.questions": "proctor.tasks.questions.commands:write_example",
}
"""The function, or class, behind each command of a plug-in."""


def test_options_are_declared_in_one_way() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"typer\.(Option|Argument)\(", path.read_text(encoding="utf-8"))
    }
    assert found == {MACHINERY}


def test_no_command_builds_a_table() -> None:
    """Results print themselves: a command shows what it gets."""
    makes = re.compile(r"\b(plain_table|Table)\(")
    assert [path.name for path in (SOURCE / "cli").glob("*.py") if makes.search(path.read_text(encoding="utf-8"))] == []


def test_every_command_of_a_plugin_has_its_function() -> None:
    assert sorted(TWINS) == sorted(COMMANDS.names())


@pytest.mark.parametrize("command", TWINS)
def test_a_command_of_a_plugin_calls_its_function(command: str) -> None:
    module, _, name = TWINS[command].partition(":")
    assert callable(getattr(import_module(module), name))
    function = COMMANDS.get(command)
    assert name in inspect.getsource(inspect.getmodule(function) or function)
