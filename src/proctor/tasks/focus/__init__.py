"""FOCUS: questions on foreign objects in minimally invasive surgery, on a frame, a segment or a whole procedure.

Source: the design document of the ORena SAVE FOCUS challenge (PROCEDURE track), MICCAI 2026.
"""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.focus.builder import FocusBuilt, ask_focus, build_focus
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
    from proctor.tasks.focus.plan import FocusPlan
    from proctor.tasks.focus.reader import READER
    from proctor.tasks.focus.submission import SubmissionFinding, SubmissionReport, validate_submission
    from proctor.tasks.focus.taxonomy import CAPABILITIES, FOREIGN_OBJECT, GROUP_OF, GROUPS
else:
    export_lazily(__name__)

__all__ = [
    "CAPABILITIES", "FOREIGN_OBJECT", "GROUPS", "GROUP_OF", "READER", "FocusBuilt", "FocusPlan", "NativeReference",
    "NativeRequest", "NativeResponse", "SubmissionFinding", "SubmissionReport", "ask_focus", "build_focus",
    "lettered", "read_references", "read_requests", "read_responses", "validate_submission", "write_answer",
    "write_native",
]  # fmt: skip
