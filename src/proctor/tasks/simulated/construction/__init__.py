"""Simulated procedures: a unit test for models, rendered from a script of events with exact ground truth.

Script of events → state of the scene at a time → picture → video; and ground truth → questions. Nothing
here shows a real patient, and everything that is written says so.
"""

from proctor.tasks.simulated.construction.looks import CLASSES, ObjectClass
from proctor.tasks.simulated.construction.questions import QUESTION_TYPES, RULES, EventLog, Truth, offers
from proctor.tasks.simulated.construction.render import RenderedPicture, Renderer
from proctor.tasks.simulated.construction.scene import Scene, SceneState
from proctor.tasks.simulated.construction.script import Event, Script, draw_script
from proctor.tasks.simulated.construction.simulation import SIMULATOR_VERSION, ask, observe, simulate

__all__ = [
    "CLASSES",
    "QUESTION_TYPES",
    "RULES",
    "SIMULATOR_VERSION",
    "Event",
    "EventLog",
    "ObjectClass",
    "RenderedPicture",
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
