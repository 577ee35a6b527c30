"""The ranking over buckets, for benchmarks that have them: boards, how stable they are, and what they rest on."""

from __future__ import annotations

from proctor.reports.blocks import Block, Cell, Column, Figure, Folded, Prose, Section, Table
from proctor.reports.figures import Blobs, draw_blobs
from proctor.reports.source import Source
from proctor.runs import Board, RankedRun, rank_runs
from proctor.runs.ranking import BASELINES

__all__ = ["ranking_section"]

_DRAWS, _STABILITY = 2000, 500


def ranking_section(source: Source) -> Section | None:
    """None where the benchmark has no buckets, or nobody but baselines was asked under the first condition."""
    condition = source.conditions[0]
    asked = {run.system for run in source.runs if run.condition == condition}
    if not source.card.buckets or not asked - set(BASELINES):
        return None
    boards = rank_runs(
        source.store,
        source.benchmark,
        condition=condition,
        systems=tuple(sorted(asked)),
        all_items=source.options.all_items,
        draws=_DRAWS,
        stability=_STABILITY,
        seed=source.options.seed,
    )
    blocks: list[Block | str] = []
    for number, board in enumerate(boards):
        blocks.append(f"{board.title}, {condition}")
        blocks.extend(_board(board, f"ranking-{number}"))
    return Section(
        key="ranking",
        title="Ranking over buckets",
        lead="In each bucket a system's rank is 1 plus the number of systems that are significantly better there, so that "
        "differences which are not real share a rank. A system beats another that it is ahead of in more buckets than "
        "behind; the score is systems beaten less systems lost to. Ties in the first three places are broken by how "
        "often each is best when the groups are drawn anew.",
        blocks=tuple(blocks),
    )


def _board(board: Board, key: str) -> list[Block]:
    blocks: list[Block] = [_places_table(board)]
    if any(one.standing.stability for one in board.runs):
        blocks.append(_blobs(board, key))
    blocks.append(Folded("Bucket by bucket", (_buckets_table(board), _duels_table(board))))
    notes = []
    if board.standings.empty:
        notes.append(f"Buckets without questions count for nothing: {', '.join(board.standings.empty)}.")
    if board.left_out:
        notes.append(f"{board.left_out} questions without a mark from some system are left out for all.")
    if board.standings.tau is not None:
        notes.append(
            f"Kendall's τ between this ranking and that of a sample of the groups is {board.standings.tau:.2f} on average."
        )
    return [*blocks, Prose(" ".join(notes), quiet=True)] if notes else blocks


def _places_table(board: Board) -> Table:
    columns = (
        Column("System"),
        Column("Place", numeric=True),
        Column("Places", numeric=True),
        Column("First", numeric=True),
        Column("Score", numeric=True),
        Column("Mean of buckets", numeric=True),
        Column("Win rate", numeric=True),
        Column(""),
    )
    rows = tuple(_row(one) for one in board.runs)
    caption = (
        f"{board.items} questions in {board.standings.groups} groups, {len(board.standings.buckets)} buckets."
    )
    return Table(caption, columns, rows)


def _row(one: RankedRun) -> tuple[Cell | str | int, ...]:
    standing, stability = one.standing, one.standing.stability
    remarks = ["tie broken"] if standing.tie_broken else []
    remarks += ["below the line: does not beat every baseline"] if one.below else []
    remarks += [f"{one.missing} missing"] if one.missing else []
    return (
        Cell(standing.name, badge="baseline" if one.baseline else ""),
        Cell(str(standing.place), strong=True),
        "–" if stability is None else f"{stability.place_low} to {stability.place_high}",
        "–" if stability is None else _percent(stability.chances[0]),
        f"{standing.score:+g}".replace("-", "−"),
        _percent(standing.mean),
        _percent(standing.win_rate),
        ", ".join(remarks),
    )


def _blobs(board: Board, key: str) -> Figure:
    names = [one.standing.name for one in board.runs]
    chances = [one.standing.stability.chances if one.standing.stability else () for one in board.runs]
    blobs = Blobs(names, chances, [one.standing.place for one in board.runs])
    columns = (Column("System"), *(Column(str(place + 1), numeric=True) for place in range(len(names))))
    numbers = Table(
        "The chance of every place.",
        columns,
        tuple(
            (Cell(name), *(_percent(one) for one in row)) for name, row in zip(names, chances, strict=True)
        ),
    )
    caption = "The chance of every place when groups are drawn anew and all is done again; a ring is the place above."
    return Figure(draw_blobs(key, f"Places: {board.title}", blobs), caption, numbers)


def _buckets_table(board: Board) -> Table:
    names = [one.standing.name for one in board.runs]
    rows = []
    for number, bucket in enumerate(board.standings.buckets):
        cells: list[Cell | str | int] = [Cell(bucket)]
        for one in board.runs:
            rank, score = one.standing.ranks[number], one.standing.scores[number]
            cells.append("–" if rank is None else f"{rank} ({_percent(score)})")
        rows.append(tuple(cells))
    columns = (Column("Bucket"), *(Column(name, numeric=True) for name in names))
    return Table("Rank and accuracy in each bucket.", columns, tuple(rows))


def _duels_table(board: Board) -> Table:
    names = [one.standing.name for one in board.runs]
    rows: list[tuple[Cell | str | int, ...]] = []
    for one in board.runs:
        standing = one.standing
        duels = [
            f"{standing.ahead[name]}–{standing.behind[name]}–{standing.tied[name]}"
            if name in standing.ahead
            else ""
            for name in names
        ]
        rows.append((Cell(standing.name), *duels))
    columns = (Column("System"), *(Column(name, numeric=True) for name in names))
    return Table("Buckets won, lost and tied against each other system.", columns, tuple(rows))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
