"""Plain functions of other people: what they take, what identifies them, and how they are called."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, TypeVar

from pydantic import JsonValue

from proctor.core.errors import ConfigurationError, InputError
from proctor.core.function_state import source_hash, state_of

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
    """What other people's code gives. Where it ends the program, or is cancelled by itself, that is a `RuntimeError`;
    a cancellation from outside cancels it.

    >>> async def ends() -> None:
    ...     raise SystemExit(0)
    >>> asyncio.run(contained(ends()))
    Traceback (most recent call last):
    RuntimeError: SystemExit: 0
    """
    try:
        return await work
    except SystemExit as error:
        raise _escaped(error) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
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
