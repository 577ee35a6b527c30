"""Checks of kinds of projects, which `proctor.testing` finds by an entry point."""

from __future__ import annotations

from proctor.core import read_yaml
from proctor.testing import Check, Faults, KindChecks
from proctor_build.pipeline import PROJECT_KINDS


def kind_checks(name: str) -> list[Check]:
    """The checks of a kind of project: its example is one of this kind, and it has stages."""
    return [Check(f"kind of project {name}", "its_example_names_it", lambda: _example_of_kind(name))]


def _example_of_kind(name: str) -> Faults:
    kind = PROJECT_KINDS.get(name)
    found = read_yaml(kind.example, "a project.yaml").get("kind")
    if found != name:
        yield f"{kind.example.name}: found the kind {found!r}, expected {name!r}, of which it is the example"
    if not kind.stages:
        yield "`stages`: found none, expected what a project does"


KIND_CHECKS = KindChecks(PROJECT_KINDS, kind_checks)
