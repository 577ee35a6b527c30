"""Metrics ranked by agreement with raters, leads over chosen metrics, and statistical power: tables and sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.audits import AS_GIVEN, LeadRow, MetricComparison, MetricRanking, Part, Power, PowerTable, RankedMetric
from proctor.core import DASH, Cell, Column, Metric, Row, Table, columns, number, p_value, percent, thousands
from proctor.reports.blocks import Block, Folded, Prose, Section, span_of
from proctor.reports.charts import ChartRow, ChartWords, Lane, LeaderboardChart, metric_axis
from proctor.reports.figures import Axis, Dot, signed_axis
from proctor.reports.metric_agreement import (
    REASON,
    contrast_cells,
    dimension_name,
    ends_of,
    spoken_language,
    strong_value,
    with_reasons,
)
from proctor.stats import Contrast, Estimate

if TYPE_CHECKING:
    from proctor.reports.report_numbers import AuditSource

_PLAIN = Metric("plain", "Correlation", low=-1.0)  # for axes of plain numbers


def dot_of(estimate: Estimate | Contrast) -> Dot:
    """An estimate as a dot with its interval."""
    return Dot(estimate.value, estimate.ci_low, estimate.ci_high)


def contrast_axis(contrasts: Sequence[Contrast]) -> Axis:
    """An axis that covers all contrasts and 0."""
    ends = [end for contrast in contrasts for end in dot_of(contrast).ends]
    return signed_axis(_PLAIN, min([0.0, *ends]), max([0.0, *ends]), lines=4)


def contrasts_chart(
    title: str, rows: Sequence[tuple[str, Contrast]], heads: tuple[str, str], more: str, table: Table | None = None
) -> LeaderboardChart:
    """Differences, one per row; `heads` say what the numbers are, and what the line at 0 is. A marker is hollow where the
    interval includes 0."""
    lanes = [(name, contrast, contrast_cells(contrast)[0]) for name, contrast in rows]
    shown = tuple(
        ChartRow(
            name,
            (
                Lane(
                    "",
                    contrast.value,
                    contrast.ci_low,
                    contrast.ci_high,
                    0,
                    cell.text,
                    ends_of(contrast),
                    is_open=not cell.strong,
                ),
            ),
        )
        for name, contrast, cell in lanes
    )
    axis = contrast_axis([contrast for _, contrast in rows])
    caption = f"{title}: {heads[0]}. Filled: the interval excludes 0{more}"
    return LeaderboardChart(caption, axis, shown, ((0.0, heads[1]),), ChartWords(score="", ends="95 % CI"), table)


def metric_board_table(board: MetricRanking, *, level: str = "95 %") -> Table:
    """Metrics ranked on a dimension, or on the mean over the dimensions of a language."""
    kinds = ("Kendall", "Pearson", "Spearman") if board.dimension else ()
    rows: list[Row] = []
    for metric in board.metrics:
        each = [number(value) for value in (metric.kendall, metric.pearson, metric.spearman)[: len(kinds)]]
        drawn = span_of(_AXIS.limits, metric.mean.ci_low, metric.mean.value, metric.mean.ci_high, 0.0)
        rank, ties = DASH if metric.rank is None else str(metric.rank), ", ".join(map(str, metric.ties)) or DASH
        why = f"no correlation: {metric.reason}" if metric.reason else metric.note
        mean = (strong_value(metric.mean), ends_of(metric.mean), Cell("", span=drawn))
        rows.append((Cell(metric.metric), rank, ties, *each, *mean, why))
    heads = (
        *columns("Metric", ">Rank", ">Ties", *(f">{kind}" for kind in kinds), ">Mean", f">{level} CI"),
        Column("−1 to 1", drawn=True),
        Column(REASON),
    )
    title = f"{spoken_language(board.language)}, {dimension_name(board.dimension)}"
    return with_reasons(f"{title}.", heads, rows, title=title)


def metric_pairs_table(board: MetricRanking) -> Table:
    """The differences of all pairs of metrics."""
    rows: list[Row] = []
    for pair in board.comparisons:
        shown, ends = contrast_cells(pair.difference)
        significant = pair.p_holm is not None and pair.p_holm <= ALPHA
        difference = Cell(shown.text, strong=significant, raw=shown.raw)
        tests = (p_value(pair.difference.p), p_value(pair.p_holm))
        rows.append((Cell(pair.first), Cell(pair.second), difference, ends, *tests))
    heads = columns("Metric", "Minus", ">Difference", ">95 % CI", ">p", ">p (Holm)")
    what = dimension_name(board.dimension)
    title = f"{spoken_language(board.language)}, {what}: differences of the mean correlation"
    return Table(
        f"{title}. Bold where the adjusted p is at most 0.05. Intervals are not adjusted.",
        heads,
        tuple(rows),
        title=title,
    )


_MAX_DRAWN = 40

ALPHA = 0.05
"""The level of the tests of metrics, whatever that of the intervals is."""

_MAX_LANES = 8  # dimensions of a chart; colours and markers tell no more apart

_MAX_PAIRS_DRAWN = 15

_AXIS = metric_axis(_PLAIN)  # of every correlation, so that languages and dimensions can be compared


def metrics_section(source: AuditSource) -> Section:
    """For each language the ranking over all dimensions, and folded rankings by dimension. All stand on one axis."""
    blocks: list[Block | str] = []
    for language in source.languages:
        blocks.append(_metrics_chart(source, language))
        if alike := _alike_line(source, language):
            blocks.append(Prose(alike))
        each = source.dimensions(language)
        if len(each) > 1:
            tables = [metric_board_table(source.board(language, one), level=source.level) for one in each]
            drawn = [_dimensions_chart(source, language)] if len(each) <= _MAX_LANES else []
            blocks.append(Folded(f"By dimension ({len(each)})", (*drawn, *tables)))
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
        "Rank 1 means that no metric is significantly better.",
        blocks=blocks,
        opened=True,
    )


def _metrics_chart(source: AuditSource, language: str) -> LeaderboardChart:
    """The mean correlation of each metric over the dimensions of a language."""
    board = source.main_board(language)
    rows = tuple(_chart_row(metric, (_lane("", 0, metric.mean),)) for metric in board.metrics[:_MAX_DRAWN])
    return _chart(source, f"{spoken_language(language)}: mean correlation of each metric.", rows, board)


def _dimensions_chart(source: AuditSource, language: str) -> LeaderboardChart:
    """The correlation of each metric, dimension by dimension."""
    boards = {name: source.board(language, name) for name in source.dimensions(language)}
    by_name = {name: {metric.metric: metric for metric in board.metrics} for name, board in boards.items()}
    rows = tuple(
        _chart_row(
            metric,
            tuple(
                _lane(dimension_name(name), number_, by_name[name][metric.metric].mean)
                for number_, name in enumerate(boards)
            ),
        )
        for metric in source.main_board(language).metrics[:_MAX_DRAWN]
    )
    return _chart(source, f"{spoken_language(language)}: correlation by dimension.", rows, None)


def _chart_row(metric: RankedMetric, lanes: tuple[Lane, ...]) -> ChartRow:
    below = f"no correlation: {metric.reason}" if metric.reason else metric.note
    return ChartRow(metric.metric, lanes, DASH if metric.rank is None else str(metric.rank), below=below)


def _lane(name: str, mark: int, mean: Estimate) -> Lane:
    return Lane(name, mean.value, mean.ci_low, mean.ci_high, mark, number(mean.value), ends_of(mean))


def _chart(
    source: AuditSource, caption: str, rows: tuple[ChartRow, ...], board: MetricRanking | None
) -> LeaderboardChart:
    words = ChartWords(score="Correlation", ends=f"{source.level} CI", more="{count} more dimensions")
    numbers = None if board is None else metric_board_table(board, level=source.level)
    return LeaderboardChart(caption, _AXIS, rows, ((0.0, "no agreement"),), words, numbers)


def _alike_line(source: AuditSource, language: str) -> str:
    """Which metrics can't be told apart by their scores: their means and intervals are equal to three digits."""
    told: dict[tuple[str, str], list[str]] = {}
    for metric in source.main_board(language).metrics:
        if metric.mean.value is not None:
            told.setdefault((number(metric.mean.value), ends_of(metric.mean)), []).append(metric.metric)
    pairs = [" and ".join(names) for names in told.values() if len(names) > 1]
    return f"{'; '.join(pairs)} give nearly the same scores: their figures are equal to three digits." if pairs else ""


def metric_pairs_section(source: AuditSource) -> Section | None:
    """The comparisons of all pairs of metrics; None with only one metric."""
    if len(source.found.metrics) < 2:
        return None
    blocks: list[Block | str] = []
    for language in source.languages:
        blocks.append(spoken_language(language))
        board = source.main_board(language)
        pairs = [comparison for comparison in board.comparisons if comparison.difference.value is not None]
        if pairs and len(pairs) <= _MAX_PAIRS_DRAWN:
            blocks.append(_pairs_chart(language, pairs))
        if len(source.dimensions(language)) > 1:
            table = metric_pairs_table(board)
            many = len(table.rows) > _MAX_PAIRS_DRAWN
            blocks.append(Folded(f"All {len(table.rows)} pairs", (table,)) if many else table)
        tables = tuple(
            metric_pairs_table(source.board(language, dimension)) for dimension in source.dimensions(language)
        )
        blocks += [Folded("Each dimension", tables)] if len(tables) > 1 else tables
    return Section(
        key="pairs",
        title="Metrics compared in pairs",
        lead="The difference of two metrics' mean correlation on the same answers, from the same samples of groups, "
        f"with its {source.level} interval; p is adjusted for all pairs of a table (Holm).",
        blocks=blocks,
        finding=_pairs_finding(source),
    )


def _pairs_finding(source: AuditSource) -> str:
    """How many pairs differ significantly, by language."""
    parts = []
    for language in source.languages:
        pairs = source.main_board(language).comparisons
        apart = sum(pair.p_holm is not None and pair.p_holm <= ALPHA for pair in pairs)
        where = f"{spoken_language(language)}: " if len(source.languages) > 1 else ""
        parts.append(f"{where}{apart} of {len(pairs)} pairs differ significantly")
    return "; ".join(parts)


def _pairs_chart(language: str, pairs: Sequence[MetricComparison]) -> LeaderboardChart:
    rows = [(f"{pair.first} minus {pair.second}", pair.difference) for pair in pairs]
    title, what = f"{spoken_language(language)}, pairs of metrics", "difference of the mean correlation"
    return contrasts_chart(title, rows, (what, "no difference"), " (not adjusted for the number of pairs).")


_NESTED: tuple[Part, ...] = ("between", "within")

_Rows = dict[tuple[str, str, Part], LeadRow]


def lead_tables(rows: Sequence[LeadRow]) -> list[Table]:
    """The tables of leads, by language: over each metric on the mean over dimensions, between and within groups, the
    effect of ties, and by dimension. Metrics are ordered by their mean. A lead is strong if it is above 0 and
    significant by the adjusted test. Tables fit in 80 columns, apart from the names of metrics."""
    tables = []
    for language in dict.fromkeys(row.language for row in rows):
        own = {(row.metric, row.dimension, row.part): row for row in rows if row.language == language}
        whole = [row for (_, dimension, part), row in own.items() if (dimension, part) == ("", "all")]
        ordered = sorted(whole, key=lambda row: (row.figure.value is None, -(row.figure.value or 0.0)))
        over = list(dict.fromkeys(lead.over for row in ordered for lead in row.leads))
        tables += [_lead_means(language, ordered, one) for one in over]
        tables += [_lead_parts(language, ordered, own, part, over) for part in _NESTED]
        tables.append(_ties(language, ordered, own))
        dimensions = [one for one in dict.fromkeys(dimension for _, dimension, _ in own) if one]
        if len(dimensions) > 1:
            tables.append(_by_dimension(language, ordered, own, dimensions, ""))
            tables += [_by_dimension(language, ordered, own, dimensions, one) for one in over]
    return tables


def _lead_cell(row: LeadRow, over: str) -> Cell:
    """The lead over a metric; a dash for the metric itself."""
    lead = next((lead for lead in row.leads if lead.over == over), None)
    if lead is None:
        return Cell(DASH)
    shown = contrast_cells(lead.difference)[0]
    return Cell(shown.text, strong=lead.significant, raw=shown.raw)


def _lead_means(language: str, ordered: Sequence[LeadRow], over: str) -> Table:
    rows: list[Row] = []
    for row in ordered:
        lead = next((lead for lead in row.leads if lead.over == over), None)
        ends, p = (DASH, DASH) if lead is None else (ends_of(lead.difference), p_value(lead.p_holm))
        figure = Cell(number(row.figure.value), raw=row.figure.value)
        rows.append((Cell(row.metric), figure, ends_of(row.figure), _lead_cell(row, over), ends, p, row.reason))
    title = f"{spoken_language(language)}: agreement, and leads over {over}"
    caption = f"{title}, mean over the dimensions. Bold: ahead, where the adjusted p is at most 0.05. Intervals are not adjusted."
    heads = columns("Metric", ">Mean", ">95 % CI", ">Lead", ">95 % CI", ">p (Holm)", REASON)
    return with_reasons(caption, heads, rows, title=title)


def _lead_parts(language: str, ordered: Sequence[LeadRow], own: _Rows, part: Part, over: Sequence[str]) -> Table:
    """Agreement and leads between groups, or within groups."""
    rows: list[Row] = []
    for row in ordered:
        there = own[row.metric, "", part]
        figure = Cell(number(there.figure.value), raw=there.figure.value)
        rows.append((Cell(row.metric), figure, ends_of(there.figure), *(_lead_cell(there, other) for other in over)))
    what = "of the groups' means" if part == "between" else "of what differs within groups"
    title = f"{spoken_language(language)}: agreement {part} groups"
    heads = columns("Metric", ">Pearson's r", ">95 % CI", *(f">over {other}" for other in over))
    return Table(f"{title}: Pearson's r {what}, and leads.", heads, tuple(rows), title=title)


def _ties(language: str, ordered: Sequence[LeadRow], own: _Rows) -> Table:
    rows: list[Row] = []
    for row in ordered:
        tied = own[row.metric, "", "tied"]
        worth, ends = contrast_cells(tied.lead(AS_GIVEN).difference)
        given, after = (Cell(number(lead_row.figure.value), raw=lead_row.figure.value) for lead_row in (row, tied))
        rows.append((Cell(row.metric), given, after, Cell(worth.text, raw=worth.raw), ends))
    title = f"{spoken_language(language)}: what ties are worth"
    caption = f"{title}. Tied: the same scores, made to tie as often as the ratings do."
    return Table(caption, columns("Metric", ">As given", ">Tied", ">Difference", ">95 % CI"), tuple(rows), title=title)


def _by_dimension(language: str, ordered: Sequence[LeadRow], own: _Rows, dimensions: Sequence[str], over: str) -> Table:
    """Agreement by dimension, or leads over one metric."""
    rows: list[Row] = []
    for row in ordered:
        cells = [own[row.metric, dimension, "all"] for dimension in dimensions]
        shown = [
            _lead_cell(cell, over) if over else Cell(number(cell.figure.value), raw=cell.figure.value) for cell in cells
        ]
        rows.append((Cell(row.metric), *shown))
    what = f"leads over {over}" if over else "agreement"
    title = f"{spoken_language(language)}: {what} by dimension"
    heads = columns("Metric", *(f">{dimension_name(dimension)}" for dimension in dimensions))
    return Table(f"{title}.", heads, tuple(rows), title=title)


def _needed_cell(row: Power) -> Cell:
    """The number of groups for a power of 80 %, with its interval."""
    if row.needed is None or row.needed_low is None:
        return Cell(DASH)
    ends = (
        f"{thousands(row.needed_low)} to {thousands(row.needed_high)}"
        if row.needed_high
        else f"{thousands(row.needed_low)} or more"
    )
    return Cell(f"{thousands(row.needed)} ({ends})", raw=row.needed)


def power_tables(power: PowerTable) -> list[Table]:
    """The power to detect a lead by the number of groups, for each language."""
    tables = []
    for language in dict.fromkeys(row.language for row in power.rows):
        rows: list[Row] = [
            (number(row.lead), "2" if row.seconds else "1", *map(percent, row.chances), _needed_cell(row))
            for row in power.rows
            if row.language == language
        ]
        title = f"{spoken_language(language)}: chance to tell {power.first} from {power.second}"
        heads = columns(
            "True lead",
            ">Ratings",
            *(f">{thousands(size)} groups" for size in power.plan.sizes),
            ">80 % with (95 % CI)",
        )
        tables.append(Table(f"{title}, two-sided test at {power.plan.level:g}.", heads, tuple(rows), title=title))
    return tables
