"""The report of an audit: which metric agrees with the raters, what its scores mean, whom it favours, and where
it and the raters disagree."""

from proctor.reports.audits.browser import AuditLimits
from proctor.reports.audits.report import AuditSummary, write_audit_report
from proctor.reports.audits.source import AuditSource, Question, Reference, asked, encountered

__all__ = [
    "AuditLimits",
    "AuditSource",
    "AuditSummary",
    "Question",
    "Reference",
    "asked",
    "encountered",
    "write_audit_report",
]
