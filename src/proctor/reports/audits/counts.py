"""What the numbers stand on, and what was left out of them."""

from __future__ import annotations

from proctor.reports.audits.cells import Row, columns, spoken_language
from proctor.reports.audits.source import AuditSource
from proctor.reports.blocks import Block, Cell, Prose, Section, Table
from proctor.reports.words import thousands

__all__ = ["audit_facts", "counts_section"]


def audit_facts(source: AuditSource) -> list[tuple[str, str]]:
    """The page's head: what was audited, with which settings."""
    table, settings = source.table, source.found.settings
    groups = len({one.cluster for one in table.ratings})
    drawn = f"{thousands(settings.draws)} clustered bootstrap draws, seed {settings.seed}"
    return [
        ("Metrics", str(len(source.found.metrics))),
        ("Ratings", f"{thousands(len(table.ratings))} by {source.raters}"),
        ("Groups that are drawn together", thousands(groups)),
        ("Intervals", f"{source.level}, {drawn}" if settings.draws else "none were drawn"),
    ]


def counts_section(source: AuditSource) -> Section:
    """Items, groups, answers, raters; what each metric scored; and what its reader had to say."""
    rows: list[Row] = [
        (
            Cell(spoken_language(one.language)),
            one.dataset,
            *(one.items, one.groups, one.systems, one.answers, one.dimensions, one.ratings),
            len(one.raters),
            one.twice,
            ", ".join(one.raters),
        )
        for one in source.found.coverage
    ]
    heads = columns(
        *("Language", "Dataset", ">Items", ">Groups", ">Systems", ">Answers", ">Dimensions", ">Ratings"),
        *(">Raters", ">Rated by two or more", "Who"),
    )
    blocks: list[Block | str] = [Table("What was rated.", heads, tuple(rows))]
    scored: list[Row] = [(Cell(one.metric), one.scored, one.opted_out) for one in source.found.scored]
    blocks.append(
        Table(
            "What each metric scored, of the rated dimensions of answers.",
            columns("Metric", ">Scored", ">Opted out"),
            tuple(scored),
        )
    )
    notes = [f"{one.name}: {note}" for one in source.found.metrics for note in one.notes]
    blocks.append(
        Prose("Found while reading the scores:", tuple(notes))
        if notes
        else Prose("No row of the scores was dropped, repeated or opted out.", quiet=True)
    )
    return Section(
        key="counts",
        title="What the numbers stand on",
        lead="A group is what was drawn together, such as a patient's encounter in both languages: its answers are "
        "more alike than others, so that more of them do not say as much more.",
        blocks=blocks,
    )
