"""`proctor check` and `proctor new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from proctor.core import Option, PluginReport, count_of, thousands

_MOST_LINES = 200


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
    from proctor.tasks.questions.preview import add_media_faults, write_preview
    from proctor.tasks.questions.reading import read_questions

    given: dict[str, list[str]] = {}
    for pair in columns or ():
        name, _, column = pair.partition("=")
        given.setdefault(name.strip(), []).append(column.strip())
    found = read_questions(path, media, given)
    add_media_faults(found)
    counts = {"items": len(found.items), "groups": len({item.group for item in found.items})}
    faults: list[JsonValue] = [
        {"file": str(file), "row": fault.row, "column": fault.column, "found": fault.found, "expected": fault.expected}
        for file, fault in found.faults
    ]
    if faults:
        lines = found.lines(every=every)
        more = len(lines) - _MOST_LINES
        shown = (*lines[:_MOST_LINES], *([f"and {thousands(more)} more lines (--format json)"] if more > 0 else ()))
        last = f"{path}: {count_of(len(faults), 'fault')}; nothing was written."
        return PluginReport(
            {**counts, "faults": faults, "notes": [*found.notes]}, (*shown, last), tuple(found.notes), ok=False
        )
    shown_items = write_preview(found, out)
    line = f"{count_of(counts['items'], 'question')} in {count_of(counts['groups'], 'group')}, no faults; {shown_items} of them in {out}"
    report: dict[str, JsonValue] = {**counts, "faults": [], "notes": [*found.notes], "preview": str(out)}
    return PluginReport(report, (line,), (*found.notes, f"Next: proctor run {path} --system random"))


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
