"""Media: found, checked, decoded once, and shown under a condition."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.media.audio import SpeechPart, speech_parts
    from proctor.media.clip_locations import ClipLocation, Excerpts, MediaAs
    from proctor.media.condition import Condition, ConditionContext
    from proctor.media.conditions import CONDITIONS
    from proctor.media.decode import sampled
    from proctor.media.duplicates import Tolerance, distances, find_leaks, hashes, look_at, look_at_items, write_page
    from proctor.media.frame_archive import StoredPicture
    from proctor.media.frame_store import KeptEntry, damaged, drop, kept, prune
    from proctor.media.library import MediaLibrary, MediaProblem, Picture
    from proctor.media.media_paths import (
        AUDIO_EXTENSIONS,
        IMAGE_EXTENSIONS,
        VIDEO_EXTENSIONS,
        Catalogue,
        cache_folder,
        find,
        is_there,
        labels_of,
        locate,
        plain_media,
        shown_location,
    )
    from proctor.media.mp4 import RedactedVideo, from_jpegs, redact
    from proctor.media.objects import location_of, media_folder
    from proctor.media.overlays import TextOverlay, find_text
    from proctor.media.pictures import encode, open_picture, read_image
    from proctor.media.redaction import Redaction, outside_of
    from proctor.media.sampling import MediaSettings, count_at_rate
    from proctor.media.scans import dicom_facts, in_order, nifti_facts, parse_scan, parse_window, scan_kind
    from proctor.media.shown import ClipFile, RecordsShown, ShownRecord, Sound
    from proctor.media.shown_again import shown_again
    from proctor.media.video import VideoFacts, inspect_video
    from proctor.media.video_clock import FrameIndex
    from proctor.media.views import PlaysSounds, ShowsFiles, ShowsOriginals, pictures_at, view, viewer
else:
    export_lazily(__name__)

__all__ = [
    "AUDIO_EXTENSIONS",
    "CONDITIONS",
    "IMAGE_EXTENSIONS",
    "VIDEO_EXTENSIONS",
    "Catalogue",
    "ClipFile",
    "ClipLocation",
    "Condition",
    "ConditionContext",
    "Excerpts",
    "FrameIndex",
    "KeptEntry",
    "MediaAs",
    "MediaLibrary",
    "MediaProblem",
    "MediaSettings",
    "Picture",
    "PlaysSounds",
    "RecordsShown",
    "RedactedVideo",
    "Redaction",
    "ShownRecord",
    "ShowsFiles",
    "ShowsOriginals",
    "Sound",
    "SpeechPart",
    "StoredPicture",
    "TextOverlay",
    "Tolerance",
    "VideoFacts",
    "cache_folder",
    "count_at_rate",
    "damaged",
    "dicom_facts",
    "distances",
    "drop",
    "encode",
    "find",
    "find_leaks",
    "find_text",
    "from_jpegs",
    "hashes",
    "in_order",
    "inspect_video",
    "is_there",
    "kept",
    "labels_of",
    "locate",
    "location_of",
    "look_at",
    "look_at_items",
    "media_folder",
    "nifti_facts",
    "open_picture",
    "outside_of",
    "parse_scan",
    "parse_window",
    "pictures_at",
    "plain_media",
    "prune",
    "read_image",
    "redact",
    "sampled",
    "scan_kind",
    "shown_again",
    "shown_location",
    "speech_parts",
    "view",
    "viewer",
    "write_page",
]  # fmt: skip
