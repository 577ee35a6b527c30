"""Interchange: answers recorded by other programs come in, and benchmarks and results go out in their formats."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.interchange.export_source import ORIGIN, ExportSource, Written
    from proctor.interchange.formats import FORMATS, ForeignFormat
    from proctor.interchange.recognition import TABLE, recognised
    from proctor.interchange.task_items import LmmsTask, inspect_task
else:
    export_lazily(__name__)

__all__ = [
    "FORMATS", "ORIGIN", "TABLE", "ExportSource", "ForeignFormat", "LmmsTask", "Written", "inspect_task", "recognised",
]  # fmt: skip
