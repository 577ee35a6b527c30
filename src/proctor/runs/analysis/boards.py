"""The tables that a board gives: places and how they move, other rules, who is better in which bucket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from proctor.core import InputError
from proctor.runs.analysis.gathered import Row
from proctor.runs.ranking import Board
from proctor.stats import RULES, Options, Standing, paired_difference
from proctor.stats.voting import RANK_RULES, places

__all__ = [
    "duel_rows",
    "duels_of",
    "lead_rows",
    "place_rows",
    "ranking_rows",
    "rule_rows",
    "significance_rows",
    "tau_rows",
]

_UNIT = Options(bounds=(0.0, 1.0))


def ranking_rows(boards: Sequence[Board]) -> list[Row]:
    """One row a system and board: its place with its interval and standard deviation over samples, the score of
    the rule, the mean over the buckets, and the duels with all other systems that it won, lost and tied."""
    rows = []
    for board in boards:
        for one in board.runs:
            standing, moved = one.standing, one.standing.stability
            won, lost, tied = duels_of(standing)
            rows.append(
                {
                    "board": board.name,
                    "system": standing.name,
                    "place": standing.place,
                    "score": standing.score,
                    "mean": standing.mean,
                    "win_rate": standing.win_rate,
                    "place_low": moved.place_low if moved else None,
                    "place_high": moved.place_high if moved else None,
                    "place_sd": _spread(moved.chances) if moved else None,
                    "won": won,
                    "lost": lost,
                    "tied": tied,
                    "baseline": one.baseline,
                    "below_line": one.below,
                    "tau": board.standings.tau,
                }
            )
    return rows


def duels_of(standing: Standing) -> tuple[int, int, int]:
    """How many other systems it beats (is ahead of in more buckets than behind), loses to, and is level with."""
    leads = [standing.ahead[name] - standing.behind[name] for name in standing.ahead]
    return sum(one > 0 for one in leads), sum(one < 0 for one in leads), leads.count(0)


def _spread(chances: Sequence[float]) -> float:
    place = np.arange(1, len(chances) + 1)
    mean = np.average(place, weights=chances)
    return float(np.sqrt(np.average((place - mean) ** 2, weights=chances)))


def place_rows(boards: Sequence[Board]) -> list[Row]:
    """The chance of every place, in long form: what a blob plot shows."""
    return [
        {"board": board.name, "system": one.standing.name, "place": place, "chance": chance}
        for board in boards
        for one in board.runs
        if one.standing.stability is not None
        for place, chance in enumerate(one.standing.stability.chances, start=1)
    ]


def rule_rows(boards: Sequence[Board]) -> list[Row]:
    """Every system's score and place under every rule, from the same ranks in the buckets. Ties are not broken,
    so that the rules alone are compared; "copeland" may therefore share places that the board does not."""
    rows = []
    for board in boards:
        systems = [one.standing for one in board.runs]
        ranks = np.array([one.ranks for one in systems], dtype=np.float64).T
        for rule in RULES:
            if rule in RANK_RULES:
                scores = RANK_RULES[rule](ranks)
            else:
                values = [one.mean if rule == "mean" else one.win_rate for one in systems]
                scores = np.array([0.0 if value is None else value for value in values])
            rows += [
                {
                    "board": board.name,
                    "system": one.name,
                    "rule": rule,
                    "score": float(score),
                    "place": int(place),
                }
                for one, score, place in zip(systems, scores, places(scores), strict=True)
            ]
    return rows


def significance_rows(boards: Sequence[Board]) -> list[Row]:
    """Every pair in every bucket: who has the better accuracy there, and the adjusted p. `better` is empty where
    p is above the level of the tests, or the bucket is empty: what a significance map shows."""
    rows = []
    for board in boards:
        systems = [one.standing for one in board.runs]
        for number, (bucket, table) in enumerate(
            zip(board.standings.buckets, board.standings.p_values, strict=True)
        ):
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


def duel_rows(boards: Sequence[Board]) -> list[Row]:
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


def tau_rows(boards: Sequence[Board]) -> list[Row]:
    """Kendall's τ-b between the published ranking and those of samples of groups: its spread over samples."""
    rows: list[Row] = []
    for board in boards:
        taus = board.standings.taus
        row: Row = {"board": board.name, "samples": len(taus), "mean": board.standings.tau}
        for name, share in (("p2_5", 0.025), ("q1", 0.25), ("median", 0.5), ("q3", 0.75), ("p97_5", 0.975)):
            row[name] = float(np.quantile(taus, share)) if taus else None
        rows.append(row)
    return rows


def lead_rows(
    board: Board, system: str, against: Sequence[str] = (), **options: Unpack[Options]
) -> list[Row]:
    """Bucket by bucket, and on all questions, how far one system is ahead of others (default: of the baselines,
    without any of all others), with interval and p.

    In a bucket p is that of the ranking: adjusted over all pairs of the board. On all questions it is that of
    the one comparison. Options are those of the intervals (`proctor.stats.Resampling`); tests draw whole groups
    whatever they say. Raises `InputError` for a system that is not on the board.
    """
    names = [one.standing.name for one in board.runs]
    for name in (system, *against):
        if name not in names:
            raise InputError(
                None, f"board {board.name}", found=repr(name), expected=f"one of {', '.join(names)}"
            )
    own = [one.standing.name for one in board.runs if one.baseline]
    others = [name for name in against or own or names if name != system]
    marks, rows = board.marks, []
    for other in others:
        i, j = names.index(system), names.index(other)
        for number, bucket in enumerate(("all", *board.standings.buckets), start=-1):
            here = (marks.bucket == number) | (number < 0)
            if not here.any():
                continue
            first, second = marks.right[system][here], marks.right[other][here]
            one = paired_difference(first, second, marks.group[here], **(options | _UNIT))
            p = one.p if number < 0 else float(board.standings.p_values[number][i, j])
            rows.append(
                {
                    "board": board.name,
                    "system": system,
                    "against": other,
                    "bucket": bucket,
                    "n": one.n,
                    "groups": one.groups,
                    "lead": one.value,
                    "ci_low": one.ci_low,
                    "ci_high": one.ci_high,
                    "p": p,
                    "verdict": _verdict(one.value, p, board.alpha),
                    "two_level": options.get("two_level", False),
                }
            )
    return rows


def _verdict(lead: float | None, p: float | None, alpha: float) -> str:
    if not lead or p is None or p > alpha:
        return "not shown"
    return "ahead" if lead > 0 else "behind"
