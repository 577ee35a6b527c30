"""Tracks: annotated videos (boxes a second with class and instance, insertions and retrievals), and the questions that they
answer, chosen and balanced so that the text alone reveals nothing."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tracks.annotation import (
        ARISING,
        FORMAT_VERSION,
        MOST_SIGHTINGS,
        OBJECTS,
        STAYING,
        AnnotatedBox,
        AnnotatedMoment,
        AnnotatedVideo,
        Annotation,
        MomentKind,
        ReadDefaults,
        Sighting,
        Timeline,
        arrivals,
        official_name,
        video_id,
    )
    from proctor.tracks.balance import check_bounds, choose, constant_answers, deal_options, leaks_answer
    from proctor.tracks.evidence import Trace, Traces, evidence_of, traces_of
    from proctor.tracks.origin import simulated_there
    from proctor.tracks.rules import (
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
else:
    export_lazily(__name__)

__all__ = [
    "ARISING", "FORMAT_VERSION", "MOST_SIGHTINGS", "OBJECTS", "QUADRANTS", "STAYING", "TRACK_RULES",
    "AnnotatedBox", "AnnotatedMoment", "AnnotatedVideo", "Annotation", "CandidateQuestion", "MomentKind",
    "QuestionTemplates", "ReadDefaults", "Rule", "Sighting", "Timeline", "Trace", "Traces", "arrivals", "check_bounds", "choose",
    "constant_answers", "deal_options", "evidence_of", "leaks_answer", "official_name", "only_one", "orders", "quadrant_of",
    "rules_by_name", "simulated_there", "third", "traces_of", "video_id", "with_article",
]  # fmt: skip
