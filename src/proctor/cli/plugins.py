"""Commands that tasks bring along: their functions get an option `--format`, and what they return is printed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from proctor.cli.options import Output, OutputFormat
from proctor.cli.output import console, note, print_csv, print_json, print_table
from proctor.cli.progress import show_steps
from proctor.cli.tree import add
from proctor.core import COMMANDS, PluginReport, PluginTable, ProctorError


def add_plugins(group: typer.Typer, name: str) -> None:
    """Adds all commands of a group, by name. One that can't be loaded says so when it is called."""
    for full in COMMANDS.names():
        where, _, command = full.partition(".")
        if where == name:
            add(group, command, _command(full))


def show_plugin_report(report: PluginReport, output: OutputFormat) -> None:
    """Prints a report and ends with exit code 1 where a person must act. Texts may be hostile."""
    from proctor.core import clean

    tables = [one for one in report.shown if isinstance(one, PluginTable) and one.rows]
    if output is OutputFormat.JSON:
        print_json(report.json)
    elif output is OutputFormat.CSV:
        if len(tables) != 1:
            raise typer.BadParameter(f"here are {len(tables)} tables: take json", param_hint="--format csv")
        print_csv([column.removeprefix(">") for column in tables[0].columns], tables[0].rows)
    else:
        for one in report.shown:
            if isinstance(one, str):
                line = " ".join(clean(one).split())
                console.print(line, markup=False, highlight=False, soft_wrap=True)
            elif one.rows:
                print_table(one.title, one.columns, one.rows, wrapped=one.wrapped)
        for line in report.notes:
            note(line)
    if not report.ok:
        raise typer.Exit(1)


def _command(full: str) -> Callable[..., None]:
    try:
        function = COMMANDS.get(full)
    except ProctorError as error:
        return _broken(full, error)
    signature = inspect.signature(function, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "steps"]
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    wants_steps = "steps" in signature.parameters

    def command(output: OutputFormat, **given: Any) -> None:
        show_plugin_report(function(**given, **({"steps": show_steps} if wants_steps else {})), output)

    extra = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=OutputFormat.TABLE, annotation=Output)
    command.__doc__ = function.__doc__
    command.__signature__ = inspect.Signature([*own, extra])  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in (*own, extra)}
    return command


def _broken(full: str, error: ProctorError) -> Callable[..., None]:
    def command(_rest: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
        raise error

    command.__doc__ = f"Can't be loaded: {full}."
    return command
