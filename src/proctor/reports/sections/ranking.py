"""The ranking over buckets, and the analysis beside it."""

from __future__ import annotations

from dataclasses import replace

from proctor.reports.blocks import Block, Folded, Prose, Section
from proctor.reports.pictures import (
    board_pictures,
    performance_pictures,
    podium_picture,
    tau_picture,
    together_pictures,
)
from proctor.reports.source import Source
from proctor.reports.tables import board_tables, detail_tables
from proctor.reports.wording import board_notes, who_advances
from proctor.runs import Analysis, Board


def ranking_section(source: Source) -> Section | None:
    """None where the benchmark has no buckets, or there is no analysis of it."""
    analysis = source.analysis
    if not source.card.buckets or not isinstance(analysis, Analysis):
        return None
    blocks: list[Block | str] = []
    for board in analysis.boards:
        blocks.append(f"{board.title}, {source.conditions[0]} ({board.name} board)")
        blocks.extend(_board(analysis, board))
    tau = tau_picture(analysis)
    if tau is not None:
        blocks += [tau.title, tau.figure]
    if said := who_advances(analysis.boards):
        blocks.append(Prose(said))
    return Section(
        key="ranking",
        title="Ranking over buckets",
        lead="In each bucket a system's rank is 1 plus the number of systems that are significantly better there, and never "
        "better than that of a system with a higher accuracy. A system beats another that it is ahead of in more buckets "
        "than behind; the score is systems beaten less systems lost to. Ties in the first three places are broken by how "
        "often each is best in bootstrap samples of the groups. Baselines enter no test and no pairwise comparison. Tests are adjusted "
        "within a bucket, not over all of them: of two equal systems one may well get the higher score.",
        blocks=tuple(blocks),
    )


def _board(analysis: Analysis, board: Board) -> list[Block]:
    blocks: list[Block] = [*board_tables(board)]
    if notes := board_notes(board):
        blocks.append(Prose("Notes:", tuple(notes), quiet=True))
    blocks += [
        replace(one.figure, caption=f"{one.title}. {one.figure.caption}") for one in board_pictures(analysis, board)
    ]
    if tables := detail_tables(board):
        blocks.append(Folded("Other rules, bucket by bucket, and system by system", tuple(tables)))
    return blocks


def analysis_section(source: Source) -> Section | None:
    """All pictures but those of the ranking, with their numbers."""
    analysis = source.analysis
    if analysis is None:
        return None
    blocks: list[Block | str] = []
    if isinstance(analysis, str):
        blocks.append(Prose(analysis))
    else:
        podium = podium_picture(analysis) if source.card.buckets else None
        pictures = [*performance_pictures(analysis, source.accuracy_chance), *([podium] if podium else [])]
        for one in [*pictures, *together_pictures(analysis)]:
            if one.facet not in source.facets:  # else the results by subgroup have it
                blocks += [one.title, one.figure]
    return Section(
        key="analysis",
        title="Analysis",
        lead=f"Right or wrong under {source.conditions[0]}, looked at from several sides. Intervals are 95 %, over samples of "
        "whole groups (videos). Systems stand in the order of the ranking. The numbers of a drawing are folded under it, a broken line is the chance level; "
        "proctor analyze --out writes all of them as files.",
        blocks=tuple(blocks),
    )
