"""An audit in tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.cli.output import console, note, print_blocks

if TYPE_CHECKING:
    from proctor.audits import Audit, MetricRanking

_FEW_PAIRS = 10  # more are in --format json


def print_audit(audit: Audit) -> None:
    """One metric: agreement, raters, systems, lengths."""
    from proctor.reports import audit_tables

    for one in audit_tables(audit):
        print_blocks([one])
        console.print()


def print_board(board: MetricRanking) -> None:
    """Several metrics on one board, and their pairs where these are few."""
    from proctor.reports import metric_board_table, metric_pairs_table

    print_blocks([metric_board_table(board)])
    note(
        "Rank: 1 + the number of metrics that are significantly better, and never better than that of a higher mean. "
        "Metrics that share a tie can't be told apart."
    )
    if board.comparisons and len(board.comparisons) <= _FEW_PAIRS:
        print_blocks([metric_pairs_table(board)])
    console.print()
