"""Pictures of submissions together: votes and the bound, and how answers end."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import ACCURACY
from proctor.reports.figures import Dot, Forest, Part, SharePanel, draw_forest, draw_shares, signed_axis
from proctor.reports.pictures.picture import Picture, gap_text, percent, picture
from proctor.reports.words import plain_name
from proctor.runs import Analysis

__all__ = ["together_pictures"]

_LOOKS = {
    "right": ("R", 0),
    "wrong": ("W", 1),
    "unreadable": ("U", 2),
    "missing": ("M", 3),
    "timed out": ("T", 4),
    "refused": ("X", 5),
    "error": ("E", 5),
    "unresolved": ("V", 6),
    "not marked": ("N", 6),
    "not supported": ("S", 6),
    "failed": ("F", 7),
}
"""The letter and the colour of every cause; what has no mark has one colour and several letters, as have the two ways in
which a system itself gives up."""


def together_pictures(analysis: Analysis) -> list[Picture]:
    """The ensembles against the best system, and the causes of failure by format."""
    order = analysis.boards[0].names
    found = [_ensembles(analysis), _failures(analysis, order)]
    return [one for one in found if one is not None]


def _ensembles(analysis: Analysis) -> Picture | None:
    rows = analysis.tables["ensembles"]
    whole = [row for row in rows if row["format"] == "all" and row["value"] is not None]
    if not whole or whole[0]["systems"] == whole[-1]["systems"]:
        return None  # one system alone
    best = whole[0]
    forest = Forest(
        [f"{row['ensemble']}: {percent(row['value'])}" for row in whole],
        [Dot(row["gain"], row["gain_low"], row["gain_high"]) for row in whole],
        ["" if row is best else gap_text(row["gain"], row["gain_low"], row["gain_high"]) for row in whole],
        "gain over the best alone (95 % interval)",
        (0.0, "best alone"),
    )
    ends = [row[name] for row in whole for name in ("gain_low", "gain_high") if row[name] is not None]
    axis = signed_axis(ACCURACY, min([-0.01, *ends]), max([0.01, *ends]), lines=5)
    drawn = draw_forest("ensembles", "Submissions together", forest, axis)
    out = (
        f" {best['left_out']} questions can't be voted on (free text, or a mark is missing)."
        if best["left_out"]
        else ""
    )
    caption = (
        f"Accuracy, and its paired difference to the best system's, on {best['n']} questions in {best['groups']} groups: {best['systems']} alone, votes of several systems, and the share that "
        "any of them has right, which no vote can pass. Votes: the median of counts, percentages and times, each class that most name, "
        f"else the most frequent answer. Who is best was chosen on the same questions.{out}"
    )
    return picture("ensembles", "Submissions together", "ensembles", drawn, caption=caption, rows=rows)


def _failures(analysis: Analysis, order: Sequence[str]) -> Picture | None:
    rows = analysis.tables["failures"]
    formats = list(dict.fromkeys(row["format"] for row in rows))
    causes = [cause for cause in _LOOKS if any(row["cause"] == cause for row in rows)]
    if not rows:
        return None
    counts = {(row["format"], row["system"], row["cause"]): row["count"] for row in rows}
    panels = []
    for form in formats:
        lines = [[counts.get((form, name, cause), 0) for cause in causes] for name in order]
        size = max(sum(line) for line in lines)
        panels.append(SharePanel(f"{plain_name(form) or 'no format'} ({size} questions)", lines))
    parts = [Part(_LOOKS[cause][0], cause, _LOOKS[cause][1]) for cause in causes]
    drawn = draw_shares("failures", "How answers end", order, parts, panels)
    caption = "How answers end, by format and cause: the share of a format's questions. Failed, unresolved and unmarked ones are not scored."
    return picture("failures", "How answers fail", "failures", drawn, caption=caption, rows=rows)
