"""The sight test: whether pictures, clips and sound reach a served model as they are sent."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.sight.asking import ROUTES
    from proctor.sight.examination import SightPlan, examine
    from proctor.sight.record import SightResult, keep, kept_result, record_file, sight_note
else:
    export_lazily(__name__)

__all__ = [
    "ROUTES", "SightPlan", "SightResult", "examine", "keep", "kept_result", "record_file",
    "sight_note",
]  # fmt: skip
