"""Metrics ranked by their agreement with raters: tables for terminal and page, and the report's sections."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.audits import MetricComparison, MetricRanking, RankedMetric
from proctor.core import DASH, Cell, Column, Metric, Row, Table, columns, number, p_value
from proctor.reports.audit_source import AuditSource
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section, span_of
from proctor.reports.figures import Axis, Dot, draw_list, plain_axis, signed_axis
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

_PLAIN = Metric("plain", "Value", low=-1.0)  # what axes of plain numbers are drawn for


def dot_of(one: Estimate | Contrast) -> Dot:
    """A number with its interval."""
    return Dot(one.value, one.ci_low, one.ci_high)


def contrast_axis(found: Sequence[Contrast]) -> Axis:
    """An axis that holds all of them, and 0."""
    ends = [end for one in found for end in dot_of(one).ends]
    return signed_axis(_PLAIN, min([0.0, *ends]), max([0.0, *ends]), lines=4)


def contrasts_figure(
    key: str,
    title: str,
    rows: Sequence[tuple[str, Contrast]],
    heads: tuple[str, str],
    more: str,
    table: Table | None = None,
) -> Figure:
    """Differences from 0, a row each; `heads` are the names of the numbers and of the line at 0."""
    axis = contrast_axis([one for _, one in rows])
    shown = [(name, dot_of(one), contrast_cells(one)[0].text) for name, one in rows]
    drawn = draw_list(key, title, shown, axis, head=heads[0], line=(0.0, heads[1]))
    return Figure(drawn, f"{title}. Filled dot: the interval excludes 0{more}", table)


def metric_board_table(board: MetricRanking, *, level: str = "95 %") -> Table:
    """Several metrics ranked on a dimension, or on the mean over a language's dimensions."""
    kinds = ("Kendall", "Pearson", "Spearman") if board.dimension else ()
    known = [end for one in board.metrics for end in dot_of(one.mean).ends]
    ends = (min(0.0, *known), max(0.1, *known)) if known else (0.0, 1.0)
    rows: list[Row] = []
    for one in board.metrics:
        each = [number(value) for value in (one.kendall, one.pearson, one.spearman)[: len(kinds)]]
        drawn = span_of(ends, one.mean.ci_low, one.mean.value, one.mean.ci_high, 0.0)
        rank, ties = DASH if one.rank is None else str(one.rank), ", ".join(map(str, one.ties)) or DASH
        why = f"no correlation: {one.reason}" if one.reason else one.note
        mean = (strong_value(one.mean), ends_of(one.mean), Cell("", span=drawn))
        rows.append((Cell(one.metric), rank, ties, *each, *mean, why))
    heads = (
        *columns("Metric", ">Rank", ">Ties", *(f">{kind}" for kind in kinds), ">Mean", f">{level} CI"),
        Column(f"{number(ends[0])} to {number(ends[1])}", drawn=True),
        Column(REASON),
    )
    title = f"{spoken_language(board.language)}, {dimension_name(board.dimension)}"
    return with_reasons(f"{title}.", heads, rows, title=title)


def metric_pairs_table(board: MetricRanking) -> Table:
    """Every pair of metrics."""
    rows: list[Row] = []
    for one in board.comparisons:
        shown, ends = contrast_cells(one.difference)
        sure = one.p_holm is not None and one.p_holm <= 0.05
        difference = Cell(shown.text, strong=sure, raw=shown.raw)
        tests = (p_value(one.difference.p), p_value(one.p_holm))
        rows.append((Cell(one.first), Cell(one.second), difference, ends, *tests))
    heads = columns("Metric", "Minus", ">Difference", ">95 % CI", ">p", ">p (Holm)")
    what = dimension_name(board.dimension)
    title = f"{spoken_language(board.language)}, {what}: differences of the mean correlation"
    return Table(f"{title}. Bold where the adjusted p is at most 0.05.", heads, tuple(rows), title=title)


_MOST_DRAWN = 40
MOST_ON_TOP = 8
"""The most metrics that the first screen draws."""
_MOST_PAIRS_DRAWN = 15


def metrics_section(source: AuditSource) -> Section:
    """A board per language over all its dimensions, and folded below one for each."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        board = source.main_board(language)
        drawn = [one for one in board.metrics if one.mean.value is not None][:_MOST_DRAWN]
        if number_ or len(drawn) > MOST_ON_TOP:  # else the first screen has it
            blocks.append(metrics_figure(source, language, drawn, f"board-{number_}"))
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
        "The rank is 1 plus the number of metrics that are significantly better, and never better than that of a "
        "metric "
        "with a higher mean.",
        blocks=blocks,
        opened=True,
    )


def metrics_figure(source: AuditSource, language: str, metrics: Sequence[RankedMetric], key: str) -> Figure:
    """The mean correlation of each metric."""
    known = [end for one in metrics for end in dot_of(one.mean).ends]
    most = max([0.1, *known])
    axis = plain_axis(min([-0.08 * most, *known]), most)  # room for the name of the line at 0
    rows = []
    for one in metrics:
        ends = ends_of(one.mean)
        rows.append((one.metric, dot_of(one.mean), number(one.mean.value) + ("" if ends == DASH else f" ({ends})")))
    head = f"mean correlation, {source.level} interval"
    title = f"{spoken_language(language)}: mean correlation of each metric"
    caption = f"{title}, best first. Filled dot: the interval excludes 0."
    if len(metrics) == _MOST_DRAWN:
        caption += f" At most {_MOST_DRAWN} are drawn; all stand in the table."
    return Figure(draw_list(key, title, rows, axis, head=head, line=(0.0, "no agreement")), caption)


def metric_pairs_section(source: AuditSource) -> Section | None:
    """Every pair of metrics; None where there is one metric alone."""
    if len(source.found.metrics) < 2:
        return None
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        board = source.main_board(language)
        told = [one for one in board.comparisons if one.difference.value is not None]
        if told and len(told) <= _MOST_PAIRS_DRAWN:
            blocks.append(_pairs_figure(language, told, f"pairs-{number_}"))
        if len(source.dimensions(language)) > 1:
            table = metric_pairs_table(board)
            many = len(table.rows) > _MOST_PAIRS_DRAWN
            blocks.append(Folded(f"All {len(table.rows)} pairs", (table,)) if many else table)
        tables = tuple(metric_pairs_table(source.board(language, one)) for one in source.dimensions(language))
        blocks += [Folded("Each dimension", tables)] if len(tables) > 1 else tables
    return Section(
        key="pairs",
        title="Metrics compared in pairs",
        lead="The difference of two metrics' mean correlation on the same answers, from the same samples of groups, "
        f"with its {source.level} interval; p is adjusted for all pairs of a table (Holm).",
        blocks=blocks,
    )


def _pairs_figure(language: str, told: Sequence[MetricComparison], key: str) -> Figure:
    rows = [(f"{one.first} minus {one.second}", one.difference) for one in told]
    title, what = (
        f"{spoken_language(language)}: differences of the mean correlation",
        "difference of the mean correlation",
    )
    return contrasts_figure(key, title, rows, (what, "no difference"), " (not adjusted for the number of pairs).")
