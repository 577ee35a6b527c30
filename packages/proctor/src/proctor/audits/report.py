"""All results of several metrics and one table of ratings: computed on demand, and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from proctor.audits.agreement import Audit, CorrelationSettings, audit
from proctor.audits.comparison import LeadRow, MetricRanking, compare, leads
from proctor.audits.power import PowerPlan, PowerTable, power
from proctor.audits.profile import MetricProfile, profile, rank_discrepancies
from proctor.audits.ratings import ALL, Coverage, Key, MetricScores, RatingsTable, ScoredCount, coverage, scored
from proctor.core import InputError, count_of
from proctor.stats import Estimate


class AuditReport:
    """Several metrics compared with the same ratings. Each part is computed once, on first use, with the same settings.

    >>> from proctor.audits import Rating
    >>> table = RatingsTable(tuple(Rating(e, "Eczema.", "s1", "overall", "r1", v) for e, v in (("a", 0), ("b", 1))))
    >>> found = AuditReport(table, [MetricScores("mine", {key: number for number, key in enumerate(table.keys)})])
    >>> found.coverage[0].ratings, list(found.discrepancies["mine"].values())
    (2, [0.0, 0.0])
    """

    def __init__(
        self,
        table: RatingsTable,
        metrics: Sequence[MetricScores],
        settings: CorrelationSettings | None = None,
        *,
        over: Sequence[str] = (),
        plan: PowerPlan | None = None,
    ) -> None:
        self.table = table
        self.metrics = tuple(metrics)
        self.settings = settings or CorrelationSettings()
        self.over = tuple(over)
        self.plan = plan

    @cached_property
    def each(self) -> tuple[Audit, ...]:
        """Each metric's agreement with the raters."""
        return tuple(audit(self.table, metric, self.settings) for metric in self.metrics)

    @cached_property
    def boards(self) -> tuple[MetricRanking, ...]:
        """The metrics ranked and compared in pairs."""
        return compare(self.table, self.metrics, self.settings)

    @cached_property
    def leads(self) -> tuple[LeadRow, ...]:
        """Each metric's lead over those in `over`."""
        metrics = {metric.name: [metric] for metric in self.metrics}
        return leads(self.table, metrics, self.over, self.settings) if self.over else ()

    @cached_property
    def power(self) -> PowerTable | None:
        """The power of comparing the two metrics; None without a `plan`. Raises `InputError` unless there are two."""
        if self.plan is None:
            return None
        if len(self.metrics) != 2:
            raise InputError(
                "power", found=count_of(len(self.metrics), "metric"), expected="two: name them by --scorer"
            )
        return power(self.table, *self.metrics, self.plan)

    @cached_property
    def profiles(self) -> tuple[MetricProfile, ...]:
        """Each metric's calibration and bias."""
        return tuple(profile(self.table, metric, self.settings) for metric in self.metrics)

    @cached_property
    def coverage(self) -> tuple[Coverage, ...]:
        """Counts of the ratings."""
        return coverage(self.table)

    @cached_property
    def scored(self) -> tuple[ScoredCount, ...]:
        """How many rated answers each metric scored."""
        return tuple(scored(self.table, metric) for metric in self.metrics)

    @cached_property
    def discrepancies(self) -> dict[str, dict[Key, float]]:
        """The rank discrepancies of each metric by name (see `rank_discrepancies`)."""
        return {metric.name: rank_discrepancies(self.table, metric) for metric in self.metrics}


_KINDS = {"kendall": "kendalltau", "pearson": "pearson", "spearman": "spearman", "mean": "mean"}


def agreement_rows(audit: Audit) -> list[dict[str, JsonValue]]:
    """One flat row per agreement (also by rater) and per aggregate (dimension "ALL")."""

    def flat(where: tuple[str, str, str], rater: str, estimates: dict[str, Estimate]) -> dict[str, JsonValue]:
        row: dict[str, JsonValue] = {"metric": audit.metric}
        row |= dict(zip(("dataset", "language", "dimension"), where, strict=True)) | {"rater": rater}
        for kind, name in _KINDS.items():
            one = estimates.get(kind, Estimate(None, None, None, 0, 0))
            row |= {name: one.value, f"{name}_low": one.ci_low, f"{name}_high": one.ci_high}
        return row

    rows = []
    for one in (*audit.agreements, *audit.by_rater):
        counts = {"ratings": one.mean.n, "answers": one.answers, "groups": one.mean.groups, "raters": one.raters}
        row = flat(one.where, one.rater, {kind: getattr(one, kind) for kind in _KINDS})
        rows.append(row | counts | {"reason": one.reason, "note": one.note})
    for mean in audit.aggregates:
        row = flat((ALL, mean.language, ALL), "", {"mean": mean.mean})
        row |= {"ratings": None, "answers": None, "groups": mean.mean.groups, "raters": None}
        rows.append(row | {"reason": mean.reason, "note": mean.note})
    return rows


def to_json(found: AuditReport) -> dict[str, JsonValue]:
    """The whole report as nested JSON without NaN: agreement, boards (of several metrics), leads, power, profiles, counts."""
    boards = found.boards if len(found.metrics) > 1 else ()
    asked: dict[str, JsonValue] = {"leads": leads_json(found.leads)} if found.over else {}
    if found.power is not None:
        asked["power"] = _json(found.power, plan=asdict(found.power.plan))
    return asked | {
        "settings": asdict(found.settings),
        "metrics": [_audit_json(audit) for audit in found.each],
        "boards": [_board_json(board) for board in boards],
        "profiles": [_profile_json(metric_profile) for metric_profile in found.profiles],
        "coverage": [_json(one) for one in found.coverage],
        "scored": [_json(scored_count) for scored_count in found.scored],
    }


_NAMES = {"kendall": "kendalltau", "alpha": "krippendorff_alpha"}


def _json(one: Any, **other: JsonValue) -> dict[str, JsonValue]:
    """The fields of a record: estimates without their counts, empty texts as null. `other` adds or replaces fields."""
    return {
        _NAMES.get(field.name, field.name): _value(getattr(one, field.name), field.name) for field in fields(one)
    } | other


def _value(value: Any, name: str) -> JsonValue:
    if isinstance(value, Estimate):
        return {"value": value.value, "ci_low": value.ci_low, "ci_high": value.ci_high}
    if isinstance(value, tuple):
        return [_value(one, name) for one in value]
    if is_dataclass(value):
        return _json(value)
    plain: JsonValue = value
    return None if value == "" and name in {"reason", "note", "rater"} else plain


def _audit_json(audit: Audit) -> dict[str, JsonValue]:
    names = ("system", "score", "rating", "ratings")
    return {
        "metric": audit.metric,
        "notes": list(audit.notes),
        "agreement": [_json(row, ratings=row.mean.n, groups=row.mean.groups) for row in audit.agreements],
        "aggregates": [_json(aggregate) for aggregate in audit.aggregates],
        "by_rater": [_json(row, ratings=row.mean.n, groups=row.mean.groups) for row in audit.by_rater],
        "by_system": [
            _json(system_level, systems=[dict(zip(names, row, strict=True)) for row in system_level.systems])
            for system_level in audit.by_system
        ],
        "by_length": [_json(length_bias) for length_bias in audit.by_length],
        "ceilings": [
            _json(ceiling, perfect_metric_pearson=ceiling.perfect, answers=ceiling.mean.n) for ceiling in audit.ceilings
        ],
    }


def _board_json(board: MetricRanking) -> dict[str, JsonValue]:
    return {
        "language": board.language,
        "dimension": board.dimension or ALL,
        "ranking": [_json(metric) for metric in board.metrics],
        "comparisons": [
            _json(
                comparison,
                difference=comparison.difference.value,
                ci_low=comparison.difference.ci_low,
                ci_high=comparison.difference.ci_high,
            )
            | {"p": comparison.difference.p}
            for comparison in board.comparisons
        ],
    }


def leads_json(rows: Iterable[LeadRow]) -> list[JsonValue]:
    """One row per metric, language, dimension ("ALL": the mean over them) and part."""
    return [_json(row, dimension=row.dimension or ALL, leads=[_json(lead) for lead in row.leads]) for row in rows]


def _profile_json(metric_profile: MetricProfile) -> dict[str, JsonValue]:
    return {
        "metric": metric_profile.metric,
        "calibration": [
            _json(cell, bins=[_json(part, ratings=part.rating.n, groups=part.rating.groups) for part in cell.bins])
            for cell in metric_profile.calibration
        ],
        "bias": [_json(each, dimension=each.dimension or ALL) for each in metric_profile.bias],
        "length_slopes": [_json(slope, dimension=slope.dimension or ALL) for slope in metric_profile.length_slopes],
    }
