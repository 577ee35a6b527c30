"""The tables that a board gives: rows for programs, places and how they move, who is better in which bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from proctor.core import InputError
from proctor.runs.performance import AnalysisRow
from proctor.runs.ranking import Board
from proctor.runs.run_scores import Lacking
from proctor.stats import RANK_RULES, RULES, Resampling, Standing, holm, paired_difference, places

TOO_FEW = "too few groups"
"""The verdict where no p could be significant, whatever the answers."""


_PLACES = (
    *("board", "system", "place", "score", "mean", "win_rate", "place_low", "place_high", "place_sd", "won", "lost"),
    *("tied", "baseline", "below_line", "tau", "rank_by_mean", "rank_low", "rank_high"),
)


def ranking_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """One row a system and board: its place with its spread and standard deviation over samples, the score of the rule,
    the mean over the buckets with its rank and that rank's confidence interval, and how many of its pairs with other
    systems it won, lost and tied. A baseline has its mean alone."""
    rows = []
    for board in boards:
        moved = {one.standing.name: one.standing.stability for one in board.runs}
        for row in board_rows(board):
            if row["place"] is None and not row["baseline"]:
                continue
            spread = moved.get(row["system"])
            more = {"place_sd": place_sd(spread.chances) if spread else None}
            more["tau"] = None if row["baseline"] else board.standings.tau
            rows.append({name: (row | more)[name] for name in _PLACES})
    return rows


def wins_of(standing: Standing) -> tuple[int, int, int]:
    """How many other systems it beats (is ahead of in more buckets than behind), loses to, and is level with."""
    leads = [standing.ahead[name] - standing.behind[name] for name in standing.ahead]
    return sum(one > 0 for one in leads), sum(one < 0 for one in leads), leads.count(0)


def place_sd(chances: Sequence[float]) -> float:
    """The standard deviation of a place over samples, from the share of samples with each place from 1 on.

    >>> place_sd((0.5, 0.5))
    0.5
    """
    place = np.arange(1, len(chances) + 1)
    mean = np.average(place, weights=chances)
    return float(np.sqrt(np.average((place - mean) ** 2, weights=chances)))


def place_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """The chance of every place, in long form: what a blob plot shows."""
    return [
        {"board": board.name, "system": one.standing.name, "place": place, "chance": chance}
        for board in boards
        for one in board.runs
        if one.standing.stability is not None
        for place, chance in enumerate(one.standing.stability.chances, start=1)
    ]


def rule_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """Every system's score and place under every rule, from the same ranks in the buckets. Ties are not broken,
    so that the rules alone are compared; "copeland" may therefore share places that the board does not."""
    rows = []
    for board in boards:
        systems = [one.standing for one in board.runs]
        shape = (len(systems), len(board.standings.buckets))
        ranks = np.array([one.ranks for one in systems], dtype=np.float64).reshape(shape).T
        for rule in RULES:
            means = np.array([one.mean or 0.0 for one in systems])
            scores = RANK_RULES[rule](ranks) if rule in RANK_RULES else means
            rows += [
                {"board": board.name, "system": one.name, "rule": rule, "score": float(score), "place": int(place)}
                for one, score, place in zip(systems, scores, places(scores), strict=True)
            ]
    return rows


def significance_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """Every pair in every bucket: who has the better accuracy there, and the adjusted p. `better` is empty where
    p is above the level of the tests, or the bucket is empty: what a significance map shows."""
    rows = []
    for board in boards:
        systems = [one.standing for one in board.runs]
        for number, (bucket, table) in enumerate(zip(board.standings.buckets, board.standings.p_values, strict=True)):
            for i, first in enumerate(systems):
                for j, second in enumerate(systems[i + 1 :], start=i + 1):
                    rows.append(
                        {
                            "board": board.name,
                            "bucket": bucket,
                            "first": first.name,
                            "second": second.name,
                            "p": float(table[i, j]),
                            "better": _better(first, second, number, float(table[i, j]), board.alpha),
                        }
                    )
    return rows


def _better(first: Standing, second: Standing, bucket: int, p: float, alpha: float) -> str:
    one, other = first.scores[bucket], second.scores[bucket]
    if one is None or other is None or one == other or p > alpha:
        return ""
    return first.name if one > other else second.name


def pairwise_win_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """Every pair: the buckets in which the first has the better rank, the worse, and the same."""
    return [
        {
            "board": board.name,
            "first": one.standing.name,
            "second": name,
            "won": one.standing.ahead[name],
            "lost": one.standing.behind[name],
            "tied": one.standing.tied[name],
        }
        for board in boards
        for place, one in enumerate(board.runs)
        for name in [other.standing.name for other in board.runs[place + 1 :]]
    ]


def tau_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """Kendall's τ-b between the published ranking and those of samples of groups: its spread over samples, and what the
    mean would be if all systems were equal (samples of one benchmark always agree with its own ranking)."""
    rows: list[AnalysisRow] = []
    for board in boards:
        taus = board.standings.taus
        row: AnalysisRow = {"board": board.name, "samples": len(taus), "mean": board.standings.tau}
        row["mean_if_equal"] = board.standings.tau_equal
        for name, share in (("p2_5", 0.025), ("q1", 0.25), ("median", 0.5), ("q3", 0.75), ("p97_5", 0.975)):
            row[name] = float(np.quantile(taus, share)) if taus else None
        rows.append(row)
    return rows


def lead_rows(
    board: Board, system: str, against: Sequence[str] = (), plan: Resampling = Resampling()
) -> list[AnalysisRow]:
    """Bucket by bucket, and on all questions, how far one system is ahead of others (default: of the baselines,
    without any of all others), with interval and p, on the questions that both have a mark for.

    `p` is that of the one comparison; `p_adjusted` is adjusted by Holm over the buckets against the same system, unless
    the board's tests are not adjusted, and decides the verdict. The comparison on all questions stands alone: its two p
    are equal. A bucket whose groups are too few for any p to be significant says so. `plan` is that of the intervals;
    tests draw whole groups whatever it says. Raises `InputError` for a system that is not
    on the board, or has no rank there since its run is incomplete.
    """
    ranked = [one.standing.name for one in board.runs]
    open_ones = [one.name for one in board.unranked]
    for name in (system, *against):
        if name in open_ones:
            shown = f"{name!r}, whose run is incomplete"
            raise InputError(f"board {board.name}", found=shown, expected="--failed wrong")
        if name not in board.names:
            expected = f"one of {', '.join(board.names)}"
            raise InputError(f"board {board.name}", found=repr(name), expected=expected)
    own = [one.name for one in board.baselines]
    rows = []
    for other in [name for name in against or own or ranked if name != system]:
        found = [_lead(board, system, other, number, plan) for number in range(-1, len(board.standings.buckets))]
        rows += _judged(board, [row for row in found if row["n"]])
    return rows


def _lead(board: Board, system: str, other: str, number: int, plan: Resampling) -> AnalysisRow:
    """One comparison in one bucket, or on all questions (−1)."""
    marks = board.marks
    first, second = marks.right[system], marks.right[other]
    here = ((marks.bucket == number) | (number < 0)) & ~np.isnan(first) & ~np.isnan(second)
    one = paired_difference(first[here], second[here], marks.group[here], plan.within(0, 1))
    return {
        "board": board.name,
        "system": system,
        "against": other,
        "bucket": ("all", *board.standings.buckets)[number + 1],
        "n": one.n,
        "groups": one.groups,
        "lead": one.value,
        "ci_low": one.ci_low,
        "ci_high": one.ci_high,
        "p": one.p,
        "two_level": plan.two_level,
    }


def _judged(board: Board, rows: list[AnalysisRow]) -> list[AnalysisRow]:
    """The rows against one system with adjusted p and verdict; the first is that of all questions."""
    buckets = [row for row in rows[1:] if row["p"] is not None]
    adjusts = board.correction != "none"
    p = [row["p"] for row in buckets]
    adjusted = dict(zip(map(id, buckets), holm(p).tolist() if adjusts else p, strict=True))
    judged = []
    for number, row in enumerate(rows):
        alone = number == 0 or not adjusts
        least = (1 if alone else len(buckets)) * 2.0 ** (1 - row["groups"])
        value = row["p"] if number == 0 else adjusted.get(id(row))
        verdict = TOO_FEW if least > board.alpha else _verdict(row["lead"], value, board.alpha)
        judged.append(row | {"p_adjusted": value, "verdict": verdict})
    return judged


def _verdict(lead: float | None, p: float | None, alpha: float) -> str:
    if not lead or p is None or p > alpha:
        return "not shown"
    return "ahead" if lead > 0 else "behind"


def board_rows(board: Board) -> list[dict[str, Any]]:
    """One flat row a system, as programs read it: `mean` is the pre-evaluation score with its rank and that rank's
    confidence interval, `won`, `lost` and `tied` are pairwise wins, losses and ties, `place_low` to `place_high` the
    spread of the place over samples. Baselines and runs that can't be ranked have no place; those have `mean_if_wrong`
    and `mean_if_excluded` for a mean."""
    rows = []
    for one in board.runs:
        standing = one.standing
        won, lost, tied = wins_of(standing)
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
