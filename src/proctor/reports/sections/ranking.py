"""The ranking over buckets, for benchmarks that have them: boards, how stable they are, and what they rest on."""

from __future__ import annotations

from dataclasses import replace

from proctor.reports.blocks import Block, Cell, Column, Folded, Prose, Section, Table
from proctor.reports.board_words import board_notes, mean_rank, remarks, who_advances
from proctor.reports.pictures import board_pictures, tau_picture
from proctor.reports.source import Source
from proctor.runs import Analysis, Board, RankedRun
from proctor.runs.analysis import duels_of, rule_rows

__all__ = ["ranking_section"]


def ranking_section(source: Source, analysis: Analysis | str | None) -> Section | None:
    """None where the benchmark has no buckets, or there is no analysis of it."""
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
        "often each is best in bootstrap samples of the groups. Baselines enter no test and no duel. Tests are adjusted "
        "within a bucket, not over all of them: of two equal systems one may well get the higher score.",
        blocks=tuple(blocks),
    )


def _board(analysis: Analysis, board: Board) -> list[Block]:
    blocks: list[Block] = [_places_table(board)]
    if board.unranked:
        blocks.append(_unranked_table(board))
    if board.baselines:
        blocks.append(_baselines_table(board))
    if notes := board_notes(board):
        blocks.append(Prose("Notes:", tuple(notes), quiet=True))
    blocks += [
        replace(one.figure, caption=f"{one.title}. {one.figure.caption}")
        for one in board_pictures(analysis, board)
    ]
    if board.runs:
        tables = (_rules_table(board), _buckets_table(board), _duels_table(board))
        blocks.append(Folded("Other rules, bucket by bucket, and system by system", tables))
    return blocks


def _places_table(board: Board) -> Table:
    columns = (
        Column("System"),
        Column("Place", numeric=True),
        Column("Score", numeric=True),
        Column("Won, lost, tied", numeric=True),
        Column("Pre-evaluation score", numeric=True),
        Column("Its rank (95 % interval)", numeric=True),
        Column("Win rate", numeric=True),
        Column("Places in samples", numeric=True),
        Column("First in samples", numeric=True),
        Column("Remarks"),
    )
    rows = tuple(_row(one) for one in board.runs)
    caption = (
        f"{board.items} questions in {board.standings.groups} groups, {len(board.standings.buckets)} buckets. Won, lost and tied "
        "are duels with each other system; the pre-evaluation score is the mean of the accuracies in the buckets: who has not "
        "more of it than every baseline stands below the line. Beside it is its rank with the simultaneous 95 % confidence "
        "interval from the paired tests. Places in samples is the spread of the place over bootstrap samples, not a confidence "
        "interval; first in samples the share of them in which it is first."
    )
    return Table(caption, columns, rows)


def _row(one: RankedRun) -> tuple[Cell | str | int, ...]:
    standing, stability = one.standing, one.standing.stability
    said = ["tie broken"] if standing.tie_broken else []
    said += ["below the line"] if one.below else []
    return (
        Cell(standing.name),
        Cell(str(standing.place), strong=True),
        f"{standing.score:+g}".replace("-", "−"),
        "–".join(str(count) for count in duels_of(standing)),
        _percent(standing.mean),
        mean_rank(standing.mean_rank, standing.rank_low, standing.rank_high),
        _percent(standing.win_rate),
        "–" if stability is None else f"{stability.place_low} to {stability.place_high}",
        "–" if stability is None else _percent(stability.chances[0]),
        ", ".join([*said, *remarks(one.lacking)]),
    )


def _unranked_table(board: Board) -> Table:
    columns = (Column("Not ranked"), Column("If wrong", numeric=True), Column("If left out", numeric=True))
    rows: list[tuple[Cell | str | int, ...]] = [
        (Cell(one.name), _percent(one.low), _percent(one.high), ", ".join(remarks(one.lacking)))
        for one in board.unranked
    ]
    caption = "Incomplete runs whose place depends on what they lack: the pre-evaluation score as a range."
    return Table(caption, (*columns, Column("Remarks")), tuple(rows))


def _baselines_table(board: Board) -> Table:
    columns = (Column("Baseline"), Column("Pre-evaluation score", numeric=True), Column("Remarks"))
    rows: list[tuple[Cell | str | int, ...]] = [
        (Cell(one.name, badge="baseline"), _percent(one.mean), ", ".join(remarks(one.lacking)))
        for one in board.baselines
    ]
    return Table(
        "Baselines, each on the questions that it answers: in no test and no duel.", columns, tuple(rows)
    )


def _rules_table(board: Board) -> Table:
    """Place and score under every rule side by side."""
    found = rule_rows([board])
    rules = list(dict.fromkeys(row["rule"] for row in found))
    cells = {(row["system"], row["rule"]): f"{row['place']} ({row['score']:.4g})" for row in found}
    rows: list[tuple[Cell | str | int, ...]] = [
        (Cell(one.standing.name), *(cells[one.standing.name, rule].replace("-", "−") for rule in rules))
        for one in board.runs
    ]
    caption = "Place (score) under every rule, ties not broken: how far the rule decides."
    return Table(caption, (Column("System"), *(Column(rule, numeric=True) for rule in rules)), tuple(rows))


def _buckets_table(board: Board) -> Table:
    buckets = board.standings.buckets
    rows: list[tuple[Cell | str | int, ...]] = []
    for one in board.runs:
        pairs = zip(one.standing.ranks, one.standing.scores, strict=True)
        cells = ["–" if rank is None else f"{rank} ({_percent(score)})" for rank, score in pairs]
        rows.append((Cell(one.standing.name), *cells))
    rows += [(Cell(one.name, badge="baseline"), *map(_percent, one.scores)) for one in board.baselines]
    columns = (Column("System"), *(Column(bucket, numeric=True) for bucket in buckets))
    return Table("Rank (accuracy) in each bucket.", columns, tuple(rows))


def _duels_table(board: Board) -> Table:
    """Columns are numbered as the rows are: fifty names would not fit."""
    names = [one.standing.name for one in board.runs]
    rows: list[tuple[Cell | str | int, ...]] = []
    for number, one in enumerate(board.runs, start=1):
        standing = one.standing
        duels = [
            f"{standing.ahead[name]}–{standing.behind[name]}–{standing.tied[name]}"
            if name in standing.ahead
            else ""
            for name in names
        ]
        rows.append((Cell(standing.name), str(number), *duels))
    heads = (Column(str(number), numeric=True) for number in range(1, len(names) + 1))
    caption = (
        "Buckets won, lost and tied by the row against the column; columns are numbered as the rows are."
    )
    return Table(caption, (Column("System"), Column("Row", numeric=True), *heads), tuple(rows))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
