"""One report: from a store, or an audit, to one HTML file that opens without network, server or further files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import proctor
from proctor.audits.items import ItemAudit
from proctor.core import PAGES, InputError, Item, output_file, write_whole
from proctor.reports.analysis import analysis_section
from proctor.reports.blocks import Section, Story
from proctor.reports.browser import RATED, browser_data, rated_data
from proctor.reports.comparisons import conditions_section, crossings_section, gains_section
from proctor.reports.completion import consumption_section, provenance_section, statuses_section
from proctor.reports.content import Limits, Shown
from proctor.reports.headline import headline_section
from proctor.reports.item_audit import audit_section
from proctor.reports.leaderboard import published_section
from proctor.reports.metric_agreement import agreement_section, counts_section, raters_section, systems_section
from proctor.reports.metric_profile import bias_section, calibration_section
from proctor.reports.metric_ranking import metric_pairs_section, metrics_section
from proctor.reports.packing import BrowserData
from proctor.reports.ranking import ranking_section
from proctor.reports.reliance import reliance_section
from proctor.reports.renderers import render_page
from proctor.reports.repetitions import repetitions_section
from proctor.reports.report_numbers import AuditSource, Source
from proctor.reports.subgroups import facets_section, orders_section
from proctor.reports.summary import audit_story, story_of
from proctor.results import Options, public_copy, reading_once
from proctor.runs import Store

_BROWSING = (
    "Every question with its key, what each system answered, how it was scored, and what a judge said of it. Choose "
    "on the left, read on the right, or walk with the arrow keys; the address keeps your filters."
)
_BROWSING_RATED = (
    "Every question with its references and answers: what {raters} gave beside what each metric gave. Each "
    "answer has a rank by score and a rank by rating among all answers of its language on a dimension; equal "
    "ones share their ranks. The gap is how far these two are apart, from 0 to 1, with ▲ where the score is the "
    "higher one. The disagreement of an answer is the mean of its gaps, that of a question the greatest of its "
    "answers'; filters narrow what counts."
)
_WITHHELD = "Withheld from this page: questions, references, answers, names of judges, settings of runs."


@dataclass(frozen=True)
class ReportSummary:
    """A written report: the file, its size, the contents of the item browser, a sentence for each limit that was
    reached (as on the page), and the first screen (`story`)."""

    path: Path
    bytes: int
    sections: tuple[str, ...]
    items: int
    answers: int
    pictures: int
    left_out: tuple[str, ...]
    story: Story = field(repr=False)


def write_report(
    store: Store,
    benchmark: str,
    out: Path,
    *,
    options: Options | None = None,
    thumbnails: Callable[[Item], list[tuple[str, bytes]]] | None = None,
    max_items: int = 10_000,
    audit: ItemAudit | None = None,
    baselines: Sequence[str] = (),
) -> ReportSummary:
    """Write the report of one benchmark. The file appears only when it is complete.

    `thumbnails` returns an item's small JPEGs (label, bytes; up to 128 kB each); it is called once per item.
    `baselines` are shown and not ranked. The item browser holds up to `max_items` items; with 0 there is none. The same
    store and options give the same bytes. Raises `InputError` if there is no run or `out` can't be written, and as
    `results` does.
    """
    source = Source(store, benchmark, options or Options(), baselines)
    return _write(source, out, thumbnails=thumbnails, max_items=max_items, audit=audit)


@reading_once()
def _write(
    source: Source,
    out: Path,
    *,
    thumbnails: Callable[[Item], list[tuple[str, bytes]]] | None = None,
    max_items: int,
    audit: ItemAudit | None = None,
    withheld: bool = False,
) -> ReportSummary:
    """Write the page. With `withheld` it has no item browser, and says so at the top."""
    source.check()
    sections = [
        headline_section(source),
        published_section(source),
        ranking_section(source),
        repetitions_section(source),
        facets_section(source),
        orders_section(source),
        analysis_section(source),
        conditions_section(source),
        reliance_section(source),
        gains_section(source),
        crossings_section(source),
        consumption_section(source),
        statuses_section(source),
        audit_section(audit),
    ]
    limits = replace(Limits(), items=max_items)
    data, shown = (None, Shown()) if withheld else browser_data(source, limits, thumbnails)
    return _page(
        out,
        story_of(source),
        [*sections, provenance_section(source)],
        (data if max_items else None, shown, shown.left_out(limits)),
        title=source.card.title,
        simulated=source.card.simulated,
        withheld=[_WITHHELD] if withheld else [],
        browsing=_BROWSING,
    )


def _page(
    out: Path,
    story: Story,
    sections: Sequence[Section | None],
    browser: tuple[BrowserData | None, Shown, list[str]],
    **context: Any,
) -> ReportSummary:
    """Write a page: the story, the sections that are not None, and the browser before the last one."""
    (data, shown, left_out), kept = browser, [section for section in sections if section is not None]
    page = render_page(
        story=story,
        sections=kept[:-1],
        last=kept[-1],
        data=data,
        shown=shown,
        left_out=left_out,
        version=proctor.__version__,
        **context,
    )
    return ReportSummary(
        path=out,
        bytes=write_whole(output_file(out, PAGES), page),
        sections=tuple(section.key for section in kept),
        items=shown.items,
        answers=shown.answers,
        pictures=shown.pictures,
        left_out=tuple(left_out),
        story=story,
    )


def write_public_report(
    store: Store,
    benchmark: str,
    out: Path,
    *,
    options: Options | None = None,
    baselines: Sequence[str] = (),
    pseudonyms: Mapping[str, str] | None = None,
) -> ReportSummary:
    """Write a report that may be published: the same numbers, without items, references, answers, names of judges,
    settings of runs and the item audit. `pseudonyms` replace names of systems. Otherwise as `write_report`."""
    options = options or Options()
    shown = pseudonyms or {}
    source = Source(
        public_copy(store, benchmark, shown),
        benchmark,
        replace(options, systems=tuple(shown.get(name, name) for name in options.systems)),
        tuple(shown.get(name, name) for name in baselines),
    )
    return _write(source, out, max_items=0, withheld=True)


def write_audit_report(source: AuditSource, out: Path, limits: Limits = RATED) -> ReportSummary:
    """Write the report of an audit. The file appears only when it is complete. The same source gives the same bytes.

    Raises `InputError` without a metric, for a missing score, and if `out` can't be written.
    """
    if not source.found.metrics:
        raise InputError("metrics", found="none", expected="one or more")
    story = audit_story(source)
    sections = [
        metrics_section(source),
        metric_pairs_section(source),
        agreement_section(source),
        raters_section(source),
        systems_section(source),
        calibration_section(source),
        bias_section(source),
        counts_section(source),
    ]
    data, shown = rated_data(source, limits)
    browser = (data, shown, shown.left_out(limits))
    browsing = _BROWSING_RATED.format(raters=source.raters)
    return _page(out, story, sections, browser, title=source.title, simulated=False, withheld=[], browsing=browsing)


def write_sections(
    out: Path, story: Story, sections: Sequence[Section], *, title: str, simulated: bool = False
) -> ReportSummary:
    """Write a report of these sections, without an item browser. Raises `InputError` if `out` can't be written."""
    browser = (None, Shown(), list[str]())
    return _page(out, story, sections, browser, title=title, simulated=simulated, withheld=[], browsing="")
