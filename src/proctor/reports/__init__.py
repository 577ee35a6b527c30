"""Reports: a store's numbers in words and pictures, as one HTML file that opens offline, or as files."""

from proctor.reports.pictures import write_pictures
from proctor.reports.report import ReportSummary, write_public_report, write_report

__all__ = ["ReportSummary", "write_pictures", "write_public_report", "write_report"]
