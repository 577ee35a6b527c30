"""Media: found, checked, decoded once, and shown under a condition."""

from proctor.media.cache import KeptEntry, damaged, kept, prune
from proctor.media.catalogue import cache_folder
from proctor.media.conditions import CONDITIONS, Condition
from proctor.media.library import MediaLibrary, MediaProblem
from proctor.media.settings import MediaSettings
from proctor.media.video import VideoInfo
from proctor.media.views import view, viewer

__all__ = [
    "CONDITIONS",
    "Condition",
    "KeptEntry",
    "MediaLibrary",
    "MediaProblem",
    "MediaSettings",
    "VideoInfo",
    "cache_folder",
    "damaged",
    "kept",
    "prune",
    "view",
    "viewer",
]
