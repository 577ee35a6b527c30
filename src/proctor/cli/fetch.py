"""`proctor fetch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.cli.output import Output, OutputFormat, note, print_json, say
from proctor.cli.progress import show_steps
from proctor.core import BENCHMARKS, Option


def fetch(
    benchmark: Annotated[
        str, Option("A benchmark's name.", metavar="BENCHMARK", names=BENCHMARKS.names, argument=True)
    ],
    out: Annotated[Path | None, Option("A new folder. [default: the benchmark's name]")] = None,
    url: Annotated[str, Option("A mirror's address, or a file that you downloaded.")] = "",
    output: Output = OutputFormat.TABLE,
) -> None:
    """Fetch a benchmark's public data.

    Where the licence allows it: the archive is checked, and unpacked into a new folder; run the command again to go on
    where it broke off. Else one message says whose the data are, and where to ask. Videos on others' platforms are
    listed.

    Example: proctor fetch rexsonovqa
    """
    from proctor import api

    with show_steps("fetching MB", 0) as progress:
        found = api.fetch(benchmark, out, url=url, on_change=progress)
    if output is OutputFormat.JSON:
        told = {"out": str(found.out), "files": found.files, "sha256": found.sent, "content_sha256": found.content}
        print_json(told | {"notes": [*found.notes]})
        return
    for line in found.done:
        say(line)
    note(*found.notes)
