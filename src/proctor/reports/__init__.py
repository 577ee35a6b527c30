"""Reports: a store's numbers in words and pictures, as one HTML file that opens offline."""

from proctor.reports.report import ReportSummary, write_report

__all__ = ["ReportSummary", "write_report"]
