"""FOCUS: questions on foreign objects in minimally invasive surgery, on a frame, a segment or a whole procedure.

Source: the design document of the ORena SAVE FOCUS challenge (PROCEDURE track), MICCAI 2026.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.focus.native import NativeReference, NativeRequest, write_native
    from proctor.tasks.focus.reader import READER
    from proctor.tasks.focus.vocabulary import GROUP_OF, GROUPS, lettered, time_tolerance
else:
    export_lazily(__name__)

__all__ = [
    "GROUPS",
    "GROUP_OF",
    "READER",
    "NativeReference",
    "NativeRequest",
    "lettered",
    "time_tolerance",
    "write_native",
]

READER_SUMMARY = "FOCUS: foreign objects in surgical video, on a frame, a segment or a whole procedure (--track)"
"""As `proctor list` shows it, without loading the reader."""
