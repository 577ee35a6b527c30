"""Pose: the joints of the people in a picture, and what they say of it in words."""

from proctor.media.pose.coco import MARKS, KeypointFile
from proctor.media.pose.geometry import Arm, Body
from proctor.media.pose.keypoints import KEYPOINTS, SEEN, Box, Person, Point, Pose
from proctor.media.pose.network import LEAST_OVERLAP, LEAST_SCORE, Letterbox, PoseNetwork, people_of
from proctor.media.pose.predicates import (
    PREDICATES,
    PersonFacts,
    PictureFacts,
    Places,
    facts_of,
    places_of,
)
from proctor.media.pose.source import PoseSource, marked_region, marked_regions, open_pose
from proctor.media.pose.thresholds import SEGMENTS, THRESHOLDS, Threshold
from proctor.media.pose.words import WORDS, sentences

__all__ = [
    "KEYPOINTS",
    "LEAST_OVERLAP",
    "LEAST_SCORE",
    "MARKS",
    "PREDICATES",
    "SEEN",
    "SEGMENTS",
    "THRESHOLDS",
    "WORDS",
    "Arm",
    "Body",
    "Box",
    "KeypointFile",
    "Letterbox",
    "Person",
    "PersonFacts",
    "PictureFacts",
    "Places",
    "Point",
    "Pose",
    "PoseNetwork",
    "PoseSource",
    "Threshold",
    "facts_of",
    "marked_region",
    "marked_regions",
    "open_pose",
    "people_of",
    "places_of",
    "sentences",
]
