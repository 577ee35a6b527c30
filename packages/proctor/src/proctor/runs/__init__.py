"""Runs: what asks and writes: the plan, the engine, the store, leases, scoring and merging."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.runs.bulk_sql import (
        Codes,
        driver_rows,
        in_parts,
        joined_columns,
        keyed_numbers,
        keyed_texts,
        parted_numbers,
        whole_numbers,
    )
    from proctor.runs.controls import CONTROLS, pause_runs, requeue, requeued_notes, resume_runs
    from proctor.runs.database import (
        LOCK_WAIT,
        DamagedStoreError,
        StoreAwayError,
        away,
        machine_time,
        open_engine,
        reading,
        shown_url,
        store_files,
    )
    from proctor.runs.database import clock as database_clock
    from proctor.runs.engine import Limits, ask, parsed_answer
    from proctor.runs.housekeeping import (
        check_file,
        check_store,
        count_scores,
        delete_benchmark,
        delete_runs,
        delete_scores,
        disqualify,
        reinstate,
        rename_system,
        revise_benchmark,
        stored_runs,
    )
    from proctor.runs.item_leases import ItemClaims, OpenOrder, Order, open_orders, put_order, read_parcel, text_hash
    from proctor.runs.leases import LEASE_S, Lease, LeasedRows, beating, lease_time
    from proctor.runs.merging import EvaluationContent, MergedRows, evaluation_content, merge_stores
    from proctor.runs.perturbation_scores import AnswersOf, NoJudgements, Probe, SecondJudgements, probe
    from proctor.runs.plan import (
        PICTURE_TOKENS,
        Outcome,
        Plan,
        PlanOptions,
        RunEstimate,
        add_baselines,
        chosen_items,
        estimate_runs,
        execute,
        join,
        plan,
        run_settings,
        skipped_baselines,
        why_unable,
    )
    from proctor.runs.rating_scores import add_recorded_scores, declare_ratings, refuse_other_scale
    from proctor.runs.recorded_answers import import_answers, import_systems
    from proctor.runs.reproduction import Remake, ReproducedAnswer, Reproducer, Reproduction, recorded
    from proctor.runs.run_identity import (
        BASELINES,
        CODE,
        UNSUPPORTED,
        chosen_runs,
        declare_scorer,
        known_items,
        refuse_out_of_range,
        repeats_of,
        run_name,
    )
    from proctor.runs.run_leases import RunLostError, RunTakenError, runs_at_work
    from proctor.runs.run_status import BUSY, RunStatus, run_statuses
    from proctor.runs.schema import MODEL, SHOWN, BenchmarkCard, Ruling, answer_from_row, check_given_name
    from proctor.runs.schema import meta as store_meta
    from proctor.runs.schema import metadata as store_tables
    from proctor.runs.scoring import JudgeLimits, JudgeTally, PaidJudgements, judge_all, score_answers, score_changed
    from proctor.runs.served import SIGHT, model_notes, other_model, served_notes
    from proctor.runs.store import ORACLE, Run, Store
    from proctor.runs.studies import STUDIES, StoredStudy, record_study, studies_of
    from proctor.runs.tables import StoredTables, id_column, one_at_a_time, time_column
    from proctor.runs.tally import Tally, over_limit
    from proctor.runs.unresolved import decide, write_open
else:
    export_lazily(__name__)

__all__ = [
    "BASELINES", "BUSY", "CODE", "CONTROLS", "LEASE_S", "LOCK_WAIT", "MODEL", "ORACLE", "PICTURE_TOKENS",
    "SHOWN", "SIGHT", "STUDIES", "UNSUPPORTED", "AnswersOf", "BenchmarkCard", "Codes", "DamagedStoreError",
    "EvaluationContent", "ItemClaims", "JudgeLimits", "JudgeTally", "Lease", "LeasedRows", "Limits",
    "MergedRows", "NoJudgements", "OpenOrder", "Order", "Outcome", "PaidJudgements", "Plan", "PlanOptions",
    "Probe", "Remake", "ReproducedAnswer", "Reproducer", "Reproduction", "Ruling", "Run", "RunEstimate",
    "RunLostError", "RunStatus", "RunTakenError", "SecondJudgements", "Store", "StoreAwayError", "StoredStudy",
    "StoredTables", "Tally", "add_baselines", "add_recorded_scores", "answer_from_row", "ask", "away",
    "beating", "check_file", "check_given_name", "check_store", "chosen_items", "chosen_runs", "count_scores",
    "database_clock", "decide", "declare_ratings", "declare_scorer", "delete_benchmark", "delete_runs",
    "delete_scores", "disqualify", "driver_rows", "estimate_runs", "evaluation_content", "execute", "id_column",
    "import_answers", "import_systems", "in_parts", "join", "joined_columns", "judge_all", "keyed_numbers",
    "keyed_texts", "known_items", "lease_time", "machine_time", "merge_stores", "model_notes", "one_at_a_time",
    "open_engine", "open_orders", "other_model", "over_limit", "parsed_answer", "parted_numbers", "pause_runs",
    "plan", "probe", "put_order", "read_parcel", "reading", "record_study", "recorded", "refuse_other_scale",
    "refuse_out_of_range", "reinstate", "rename_system", "repeats_of", "requeue", "requeued_notes",
    "resume_runs", "revise_benchmark", "run_name", "run_settings", "run_statuses", "runs_at_work",
    "score_answers", "score_changed", "served_notes", "shown_url", "skipped_baselines", "store_files",
    "store_meta", "store_tables", "stored_runs", "studies_of", "text_hash", "time_column", "whole_numbers",
    "why_unable", "write_open",
]  # fmt: skip
