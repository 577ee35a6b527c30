"""The program `proctor`: its commands, and how errors end the process, with which exit code."""

from __future__ import annotations

import asyncio
import atexit
import errno
import gc
import os
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NoReturn

import typer

from proctor import __version__
from proctor.cli import STOPPED, STOPPED_EXIT
from proctor.cli.tree import (
    Program,
    Version,
    add,
    add_line,
    add_missing,
    add_plugins,
    add_top_commands,
    new_group,
    plugin_names,
    spread_settings,
)
from proctor.core import ProctorError, clean, error_line, missing_commands, package_at_fault

_SYSTEM_ERRORS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENAMETOOLONG,
    errno.EIO,
}
"""Errors of the system that are reported in one line: a full or read-only disk, missing permissions, an invalid file
name."""

_DATABASE_ERRORS = {"BUSY", "LOCKED", "READONLY", "IOERR", "FULL", "CANTOPEN"}
"""The same for SQLite, by the names of its result codes."""

RUN, READ, JUDGE, BUILD = "Run", "Read results", "Judges", "Build, review, host"
OWN = BUILD
"""The headings of the help, in its order; `OWN` is that of other packages' commands, except those in `TOP_PANELS`."""

TOP_PANELS = {"view": READ}

GROUPS = {
    "audit": "Compare judges with people; audit items.",
    "judge": "Tune, compare and test judges.",
    "train": "Train judges and answerers.",
    "build": "Build benchmarks and convert tracks.",
    "serve": "Serve a review or a challenge; accounts.",
    "review": "Studies: progress, agreement, exports, CSV.",
    "challenge": "Host a challenge: phases, boards, packs.",
    "media": "Decode frames, find duplicates, detect poses.",
    "store": "Join and change stores of answers.",
}
DEFAULTS = {"audit": "judges", "serve": "site"}
"""The commands of groups that are called without their names: `proctor audit BENCHMARK`, `proctor serve DIR`."""

PANELS = {
    RUN: ("store",),
    JUDGE: ("audit", "judge", "train"),
    BUILD: ("build", "media", "review", "serve", "challenge"),
}

WORKFLOWS: dict[str, dict[str, tuple[str, ...]]] = {
    "build": {
        "Projects": ("new", "run", "status", "table"),
        "Without a project": ("clinicalskillqa", "focus", "convert", "repair"),
    }
}
"""The headings under which a group lists its commands; others are listed as "Commands"."""

TREE = {
    RUN: {
        "demo": "demo.demo",
        "list": "listing.list_things",
        "fetch": "benchmarks.fetch",
        "sight": "sight.sight",
        "run": "run.run",
        "choose": "choose.choose",
        "import": "run.import_recorded",
        "score": "score.score",
        "status": "status.status",
        "worker": "workers.worker",
        "store merge": "store.merge",
        "store change": "store.change",
    },
    READ: {
        "results": "results.results",
        "show": "benchmarks.show_item",
        "compare": "compare.compare",
        "explain": "explain.explain",
        "plan": "planning.plan",
        "analyze": "results.analyze",
        "rank": "results.rank",
        "report": "report.report",
        "export": "report.export",
        "reproduce": "report.reproduce",
        "mcp": "mcp.mcp",
    },
    JUDGE: {"audit judges": "score.audit", "audit items": "benchmarks.audit_items", "judge perturb": "score.perturb"},
    BUILD: {
        "check": "check.check",
        "new": "new.new",
        "media frames": "media.frames",
        "media cache": "media.cached",
        "media duplicates": "media.duplicates",
    },
}
"""The function of each command, as MODULE.FUNCTION. Only the modules of the called command are imported. The commands of
other packages are found by their entry points: `COMMANDS_ELSEWHERE`."""

WHO = {
    "A researcher with a model": (
        "demo", "list", "fetch", "sight", "run", "status", "view", "import", "score", "results", "show", "compare", "explain", "plan", "analyze",
        "report", "export",
        "reproduce", "media frames", "media cache", "media pose", "store merge", "audit items",
    ),
    "Somebody with questions of their own": ("new", "check"),
    "A coding agent": ("mcp",),
    "A challenge participant": ("choose", "rank", "train answerer", "challenge try"),
    "A challenge organiser": (
        "challenge new", "challenge check", "challenge phase", "challenge status",
        "challenge submission", "challenge team", "challenge pack", "worker", "store change", "media duplicates",
    ),
    "A metric researcher": (
        "audit judges", "judge fit", "judge compare", "judge perturb", "train generative-judge",
        "train classifier-judge",
    ),
    "A benchmark builder": (
        "build new", "build run", "build status", "build table",
        "build clinicalskillqa", "build focus", "build convert", "build repair",
    ),
    "Who runs a review by clinicians": (
        "serve site", "serve users", "review update", "review status", "review export", "review sample",
    ),
}  # fmt: skip
"""Who types each command first. A command that nobody types has no place here, and a test says so."""


@cache
def commands(wanted: str | None = None) -> typer.Typer:
    """The program with all commands (None), with one command or group, or with summaries only ("", for its help)."""
    app = typer.Typer(
        cls=type("Headed", (Program,), {"heads": (RUN, READ, JUDGE, BUILD)}),
        name="proctor",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Evaluate models on clinical procedures. `proctor NAME --help` says more.",
    )
    app.callback(invoke_without_command=True)(_root)
    chosen = {name: summary for name, summary in GROUPS.items() if wanted in {None, "", name}}
    groups = {name: new_group(summary, DEFAULTS.get(name, "")) for name, summary in chosen.items()}
    make = add_line if wanted == "" else add
    gone = missing_commands()
    if wanted != "":
        _add_of_packages(groups, gone)
    _add_own(app, groups, wanted, make)
    if not wanted:
        add_top_commands(app, _own_names(), OWN, make, TOP_PANELS)
        for name in (words for words in gone if " " not in words):
            add_missing(app, name, name, gone[name])
    for panel, names in PANELS.items():
        for name in filter(groups.__contains__, names):
            app.add_typer(groups[name], name=name, rich_help_panel=panel, hidden=_all_gone(name, gone))
    return app


def _add_own(
    app: typer.Typer, groups: Mapping[str, typer.Typer], wanted: str | None, make: Callable[..., None]
) -> None:
    """Add the commands of the core: those at the top by `make`, and those of `groups`."""
    for panel, own in TREE.items():
        for words, location in own.items():
            name, _, below = words.partition(" ")
            if not below and wanted in {None, "", name}:
                make(app, name, _function(location), panel)
            elif below and wanted in {None, name}:
                add(groups[name], below, _function(location))


def _add_of_packages(groups: Mapping[str, typer.Typer], gone: Mapping[str, str]) -> None:
    """Add the commands of packages to their groups; one that is not installed (`gone`) says what to install."""
    for name, group in groups.items():
        add_plugins(group, name, WORKFLOWS.get(name, {}))
    for words, package in gone.items():
        name, _, below = words.partition(" ")
        if name in groups:
            add_missing(groups[name], below, words, package)


def _all_gone(group: str, gone: Collection[str]) -> bool:
    """Whether all commands of a group belong to packages that are not installed: then the help does not list it."""
    own = any(words.startswith(f"{group} ") for some in TREE.values() for words in some)
    return not own and any(words.startswith(f"{group} ") for words in gone) and not plugin_names(group)


def _function(location: str) -> Callable[..., None]:
    module, _, name = location.partition(".")
    function: Callable[..., None] = getattr(import_module(f"proctor.cli.{module}"), name)
    return function


def _own_names() -> set[str]:
    """The built-in commands and groups."""
    return {words.partition(" ")[0] for own in TREE.values() for words in own} | GROUPS.keys()


@cache
def _program(wanted: str | None) -> Callable[..., object]:
    """The program as a callable. Building it from the signatures is slow, so it is cached."""
    return typer.main.get_command(commands(wanted))


def _wanted(arguments: Sequence[str]) -> str | None:
    """The part of the program that these arguments need (see `commands`)."""
    words = arguments[1:] if arguments[:1] == ["help"] else arguments
    if "_PROCTOR_COMPLETE" in os.environ:  # a shell asks what could come next
        return None
    if not words or words[0] in {"--help", "--version"}:
        return ""
    return words[0] if words[0] in _own_names() else None


def _root(version: Version = False) -> None:
    if version:
        typer.echo(f"proctor {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the program. Exit code 0: done; 1: bad input, in one line on standard error; 2: wrong usage; 3: some answers
    failed; 130: stopped by the user."""
    gc.set_threshold(10_000)  # imports make very many objects, and all of them stay
    atexit.register(gc.freeze)  # nobody needs the memory then: a last search for cycles takes a tenth of a second
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "14")  # NumPy's threads sleep when idle; as it is they spin
    try:
        _program(_wanted(sys.argv[1:]))(args=spread_settings(sys.argv[1:]), prog_name="proctor")
    except (KeyboardInterrupt, asyncio.CancelledError):
        _stopped()
    except (SystemExit, Exception) as error:  # noqa: BLE001  (the edge of the process)
        if was_interrupted(error):  # the library ends what Ctrl-C interrupts without a word
            _stopped()
        _end(error)


def _end(error: SystemExit | Exception) -> NoReturn:
    """End the process with the code and the line of an error, or with one JSON object where `--format json` was given. Raises
    what is a bug of Proctor."""
    if isinstance(error, SystemExit):
        raise error
    from proctor.cli.error_report import bug_json, error_json, wants_json

    code = vars(error).get("exit_code", 1)
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        sys.exit(code)
    message, code = _told(error)
    as_json = wants_json(sys.argv[1:])
    if not message:
        if not as_json and not vars(error).get("exit_code"):
            raise error
        traceback.print_exception(error)
        sys.stderr.write(f"{bug_json(error, code)}\n" if as_json else "")
        sys.exit(code)
    if as_json:
        sys.stderr.write(f"{error_json(error, message, code, sys.argv[1:])}\n")
        sys.exit(code)
    for line in getattr(error, "__notes__", ()) if isinstance(error, ProctorError) else ():
        sys.stderr.write(f"{clean(line)}\n")
    sys.stderr.write(f"proctor: {clean(message)}\n")  # names in files may be hostile
    sys.exit(code)


def _told(error: Exception) -> tuple[str, int]:
    """The line of an error, and the exit code; no line for one that is raised again."""
    if isinstance(error, ProctorError):
        return str(error), error.exit_code
    code = vars(error).get("exit_code", 1)
    if isinstance(error, OSError):
        return f"{_location(error)}{error.strerror}" if error.errno in _SYSTEM_ERRORS else "", code
    return _explained(error), code


def was_interrupted(error: BaseException) -> bool:
    """Whether an exception, such as one of an import that Ctrl-C cut short, came of a `KeyboardInterrupt`.

    >>> was_interrupted(KeyboardInterrupt()), was_interrupted(ImportError("no such module"))
    (True, False)
    """
    seen = set[int]()  # exceptions may be the causes of each other
    while not isinstance(error, KeyboardInterrupt):
        seen.add(id(error))
        below = error.__cause__ or error.__context__
        if below is None or id(below) in seen:
            return False
        error = below
    return True


def _stopped() -> NoReturn:
    """End as a program that Ctrl-C stopped."""
    sys.stderr.write(f"{STOPPED}\n")
    sys.exit(STOPPED_EXIT)


def _explained(error: Exception) -> str:
    """The message of an exception that is no bug of Proctor; empty for one that is. Where another package failed, its
    author gets the traceback as well."""
    if _is_of_the_database(error):
        return f"found {getattr(error, 'orig', '')}, expected a database that can be written"
    package = package_at_fault(error)
    if not package:
        return ""
    traceback.print_exception(error)
    return f"the package {package} failed: {error_line(error)}"


def _is_of_the_database(error: Exception) -> bool:
    """Whether a database can't be used: locked, full, read-only, or disconnected. Checked without importing
    SQLAlchemy."""
    name = getattr(getattr(error, "orig", None), "sqlite_errorname", "")  # such as SQLITE_BUSY_SNAPSHOT
    away = getattr(error, "connection_invalidated", False)
    return away or any(part in _DATABASE_ERRORS for part in name.split("_")[1:2])


def _location(error: OSError) -> str:
    """The file of an error, printable on one line."""
    name = "".join(char if char.isprintable() else "\ufffd" for char in str(error.filename or ""))
    return f"{name}: " if name else ""
