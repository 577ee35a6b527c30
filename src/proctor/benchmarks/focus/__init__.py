"""FOCUS: questions on foreign objects in minimally invasive surgery, on a frame, a segment or a whole procedure.

Source: the design document of the ORena SAVE FOCUS challenge (PROCEDURE track), MICCAI 2026.
"""

from proctor.benchmarks.focus.forms import lettered
from proctor.benchmarks.focus.lint import Finding, Lint, lint_submission
from proctor.benchmarks.focus.native import (
    NativeReference,
    NativeRequest,
    NativeResponse,
    read_references,
    read_requests,
    read_responses,
    write_answer,
    write_native,
)
from proctor.benchmarks.focus.reader import READER
from proctor.benchmarks.focus.taxonomy import CAPABILITIES, FOREIGN_OBJECT, GROUP_OF, GROUPS, OBJECTS

__all__ = [
    "CAPABILITIES",
    "FOREIGN_OBJECT",
    "GROUPS",
    "GROUP_OF",
    "OBJECTS",
    "READER",
    "Finding",
    "Lint",
    "NativeReference",
    "NativeRequest",
    "NativeResponse",
    "lettered",
    "lint_submission",
    "read_references",
    "read_requests",
    "read_responses",
    "write_answer",
    "write_native",
]
