"""An audit as one HTML file that opens without network, server or further files."""

from __future__ import annotations

from pathlib import Path

import proctor
from proctor.core import InputError, write_whole
from proctor.reports.audits.agreement import (
    agreement_section,
    comparison_section,
    counts_section,
    leaderboard_section,
    raters_section,
    systems_section,
)
from proctor.reports.audits.bias import calibration_section, favour_section
from proctor.reports.audits.items import RATED, rated_data
from proctor.reports.audits.source import AuditSource
from proctor.reports.audits.story import audit_story
from proctor.reports.browser import Limits
from proctor.reports.page import render_page
from proctor.reports.report import ReportSummary


def write_audit_report(source: AuditSource, out: Path, limits: Limits = RATED) -> ReportSummary:
    """Writes the report; the file appears only when it is whole. The same source gives the same bytes.

    Raises `InputError` without a metric, for a missing score, and where `out` can't be written.
    """
    if not source.found.metrics:
        raise InputError(None, "metrics", found="none", expected="one or more")
    story = audit_story(source)
    sections = [
        section
        for section in (
            leaderboard_section(source),
            comparison_section(source),
            agreement_section(source),
            raters_section(source),
            systems_section(source),
            calibration_section(source),
            favour_section(source),
        )
        if section is not None
    ]
    data, shown = rated_data(source, limits)
    left_out = shown.left_out(limits)
    page = render_page(
        story=story,
        sections=sections,
        last=counts_section(source),
        data=data,
        browsing=_browsing(source),
        title=source.title,
        simulated=False,
        withheld=[],
        shown=shown,
        left_out=left_out,
        version=proctor.__version__,
    )
    return ReportSummary(
        path=out,
        bytes=write_whole(out, page),
        sections=(*(section.key for section in sections), "counts"),
        items=shown.items,
        answers=shown.answers,
        pictures=shown.pictures,
        left_out=tuple(left_out),
        story=story,
    )


def _browsing(source: AuditSource) -> str:
    return (
        f"Every question with its references and answers: what {source.raters} gave beside what each metric gave. Each "
        "answer has a rank by score and a rank by rating among all answers of its language on a dimension; equal "
        "ones share their ranks. The gap is how far these two are apart, from 0 to 1, with ▲ where the score is the "
        "higher one. The disagreement of an answer is the mean of its gaps, that of a question the greatest of its "
        "answers'; filters narrow what counts."
    )
