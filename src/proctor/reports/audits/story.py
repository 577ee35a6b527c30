"""The first screen of an audit's report: what was audited, the answer in three sentences, one picture."""

from __future__ import annotations

from collections.abc import Callable

from proctor.audits import LengthSlope, RankedMetric
from proctor.core import count_of, number, number_interval, signed
from proctor.reports.audits.agreement import MOST_ON_TOP, metrics_forest
from proctor.reports.audits.source import AuditSource
from proctor.reports.blocks import Answer, Figure, Story
from proctor.reports.tables.agreement import spoken_language


def audit_story(source: AuditSource) -> Story:
    """The story of an audit, language by language; the picture is that of the first one."""
    answers = (
        Answer("Which metric agrees best, and how certain is that?", _by_language(source, _best)),
        Answer("How far do the raters agree?", _ceiling(source)),
        Answer("Does the best metric favour long answers?", _by_language(source, _length)),
    )
    table = source.table
    groups = len({one.cluster for one in table.ratings})
    evaluated = (
        f"{count_of(len(source.found.metrics), 'metric')} compared with {count_of(len(table.ratings), 'rating')} by "
        f"{source.raters}, in {count_of(groups, 'group')}."
    )
    return Story(evaluated, answers, _figure(source))


def _known(source: AuditSource, language: str) -> list[RankedMetric]:
    return [place for place in source.main_board(language).metrics if place.mean.value is not None]


def _by_language(source: AuditSource, say: Callable[[AuditSource, str], str]) -> str:
    several = len(source.languages) > 1
    parts = []
    for language in source.languages:
        said = say(source, language)
        parts.append(f"{spoken_language(language)}: {said}" if several else said)
    return " ".join(part[0].upper() + part[1:] if part else part for part in parts)


def _best(source: AuditSource, language: str) -> str:
    known = _known(source, language)
    if not known:
        return "no metric has a correlation."
    best = known[0]
    spread = number_interval(best.mean.ci_low, best.mean.ci_high)
    shown = f"{best.metric}, mean correlation {number(best.mean.value)} ({source.level} CI {spread})"
    if len(known) == 1:
        return f"{shown}; no other metric was compared."
    tied = [one.metric for one in known[1:] if one.rank is not None and one.rank == best.rank]
    if tied:
        names = ", ".join(tied[:3]) + (f" and {len(tied) - 3} more" if len(tied) > 3 else "")
        return f"{shown}; {names} {'is' if len(tied) == 1 else 'are'} not significantly worse."
    return f"{shown}; it ranks first alone."


def _ceiling(source: AuditSource) -> str:
    known = [one for one in source.found.each[0].ceilings if one.mean.value is not None]
    if not known:
        return "Not known: no answer was rated by two raters on the same dimension."
    values = sorted(one.mean.value or 0.0 for one in known)
    if len(values) == 1:
        return f"Two raters correlate by {number(values[0])}."
    return f"Two raters correlate by {number(values[0])} to {number(values[-1])}, depending on dimension and dataset."


def _slope(source: AuditSource, language: str) -> tuple[str, LengthSlope] | None:
    known = _known(source, language)
    if not known:
        return None
    dimensions = source.dimensions(language)
    alone = dimensions[0] if len(dimensions) == 1 else ""
    portrait = next(one for one in source.found.profiles if one.metric == known[0].metric)
    return known[0].metric, next(
        one for one in portrait.length_slopes if (one.language, one.dimension) == (language, alone)
    )


def _length(source: AuditSource, language: str) -> str:
    found = _slope(source, language)
    if found is None or found[1].slope.value is None:
        return "not known."
    name, one = found
    slope = one.slope
    shown = f"{signed(slope.value)} SD of the score per doubling of the length, at the same rating"
    if slope.ci_low is None or slope.ci_high is None:
        return f"{name}: {shown}, without an interval."
    shown = f"{shown} ({source.level} CI {number_interval(slope.ci_low, slope.ci_high)})"
    if slope.ci_low > 0:
        return f"yes, {name}: {shown}."
    if slope.ci_high < 0:
        return f"no, {name} favours short ones: {shown}."
    return f"not shown for {name}: {shown}."


def _figure(source: AuditSource) -> Figure | None:
    language = source.languages[0]
    known = _known(source, language)[:MOST_ON_TOP]
    return metrics_forest(source, language, known, "overview") if known else None
