"""A ranking over buckets in tables: places, what is not ranked, baselines, and the buckets, pairs and rules behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.core import ACCURACY, DASH, difference, interval, number, p_value, percent, rank_range
from proctor.reports.blocks import Cell, Column, Row, Table, columns
from proctor.reports.wording import mean_rank, remarks
from proctor.runs import Board, RankedRun, duels_of, rule_rows


def board_tables(board: Board, *, title: str = "") -> list[Table]:
    """The ranked systems, then those that can't be ranked, then the baselines."""
    found = [places_table(board, title=title)]
    if board.unranked:
        found.append(unranked_table(board))
    if board.baselines:
        found.append(baselines_table(board))
    return found


def detail_tables(board: Board) -> list[Table]:
    """The other rules, bucket by bucket, and system by system; none where nobody is ranked."""
    return [_rules_table(board), buckets_table(board), _pairs_table(board)] if board.runs else []


def places_table(board: Board, *, title: str = "") -> Table:
    """The ranked systems in their order."""
    standings = board.standings
    heads = columns(
        *("System", ">Place", f">Score ({standings.rule})", ">Won, lost, tied", ">Pre-evaluation score"),
        *(">Rank by it (95 % CI)", ">Win rate", ">Places in samples", ">First in samples", "Remarks"),
    )
    caption = (
        f"{board.items} questions in {standings.groups} groups, {len(standings.buckets)} buckets. Won, lost and tied are "
        "pairwise comparisons with each other system; the pre-evaluation score is the mean of the accuracies in the "
        "buckets, beside it the rank by that score with its simultaneous 95 % confidence interval from the paired tests. "
        "Places in samples is the spread of the place over bootstrap samples, not a confidence interval; first in samples "
        "is the share of them in which it is first."
    )
    shown = title or f"{board.title} ({board.items} in {standings.groups} groups)"
    return Table(caption, heads, tuple(map(_place_row, board.runs)), title=shown)


def _place_row(one: RankedRun) -> Row:
    standing, stability = one.standing, one.standing.stability
    said = ["tie broken"] if standing.tie_broken else []
    said += ["not above every baseline"] if one.below else []
    whole = float(standing.score).is_integer()
    return (
        Cell(standing.name),
        Cell(str(standing.place), strong=True),
        f"{standing.score:+g}".replace("-", "−") if whole else number(standing.score),
        "–".join(str(count) for count in duels_of(standing)),
        percent(standing.mean),
        mean_rank(standing.mean_rank, standing.rank_low, standing.rank_high),
        percent(standing.win_rate),
        DASH if stability is None else rank_range(stability.place_low, stability.place_high),
        DASH if stability is None else percent(stability.chances[0]),
        ", ".join([*said, *remarks(one.lacking)]),
    )


def unranked_table(board: Board) -> Table:
    """The runs whose place depends on what they lack."""
    rows: list[Row] = [
        (Cell(one.name), percent(one.low), percent(one.high), ", ".join(remarks(one.lacking))) for one in board.unranked
    ]
    caption = "Incomplete runs whose place depends on what they lack: the pre-evaluation score as a range."
    heads = columns("System", ">Lacking items wrong", ">Lacking items left out", "Remarks")
    return Table(caption, heads, tuple(rows), title="Not ranked: incomplete")


def baselines_table(board: Board) -> Table:
    """The baselines, each on the questions that it answers."""
    rows: list[Row] = [
        (Cell(one.name, badge="baseline"), percent(one.mean), ", ".join(remarks(one.lacking)))
        for one in board.baselines
    ]
    caption = "Baselines, each on the questions that it answers: in no test and no pairwise comparison."
    heads = columns("System", ">Pre-evaluation score", "Remarks")
    return Table(caption, heads, tuple(rows), title="Baselines: not ranked, in no test")


def _rules_table(board: Board) -> Table:
    """Place and score under every rule side by side."""
    found = rule_rows([board])
    rules = list(dict.fromkeys(row["rule"] for row in found))
    cells = {(row["system"], row["rule"]): f"{row['place']} ({row['score']:.4g})" for row in found}
    rows: list[Row] = [
        (Cell(one.standing.name), *(cells[one.standing.name, rule].replace("-", "−") for rule in rules))
        for one in board.runs
    ]
    caption = "Place (score) under every rule, ties not broken: how far the rule decides."
    heads = columns("System", *(f">{rule}" for rule in rules))
    return Table(caption, heads, tuple(rows), title="Place (score) under every rule, ties not broken")


def buckets_table(board: Board) -> Table:
    """Rank and accuracy in each bucket."""
    rows: list[Row] = []
    for one in board.runs:
        pairs = zip(one.standing.ranks, one.standing.scores, strict=True)
        cells = [DASH if rank is None else f"{rank} ({percent(score)})" for rank, score in pairs]
        rows.append((Cell(one.standing.name), *cells))
    rows += [(Cell(one.name, badge="baseline"), *map(percent, one.scores)) for one in board.baselines]
    heads = columns("System", *(f">{bucket}" for bucket in board.standings.buckets))
    return Table("Rank (accuracy) in each bucket.", heads, tuple(rows), title="Rank (accuracy) in each bucket")


def _pairs_table(board: Board) -> Table:
    """Columns are numbered as the rows are: fifty names would not fit."""
    names = [one.standing.name for one in board.runs]
    rows: list[Row] = []
    for place, one in enumerate(board.runs, start=1):
        standing = one.standing
        counts = [
            f"{standing.ahead[name]}–{standing.behind[name]}–{standing.tied[name]}" if name in standing.ahead else ""
            for name in names
        ]
        rows.append((Cell(standing.name), str(place), *counts))
    heads = columns("System", ">Row", *(f">{place}" for place in range(1, len(names) + 1)))
    title = "Buckets won, lost and tied by the row against the column"
    return Table(f"{title}; columns are numbered as the rows are.", heads, tuple(rows), title=title)


def leads_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Whether one system's lead is real, bucket by bucket; a table for each that it is compared with."""
    heads = (*columns("Bucket", ">Questions", ">Groups", ">Lead", ">95 % CI", ">p", ">p adjusted"), Column("Verdict"))
    found = []
    for other in dict.fromkeys(row["against"] for row in rows):
        here = [row for row in rows if row["against"] == other]
        title = f"{here[0]['system']} compared with {other}"
        cells: list[Row] = [
            (
                Cell(row["bucket"]),
                row["n"],
                row["groups"],
                difference(ACCURACY, row["lead"]),
                interval(ACCURACY, row["ci_low"], row["ci_high"]),
                p_value(row["p"]),
                p_value(row["p_adjusted"]),
                row["verdict"],
            )
            for row in here
        ]
        found.append(Table(f"{title}.", heads, tuple(cells), title=title))
    return found
