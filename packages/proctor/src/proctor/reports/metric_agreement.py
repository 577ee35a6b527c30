"""Agreement of metrics with raters: tables for the terminal and the report, and the report's sections on agreement,
raters and coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from proctor.audits import ALL, Agreement, Audit, Ceiling, LengthBias, SystemLevel
from proctor.core import (
    DASH,
    Cell,
    Column,
    Row,
    Table,
    columns,
    count_of,
    number,
    number_interval,
    plain_name,
    signed,
    thousands,
)
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section
from proctor.reports.figures import Matrix, draw_matrix
from proctor.stats import Contrast, Estimate

if TYPE_CHECKING:
    from proctor.reports.report_numbers import AuditSource

_LANGUAGES = {"en": "English", "zh": "Chinese"}
REASON = "Reason missing"
"""The header of the column with the reason why a number is missing."""


def strong_value(estimate: Estimate) -> Cell:
    """The main number of a row as a strong cell."""
    return Cell(number(estimate.value), strong=True, raw=estimate.value)


def ends_of(estimate: Estimate | Contrast) -> str:
    """The interval as text."""
    return number_interval(estimate.ci_low, estimate.ci_high)


def contrast_cells(contrast: Contrast) -> tuple[Cell, str]:
    """The value, strong if the interval excludes 0, and the interval."""
    known = contrast.ci_low is not None and contrast.ci_high is not None
    apart = known and not (contrast.ci_low or 0.0) <= 0 <= (contrast.ci_high or 0.0)
    return Cell(signed(contrast.value), strong=apart, raw=contrast.value), ends_of(contrast)


def dimension_name(dimension: str) -> str:
    """The name of a dimension in words; '' is the mean over all dimensions."""
    return plain_name(dimension) or "mean over the dimensions"


def spoken_language(language: str) -> str:
    """The name of a language if it is known, or else its code; '' is all ratings."""
    return _LANGUAGES.get(language, language) or "All ratings"


def with_reasons(caption: str, heads: tuple[Column, ...], rows: Iterable[Row], *, title: str = "") -> Table:
    """A table whose last column has reasons for missing numbers; the column is omitted if it is empty."""
    kept = tuple(rows)
    if any(row[-1] for row in kept):
        return Table(caption, heads, kept, title=title)
    return Table(caption, heads[:-1], tuple(row[:-1] for row in kept), title=title)


def audit_tables(audit: Audit) -> list[Table]:
    """The tables of one metric by language: agreement, systems and answer length, and then raters."""
    tables = []
    for language in dict.fromkeys(row.language for row in audit.agreements):
        tables.append(_agreement_table(audit, language))
        if any(_pooled(row, language) for row in audit.by_system):
            tables += [_systems_table([audit], language), _system_means_table([audit], language)]
        lengths = [row for row in audit.by_length if _pooled(row, language)]
        if lengths:
            tables.append(lengths_table([(audit.metric, row) for row in lengths]))
    if audit.by_rater:
        tables.append(_by_rater_table(audit))
    if audit.ceilings:
        tables.append(_ceilings_table(audit.ceilings))
    return tables


def _agreement_table(audit: Audit, language: str, *, reasons: bool = True) -> Table:
    """One metric in one language: all datasets and dimensions, then the mean over the dimensions; with `reasons` for
    missing numbers."""
    heads = columns(
        *("Dimension", "Dataset", ">Kendall", ">Pearson", ">Spearman", ">Mean", ">95 % CI"),
        *(">Ratings", ">Answers", ">Groups", ">Raters", REASON),
    )
    rows: list[Row] = [
        (
            *(Cell(plain_name(row.dimension)), row.dataset, *_kinds(row), strong_value(row.mean), ends_of(row.mean)),
            *(row.mean.n, row.answers, row.mean.groups, row.raters),
            (why_none(row.reason) or row.note) if reasons else "",
        )
        for row in audit.agreements
        if row.language == language
    ]
    rows += [
        (
            *(Cell(dimension_name("")), ALL, "", "", "", strong_value(aggregate.mean), ends_of(aggregate.mean)),
            *("", "", aggregate.mean.groups, ""),
            (aggregate.reason or aggregate.note) if reasons else "",
        )
        for aggregate in audit.aggregates
        if aggregate.language == language and aggregate.dimensions > 1
    ]
    title = f"{audit.metric}, {spoken_language(language)}: agreement with the raters"
    return with_reasons(f"{title}.", heads, rows, title=title)


def why_none(reason: str) -> str:
    """The reason for a missing correlation."""
    return f"constant: {reason}" if reason.startswith("all ") else reason


def _kinds(row: Agreement | Ceiling) -> tuple[str, str, str]:
    return number(row.kendall.value), number(row.pearson.value), number(row.spearman.value)


def _by_rater_table(audit: Audit) -> Table:
    """The agreement of one metric with each rater."""
    rows: list[Row] = [
        (
            *(Cell(plain_name(row.dimension)), spoken_language(row.language), row.dataset),
            "the raters' mean" if row.rater == "mean" else row.rater,
            *(*_kinds(row), strong_value(row.mean), ends_of(row.mean), row.mean.n, why_none(row.reason)),
        )
        for row in audit.by_rater
    ]
    heads = columns(
        *("Dimension", "Language", "Dataset", "Rater", ">Kendall", ">Pearson", ">Spearman", ">Mean"),
        *(">95 % CI", ">Ratings", REASON),
    )
    title = f"{audit.metric} and each rater alone"
    return with_reasons(f"{title}.", heads, rows, title=title)


def _ceilings_table(ceilings: Sequence[Ceiling]) -> Table:
    """The agreement of pairs of raters."""
    rows: list[Row] = [
        (
            *(
                Cell(plain_name(ceiling.dimension)),
                spoken_language(ceiling.language),
                ceiling.dataset,
                f"{ceiling.first}, {ceiling.second}",
            ),
            *(strong_value(ceiling.mean), ends_of(ceiling.mean), *_kinds(ceiling), number(ceiling.perfect)),
            *(number(ceiling.alpha.value), ends_of(ceiling.alpha), ceiling.mean.n, ceiling.reason),
        )
        for ceiling in ceilings
    ]
    heads = columns(
        *("Dimension", "Language", "Dataset", "Raters", ">Mean", ">95 % CI", ">Kendall", ">Pearson"),
        *(">Spearman", ">Perfect metric", ">Krippendorff's α", ">95 % CI of α", ">Answers", REASON),
    )
    return with_reasons(
        "One rater compared with another on the answers that both rated, and α of all raters. Perfect metric: the "
        "Pearson correlation that it would have with one of the two, √r.",
        heads,
        rows,
        title="The raters compared with each other",
    )


def _pooled(row: Agreement | SystemLevel | LengthBias, language: str) -> bool:
    return (row.dataset, row.language) == (ALL, language)


def _systems_table(audits: Sequence[Audit], language: str) -> Table:
    """Agreement by item and by system means."""
    rows: list[Row] = []
    for audit in audits:
        by_item = {row.dimension: row.mean for row in audit.agreements if _pooled(row, language)}
        for level in audit.by_system:
            if _pooled(level, language):
                mean = by_item[level.dimension]
                kinds = (number(value) for value in (level.kendall, level.pearson, level.spearman))
                lead = (Cell(audit.metric), plain_name(level.dimension), number(mean.value), ends_of(mean))
                rows.append((*lead, *kinds, len(level.systems), why_none(level.reason)))
    heads = columns(
        *("Metric", "Dimension", ">By item: mean", ">95 % CI", ">By system: Kendall", ">Pearson"),
        *(">Spearman", ">Systems", REASON),
    )
    title = f"{spoken_language(language)}: agreement item by item, and of the systems' means"
    return with_reasons(f"{title}, all datasets.", heads, rows, title=title)


def _system_means_table(audits: Sequence[Audit], language: str) -> Table:
    """The mean score and mean rating of each system."""
    levels = [(audit.metric, level) for audit in audits for level in audit.by_system if _pooled(level, language)]
    names = sorted({name for _, level in levels for name, *_ in level.systems})
    rows: list[Row] = []
    for metric, level in levels:
        known = {name: f"{number(score)} / {number(rating)}" for name, score, rating, _ in level.systems}
        rows.append((Cell(metric), plain_name(level.dimension), *(known.get(name, DASH) for name in names)))
    title = "Mean score / mean rating of each system"
    heads = columns("Metric", "Dimension", *(f">{name}" for name in names))
    return Table(f"{title}.", heads, tuple(rows), title=title)


def lengths_table(biases: Sequence[tuple[str, LengthBias]]) -> Table:
    """Correlations with answer length, by metric."""
    rows: list[Row] = [
        (
            *(Cell(metric), plain_name(bias.dimension)),
            *(number(bias.scores.value), ends_of(bias.scores), number(bias.ratings.value), ends_of(bias.ratings)),
            *(*contrast_cells(bias.excess), number(bias.partial), bias.reason),
        )
        for metric, bias in biases
    ]
    heads = columns(
        *("Metric", "Dimension", ">With score", ">95 % CI", ">With rating", ">95 % CI", ">Excess"),
        *(">95 % CI", ">Agreement, length fixed", REASON),
    )
    title = "Spearman's ρ with the length of the answer"
    return with_reasons(f"{title}.", heads, rows, title=title)


_MAX_ROWS = 40  # of a matrix; the tables are complete
_MAX_OPEN = 24  # rows of a table that is not folded


def agreement_section(source: AuditSource) -> Section:
    """For each language a matrix of mean correlations and tables of all numbers; then reasons for missing numbers."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        tables = tuple(_agreement_table(audit, language, reasons=False) for audit in source.audits(language))
        blocks += [
            spoken_language(language),
            _matrix(source, language, f"grid-{number_}"),
            Folded("Kendall, Pearson and Spearman, with the 95 % CI of their mean", tables),
        ]
    caption = "Where there is no number, and why: never a 0 instead."
    blocks += _reasons(source, "No correlation", caption, lambda row: why_none(row.reason))
    caption = (
        "A correlation without an interval: fewer than five groups carry the variation of one side, so no "
        "sample of groups tells what others would show."
    )
    blocks += _reasons(source, "No interval", caption, lambda row: row.note)
    return Section(
        key="agreement",
        title="Agreement by dataset and dimension",
        lead=f"The mean of Kendall's τ-b, Pearson's r and Spearman's ρ between scores and ratings. {ALL} pools the "
        "datasets: where they differ in both scores and ratings, it can lie above every one of them.",
        blocks=blocks,
        finding=f"{count_of(len(source.table.dimensions), 'dimension')}, {count_of(len(source.table.datasets), 'dataset')}",
    )


def _reasons(source: AuditSource, head: str, caption: str, why: Callable[[Agreement], str]) -> list[Block | str]:
    rows: list[Row] = [
        (Cell(audit.metric), spoken_language(row.language), row.dataset, plain_name(row.dimension), Cell(why(row)))
        for audit in source.found.each
        for row in audit.agreements
        if why(row)
    ]
    return (
        [head, Table(caption, columns("Metric", "Language", "Dataset", "Dimension", "Why"), tuple(rows))]
        if rows
        else []
    )


def _matrix(source: AuditSource, language: str, key: str) -> Figure:
    audits = source.audits(language)
    of = [{row.where: row.mean.value for row in audit.agreements} for audit in audits[:_MAX_ROWS]]
    datasets = source.datasets
    every = [(dataset, language, dimension) for dataset in datasets for dimension in source.dimensions(language)]
    there = [where for where in every if where in of[0]]
    bands = []
    for dataset in datasets if len(datasets) > 1 else ():
        inside = [index for index, (name, *_) in enumerate(there) if name == dataset]
        if inside:
            bands.append((dataset, inside[0], len(inside)))
    title = f"{spoken_language(language)}: mean correlation by dataset and dimension"
    names = [audit.metric for audit in audits[:_MAX_ROWS]]
    values = [[own[where] for where in there] for own in of]
    matrix = Matrix(names, [plain_name(dimension) for *_, dimension in there], values, _two_digits, bands=bands)
    more = f" Drawn are the best {len(names)} of {len(audits)} metrics." if len(audits) > len(names) else ""
    caption = f"{title}. Blue is above 0, orange below; a dash: no correlation.{more}"
    return Figure(draw_matrix(key, title, matrix), caption)


def _two_digits(value: float) -> str:
    """A correlation in a cell of a drawing, where three digits have no room; the tables have them."""
    return number(value, 2)


def raters_section(source: AuditSource) -> Section:
    """The agreement between raters, and of each metric with each rater."""
    audits = source.found.each
    blocks: list[Block | str] = []
    ceilings = audits[0].ceilings
    if ceilings:
        blocks.append(_ceilings_table(ceilings))
    else:
        blocks.append(
            Prose(
                "No answer was rated by two raters on the same dimension. So it can't be known how far raters agree "
                "among themselves, nor how near a metric comes to that; there is no α either."
            )
        )
    apart = tuple(_by_rater_table(audit) for audit in audits if audit.by_rater)
    alone = Prose("Every dimension was rated by one rater alone.", quiet=True)
    blocks.append(Folded("Each metric and each rater alone", apart) if apart else alone)
    return Section(
        key="raters",
        title="Agreement between raters",
        lead="How far two raters agree is no upper limit for a metric. One rater's slips lower both: raters who "
        "correlate by r with each other (Pearson) correlate by √r with a perfect metric, which gives each answer what "
        "raters would give it on average. Where r is 0.50, a perfect metric reaches 0.71 with one rater, and more with "
        "the mean of several. This takes raters to err alike and independently.",
        blocks=blocks,
        finding=_ceiling_words(ceilings),
    )


def _ceiling_words(ceilings: Sequence[Ceiling]) -> str:
    """How far two raters agree, in a few words."""
    values = sorted(one.mean.value for one in ceilings if one.mean.value is not None)
    if not values:
        return "not known: no answer was rated by two"
    ends = number(values[0]) if len(values) == 1 else f"{number(values[0])} to {number(values[-1])}"
    return f"two raters correlate by {ends}"


def systems_section(source: AuditSource) -> Section:
    """Agreement by item and by system means."""
    blocks: list[Block | str] = []
    for language in source.languages:
        audits = source.audits(language)
        few = max(1, _MAX_OPEN // len(source.dimensions(language)))
        blocks += [spoken_language(language), _systems_table(audits[:few], language)]
        if audits[few:]:
            others = _systems_table(audits[few:], language)
            blocks.append(Folded(count_of(len(audits) - few, "more metric"), (others,)))
        blocks.append(Folded("Mean score and mean rating of each system", (_system_means_table(audits, language),)))
    return Section(
        key="systems",
        title="By item and by system",
        lead="A metric can put systems in the raters' order and yet say little of a single answer, or the other way "
        "round. With few systems their order is easily met by luck: such a correlation has no interval worth showing.",
        blocks=blocks,
        finding=count_of(len({rating.system for rating in source.table.ratings}), "system"),
    )


def counts_section(source: AuditSource) -> Section:
    """Items, groups, answers, raters; what each metric scored; and what its reader had to say."""
    table, settings = source.table, source.found.settings
    drawn = f"{thousands(settings.draws)} clustered bootstrap draws, seed {settings.seed}"
    facts = {
        "Metrics": str(len(source.found.metrics)),
        "Ratings": f"{thousands(len(table.ratings))} by {source.raters}",
        "Groups (resampled together)": thousands(len({rating.cluster for rating in table.ratings})),
        "Intervals": f"{source.level}, {drawn}" if settings.draws else "none were drawn",
    }
    rated: list[Row] = [
        (
            *(Cell(spoken_language(coverage.language)), coverage.dataset),
            *(
                coverage.items,
                coverage.groups,
                coverage.systems,
                coverage.answers,
                coverage.dimensions,
                coverage.ratings,
                len(coverage.raters),
                coverage.twice,
            ),
            ", ".join(coverage.raters),
        )
        for coverage in source.found.coverage
    ]
    heads = columns(
        *("Language", "Dataset", ">Items", ">Groups", ">Systems", ">Answers", ">Dimensions", ">Ratings"),
        *(">Raters", ">Rated by two or more", "Who"),
    )
    scored: list[Row] = [
        (Cell(scored_count.metric), scored_count.scored, scored_count.opted_out) for scored_count in source.found.scored
    ]
    notes = tuple(f"{metric.name}: {note}" for metric in source.found.metrics for note in metric.notes)
    quiet = Prose("No row of the scores was dropped, repeated or opted out.", quiet=True)
    return Section(
        key="counts",
        title="Data",
        lead="A group is what was resampled together, such as a patient's encounter in both languages: its answers are "
        "more alike than others, so that more of them do not say as much more.",
        blocks=[
            Table(
                "What was audited, with which settings.",
                columns("Fact", "Value"),
                tuple((Cell(name), shown) for name, shown in facts.items()),
            ),
            Table("What was rated.", heads, tuple(rated)),
            Table(
                "What each metric scored, of the rated dimensions of answers.",
                columns("Metric", ">Scored", ">Opted out"),
                tuple(scored),
            ),
            Prose("Found while reading the scores:", notes) if notes else quiet,
        ],
        finding=f"{thousands(len(table.ratings))} ratings of {thousands(sum(one.answers for one in source.found.coverage))} answers",
    )
