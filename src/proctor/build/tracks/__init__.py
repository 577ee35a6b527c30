"""Annotated videos: boxes second by second with class and instance, and moments of importance; their import,
export, checks and completion; and the questions that they answer."""

from proctor.build.tracks.annotation import Annotation, Box, Moment, Sighting, Video
from proctor.build.tracks.balance import choose
from proctor.build.tracks.checks import Finding, find
from proctor.build.tracks.coco import read_coco, to_coco
from proctor.build.tracks.completion import Completion, Filled, complete
from proctor.build.tracks.cvat_reading import read_cvat
from proctor.build.tracks.cvat_writing import to_cvat
from proctor.build.tracks.faults import Given
from proctor.build.tracks.focus import BUILDER_VERSION, FocusBuilt, ask_focus, build_focus
from proctor.build.tracks.focus_asking import SEEN_IN_TRAINING, FocusPlan
from proctor.build.tracks.offers import Dialect, Offer
from proctor.build.tracks.reading import (
    KINDS,
    TrackFormat,
    files_of,
    read_annotations,
    write_annotations,
    write_folder,
)
from proctor.build.tracks.rules import TRACK_RULES
from proctor.build.tracks.timeline import Timeline

__all__ = [
    "BUILDER_VERSION",
    "KINDS",
    "SEEN_IN_TRAINING",
    "TRACK_RULES",
    "Annotation",
    "Box",
    "Completion",
    "Dialect",
    "Filled",
    "Finding",
    "FocusBuilt",
    "FocusPlan",
    "Given",
    "Moment",
    "Offer",
    "Sighting",
    "Timeline",
    "TrackFormat",
    "Video",
    "ask_focus",
    "build_focus",
    "choose",
    "complete",
    "files_of",
    "find",
    "read_annotations",
    "read_coco",
    "read_cvat",
    "to_coco",
    "to_cvat",
    "write_annotations",
    "write_folder",
]
