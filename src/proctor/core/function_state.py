"""What a function brings along beside its source: closures, defaults, arguments of a partial, attributes of its object."""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from numbers import Number
from pathlib import PurePath
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any

from pydantic import BaseModel

from proctor.core.text import looks_secret

_MOST = 10_000  # values that are looked at of one name: state is small, and data are none
_DEEPEST = 20
_FUNCTIONS = (FunctionType, MethodType, functools.partial)


def source_hash(function: Callable[..., Any]) -> str:
    """The hash of a function's source; of an object that of its class."""
    try:
        told = inspect.getsource(function if hasattr(function, "__code__") else type(function))
    except (OSError, TypeError):  # typed into an interpreter: no text is kept
        code = getattr(function, "__code__", None)
        told = "\n".join(_told(code)) if code else repr(type(function))
    return _hash(told)


def state_of(function: Callable[..., Any]) -> dict[str, str]:
    """By name a hash of each value that a function was made with and that its source does not say.

    Values are numbers, texts, paths, members of enumerations, functions (by their source and state), and tuples, lists,
    sets, dicts, data classes and pydantic models of these. Any other value is told by its type within one of them, and
    not at all by itself; so is what holds more than 10,000 values. What is named as a secret is left out.

    >>> def says(word):
    ...     return lambda question: word
    >>> state_of(says("yes")) == state_of(says("yes")), state_of(says("yes")) == state_of(says("no"))
    (True, False)
    >>> list(state_of(says("yes"))), state_of(says(object()))
    (['word'], {})
    """
    told = {}
    for name, value in _values(function):
        found = _Account().of(value)
        if not (isinstance(found, _Opaque) or looks_secret(name)):
            told[name] = _hash(json.dumps(found))[:16]
    return told


class _Opaque(str):
    """The type of a value that is not looked into."""


class _Account:
    """One value as JSON that is equal for equal values; bounded."""

    def __init__(self) -> None:
        self._left = _MOST
        self._within = list[int]()

    def of(self, value: Any) -> Any:
        self._left -= 1
        if value is None or isinstance(value, str | bytes | Number | Enum | PurePath):
            return [_type(value), str(value) if isinstance(value, str | PurePath) else repr(value)]
        if self._left < 0 or len(self._within) >= _DEEPEST or id(value) in self._within:
            return _Opaque(_type(value))
        self._within.append(id(value))
        try:
            return self._parts(value)
        finally:
            self._within.pop()

    def _parts(self, value: Any) -> Any:
        if isinstance(value, _FUNCTIONS):
            return [source_hash(value), [[name, self.of(one)] for name, one in _values(value)]]
        if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            return [_type(value), [[name, self.of(one)] for name, one in sorted(_attributes(value).items())]]
        # A subclass (Counter, defaultdict) rather counts what happens than says what is to be done.
        if type(value) not in {tuple, list, dict, set, frozenset} or len(value) > self._left:
            return _Opaque(_type(value))
        if isinstance(value, Mapping):
            open_ones = [(key, one) for key, one in value.items() if not looks_secret(str(key))]
            pairs = [[self.of(key), self.of(one)] for key, one in open_ones]
            return ["dict", sorted(pairs, key=lambda pair: json.dumps(pair[0]))]
        parts = [self.of(one) for one in value]
        return [_type(value), sorted(parts, key=json.dumps) if isinstance(value, set | frozenset) else parts]


def _values(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """What stands in a function beside its code, by name."""
    if isinstance(function, functools.partial):
        yield "function", function.func
        yield from ((f"argument {place}", value) for place, value in enumerate(function.args, start=1))
        yield from sorted(function.keywords.items())
        return
    if isinstance(function, MethodType | BuiltinMethodType):
        own = function.__self__
        if not isinstance(own, type):
            yield from sorted(_attributes(own).items())
        function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        yield from sorted(_attributes(function).items())
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled yet
            continue
    written = _written_defaults(function)
    for one in inspect.signature(function, follow_wrapped=False).parameters.values():
        if one.default is not one.empty and not (one.name in written and written[one.name] == one.default):
            yield one.name, one.default
    if function.__name__ == "<lambda>":
        yield from _among_others(function)


def _attributes(own: Any) -> dict[str, Any]:
    slots = [name for kind in type(own).__mro__ for name in _slots(kind) if hasattr(own, name)]
    found = {name: getattr(own, name) for name in slots} | dict(getattr(own, "__dict__", {}))
    return {name: value for name, value in found.items() if not looks_secret(name)}


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if not name.startswith("__"))


def _written_defaults(function: FunctionType) -> dict[str, Any]:
    """The defaults that a function's source says as they are: a hash of the source holds them already."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    made = next((node for node in ast.walk(tree) if isinstance(node, kinds)), None)
    if made is None:
        return {}
    plain = [*made.args.posonlyargs, *made.args.args]
    pairs = [*zip(plain[len(plain) - len(made.args.defaults) :], made.args.defaults, strict=True)]
    pairs += [(name, one) for name, one in zip(made.args.kwonlyargs, made.args.kw_defaults, strict=True) if one]
    found = {}
    for name, node in pairs:
        try:
            found[name.arg] = ast.literal_eval(node)
        except ValueError:
            continue
    return found


def _among_others(function: FunctionType) -> Iterator[tuple[str, str]]:
    """The text of a lambda where its lines hold several, and so do not say which it is."""
    try:
        lines, start = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return
    if "".join(lines).count("lambda") < 2:
        return
    said = [
        lines[row - start].encode()[left:right].decode(errors="replace")
        for row, end, left, right in function.__code__.co_positions()
        if row is not None and row == end and 0 <= row - start < len(lines)
    ]
    yield "lambda", max(said, key=len, default="")


def _told(code: CodeType) -> Iterator[str]:
    """What compiled code does, without the places where it lies."""
    yield from (code.co_code.hex(), repr(code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _told(constant)
        else:
            yield repr(constant)


def _type(value: Any) -> str:
    return type(value).__qualname__


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
