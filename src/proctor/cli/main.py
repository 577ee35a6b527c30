"""The program `proctor`: its commands, and what becomes of errors at the edge of the process."""

from __future__ import annotations

import asyncio
import errno
import sys
from functools import cache

import typer

from proctor import __version__
from proctor.cli.former import ReplacedError
from proctor.cli.models import spread_settings
from proctor.cli.tree import Group, add, new_group
from proctor.core import MissingOptionError, ProctorError

_OF_THE_MACHINE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENAMETOOLONG,
    errno.EIO,
}
"""A full or read-only disk, a file that this user may not touch, a name that no file can have: nothing that a command
could do better, wherever it happens."""

RUN, READ, CHALLENGE = "Run", "Read results", "Challenges"
JUDGE, BUILD, MEDIA, STORE = "Judges", "Build and check items", "Media", "Store"

app = typer.Typer(
    cls=Group,
    name="proctor",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Evaluate models on clinical procedures: run benchmarks, score answers, rank systems.",
)


@cache
def commands() -> typer.Typer:
    """The program with all its commands, which are imported here and not before."""
    from proctor.cli import (
        analysis,
        audit,
        auditing,
        demo,
        exporting,
        importing,
        judge,
        listing,
        media,
        plugins,
        ranking,
        reporting,
        results,
        ruling,
        running,
        scoring,
        showing,
        store,
        validation,
    )

    add(app, "demo", demo.demo, RUN)
    add(app, "list", listing.list_things, RUN)
    add(app, "run", running.run, RUN)
    add(app, "import", importing.import_recorded, RUN)
    add(app, "score", scoring.score, RUN)
    add(app, "results", results.results, READ)
    add(app, "show", showing.show, READ)
    add(app, "compare", results.compare, READ)
    add(app, "analyze", analysis.analyze, READ)
    add(app, "report", reporting.report, READ)
    add(app, "export", exporting.export, READ)
    add(app, "rank", ranking.rank, CHALLENGE)
    add(app, "validate", validation.validate, CHALLENGE)
    app.add_typer(judge.group(), name="judge", rich_help_panel=JUDGE)
    add(app, "audit", auditing.audit, JUDGE)
    build = new_group("Build benchmarks and convert tracks.")
    plugins.add_plugins(build, "build")
    app.add_typer(build, name="build", rich_help_panel=BUILD)
    items = new_group("Check a benchmark's items.")
    add(items, "audit", audit.audit_items)
    app.add_typer(items, name="items", rich_help_panel=BUILD)
    looks = new_group("Decode frames, find duplicates, detect poses.")
    add(looks, "frames", media.frames)
    add(looks, "cache", media.cached)
    add(looks, "duplicates", media.duplicates)
    plugins.add_plugins(looks, "media")
    app.add_typer(looks, name="media", rich_help_panel=MEDIA)
    stores = new_group("Check and change a store of answers.")
    add(stores, "check", store.check)
    add(stores, "show", store.show_store)
    add(stores, "rename", store.rename)
    add(stores, "delete", store.delete)
    add(stores, "disqualify", ruling.disqualify)
    add(stores, "unresolved", ruling.unresolved)
    add(stores, "decide", ruling.decide)
    app.add_typer(stores, name="store", rich_help_panel=STORE)
    return app


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True)) -> None:
    if version:
        typer.echo(f"proctor {__version__}")
        raise typer.Exit


def main() -> None:
    """Runs the program. Exit code 0: done; 1: bad input, in one line on standard error; 2: wrong usage;
    3: some answers stayed failed; 130: stopped by hand."""
    try:
        commands()(args=spread_settings(sys.argv[1:]), prog_name="proctor")
    except ReplacedError as replaced:
        sys.stderr.write(f"proctor: {replaced}\n")
        sys.exit(2)
    except ProctorError as error:
        for line in getattr(error, "__notes__", ()):
            sys.stderr.write(f"{line}\n")
        sys.stderr.write(f"proctor: {error}\n")
        sys.exit(2 if isinstance(error, MissingOptionError) else 1)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("proctor: stopped\n")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if error.errno not in _OF_THE_MACHINE:
            raise
        sys.stderr.write(f"proctor: {_place(error)}{error.strerror}\n")
        sys.exit(1)


def _place(error: OSError) -> str:
    """The file that an error names, as it can be printed on one line."""
    name = "".join(char if char.isprintable() else "\ufffd" for char in str(error.filename or ""))
    return f"{name}: " if name else ""
