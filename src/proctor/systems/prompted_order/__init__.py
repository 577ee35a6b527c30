"""`prompted-order`: all frames in one question, worded in one of several ways."""

from proctor.systems.prompted_order.demonstrations import SAME, Demonstration, Demonstrations, Picked
from proctor.systems.prompted_order.names import Names, drawn_names, kept_names
from proctor.systems.prompted_order.system import FORMULATIONS, Options, PromptedOrder, build

__all__ = [
    "FORMULATIONS",
    "SAME",
    "Demonstration",
    "Demonstrations",
    "Names",
    "Options",
    "Picked",
    "PromptedOrder",
    "build",
    "drawn_names",
    "kept_names",
]
