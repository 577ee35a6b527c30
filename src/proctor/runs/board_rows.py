"""Leaderboards as rows, for programs and frames."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from proctor.runs.analysis.boards import duels_of, rule_rows
from proctor.runs.contestants import Lacking
from proctor.runs.ranking import Board


def board_rows(board: Board) -> list[dict[str, Any]]:
    """One flat row a system, as programs read it: `mean` is the pre-evaluation score with its rank and that rank's
    confidence interval, `won`, `lost` and `tied` are duels with the others, `place_low` to `place_high` the spread of the
    place over samples. Baselines and runs that can't be ranked have no place; those have `mean_if_wrong` and
    `mean_if_excluded` for a mean."""
    rows = []
    for one in board.runs:
        standing = one.standing
        won, lost, tied = duels_of(standing)
        stability = standing.stability
        rows.append(
            _flat(board, standing.name, one.lacking)
            | {
                "place": standing.place,
                "score": standing.score,
                "won": won,
                "lost": lost,
                "tied": tied,
                "mean": standing.mean,
                "rank_by_mean": standing.mean_rank,
                "rank_low": standing.rank_low,
                "rank_high": standing.rank_high,
                "win_rate": standing.win_rate,
                "tie_broken": standing.tie_broken,
                "duel_rate": standing.duel_rate,
                "place_low": None if stability is None else stability.place_low,
                "place_high": None if stability is None else stability.place_high,
                "p_first": None if stability is None else stability.chances[0],
                "below_line": one.below,
                "advances": one.advances,
            }
        )
    rows += [
        _flat(board, one.name, one.lacking) | {"mean_if_wrong": one.low, "mean_if_excluded": one.high}
        for one in board.unranked
    ]
    rows += [_flat(board, base.name, base.lacking) | {"mean": base.mean, "baseline": True} for base in board.baselines]
    return rows


_COLUMNS = (
    *("board", "place", "system", "score", "won", "lost", "tied", "mean", "rank_by_mean", "rank_low", "rank_high"),
    *("win_rate", "tie_broken", "duel_rate", "place_low", "place_high", "p_first", "baseline", "below_line"),
    *("advances", "mean_if_wrong", "mean_if_excluded"),
)


def _flat(board: Board, system: str, lacking: Lacking) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    return row | {"board": board.name, "system": system, "baseline": False} | asdict(lacking)


def board_json(board: Board) -> dict[str, Any]:
    """One board with all that is known of it, as programs read it."""
    standings = board.standings
    details: list[dict[str, Any]] = [
        {
            "ranks": dict(zip(standings.buckets, one.standing.ranks, strict=True)),
            "scores": dict(zip(standings.buckets, one.standing.scores, strict=True)),
            "buckets_ahead": one.standing.ahead,
            "buckets_behind": one.standing.behind,
            "buckets_tied": one.standing.tied,
            "chances": None if one.standing.stability is None else list(one.standing.stability.chances),
        }
        for one in board.runs
    ]
    details += [{} for _ in board.unranked]
    details += [{"scores": dict(zip(standings.buckets, one.scores, strict=True))} for one in board.baselines]
    return {
        "board": board.name,
        "rule": standings.rule,
        "questions": board.items,
        "marked_by": board.judge,
        "failed": [policy.value for policy in board.policies],
        "latency": "required" if board.timed else "optional",
        "left_out": board.left_out,
        "unbucketed": board.unbucketed,
        "groups": standings.groups,
        "empty_buckets": list(standings.empty),
        "bucket_groups": dict(zip(standings.buckets, standings.bucket_groups, strict=True)),
        "smallest_p": dict(zip(standings.buckets, standings.reach, strict=True)),
        "too_few_groups": list(board.powerless),
        "disqualified": [one.model_dump(include={"system", "reason", "since"}) for one in board.disqualified],
        "tau": standings.tau,
        "tau_low": standings.tau_low,
        "tau_if_equal": standings.tau_equal,
        "rules": [{name: row[name] for name in ("rule", "system", "place", "score")} for row in rule_rows([board])],
        "systems": [row | more for row, more in zip(board_rows(board), details, strict=True)],
        "p_values": {name: table.tolist() for name, table in zip(standings.buckets, standings.p_values, strict=True)},
    }
