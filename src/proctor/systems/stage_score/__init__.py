"""`stage-score`: key frames sorted by the stage of the procedure that each shows."""

from proctor.systems.stage_score.features import APPEARANCE, MultimodalEncoder, appearance, first_component
from proctor.systems.stage_score.sorting import Sorted, sort_frames
from proctor.systems.stage_score.stages import State, state_of
from proctor.systems.stage_score.system import NO_FACTS, Options, StageScore, build

__all__ = [
    "APPEARANCE",
    "NO_FACTS",
    "MultimodalEncoder",
    "Options",
    "Sorted",
    "StageScore",
    "State",
    "appearance",
    "build",
    "first_component",
    "sort_frames",
    "state_of",
]
