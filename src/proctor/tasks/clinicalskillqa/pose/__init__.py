"""Pose: the joints of the people in a picture, and what they say of it in words."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.clinicalskillqa.pose.facts import (
        PREDICATES,
        SEGMENTS,
        THRESHOLDS,
        WORDS,
        Arm,
        Body,
        PersonFacts,
        PictureFacts,
        Places,
        Threshold,
        facts_of,
        marked_region,
        marked_regions,
        places_of,
        sentences,
    )
    from proctor.tasks.clinicalskillqa.pose.people import (
        KEYPOINTS,
        LEAST_OVERLAP,
        LEAST_SCORE,
        MARKS,
        SEEN,
        KeypointFile,
        Letterbox,
        Person,
        PersonBox,
        Point,
        Pose,
        PoseNetwork,
        PoseSource,
        open_pose,
        people_of,
    )
else:
    export_lazily(__name__)

__all__ = [
    "KEYPOINTS", "LEAST_OVERLAP", "LEAST_SCORE", "MARKS", "PREDICATES", "SEEN", "SEGMENTS", "THRESHOLDS", "WORDS",
    "Arm", "Body", "KeypointFile", "Letterbox", "Person", "PersonBox", "PersonFacts", "PictureFacts", "Places",
    "Point", "Pose", "PoseNetwork", "PoseSource", "Threshold", "facts_of", "marked_region", "marked_regions",
    "open_pose", "people_of", "places_of", "sentences",
]  # fmt: skip
