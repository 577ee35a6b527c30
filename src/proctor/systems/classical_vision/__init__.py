"""`classical-vision`: colour, shape and motion without any learned model; it really looks at the frames."""

from proctor.systems.classical_vision.detection import LOOKS, Detection, Look, Picture, detect
from proctor.systems.classical_vision.system import VERSION, ClassicalVision, build
from proctor.systems.classical_vision.tracking import Life, Story, follow

__all__ = [
    "LOOKS",
    "VERSION",
    "ClassicalVision",
    "Detection",
    "Life",
    "Look",
    "Picture",
    "Story",
    "build",
    "detect",
    "follow",
]
