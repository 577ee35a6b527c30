"""Projects: from videos and transcripts to a benchmark, stage by stage.

Every stage reads the records of earlier stages and writes its own. Finished work is kept, and model replies are cached.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_build.pipeline.citations import mentioned, stated_order, without_labels
    from proctor_build.pipeline.consensus import (
        AGREED,
        ConsensusLine,
        ConsensusSettings,
        ReviewedBody,
        ReviewPart,
        consensus_files,
        read_consensus,
        settled_lines,
        waiting_for_readers,
    )
    from proctor_build.pipeline.events import EventsStage
    from proctor_build.pipeline.finish import (
        ExportStage,
        FilesStage,
        FinalQuestion,
        SplitSettings,
        SplitStage,
        WrittenExport,
        about_sources,
        as_json,
        dealt_parts,
        lend_video,
        made_by,
        nothing_stays,
        reviewed_by,
        unit_file,
    )
    from proctor_build.pipeline.project import SETTINGS_FILE, Project, ProjectSettings, SourceVideo
    from proctor_build.pipeline.questions import (
        FORBIDDEN,
        KEY_STANDS_OUT,
        BrokenRule,
        QuestionsSettings,
        QuestionsStage,
        QuestionType,
        broken_rule,
        stands_out,
    )
    from proctor_build.pipeline.readback import DATASHEET, ExportedBenchmark, ExportedItem
    from proctor_build.pipeline.records import (
        Call,
        DraftQuestion,
        FromSource,
        ProcedureEvent,
        Record,
        Refused,
        Timed,
        Word,
    )
    from proctor_build.pipeline.review import ReviewStage, question_version
    from proctor_build.pipeline.rework import RepairStage
    from proctor_build.pipeline.runner import (
        PROJECT_KINDS,
        Folder,
        ProjectKind,
        RecordToReview,
        ToReview,
        UnitState,
        kind_of,
        new_project,
        records_of,
        redo_record,
        run_stages,
        stages_of,
        units_of,
    )
    from proctor_build.pipeline.screening import ScreenSettings, ScreenStage, as_item, flagged_by_chance
    from proctor_build.pipeline.speech import (
        PROMPT_INJECTION,
        NormaliseStage,
        TranscriptStage,
        content_words,
        negations,
        sides_and_numbers,
        video_seconds,
    )
    from proctor_build.pipeline.stage import (
        ALL,
        Made,
        Stage,
        StageSettings,
        StageTable,
        WaitingError,
        Work,
        stage_settings,
    )
    from proctor_build.pipeline.stage_files import StageFiles
    from proctor_build.pipeline.status import HistoryStep, first_causes, funnel, history
else:
    export_lazily(__name__)

__all__ = [
    "AGREED", "ALL", "DATASHEET", "FORBIDDEN", "KEY_STANDS_OUT", "PROJECT_KINDS", "PROMPT_INJECTION",
    "SETTINGS_FILE",
    "BrokenRule", "Call", "ConsensusLine", "ConsensusSettings", "DraftQuestion", "EventsStage", "ExportStage",
    "ExportedBenchmark", "ExportedItem", "FilesStage", "FinalQuestion", "Folder", "FromSource", "HistoryStep",
    "Made", "NormaliseStage", "ProcedureEvent", "Project", "ProjectKind", "ProjectSettings", "QuestionType",
    "QuestionsSettings", "QuestionsStage", "Record", "RecordToReview", "Refused", "RepairStage", "ReviewPart",
    "ReviewStage", "ReviewedBody", "ScreenSettings", "ScreenStage", "SourceVideo", "SplitSettings", "SplitStage",
    "Stage", "StageFiles", "StageSettings", "StageTable", "Timed", "ToReview", "TranscriptStage", "UnitState",
    "WaitingError", "Word", "Work", "WrittenExport", "about_sources", "as_item", "as_json", "broken_rule",
    "consensus_files", "content_words", "dealt_parts", "first_causes", "flagged_by_chance", "funnel", "history",
    "kind_of", "lend_video", "made_by", "mentioned", "negations", "new_project", "nothing_stays",
    "question_version", "read_consensus", "records_of", "redo_record", "reviewed_by", "run_stages",
    "settled_lines", "sides_and_numbers", "stage_settings", "stages_of", "stands_out", "stated_order", "unit_file",
    "units_of", "video_seconds", "waiting_for_readers", "without_labels",
]  # fmt: skip
