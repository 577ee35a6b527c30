"""How far each metric agrees with the raters: boards, pairs, datasets and dimensions, raters and systems; what was rated."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.audits import ALL, Agreement, Audit, MetricComparison, RankedMetric
from proctor.core import DASH, plain_name, thousands
from proctor.reports.audits.source import AuditSource
from proctor.reports.blocks import Block, Cell, Figure, Folded, Prose, Row, Section, Table, columns
from proctor.reports.figures import Dot, Forest, Grid, draw_forest, draw_grid, plain_axis, signed_axis
from proctor.reports.tables.agreement import (
    PLAIN,
    agreement_table,
    by_rater_table,
    ceilings_table,
    contrast_cells,
    estimate_cells,
    metric_board_table,
    metric_pairs_table,
    spoken_language,
    system_means_table,
    systems_table,
    why_none,
)

_MOST_DRAWN = 40
MOST_ON_TOP = 8
_MOST_PAIRS_DRAWN = 15


def leaderboard_section(source: AuditSource) -> Section:
    """A board per language over all its dimensions, and folded below one for each."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        board = source.main_board(language)
        drawn = [place for place in board.metrics if place.mean.value is not None][:_MOST_DRAWN]
        if number_ or len(drawn) > MOST_ON_TOP:  # else the first screen has it
            blocks.append(metrics_forest(source, language, drawn, f"board-{number_}"))
        blocks.append(metric_board_table(board, level=source.level))
        each = source.dimensions(language)
        if len(each) > 1:
            tables = tuple(metric_board_table(source.board(language, one), level=source.level) for one in each)
            blocks.append(Folded(f"By dimension ({len(each)})", tables))
    blocks.append(
        Prose(
            "Metrics that share a number under “Ties” can't be told apart; one with two numbers stands between two "
            "groups.",
            quiet=True,
        )
    )
    return Section(
        key="leaderboard",
        title="Leaderboard of metrics",
        lead=f"How far each metric agrees with {source.raters}: the mean of Kendall's τ-b, Pearson's r and Spearman's "
        f"ρ, averaged over the dimensions of a language, with its {source.level} interval (whole groups are drawn). "
        "The rank is 1 plus the number of metrics that are significantly better, and never better than that of a metric "
        "with a higher mean.",
        blocks=blocks,
        opened=True,
    )


def comparison_section(source: AuditSource) -> Section | None:
    """Every pair of metrics; None where there is one metric alone."""
    if len(source.found.metrics) < 2:
        return None
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        board = source.main_board(language)
        told = [one for one in board.comparisons if one.difference.value is not None]
        if told and len(told) <= _MOST_PAIRS_DRAWN:
            blocks.append(_differences(language, told, f"pairs-{number_}"))
        if len(source.dimensions(language)) > 1:
            table = metric_pairs_table(board)
            blocks.append(table if len(table.rows) <= _MOST_PAIRS_DRAWN else _folded(table))
        tables = tuple(metric_pairs_table(source.board(language, one)) for one in source.dimensions(language))
        blocks += [Folded("Each dimension", tables)] if len(tables) > 1 else tables
    return Section(
        key="pairs",
        title="Metrics compared in pairs",
        lead="The difference of two metrics' mean correlation on the same answers, from the same samples of groups, "
        f"with its {source.level} interval; p is adjusted for all pairs of a table (Holm).",
        blocks=blocks,
    )


def _folded(table: Table) -> Folded:
    return Folded(f"All {len(table.rows)} pairs", (table,))


def metrics_forest(source: AuditSource, language: str, places: list[RankedMetric], key: str) -> Figure:
    """The mean correlation of each metric."""
    values = [end for one in places for end in (one.mean.value, one.mean.ci_low, one.mean.ci_high)]
    known = [value for value in values if value is not None]
    most = max(0.1, *known)
    axis = plain_axis(min(-0.08 * most, *known), most)  # room for the name of the line at 0
    forest = Forest(
        rows=[place.metric for place in places],
        dots=[Dot(one.mean.value, one.mean.ci_low, one.mean.ci_high) for one in places],
        texts=[" ".join(_shown(place)) for place in places],
        head=f"mean correlation, {source.level} interval",
        mark=(0.0, "no agreement"),
    )
    title = f"{spoken_language(language)}: mean correlation of each metric"
    caption = f"{title}, best first. Filled dot: the interval excludes 0."
    if len(places) == _MOST_DRAWN:
        caption += f" At most {_MOST_DRAWN} are drawn; all stand in the table."
    return Figure(draw_forest(key, title, forest, axis), caption)


def _shown(place: RankedMetric) -> tuple[str, ...]:
    value, ends = estimate_cells(place.mean)
    return (value,) if ends == DASH else (value, f"({ends})")


def _differences(language: str, told: list[MetricComparison], key: str) -> Figure:
    ends = [
        end
        for one in told
        for end in (one.difference.value, one.difference.ci_low, one.difference.ci_high)
        if end is not None
    ]
    axis = signed_axis(PLAIN, min(ends), max(ends), lines=4)
    forest = Forest(
        rows=[f"{one.first} minus {one.second}" for one in told],
        dots=[Dot(one.difference.value, one.difference.ci_low, one.difference.ci_high) for one in told],
        texts=[contrast_cells(one.difference)[0].text for one in told],
        head="difference of the mean correlation",
        mark=(0.0, "no difference"),
    )
    title = f"{spoken_language(language)}: differences of the mean correlation"
    caption = f"{title}. Filled dot: the interval excludes 0 (not adjusted for the number of pairs)."
    return Figure(draw_forest(key, title, forest, axis), caption)


_MOST_ROWS = 40  # of a grid; the tables have all
_MOST_OPEN = 24  # rows of a table that is not folded


def agreement_section(source: AuditSource) -> Section:
    """A grid per language with the mean correlations, every figure below it, and why some are missing."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        blocks.append(_grid(source, language, f"grid-{number_}"))
        blocks.append(
            Folded(
                "Kendall, Pearson and Spearman, with the interval of their mean",
                tuple(agreement_table(audit, language, reasons=False) for audit in _ranked(source, language)),
            )
        )
    missing = [(audit.metric, row) for audit in source.found.each for row in audit.agreements if row.reason]
    if missing:
        caption = "Where there is no number, and why: never a 0 in its place."
        blocks += ["No correlation", _why_none(caption, [(*one, why_none(one[1].reason)) for one in missing])]
    thin = [(audit.metric, row, row.note) for audit in source.found.each for row in audit.agreements if row.note]
    if thin:
        caption = (
            "A correlation without an interval: fewer than five groups carry the variation of one side, so no "
            "sample of groups tells what others would show."
        )
        blocks += ["No interval", _why_none(caption, thin)]
    return Section(
        key="agreement",
        title="Agreement by dataset and dimension",
        lead=f"The mean of Kendall's τ-b, Pearson's r and Spearman's ρ between scores and ratings. {ALL} pools the "
        "datasets: where they differ in both scores and ratings, it can lie above every one of them.",
        blocks=blocks,
    )


def raters_section(source: AuditSource) -> Section:
    """What one rater says of another, and each rater apart."""
    audits = source.found.each
    blocks: list[Block | str] = []
    ceilings = audits[0].ceilings
    if ceilings:
        blocks.append(ceilings_table(ceilings))
    else:
        blocks.append(
            Prose(
                "No answer was rated by two raters on the same dimension. So it can't be known how far raters agree "
                "among themselves, nor how near a metric comes to that; there is no α either."
            )
        )
    apart = [audit for audit in audits if audit.by_rater]
    if apart:
        blocks.append(Folded("Each metric and each rater alone", tuple(by_rater_table(audit) for audit in apart)))
    else:
        blocks.append(Prose("Every dimension was rated by one rater alone.", quiet=True))
    return Section(
        key="raters",
        title="Agreement between raters",
        lead="How far two raters agree is no upper limit for a metric. One rater's slips lower both: raters who "
        "correlate by r with each other (Pearson) correlate by √r with a perfect metric, which gives each answer what "
        "raters would give it on average. Where r is 0.50, a perfect metric reaches 0.71 with one rater, and more with "
        "the mean of several. This takes raters to err alike and independently.",
        blocks=blocks,
    )


def systems_section(source: AuditSource) -> Section:
    """Agreement item by item beside that of the systems' means."""
    blocks: list[Block | str] = []
    for language in source.languages:
        blocks.append(spoken_language(language))
        audits = _ranked(source, language)
        few = max(1, _MOST_OPEN // len(source.dimensions(language)))
        blocks.append(systems_table(audits[:few], language))
        if audits[few:]:
            others = systems_table(audits[few:], language)
            blocks.append(Folded(f"The other {len(audits) - few} metrics", (others,)))
        blocks.append(Folded("Mean score and mean rating of each system", (system_means_table(audits, language),)))
    return Section(
        key="systems",
        title="By item and by system",
        lead="A metric can put systems in the raters' order and yet say little of a single answer, or the other way "
        "round. With few systems their order is easily met by luck: such a correlation has no interval worth showing.",
        blocks=blocks,
    )


def _ranked(source: AuditSource, language: str) -> list[Audit]:
    by_name = {audit.metric: audit for audit in source.found.each}
    return [by_name[name] for name in source.ranked(language)]


def _grid(source: AuditSource, language: str, key: str) -> Figure:
    audits = _ranked(source, language)
    dimensions, datasets = source.dimensions(language), source.datasets
    there = [
        (dataset, dimension)
        for dataset in datasets
        for dimension in dimensions
        if any(_at(audits[0], language, dataset, dimension))
    ]
    values = [[next(iter(_at(audit, language, *where))).mean.value for where in there] for audit in audits[:_MOST_ROWS]]
    bands = []
    for dataset in datasets:
        inside = [place for place, (name, _) in enumerate(there) if name == dataset]
        if inside and len(datasets) > 1:
            bands.append((dataset, inside[0], len(inside)))
    title = f"{spoken_language(language)}: mean correlation by dataset and dimension"
    names = [audit.metric for audit in audits[:_MOST_ROWS]]
    drawn = draw_grid(key, title, Grid(names, [plain_name(one) for _, one in there], values, bands))
    more = f" Drawn are the best {len(names)} of {len(audits)} metrics." if len(audits) > len(names) else ""
    return Figure(drawn, f"{title}. Blue is above 0, orange below; a dash: no correlation.{more}")


def _at(audit: Audit, language: str, dataset: str, dimension: str) -> list[Agreement]:
    return [
        row for row in audit.agreements if (row.language, row.dataset, row.dimension) == (language, dataset, dimension)
    ]


def _why_none(caption: str, found: Sequence[tuple[str, Agreement, str]]) -> Table:
    rows = tuple(
        (Cell(metric), spoken_language(row.language), row.dataset, plain_name(row.dimension), Cell(why))
        for metric, row, why in found
    )
    return Table(caption, columns("Metric", "Language", "Dataset", "Dimension", "Why"), rows)


def _facts(source: AuditSource) -> list[tuple[str, str]]:
    """What was audited, with which settings."""
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
    facts = tuple((Cell(name), shown) for name, shown in _facts(source))
    blocks: list[Block | str] = [
        Table("What was audited, with which settings.", columns("Fact", "Value"), facts),
        Table("What was rated.", heads, tuple(rows)),
    ]
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
        title="Data",
        lead="A group is what was drawn together, such as a patient's encounter in both languages: its answers are "
        "more alike than others, so that more of them do not say as much more.",
        blocks=blocks,
    )
