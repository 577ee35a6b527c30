"""What changed answers do to a scorer: its tables, and in words what it fails at."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.audits import SMALL, Sensitivity, Shift
from proctor.core import Cell, Row, Table, columns, count_of, number_interval, percent, plain_name, signed
from proctor.reports.metric_agreement import spoken_language

_DIGITS = 2


def perturbation_tables(found: Sensitivity) -> Iterator[Table]:
    """Of each language the shifts of the mean over the dimensions; then, where there are several, of each dimension."""
    for language in dict.fromkeys(one.language for one in found.shifts):
        own = [one for one in found.shifts if one.language == language]
        yield _means(found.scorer, language, [one for one in own if not one.dimension])
        dimensions = list(dict.fromkeys(one.dimension for one in own if one.dimension))
        if len({tuple(one.shift for one in own if one.dimension == each) for each in dimensions}) > 1:
            yield _each(found.scorer, language, dimensions, own)


def _means(scorer: str, language: str, shifts: list[Shift]) -> Table:
    heads = columns(
        *("Change", "Expected", ">Shift in SD", ">95 % CI", ">Mean |shift|", ">Fell", ">Answers", ">Groups"),
        *(">Missing", "Finding"),
    )
    rows: list[Row] = [
        (
            *(Cell(one.perturbation), one.expected, Cell(signed(one.shift.value, _DIGITS), raw=one.shift.value)),
            number_interval(one.shift.ci_low, one.shift.ci_high, _DIGITS),
            *(signed(one.moved.value, _DIGITS).lstrip("+"), percent(one.fell.value), one.answers, one.groups),
            *(one.missing, Cell(one.finding or one.reason, strong=one.finding not in {"", "unclear", "as expected"})),
        )
        for one in shifts
    ]
    title = f"{scorer}, {spoken_language(language)}: what changed answers score"
    return Table(
        f"{title}: the mean change over the dimensions, in standard deviations of the scores; above 0 is better.",
        heads,
        tuple(rows),
        title=title,
    )


def _each(scorer: str, language: str, dimensions: list[str], shifts: list[Shift]) -> Table:
    at = {(one.perturbation, one.dimension): one for one in shifts}
    rows: list[Row] = []
    for name in dict.fromkeys(one.perturbation for one in shifts):
        cells = [at.get((name, dimension)) for dimension in dimensions]
        if any(cells):
            rows.append((Cell(name), *(_cell(one) for one in cells)))
    title = f"{scorer}, {spoken_language(language)}: shift in SD by dimension"
    caption = f"{title}; in bold where the interval leaves 0 out."
    return Table(caption, columns("Change", *(f">{plain_name(one)}" for one in dimensions)), tuple(rows), title=title)


def _cell(one: Shift | None) -> Cell | str:
    if one is None:
        return ""
    low, high = one.shift.ci_low, one.shift.ci_high
    apart = low is not None and high is not None and not low <= 0 <= high
    return Cell(signed(one.shift.value, _DIGITS), strong=apart, raw=one.shift.value)


def perturbation_notes(found: Sensitivity) -> tuple[str, ...]:
    """What a scorer fails at in each language, what the changes are, and why scores are missing."""
    said = []
    for language in dict.fromkeys(language for language, _ in found.faults):
        faults = [fault for where, fault in found.faults if where == language]
        said.append(f"{found.scorer}, {spoken_language(language)}: {', '.join(faults)}.")
    reasons = {reason for one in found.probed for reason in one.missing.values()}
    lacking = sum(len(one.missing) for one in found.probed)
    if lacking:
        said.append(f"{found.scorer}: no score for {count_of(lacking, 'text')} ({min(reasons)}).")
    said.append(
        f"A finding is said only where the interval allows it: a shift of {SMALL:g} SD or more counts; of what should "
        "change nothing, the mean |shift|."
    )
    return tuple(said)
