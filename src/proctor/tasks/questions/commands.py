"""`proctor check` and `proctor new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.core import Option, PluginReport


def check(
    path: Annotated[Path, Option("The folder or the file with your questions.", metavar="PATH", argument=True)],
    media: Annotated[Path | None, Option("The folder with their videos or images.")] = None,
    columns: Annotated[
        list[str] | None,
        Option("The column of a field, such as question=Frage; may be repeated.", "--map", metavar="FIELD=COLUMN"),
    ] = None,
    out: Annotated[Path, Option("The page with ten of them.")] = Path("preview.html"),
    every: Annotated[bool, Option("Each fault by itself, not by cause.", "--all")] = False,
) -> PluginReport:
    """Check your own questions and preview ten.

    All faults are listed at once, with file, row and column. Where there are none, a page shows ten questions as a
    model gets them. Exit code 1 where something is wrong; then nothing is written.

    Example: proctor check my-questions/
    """
    from proctor.tasks.questions.reader import READER

    given: dict[str, list[str]] = {}
    for pair in columns or ():
        name, _, column = pair.partition("=")
        given.setdefault(name.strip(), []).append(column.strip())
    return READER.with_columns(given).check(path, media, out, every=every)


def new(out: Annotated[Path, Option("A new folder.", metavar="DIR", argument=True)]) -> PluginReport:
    """Write an example of your own questions.

    A table of questions in every common answer format, two short drawn videos, three images, and a benchmark.yaml that
    explains every setting. It runs as it is; replace what is in it.

    Example: proctor new my-questions
    """
    from proctor.tasks.questions.example import write_example

    count = write_example(out)
    return PluginReport(
        {"out": str(out), "questions": count},
        (f"{count} questions, 2 videos and 3 images in {out}",),
        (f"Next: proctor check {out}", f"      proctor run {out} --system random"),
    )
