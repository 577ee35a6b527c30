"""`proctor new package`: a package of one's own that extends Proctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.cli.output import Output, OutputFormat
from proctor.cli.tree import show_plugin_report
from proctor.core import Option, PluginReport, shell_word


def new(
    name: Annotated[str, Option("The package's name, such as lap-kit.", metavar="NAME", argument=True)],
    out: Annotated[Path | None, Option("A new folder. [default: NAME]", metavar="DIR")] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Write a package that extends Proctor.

    It has a benchmark, a system, a judge, a metric and a condition, prompts, an example, and tests. It runs as it is;
    replace its parts.

    Example: proctor new package lap-kit
    """
    from proctor.testing import new_package

    folder = new_package(name, out)
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    notes = (f"Next: pip install -e {shell_word(folder)}", f"      pytest {shell_word(folder)}")
    lines = (f"{len(files)} files in {folder}",)
    show_plugin_report(PluginReport({"name": name, "folder": str(folder), "files": [*files]}, lines, notes), output)
