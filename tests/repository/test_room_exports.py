"""A room's packages are its only doors: other rooms import what their `__init__` exports, never their modules."""

from __future__ import annotations

import ast

from tests.support.paths import modules

FILES = modules()
PACKAGES = {name for name, file in FILES.items() if file.name == "__init__.py"}
ENTRANCE = {"proctor.__main__"}  # `python -m proctor` is the command line


def room_of(module: str) -> str:
    """`proctor.runs` of `proctor.runs.store`, and `proctor.tasks.focus` of a module of that task; of another package of
    Proctor the whole."""
    parts = module.split(".")
    if parts[0] != "proctor":
        return parts[0]
    return ".".join(parts[: 3 if parts[1:2] == ["tasks"] else 2])


def imports_past_a_door(module: str, source: str) -> list[str]:
    """The modules of other rooms that a module imports from, past their packages."""
    nodes = list(ast.walk(ast.parse(source)))
    found = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    found += [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    rooms = {room_of(package) for package in PACKAGES} - {"proctor", "proctor.tasks", "proctor.lazy"}
    return [
        name for name in found if name not in PACKAGES and room_of(name) in rooms and room_of(name) != room_of(module)
    ]


def test_other_rooms_are_entered_by_their_packages() -> None:
    past = {}
    for module, file in FILES.items():
        if module not in ENTRANCE and (found := imports_past_a_door(module, file.read_text(encoding="utf-8"))):
            past[module] = found
    assert past == {}


def test_an_import_past_a_door_is_seen() -> None:
    past = "from proctor.runs.store import Store\nimport proctor.stats.means\nfrom proctor.runs import plan\n"
    assert imports_past_a_door("proctor.reports.renderers", past) == ["proctor.runs.store", "proctor.stats.means"]
    assert imports_past_a_door("proctor.runs.plan", "from proctor.runs.store import Store") == []


def lost_exports(source: str) -> list[str]:
    """The names in a package's `__all__` that it neither imports nor defines."""
    nodes = list(ast.walk(ast.parse(source)))
    there = {name.asname or name.name for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
    there |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    there |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    lists = [node.value for node in nodes if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node.targets[0])]
    exported = [name for one in lists if isinstance(one, ast.List) for name in ast.literal_eval(one)]
    return [name for name in exported if name not in there]


def test_every_exported_name_is_there() -> None:
    """`from room import *` fails at the first name that is not."""
    lost = {package: lost_exports(FILES[package].read_text("utf-8")) for package in PACKAGES}
    assert {package: names for package, names in lost.items() if names} == {}


def test_a_lost_export_is_seen() -> None:
    assert lost_exports('from a import b\nC = 1\n__all__ = ["C", "b", "d"]\n') == ["d"]
