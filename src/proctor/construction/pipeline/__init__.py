"""Projects: from videos and transcripts to a benchmark, stage by stage.

Every stage reads the records of earlier stages and writes its own. Finished work is kept, and model replies are cached.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.construction.pipeline.citations import mentioned, told_order, without_labels
    from proctor.construction.pipeline.commands import noted, run_to, stage_command, with_table
    from proctor.construction.pipeline.events import EventsStage
    from proctor.construction.pipeline.finish import (
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
        nothing_stays,
    )
    from proctor.construction.pipeline.project import SETTINGS_FILE, Project, ProjectSettings, SourceVideo
    from proctor.construction.pipeline.questions import (
        FORBIDDEN,
        KEY_STANDS_OUT,
        BrokenRule,
        QuestionsSettings,
        QuestionsStage,
        QuestionType,
        broken_rule,
        stands_out,
    )
    from proctor.construction.pipeline.readback import DATASHEET, ExportedBenchmark, ExportedItem, simulated_there
    from proctor.construction.pipeline.records import (
        Call,
        DraftQuestion,
        FromSource,
        ProcedureEvent,
        Record,
        Refused,
        Timed,
        Word,
    )
    from proctor.construction.pipeline.review import ReviewStage, question_version
    from proctor.construction.pipeline.rework import RepairStage
    from proctor.construction.pipeline.runner import (
        PROJECT_KINDS,
        Folder,
        ProjectKind,
        RecordToReview,
        ToReview,
        UnitState,
        kind_of,
        records_of,
        redo_record,
        run_stages,
        stages_of,
        units_of,
    )
    from proctor.construction.pipeline.screening import ScreenSettings, ScreenStage, as_item, flagged_by_chance
    from proctor.construction.pipeline.speech import (
        STEERING,
        NormaliseStage,
        TranscriptStage,
        content_words,
        negations,
        sides_and_numbers,
        video_seconds,
    )
    from proctor.construction.pipeline.stage import ALL, Made, Stage, StageSettings, WaitingError, Work, stage_settings
    from proctor.construction.pipeline.status import HistoryStep, first_causes, funnel, history
else:
    export_lazily(__name__)

__all__ = [
    "ALL",
    "DATASHEET",
    "FORBIDDEN",
    "KEY_STANDS_OUT",
    "PROJECT_KINDS",
    "SETTINGS_FILE",
    "STEERING",
    "BrokenRule",
    "Call",
    "DraftQuestion",
    "EventsStage",
    "ExportStage",
    "ExportedBenchmark",
    "ExportedItem",
    "FilesStage",
    "FinalQuestion",
    "Folder",
    "FromSource",
    "HistoryStep",
    "Made",
    "NormaliseStage",
    "ProcedureEvent",
    "Project",
    "ProjectKind",
    "ProjectSettings",
    "QuestionType",
    "QuestionsSettings",
    "QuestionsStage",
    "Record",
    "RecordToReview",
    "Refused",
    "RepairStage",
    "ReviewStage",
    "ScreenSettings",
    "ScreenStage",
    "SourceVideo",
    "SplitSettings",
    "SplitStage",
    "Stage",
    "StageSettings",
    "Timed",
    "ToReview",
    "TranscriptStage",
    "UnitState",
    "WaitingError",
    "Word",
    "Work",
    "WrittenExport",
    "about_sources",
    "as_item",
    "as_json",
    "broken_rule",
    "content_words",
    "dealt_parts",
    "first_causes",
    "flagged_by_chance",
    "funnel",
    "history",
    "kind_of",
    "lend_video",
    "mentioned",
    "negations",
    "noted",
    "nothing_stays",
    "question_version",
    "records_of",
    "redo_record",
    "run_stages",
    "run_to",
    "sides_and_numbers",
    "simulated_there",
    "stage_command",
    "stage_settings",
    "stages_of",
    "stands_out",
    "told_order",
    "units_of",
    "video_seconds",
    "with_table",
    "without_labels",
]  # fmt: skip
