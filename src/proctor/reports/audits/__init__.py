"""The report of an audit: which metric agrees with the raters, what its scores mean, whom it favours, and where
it and the raters disagree."""

from proctor.reports.audits.report import write_audit_report
from proctor.reports.audits.source import AuditSource, Question, Reference, asked

__all__ = ["AuditSource", "Question", "Reference", "asked", "write_audit_report"]
