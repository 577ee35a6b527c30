"""The help of `proctor build` lists its commands by workflow."""

from __future__ import annotations

from typer.testing import CliRunner

from proctor.cli.main import WORKFLOWS, commands
from proctor.core import COMMANDS


def test_every_command_has_its_workflow_and_exists() -> None:
    own = [full.partition(".")[2] for full in COMMANDS.names() if full.startswith("build.")]
    listed = [command for some in WORKFLOWS["build"].values() for command in some]
    assert sorted(listed) == sorted(own)


def test_the_help_has_the_workflows_in_their_order() -> None:
    said = CliRunner().invoke(commands("build"), ["build", "--help"]).output
    headings = [said.index(f"\n{panel}:\n") for panel in WORKFLOWS["build"]]
    assert headings == sorted(headings)
    assert "\nCommands:\n" not in said
    assert said.index("  new ") < said.index("  run ") < said.index("  status ") < said.index("  table ")
