"""Media: found, checked, decoded once, and shown under a condition."""

from proctor.media.cache import KeptEntry, damaged, kept, prune
from proctor.media.catalogue import cache_folder
from proctor.media.clips import ClipFile
from proctor.media.conditions import CONDITIONS, Condition
from proctor.media.excerpts import Excerpts, MediaAs
from proctor.media.leaks import Leak, Looked, Tolerance, find_leaks, look_at, write_page
from proctor.media.library import MediaLibrary, MediaProblem
from proctor.media.settings import MediaSettings
from proctor.media.video import VideoInfo
from proctor.media.views import ShowsFiles, ShowsOriginals, view, viewer

__all__ = [
    "CONDITIONS",
    "ClipFile",
    "Condition",
    "Excerpts",
    "KeptEntry",
    "Leak",
    "Looked",
    "MediaAs",
    "MediaLibrary",
    "MediaProblem",
    "MediaSettings",
    "ShowsFiles",
    "ShowsOriginals",
    "Tolerance",
    "VideoInfo",
    "cache_folder",
    "damaged",
    "find_leaks",
    "kept",
    "look_at",
    "prune",
    "view",
    "viewer",
    "write_page",
]
