"""Simulated procedures: a unit test for models, rendered from a script of events with exact ground truth.

Script of events → state of the scene at a time → picture → video; and ground truth → questions. Nothing
here shows a real patient, and everything that is written says so.
"""

from proctor.build.simulate.looks import CLASSES, ObjectClass
from proctor.build.simulate.questions import QUESTION_TYPES, RULES, offers
from proctor.build.simulate.render import Picture, Renderer
from proctor.build.simulate.scene import Scene, SceneState
from proctor.build.simulate.script import Event, Script, draw_script
from proctor.build.simulate.simulation import SIMULATOR_VERSION, ask, observe, simulate
from proctor.build.simulate.truth import EventLog, Truth

__all__ = [
    "CLASSES",
    "QUESTION_TYPES",
    "RULES",
    "SIMULATOR_VERSION",
    "Event",
    "EventLog",
    "ObjectClass",
    "Picture",
    "Renderer",
    "Scene",
    "SceneState",
    "Script",
    "Truth",
    "ask",
    "draw_script",
    "observe",
    "offers",
    "simulate",
]
