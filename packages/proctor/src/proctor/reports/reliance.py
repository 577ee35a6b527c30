"""The table of systems' reliance on the evidence, in the terminal and in reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.core import ACCURACY, Cell, Column, Row, Table, count_of, head, heads, interval, p_value, value
from proctor.reports.blocks import Section
from proctor.reports.comparisons import difference_of, p_words, unadjusted_line
from proctor.results import Reliance, Results

if TYPE_CHECKING:
    from proctor.reports.report_numbers import Source

RELIANCE_LINE = (
    "Reliance is the accuracy with as much hidden elsewhere minus that with the evidence hidden, on the same items. Where its "
    "interval reaches zero, nothing shows that the system looks at the evidence."
)


def reliance_tables(found: Results) -> list[Table]:
    """The table of the systems that were run under both conditions; none without any."""
    return [reliance_table(found.reliance, found.options.level)] if found.reliance else []


def reliance_section(source: Source) -> Section | None:
    """The systems' reliance on the evidence; None where no system was run under both conditions."""
    found, level = source.reliance, source.options.level
    if not found:
        return None
    own = [one for one in found if not source.is_baseline(one.system)]
    sure = [one for one in own if one.comparison.p_holm is not None and one.comparison.p_holm <= 1 - level]
    relying = [one for one in sure if (one.comparison.difference.ci_low or 0.0) > 0]
    return Section(
        key="reliance",
        title="Does it look at the evidence?",
        lead="Items say where and when their answer is visible. A system that looks there scores less when it is hidden, and "
        "no less when as much is hidden elsewhere.",
        blocks=[reliance_table(found, level)],
        finding=f"{len(relying)} of {count_of(len(own), 'system')} significantly rely on the evidence" if own else "",
    )


def reliance_table(found: Sequence[Reliance], level: float = 0.95) -> Table:
    """A row for each system and scorer; a reliance that holds after Holm's adjustment is bold."""
    several = len({one.scorer for one in found}) > 1
    columns = (
        *heads("system", *(["scorer"] if several else [])),
        Column("Hidden elsewhere", numeric=True, name="elsewhere"),
        Column("Evidence hidden", numeric=True, name="evidence"),
        Column("Reliance", numeric=True, name="difference"),
        head("ci", level),
        *(head(name) for name in ("p", "p_holm", "n", "groups")),
        Column("Unsupported", numeric=True, name="unsupported"),
    )
    rows: list[Row] = []
    for one in found:
        comparison, each = one.comparison, one.comparison.difference
        holds = comparison.p_holm is not None and comparison.p_holm <= 1 - level
        rows.append(
            (
                Cell(one.system),
                *([one.scorer] if several else []),
                value(ACCURACY, one.elsewhere),
                value(ACCURACY, one.evidence),
                Cell(difference_of(ACCURACY, comparison, short=True), strong=holds, raw=each.value),
                interval(ACCURACY, each.ci_low, each.ci_high),
                p_words(each.p, each.groups, level),
                p_value(comparison.p_holm),
                each.n,
                each.groups,
                one.unsupported,
            )
        )
    adjusted = unadjusted_line([one.comparison for one in found])
    return Table(
        " ".join(part for part in (RELIANCE_LINE, adjusted) if part),
        columns,
        tuple(rows),
        title="Reliance on the evidence",
    )
