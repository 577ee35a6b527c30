"""How far each metric agrees, dataset by dataset and dimension by dimension; with the raters, and by system."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.audit import ALL, Agreement, Audit, SystemLevel
from proctor.reports.audits.cells import (
    Row,
    columns,
    estimate_cells,
    number,
    spoken_language,
    with_reasons,
)
from proctor.reports.audits.figures import Grid, draw_grid
from proctor.reports.audits.source import AuditSource
from proctor.reports.blocks import Block, Cell, Figure, Folded, Prose, Section, Table
from proctor.reports.words import DASH, plain_name

__all__ = ["agreement_section", "raters_section", "systems_section"]

_MOST_ROWS = 40  # of a grid; the tables have all
_MOST_OPEN = 24  # rows of a table that is not folded


def agreement_section(source: AuditSource) -> Section:
    """A grid per language with the mean correlations, every figure below it, and why some are missing."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        blocks.append(_grid(source, language, f"grid-{number_}"))
        blocks.append(
            Folded(
                "Kendall, Pearson and Spearman, with the interval of their mean",
                tuple(_figures(audit, language) for audit in _ranked(source, language)),
            )
        )
    missing = [(audit.metric, row) for audit in source.found.each for row in audit.agreements if row.reason]
    if missing:
        caption = "Where there is no number, and why: never a 0 in its place."
        blocks += ["No correlation", _why_none(caption, [(*one, _why(one[1].reason)) for one in missing])]
    thin = [
        (audit.metric, row, row.note) for audit in source.found.each for row in audit.agreements if row.note
    ]
    if thin:
        caption = (
            "A correlation without an interval: fewer than five groups carry the variation of one side, so no "
            "sample of groups tells what others would show."
        )
        blocks += ["No interval", _why_none(caption, thin)]
    return Section(
        key="agreement",
        title="Agreement by dataset and dimension",
        lead=f"The mean of Kendall's τ-b, Pearson's r and Spearman's ρ between scores and ratings. {ALL} pools the "
        "datasets: where they differ in both scores and ratings, it can lie above every one of them.",
        blocks=blocks,
    )


def raters_section(source: AuditSource) -> Section:
    """What one rater says of another, and each rater apart."""
    audits = source.found.each
    blocks: list[Block | str] = []
    ceilings = audits[0].ceilings
    if ceilings:
        rows: tuple[Row, ...] = tuple(
            (
                Cell(plain_name(one.dimension)),
                spoken_language(one.language),
                one.dataset,
                f"{one.first}, {one.second}",
                Cell(number(one.mean.value), strong=True),
                estimate_cells(one.mean)[1],
                *(number(kind.value) for kind in (one.kendall, one.pearson, one.spearman)),
                number(one.perfect),
                *estimate_cells(one.alpha),
                one.mean.n,
                one.reason or "",
            )
            for one in ceilings
        )
        heads = columns(
            *("Dimension", "Language", "Dataset", "Raters", ">Mean", ">Interval", ">Kendall", ">Pearson"),
            *(">Spearman", ">Perfect metric", ">Krippendorff's α", ">Interval of α", ">Answers", "Why none"),
        )
        blocks.append(
            with_reasons(
                "One rater against another on the answers that both rated, and α of all raters. Perfect metric: the "
                "Pearson correlation that it would have with one of the two, √r.",
                heads,
                rows,
            )
        )
    else:
        blocks.append(
            Prose(
                "No answer was rated by two raters on the same dimension. So it can't be known how far raters agree "
                "among themselves, nor how near a metric comes to that; there is no α either."
            )
        )
    apart = [audit for audit in audits if audit.by_rater]
    if apart:
        blocks.append(Folded("Each metric and each rater alone", tuple(_by_rater(audit) for audit in apart)))
    else:
        blocks.append(Prose("Every dimension was rated by one rater alone.", quiet=True))
    return Section(
        key="raters",
        title="How far the raters agree",
        lead="How far two raters agree is no upper limit for a metric. One rater's slips lower both: raters who "
        "correlate by r with each other (Pearson) correlate by √r with a perfect metric, which gives each answer what "
        "raters would give it on average. Where r is 0.50, a perfect metric reaches 0.71 with one rater, and more with "
        "the mean of several. This takes raters to err alike and independently.",
        blocks=blocks,
    )


def systems_section(source: AuditSource) -> Section:
    """Agreement item by item beside that of the systems' means."""
    blocks: list[Block | str] = []
    for language in source.languages:
        blocks.append(spoken_language(language))
        audits = _ranked(source, language)
        few = max(1, _MOST_OPEN // len(source.dimensions(language)))
        blocks.append(_by_item_and_system(audits[:few], language))
        if audits[few:]:
            others = _by_item_and_system(audits[few:], language)
            blocks.append(Folded(f"The other {len(audits) - few} metrics", (others,)))
        blocks.append(Folded("Mean score and mean rating of each system", (_means(audits, language),)))
    return Section(
        key="systems",
        title="By item and by system",
        lead="A metric can put systems in the raters' order and yet say little of a single answer, or the other way "
        "round. With few systems their order is easily met by luck: such a correlation has no interval worth showing.",
        blocks=blocks,
    )


def _by_item_and_system(audits: Sequence[Audit], language: str) -> Table:
    rows: list[Row] = []
    for audit in audits:
        by_item = {row.dimension: row for row in audit.agreements if _pooled(row, language)}
        rows += [
            _system_row(audit.metric, by_item[one.dimension], one)
            for one in audit.by_system
            if _pooled(one, language)
        ]
    heads = columns(
        *("Metric", "Dimension", ">By item: mean", ">Interval", ">By system: Kendall", ">Pearson"),
        *(">Spearman", ">Systems", "Why none"),
    )
    caption = f"{spoken_language(language)}, all datasets: agreement item by item, and of the systems' means."
    return with_reasons(caption, heads, rows)


def _pooled(row: Agreement | SystemLevel, language: str) -> bool:
    return (row.dataset, row.language) == (ALL, language)


def _ranked(source: AuditSource, language: str) -> list[Audit]:
    by_name = {audit.metric: audit for audit in source.found.each}
    return [by_name[name] for name in source.ranked(language)]


def _grid(source: AuditSource, language: str, key: str) -> Figure:
    audits = _ranked(source, language)
    dimensions, datasets = source.dimensions(language), source.datasets
    there = [
        (dataset, dimension)
        for dataset in datasets
        for dimension in dimensions
        if any(_at(audits[0], language, dataset, dimension))
    ]
    values = [
        [next(iter(_at(audit, language, *where))).mean.value for where in there]
        for audit in audits[:_MOST_ROWS]
    ]
    bands = []
    for dataset in datasets:
        inside = [place for place, (name, _) in enumerate(there) if name == dataset]
        if inside and len(datasets) > 1:
            bands.append((dataset, inside[0], len(inside)))
    title = f"{spoken_language(language)}: mean correlation by dataset and dimension"
    names = [audit.metric for audit in audits[:_MOST_ROWS]]
    drawn = draw_grid(key, title, Grid(names, [plain_name(one) for _, one in there], values, bands))
    more = f" Drawn are the best {len(names)} of {len(audits)} metrics." if len(audits) > len(names) else ""
    return Figure(drawn, f"{title}. Blue is above 0, orange below; a dash: no correlation.{more}")


def _at(audit: Audit, language: str, dataset: str, dimension: str) -> list[Agreement]:
    return [
        row
        for row in audit.agreements
        if (row.language, row.dataset, row.dimension) == (language, dataset, dimension)
    ]


def _figures(audit: Audit, language: str) -> Table:
    rows: list[Row] = [
        (
            Cell(plain_name(row.dimension)),
            row.dataset,
            *(number(kind.value) for kind in (row.kendall, row.pearson, row.spearman)),
            Cell(number(row.mean.value), strong=True),
            estimate_cells(row.mean)[1],
            row.mean.n,
            row.answers,
            row.mean.groups,
            row.raters,
        )
        for row in audit.agreements
        if row.language == language
    ]
    heads = columns(
        *("Dimension", "Dataset", ">Kendall", ">Pearson", ">Spearman", ">Mean", ">Interval"),
        *(">Ratings", ">Answers", ">Groups", ">Raters"),
    )
    return Table(f"{audit.metric}, {spoken_language(language)}.", heads, tuple(rows))


def _why_none(caption: str, found: Sequence[tuple[str, Agreement, str]]) -> Table:
    rows = tuple(
        (
            Cell(metric),
            spoken_language(row.language),
            row.dataset,
            plain_name(row.dimension),
            Cell(why),
        )
        for metric, row, why in found
    )
    return Table(caption, columns("Metric", "Language", "Dataset", "Dimension", "Why"), rows)


def _why(reason: str) -> str:
    return f"constant: {reason}" if reason.startswith("all ") else reason


def _by_rater(audit: Audit) -> Table:
    rows: list[Row] = [
        (
            Cell(plain_name(row.dimension)),
            spoken_language(row.language),
            row.dataset,
            "the raters' mean" if row.rater == "mean" else row.rater,
            *(number(kind.value) for kind in (row.kendall, row.pearson, row.spearman)),
            Cell(number(row.mean.value), strong=True),
            estimate_cells(row.mean)[1],
            row.mean.n,
            _why(row.reason),
        )
        for row in audit.by_rater
    ]
    heads = columns(
        *("Dimension", "Language", "Dataset", "Rater", ">Kendall", ">Pearson", ">Spearman", ">Mean"),
        *(">Interval", ">Ratings", "Why none"),
    )
    return with_reasons(f"{audit.metric} and each rater alone.", heads, rows)


def _system_row(metric: str, by_item: Agreement, one: SystemLevel) -> Row:
    return (
        Cell(metric),
        plain_name(one.dimension),
        *estimate_cells(by_item.mean),
        *(number(value) for value in (one.kendall, one.pearson, one.spearman)),
        len(one.systems),
        _why(one.reason),
    )


def _means(audits: Sequence[Audit], language: str) -> Table:
    found = [(audit.metric, one) for audit in audits for one in audit.by_system if _pooled(one, language)]
    names = sorted({name for _, one in found for name, *_ in one.systems})
    rows: list[Row] = []
    for metric, one in found:
        known = {name: f"{number(score)} / {number(rating)}" for name, score, rating, _ in one.systems}
        rows.append((Cell(metric), plain_name(one.dimension), *(known.get(name, DASH) for name in names)))
    heads = columns("Metric", "Dimension", *(f">{name}" for name in names))
    return Table("Mean score / mean rating.", heads, tuple(rows))
