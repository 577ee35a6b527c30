"""The identity of code from outside Proctor: a hash of the source that decides what a class or a function does.

The source is read, not run: the top-level statements that define a class or a function, those that define the names in
them, and so on, through the modules of the same package or folder. Comments inside these count, other packages do not.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from proctor.core.registry import address_of, origin_of, written

_INSTALLED = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")}
_Name = tuple[str, str]
"""A module, and a name at its top level; "" is all of the module."""


def code_hash(thing: object) -> str:
    """The hash of the source that a thing from outside Proctor depends on: of its class, or of a function, with the
    helpers, base classes and constants that it names. Empty for Proctor's own things, and where there is no source.

    Of a class that is made by a function or at the top of a module, that location counts too, if the thing was found by
    an entry point or a file. Functions inside functions, which `PlainFunction` identifies, have none.

    >>> from proctor.core import BENCHMARKS
    >>> code_hash(BENCHMARKS), code_hash(ast.parse) == code_hash(ast.parse), code_hash(len)
    ('', True, '')
    """
    if not origin_of(thing):
        return ""
    code = written(thing)
    own: Any = code if isinstance(code, type) or hasattr(code, "__code__") else type(code)
    names = [(str(own.__module__), str(own.__qualname__))]
    names += [] if (address := address_of(thing)) is None else [address]
    parts = [part for module, name in names for part in _Sources(module).of(name.partition(".")[0])]
    if not parts and isinstance(own, type):
        parts = _own_source(own)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16] if parts else ""


def _own_source(own: type) -> list[str]:
    """The source of a class alone, which is all that is known of one in a notebook or inside a function."""
    try:
        return [inspect.getsource(own)]
    except (OSError, TypeError):
        codes = [value.__code__ for _, value in sorted(vars(own).items()) if hasattr(value, "__code__")]
        return [f"{code.co_code.hex()} {code.co_consts!r} {code.co_names!r}" for code in codes]


@dataclass
class _Module:
    """The source of a module: its top-level statements by the names that they define or change; statements that do
    something else, and where imported names come from."""

    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    others: list[ast.stmt] = field(default_factory=list)
    imported: dict[str, _Name] = field(default_factory=dict)
    source: str = ""


class _Sources:
    """The modules of one package or folder, read when they are needed."""

    def __init__(self, module: str) -> None:
        self._home = module
        self._root = module.partition(".")[0]
        file = getattr(sys.modules.get(module), "__file__", None)
        self._file = Path(file).resolve() if file else None
        self._read = dict[str, _Module | None]()

    def of(self, name: str) -> list[str]:
        """The statements that a name of the first module depends on, by module and line; none if it is not defined
        there."""
        open_, seen = [(self._home, name)], set[_Name]()
        found = dict[tuple[int, int], str]()
        order = dict[str, int]()
        while open_:
            if (one := open_.pop()) in seen:
                continue
            seen.add(one)
            position = order.setdefault(one[0], len(order))
            for line, text, names in self._statements(*one):
                found[position, line] = text
                open_ += names
        return [found[key] for key in sorted(found) if found[key]]

    def _statements(self, home: str, name: str) -> Iterator[tuple[int, str, list[_Name]]]:
        """The statements behind a name: line, text, and the names that they depend on."""
        if (module := self._module(home)) is None:
            return
        if not name:
            yield 0, module.source, [*module.imported.values()]
            return
        if name in module.imported:
            yield 0, "", [module.imported[name]]
        touching = [one for one in module.others if name in set(_names(one))]
        for statement in [*module.defined.get(name, ()), *touching]:
            text = ast.get_source_segment(module.source, statement, padded=True) or ""
            decorators = getattr(statement, "decorator_list", [])
            marks = [ast.get_source_segment(module.source, one) or "" for one in decorators]
            yield statement.lineno, "\n".join([*marks, text]), [*self._needs(statement, home, module)]

    def _needs(self, statement: ast.stmt, home: str, module: _Module) -> Iterator[_Name]:
        for used in _names(statement):
            if used in module.imported:
                yield module.imported[used]
            elif used in module.defined:
                yield home, used
            elif "*" in module.imported:
                yield module.imported["*"]
        yield from self._imports(statement, home).values()

    def _module(self, name: str) -> _Module | None:
        if name not in self._read:
            self._read[name] = self._parsed(name)
        return self._read[name]

    def _parsed(self, name: str) -> _Module | None:
        file = self._file if name == self._home else self._source_of(name)
        try:
            source = file.read_text(encoding="utf-8") if file is not None else ""
            tree = ast.parse(source)
        except (OSError, ValueError, SyntaxError):
            return None
        if file is None:
            return None
        module = _Module(source=source)
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                module.imported |= self._imports(statement, name)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring
            elif defined := set(_defined(statement)):
                for one in defined:
                    module.defined.setdefault(one, []).append(statement)
                for part in ast.walk(statement):
                    if isinstance(part, ast.Import | ast.ImportFrom) and not hasattr(statement, "name"):
                        module.imported |= self._imports(part, name)
            else:
                module.others.append(statement)
        return module

    def _imports(self, statement: ast.stmt, home: str) -> dict[str, _Name]:
        """The names that the imports in a statement bind, as far as they lead to the same package or folder."""
        found = dict[str, _Name]()
        for part in ast.walk(statement):
            if isinstance(part, ast.Import):
                for one in part.names:
                    if self._source_of(one.name):
                        found[one.asname or one.name.partition(".")[0]] = one.name, ""
            elif isinstance(part, ast.ImportFrom):
                base = self._base(part, home)
                for one in part.names if base else ():
                    below = f"{base}.{one.name}"
                    if self._source_of(below):
                        found[one.asname or one.name] = below, ""
                    elif self._source_of(base):
                        found[one.asname or one.name] = base, "" if one.name == "*" else one.name
        return found

    def _base(self, statement: ast.ImportFrom, home: str) -> str:
        """The module that names are imported from; "" for a relative import that leads out of the package."""
        if not statement.level:
            return statement.module or ""
        package = str(getattr(sys.modules.get(home), "__package__", "") or home.rpartition(".")[0])
        try:
            return resolve_name("." * statement.level + (statement.module or ""), package)
        except ImportError:
            return ""

    def _source_of(self, name: str) -> Path | None:
        """The source file of a module of the same package, or of the same folder if that is not of installed ones."""
        if name == self._home:
            return self._file
        try:
            spec = find_spec(name) if name.partition(".")[0] == self._root or "." not in name else None
        except (ImportError, ValueError, AttributeError):
            return None
        if spec is None or not spec.origin or not spec.origin.endswith(".py") or self._file is None:
            return None
        file, folder = Path(spec.origin).resolve(), self._file.parent
        beside = file.is_relative_to(folder) and not any(file.is_relative_to(one) for one in _INSTALLED)
        return file if name.partition(".")[0] == self._root or beside else None


def _names(statement: ast.stmt) -> Iterator[str]:
    return (part.id for part in ast.walk(statement) if isinstance(part, ast.Name))


def _defined(statement: ast.stmt) -> Iterator[str]:
    """The top-level names that a statement defines or changes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for part in ast.walk(statement):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield part.name
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store | ast.Del):
            yield part.id
        elif isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
            root: ast.expr = part
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            if isinstance(root, ast.Name):
                yield root.id
