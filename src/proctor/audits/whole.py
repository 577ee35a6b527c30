"""Everything that can be said of several metrics and one table of ratings, each part computed when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from proctor.audits.agreement import Audit, audit
from proctor.audits.bias import Bias, LengthSlope, biases
from proctor.audits.calibration import Calibration, calibration
from proctor.audits.comparing import Board, compare
from proctor.audits.counts import Coverage, Scored, coverage, scored
from proctor.audits.frames import ALL, CorrelationSettings, Frame, paired
from proctor.audits.gaps import rank_gaps
from proctor.audits.ratings import Key, MetricScores, RatingsTable


@dataclass(frozen=True)
class Portrait:
    """What one metric's scores mean and whom they favour, beyond how far they agree."""

    metric: str
    calibration: tuple[Calibration, ...]
    bias: tuple[Bias, ...]
    length_slopes: tuple[LengthSlope, ...]


def portray(table: RatingsTable, metric: MetricScores, settings: CorrelationSettings | None = None) -> Portrait:
    """Calibration and bias of a metric, on all datasets of each language. Raises `InputError` where the metric
    has no score for a rated answer.

    >>> from proctor.audits import Rating
    >>> rows = [Rating(f"e{k}", "a " * k, "s1", "overall", "r1", k % 2) for k in range(1, 9)]
    >>> metric = MetricScores("long", {one.key: k / 8 for k, one in enumerate(rows, start=1)})
    >>> portrait = portray(RatingsTable(tuple(rows)), metric, CorrelationSettings(draws=100))
    >>> [(level.low, level.median) for level in portrait.calibration[0].levels]
    [(0.0, 0.625), (1.0, 0.5)]
    >>> portrait.length_slopes[0].slope.value > 0.5
    True
    """
    frame = Frame(table, settings or CorrelationSettings())
    bias, slopes = biases(frame, metric)
    return Portrait(
        metric.name,
        tuple(calibration(cell, *paired(cell, metric), frame.settings) for cell in frame.cells if cell.dataset == ALL),
        bias,
        slopes,
    )


class Audits:
    """Several metrics compared with the same ratings. All parts take the same settings, and none is computed
    before it is asked for, nor twice.

    >>> from proctor.audits import Rating
    >>> table = RatingsTable(tuple(Rating(e, "Eczema.", "s1", "overall", "r1", v) for e, v in (("a", 0), ("b", 1))))
    >>> found = Audits(table, [MetricScores("mine", {key: number for number, key in enumerate(table.keys)})])
    >>> found.coverage[0].ratings, list(found.gaps["mine"].values())
    (2, [0.0, 0.0])
    """

    def __init__(
        self, table: RatingsTable, metrics: Sequence[MetricScores], settings: CorrelationSettings | None = None
    ) -> None:
        self.table = table
        self.metrics = tuple(metrics)
        self.settings = settings or CorrelationSettings()

    @cached_property
    def each(self) -> tuple[Audit, ...]:
        """Every metric's agreement with the raters."""
        return tuple(audit(self.table, one, self.settings) for one in self.metrics)

    @cached_property
    def boards(self) -> tuple[Board, ...]:
        """The metrics ranked, with every pair of them; one alone has a place and no pairs."""
        return compare(self.table, self.metrics, self.settings)

    @cached_property
    def portraits(self) -> tuple[Portrait, ...]:
        """Every metric's calibration and bias."""
        return tuple(portray(self.table, one, self.settings) for one in self.metrics)

    @cached_property
    def coverage(self) -> tuple[Coverage, ...]:
        """What the ratings are of."""
        return coverage(self.table)

    @cached_property
    def scored(self) -> tuple[Scored, ...]:
        """What each metric scored of it."""
        return tuple(scored(self.table, one) for one in self.metrics)

    @cached_property
    def gaps(self) -> dict[str, dict[Key, float]]:
        """Where each metric and the raters disagree, by its name (see `rank_gaps`)."""
        return {one.name: rank_gaps(self.table, one) for one in self.metrics}
