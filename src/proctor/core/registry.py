"""Names to factories: what is built in and what other packages add, by entry point."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from proctor.core.blocks import Table
from proctor.core.errors import InputError, ProctorError, UsageError
from proctor.core.protocols import Benchmark, BenchmarkReader
from proctor.core.sheets import SHEET_SUFFIXES

T = TypeVar("T")


_SAME_AS = {
    "muted": ("mute", "silent", "no-sound", "no-audio", "without-sound"),
    "speech-only": ("audio-only", "sound-only", "speech", "listening", "transcript-only"),
    "text-only": ("blind", "none", "no-video", "no-image", "no-images", "no-media", "question-only", "text"),
    "black": ("blank", "blank-frames", "black-frames", "dark"),
    "shuffled": ("permuted", "random-order"),
    "reversed": ("backward", "backwards"),
    "single-frame": ("middle-frame", "one-frame"),
    "other-video": ("random-video", "wrong-video"),
}
"""What people call a thing elsewhere, by its name here; said where that name is a choice."""


def one_of(choices: Iterable[str], found: str = "") -> str:
    """The choices as an error lists them, with the one that was probably meant at the end.

    >>> one_of(["temperature", "top_p"], "temprature")
    "one of temperature, top_p; did you mean 'temperature'?"
    >>> one_of(["text-only", "video"], "no-video")
    "one of text-only, video; did you mean 'text-only'?"
    >>> one_of([])
    'one of none'
    """
    known = list(choices)
    word = found.lower().replace("_", "-")
    near = [name for name, others in _SAME_AS.items() if word in others and name in known]
    near = near or (get_close_matches(found, known, n=1) if found else [])
    return f"one of {', '.join(known) or 'none'}" + (f"; did you mean {near[0]!r}?" if near else "")


class UnknownNameError(ProctorError):
    """A name that is not registered; lists those that are."""


class Registry(Generic[T]):
    """Factories of one kind, by name; `group` is the entry point group that other packages add to.

    >>> systems: Registry[str] = Registry("system", group="proctor.example")
    >>> systems.add("random", "…")
    >>> systems.names()
    ['random']
    >>> systems.get("radnom")
    Traceback (most recent call last):
    proctor.core.registry.UnknownNameError: unknown system 'radnom': expected one of random; did you mean 'random'?
    """

    def __init__(self, what: str, *, group: str) -> None:
        self._what = what
        self._group = group
        self._known: dict[str, T] = {}
        self._own: set[str] = set()
        self._offered: dict[str, EntryPoint] | None = None

    def add(self, name: str, thing: T) -> None:
        """Registers; a name that is taken is an error."""
        if name in self._known:
            raise ProctorError(f"the {self._what} {name!r} is registered twice")
        self._known[name] = thing
        self._own.add(name)

    def register(self, name: str) -> Callable[[T], T]:
        """The same as a decorator."""

        def decorate(thing: T) -> T:
            self.add(name, thing)
            return thing

        return decorate

    def names(self) -> list[str]:
        """All names, sorted. Nothing is loaded for it. Raises `ProctorError` for a name that two packages offer."""
        return sorted(self._known.keys() | self._packages().keys())

    def get(self, name: str) -> T:
        """The registered thing, or an error that lists the choices. What a package offers is loaded when
        it is asked for: one that is broken breaks nothing else, and is named in a `ProctorError`."""
        if name in self._own:
            self._packages()  # a package that offers a built-in name is refused
        elif name not in self._known:
            offered = self._packages().get(name)
            if offered is None:
                raise UnknownNameError(f"unknown {self._what} {name!r}: expected {one_of(self.names(), name)}")
            try:
                self._known[name] = offered.load()
            except (ImportError, AttributeError) as error:
                raise ProctorError(f"the {self._what} {name!r} ({offered.value}) can't be loaded: {error}") from error
        return self._known[name]

    def summary(self, name: str) -> str:
        """What a thing says of itself in one line: the `NAME_SUMMARY` of the module that offers NAME, so that nothing
        more is loaded; else the thing's own `summary`, or the first line of its docstring."""
        offered = self._packages().get(name)
        with suppress(ImportError):  # told by `get`
            if offered is not None and (said := getattr(import_module(offered.module), f"{offered.attr}_SUMMARY", "")):
                return str(said)
        thing = self.get(name)
        return str(getattr(thing, "summary", "") or (thing.__doc__ or "").strip().split("\n", 1)[0])

    def _packages(self) -> dict[str, EntryPoint]:
        if self._offered is None:
            offered: dict[str, EntryPoint] = {}
            for point in entry_points(group=self._group):
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


def _package(point: EntryPoint) -> str:
    """Who offers an entry point, and what it is."""
    name = "an unknown package" if point.dist is None else point.dist.name
    return f"{name} ({point.value})"


BENCHMARKS: Registry[BenchmarkReader] = Registry("benchmark", group="proctor.benchmarks")


def reader_of(benchmark: str, track: str = "") -> BenchmarkReader:
    """A benchmark's reader, on a track where one is named. Raises `InputError` where it knows no tracks.

    >>> reader_of("rexsonovqa").name
    'rexsonovqa'
    >>> reader_of("rexsonovqa", "frame")
    Traceback (most recent call last):
    proctor.core.errors.InputError: --track: found 'frame', expected no track, rexsonovqa has none
    """
    reader = BENCHMARKS.get(benchmark)
    return reader.on_track(track) if track else reader


def reader_of_paths() -> BenchmarkReader:
    """The reader that is installed for questions at a plain path. Raises `ProctorError` where there is none, or
    several; a package that can't be loaded is passed over, as it may be any.

    >>> reader_of_paths().reads_paths
    True
    """
    found = []
    for name in BENCHMARKS.names():
        with suppress(ProctorError):
            found += [reader for reader in (BENCHMARKS.get(name),) if reader.reads_paths]
    if len(found) != 1:
        named = ", ".join(reader.name for reader in found) or "none"
        raise ProctorError(f"one installed reader of plain paths is needed, found {named}")
    return found[0]


def benchmark_path(benchmark: str | Path) -> Path | None:
    """The path that stands for a benchmark; None for a name. A name of an installed benchmark is never a path: a folder
    of that name is written as ./NAME.

    >>> benchmark_path("rexsonovqa"), str(benchmark_path("./rexsonovqa"))
    (None, 'rexsonovqa')
    """
    if isinstance(benchmark, Path):
        return benchmark
    if benchmark in BENCHMARKS.names():
        return None
    path = Path(benchmark)
    written = "/" in benchmark or os.sep in benchmark or path.suffix.lower() in SHEET_SUFFIXES
    try:
        return path if written or path.exists() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


class _Unknown(BenchmarkReader):
    """Of a benchmark that a store has and no installed package: nothing but the defaults."""

    summary = "not installed"

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        del data, media, seed
        return BENCHMARKS.get(self.name).load(Path())  # says which there are


def reader_or_default(benchmark: str) -> BenchmarkReader:
    """A benchmark's reader, or where no installed package has it one with the defaults alone.

    >>> briefing = reader_or_default("focus").briefing
    >>> briefing is not None and briefing.own_clock, reader_or_default("somebody's").briefing
    (True, None)
    """
    return BENCHMARKS.get(benchmark) if benchmark in BENCHMARKS.names() else _Unknown(benchmark)


Steps = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]
"""Shows progress: `with steps("rendering", 12) as progress: progress(3, 12)`."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command, beside the type of a parameter: `Annotated[int, Option("How many.", low=1)]`.

    `name` is its spelling where that is not the parameter's (several stand apart by spaces). `default` is its value in
    a `TypedDict` of options, which Python and the shell share; there an option without `help` is for Python alone.
    `shell` is its type on the command line where that is another one, of which `read` makes the value; `names` lists
    what can be completed. An `argument` is positional; `group` is its heading in the help.

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
    """What came of a command: for programs (`json`), and for people tables and lines in their order, and notes beside.
    `ok` is False where a person must act: the command then ends with exit code 1.

    >>> PluginReport({"files": 1}, shown=("1 file was written.",)).ok
    True
    """

    json: JsonValue
    shown: tuple[Table | str, ...] = ()
    notes: tuple[str, ...] = ()
    ok: bool = True


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """Against what a file is checked: the benchmark's own files, its media, a track; `every` lists each finding by
    itself instead of by cause; `options` are the check's own; `known` are the files that a store remembers.

    >>> request = ValidationRequest(options={"rows": 3})
    >>> dict(request.known_options("rows", "columns"))
    {'rows': 3}
    >>> request.known_options("columns")
    Traceback (most recent call last):
    proctor.core.errors.InputError: --option: found 'rows', expected one of columns
    >>> request.needed_data("the folder with the files of focus")
    Traceback (most recent call last):
    proctor.core.errors.UsageError: --data: found none, expected the folder with the files of focus
    """

    data: Path | None = None
    media: Path | None = None
    track: str = ""
    every: bool = False
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    known: Path | None = None

    def needed_data(self, what: str) -> Path:
        """The path of `--data`, else what a store knows. Raises `UsageError` that says what it should lead to."""
        found = self.data or self.known
        if found is None:
            raise UsageError("--data", what)
        return found

    def known_options(self, *names: str) -> Mapping[str, JsonValue]:
        """The options. Raises `InputError` for one that is not among these names."""
        unknown = next((name for name in self.options if name not in names), None)
        if unknown is not None:
            expected = f"one of {', '.join(names)}" if names else "no option"
            raise InputError("--option", found=repr(unknown), expected=expected)
        return self.options


Validator = Callable[[Path, ValidationRequest], PluginReport]
"""Checks a file. Raises `InputError` where it can't be read at all."""

COMMANDS: Registry[Callable[..., Any]] = Registry("command", group="proctor.commands")
"""By "GROUP.NAME", such as "build.focus", or by "NAME" for one of no group: functions whose parameters carry Typer's
annotations, and that return a `PluginReport`. A parameter `steps` gets a `Steps`; `--format` is added."""

VALIDATORS: Registry[Validator] = Registry("validator", group="proctor.validators")
"""By the name after `proctor validate`: a benchmark, or another kind of file."""
