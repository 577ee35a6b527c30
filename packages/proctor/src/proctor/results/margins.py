"""A margin of a comparison: recorded before its figures are computed, and what each difference shows about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from proctor.core import InputError, Metric, UsageError, json_line
from proctor.results.gates import Gate, read_gate
from proctor.results.results import Options
from proctor.runs import Run, Store
from proctor.stats import Difference, Margin, MarginTest, Resampling, margin_test


@dataclass(frozen=True)
class MarginRecord:
    """The margin of a comparison in the unit that was typed (points, for percentages), with the time (UTC) at which it was
    fixed, and `sha256` of all fields with the items' fingerprint and the runs that are compared.

    It is part of the output, and not of the store: stores are read here, may be on loan or published, and a copy of one must not
    carry the analyses of its reader. State a margin before the runs exist and keep the line, whose hash names margin,
    direction, items and runs."""

    points: float
    equivalence: bool
    at: str
    benchmark: str
    runs: tuple[tuple[str, str], ...]
    sha256: str
    metrics: tuple[str, ...] = ()

    def applies(self, metric: Metric) -> bool:
        """Whether the margin is one of this metric: points are of percentages; it is in another unit only for a metric that was
        named. Raises `InputError` for a margin as wide as the range of the scores: it would forgive everything."""
        if not metric.percent and metric.name not in self.metrics:
            return False
        if self.margin(metric).width >= metric.high - metric.low:
            limit = (metric.high - metric.low) * (100 if metric.percent else 1)
            raise InputError(f"margin of {metric.name}", found=f"{self.points:g}", expected=f"less than {limit:g}")
        return True

    def margin(self, metric: Metric) -> Margin:
        """The margin in the unit of a metric's scores."""
        return Margin(self.points / 100 if metric.percent else self.points, self.equivalence)

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        return {
            "margin": self.points,
            "kind": "equivalence" if self.equivalence else "non-inferiority",
            "recorded": self.at,
            "sha256": self.sha256,
        }


def record_margin(
    store: Store,
    benchmark: str,
    runs: Sequence[Run],
    points: float,
    *,
    equivalence: bool = False,
    metrics: Sequence[str] = (),
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> MarginRecord:
    """Fixes a margin. Raises `InputError` unless it is a number above 0."""
    if not points > 0:
        raise InputError("margin", found=f"{points:g}", expected="points above 0")
    at = clock().isoformat(timespec="seconds")
    names = tuple((run.system, run.condition) for run in runs)
    fields = {
        "margin": points,
        "equivalence": equivalence,
        "at": at,
        "items": store.fingerprint(benchmark),
        "runs": [list(name) for name in names],
        "metrics": list(metrics),
    }
    return MarginRecord(
        points, equivalence, at, benchmark, names, sha256(json_line(fields).encode()).hexdigest(), tuple(metrics)
    )


def margin_of(
    record: MarginRecord, metric: Metric, plan: Resampling, difference: Callable[[float], Difference]
) -> MarginTest:
    """What the difference, whose interval at a level is `difference(level)`, shows about the margin."""
    return margin_test(record.margin(metric), difference, plan.level, higher_is_better=metric.higher_is_better)


@dataclass(frozen=True)
class CompareExtras:
    """What a comparison is asked beside the differences: a margin in points (None: none), of equivalence or of non-inferiority,
    whether the parts of the items differ, and a gate ("not worse than 2"; "": none). `told` is called with the record of the
    margin before anything is computed."""

    margin: float | None = None
    equivalence: bool = False
    interaction: bool = False
    told: Callable[[MarginRecord], None] | None = None
    gate: str = ""

    def read_gate(self) -> Gate | None:
        """The gate. Raises `UsageError` for one that can't be read, and for a margin beside it."""
        found = read_gate(self.gate)
        if found is not None and (self.margin is not None or self.equivalence):
            raise UsageError("--gate states its own margin. Leave --margin and --equivalence out.")
        return found


def asked_margin(
    store: Store,
    benchmark: str,
    pairs: Sequence[tuple[Run, Run]],
    options: Options,
    metrics: Sequence[str],
    asked: CompareExtras,
) -> MarginRecord | None:
    """The record of the margin, reported before any figure is computed; None without a margin."""
    if asked.interaction and not options.by:
        raise InputError("interaction", found="no facet", expected="one to split the items by (--by FACET)")
    if asked.margin is None:
        if asked.equivalence:
            raise InputError("equivalence", found="no margin", expected="one (--margin POINTS)")
        return None
    runs = list({run.id: run for pair in pairs for run in pair}.values())
    record = record_margin(store, benchmark, runs, asked.margin, equivalence=asked.equivalence, metrics=metrics)
    if asked.told is not None:
        asked.told(record)
    return record
