"""A table for a model's card: results in Markdown, with their intervals and what is missing."""

from __future__ import annotations

import re
from pathlib import Path

from proctor import __version__
from proctor.core import natural, write_whole
from proctor.interchange.export_source import ExportSource, Written
from proctor.runs import Result

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#])")


def write_model_card(source: ExportSource, out: Path) -> Written:
    """Writes one table: a row for each system, condition and metric. Raises `InputError` where it can't be written."""
    rows = sorted(source.results, key=lambda row: (natural(row.system), natural(row.condition)))
    level = f"{100 * source.options.level:g} %"
    lines = [f"## {markdown_text(source.card.title)}", ""]
    lines += ["| " + " | ".join(("System", "Condition", "Metric", f"Value ({level} interval)", "n", "Videos or groups",
                                 "Failed or missing")) + " |", "| --- | --- | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    lines += [_line(source, row) for row in rows]
    lines += ["", f"Intervals: bootstrap over groups, {source.options.draws} draws. Proctor {__version__}."]
    lines += [f"Items: {len(source.items)}, fingerprint `{source.store.fingerprint(source.card.name)[:12]}`."]
    lines += [f"{name}: {markdown_text(text)}." for name, text in _about(source) if text]
    if source.card.simulated:
        lines.append("The procedures are simulated.")
    write_whole(out, "\n".join(lines) + "\n")
    dropped = ("answers: a table of results has no place for them",)
    return Written(len(rows), "row", dropped)


def _about(source: ExportSource) -> list[tuple[str, str]]:
    found = [("Licence of the data", source.licence), ("Citation", source.origin.get("citation", ""))]
    return [*found, ("See", source.origin.get("url", ""))]


def _line(source: ExportSource, row: Result) -> str:
    metric = source.card.metric(row.metric)
    show = metric.show
    ends = f" ({show(row.ci_low)} to {show(row.ci_high)})" if row.ci_low is not None and row.ci_high is not None else ""
    if row.value is not None:
        value = f"{show(row.value)}{ends}"
    elif row.if_wrong is not None and row.if_excluded is not None:  # nothing says how what is missing counts
        value = f"{show(row.if_wrong)} to {show(row.if_excluded)}{ends}"
    else:
        value = "–"
    by = "" if row.scorer == "code" else f" ({row.scorer})"
    lacking = row.failed + row.missing + row.unresolved
    cells = (row.system, row.condition, metric.label + by, value, str(row.n), str(row.groups), str(lacking))
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"


def markdown_text(text: str) -> str:
    """A text that Markdown shows as it stands, in one line and one cell.

    >>> markdown_text("a|b <script>\\n*c*")
    'a\\\\|b \\\\<script\\\\> \\\\*c\\\\*'
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
