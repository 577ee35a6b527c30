"""How much is drawn, listed or told before the rest is left to a table or a file: what a reader meets is a decision.

Each number stands with what it is about; the tests of sections and sessions hold what happens beyond it.
"""

from __future__ import annotations

from importlib import import_module

import pytest

LIMITS = {
    "cli.output:_WIDE": (240, "columns of what is no terminal"),
    "cli.output:_REASON": (60, "characters of a failure beside the bar"),
    "cli.output:_EVERY_S": (10.0, "seconds between lines without a terminal"),
    "cli.run:_CAUSES": (5, "causes told after a run"),
    "cli.run:FAILED_EXIT": (3, "the exit code where answers failed"),
    "cli.run:STOPPED_EXIT": (130, "the exit code of what was stopped"),
    "cli.score:UNSCORED_EXIT": (3, "the exit code where answers lack a verdict"),
    "cli.score:_FEW_PAIRS": (10, "pairs of metrics told in the terminal"),
    "shell.file_checks:_SHOWN": (100, "damaged rows shown"),
    "cli.benchmarks:_FRAMES": (64, "frames a prompt is shown for"),
    "reports.frames:_WIDE": (160, "columns of a table in plain text"),
    "api.analysis:_FRAMES": (4, "pictures of an item in a report"),
    "shell.reproduction:_LISTED": (20, "answers that differ"),
    "shell.reproduction:_CACHE": (2_000_000_000, "bytes of frames kept while it works"),
    "results.analyses:_MAX_VALUES": (24, "values of a facet"),
    "results.analyses:_MIN_STRATUM": (10, "questions of a stratum"),
    "results.performance:_REACH": (1.5, "widths of the box that whiskers reach"),
    "results.performance:_FEW": (3, "systems of the small vote"),
    "runs.bulk_sql:_PART": (500, "items of one query"),
    "reports.metric_profile:_MAX_CURVES": (9, "metrics whose residuals are drawn by length"),
    "reports.metric_profile:_MAX_MARKS": (4, "metrics beside the ratings"),
    "reports.metric_profile:_MAX_IN_FIGURE": (6, "metrics whose residuals are drawn"),
    "reports.metric_profile:_MAX_SLOPES": (40, "slopes that are drawn"),
    "reports.metric_agreement:_MAX_ROWS": (40, "metrics of a matrix"),
    "reports.metric_agreement:_MAX_OPEN": (24, "rows of a table that is open"),
    "reports.metric_ranking:_MAX_DRAWN": (40, "metrics of a drawing"),
    "reports.metric_ranking:_MAX_LANES": (8, "dimensions of a chart"),
    "reports.packing:PLAIN": (1_000_000, "characters of items that are plain, and of a block"),
    "reports.metric_ranking:_MAX_PAIRS_DRAWN": (15, "pairs of metrics drawn"),
    "reports.comparisons:_MAX_TABLES": (60, "tables of two runs"),
    "reports.subgroups:_MAX_LABELS": (12, "frames of an order"),
    "reports.subgroups:_MAX_SYSTEMS": (24, "systems of orders"),
    "reports.ranking:_MAX_IN_PANELS": (20, "systems in small maps"),
    "reports.blocks:_MAX_ROWS": (40, "rows behind a drawing"),
    "reports.analysis:_MAX_PAIRS": (45, "pairs of systems drawn"),
    "reports.analysis:_TOP": (10, "systems compared with the first"),
    "reports.analysis:_SHORT": (18, "characters of a name in a pair"),
    "reports.report_numbers:_STABILITY": (500, "samples behind a ranking in a report"),
    "reports.report_numbers:_FEW_SYSTEMS": (4, "systems that are compared pair by pair"),
}


@pytest.mark.parametrize("location", LIMITS)
def test_a_limit(location: str) -> None:
    module, _, name = location.partition(":")
    assert getattr(import_module(f"proctor.{module}"), name) == LIMITS[location][0], LIMITS[location][1]
