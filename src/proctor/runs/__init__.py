"""Runs: the engine that asks, the store that keeps, and the numbers that follow from it."""

from proctor.runs.agreement import JudgeAgreement, JudgePair, judge_agreement
from proctor.runs.analysis import Analysis, analyse, write_tables
from proctor.runs.cards import BenchmarkCard, Ruling
from proctor.runs.compare import Comparison, Comparisons, Side, compare, compare_runs, condition_pairs
from proctor.runs.engine import Job, Limits, Tally, ask, ask_all
from proctor.runs.execute import Outcome, execute, left_failed
from proctor.runs.export import COLUMNS, export, export_rows
from proctor.runs.flagged import FlaggedVote, flagged_votes
from proctor.runs.floor import FLOOR, add_floor, skipped_floor
from proctor.runs.guessable import audit_stored, derive_guessable, flag_guessable
from proctor.runs.importing import import_answers
from proctor.runs.judges import judged_by, judges_of
from proctor.runs.judging import JudgeTally, PaidVotes, judge_all
from proctor.runs.leaderboard import Leaderboard, LeaderboardRow, leaderboard
from proctor.runs.missing import FAILED_POLICIES, policies
from proctor.runs.official import OfficialSummary, official_summaries
from proctor.runs.orders import OrderedRun, load_orders
from proctor.runs.plan import Plan, PlanOptions, chosen_items, plan
from proctor.runs.publishing import pseudonyms_of, public_copy
from proctor.runs.ranking import (
    BaselineRun,
    Board,
    Contest,
    Lacking,
    Latency,
    RankedRun,
    UnrankedRun,
    rank_runs,
)
from proctor.runs.results import BOTH, Options, Result, Results, chosen_runs, results
from proctor.runs.rulings import disqualify, reinstate
from proctor.runs.store import Run, Store
from proctor.runs.store_check import check_store

__all__ = [
    "BOTH",
    "COLUMNS",
    "FAILED_POLICIES",
    "FLOOR",
    "Analysis",
    "BaselineRun",
    "BenchmarkCard",
    "Board",
    "Comparison",
    "Comparisons",
    "Contest",
    "FlaggedVote",
    "Job",
    "JudgeAgreement",
    "JudgePair",
    "JudgeTally",
    "Lacking",
    "Latency",
    "Leaderboard",
    "LeaderboardRow",
    "Limits",
    "OfficialSummary",
    "Options",
    "OrderedRun",
    "Outcome",
    "PaidVotes",
    "Plan",
    "PlanOptions",
    "RankedRun",
    "Result",
    "Results",
    "Ruling",
    "Run",
    "Side",
    "Store",
    "Tally",
    "UnrankedRun",
    "add_floor",
    "analyse",
    "ask",
    "ask_all",
    "audit_stored",
    "check_store",
    "chosen_items",
    "chosen_runs",
    "compare",
    "compare_runs",
    "condition_pairs",
    "derive_guessable",
    "disqualify",
    "execute",
    "export",
    "export_rows",
    "flag_guessable",
    "flagged_votes",
    "import_answers",
    "judge_agreement",
    "judge_all",
    "judged_by",
    "judges_of",
    "leaderboard",
    "left_failed",
    "load_orders",
    "official_summaries",
    "plan",
    "policies",
    "pseudonyms_of",
    "public_copy",
    "rank_runs",
    "reinstate",
    "results",
    "skipped_floor",
    "write_tables",
]
