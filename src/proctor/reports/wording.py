"""What is said beside numbers, in the same words for the terminal and the report."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core import FailedPolicy, Metric, difference, p_value, value
from proctor.media import CONDITIONS
from proctor.runs import (
    BOTH,
    FAILED_POLICIES,
    BenchmarkCard,
    Board,
    Comparison,
    Lacking,
    LeaderboardRow,
    Result,
    policies,
)

DECIDED_LINE = "Decided by a person: the judge left the answer unresolved, and a person gave the score in its place."


def score(metric: Metric, row: Result | LeaderboardRow) -> str:
    """The value of a row, or its range where the run is incomplete and nothing is decided."""
    if row.policy != BOTH:
        return value(metric, row.value)
    return f"{value(metric, row.if_wrong)} … {value(metric, row.if_excluded)}"


def difference_of(metric: Metric, one: Comparison) -> str:
    """The difference of two runs, or its range where one is incomplete and nothing is decided."""
    if one.policy != BOTH:
        return difference(metric, one.difference.value)
    return f"{difference(metric, one.if_wrong.value)} … {difference(metric, one.if_excluded.value)}"


def badge_of(row: LeaderboardRow) -> str:
    """What is said beside the name of a system."""
    if row.disqualified:
        return "disqualified"
    return "oracle baseline" if row.oracle_baseline else ""


def condition_line(condition: str) -> str:
    """A condition with what it shows, where it is a known one.

    >>> condition_line("reversed")
    'reversed: the same pictures from last to first, while times and labels stay'
    >>> condition_line("of-a-package-that-is-not-installed")
    'of-a-package-that-is-not-installed'
    """
    meaning = CONDITIONS.get(condition).summary if condition in CONDITIONS.names() else ""
    return f"{condition}: {meaning}" if meaning else condition


def policy_line(failed: FailedPolicy | None, card: BenchmarkCard) -> str:
    """How the items are counted that a run lacks a score for, and how to decide it."""
    chosen = policies(failed, card)
    if len(chosen) > 1:
        return (
            "A range is the score of an incomplete run: its failed, unasked and unresolved items counted as wrong … left "
            "out. Run the same command again to ask them, or choose --failed wrong or exclude."
        )
    whose = "" if failed else " (the benchmark's rule)"
    return f"--failed {chosen[0]}{whose}: {FAILED_POLICIES[chosen[0]]}."


def remarks(lacking: Lacking) -> list[str]:
    """What a run lacks, as short as a cell of a table.

    >>> remarks(Lacking(missing=54, untimed=3))
    ['54 missing', 'no latency 3']
    """
    counts = (
        (lacking.missing, "{} missing"),
        (lacking.not_asked, "{} not asked"),
        (lacking.failed, "{} failed"),
        (lacking.unresolved, "{} unresolved"),
        (lacking.unmarked, "{} not marked"),
        (lacking.unsupported, "{} not supported"),
        (lacking.untimed, "no latency {}"),
    )
    return [text.format(count) for count, text in counts if count]


def mean_rank(rank: int | None, low: int | None, high: int | None) -> str:
    """The rank by the mean with its confidence interval.

    >>> mean_rank(2, 1, 3), mean_rank(1, 1, 1), mean_rank(None, None, None)
    ('2 (1 to 3)', '1 (1)', '–')
    """
    if rank is None or low is None or high is None:
        return "–"
    return f"{rank} ({low} to {high})" if low < high else f"{rank} ({low})"


def board_notes(board: Board) -> list[str]:
    """One sentence for everything that a reader of the places must know."""
    found = [*_policy(board), *_latency(board), *_buckets(board)]
    if board.disqualified:
        found.append(f"Disqualified, and not ranked: {'; '.join(map(str, board.disqualified))}.")
    if board.judge != "code":
        found.append(f"Free text is right or wrong by {board.judge}.")
    if board.left_out:
        found.append(f"{board.left_out} questions have no scorer (free text without a judge) and are left out.")
    if board.unbucketed:
        found.append(
            f"{board.unbucketed} questions lack a tag of the buckets, or have two values of it: they are in no bucket and "
            "count for nobody."
        )
    standings = board.standings
    if standings.tau is not None and standings.tau_low is not None:
        equal = (
            "" if standings.tau_equal is None else f"; systems that are all equal would give {standings.tau_equal:.2f}"
        )
        found.append(
            f"Kendall's tau to the ranking of each sample: mean {standings.tau:.2f}, 2.5 % below {standings.tau_low:.2f}"
            f"{equal}."
        )
    return found


def _policy(board: Board) -> list[str]:
    lacks = [one.standing.name for one in board.runs if one.lacking.incomplete]
    found = []
    if board.unranked:
        names = ", ".join(one.name for one in board.unranked)
        found.append(
            f"Not ranked, since the run is incomplete and what it lacks may change a place: {names} (running again completes "
            "it; --failed wrong counts it as wrong)."
        )
    if lacks and FailedPolicy.EXCLUDE in board.policies:
        found.append(f"Incomplete: {', '.join(lacks)}; what they lack can't change any place.")
    elif lacks or any(one.lacking.incomplete for one in board.baselines):
        text = FAILED_POLICIES[board.policies[0]]
        found.append(f"{text[0].upper()}{text[1:]} (--failed {board.policies[0].value}).")
    return found


def _latency(board: Board) -> list[str]:
    untimed = [f"{one.standing.name} {one.lacking.untimed}" for one in board.runs if one.lacking.untimed]
    if not untimed:
        return []
    names = ", ".join(untimed)
    if board.timed:
        return [f"Answers without a latency count as late, so as wrong (--latency optional lets them in): {names}."]
    return [f"Answers without a latency count as in time, which nobody knows (--latency required): {names}."]


def _buckets(board: Board) -> list[str]:
    standings, found = board.standings, []
    if standings.empty:
        found.append(f"Buckets without questions count for nothing: {', '.join(standings.empty)}.")
    groups = dict(zip(standings.buckets, standings.bucket_groups, strict=True))
    few = [
        f"{name} ({groups[name]} groups, smallest adjusted p {p_value(least)})"
        for name, least in board.powerless.items()
    ]
    if few:
        found.append(f"Too few groups for any difference to be significant, so all share rank 1: {'; '.join(few)}.")
    return found


def who_advances(boards: Sequence[Board]) -> str:
    """Who beats all baselines on at least one board; empty without baselines."""
    known = {one.standing.name: one.advances for board in boards for one in board.runs}
    if not any(board.baselines for board in boards):
        return ""
    names = sorted(name for name, advances in known.items() if advances)
    return f"Beats all baselines on at least one board: {', '.join(names) or 'nobody'}."
