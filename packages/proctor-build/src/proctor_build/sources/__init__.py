"""Check a project's videos and de-identify them."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_build.sources.stage import SourcesStage
else:
    export_lazily(__name__)

__all__ = ["SourcesStage"]
