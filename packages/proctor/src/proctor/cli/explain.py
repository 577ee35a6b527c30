"""`proctor explain`: why two scores differ."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from proctor.cli.output import Output, OutputFormat, at_work, print_json, print_line, print_note, show, show_asking
from proctor.core import Option
from proctor.shell import ExplainOptions


def explain(
    first: Annotated[str, Option("A run (SYSTEM/CONDITION), or a log.", metavar="A", argument=True)],
    second: Annotated[str, Option("Another run, or another log.", metavar="B", argument=True)],
    options: ExplainOptions,
    out: Annotated[Path | None, Option("Also write one HTML page.", "--out")] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Explain why two scores differ.

    Shows what differs between two runs, or a run and a log of Inspect, lmms-eval, VLMEvalKit or a table: items, missing
    answers, reader of replies, judge, frames, options, prompt, settings. What can be swapped with what is stored gets its part
    of the gap, with a paired interval; the parts add up to the gap in any order. Nothing is asked or stored.

    Further runs of the model of A, with settings of B, tell apart frames, prompt, condition and settings: what they would ask is
    shown, and --ask asks it. Run the same command again to continue where it stopped.

    Example: proctor explain seer-7b/video theirs_samples_lamps.jsonl --store runs.db --id-column position
    """
    from proctor import api

    working = show_asking(0) if options["ask"] else nullcontext(lambda _: None)
    with at_work("explaining the gap") if not options["ask"] else nullcontext(), working as update:
        options["on_change"] = update
        table = api.explain(first, second, **options)
    if out is not None:
        summary = table.write(out)
        print_note(f"page: {summary.path}")
    if output is OutputFormat.JSON:
        print_json(table.data.to_json())
        return
    show(output, table.rows, *table.tables, apart=True)
    if output is OutputFormat.TABLE:
        for one in table.data.differences:
            if one.lines:
                print_line(f"{one.what}:", bold=True)
                print_line("\n".join(one.lines))
    print_note(*table.notes)
