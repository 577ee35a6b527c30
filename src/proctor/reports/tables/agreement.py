"""How far metrics agree with raters, in tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proctor.audits import ALL, Agreement, Audit, Ceiling, LengthBias, MetricRanking, SystemLevel
from proctor.core import DASH, Metric, number, number_interval, p_value, plain_name, signed
from proctor.reports.blocks import Cell, Column, Row, Table, columns
from proctor.reports.tables.scores import span_of
from proctor.stats import Contrast, Estimate

PLAIN = Metric("plain", "Value", low=-1.0)
"""What axes of plain numbers are drawn for."""

_LANGUAGES = {"en": "English", "zh": "Chinese"}
_REASON = "Reason missing"


def estimate_cells(one: Estimate) -> tuple[str, str]:
    """The value and its interval."""
    return number(one.value), number_interval(one.ci_low, one.ci_high)


def contrast_cells(one: Contrast) -> tuple[Cell, str]:
    """The value, strong where its interval leaves 0 out, and the interval."""
    known = one.ci_low is not None and one.ci_high is not None
    apart = known and not (one.ci_low or 0.0) <= 0 <= (one.ci_high or 0.0)
    return Cell(signed(one.value), strong=apart, raw=one.value), number_interval(one.ci_low, one.ci_high)


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
        found.append(agreement_table(audit, language))
        if any(_pooled(one, language) for one in audit.by_system):
            found += [systems_table([audit], language), system_means_table([audit], language)]
        lengths = [one for one in audit.by_length if (one.dataset, one.language) == (ALL, language)]
        if lengths:
            found.append(lengths_table([(audit.metric, one) for one in lengths]))
    if audit.by_rater:
        found.append(by_rater_table(audit))
    if audit.ceilings:
        found.append(ceilings_table(audit.ceilings))
    return found


def agreement_table(audit: Audit, language: str, *, reasons: bool = True) -> Table:
    """One metric in one language: every dataset and dimension, then the mean over the dimensions; with `reasons` why a
    number is missing."""
    heads = columns(
        *("Dimension", "Dataset", ">Kendall", ">Pearson", ">Spearman", ">Mean", ">95 % CI"),
        *(">Ratings", ">Answers", ">Groups", ">Raters", _REASON),
    )
    rows: list[Row] = [
        (
            Cell(plain_name(row.dimension)),
            row.dataset,
            *_kinds(row),
            Cell(number(row.mean.value), strong=True, raw=row.mean.value),
            estimate_cells(row.mean)[1],
            row.mean.n,
            row.answers,
            row.mean.groups,
            row.raters,
            (why_none(row.reason) or row.note) if reasons else "",
        )
        for row in audit.agreements
        if row.language == language
    ]
    rows += [
        (
            Cell("mean over the dimensions"),
            ALL,
            *("", "", ""),
            Cell(number(one.mean.value), strong=True, raw=one.mean.value),
            estimate_cells(one.mean)[1],
            *("", ""),
            one.mean.groups,
            "",
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


def by_rater_table(audit: Audit) -> Table:
    """One metric and each rater alone."""
    rows: list[Row] = [
        (
            Cell(plain_name(row.dimension)),
            spoken_language(row.language),
            row.dataset,
            "the raters' mean" if row.rater == "mean" else row.rater,
            *_kinds(row),
            Cell(number(row.mean.value), strong=True, raw=row.mean.value),
            estimate_cells(row.mean)[1],
            row.mean.n,
            why_none(row.reason),
        )
        for row in audit.by_rater
    ]
    heads = columns(
        *("Dimension", "Language", "Dataset", "Rater", ">Kendall", ">Pearson", ">Spearman", ">Mean"),
        *(">95 % CI", ">Ratings", _REASON),
    )
    title = f"{audit.metric} and each rater alone"
    return with_reasons(f"{title}.", heads, rows, title=title)


def ceilings_table(ceilings: Sequence[Ceiling]) -> Table:
    """One rater against another."""
    rows: tuple[Row, ...] = tuple(
        (
            Cell(plain_name(one.dimension)),
            spoken_language(one.language),
            one.dataset,
            f"{one.first}, {one.second}",
            Cell(number(one.mean.value), strong=True, raw=one.mean.value),
            estimate_cells(one.mean)[1],
            *_kinds(one),
            number(one.perfect),
            *estimate_cells(one.alpha),
            one.mean.n,
            one.reason or "",
        )
        for one in ceilings
    )
    heads = columns(
        *("Dimension", "Language", "Dataset", "Raters", ">Mean", ">95 % CI", ">Kendall", ">Pearson"),
        *(">Spearman", ">Perfect metric", ">Krippendorff's α", ">95 % CI of α", ">Answers", _REASON),
    )
    return with_reasons(
        "One rater compared with another on the answers that both rated, and α of all raters. Perfect metric: the "
        "Pearson correlation that it would have with one of the two, √r.",
        heads,
        rows,
        title="The raters compared with each other",
    )


def _pooled(row: Agreement | SystemLevel, language: str) -> bool:
    return (row.dataset, row.language) == (ALL, language)


def systems_table(audits: Sequence[Audit], language: str) -> Table:
    """Agreement item by item beside that of the systems' means."""
    rows: list[Row] = []
    for audit in audits:
        by_item = {row.dimension: row for row in audit.agreements if _pooled(row, language)}
        for one in audit.by_system:
            if not _pooled(one, language):
                continue
            kinds = (number(value) for value in (one.kendall, one.pearson, one.spearman))
            mean = estimate_cells(by_item[one.dimension].mean)
            reason = why_none(one.reason)
            rows.append((Cell(audit.metric), plain_name(one.dimension), *mean, *kinds, len(one.systems), reason))
    heads = columns(
        *("Metric", "Dimension", ">By item: mean", ">95 % CI", ">By system: Kendall", ">Pearson"),
        *(">Spearman", ">Systems", _REASON),
    )
    title = f"{spoken_language(language)}: agreement item by item, and of the systems' means"
    return with_reasons(f"{title}, all datasets.", heads, rows, title=title)


def system_means_table(audits: Sequence[Audit], language: str) -> Table:
    """Mean score and mean rating of each system."""
    found = [(audit.metric, one) for audit in audits for one in audit.by_system if _pooled(one, language)]
    names = sorted({name for _, one in found for name, *_ in one.systems})
    rows: list[Row] = []
    for metric, one in found:
        known = {name: f"{number(score)} / {number(rating)}" for name, score, rating, _ in one.systems}
        rows.append((Cell(metric), plain_name(one.dimension), *(known.get(name, DASH) for name in names)))
    heads = columns("Metric", "Dimension", *(f">{name}" for name in names))
    title = "Mean score / mean rating of each system"
    return Table(f"{title}.", heads, tuple(rows), title=title)


def lengths_table(found: Sequence[tuple[str, LengthBias]]) -> Table:
    """Correlations with the length of the answer, by metric."""
    rows: list[Row] = [
        (
            Cell(metric),
            plain_name(one.dimension),
            *estimate_cells(one.scores),
            *estimate_cells(one.ratings),
            *contrast_cells(one.excess),
            number(one.partial),
            one.reason,
        )
        for metric, one in found
    ]
    heads = columns(
        *("Metric", "Dimension", ">With score", ">95 % CI", ">With rating", ">95 % CI", ">Excess"),
        *(">95 % CI", ">Agreement, length fixed", _REASON),
    )
    title = "Spearman's ρ with the length of the answer"
    return with_reasons(f"{title}.", heads, rows, title=title)


def metric_board_table(board: MetricRanking, *, level: str = "95 %") -> Table:
    """Several metrics ranked on a dimension, or on the mean over a language's dimensions."""
    kinds = ("Kendall", "Pearson", "Spearman") if board.dimension else ()
    values = [end for one in board.metrics for end in (one.mean.value, one.mean.ci_low, one.mean.ci_high)]
    known = [value for value in values if value is not None]
    ends = (min(0.0, *known), max(0.1, *known)) if known else (0.0, 1.0)
    rows: list[Row] = []
    for one in board.metrics:
        each = [number(value) for value in (one.kendall, one.pearson, one.spearman)[: len(kinds)]]
        mean, spread = estimate_cells(one.mean)
        drawn = span_of(ends, one.mean.ci_low, one.mean.value, one.mean.ci_high, 0.0)
        rows.append(
            (
                Cell(one.metric),
                DASH if one.rank is None else str(one.rank),
                ", ".join(map(str, one.ties)) or DASH,
                *each,
                Cell(mean, strong=True, raw=one.mean.value),
                spread,
                Cell("", span=drawn),
                (one.reason and f"no correlation: {one.reason}") or one.note,
            )
        )
    what = plain_name(board.dimension) or "mean over the dimensions"
    heads = (
        *columns("Metric", ">Rank", ">Ties", *(f">{kind}" for kind in kinds), ">Mean", f">{level} CI"),
        Column(f"{number(ends[0])} to {number(ends[1])}", drawn=True),
        Column(_REASON),
    )
    title = f"{spoken_language(board.language)}, {what}"
    return with_reasons(f"{title}.", heads, rows, title=title)


def metric_pairs_table(board: MetricRanking) -> Table:
    """Every pair of metrics."""
    rows: list[Row] = []
    for one in board.comparisons:
        shown, _ = contrast_cells(one.difference)
        sure = one.p_holm is not None and one.p_holm <= 0.05
        rows.append(
            (
                Cell(one.first),
                Cell(one.second),
                Cell(shown.text, strong=sure, raw=shown.raw),
                number_interval(one.difference.ci_low, one.difference.ci_high),
                p_value(one.difference.p),
                p_value(one.p_holm),
            )
        )
    heads = columns("Metric", "Minus", ">Difference", ">95 % CI", ">p", ">p (Holm)")
    what = plain_name(board.dimension) or "mean over the dimensions"
    title = f"{spoken_language(board.language)}, {what}: differences of the mean correlation"
    return Table(f"{title}. Bold where the adjusted p is at most 0.05.", heads, tuple(rows), title=title)
