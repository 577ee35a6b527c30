"""One report: from a store to one HTML file that opens without network, server or further files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import proctor
from proctor.audits.items import ItemAudit
from proctor.core import Item, write_whole
from proctor.reports.blocks import Section, Story
from proctor.reports.browser import Limits, Shown, browser_data
from proctor.reports.page import render_page
from proctor.reports.sections import (
    analysis_section,
    audit_section,
    conditions_section,
    consumption_section,
    crossings_section,
    facets_section,
    gains_section,
    headline_section,
    orders_section,
    provenance_section,
    published_section,
    ranking_section,
    statuses_section,
)
from proctor.reports.source import Source
from proctor.reports.story import story_of
from proctor.runs import Options, Store, public_copy

_BROWSING = (
    "Every question with its key, what each system answered, how it was scored, and what a judge said of it. Choose on the "
    "left, read on the right, or walk with the arrow keys; the address keeps your filters."
)
_WITHHELD = "Withheld from this page: questions, references, answers, names of judges, settings of runs."


@dataclass(frozen=True)
class ReportSummary:
    """What was written: the file, its size, what the item browser holds, and one sentence for each limit
    that was reached (the page says the same); `story` is its first screen."""

    path: Path
    bytes: int
    sections: tuple[str, ...]
    items: int
    answers: int
    pictures: int
    left_out: tuple[str, ...]
    story: Story


def write_report(
    store: Store,
    benchmark: str,
    out: Path,
    *,
    options: Options | None = None,
    thumbnails: Callable[[Item], list[tuple[str, bytes]]] | None = None,
    max_items: int = 2000,
    audit: ItemAudit | None = None,
    baselines: Sequence[str] = (),
) -> ReportSummary:
    """Writes the report of one benchmark; the file appears only when it is whole.

    `thumbnails` gives an item's small JPEGs (label, bytes; up to 8 kB each); it is asked once an item.
    `baselines` are marked in the ranking. The item browser holds up to `max_items` items; with 0 there
    is none. The same store and options give the same bytes.
    Raises `InputError` where there is no run, where `out` can't be written, and as `results` does.
    """
    source = Source(store, benchmark, options or Options(), baselines)
    return _write(source, out, thumbnails=thumbnails, max_items=max_items, audit=audit)


def _write(
    source: Source,
    out: Path,
    *,
    thumbnails: Callable[[Item], list[tuple[str, bytes]]] | None = None,
    max_items: int,
    audit: ItemAudit | None = None,
    withheld: bool = False,
) -> ReportSummary:
    """The page; one from which items are `withheld` says so at its head and has no place for them."""
    source.check()
    sections, last = _sections(source, audit), provenance_section(source)
    story = story_of(source)
    limits = replace(Limits(), items=max_items)
    data, shown = (None, Shown()) if withheld else browser_data(source, limits, thumbnails)
    left_out = shown.left_out(limits)
    page = render_page(
        story=story,
        sections=sections,
        last=last,
        data=data if max_items else None,
        title=source.card.title,
        simulated=source.card.simulated,
        withheld=[_WITHHELD] if withheld else [],
        browsing=_BROWSING,
        shown=shown,
        left_out=left_out,
        version=proctor.__version__,
    )
    written = write_whole(out, page)
    return ReportSummary(
        path=out,
        bytes=written,
        sections=tuple(section.key for section in (*sections, last)),
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
    """A report that may be published: the same numbers, without items, references, answers, names of judges, settings
    of runs and the item audit; systems have the names that `pseudonyms` gives them. Otherwise as `write_report`."""
    options = options or Options()
    shown = pseudonyms or {}
    source = Source(
        public_copy(store, benchmark, shown),
        benchmark,
        replace(options, systems=tuple(shown.get(name, name) for name in options.systems)),
        tuple(shown.get(name, name) for name in baselines),
    )
    return _write(source, out, max_items=0, withheld=True)


def _sections(source: Source, audit: ItemAudit | None) -> list[Section]:
    found = [
        headline_section(source),
        published_section(source),
        ranking_section(source),
        facets_section(source),
        orders_section(source),
        analysis_section(source),
        conditions_section(source),
        gains_section(source),
        crossings_section(source),
        consumption_section(source),
        statuses_section(source),
        audit_section(audit),
    ]
    return [section for section in found if section is not None]
