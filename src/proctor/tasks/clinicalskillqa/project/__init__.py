"""`proctor build new --kind clinicalskillqa`: from videos to key frames with an order and a
rationale that two physicians reviewed."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.clinicalskillqa.project.kind import KIND
else:
    export_lazily(__name__)

__all__ = ["KIND"]
