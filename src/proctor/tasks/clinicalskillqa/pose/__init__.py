"""Pose: the joints of the people in a picture, and what they say of it in words."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.clinicalskillqa.pose.facts import (
        PREDICATES,
        THRESHOLDS,
        PictureFacts,
        Places,
        facts_of,
        marked_regions,
        sentences,
    )
    from proctor.tasks.clinicalskillqa.pose.people import Pose, PoseSource, open_pose
else:
    export_lazily(__name__)

__all__ = [
    "PREDICATES", "THRESHOLDS", "PictureFacts", "Places", "Pose", "PoseSource", "facts_of", "marked_regions",
    "open_pose", "sentences",
]  # fmt: skip
