"""Plain functions of other people: what they take, what identifies them, and how they are called."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import json
import sys
import textwrap
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from enum import Enum
from numbers import Number
from pathlib import Path, PurePath
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue

from proctor.core.errors import ConfigurationError, InputError
from proctor.core.text import looks_secret

Result = TypeVar("Result")


class PlainFunction:
    """A function, sync or async, that is called with those of the offered values that its parameters name.

    A sync function runs in a thread, so that it does not hold up the others.

    >>> length = PlainFunction(lambda text: len(text), offered=("text", "item"), what="a metric")
    >>> asyncio.run(length.call({"text": "abc", "item": None}))
    3
    >>> PlainFunction(lambda words: 0, offered=("text", "item"), what="a metric")
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: <lambda>: found the parameter 'words', expected of a metric: text, item
    """

    def __init__(self, function: Callable[..., Any], *, offered: Sequence[str], what: str) -> None:
        if not callable(function):
            raise ConfigurationError(f"found {type(function).__name__}, expected a function")
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self._takes = _taken(function, self.name, offered, what)
        code = getattr(function, "__code__", None)
        self._file = code.co_filename if code else ""

    def takes(self, name: str) -> bool:
        """Whether the function is called with this value."""
        return name in self._takes

    @property
    def is_async(self) -> bool:
        """Whether it is called in the event loop, and not in a thread."""
        own_call = getattr(self.function, "__call__", None)  # noqa: B004 - of an object with an async one
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(own_call)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Its name, the hash of its source, and what it was made with (see `state_of`): a function that was edited is
        another one, and so is one with other values."""
        state: dict[str, JsonValue] = dict(state_of(self.function))
        plain: dict[str, JsonValue] = {"function": self.name, "source_sha256": source_hash(self.function)}
        return plain | ({"state": state} if state else {})

    async def call(self, values: Mapping[str, Any]) -> Any:
        """What the function returns; what it raises comes out as it is, but see `contained`."""
        given = {name: values[name] for name in self._takes}
        if self.is_async:
            return await contained(self.function(**given))
        result = await _in_thread(self.function, given)
        return await contained(result) if inspect.isawaitable(result) else result

    def fault(self, error: BaseException) -> str:
        """An exception of the function in one line, with the file and the line of its code."""
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return f"{text} ({_place(error.__traceback__, self._file)})"


async def contained(work: Awaitable[Result]) -> Result:
    """What other people's code gives. Where it ends the program, is cancelled by itself, or raises what is no
    `Exception` (as libraries in Rust do that panic), that is a `RuntimeError`; Ctrl-C and a cancellation from outside
    end it.

    >>> async def ends() -> None:
    ...     raise SystemExit(0)
    >>> asyncio.run(contained(ends()))
    Traceback (most recent call last):
    RuntimeError: SystemExit: 0
    """
    try:
        return await work
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _escaped(error) from error
    except BaseException as error:
        raise _escaped(error) from error


def _escaped(error: BaseException) -> RuntimeError:
    """What would end more than the function that raised it, as an error of the function."""
    told = f"{type(error).__name__}: {error}".rstrip(": ")
    return RuntimeError(told).with_traceback(error.__traceback__)


def object_in_file(address: str) -> Any:
    """What `path/to/file.py:name` names. Raises `InputError` where the file or the name is not there, and
    `ConfigurationError` where the file can't be loaded.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.py"
    ...     _ = file.write_text("def double(number): return 2 * number", "utf-8")
    ...     object_in_file(f"{file}:double")(21)
    42
    """
    path, _, name = address.rpartition(":")
    module = load_file(Path(path))
    if not hasattr(module, name):
        own = [key for key, value in vars(module).items() if _defined_in(value, module)]
        raise InputError(path, found=f"no {name!r}", expected=f"one of {', '.join(own)}" if own else "a function")
    return getattr(module, name)


def load_file(path: Path) -> ModuleType:
    """A Python file as a module; files beside it can be imported by it, too."""
    if not path.is_file():
        raise InputError(path, found="no such file", expected="a Python file")
    file = path.resolve()
    name = f"proctor_file_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(path, found=f"a {file.suffix or 'nameless'} file", expected="a Python file")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # data classes and pydantic look their own module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise unloadable(path, error) from error
    return module


def unloadable(path: Path, error: BaseException) -> ConfigurationError:
    """What becomes of an exception of a file's own code while it is loaded: one line with the place in it.

    >>> print(unloadable(Path("mine.py"), ValueError("no weights")))
    mine.py: can't be loaded: ValueError: no weights (mine.py, line 0)
    """
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return ConfigurationError(f"{path}: can't be loaded: {text} ({_place(error.__traceback__, str(path.resolve()))})")


def _taken(function: Callable[..., Any], name: str, offered: Sequence[str], what: str) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name}: its parameters can't be read: wrap it in a function") from error
    taken = []
    for one in parameters:
        if one.kind is one.VAR_KEYWORD:
            return tuple(offered)
        if one.name in offered and one.kind is not one.POSITIONAL_ONLY:
            taken.append(one.name)
        elif one.default is one.empty and one.kind is not one.VAR_POSITIONAL:
            if one.name in offered:
                found = f"the parameter {one.name!r} before '/'"
                raise ConfigurationError(f"{name}: found {found}, expected one that can be given by its name")
            expected = f"expected of {what}: {', '.join(offered)}"
            raise ConfigurationError(f"{name}: found the parameter {one.name!r}, {expected}")
    return tuple(taken)


def _place(trace: TracebackType | None, file: str) -> str:
    """The innermost line in `file`, else the innermost line of all, without folders."""
    lines = []
    while trace is not None:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    own = [one for one in lines if one[0] == file] or lines or [(file, 0)]
    return f"{Path(own[-1][0]).name}, line {own[-1][1]}"


def _defined_in(value: object, module: ModuleType) -> bool:
    return callable(value) and getattr(value, "__module__", "") == module.__name__


async def _in_thread(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Runs a function in a thread of its own. The shared pool would make it wait for others, and let one that hangs
    hold up the end of the program."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(result)

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(function, **given)
        except (StopIteration, SystemExit, asyncio.CancelledError) as raised:  # a future can't carry the first one
            error = _escaped(raised)
        except BaseException as raised:  # noqa: BLE001 - it is raised where the function was called
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop has ended: nobody waits any more

    threading.Thread(target=work, daemon=True, name="proctor-function").start()
    return await done


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
