"""`proctor sight`: whether pictures reach a served model."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from proctor.cli.output import Output, OutputFormat, print_json, print_line, print_note, show
from proctor.core import ConfigurationError, Option
from proctor.shell import SightOptions

COULD_NOT_CHECK_EXIT = 2


def sight(
    model: Annotated[
        str, Option("The model, provider:name, or its name at --base-url.", metavar="MODEL", argument=True)
    ],
    options: SightOptions,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Test whether a served model sees.

    Asks about drawn pictures, at most 64 calls, as a run does: by frames, as a video file, beside tools, with structured
    replies. It names what is wrong: nothing arrives, only some pictures, another order, shrunk, times invented, the video
    ignored, a cache, stripped beside tools or a schema.

    Exit code 0: it sees; 1: something is wrong; 2: could not check.

    Example: proctor sight qwen3-vl --base-url http://localhost:8000/v1
    """
    from proctor import shell

    try:
        table = asyncio.run(shell.arrange_sight(model, **options).ask())
    except ConfigurationError as error:
        if output is OutputFormat.JSON:
            print_json({"state": "could not check", "problem": str(error)})
        print_note(f"Could not check: {error}")
        raise typer.Exit(COULD_NOT_CHECK_EXIT) from error
    if output is OutputFormat.JSON:
        print_json(table.data.to_json())
    elif output is OutputFormat.CSV:
        show(output, table.rows)
    else:
        verdict, *lines = table.verdict.splitlines()
        print_line(verdict, bold=True)
        for line in lines:
            print_line(line)
        print_line("")
        show(output, table.rows, *table.tables, apart=True)
        print_note(*table.notes)
    raise typer.Exit(table.data.exit_code)
