"""User-defined functions: their parameters, their identity (a hash of source and state), and safe calls."""

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

from proctor.core.errors import ConfigurationError, InputError, ProctorError, error_line
from proctor.core.registry import remember_address
from proctor.core.text import looks_secret

Result = TypeVar("Result")


class PlainFunction:
    """A user-defined function, sync or async, called with those of the `offered` values that its parameters name.

    A sync function runs in a thread, so that it does not block others. Raises `ConfigurationError` for a required
    parameter that is not offered; `what` names the kind of function in the message.

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
        """Whether the function takes this value."""
        return name in self._takes

    @property
    def is_async(self) -> bool:
        """Whether the function runs in the event loop instead of a thread."""
        own_call = getattr(self.function, "__call__", None)  # noqa: B004 - of an object with an async one
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(own_call)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The function's name, source hash and state (see `state_of`), which together identify it."""
        state: dict[str, JsonValue] = dict(state_of(self.function))
        plain: dict[str, JsonValue] = {"function": self.name, "source_sha256": source_hash(self.function)}
        return plain | ({"state": state} if state else {})

    async def call(self, values: Mapping[str, Any]) -> Any:
        """Call the function with these values. Exceptions are passed on, except as in `contained`."""
        given = {name: values[name] for name in self._takes}
        if self.is_async:
            return await contained(self.function(**given))
        result = await _in_thread(self.function, given)
        return await contained(result) if inspect.isawaitable(result) else result

    def fault(self, error: BaseException) -> str:
        """An exception of the function on one line, with the file and line of its code."""
        return f"{error_line(error)} ({_location(error.__traceback__, self._file)})"


async def contained(work: Awaitable[Result]) -> Result:
    """Await foreign code. `SystemExit`, another exception that is no `Exception` (such as a panic of a library in Rust),
    and a cancellation that does not come from outside become a `RuntimeError`.

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
    """The error as a `RuntimeError`, so that it does not end more than the function that raised it."""
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    return RuntimeError(message).with_traceback(error.__traceback__)


def object_in_file(address: str) -> Any:
    """Import `path/to/file.py:name`. Raises `InputError` if the file or the name does not exist, and
    `ConfigurationError` if the file can't be loaded.

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
    found = getattr(module, name)
    remember_address(found, module.__name__, name)
    return found


def is_file_address(text: str) -> bool:
    """Whether a text is the address of an object in a Python file: `path/to/file.py:name`.

    >>> is_file_address("systems/mine.py:answer"), is_file_address("openai:gpt-5.2"), is_file_address("random")
    (True, False, False)
    """
    path, colon, name = text.rpartition(":")
    return bool(colon) and path.endswith(".py") and name.isidentifier()


def instance_in_file(address: str) -> Any:
    """The object at `path/to/file.py:name` (see `object_in_file`); of a class, an instance made without arguments.

    Raises also `InputError` for a class that needs arguments, and `ConfigurationError` for one that raises.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "lamp.py"
    ...     _ = file.write_text("class Lamp:\\n    lit = True", "utf-8")
    ...     instance_in_file(f"{file}:Lamp").lit
    True
    """
    found = object_in_file(address)
    if not isinstance(found, type):
        return found
    _refuse_arguments(found, address)
    try:
        return found()
    except ProctorError:
        raise
    except (Exception, SystemExit) as error:
        raise unloadable(Path(address.rpartition(":")[0]), error) from error


def _refuse_arguments(kind: type[object], address: str) -> None:
    """Raises `InputError` for a class that can't be called without arguments, with the location of its definition."""
    file, _, name = address.rpartition(":")
    try:
        where = f"line {inspect.getsourcelines(kind)[1]}"
    except (ValueError, TypeError, OSError):  # not written in Python
        return
    needed = [repr(name) for name in needed_parameters(kind)]
    if needed:
        raise InputError(
            inspect.getsourcefile(kind),
            where,
            found=f"the class {name}, which needs {', '.join(needed)}",
            expected=f"defaults for all, or an object: mine = {name}(…), named as {file}:mine",
        )


def needed_parameters(function: Callable[..., Any], *given: str) -> tuple[str, ...]:
    """The parameters without a default of a function, but for those `given`. Empty for one that is not written in Python.

    >>> needed_parameters(lambda seed, question, options=(): 0, "seed")
    ('question',)
    """
    try:
        takes = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return ()
    return tuple(
        take.name
        for take in takes
        if take.default is take.empty
        and take.kind not in {take.VAR_POSITIONAL, take.VAR_KEYWORD}
        and take.name not in given
    )


def load_file(path: Path) -> ModuleType:
    """Import a Python file; it can import files in the same folder."""
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
    sys.modules[name] = module  # dataclasses and pydantic look up their module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise unloadable(path, error) from error
    return module


def unloadable(path: Path, error: BaseException) -> ConfigurationError:
    """An exception during the import of a file as an error with the location in the file.

    >>> print(unloadable(Path("mine.py"), ValueError("no weights")))
    mine.py: can't be loaded: ValueError: no weights (mine.py, line 0)
    """
    location = _location(error.__traceback__, str(path.resolve()))
    return ConfigurationError(f"{path}: can't be loaded: {error_line(error)} ({location})")


def _taken(function: Callable[..., Any], name: str, offered: Sequence[str], what: str) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name}: its parameters can't be read: wrap it in a function") from error
    taken = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            return tuple(offered)
        if parameter.name in offered and parameter.kind is not parameter.POSITIONAL_ONLY:
            taken.append(parameter.name)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            if parameter.name in offered:
                found = f"the parameter {parameter.name!r} before '/'"
                raise ConfigurationError(f"{name}: found {found}, expected one that can be given by its name")
            expected = f"expected of {what}: {', '.join(offered)}"
            raise ConfigurationError(f"{name}: found the parameter {parameter.name!r}, {expected}")
    return tuple(taken)


def _location(trace: TracebackType | None, file: str) -> str:
    """The innermost line in `file`, or else the innermost line, without folders."""
    lines = []
    while trace is not None:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    own = [line for line in lines if line[0] == file] or lines or [(file, 0)]
    return f"{Path(own[-1][0]).name}, line {own[-1][1]}"


def _defined_in(value: object, module: ModuleType) -> bool:
    return callable(value) and getattr(value, "__module__", "") == module.__name__


async def _in_thread(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Run a function in a new thread. In the shared pool it might wait for others, and a hanging function would block
    the end of the program."""
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
        except (StopIteration, SystemExit, asyncio.CancelledError) as raised:  # a future can't hold StopIteration
            error = _escaped(raised)
        except BaseException as raised:  # noqa: BLE001 - re-raised in the caller
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop has ended

    threading.Thread(target=work, daemon=True, name="proctor-function").start()
    return await done


_MAX_VALUES = 10_000  # values of one name; larger objects are data, not state
_MAX_DEPTH = 20
_FUNCTIONS = (FunctionType, MethodType, functools.partial)


def source_hash(function: Callable[..., Any]) -> str:
    """The hash of a function's source, or of an object's class."""
    try:
        source = inspect.getsource(function if hasattr(function, "__code__") else type(function))
    except (OSError, TypeError):  # defined in an interpreter, without source
        code = getattr(function, "__code__", None)
        source = "\n".join(_instructions(code)) if code else repr(type(function))
    return _hash(source)


def state_of(function: Callable[..., Any]) -> dict[str, str]:
    """The state of a function that is not in its source (closures, bound arguments, attributes), as hashes by name.

    Hashed are numbers, texts, paths, enum members, functions (by source and state), and tuples, lists, sets, dicts,
    dataclasses and pydantic models of these. Inside these, other values and values with more than 10,000 parts are
    represented by their type; by themselves they are omitted. Values whose names look like secrets are omitted too.

    >>> def says(word):
    ...     return lambda question: word
    >>> state_of(says("yes")) == state_of(says("yes")), state_of(says("yes")) == state_of(says("no"))
    (True, False)
    >>> list(state_of(says("yes"))), state_of(says(object()))
    (['word'], {})
    """
    state = {}
    for name, value in _values(function):
        encoded = _Encoder().of(value)
        if not (isinstance(encoded, _Opaque) or looks_secret(name)):
            state[name] = _hash(json.dumps(encoded))[:16]
    return state


class _Opaque(str):
    """The type of a value that is not encoded."""


class _Encoder:
    """Encodes one value as JSON that is equal for equal values, up to a size and a depth."""

    def __init__(self) -> None:
        self._left = _MAX_VALUES
        self._within = list[int]()

    def of(self, value: Any) -> Any:
        self._left -= 1
        if value is None or isinstance(value, str | bytes | Number | Enum | PurePath):
            return [_type(value), str(value) if isinstance(value, str | PurePath) else repr(value)]
        if self._left < 0 or len(self._within) >= _MAX_DEPTH or id(value) in self._within:
            return _Opaque(_type(value))
        self._within.append(id(value))
        try:
            return self._parts(value)
        finally:
            self._within.pop()

    def _parts(self, value: Any) -> Any:
        if isinstance(value, _FUNCTIONS):
            return [source_hash(value), [[name, self.of(part)] for name, part in _values(value)]]
        if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            return [_type(value), [[name, self.of(part)] for name, part in sorted(_attributes(value).items())]]
        # Subclasses (Counter, defaultdict) usually hold results rather than settings.
        if type(value) not in {tuple, list, dict, set, frozenset} or len(value) > self._left:
            return _Opaque(_type(value))
        if isinstance(value, Mapping):
            public = [(key, part) for key, part in value.items() if not looks_secret(str(key))]
            pairs = [[self.of(key), self.of(part)] for key, part in public]
            return ["dict", sorted(pairs, key=lambda pair: json.dumps(pair[0]))]
        parts = [self.of(part) for part in value]
        return [_type(value), sorted(parts, key=json.dumps) if isinstance(value, set | frozenset) else parts]


def _values(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The values that belong to a function besides its code, by name."""
    if isinstance(function, functools.partial):
        yield "function", function.func
        yield from ((f"argument {position}", value) for position, value in enumerate(function.args, start=1))
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
        except ValueError:  # not yet assigned
            continue
    written = _written_defaults(function)
    for parameter in inspect.signature(function, follow_wrapped=False).parameters.values():
        name, default = parameter.name, parameter.default
        if default is not parameter.empty and not (name in written and written[name] == default):
            yield name, default
    if function.__name__ == "<lambda>":
        yield from _among_others(function)


def _attributes(own: Any) -> dict[str, Any]:
    slots = [name for kind in type(own).__mro__ for name in _slots(kind) if hasattr(own, name)]
    attributes = {name: getattr(own, name) for name in slots} | dict(getattr(own, "__dict__", {}))
    return {name: value for name, value in attributes.items() if not looks_secret(name)}


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if not name.startswith("__"))


def _written_defaults(function: FunctionType) -> dict[str, Any]:
    """The defaults that are literals in the function's source, and so part of its source hash."""
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
    pairs += [(name, node) for name, node in zip(made.args.kwonlyargs, made.args.kw_defaults, strict=True) if node]
    defaults = {}
    for name, node in pairs:
        try:
            defaults[name.arg] = ast.literal_eval(node)
        except ValueError:
            continue
    return defaults


def _among_others(function: FunctionType) -> Iterator[tuple[str, str]]:
    """The text of a lambda, if its source lines have several lambdas and so do not identify it."""
    try:
        lines, start = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return
    if "".join(lines).count("lambda") < 2:
        return
    segments = [
        lines[row - start].encode()[left:right].decode(errors="replace")
        for row, end, left, right in function.__code__.co_positions()
        if row is not None and row == end and 0 <= row - start < len(lines)
    ]
    yield "lambda", max(segments, key=len, default="")


def _instructions(code: CodeType) -> Iterator[str]:
    """The content of compiled code, without file names and line numbers."""
    yield from (code.co_code.hex(), repr(code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:
            yield repr(constant)


def _type(value: Any) -> str:
    return type(value).__qualname__


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
