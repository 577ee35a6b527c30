"""Results: what is read from a store and computed: arrays, scores, comparisons, rankings and analyses. Nothing here writes."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.results.analyses import Analysis, analyse, write_tables
    from proctor.results.answer_details import (
        OrderedRun,
        load_answers,
        load_orders,
        load_scores,
        newest_run,
        status_counts,
    )
    from proctor.results.answer_excerpts import AnswerExcerpt, items_at, load_excerpts, parsed_values
    from proctor.results.answer_index import AnswerIndex, RunColumn, Selected, load_index
    from proctor.results.answer_repetitions import Flips, repetition_flips
    from proctor.results.answer_states import (
        CELLS,
        REPETITION_DIFFERENCES,
        RESULTS,
        SORTS,
        STATES,
        AnswerFilter,
        AnswerState,
    )
    from proctor.results.arrays import ItemTable, load_items
    from proctor.results.comparison import Comparison, Comparisons, compare, compare_runs
    from proctor.results.confidence import (
        SHOWN_COVERAGES,
        SURE,
        ConfidenceResult,
        ConfidenceResults,
        confidence_results,
    )
    from proctor.results.consistency import Consistency, RepetitionNoise, repetition_noise
    from proctor.results.corrected import CorrectedResults, CorrectedScore, cannot_say, corrected_results
    from proctor.results.costs import Consumption, RunCost, load_consumption, run_costs
    from proctor.results.critical import CriticalErrors, critical_errors
    from proctor.results.explained_run import ExplainedItems, ExplainedRun, log_to_explain, run_to_explain
    from proctor.results.explanation import ExplainedScore, Explanation, GapPart, explain_gap
    from proctor.results.export import COLUMNS as EXPORT_COLUMNS
    from proctor.results.export import (
        ExportFormat,
        ScoredAnswer,
        export,
        export_rows,
        pseudonyms_of,
        public_copy,
        scored_answers,
        write_rows,
    )
    from proctor.results.gap_game import GapGame
    from proctor.results.gap_plan import RunBetween, SwapPlan, name_between, swap_plan
    from proctor.results.gates import read_gate
    from proctor.results.interactions import FacetInteraction
    from proctor.results.item_analysis import StoredItemAnalysis, analyse_items
    from proctor.results.judge_consistency import JudgeConsistency
    from proctor.results.judge_coverage import ScorerCoverage, scorer_coverage
    from proctor.results.judgements import (
        GivenAnswer,
        ItemHistory,
        JudgeAgreement,
        JudgePair,
        ScorerSummary,
        flagged_judgements,
        given_answer,
        item_history,
        judge_agreement,
        judgements_of,
        rating_summary,
        scorer_summaries,
    )
    from proctor.results.label_samples import (
        LabelSample,
        SampledStratum,
        draw_sample,
        read_sample,
        sampled_runs,
        write_sample,
    )
    from proctor.results.leaderboard import Leaderboard, LeaderboardRow, leaderboard
    from proctor.results.margins import CompareExtras, MarginRecord
    from proctor.results.official import (
        OFFICIAL_SUMMARIES,
        SCORE_WRITERS,
        FigureProgram,
        OfficialProgram,
        ScoreWriter,
        official_summaries,
        summary_title,
    )
    from proctor.results.performance import AnalysisRow, NothingScoredError
    from proctor.results.planning import Pilot, read_pilot
    from proctor.results.pooling import PooledMetric, SumsFile, group_sums, pool_sums, write_sums
    from proctor.results.ranking import Board, Contest, RankedRun, RankedScores, chosen_baselines, rank_runs
    from proctor.results.ranking_tables import (
        ModelChoice,
        board_json,
        board_rows,
        bucket_mean,
        choose_run,
        lead_rows,
        rule_rows,
        wins_of,
    )
    from proctor.results.ratings import (
        answer_keys,
        compared,
        judgements_behind,
        judges_of,
        no_ratings,
        people_ratings,
        rated_cases,
        scored_cases,
        similarity_scores,
    )
    from proctor.results.reading_once import reading_once
    from proctor.results.reliance import Reliance, reliances, with_reliance
    from proctor.results.results import (
        GUESSABLE,
        Options,
        Result,
        Results,
        audit_stored,
        composition,
        derive_guessable,
        guessable_flags,
        items_outside,
        items_to_audit,
        results,
    )
    from proctor.results.run_differences import ASKED_KINDS, DIFFERENCE_NAMES, RunDifference, differences_of
    from proctor.results.run_progress import RunProgress, run_progress
    from proctor.results.run_scores import BOTH, FAILED_POLICIES, Lacking, policies
else:
    export_lazily(__name__)

__all__ = [
    "ASKED_KINDS", "BOTH", "CELLS", "DIFFERENCE_NAMES", "EXPORT_COLUMNS", "FAILED_POLICIES", "GUESSABLE",
    "OFFICIAL_SUMMARIES", "REPETITION_DIFFERENCES", "RESULTS", "SCORE_WRITERS", "SHOWN_COVERAGES", "SORTS",
    "STATES", "SURE", "Analysis", "AnalysisRow", "AnswerExcerpt", "AnswerFilter", "AnswerIndex", "AnswerState",
    "Board", "CompareExtras", "Comparison", "Comparisons", "ConfidenceResult", "ConfidenceResults",
    "Consistency", "Consumption", "Contest", "CorrectedResults", "CorrectedScore", "CriticalErrors",
    "ExplainedItems", "ExplainedRun", "ExplainedScore", "Explanation", "ExportFormat", "FacetInteraction",
    "FigureProgram", "Flips", "GapGame", "GapPart", "GivenAnswer", "ItemHistory", "ItemTable", "JudgeAgreement",
    "JudgeConsistency", "JudgePair", "LabelSample", "Lacking", "Leaderboard", "LeaderboardRow", "MarginRecord",
    "ModelChoice", "NothingScoredError", "OfficialProgram", "Options", "OrderedRun", "Pilot", "PooledMetric",
    "RankedRun", "RankedScores", "Reliance", "RepetitionNoise", "Result", "Results", "RunBetween", "RunColumn",
    "RunCost", "RunDifference", "RunProgress", "SampledStratum", "ScoreWriter", "ScoredAnswer",
    "ScorerCoverage", "ScorerSummary", "Selected", "StoredItemAnalysis", "SumsFile", "SwapPlan", "analyse",
    "analyse_items", "answer_keys", "audit_stored", "board_json", "board_rows", "bucket_mean", "cannot_say",
    "choose_run", "chosen_baselines", "compare", "compare_runs", "compared", "composition",
    "confidence_results", "corrected_results", "critical_errors", "derive_guessable", "differences_of",
    "draw_sample", "explain_gap", "export", "export_rows", "flagged_judgements", "given_answer", "group_sums",
    "guessable_flags", "item_history", "items_at", "items_outside", "items_to_audit", "judge_agreement",
    "judgements_behind", "judgements_of", "judges_of", "lead_rows", "leaderboard", "load_answers",
    "load_consumption", "load_excerpts", "load_index", "load_items", "load_orders", "load_scores",
    "log_to_explain", "name_between", "newest_run", "no_ratings", "official_summaries", "parsed_values",
    "people_ratings", "policies", "pool_sums", "pseudonyms_of", "public_copy", "rank_runs", "rated_cases",
    "rating_summary", "read_gate", "read_pilot", "read_sample", "reading_once", "reliances", "repetition_flips",
    "repetition_noise", "results", "rule_rows", "run_costs", "run_progress", "run_to_explain", "sampled_runs",
    "scored_answers", "scored_cases", "scorer_coverage", "scorer_summaries", "similarity_scores",
    "status_counts", "summary_title", "swap_plan", "wins_of", "with_reliance", "write_rows", "write_sample",
    "write_sums", "write_tables",
]  # fmt: skip
