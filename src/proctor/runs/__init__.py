"""Runs: the engine that asks, the store that keeps, and the numbers that follow from it."""

from proctor.runs.cards import BenchmarkCard
from proctor.runs.compare import LEVELS, Comparison, Comparisons, Side, compare, compare_runs, condition_pairs
from proctor.runs.engine import Job, Limits, Tally, ask, ask_all
from proctor.runs.export import COLUMNS, export, export_rows
from proctor.runs.importing import import_answers
from proctor.runs.results import FAILED_POLICIES, Options, Result, Results, chosen_runs, results
from proctor.runs.store import Run, Store

__all__ = [
    "COLUMNS",
    "FAILED_POLICIES",
    "LEVELS",
    "BenchmarkCard",
    "Comparison",
    "Comparisons",
    "Job",
    "Limits",
    "Options",
    "Result",
    "Results",
    "Run",
    "Side",
    "Store",
    "Tally",
    "ask",
    "ask_all",
    "chosen_runs",
    "compare",
    "compare_runs",
    "condition_pairs",
    "export",
    "export_rows",
    "import_answers",
    "results",
]
