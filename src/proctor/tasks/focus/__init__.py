"""FOCUS: questions on foreign objects in minimally invasive surgery, on a frame, a segment or a whole procedure.

Source: the design document of the ORena SAVE FOCUS challenge (PROCEDURE track), MICCAI 2026.
"""

from proctor.tasks.focus.native import (
    NativeReference,
    NativeRequest,
    NativeResponse,
    lettered,
    read_references,
    read_requests,
    read_responses,
    write_answer,
    write_native,
)
from proctor.tasks.focus.reader import READER
from proctor.tasks.focus.submission import Lint, SubmissionFinding, lint_submission
from proctor.tasks.focus.taxonomy import CAPABILITIES, FOREIGN_OBJECT, GROUP_OF, GROUPS, OBJECTS

__all__ = [
    "CAPABILITIES",
    "FOREIGN_OBJECT",
    "GROUPS",
    "GROUP_OF",
    "OBJECTS",
    "READER",
    "Lint",
    "NativeReference",
    "NativeRequest",
    "NativeResponse",
    "SubmissionFinding",
    "lettered",
    "lint_submission",
    "read_references",
    "read_requests",
    "read_responses",
    "write_answer",
    "write_native",
]
