"""From annotated videos to questions with references: annotations (boxes a second with class and instance, insertions
and retrievals), their import, export, checks and completion, and the questions that they answer."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.construction.annotation import (
        ARISING,
        OBJECTS,
        STAYING,
        AnnotatedBox,
        AnnotatedMoment,
        AnnotatedVideo,
        Annotation,
        ReadDefaults,
        Sighting,
        Timeline,
        arrivals,
        official_name,
    )
    from proctor.construction.balance import check_bounds, choose, constant_answers, deal_options, leaks_answer
    from proctor.construction.checks import Completion, complete, find
    from proctor.construction.commands import Fps, ProcedureName, TrackFiles, completed
    from proctor.construction.files import files_of
    from proctor.construction.rules import (
        QUADRANTS,
        TRACK_RULES,
        CandidateQuestion,
        QuestionTemplates,
        Rule,
        only_one,
        orders,
        quadrant_of,
        rules_by_name,
        third,
        with_article,
    )
    from proctor.construction.splits import split_items
else:
    export_lazily(__name__)

__all__ = [
    "ARISING", "OBJECTS", "QUADRANTS", "STAYING", "TRACK_RULES", "AnnotatedBox", "AnnotatedMoment", "AnnotatedVideo",
    "Annotation", "CandidateQuestion", "Completion", "Fps", "ProcedureName", "QuestionTemplates", "ReadDefaults",
    "Rule", "Sighting", "Timeline", "TrackFiles", "arrivals", "check_bounds", "choose", "complete", "completed",
    "constant_answers",  "deal_options", "files_of", "find", "leaks_answer", "official_name", "only_one",
    "orders", "quadrant_of", "rules_by_name", "split_items", "third", "with_article",
]  # fmt: skip
