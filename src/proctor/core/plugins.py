"""What a task adds to the program, found by entry points: commands below `build` and `media`, and checks of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from proctor.core.errors import InputError, MissingOptionError
from proctor.core.registry import Registry

Steps = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]
"""Shows progress: `with steps("rendering", 12) as progress: progress(3, 12)`."""


@dataclass(frozen=True, slots=True)
class PluginTable:
    """A table for people; columns beginning with ">" are aligned to the right, `wrapped` ones may take several lines.

    >>> PluginTable("Files", ("name", ">rows"), (("a.csv", "12"),)).wrapped
    ()
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wrapped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginReport:
    """What came of a command: for programs (`json`), and for people tables and lines in their order, and notes beside.
    `ok` is False where a person must act: the command then ends with exit code 1.

    >>> PluginReport({"files": 1}, shown=("1 file was written.",)).ok
    True
    """

    json: JsonValue
    shown: tuple[PluginTable | str, ...] = ()
    notes: tuple[str, ...] = ()
    ok: bool = True


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """Against what a file is checked: the benchmark's own files, its media, a track; `every` lists each finding by
    itself instead of by cause; `options` are the check's own.

    >>> request = ValidationRequest(options={"rows": 3})
    >>> dict(request.known_options("rows", "columns"))
    {'rows': 3}
    >>> request.known_options("columns")
    Traceback (most recent call last):
    proctor.core.errors.InputError: --option: found 'rows', expected one of columns
    >>> request.needed_data("the folder with the files of focus")
    Traceback (most recent call last):
    proctor.core.errors.MissingOptionError: --data: found none, expected the folder with the files of focus
    """

    data: Path | None = None
    media: Path | None = None
    track: str = ""
    every: bool = False
    options: Mapping[str, JsonValue] = field(default_factory=dict)

    def needed_data(self, what: str) -> Path:
        """The path of `--data`. Raises `MissingOptionError` that says what it should lead to."""
        if self.data is None:
            raise MissingOptionError("--data", what)
        return self.data

    def known_options(self, *names: str) -> Mapping[str, JsonValue]:
        """The options. Raises `InputError` for one that is not among these names."""
        unknown = next((name for name in self.options if name not in names), None)
        if unknown is not None:
            expected = f"one of {', '.join(names)}" if names else "no option"
            raise InputError(None, "--option", found=repr(unknown), expected=expected)
        return self.options


Validator = Callable[[Path, ValidationRequest], PluginReport]
"""Checks a file. Raises `InputError` where it can't be read at all."""

COMMANDS: Registry[Callable[..., Any]] = Registry("command", group="proctor.commands")
"""By "GROUP.NAME", such as "build.focus": functions whose parameters carry Typer's annotations, and that return a
`PluginReport`. A parameter `steps` gets a `Steps`; `--format` is added."""

VALIDATORS: Registry[Validator] = Registry("validator", group="proctor.validators")
"""By the name after `proctor validate`: a benchmark, or another kind of file."""
