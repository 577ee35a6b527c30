"""Circles of imports among the modules of the packages, also by imports inside functions: `python tools/circles.py`.

import-linter holds the layers between rooms; inside a room, two modules that import each other can be read only
together, and an import inside a function hides that. Counted are all imports that happen while the program runs, so not
those under `if TYPE_CHECKING:`. A name that a package exports lazily (`proctor.lazy`) counts as one of the module that
defines it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SOURCES = sorted((Path(__file__).parents[1] / "packages").glob("*/src"))
_NEVER = {"TYPE_CHECKING", "typing.TYPE_CHECKING"}  # what stands under these does not run


@dataclass
class _Module:
    """What a module imports: (line, module, name there or "" for the module itself), and what its package exports."""

    imports: list[tuple[int, str, str]] = field(default_factory=list)
    exports: dict[str, tuple[str, str]] = field(default_factory=dict)
    attributes: list[tuple[int, str, str]] = field(default_factory=list)  # (line, name, attribute)
    aliases: dict[str, tuple[str, str]] = field(default_factory=dict)


def _read(source: str) -> _Module:
    module = _Module()
    tree = ast.parse(source)
    lazily = "export_lazily(__name__)" in source
    for node, run in _nodes(tree):
        if isinstance(node, ast.Import) and run:
            module.imports += [(node.lineno, name.name, "") for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = {name.asname or name.name: (node.module, name.name) for name in node.names}
            if run:
                module.imports += [(node.lineno, *where) for where in found.values()]
                module.aliases |= found
            elif lazily:
                module.exports |= found
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and run:
            module.attributes.append((node.lineno, node.value.id, node.attr))
    return module


def _nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes below one, and whether they run: those under `if TYPE_CHECKING:` do not."""
    waiting = [(tree, True)]
    while waiting:
        node, run = waiting.pop()
        yield node, run
        unread = node.body if isinstance(node, ast.If) and ast.unparse(node.test) in _NEVER else []
        waiting += [(child, run and child not in unread) for child in ast.iter_child_nodes(node)]


def imported(sources: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Of each module the modules that it imports, each with the first line that does; `sources` are texts by module."""
    modules = {name: _read(source) for name, source in sources.items()}

    def home(module: str, name: str) -> str:
        """The module that a name comes from."""
        if name and f"{module}.{name}" in modules:
            return f"{module}.{name}"
        if module in modules and name in modules[module].exports:
            return home(*modules[module].exports[name])
        return module

    found: dict[str, dict[str, int]] = {}
    for name, module in modules.items():
        lines = [(line, home(*where)) for line, *where in module.imports]
        packages = {alias: home(*where) for alias, where in module.aliases.items()}
        lines += [
            (line, home(packages[alias], attribute))
            for line, alias, attribute in module.attributes
            if alias in packages
        ]
        edges: dict[str, int] = {}
        for line, other in sorted(lines):
            if other in modules and other != name:
                edges.setdefault(other, line)
        found[name] = edges
    return found


def circles(edges: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """The groups of two or more modules of which each reaches each other one (Tarjan's strongly connected parts)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in edges[module]:
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            groups.extend([sorted(group)] if len(group) > 1 else [])

    for module in edges:
        if module not in number:
            visit(module)
    return sorted(groups)


def package_sources() -> dict[str, str]:
    """The texts of all modules of the packages, by module."""
    files = {
        file.relative_to(source).with_suffix("").parts: file
        for source in SOURCES
        for file in sorted(source.rglob("*.py"))
    }
    return {
        ".".join(parts[:-1] if parts[-1] == "__init__" else parts): file.read_text(encoding="utf-8")
        for parts, file in files.items()
    }


def told(sources: Mapping[str, str]) -> list[str]:
    """A line for each import that is part of a circle: module, line, and what is imported there."""
    edges = imported(sources)
    return [
        f"{module}:{line} imports {other}"
        for group in circles(edges)
        for module in group
        for other, line in edges[module].items()
        if other in group
    ]


def main() -> int:
    """Print what is part of a circle."""
    sources = package_sources()
    lines = told(sources)
    print("\n".join(lines) or f"No circle among {len(sources)} modules, also not by imports inside functions.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
