"""Interchange: answers recorded by other programs come in, and benchmarks and results go out in their formats."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.interchange.dataset_rows import DATASET_COLUMNS, RowForm, dataset_item, dataset_row, row_form
    from proctor.interchange.download import Downloader, content_sha256, is_archive, unpack
    from proctor.interchange.export_source import ORIGIN, ExportSource, Written, file_hash
    from proctor.interchange.formats import FORMATS, TABLE, ForeignFormat, is_export, recognised
    from proctor.interchange.recorded import read_reply
    from proctor.interchange.recorded_results import results_of_recorded
    from proctor.interchange.tasks import LmmsTask, inspect_task
else:
    export_lazily(__name__)

__all__ = [
    "DATASET_COLUMNS", "FORMATS", "ORIGIN", "TABLE", "Downloader", "ExportSource", "ForeignFormat", "LmmsTask",
    "RowForm", "Written", "content_sha256", "dataset_item", "dataset_row", "file_hash", "inspect_task", "is_archive",
    "is_export", "read_reply", "recognised", "results_of_recorded", "row_form", "unpack",
]  # fmt: skip
