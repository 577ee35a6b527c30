"""Confidences and abstentions as tables, risk–coverage curves, and a section of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from proctor.core import (
    ACCURACY,
    DASH,
    Cell,
    Metric,
    Row,
    Table,
    columns,
    count_of,
    interval,
    number,
    number_interval,
    percent,
    thousands,
    value,
)
from proctor.reports.blocks import Block, Figure, Section, recorded_figure
from proctor.reports.figures import SHARES, Curve, Dot, draw_curves, write_picture
from proctor.reports.frames import FrameLike
from proctor.reports.report_numbers import Source
from proctor.results import SHOWN_COVERAGES, SURE, ConfidenceResult, ConfidenceResults
from proctor.stats import Estimate

_AREA = Metric("area", "Area", percent=True, higher_is_better=False)
_MOST_REASONS = 3


@dataclass(frozen=True, repr=False)
class ConfidenceTable(FrameLike):
    """A row for each run with confidences or abstentions. `data` has the complete results, with the points of the curves."""

    data: ConfidenceResults

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The figures without the points of curves and bins, as `proctor results --confidence --format csv`."""
        flat = [one.to_json() for one in self.data.rows]
        lists = ("curve", "bins", "missing")
        return [
            {name: kept for name, kept in row.items() if name not in lists} | {"sources": " ".join(row["sources"])}
            for row in flat
        ]

    @property
    def title(self) -> str:
        """The benchmark."""
        return f"{self.data.card.title}: confidence"

    @property
    def tables(self) -> Sequence[Table]:
        """How the items ended; the evaluation of confidences, if any; and what is made up where nothing can be seen."""
        sure = [row for row in self.data.rows if row.curve is not None]
        blind = [row for row in self.data.rows if row.made_up is not None]
        found = [_ended(self.title, self.data.rows)]
        found += [_ordered(sure), _calibrated(sure)] if sure else []
        return [*found, *([_made_up(blind)] if blind else [])]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures rest on, and why confidences are missing."""
        return tuple(_notes(self.data))

    @property
    def figure(self) -> Figure | None:
        """A risk–coverage curve for each run with confidences; None without any."""
        return curves_figure(self.data)

    def write_figure(self, file: str | Path) -> Path | None:
        """Write the curves as a .png, .pdf or .svg file; None without a run with confidences. Raises `InputError` for another
        ending."""
        return None if self.figure is None else write_picture(self.figure.svg, Path(file))


def _both(metric: Metric, found: Estimate | None) -> tuple[Cell | str, str]:
    if found is None or found.value is None:
        return DASH, DASH
    return Cell(value(metric, found.value), strong=True), interval(metric, found.ci_low, found.ci_high)


def _thousandths(found: Estimate) -> tuple[Cell | str, str]:
    """A score from 0 to 1 that is no share."""
    if found.value is None:
        return DASH, DASH
    return Cell(number(found.value), strong=True), number_interval(found.ci_low, found.ci_high)


def _ended(title: str, rows: Sequence[ConfidenceResult]) -> Table:
    repeated = any(row.repetitions > 1 for row in rows)
    heads = columns(
        *(
            "System",
            "Condition",
            "Abstain",
            "Confidence",
            ">Items",
            ">Groups",
            *([">Answers"] if repeated else []),
            ">With confidence",
            ">Without",
            ">Abstained",
        ),
        *(">Of these right", ">Declined in other words", ">Lacking"),
    )
    cells: list[Row] = [
        (
            *(Cell(row.system), row.condition, row.abstain or DASH, ", ".join(row.sources) or DASH),
            *map(thousands, (row.n, row.groups, *([row.answers] if repeated else []))),
            *map(thousands, (row.with_confidence, row.without_confidence, row.abstained)),
            *map(thousands, (row.abstained_right, row.declined, row.lacking)),
        )
        for row in rows
    ]
    return Table(title, heads, tuple(cells), title=title)


def _ordered(rows: Sequence[ConfidenceResult]) -> Table:
    title = "Accuracy of the answers with the highest confidence, and the area under the risk–coverage curve"
    heads = [head for share in SHOWN_COVERAGES for head in (f">At {round(100 * share)} %", ">95 % CI")]
    cells: list[Row] = [
        (
            *(Cell(row.system), row.condition),
            *_both(ACCURACY, row.accuracy),
            *(cell for share in SHOWN_COVERAGES for cell in _both(ACCURACY, row.accuracy_at(share))),
            *_both(_AREA, row.curve.area if row.curve else None),
            value(_AREA, row.curve.best) if row.curve and row.curve.best is not None else DASH,
        )
        for row in rows
    ]
    return Table(
        title,
        columns("System", "Condition", ">All", ">95 % CI", *heads, ">Area", ">95 % CI", ">Best possible"),
        tuple(cells),
        title=title,
    )


def _calibrated(rows: Sequence[ConfidenceResult]) -> Table:
    title = "Calibration, over the answers with a confidence"
    heads = columns(
        *(
            "System",
            "Condition",
            ">Answers",
            ">Calibration error",
            ">95 % CI",
            ">RMS, debiased",
            ">Overconfidence",
            ">95 % CI",
        ),
        *(">Brier", ">95 % CI", f">Wrong when ≥ {round(100 * SURE)} % sure", ">Share", ">At most (95 %)"),
    )
    gap = Metric("gap", "Gap", percent=True, low=-1.0)
    cells: list[Row] = []
    for row in rows:
        own, sure = row.calibration, row.sure
        if own is None or sure is None:
            continue
        cells.append(
            (
                *(Cell(row.system), row.condition, thousands(row.with_confidence)),
                *_both(ACCURACY, own.error),
                DASH if own.debiased is None else percent(own.debiased),
                *_both(gap, own.bias),
                *_thousandths(own.brier),
                f"{sure.errors:g} of {sure.n}",
                DASH if sure.share is None else percent(sure.share),
                DASH if sure.limit is None else percent(sure.limit),
            )
        )
    return Table(title, heads, tuple(cells), title=title)


def _made_up(rows: Sequence[ConfidenceResult]) -> Table:
    title = "Answers that are made up: given although nothing could be seen, where abstaining was allowed"
    heads = columns(
        "System",
        "Condition",
        ">Made up",
        ">95 % CI",
        ">Answers asked for" if any(row.repetitions > 1 for row in rows) else ">Items asked",
        ">Groups",
        ">Abstained",
        ">Declined in other words",
    )
    cells: list[Row] = [
        (
            *(Cell(row.system), row.condition, *_both(ACCURACY, row.made_up)),
            *map(thousands, (row.made_up.n, row.made_up.groups, row.abstained, row.declined)),
        )
        for row in rows
        if row.made_up is not None
    ]
    return Table(title, heads, tuple(cells), title=title)


def _notes(found: ConfidenceResults) -> list[str]:
    notes = []
    if any(row.curve is not None for row in found.rows):
        notes.append(
            "Over all items: one without a confidence is accepted last, so that leaving it out is worth no more than 0. "
            "Abstentions and answers that never came are accepted last, too. Equal confidences: the mean over all orders."
        )
    notes += [
        f"{row.system} / {row.condition}: no confidence: "
        + "; ".join(f"{reason} ({count})" for reason, count in row.missing[:_MOST_REASONS])
        for row in found.rows
        if row.missing
    ]
    if lacking := [row for row in found.rows if row.policy]:
        how = "count as wrong" if lacking[0].policy == "wrong" else "are left out"
        notes.append(f"Items that lack an answer or a verdict {how}.")
    if any(row.declined for row in found.rows):
        notes.append(
            "Declined in other words: read from free wording, with errors (docs/tasks/abstain-and-confidence.md); no score depends on it."
        )
    if found.repeated:
        notes.append(
            "Of a run with repetitions every answer counts once, in order of its own confidence; accuracy is the mean over "
            "items, and intervals resample groups: an item is never taken for several."
        )
    return notes


def curves_figure(found: ConfidenceResults, name: str = "risk-coverage") -> Figure | None:
    """A risk–coverage curve with its band for each run with confidences; None without any."""
    drawn = [row for row in found.rows if row.curve is not None]
    if not drawn:
        return None
    several = len({row.condition for row in drawn}) > 1
    curves = []
    for row in drawn:
        dots = [Dot(point.risk.value, point.risk.ci_low, point.risk.ci_high) for point in row.points]
        label = f"{row.system} / {row.condition}" if several else row.system
        curves.append(Curve(label, [100 * point.coverage for point in row.points], dots, band=True))
    title = "Risk by coverage"
    svg = draw_curves(name, title, curves, SHARES, ("coverage in %", "share of wrong answers"))
    records = [
        {
            "system": row.system,
            "condition": row.condition,
            "coverage": point.coverage,
            "risk": point.risk.value,
            "ci_low": point.risk.ci_low,
            "ci_high": point.risk.ci_high,
        }
        for row in drawn
        for point in row.points
    ]
    caption = "The share of wrong answers among the items with the highest confidence, with pointwise 95 % intervals over groups."
    return recorded_figure(name, title, svg, caption, records)


def confidence_section(source: Source) -> Section | None:
    """The report's section on confidence and abstention; None where no run has either."""
    found = source.confidence
    if found is None:
        return None
    table = ConfidenceTable(found)
    figure = table.figure
    blocks: list[Block | str] = [*([figure] if figure is not None else []), *table.tables]
    areas = [row.curve.area.value for row in found.rows if row.curve and row.curve.area.value is not None]
    finding = f"area {value(_AREA, min(areas))} to {value(_AREA, max(areas))}" if areas else ""
    abstained = sum(row.abstained for row in found.rows)
    return Section(
        key="confidence",
        title="Confidence and abstention",
        lead="Whether systems know when they are wrong. " + " ".join(table.notes),
        blocks=blocks,
        finding=finding or count_of(abstained, "abstention"),
    )
