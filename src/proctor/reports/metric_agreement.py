"""How far metrics agree with raters: tables for terminal and page, and the report's sections of agreement and
raters."""

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
    from proctor.reports.source import AuditSource

_LANGUAGES = {"en": "English", "zh": "Chinese"}
REASON = "Reason missing"
"""The column that says why a row has no number."""


def strong_value(one: Estimate) -> Cell:
    """The number that a row is about."""
    return Cell(number(one.value), strong=True, raw=one.value)


def ends_of(one: Estimate | Contrast) -> str:
    """Its interval."""
    return number_interval(one.ci_low, one.ci_high)


def contrast_cells(one: Contrast) -> tuple[Cell, str]:
    """The value, strong where its interval leaves 0 out, and the interval."""
    known = one.ci_low is not None and one.ci_high is not None
    apart = known and not (one.ci_low or 0.0) <= 0 <= (one.ci_high or 0.0)
    return Cell(signed(one.value), strong=apart, raw=one.value), ends_of(one)


def dimension_name(dimension: str) -> str:
    """A dimension in words; '' is all of a language."""
    return plain_name(dimension) or "mean over the dimensions"


def spoken_language(language: str) -> str:
    """A language by its name where it is a known one; '' is all ratings."""
    return _LANGUAGES.get(language, language) or "All ratings"


def with_reasons(caption: str, heads: tuple[Column, ...], rows: Iterable[Row], *, title: str = "") -> Table:
    """A table whose last column says why a row has no number; without that column where every row has one."""
    kept = tuple(rows)
    if any(row[-1] for row in kept):
        return Table(caption, heads, kept, title=title)
    return Table(caption, heads[:-1], tuple(row[:-1] for row in kept), title=title)


def audit_tables(audit: Audit) -> list[Table]:
    """One metric: agreement, raters, systems and answer length, language by language."""
    found = []
    for language in dict.fromkeys(one.language for one in audit.agreements):
        found.append(_agreement_table(audit, language))
        if any(_pooled(one, language) for one in audit.by_system):
            found += [_systems_table([audit], language), _system_means_table([audit], language)]
        lengths = [one for one in audit.by_length if _pooled(one, language)]
        if lengths:
            found.append(lengths_table([(audit.metric, one) for one in lengths]))
    if audit.by_rater:
        found.append(_by_rater_table(audit))
    if audit.ceilings:
        found.append(_ceilings_table(audit.ceilings))
    return found


def _agreement_table(audit: Audit, language: str, *, reasons: bool = True) -> Table:
    """One metric in one language: every dataset and dimension, then the mean over the dimensions; with `reasons` why a
    number is missing."""
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
            *(Cell(dimension_name("")), ALL, "", "", "", strong_value(one.mean), ends_of(one.mean)),
            *("", "", one.mean.groups, ""),
            (one.reason or one.note) if reasons else "",
        )
        for one in audit.aggregates
        if one.language == language and one.dimensions > 1
    ]
    title = f"{audit.metric}, {spoken_language(language)}: agreement with the raters"
    return with_reasons(f"{title}.", heads, rows, title=title)


def why_none(reason: str) -> str:
    """Why there is no correlation."""
    return f"constant: {reason}" if reason.startswith("all ") else reason


def _kinds(row: Agreement | Ceiling) -> tuple[str, str, str]:
    return number(row.kendall.value), number(row.pearson.value), number(row.spearman.value)


def _by_rater_table(audit: Audit) -> Table:
    """One metric and each rater alone."""
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
    """One rater against another."""
    rows: list[Row] = [
        (
            *(
                Cell(plain_name(one.dimension)),
                spoken_language(one.language),
                one.dataset,
                f"{one.first}, {one.second}",
            ),
            *(strong_value(one.mean), ends_of(one.mean), *_kinds(one), number(one.perfect)),
            *(number(one.alpha.value), ends_of(one.alpha), one.mean.n, one.reason),
        )
        for one in ceilings
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
    """Agreement item by item beside that of the systems' means."""
    rows: list[Row] = []
    for audit in audits:
        by_item = {row.dimension: row.mean for row in audit.agreements if _pooled(row, language)}
        for one in audit.by_system:
            if _pooled(one, language):
                mean = by_item[one.dimension]
                kinds = (number(value) for value in (one.kendall, one.pearson, one.spearman))
                lead = (Cell(audit.metric), plain_name(one.dimension), number(mean.value), ends_of(mean))
                rows.append((*lead, *kinds, len(one.systems), why_none(one.reason)))
    heads = columns(
        *("Metric", "Dimension", ">By item: mean", ">95 % CI", ">By system: Kendall", ">Pearson"),
        *(">Spearman", ">Systems", REASON),
    )
    title = f"{spoken_language(language)}: agreement item by item, and of the systems' means"
    return with_reasons(f"{title}, all datasets.", heads, rows, title=title)


def _system_means_table(audits: Sequence[Audit], language: str) -> Table:
    """Mean score and mean rating of each system."""
    found = [(audit.metric, one) for audit in audits for one in audit.by_system if _pooled(one, language)]
    names = sorted({name for _, one in found for name, *_ in one.systems})
    rows: list[Row] = []
    for metric, one in found:
        known = {name: f"{number(score)} / {number(rating)}" for name, score, rating, _ in one.systems}
        rows.append((Cell(metric), plain_name(one.dimension), *(known.get(name, DASH) for name in names)))
    title = "Mean score / mean rating of each system"
    heads = columns("Metric", "Dimension", *(f">{name}" for name in names))
    return Table(f"{title}.", heads, tuple(rows), title=title)


def lengths_table(found: Sequence[tuple[str, LengthBias]]) -> Table:
    """Correlations with the length of the answer, by metric."""
    rows: list[Row] = [
        (
            *(Cell(metric), plain_name(one.dimension)),
            *(number(one.scores.value), ends_of(one.scores), number(one.ratings.value), ends_of(one.ratings)),
            *(*contrast_cells(one.excess), number(one.partial), one.reason),
        )
        for metric, one in found
    ]
    heads = columns(
        *("Metric", "Dimension", ">With score", ">95 % CI", ">With rating", ">95 % CI", ">Excess"),
        *(">95 % CI", ">Agreement, length fixed", REASON),
    )
    title = "Spearman's ρ with the length of the answer"
    return with_reasons(f"{title}.", heads, rows, title=title)


_MAX_ROWS = 40  # of a matrix; the tables have all
_MAX_OPEN = 24  # rows of a table that is not folded


def agreement_section(source: AuditSource) -> Section:
    """A matrix per language with the mean correlations, every number below it, and why some are missing."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        tables = tuple(_agreement_table(audit, language, reasons=False) for audit in source.audits(language))
        blocks += [
            spoken_language(language),
            _matrix(source, language, f"grid-{number_}"),
            Folded("Kendall, Pearson and Spearman, with the 95 % CI of their mean", tables),
        ]
    caption = "Where there is no number, and why: never a 0 in its place."
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
    every = [(dataset, language, one) for dataset in datasets for one in source.dimensions(language)]
    there = [where for where in every if where in of[0]]
    bands = []
    for dataset in datasets if len(datasets) > 1 else ():
        inside = [place for place, (name, *_) in enumerate(there) if name == dataset]
        if inside:
            bands.append((dataset, inside[0], len(inside)))
    title = f"{spoken_language(language)}: mean correlation by dataset and dimension"
    names = [audit.metric for audit in audits[:_MAX_ROWS]]
    values = [[own[where] for where in there] for own in of]
    matrix = Matrix(names, [plain_name(one) for *_, one in there], values, _two_digits, bands=bands)
    more = f" Drawn are the best {len(names)} of {len(audits)} metrics." if len(audits) > len(names) else ""
    caption = f"{title}. Blue is above 0, orange below; a dash: no correlation.{more}"
    return Figure(draw_matrix(key, title, matrix), caption)


def _two_digits(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def raters_section(source: AuditSource) -> Section:
    """What one rater says of another, and each rater apart."""
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
    )


def systems_section(source: AuditSource) -> Section:
    """Agreement item by item beside that of the systems' means."""
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
    )


def counts_section(source: AuditSource) -> Section:
    """Items, groups, answers, raters; what each metric scored; and what its reader had to say."""
    table, settings = source.table, source.found.settings
    drawn = f"{thousands(settings.draws)} clustered bootstrap draws, seed {settings.seed}"
    facts = {
        "Metrics": str(len(source.found.metrics)),
        "Ratings": f"{thousands(len(table.ratings))} by {source.raters}",
        "Groups (resampled together)": thousands(len({one.cluster for one in table.ratings})),
        "Intervals": f"{source.level}, {drawn}" if settings.draws else "none were drawn",
    }
    rated: list[Row] = [
        (
            *(Cell(spoken_language(one.language)), one.dataset),
            *(one.items, one.groups, one.systems, one.answers, one.dimensions, one.ratings, len(one.raters), one.twice),
            ", ".join(one.raters),
        )
        for one in source.found.coverage
    ]
    heads = columns(
        *("Language", "Dataset", ">Items", ">Groups", ">Systems", ">Answers", ">Dimensions", ">Ratings"),
        *(">Raters", ">Rated by two or more", "Who"),
    )
    scored: list[Row] = [(Cell(one.metric), one.scored, one.opted_out) for one in source.found.scored]
    notes = tuple(f"{one.name}: {note}" for one in source.found.metrics for note in one.notes)
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
    )
