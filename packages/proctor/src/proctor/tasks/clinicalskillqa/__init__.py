"""ClinicalSkillQA 2026: shuffled key frames of clinical skills, to be put in order with a rationale.

Source: the overview of the shared task at BioNLP 2026.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.clinicalskillqa.instances import (
        DrawnFrames,
        InstancePlan,
        dealt_labels,
        dealt_names,
        draw_frames,
        write_instances,
    )
    from proctor.tasks.clinicalskillqa.keypoints import Pose, PoseSource, open_pose
    from proctor.tasks.clinicalskillqa.native import SCENARIOS, Scenario, labels_of, scenario_named
    from proctor.tasks.clinicalskillqa.pose import facts_of
    from proctor.tasks.clinicalskillqa.reader import READER
    from proctor.tasks.clinicalskillqa.scoring import Published, published, score_predictions
else:
    export_lazily(__name__)

__all__ = [
    "READER",
    "SCENARIOS",
    "DrawnFrames",
    "InstancePlan",
    "Pose",
    "PoseSource",
    "Published",
    "Scenario",
    "dealt_labels",
    "dealt_names",
    "draw_frames",
    "facts_of",
    "labels_of",
    "open_pose",
    "published",
    "scenario_named",
    "score_predictions",
    "write_instances",
]

READER_SUMMARY = "ClinicalSkillQA: shuffled key frames of CPR, AED and BMV, to be put in order"
"""As `proctor list` shows it, without loading the reader."""
