"""Runs: the engine that asks, the store that keeps, and the numbers that follow from it."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.runs.analysis.analyse import Analysis, analyse, write_tables
    from proctor.runs.baselines import FLOOR, add_floor, audit_stored, derive_guessable, flag_guessable, skipped_floor
    from proctor.runs.board_rows import board_json, board_rows
    from proctor.runs.cards import BenchmarkCard, Ruling
    from proctor.runs.compare import Comparison, Comparisons, Side, compare, compare_runs, condition_pairs
    from proctor.runs.contestants import Contest, Lacking, Latency, chosen_baselines
    from proctor.runs.decisions import DecisionCounts, OpenAnswer, decide, open_answers, write_open
    from proctor.runs.engine import Job, Limits, Tally, ask, ask_all
    from proctor.runs.estimate import PICTURE_TOKENS, RunEstimate, estimate_runs
    from proctor.runs.export import COLUMNS, export, export_rows, pseudonyms_of, public_copy, safe_cell
    from proctor.runs.housekeeping import check_store, delete_benchmark, delete_runs, rename_system, stored_runs
    from proctor.runs.identity import ORACLE
    from proctor.runs.judge_agreement import FlaggedVote, JudgeAgreement, JudgePair, flagged_votes, judge_agreement
    from proctor.runs.judgements import DimensionJudgement, RatingSummary, judgements_of, rating_summary
    from proctor.runs.judging import JudgeLimits, JudgeTally, PaidVotes, judge_all
    from proctor.runs.leaderboard import Leaderboard, LeaderboardRow, leaderboard
    from proctor.runs.missing import FAILED_POLICIES, policies
    from proctor.runs.official import OfficialSummary, official_summaries
    from proctor.runs.one_item import GivenAnswer, ItemHistory, item_history
    from proctor.runs.plan import Outcome, Plan, PlanOptions, chosen_items, execute, left_failed, plan
    from proctor.runs.ranking import BaselineRun, Board, RankedRun, UnrankedRun, rank_runs
    from proctor.runs.ratings import (
        add_recorded_scores,
        answer_keys,
        compared,
        judges_of,
        people_ratings,
        rated_cases,
        scored_cases,
        similarity_scores,
    )
    from proctor.runs.recorded import import_answers, import_systems
    from proctor.runs.report_data import (
        Consumption,
        OrderedRun,
        load_answers,
        load_consumption,
        load_orders,
        load_scores,
        newest_run,
        status_counts,
    )
    from proctor.runs.results import BOTH, Options, Result, Results, chosen_runs, results
    from proctor.runs.rulings import disqualify, reinstate
    from proctor.runs.scoring import score_answers
    from proctor.runs.store import Run, Store
    from proctor.runs.submissions import ScoredAnswer, scored_answers
    from proctor.runs.table import CODE, ItemTable, load_items
else:
    export_lazily(__name__)

__all__ = [
    "BOTH",
    "CODE",
    "COLUMNS",
    "FAILED_POLICIES",
    "FLOOR",
    "ORACLE",
    "PICTURE_TOKENS",
    "Analysis",
    "BaselineRun",
    "BenchmarkCard",
    "Board",
    "Comparison",
    "Comparisons",
    "Consumption",
    "Contest",
    "DecisionCounts",
    "DimensionJudgement",
    "FlaggedVote",
    "GivenAnswer",
    "ItemHistory",
    "ItemTable",
    "Job",
    "JudgeAgreement",
    "JudgeLimits",
    "JudgePair",
    "JudgeTally",
    "Lacking",
    "Latency",
    "Leaderboard",
    "LeaderboardRow",
    "Limits",
    "OfficialSummary",
    "OpenAnswer",
    "Options",
    "OrderedRun",
    "Outcome",
    "PaidVotes",
    "Plan",
    "PlanOptions",
    "RankedRun",
    "RatingSummary",
    "Result",
    "Results",
    "Ruling",
    "Run",
    "RunEstimate",
    "ScoredAnswer",
    "Side",
    "Store",
    "Tally",
    "UnrankedRun",
    "add_floor",
    "add_recorded_scores",
    "analyse",
    "answer_keys",
    "ask",
    "ask_all",
    "audit_stored",
    "board_json",
    "board_rows",
    "check_store",
    "chosen_baselines",
    "chosen_items",
    "chosen_runs",
    "compare",
    "compare_runs",
    "compared",
    "condition_pairs",
    "decide",
    "delete_benchmark",
    "delete_runs",
    "derive_guessable",
    "disqualify",
    "estimate_runs",
    "execute",
    "export",
    "export_rows",
    "flag_guessable",
    "flagged_votes",
    "import_answers",
    "import_systems",
    "item_history",
    "judge_agreement",
    "judge_all",
    "judgements_of",
    "judges_of",
    "leaderboard",
    "left_failed",
    "load_answers",
    "load_consumption",
    "load_items",
    "load_orders",
    "load_scores",
    "newest_run",
    "official_summaries",
    "open_answers",
    "people_ratings",
    "plan",
    "policies",
    "pseudonyms_of",
    "public_copy",
    "rank_runs",
    "rated_cases",
    "rating_summary",
    "reinstate",
    "rename_system",
    "results",
    "safe_cell",
    "score_answers",
    "scored_answers",
    "scored_cases",
    "similarity_scores",
    "skipped_floor",
    "status_counts",
    "stored_runs",
    "write_open",
    "write_tables",
]
