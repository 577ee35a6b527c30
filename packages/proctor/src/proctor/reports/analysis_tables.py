"""The tables of an analysis, as the terminal and notebooks show them."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import ACCURACY, Table
from proctor.reports.blocks import Units, records_table
from proctor.results import Analysis, AnalysisRow

GAPS = Units(ACCURACY, signed=("value",))
"""The numbers of gaps: their values are differences."""

_TABLES = {
    "regression": "Adjusted odds ratios for a correct answer (p is not adjusted)",
    "gaps": "Accuracy on the second minus that on the first",
    "videos": "Variation between groups",
    "pairs": "Paired differences",
    "ensembles": "Ensembles (p is not adjusted)",
    "reliance": "Reliance on the evidence: hidden elsewhere minus evidence hidden",
}

_RELIANCE = (
    "system",
    "scorer",
    "elsewhere",
    "evidence",
    "difference",
    "ci_low",
    "ci_high",
    "p",
    "p_holm",
    "n",
    "groups",
)


def analysis_tables(analysis: Analysis) -> list[Table]:
    """The tables of an analysis for a terminal, over all parts and formats."""
    found = []
    for name, about in _TABLES.items():
        title = about
        rows = [row for row in analysis.tables[name] if row.get("part", "all") == row.get("format", "all") == "all"]
        if name == "pairs" and (families := pairs_families(rows)):
            title = f"{title}; p (Holm) is adjusted {families}"
            rows = [{column: one for column, one in row.items() if column != "adjusted_for"} for row in rows]
        if name == "reliance":
            rows = [{column: one for column, one in row.items() if column in _RELIANCE} for row in rows]
        if rows:
            found.append(records_table(title, rows, table_units(name)))
    return found


def table_units(name: str) -> Units:
    """What the numbers of a table of an analysis are, by its name."""
    return GAPS if name == "gaps" else Units() if name in {"regression", "rules", "tau"} else Units(ACCURACY)


def pairs_families(rows: Sequence[AnalysisRow]) -> str:
    """For what the p of an analysis' pairs are adjusted."""
    return ", and apart ".join(
        f"for {family}" for family in dict.fromkeys(row["adjusted_for"] for row in rows) if family
    )
