"""Which metric agrees best, and is its lead real?"""

from __future__ import annotations

from proctor.audit import Board, Comparison, Place
from proctor.reports.audits.cells import (
    PLAIN,
    Row,
    columns,
    contrast_cells,
    estimate_cells,
    interval,
    number,
    spoken_language,
)
from proctor.reports.audits.source import AuditSource
from proctor.reports.blocks import Block, Cell, Figure, Folded, Prose, Section, Table
from proctor.reports.figures import Dot, Forest, draw_forest, plain_axis, signed_axis
from proctor.reports.sections.headline import span_of
from proctor.reports.words import DASH, p_value, plain_name

__all__ = ["comparison_section", "leaderboard_section"]

_MOST_DRAWN = 40
_MOST_PAIRS_DRAWN = 15


def leaderboard_section(source: AuditSource) -> Section:
    """A board per language over all its dimensions, and folded below one for each."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        board = source.main_board(language)
        drawn = [place for place in board.places if place.mean.value is not None][:_MOST_DRAWN]
        if drawn:
            blocks.append(_forest(source, language, drawn, f"board-{number_}"))
        blocks.append(_places(source, board))
        each = source.dimensions(language)
        if len(each) > 1:
            tables = tuple(_places(source, source.board(language, one)) for one in each)
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
            table = _pairs(board, f"{spoken_language(language)}, mean over the dimensions.")
            blocks.append(table if len(table.rows) <= _MOST_PAIRS_DRAWN else _folded(table))
        tables = tuple(
            _pairs(source.board(language, one), f"{spoken_language(language)}, {plain_name(one)}.")
            for one in source.dimensions(language)
        )
        blocks += (
            [Folded("Each dimension, with the tests of the textbooks", tables)] if len(tables) > 1 else tables
        )
    return Section(
        key="pairs",
        title="Metrics compared in pairs",
        lead="The difference of two metrics' mean correlation on the same answers, from the same samples of groups, "
        f"with its {source.level} interval; p is adjusted for all pairs of a table (Holm). Williams and Steiger "
        "compare two Pearson correlations as if all answers were independent: they are printed for reference.",
        blocks=blocks,
    )


def _folded(table: Table) -> Folded:
    return Folded(f"All {len(table.rows)} pairs", (table,))


def _forest(source: AuditSource, language: str, places: list[Place], key: str) -> Figure:
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
    caption = f"{title}, best first. A filled dot's interval leaves 0 out."
    if len(places) == _MOST_DRAWN:
        caption += f" At most {_MOST_DRAWN} are drawn; all stand in the table."
    return Figure(draw_forest(key, title, forest, axis), caption)


def _shown(place: Place) -> tuple[str, ...]:
    value, ends = estimate_cells(place.mean)
    return (value,) if ends == DASH else (value, f"({ends})")


def _places(source: AuditSource, board: Board) -> Table:
    kinds = ("Kendall", "Pearson", "Spearman") if board.dimension else ()
    values = [end for one in board.places for end in (one.mean.value, one.mean.ci_low, one.mean.ci_high)]
    known = [value for value in values if value is not None]
    ends = (min(0.0, *known), max(0.1, *known)) if known else (0.0, 1.0)
    rows: list[Row] = []
    for one in board.places:
        each = [number(value) for value in (one.kendall, one.pearson, one.spearman)[: len(kinds)]]
        mean, spread = estimate_cells(one.mean)
        drawn = span_of(ends, one.mean.ci_low, one.mean.value, one.mean.ci_high, 0.0)
        rows.append(
            (
                Cell(one.metric),
                DASH if one.rank is None else str(one.rank),
                ", ".join(map(str, one.ties)) or DASH,
                *each,
                Cell(mean, strong=True),
                spread,
                Cell((one.reason and f"no correlation: {one.reason}") or one.note, span=drawn),
            )
        )
    what = plain_name(board.dimension) or "mean over the dimensions"
    heads = columns("Metric", ">Rank", ">Ties", *(f">{kind}" for kind in kinds), ">Mean")
    tail = columns(f">{source.level} interval", f"{number(ends[0])} to {number(ends[1])}")
    return Table(f"{spoken_language(board.language)}, {what}.", (*heads, *tail), tuple(rows))


def _differences(language: str, told: list[Comparison], key: str) -> Figure:
    ends = [
        end
        for one in told
        for end in (one.difference.value, one.difference.ci_low, one.difference.ci_high)
        if end is not None
    ]
    axis = signed_axis(PLAIN, min(ends), max(ends), lines=4)
    forest = Forest(
        rows=[f"{one.first} less {one.second}" for one in told],
        dots=[Dot(one.difference.value, one.difference.ci_low, one.difference.ci_high) for one in told],
        texts=[contrast_cells(one.difference)[0].text for one in told],
        head="difference of the mean correlation",
        mark=(0.0, "no difference"),
    )
    title = f"{spoken_language(language)}: differences of the mean correlation"
    caption = f"{title}. A filled dot's interval leaves 0 out (not adjusted for the number of pairs)."
    return Figure(draw_forest(key, title, forest, axis), caption)


def _pairs(board: Board, caption: str) -> Table:
    textbook = bool(board.dimension)
    rows: list[Row] = []
    for one in board.comparisons:
        difference, _ = contrast_cells(one.difference)
        sure = one.p_holm is not None and one.p_holm <= 0.05
        tests = [None if test is None else test.p for test in (one.williams, one.steiger)]
        rows.append(
            (
                Cell(one.first),
                Cell(one.second),
                Cell(difference.text, strong=sure),
                interval(one.difference.ci_low, one.difference.ci_high),
                p_value(one.difference.p),
                p_value(one.p_holm),
                *(p_value(p) for p in (tests if textbook else ())),
            )
        )
    tail = (">Williams p", ">Steiger p") if textbook else ()
    heads = columns("Metric", "Less", ">Difference", ">Interval", ">p", ">p (Holm)", *tail)
    return Table(f"{caption} Bold where the adjusted p is at most 0.05.", heads, tuple(rows))
