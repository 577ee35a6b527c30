"""The command line: parse, call, print. Commands of other packages print by what stands here."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.cli.output import (
        Output,
        OutputFormat,
        at_work,
        cost_of,
        print_blocks,
        print_json,
        print_line,
        print_note,
        show,
        show_steps,
        show_trials,
        spent,
        watched,
    )
    from proctor.cli.tree import show_plugin_report
else:
    export_lazily(__name__)

STOPPED = "proctor: stopped by Ctrl-C; the same command starts again."
STOPPED_EXIT = 130
"""The exit code of what Ctrl-C ended, as shells say it."""

__all__ = [
    "STOPPED", "STOPPED_EXIT", "Output", "OutputFormat", "at_work", "cost_of", "print_blocks", "print_json",
    "print_line", "print_note", "show", "show_plugin_report", "show_steps", "show_trials", "spent", "watched",
]  # fmt: skip
