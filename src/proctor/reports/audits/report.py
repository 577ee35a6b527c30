"""An audit as one HTML file that opens without network, server or further files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import proctor
from proctor.core import InputError
from proctor.reports.audits.agreement import agreement_section, raters_section, systems_section
from proctor.reports.audits.browser import AuditLimits, audit_data
from proctor.reports.audits.counts import audit_facts, counts_section
from proctor.reports.audits.favour import favour_section
from proctor.reports.audits.meaning import calibration_section
from proctor.reports.audits.source import AuditSource
from proctor.reports.audits.standing import comparison_section, leaderboard_section
from proctor.reports.page import Browser, render_page, write_whole

__all__ = ["AuditSummary", "write_audit_report"]


@dataclass(frozen=True)
class AuditSummary:
    """What was written: the file, its size, its sections, what the browser holds, and one sentence for each limit
    that was reached (the page says the same)."""

    path: Path
    bytes: int
    sections: tuple[str, ...]
    items: int
    answers: int
    pictures: int
    left_out: tuple[str, ...]


def write_audit_report(source: AuditSource, out: Path, limits: AuditLimits | None = None) -> AuditSummary:
    """Writes the report; the file appears only when it is whole. The same source gives the same bytes.

    Raises `InputError` without a metric, for a missing score, and where `out` can't be written.
    """
    if not source.found.metrics:
        raise InputError(None, "metrics", found="none", expected="one or more")
    limits = limits or AuditLimits()
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
            counts_section(source),
        )
        if section is not None
    ]
    data, shown = audit_data(source, limits)
    left_out = shown.left_out(limits)
    page = render_page(
        sections=sections,
        data=data,
        browser=_browser(source),
        title=source.title,
        simulated=False,
        facts=audit_facts(source),
        shown=shown,
        left_out=left_out,
        version=proctor.__version__,
    )
    return AuditSummary(
        path=out,
        bytes=write_whole(out, page),
        sections=tuple(section.key for section in sections),
        items=shown.items,
        answers=shown.answers,
        pictures=shown.pictures,
        left_out=tuple(left_out),
    )


def _browser(source: AuditSource) -> Browser:
    return Browser(
        "Questions and answers",
        f"Every question with its references and answers: what {source.raters} said beside what each metric said. Each "
        "answer has a place by score and a place by rating among all answers of its language on a dimension; equal "
        "ones share their places. The gap is how far these two are apart, from 0 to 1, with ▲ where the score is the "
        "higher one. The disagreement of an answer is the mean of its gaps, that of a question the greatest of its "
        "answers'; filters narrow what counts.",
        _part("audits.js"),
        _part("audits.css"),
    )


@cache
def _part(name: str) -> str:
    return (files("proctor.reports.audits") / name).read_text(encoding="utf-8")
