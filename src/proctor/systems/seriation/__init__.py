"""`seriation`: key frames in order by their looks alone, without a model."""

from proctor.systems.seriation.path import MOST_EXACT, shortest_path
from proctor.systems.seriation.system import VERSION, Seriation, Start, build

__all__ = ["MOST_EXACT", "VERSION", "Seriation", "Start", "build", "shortest_path"]
