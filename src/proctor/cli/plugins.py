"""What tasks bring along: commands, whose reports are printed here, and `proctor validate`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import JsonValue

from proctor.api import StoreUrl, Track, validator_names
from proctor.cli.output import Output, OutputFormat, note, print_blocks, print_json, print_records, say
from proctor.cli.progress import show_steps
from proctor.cli.tree import add
from proctor.core import COMMANDS, Option, PluginReport, ProctorError, Table, UsageError


def add_plugins(group: typer.Typer, name: str) -> None:
    """Adds all commands of a group, by name. One that can't be loaded says so when it is called."""
    for full in COMMANDS.names():
        where, _, command = full.partition(".")
        if where == name and command:
            add(group, command, _command(full))


def add_top_commands(program: typer.Typer, taken: Collection[str], panel: str, make: Callable[..., None]) -> None:
    """Adds (`make`) the commands of packages that belong to no group; a name that the program has itself stays its
    own."""
    for name in COMMANDS.names():
        if "." not in name and name not in taken:
            make(program, name, _command(name), panel)


def show_plugin_report(report: PluginReport, output: OutputFormat) -> None:
    """Prints a report and ends with exit code 1 where a person must act. Texts may be hostile."""
    tables = [one for one in report.shown if isinstance(one, Table) and one.rows]
    if output is OutputFormat.JSON:
        print_json(report.json)
    elif output is OutputFormat.CSV and (rows := _flat(report.json)):
        print_records(rows)
    elif output is OutputFormat.CSV:
        if len(tables) != 1:
            raise UsageError("--format csv", "one table; take table or json", found=f"{len(tables)} tables")
        print_records(tables[0].records)
    else:
        for one in report.shown:
            if isinstance(one, str):
                say(" ".join(one.split()))
            elif one.rows:
                print_blocks(one)
        note(*report.notes)
    if not report.ok:
        raise typer.Exit(1)


def _flat(json: JsonValue) -> list[dict[str, JsonValue]]:
    """The rows of a list of objects without lists or objects in them; none for another value."""
    rows = [row for row in json if isinstance(row, dict)] if isinstance(json, list) else []
    return [] if any(isinstance(cell, list | dict) for row in rows for cell in row.values()) else rows


def _command(full: str) -> Callable[..., None]:
    try:
        function = COMMANDS.get(full)
    except ProctorError as error:
        return _broken(full, error)
    signature = inspect.signature(function, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "steps"]
    wants_steps = "steps" in signature.parameters

    def command(output: OutputFormat, **given: Any) -> None:
        show_plugin_report(function(**given, **({"steps": show_steps} if wants_steps else {})), output)

    extra = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=OutputFormat.TABLE, annotation=Output)
    command.__doc__ = function.__doc__
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    command.__signature__ = inspect.Signature([*own, extra])  # type: ignore[attr-defined]
    return command


def _broken(full: str, error: ProctorError) -> Callable[..., None]:
    def command(_rest: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
        raise error

    command.__doc__ = f"Can't be loaded: {full}."
    return command


def validate(
    benchmark: Annotated[
        str,
        Option(
            "A benchmark's name, or workflow for a workflow file.",
            metavar="BENCHMARK",
            names=validator_names,
            argument=True,
        ),
    ],
    file: Annotated[Path, Option("The file to check.", metavar="FILE", argument=True)],
    data: Annotated[
        Path | None,
        Option(
            "The benchmark's own files; the store remembers them. mediqa-eval: ratings, or a template without values.",
            "--data --ratings",
        ),
    ] = None,
    media: Annotated[Path | None, Option("The folder with its videos or images.")] = None,
    track: Track = "",
    store: StoreUrl = None,
    options: Annotated[
        list[str] | None,
        Option(
            "mediqa-eval: split=valid or test; any-scale=true for scores beyond 0 to 1.",
            "--option",
            metavar="KEY=VALUE",
        ),
    ] = None,
    every: Annotated[bool, Option("Each finding by itself, not by cause.", "--all")] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check a submission before it is sent.

    Findings are grouped by cause, with their number and three places. References are not needed; what can't be
    checked without them is said. Exit code 1 where something is wrong.

    Example: proctor validate focus answer.json --data focus --track procedure
    """
    from proctor import api
    from proctor.models import parse_settings

    own = parse_settings(options or (), what="--option")
    report = api.validate(benchmark, file, data=data, media=media, track=track, every=every, options=own, store=store)
    show_plugin_report(report, output)
