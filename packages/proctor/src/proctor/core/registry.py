"""Registries of named things, built in or provided by other packages through entry points; and their interfaces."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from weakref import WeakKeyDictionary

from pydantic import JsonValue

from proctor.core.distributions import is_own, missing_package
from proctor.core.errors import InputError, ProctorError, UsageError, error_at
from proctor.core.formatting import one_of
from proctor.core.protocols import Benchmark, BenchmarkReader
from proctor.core.table import Table

T = TypeVar("T")
M = TypeVar("M")


class UnknownNameError(ProctorError):
    """A name that is not registered; the message lists the registered names."""


class Registry(Generic[T]):
    """Things of one kind by name; `group` is the entry point group for other packages.

    >>> systems: Registry[str] = Registry("system", group="proctor.example")
    >>> systems.add("random", "…")
    >>> systems.names()
    ['random']
    >>> systems.get("radnom")
    Traceback (most recent call last):
    proctor.core.registry.UnknownNameError: unknown system 'radnom': expected one of random; did you mean 'random'?
    """

    def __init__(
        self,
        what: str,
        *,
        group: str,
        fits: Callable[[object], bool] = callable,
        expected: str = "a function or a class",
        named: bool = False,
        elsewhere: str = "",
    ) -> None:
        """`fits` says whether what a package offers is such a thing, and `expected` what that is. Things that are
        `named` have the name of their entry point. `elsewhere` is said of an unknown name that resembles none: where
        other names come from."""
        self._what = what
        self.group = group
        self._fits = fits
        self._expected = expected
        self._named = named
        self._elsewhere = elsewhere
        self._known: dict[str, T] = {}
        self._own: set[str] = set()
        self._offered: dict[str, EntryPoint] | None = None

    def add(self, name: str, thing: T) -> None:
        """Register a thing. Raises `ProctorError` for a duplicate name."""
        if name in self._known:
            raise ProctorError(f"the {self._what} {name!r} is registered twice")
        self._known[name] = thing
        self._own.add(name)

    def put(self, name: str, thing: T) -> None:
        """Use a thing under its name in this process, instead of one that was put before. Raises `ProctorError` for a name
        that is built in, or that a package offers."""
        if name in self._own or name in self._packages():
            raise ProctorError(f"the {self._what} {name!r} exists already: give yours another name")
        self._known[name] = thing

    def register(self, name: str) -> Callable[[T], T]:
        """`add` as a decorator."""

        def decorate(thing: T) -> T:
            self.add(name, thing)
            return thing

        return decorate

    def names(self) -> list[str]:
        """All names, sorted, without loading anything. Raises `ProctorError` for a name that two packages offer."""
        return sorted(self._known.keys() | self._packages().keys())

    def get(self, name: str) -> T:
        """The thing with this name, loaded on first use. Raises `UnknownNameError` with the choices for an unknown
        name, and `ProctorError` for one that can't be loaded, or is something else."""
        if name in self._own:
            self._packages()  # a package that offers a built-in name is refused
        elif name not in self._known:
            offered = self._packages().get(name)
            if offered is None:
                choices = one_of(self.names(), name)
                more = "" if choices.endswith("?") else self._elsewhere
                raise UnknownNameError(f"unknown {self._what} {name!r}: expected {choices}{more}")
            self._known[name] = self._loaded(offered)
        return self._known[name]

    def _loaded(self, offered: EntryPoint) -> T:
        named = f"the {self._what} {offered.name!r} of {_package(offered)}"
        try:
            thing: T = offered.load()
        except ProctorError as error:
            raise ProctorError(f"{named}: {error}") from error
        except (Exception, SystemExit) as error:  # other people's code
            raise ProctorError(f"{named} can't be loaded: {_cause(error)}") from error
        if not self._fits(thing):
            kind = f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__
            raise ProctorError(f"{named}: found {kind}, expected {self._expected}")
        if self._named:
            self._check_name(offered, getattr(thing, "name", None))
        remember_address(thing, offered.module, offered.attr)
        return thing

    def _check_name(self, offered: EntryPoint, found: object, *, longer: bool = False) -> None:
        name = offered.name
        own = longer and isinstance(found, str) and re.fullmatch(rf"{re.escape(name)}\W.*", found, re.DOTALL)
        if found != name and (not own or found in self.names()):
            named = f"the {self._what} {name!r} of {_package(offered)}"
            raise ProctorError(f"{named}: found the name {found!r}, expected {name!r}, as its entry point")

    def check_name(self, name: str, found: str, *, longer: bool = False) -> None:
        """Raise `ProctorError` if what another package offers as `name` calls itself otherwise: its results would stand
        under the name of something else. If `longer`, its name may go on after it, as in "judge[model]"."""
        point = self._packages().get(name)
        if point is not None and not _is_own(point):
            self._check_name(point, found, longer=longer)

    def is_own(self, name: str) -> bool:
        """Whether Proctor itself has a thing of this name."""
        point = self._packages().get(name)
        return name in self._own or (point is not None and _is_own(point))

    def make(self, name: str, make: Callable[[], M], *needed: str) -> M:
        """What a thing returns when it is called. If another package offers it, an exception, and a result without the
        attributes `needed`, become a `ProctorError` that names the package."""
        point = self._packages().get(name)
        if point is None or _is_own(point):
            return make()
        named = f"the {self._what} {name!r} of {_package(point)}"
        try:
            made = make()
        except ProctorError:
            raise
        except (Exception, SystemExit) as error:  # other people's code
            raise ProctorError(f"{named} failed: {error_at(error)}") from error
        missing = [one for one in needed if not hasattr(made, one)]
        if missing:
            expected = f"an object with {', '.join(needed)} (missing: {', '.join(missing)})"
            raise ProctorError(f"{named}: it returned {type(made).__name__}, expected {expected}")
        remember_address(made, point.module, point.attr)
        return made

    def summary(self, name: str) -> str:
        """A one-line summary: `NAME_SUMMARY` of the module that offers NAME, which avoids loading more, or else the
        thing's `summary`, or the first line of its docstring."""
        offered = self._packages().get(name)
        if offered is not None:
            try:
                summary = getattr(import_module(offered.module), f"{offered.attr}_SUMMARY", "")
            except (Exception, SystemExit) as error:  # other people's code
                message = f"the {self._what} {name!r} of {_package(offered)} can't be loaded: {_cause(error)}"
                raise ProctorError(message) from error
            if summary:
                return str(summary)
        thing = self.get(name)
        return str(getattr(thing, "summary", "") or (thing.__doc__ or "").strip().split("\n", 1)[0])

    def _packages(self) -> dict[str, EntryPoint]:
        if self._offered is None:
            offered: dict[str, EntryPoint] = {}
            for point in entry_points(group=self.group):
                if point.name in self._own:
                    raise ProctorError(
                        f"the {self._what} {point.name!r} is built in, and offered by {_package(point)}: uninstall that"
                    )
                if (other := offered.get(point.name)) is not None and other.value != point.value:
                    packages = " and ".join(sorted({_package(other), _package(point)}))
                    raise ProctorError(
                        f"the {self._what} {point.name!r} is offered by {packages}: uninstall one of them"
                    )
                offered[point.name] = point
            self._offered = offered
        return self._offered


def _cause(error: BaseException) -> str:
    return f"{error}" if isinstance(error, ImportError | AttributeError | SyntaxError) else error_at(error)


def package_at_fault(error: BaseException) -> str:
    """The package that offers things to Proctor and whose code an unexpected exception went through, innermost first;
    empty for none.

    >>> package_at_fault(ValueError("no package"))
    ''
    """
    modules, trace = [], error.__traceback__
    while trace is not None:
        modules.append(str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0])
        trace = trace.tb_next
    offering = _packages_by_module()
    return next((offering[module] for module in reversed(modules) if module in offering), "")


def _packages_by_module() -> dict[str, str]:
    """The names of the other packages that offer things to Proctor, by their top module."""
    groups = [group for group in entry_points().groups if group.startswith("proctor.")]
    points = [point for group in groups for point in entry_points(group=group)]
    named = {point.module.partition(".")[0]: point for point in points}
    return {
        module: module if point.dist is None else point.dist.name
        for module, point in named.items()
        if not is_own(module)
    }


_ADDRESSES: WeakKeyDictionary[object, tuple[str, str]] = WeakKeyDictionary()


def remember_address(thing: object, module: str, name: str) -> None:
    """Remember under which name of which module something was found."""
    with suppress(TypeError):  # not everything can be referred to
        _ADDRESSES[thing] = (module, name)


def address_of(thing: object) -> tuple[str, str] | None:
    """The module, and the name in it, by which a thing from outside Proctor was found: those of its entry point, or of
    its file. None for what was not found by name."""
    while True:
        with suppress(TypeError):
            if (known := _ADDRESSES.get(thing)) is not None:
                return known
        if (inner := _wrapped(thing)) is None:
            return None
        thing = inner


def written(thing: object) -> object:
    """The code that somebody wrote behind a thing: what Proctor wrapped (`made_of`), such as a decorated function."""
    while (inner := _wrapped(thing)) is not None:
        thing = inner
    return thing


def _wrapped(thing: object) -> object | None:
    return getattr(thing, "made_of", None) if is_own(type(thing).__module__) else None


def origin_of(thing: object) -> str:
    """Where the code of a thing comes from that is not Proctor's own: the package that offers things to Proctor, or else
    the name of the file or module. Empty for what is Proctor's own.

    >>> origin_of(BENCHMARKS), origin_of(EntryPoint("a", "b:c", "d"))
    ('', '__init__.py')
    """
    module = _module_of(thing)
    if is_own(module):
        return ""
    file = getattr(sys.modules.get(module), "__file__", None)
    return package_of(thing) or (Path(file).name if file else module)


def package_of(thing: object) -> str:
    """The package that offers things to Proctor, if the code of a thing comes from one; else empty.

    >>> package_of(BENCHMARKS)
    ''
    """
    return _known_packages().get(_module_of(thing).partition(".")[0], "")


def _module_of(thing: object) -> str:
    code = written(thing)
    return str(getattr(code if hasattr(code, "__code__") else type(code), "__module__", ""))


@cache
def _known_packages() -> dict[str, str]:
    return _packages_by_module()


def _is_own(point: EntryPoint) -> bool:
    return is_own(point.module)


def _package(point: EntryPoint) -> str:
    """The package that offers an entry point, and the entry point's value."""
    name = "an unknown package" if point.dist is None else point.dist.name
    return f"{name} ({point.value})"


BENCHMARKS: Registry[BenchmarkReader] = Registry(
    "benchmark",
    group="proctor.benchmarks",
    fits=lambda thing: isinstance(thing, BenchmarkReader),
    expected="an instance of BenchmarkReader",
    named=True,
    elsewhere=". Your own questions go by their path, or by their name in the store that knows it (--store)",
)


def reader_of(benchmark: str, track: str = "") -> BenchmarkReader:
    """The reader of a benchmark, on a track if given. Raises `InputError` for an unknown track.

    >>> reader_of("rexsonovqa").name
    'rexsonovqa'
    >>> reader_of("rexsonovqa", "frame")
    Traceback (most recent call last):
    proctor.core.errors.InputError: --track: found 'frame', expected no track, rexsonovqa has none
    """
    reader = BENCHMARKS.get(benchmark)
    return reader.on_track(track) if track else reader


def benchmark_path(benchmark: str | Path) -> Path | None:
    """The path if `benchmark` is a path, or None if it is a name. Names of installed benchmarks take precedence: a
    folder with such a name is given as ./NAME.

    >>> benchmark_path("rexsonovqa"), str(benchmark_path("./rexsonovqa"))
    (None, 'rexsonovqa')
    """
    if isinstance(benchmark, Path):
        return benchmark
    if benchmark in BENCHMARKS.names():
        return None
    path = Path(benchmark)
    if "/" in benchmark or os.sep in benchmark:
        return path
    try:
        if path.exists():
            return path
    except (OSError, ValueError):  # a name that no file can have
        return None
    from proctor.core.spreadsheets import SHEET_SUFFIXES

    return path if path.suffix.lower() in SHEET_SUFFIXES else None


class _Unknown(BenchmarkReader):
    """The reader of a benchmark that is in a store but not installed: only the defaults."""

    summary = "not installed"

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        del data, media, seed
        return BENCHMARKS.get(self.name).load(Path())  # raises an error that lists the installed ones


def reader_or_default(benchmark: str) -> BenchmarkReader:
    """The reader of a benchmark, or one with only the defaults if the benchmark is not installed.

    >>> briefing = reader_or_default("focus").briefing
    >>> briefing is not None and briefing.own_clock, reader_or_default("somebody's").briefing
    (True, None)
    """
    return BENCHMARKS.get(benchmark) if benchmark in BENCHMARKS.names() else _Unknown(benchmark)


Steps = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]
"""Shows progress: `with steps("rendering", 12) as progress: progress(3, 12)`."""


@dataclass(frozen=True, slots=True)
class Option:
    """A command-line option, as annotation of a parameter: `Annotated[int, Option("How many.", low=1)]`.

    `name` is the option's name if it differs from the parameter's (several are separated by spaces). `default` is the
    default in a `TypedDict` of options shared by Python and the shell, in which options without `help` are for Python
    only. `shell` is the type on the command line if it differs; `read` converts it. `names` lists the completions. An
    `argument` is positional; `group` is its heading in the help.

    >>> Option("How many.", low=1).default is None
    True
    """

    help: str = ""
    name: str = ""
    default: Any = None
    low: float | None = None
    high: float | None = None
    shell: Any = None
    read: Callable[[Any], Any] | None = None
    group: str | None = None
    metavar: str | None = None
    names: Callable[[], list[str]] | None = None
    env: str | None = None
    argument: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class PluginReport:
    """The result of a command: `json` for programs; tables and lines (`shown`) and `notes` for people. The exit code is
    1 if not `ok`, that is, if the user has to act; else 3 if `partial`: it was done, and something counts as wrong.

    >>> PluginReport({"files": 1}, shown=("1 file was written.",)).ok
    True
    """

    json: JsonValue
    shown: tuple[Table | str, ...] = ()
    notes: tuple[str, ...] = ()
    ok: bool = True
    partial: bool = False


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """The arguments of a validation: the benchmark's files, its media, and a track. `every` lists all findings instead
    of a summary by cause. `options` are those of the validator; `known` is the path of the files that a store
    remembers. `budget_s` is the time limit of a question (None: the benchmark's own), and `latency` says whether answers
    without a latency are late (None: where others have one), as in `proctor rank`. `given` is the file as it was named:
    the URL of a store is no path.

    >>> request = ValidationRequest(options={"rows": 3})
    >>> dict(request.known_options("rows", "columns"))
    {'rows': 3}
    >>> request.known_options("columns")
    Traceback (most recent call last):
    proctor.core.errors.InputError: --option: found 'rows', expected one of columns
    >>> request.needed_data("the folder with the files of focus")
    Traceback (most recent call last):
    proctor.core.errors.UsageError: --data is missing. Give the folder with the files of focus: --data FOLDER
    """

    data: Path | None = None
    media: Path | None = None
    track: str = ""
    every: bool = False
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    known: Path | None = None
    budget_s: float | None = None
    latency: Literal["required", "optional"] | None = None
    given: str = ""

    def needed_data(self, what: str) -> Path:
        """The path of `--data`, or else `known`. Raises `UsageError`, with `what` is expected, if there is neither."""
        path = self.data or self.known
        if path is None:
            raise UsageError(f"--data is missing. Give {what}: --data FOLDER")
        return path

    def known_options(self, *names: str) -> Mapping[str, JsonValue]:
        """The options. Raises `InputError` for an option that is not in `names`."""
        unknown = next((name for name in self.options if name not in names), None)
        if unknown is not None:
            expected = f"one of {', '.join(names)}" if names else "no option"
            raise InputError("--option", found=repr(unknown), expected=expected)
        return self.options


Validator = Callable[[Path, ValidationRequest], PluginReport]
"""Validates a file. Its report is not `ok` if the file is no submission (unknown or repeated ids, for example) and would
be refused; it is `partial` if the file is accepted and some answers would be counted as wrong. Lines of such answers
begin with "wrong: ". Raises `InputError` if the file can't be read."""

COMMANDS: Registry[Callable[..., Any]] = Registry("command", group="proctor.commands")
"""Commands by "GROUP.NAME", such as "build.focus", or by "NAME": functions with annotated parameters that return a
`PluginReport`. A parameter `steps` gets a `Steps`; the option `--format` is added. Commands of Proctor's own packages may
return nothing (`-> None`) and print by `proctor.cli`."""

EXTENSIONS: Registry[Callable[..., Any]] = Registry("extension", group="proctor.extensions")
"""What a task or another of Proctor's packages does in a command of the core, by "COMMAND.WHAT" (see `extension`)."""


def extension(name: str, package: str, what: str) -> Callable[..., Any]:
    """The function `name` of `EXTENSIONS`. Raises `ConfigurationError`, which says what to install, where the package of
    Proctor that brings it is missing; `what` needs it.

    >>> extension("demo.nothing", "proctor_web", "proctor demo --nothing")
    Traceback (most recent call last):
    proctor.core.errors.ConfigurationError: proctor demo --nothing needs the package proctor-web: pip install proctor-web
    """
    if name not in EXTENSIONS.names():
        raise missing_package(package, what)
    return EXTENSIONS.get(name)


VALIDATORS: Registry[Validator] = Registry("validator", group="proctor.validators")
"""Validators by the name used with `proctor check`: a benchmark or a kind of file."""
