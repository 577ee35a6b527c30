"""From annotated videos to the files of a FOCUS benchmark."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.tasks.focus.construction.builder import BUILDER_VERSION, FocusBuilt, ask_focus, build_focus
    from proctor.tasks.focus.construction.plan import SEEN_IN_TRAINING, FocusPlan
else:
    export_lazily(__name__)

__all__ = ["BUILDER_VERSION", "SEEN_IN_TRAINING", "FocusBuilt", "FocusPlan", "ask_focus", "build_focus"]
