"""Reports: numbers in tables, figures and words, for a terminal, as one HTML file that opens offline, or as files."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.reports.analysis import write_pictures
    from proctor.reports.analysis_tables import analysis_tables, table_units
    from proctor.reports.blocks import RANK_INTERVAL_LINE, Block, Prose, Section, Story, records_table
    from proctor.reports.blocks import Answer as StoryAnswer
    from proctor.reports.charts import ChartRow, ChartWords, Lane, LeaderboardChart, chart_html, metric_axis, rank_ends
    from proctor.reports.comparisons import (
        comparison_blocks,
        differences_table,
        p_words,
        significance_words,
        unadjusted_line,
        without_line,
    )
    from proctor.reports.consistency import consistency_notes, consistency_tables, noise_line
    from proctor.reports.corrected import CorrectedTable
    from proctor.reports.costs import cost_lines
    from proctor.reports.explanation import ExplanationTable
    from proctor.reports.figures import PICTURES, condition_numbers, write_picture
    from proctor.reports.frames import (
        AnalysisTables,
        AuditTable,
        ComparisonTable,
        DrawnTable,
        FrameLike,
        LeaderboardTable,
        RankingTable,
        Record,
        ResultsTable,
    )
    from proctor.reports.item_audit import audit_section, item_analysis_blocks
    from proctor.reports.latex import latex
    from proctor.reports.leaderboard import (
        DECIDED_LINE,
        RANGE,
        few_groups_line,
        leaderboard_notes,
        leaderboard_table,
        outside_line,
        policy_line,
        results_tables,
        scarce_line,
        scarce_metrics,
        scarce_results,
        score,
    )
    from proctor.reports.margins import (
        critical_table,
        forest_figure,
        forest_text,
        interaction_line,
        interaction_table,
        margin_line,
        margin_notes,
        record_line,
        write_forest,
    )
    from proctor.reports.metric_agreement import audit_tables, contrast_cells, ends_of, spoken_language
    from proctor.reports.metric_profile import perturbation_notes, perturbation_tables
    from proctor.reports.metric_ranking import lead_tables, metric_board_table, metric_pairs_table, power_tables
    from proctor.reports.planning import PlanTable, plans_of
    from proctor.reports.ranking import (
        board_notes,
        board_tables,
        detail_tables,
        leads_tables,
        removal_lines,
        tie_lines,
        who_advances,
    )
    from proctor.reports.reliance import reliance_tables
    from proctor.reports.renderers import show_block, show_table
    from proctor.reports.report import (
        ReportSummary,
        write_audit_report,
        write_public_report,
        write_report,
        write_sections,
    )
    from proctor.reports.report_numbers import AuditSource, Question, Reference, Source, asked
    from proctor.reports.run_tables import (
        content_table,
        dimensions_table,
        estimate_table,
        fields_table,
        judges_table,
        merged_table,
        passages_table,
        rows_table,
        scored_table,
    )
    from proctor.reports.summary import audit_sentences
else:
    export_lazily(__name__)

__all__ = [
    "DECIDED_LINE", "PICTURES", "RANGE", "RANK_INTERVAL_LINE", "AnalysisTables", "AuditSource", "AuditTable",
    "Block", "ChartRow", "ChartWords", "ComparisonTable", "CorrectedTable", "DrawnTable", "ExplanationTable",
    "FrameLike", "Lane",
    "LeaderboardChart", "LeaderboardTable", "PlanTable", "Prose", "Question", "RankingTable", "Record",
    "Reference", "ReportSummary", "ResultsTable", "Section", "Source", "Story", "StoryAnswer", "analysis_tables",
    "asked", "audit_section", "audit_sentences", "audit_tables", "board_notes", "board_tables", "chart_html",
    "comparison_blocks", "condition_numbers", "consistency_notes", "consistency_tables", "content_table",
    "contrast_cells", "cost_lines", "critical_table", "detail_tables", "differences_table", "dimensions_table",
    "ends_of", "estimate_table", "few_groups_line", "fields_table", "forest_figure", "forest_text",
    "interaction_line", "interaction_table", "item_analysis_blocks", "judges_table", "latex", "lead_tables",
    "leaderboard_notes", "leaderboard_table", "leads_tables", "margin_line", "margin_notes", "merged_table",
    "metric_axis", "metric_board_table", "metric_pairs_table", "noise_line", "outside_line", "p_words",
    "passages_table", "perturbation_notes", "perturbation_tables", "plans_of", "policy_line", "power_tables",
    "rank_ends", "record_line", "records_table", "reliance_tables", "removal_lines", "results_tables", "rows_table", "scarce_line",
    "scarce_metrics", "scarce_results", "score", "scored_table", "show_block", "show_table", "significance_words",
    "spoken_language", "table_units", "tie_lines", "unadjusted_line", "who_advances", "without_line",
    "write_audit_report", "write_forest", "write_picture", "write_pictures", "write_public_report",
    "write_report", "write_sections",
]  # fmt: skip
