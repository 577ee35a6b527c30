"""From videos to instances of ClinicalSkillQA: key frames, shuffled, with the right order beside them."""

from proctor.build.keyframes.events import LoggedEvent, rationale, read_events
from proctor.build.keyframes.instances import BUILDER_VERSION, Built, Plan, build_instances, scenarios_of
from proctor.build.keyframes.selection import choose, stretches

__all__ = [
    "BUILDER_VERSION",
    "Built",
    "LoggedEvent",
    "Plan",
    "build_instances",
    "choose",
    "rationale",
    "read_events",
    "scenarios_of",
    "stretches",
]
