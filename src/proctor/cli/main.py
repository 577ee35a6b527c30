"""The program `proctor`: its commands, and how errors end the process."""

from __future__ import annotations

import asyncio
import atexit
import errno
import gc
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import NoReturn

import typer

from proctor import __version__
from proctor.cli import STOPPED, STOPPED_EXIT
from proctor.cli.renamed import ReplacedError
from proctor.cli.tree import Group, add, add_line, add_plugins, add_top_commands, new_group, spread_settings
from proctor.core import ProctorError, UsageError, clean, error_line, package_at_fault

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

RUN, OWN, READ, CHALLENGE = "Run", "Your own questions", "Read results", "Challenges"
JUDGE, BUILD, REVIEW, MEDIA, STORE = "Judges", "Build and check items", "Review in the browser", "Media", "Store"

GROUPS = {
    "judge": "Tune judges on ratings; index documents.",
    "train": "Train judges and answerers.",
    "build": "Build benchmarks and convert tracks.",
    "items": "Check a benchmark's items.",
    "challenge": "Host a challenge: phases, boards, packs.",
    "review": "Studies: progress, agreement, exports, CSV.",
    "users": "Manage accounts and roles.",
    "media": "Decode frames, find duplicates, detect poses.",
    "store": "Check and change a store of answers.",
}
PANELS = {
    CHALLENGE: ("challenge",),
    JUDGE: ("judge", "train"),
    BUILD: ("build", "items"),
    REVIEW: ("review", "users"),
    MEDIA: ("media",),
    STORE: ("store",),
}

WORKFLOWS: dict[str, dict[str, tuple[str, ...]]] = {
    "build": {
        "Projects of every kind": ("new", "run", "status", "history", "redo", "sources", "split", "export"),
        "Questions on narrated videos": ("transcribe", "events", "questions", "screen", "rework"),
        "Key frames with rationales": ("frames", "rationales", "refine", "evidence", "consensus"),
        "Tracks by several annotators": ("presence", "boxes", "proposals", "corrections", "tracks", "adjudication"),
        "Without a project": ("simulated", "clinicalskillqa", "focus", "convert", "repair"),
    }
}
"""The headings under which a group lists its commands, by workflow; others are listed as "Commands"."""

TREE = {
    RUN: {
        "demo": "run.demo",
        "list": "listing.list_things",
        "fetch": "benchmarks.fetch",
        "run": "run.run",
        "choose": "run.choose",
        "import": "run.import_recorded",
        "merge": "store.merge",
        "score": "score.score",
    },
    READ: {
        "results": "results.results",
        "show": "benchmarks.show_item",
        "compare": "results.compare",
        "analyze": "results.analyze",
        "report": "report.report",
        "export": "report.export",
        "reproduce": "report.reproduce",
        "verify": "report.verify",
        "pool": "report.pool",
    },
    CHALLENGE: {
        "rank": "results.rank",
        "validate": "benchmarks.validate",
        "challenge new": "challenge.new",
        "challenge check": "challenge.check",
        "challenge open": "challenge.open_phase",
        "challenge close": "challenge.close_phase",
        "challenge status": "challenge.status",
        "challenge submit": "challenge.submit",
        "challenge boards": "challenge.boards",
        "challenge teams": "organising.teams",
        "challenge team": "organising.team",
        "challenge submissions": "organising.submissions",
        "challenge submission": "organising.submission",
        "challenge receipt": "organising.receipt",
        "challenge prizes": "organising.prizes",
        "challenge description": "organising.description",
        "challenge questions": "organising.questions",
        "challenge verify": "challenge.verify",
        "challenge demo": "challenge.demo",
        "challenge pack": "challenge.pack",
        "challenge rerun": "challenge.rerun",
        "worker": "workers.worker",
        "challenge try": "challenge.try_image",
        "challenge doctor": "challenge.doctor",
    },
    JUDGE: {
        "judge fit": "judge.fit",
        "judge compare": "judge.compare",
        "judge grid": "judge.grid",
        "judge index": "judge.index",
        "train answerer": "judge.answerer",
        "train generative-judge": "judge.generative_judge",
        "audit": "score.audit",
        "train check-parity": "judge.check_parity",
        "train classifier-judge": "judge.classifier_judge",
    },
    BUILD: {"items audit": "benchmarks.audit_items"},
    REVIEW: {
        "serve": "web.serve",
        "review update": "web.update",
        "review status": "web.status",
        "review agreement": "web.agreement",
        "review export": "web.export",
        "review scores": "web.scores",
        "review sheet": "web.sheet",
        "review decisions": "web.decisions",
        "review reassign": "web.reassign",
        "users add": "web.add",
        "users invite": "web.invite",
        "users list": "web.list_users",
        "users role": "web.set_role",
        "users disable": "web.disable",
        "users trail": "web.show_trail",
    },
    MEDIA: {"media frames": "media.frames", "media cache": "media.cached", "media duplicates": "media.duplicates"},
    STORE: {
        "store check": "store.check",
        "store copy": "store.copy",
        "store rename": "store.rename",
        "store delete": "store.delete",
        "store disqualify": "store.disqualify",
        "store decide": "store.decide",
    },
}
"""The function of each command, as MODULE.FUNCTION. Only the modules of the called command are imported."""


@cache
def commands(wanted: str | None = None) -> typer.Typer:
    """The program with all commands (None), with one command or group, or with summaries only ("", for its help)."""
    app = typer.Typer(
        cls=Group,
        name="proctor",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Evaluate models on clinical procedures: run benchmarks, score answers, rank systems.",
    )
    app.callback(invoke_without_command=True)(_root)
    groups = {name: new_group(summary) for name, summary in GROUPS.items() if wanted in {None, "", name}}
    for name, group in groups.items() if wanted != "" else ():
        add_plugins(group, name, WORKFLOWS.get(name, {}))
    make = add_line if wanted == "" else add
    for panel, own in TREE.items():
        for words, place in own.items():
            name, _, below = words.partition(" ")
            if not below and wanted in {None, "", name}:
                make(app, name, _function(place), panel)
            elif below and wanted in {None, name}:
                add(groups[name], below, _function(place))
    if not wanted:
        add_top_commands(app, _own_names(), OWN, make)
    for panel, names in PANELS.items():
        for name in names:
            if name in groups:
                app.add_typer(groups[name], name=name, rich_help_panel=panel)
    return app


def _function(place: str) -> Callable[..., None]:
    module, _, name = place.partition(".")
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


def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True)) -> None:
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
    """End the process with the code and the line of an error. Raises what is a bug of Proctor."""
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        sys.exit(1)
    if isinstance(error, ProctorError):
        for line in getattr(error, "__notes__", ()):
            sys.stderr.write(f"{clean(line)}\n")
    message, code = _told(error)
    if not message:
        raise error
    sys.stderr.write(f"proctor: {clean(message)}\n")  # names in files may be hostile
    sys.exit(code)


def _told(error: SystemExit | Exception) -> tuple[str, int]:
    """The line of an error, and the exit code; no line for one that is raised again."""
    if isinstance(error, ReplacedError | ProctorError):
        return str(error), 2 if isinstance(error, ReplacedError | UsageError) else 1
    if isinstance(error, OSError):
        return f"{_place(error)}{error.strerror}" if error.errno in _SYSTEM_ERRORS else "", 1
    return "" if isinstance(error, SystemExit) else _explained(error), 1


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


def _place(error: OSError) -> str:
    """The file of an error, printable on one line."""
    name = "".join(char if char.isprintable() else "\ufffd" for char in str(error.filename or ""))
    return f"{name}: " if name else ""
