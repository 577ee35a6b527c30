"""`seriation`: key frames in order by their looks and motion alone, without a model."""

from proctor.systems.seriation.direction import Learned, Start, learned
from proctor.systems.seriation.motion import Motion, moved
from proctor.systems.seriation.path import MOST_EXACT, shortest_path
from proctor.systems.seriation.system import VERSION, Options, Seriation, build, build_directed

__all__ = [
    "MOST_EXACT",
    "VERSION",
    "Learned",
    "Motion",
    "Options",
    "Seriation",
    "Start",
    "build",
    "build_directed",
    "learned",
    "moved",
    "shortest_path",
]
