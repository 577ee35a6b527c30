"""`simulated`: procedures that are rendered, with questions that the pixels answer, and a reader of pixels.

Script of events → state of the scene at a time → picture → video; and ground truth → questions. Nothing here shows a
real patient, and everything that is written says so: a unit test for models, with exact ground truth.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.simulated.pictures import CLASSES, ObjectClass, Renderer
    from proctor.tasks.simulated.reader import READER
    from proctor.tasks.simulated.script import Event, Scene, Script, draw_script
    from proctor.tasks.simulated.simulation import (
        QUESTION_TYPES,
        RULES,
        SIMULATOR_VERSION,
        EventLog,
        Truth,
        ask,
        candidates,
        observe,
        simulate,
    )
else:
    export_lazily(__name__)

__all__ = [
    "CLASSES", "QUESTION_TYPES", "READER", "RULES", "SIMULATOR_VERSION", "Event", "EventLog", "ObjectClass",
    "Renderer", "Scene", "Script", "Truth", "ask", "candidates", "draw_script", "observe", "simulate",
]  # fmt: skip
