"""Options are declared in one way, also by plug-ins; what a plug-in's command does is a function in Python; and no command
builds a table."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from importlib.metadata import entry_points

import pytest

from proctor.core import COMMANDS, COMMANDS_ELSEWHERE
from tests.support.paths import modules, source_name

MACHINERY = "cli/tree.py"

TWINS = {
    "build.clinicalskillqa": "proctor.tasks.clinicalskillqa.instances:build_instances",
    "build.convert": "proctor_build.commands:completed",
    "build.focus": "proctor_build.focus.builder:build_focus",
    "build.new": "proctor_build.pipeline:new_project",
    "build.repair": "proctor_build.repair:accepted_repair",
    "build.run": "proctor_build.pipeline:run_stages",
    "build.status": "proctor_build.pipeline:funnel",
    "build.table": "proctor_build.pipeline:StageFiles",
    "media.pose": "proctor.tasks.clinicalskillqa.pose:facts_of",
}
"""The function, or class, behind each command of a plug-in."""


def test_options_are_declared_in_one_way() -> None:
    found = {
        source_name(path)
        for path in modules().values()
        if re.search(r"typer\.(Option|Argument)\(", path.read_text(encoding="utf-8"))
    }
    assert found == {MACHINERY}


def test_no_command_builds_a_table() -> None:
    """Results print themselves: a command shows what it gets."""
    makes = re.compile(r"\b(plain_table|Table)\(")
    commands = [path for path in modules().values() if re.search(r"/cli/|/commands", str(source_name(path)))]
    own = [path for path in commands if "PluginReport" not in path.read_text(encoding="utf-8")]
    assert [path.name for path in own if makes.search(path.read_text(encoding="utf-8"))] == []


def test_every_command_of_a_plugin_has_its_function() -> None:
    printing = {name.replace(" ", ".") for some in COMMANDS_ELSEWHERE.values() for name in some}
    assert sorted(TWINS) == sorted(name for name in COMMANDS.names() if name not in printing or name in TWINS)


def test_the_commands_of_the_other_packages_are_those_that_the_core_knows() -> None:
    """By these names it says which package to install for a command that is not there."""
    offered = {
        package: {
            point.name.replace(".", " ")
            for point in entry_points(group="proctor.commands")
            if point.module.partition(".")[0] == package
        }
        for package in COMMANDS_ELSEWHERE
    }
    assert offered == {package: set(names) for package, names in COMMANDS_ELSEWHERE.items()}


@pytest.mark.parametrize("command", TWINS)
def test_a_command_of_a_plugin_calls_its_function(command: str) -> None:
    module, _, name = TWINS[command].partition(":")
    assert callable(getattr(import_module(module), name))
    function = COMMANDS.get(command)
    assert name in inspect.getsource(inspect.getmodule(function) or function)
