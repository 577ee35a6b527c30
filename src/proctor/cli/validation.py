"""`proctor validate`: a submission, or another file, checked before it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.options import Media, Output, OutputFormat, TrackName
from proctor.cli.plugins import show_plugin_report


def _names() -> list[str]:
    from proctor.core import VALIDATORS

    return VALIDATORS.names()


def validate(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK",
            help="clinicalskillqa, focus, mediqa-eval, or workflow for a workflow file.",
            show_default=False,
            autocompletion=_names,
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to check.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            "--ratings",
            help="The benchmark's own files; mediqa-eval: ratings, or a template without values.",
            show_default=False,
        ),
    ] = None,
    media: Media = None,
    track: TrackName = "",
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="mediqa-eval: split=valid or test; any-scale=true for scores beyond 0 to 1.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Each finding by itself, not by cause.")] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check a submission before it is sent.

    Findings are grouped by cause, with their number and three places. References are not needed; what can't be
    checked without them is said. Exit code 1 where something is wrong.

    Example: proctor validate focus answer.json --data focus --track procedure
    """
    from proctor.core import VALIDATORS, ValidationRequest
    from proctor.models import parse_settings

    own = parse_settings(options or (), what="--option")
    request = ValidationRequest(data, media, track, every, own)
    show_plugin_report(VALIDATORS.get(benchmark)(file, request), output)
