"""Reports: numbers in tables, figures and words, for a terminal, as one HTML file that opens offline, or as files."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.reports.pictures import write_pictures
    from proctor.reports.report import ReportSummary, write_public_report, write_report
else:
    export_lazily(__name__)

__all__ = ["ReportSummary", "write_pictures", "write_public_report", "write_report"]
