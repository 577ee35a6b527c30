"""Media: found, checked, decoded once, and shown under a condition."""

from proctor.media.conditions import CONDITIONS, Condition
from proctor.media.library import MediaLibrary, MediaProblem
from proctor.media.settings import MediaSettings
from proctor.media.video import VideoInfo
from proctor.media.views import view

__all__ = [
    "CONDITIONS",
    "Condition",
    "MediaLibrary",
    "MediaProblem",
    "MediaSettings",
    "VideoInfo",
    "view",
]
