"""Items, answer formats, records and the small protocols that everything else speaks in."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.core.admission import (
        Offered,
        admit_benchmark,
        admit_recorded,
        admit_scorer,
        admit_settings,
        answer_name,
        answered,
        check_formats,
        check_metric,
        check_options,
        check_reference,
        check_score,
        scored,
    )
    from proctor.core.atomic_files import (
        PAGES,
        is_database,
        output_file,
        replacing,
        when_gone,
        whole_file,
        whole_folder,
        write_whole,
    )
    from proctor.core.benchmark_parts import (
        OPTION_WRITERS,
        PATH_READERS,
        PUBLISHED_FIGURES,
        QUESTION_WRITERS,
        RATING_READERS,
        SUBMISSION_WRITERS,
        OptionWriter,
        Parts,
        PathReader,
        PublishedFigures,
        QuestionWriter,
        RatingReader,
        SubmissionWriter,
        option_writer,
        question_files,
        question_writer,
        reader_of_paths,
        with_columns,
    )
    from proctor.core.clock import Stopwatch, aside, rebook
    from proctor.core.code_identity import code_hash
    from proctor.core.criteria import Criterion, read_criteria, share_of_points
    from proctor.core.csv_files import (
        Arrays,
        TableFault,
        TableRow,
        cell_number,
        read_arrays,
        read_safe_cell,
        read_table,
        safe_cell,
        write_arrays,
    )
    from proctor.core.defaults import (
        CONCURRENCY,
        FPS,
        GIVE_UP_AFTER,
        JPEG_QUALITY,
        MAX_FRAMES,
        MAX_SIDE,
        RETRIES,
        TIMEOUT_S,
    )
    from proctor.core.distributions import (
        COMMANDS_ELSEWHERE,
        DISTRIBUTIONS,
        is_own,
        missing_commands,
        missing_package,
        need_package,
        package_folders,
    )
    from proctor.core.errors import (
        ConfigurationError,
        FileLocation,
        InfrastructureError,
        InputError,
        NoVerdictError,
        ParseError,
        PendingError,
        ProblemsError,
        ProctorError,
        RefusalError,
        SystemFaultError,
        UsageError,
        error_at,
        error_line,
        missing_extra,
        need_extra,
        pip_install,
    )
    from proctor.core.evidence import MOST_EVIDENCE, Evidence, EvidenceBox, EvidenceWindow, Region
    from proctor.core.field_problems import expected_words, first_problem, found_words
    from proctor.core.files import (
        JSON_BREAKS,
        JsonError,
        existing,
        input_bytes,
        input_text,
        json_line,
        load_json,
        near_path,
        parse_json,
        parse_model,
        read_bytes,
        read_json,
        read_jsonl,
        read_model,
        read_text,
        refusal,
        unique_keys,
        validated,
    )
    from proctor.core.findings import (
        FileCheck,
        Finding,
        by_cause,
        check_fields,
        check_seconds,
        check_wrapped,
        error_of_faults,
        first_fault,
        table_findings,
    )
    from proctor.core.formats.any_format import read_answer
    from proctor.core.formatting import (
        DASH,
        clean,
        count_of,
        difference,
        dollars,
        interval,
        number,
        number_interval,
        one_of,
        p_value,
        percent,
        plain_name,
        points,
        rank_range,
        seconds,
        shell_word,
        shorten,
        signed,
        store_word,
        thousands,
        value,
    )
    from proctor.core.hashes import content_hash, fingerprint, generator
    from proctor.core.item import (
        OPTION_POOL,
        AudioClip,
        Image,
        Item,
        Media,
        Reference,
        Reliability,
        Scan,
        TagValue,
        VideoClip,
    )
    from proctor.core.metric import (
        ACCURACY,
        HUMAN,
        DerivedDimension,
        Dimension,
        Metric,
        MetricOptions,
        PublishedCrossing,
        PublishedRow,
        PublishedTable,
        RatingRule,
        RatingScheme,
        Verified,
        VerifiedFigure,
        human,
    )
    from proctor.core.own_files import ABOUT, AboutFiles, check_path, own_benchmark, read_about, reader_at
    from proctor.core.protocols import (
        Benchmark,
        BenchmarkReader,
        Briefing,
        Excerpt,
        FilesOrigin,
        Frame,
        JudgementCache,
        NeedsReferences,
        OfficialFigure,
        RecordedAnswers,
        RecordedScores,
        Scorer,
        System,
        View,
    )
    from proctor.core.records import (
        CONFIDENCE,
        NO_ANSWER,
        Answer,
        Confidence,
        FailedPolicy,
        Judgement,
        Score,
        Status,
        Timing,
        Usage,
    )
    from proctor.core.registry import (
        BENCHMARKS,
        COMMANDS,
        EXTENSIONS,
        VALIDATORS,
        Option,
        PluginReport,
        Registry,
        Steps,
        UnknownNameError,
        ValidationRequest,
        benchmark_path,
        extension,
        origin_of,
        package_at_fault,
        reader_of,
        reader_or_default,
    )
    from proctor.core.repetition import Repetition, as_repetition, current_repetition
    from proctor.core.sandbox import ChildEndedError, ChildProcess, limit_resources
    from proctor.core.secrets import Scrubber, environment_scrubber, without_keys
    from proctor.core.sheet_rows import Sheet, SheetRow, ShortClock, cell_text, is_empty, lost_text, plain_column
    from proctor.core.sources import DataSource, Download, read_source
    from proctor.core.spreadsheets import SHEET_SUFFIXES, read_sheet
    from proctor.core.table import HEADS, Cell, Column, Row, Span, Table, columns, head, heads, plain_table
    from proctor.core.text import NUMBER_WORDS, clock_text, collapse_spaces, looks_secret, natural, printable
    from proctor.core.tokenizer import Units, tokens
    from proctor.core.user_functions import (
        PlainFunction,
        contained,
        instance_in_file,
        is_file_address,
        needed_parameters,
        object_in_file,
        unloadable,
    )
    from proctor.core.validation import FrozenModel, kept_text, unfit
    from proctor.core.yaml_files import problem_texts, read_yaml
else:
    export_lazily(__name__)

__all__ = [
    "ABOUT", "ACCURACY", "BENCHMARKS", "COMMANDS", "COMMANDS_ELSEWHERE", "CONCURRENCY", "CONFIDENCE", "DASH",
    "DISTRIBUTIONS", "EXTENSIONS", "FPS", "GIVE_UP_AFTER", "HEADS", "HUMAN", "JPEG_QUALITY", "JSON_BREAKS",
    "MAX_FRAMES", "MAX_SIDE", "MOST_EVIDENCE", "NO_ANSWER", "NUMBER_WORDS", "OPTION_POOL", "OPTION_WRITERS",
    "PAGES", "PATH_READERS", "PUBLISHED_FIGURES", "QUESTION_WRITERS", "RATING_READERS", "RETRIES",
    "SHEET_SUFFIXES", "SUBMISSION_WRITERS", "TIMEOUT_S", "VALIDATORS", "AboutFiles", "Answer", "Arrays",
    "AudioClip", "Benchmark", "BenchmarkReader", "Briefing", "Cell", "ChildEndedError", "ChildProcess",
    "Column", "Confidence", "ConfigurationError", "Criterion", "DataSource", "DerivedDimension", "Dimension",
    "Download", "Evidence", "EvidenceBox", "EvidenceWindow", "Excerpt", "FailedPolicy", "FileCheck",
    "FileLocation", "FilesOrigin", "Finding", "Frame", "FrozenModel", "Image", "InfrastructureError",
    "InputError", "Item", "JsonError", "Judgement", "JudgementCache", "Media", "Metric", "MetricOptions",
    "NeedsReferences", "NoVerdictError", "Offered", "OfficialFigure", "Option", "OptionWriter", "ParseError",
    "Parts", "PathReader", "PendingError", "PlainFunction", "PluginReport", "ProblemsError", "ProctorError",
    "PublishedCrossing", "PublishedFigures", "PublishedRow", "PublishedTable", "QuestionWriter", "RatingReader",
    "RatingRule", "RatingScheme", "RecordedAnswers", "RecordedScores", "Reference", "RefusalError", "Region",
    "Registry", "Reliability", "Repetition", "Row", "Scan", "Score", "Scorer", "Scrubber", "Sheet", "SheetRow",
    "ShortClock", "Span", "Status", "Steps", "Stopwatch", "SubmissionWriter", "System", "SystemFaultError",
    "Table", "TableFault", "TableRow", "TagValue", "Timing", "Units", "UnknownNameError", "Usage", "UsageError",
    "ValidationRequest", "Verified", "VerifiedFigure", "VideoClip", "View", "admit_benchmark", "admit_recorded",
    "admit_scorer", "admit_settings", "answer_name", "answered", "as_repetition", "aside", "benchmark_path",
    "by_cause", "cell_number", "cell_text", "check_fields", "check_formats", "check_metric", "check_options",
    "check_path", "check_reference", "check_score", "check_seconds", "check_wrapped", "clean", "clock_text",
    "code_hash", "collapse_spaces", "columns", "contained", "content_hash", "count_of", "current_repetition",
    "difference", "dollars", "environment_scrubber", "error_at", "error_line", "error_of_faults", "existing",
    "expected_words", "extension", "fingerprint", "first_fault", "first_problem", "found_words", "generator",
    "head", "heads", "human", "input_bytes", "input_text", "instance_in_file", "interval", "is_database",
    "is_empty", "is_file_address", "is_own", "json_line", "kept_text", "limit_resources", "load_json",
    "looks_secret", "lost_text", "missing_commands", "missing_extra", "missing_package", "natural", "near_path",
    "need_extra", "need_package", "needed_parameters", "number", "number_interval", "object_in_file", "one_of",
    "option_writer", "origin_of", "output_file", "own_benchmark", "p_value", "package_at_fault",
    "package_folders", "parse_json", "parse_model", "percent", "pip_install", "plain_column", "plain_name",
    "plain_table", "points", "printable", "problem_texts", "question_files", "question_writer", "rank_range",
    "read_about", "read_answer", "read_arrays", "read_bytes", "read_criteria", "read_json", "read_jsonl",
    "read_model", "read_safe_cell", "read_sheet", "read_source", "read_table", "read_text", "read_yaml",
    "reader_at", "reader_of", "reader_of_paths", "reader_or_default", "rebook", "refusal", "replacing",
    "safe_cell", "scored", "seconds", "share_of_points", "shell_word", "shorten", "signed", "store_word",
    "table_findings", "thousands", "tokens", "unfit", "unique_keys", "unloadable", "validated", "value",
    "when_gone", "whole_file", "whole_folder", "with_columns", "without_keys", "write_arrays", "write_whole",
]  # fmt: skip
