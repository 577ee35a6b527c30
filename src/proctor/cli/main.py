"""The program `proctor`: its commands, and what becomes of errors at the edge of the process."""

from __future__ import annotations

import asyncio
import sys
from difflib import get_close_matches
from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup

from proctor import __version__
from proctor.cli.models import spread_settings
from proctor.core import ProctorError

__all__ = ["commands", "main"]

_MEANT = {
    "leaderboard": "rank",
    "evaluate": "run",
    "eval": "run",
    "view": "report",
    "validate": "lint",
    "help": "--help",
}


class _Commands(TyperGroup):
    """Says what was probably meant where a command does not exist."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        known = self.list_commands(ctx)
        if not name.startswith("-") and name not in known:
            near = _MEANT.get(name) or next(iter(get_close_matches(name, known, n=1)), "")
            meant = f" Did you mean 'proctor {near}'?" if near else ""
            ctx.fail(f"No such command {name!r}.{meant} Commands: {', '.join(known)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    name="proctor",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Examines models that watch clinical procedures: runs benchmarks, marks answers, ranks systems.",
)


@cache
def commands() -> typer.Typer:
    """The program with all its commands, which are imported here and not before."""
    from proctor.cli import (
        analysing,
        audit,
        auditing,
        building,
        demo,
        importing,
        judge,
        linting,
        listing,
        media,
        pose,
        ranking,
        reporting,
        results,
        ruling,
        running,
        scoring,
        store,
        training,
    )

    app.command("demo")(demo.demo)
    app.command("list")(listing.list_things)
    app.command("run")(running.run)
    app.command("score")(scoring.score)
    app.add_typer(judge.group(), name="judge")
    app.command("import")(importing.import_recorded)
    app.command("audit-items")(audit.audit_items)
    app.command("results")(results.results)
    app.command("compare")(results.compare)
    app.command("rank")(ranking.rank)
    app.command("analyse")(analysing.analyse)
    app.command("disqualify")(ruling.disqualify)
    app.command("report")(reporting.report)
    app.command("export")(results.export)
    app.add_typer(auditing.group(), name="audit")
    app.add_typer(linting.group(), name="lint")
    app.add_typer(training.group(), name="train")
    app.command("frames")(media.frames)
    app.add_typer(store.group(), name="store")
    app.add_typer(media.cache_group(), name="cache")
    app.command("leaks")(media.leaks)
    app.command("pose")(pose.pose)
    build = typer.Typer(no_args_is_help=True, help="Makes benchmarks.")
    build.command("simulated")(demo.build_simulated)
    build.command("clinicalskillqa")(building.build_clinicalskillqa)
    build.command("focus")(building.build_focus)
    build.command("convert")(building.build_convert)
    build.callback()(_building)
    app.add_typer(build, name="build")
    return app


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"proctor {__version__}")
        raise typer.Exit


def _building() -> None:
    """Makes benchmarks."""


def main() -> None:
    """Runs the program. Exit code 0: done; 1: bad input, in one line on standard error; 2: wrong usage;
    3: some answers stayed failed; 130: stopped by hand."""
    try:
        commands()(args=spread_settings(sys.argv[1:]))
    except ProctorError as error:
        sys.stderr.write(f"proctor: {error}\n")
        sys.exit(1)
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("proctor: stopped\n")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
