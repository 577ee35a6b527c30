"""Packages whose names are imported when they are first used, so that a start costs what it needs.

An `__init__` says what its package exports as always, but to readers and type checkers only:

    if TYPE_CHECKING:
        from proctor.runs import Run, Store
    else:
        export_lazily(__name__)

    __all__ = ["Run", "Store"]

This is what `lazy_loader` does with stub files (Scientific Python, SPEC 1), without a second file to keep in step.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from importlib.abc import InspectLoader
from types import ModuleType
from typing import cast


class _Package(ModuleType):
    """A package that imports a name's module when somebody asks for the name."""

    _homes: dict[str, tuple[str, str]]

    def __getattr__(self, name: str) -> object:
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, original = self._homes[name]
        if module == self.__name__:  # a module of this package
            value: object = import_module(f"{module}.{original}")
        else:
            value = getattr(import_module(module), original)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # An imported module is bound in its package; a name that is exported keeps its meaning (`runs.results`).
        if not (name in self._homes and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._homes})


def export_lazily(package: str) -> None:
    """Makes the names that the package's `__init__` imports under `if TYPE_CHECKING:` available on first use.

    Raises `AttributeError` for every other name, as any module does.
    """
    module = sys.modules[package]
    loader = cast("InspectLoader", module.__loader__)
    module.__dict__["_homes"] = _homes(loader.get_source(package) or "")
    module.__class__ = _Package


def _homes(source: str) -> dict[str, tuple[str, str]]:
    """Of each exported name its module, and its name there."""
    return {
        alias.asname or alias.name: (statement.module, alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }
