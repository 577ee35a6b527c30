"""Tables, made once for the terminal and for the page."""

from proctor.reports.tables.boards import (
    baselines_table,
    board_tables,
    buckets_table,
    detail_tables,
    leads_tables,
    places_table,
    unranked_table,
)
from proctor.reports.tables.scores import (
    comparison_blocks,
    differences_table,
    leaderboard_table,
    levels_table,
    results_tables,
    span_of,
)

__all__ = [
    "baselines_table",
    "board_tables",
    "buckets_table",
    "comparison_blocks",
    "detail_tables",
    "differences_table",
    "leaderboard_table",
    "leads_tables",
    "levels_table",
    "places_table",
    "results_tables",
    "span_of",
    "unranked_table",
]
