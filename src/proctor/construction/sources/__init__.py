"""Videos before anything is made of them: checked, and without what must not leave the hospital."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.construction.sources.stage import SourcesStage
else:
    export_lazily(__name__)

__all__ = ["SourcesStage"]
