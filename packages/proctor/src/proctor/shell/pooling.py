"""Results of sites that keep their data, pooled: `pool`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import count_of, number, number_interval, p_value, percent, plain_table, thousands
from proctor.reports import FrameLike, Record

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.results import PooledMetric


@dataclass(frozen=True, repr=False)
class PooledTable(FrameLike):
    """A row for each system, and each pair of systems, of every metric that all sites have. `data` are all metrics, and
    `sites` is the number of files (see `proctor.results.PooledMetric`)."""

    benchmark: str
    sites: int
    data: tuple[PooledMetric, ...]

    @cached_property
    def whole(self) -> list[PooledMetric]:
        """The metrics that all sites have."""
        return [metric for metric in self.data if metric.institutions == self.sites]

    @cached_property
    def rows(self) -> list[Record]:
        """Condition, metric and scorer, and the figures."""
        return [
            {"condition": metric.condition, "metric": metric.metric, "scorer": metric.scorer, **row}
            for metric in self.whole
            for row in metric.rows()
        ]

    @property
    def title(self) -> str:
        """The benchmark, and how many sites."""
        return f"{self.benchmark}: {count_of(self.sites, 'site')}"

    @property
    def tables(self) -> Sequence[Table]:
        """The means, and the differences of pairs."""
        from proctor.reports import p_words

        heads = ("condition", "metric", "scorer", "system", ">n", ">groups", ">value", ">interval", ">lacking")
        means = [
            (
                metric.condition,
                metric.metric,
                metric.scorer,
                system,
                thousands(mean.n),
                str(mean.groups),
                number(mean.value),
                number_interval(mean.ci_low, mean.ci_high),
                str(metric.lacking[system]),
            )
            for metric in self.whole
            for system, mean in zip(metric.systems, metric.means, strict=True)
        ]
        between = ("condition", "metric", "scorer", "first", "second", ">difference", ">interval", ">p (Holm)")
        pairs = [
            (
                metric.condition,
                metric.metric,
                metric.scorer,
                metric.systems[pair.first],
                metric.systems[pair.second],
                number(pair.difference.value),
                number_interval(pair.difference.ci_low, pair.difference.ci_high),
                p_words(pair.p_holm, pair.difference.groups),
            )
            for metric in self.whole
            for pair in metric.pairs
        ]
        adjusted = "Differences; p (Holm) is adjusted for all pairs of systems under a condition"
        tables = [plain_table(self.title, heads, means), *([plain_table(adjusted, between, pairs)] if pairs else [])]
        return [*tables, *self._spread_tables()]

    def _spread_tables(self) -> list[Table]:
        """How the differences vary between sites; none with one site."""
        heads = ("first", "second", "metric", ">Q (p)", ">I²", ">τ²", ">interval of τ²", ">a new site's difference")
        rows = [
            (
                metric.systems[pair.first],
                metric.systems[pair.second],
                metric.title,
                f"{number(one.q)} ({p_value(one.p)})",
                percent(one.i2),
                number(one.tau2, 4),
                number_interval(one.tau2_low, one.tau2_high, 4),
                number_interval(one.predicted_low, one.predicted_high),
            )
            for metric in self.whole
            for pair, one in zip(metric.pairs, metric.spread, strict=True)
            if one is not None
        ]
        title = f"Differences between {count_of(self.sites, 'site')}: heterogeneity, and the 95 % prediction interval"
        return [plain_table(title, heads, rows)] if rows else []

    @property
    def notes(self) -> tuple[str, ...]:
        """The metrics and systems that are left out."""
        apart = [metric.title for metric in self.data if metric.institutions < self.sites]
        out = {f"{name} under {metric.condition}" for metric in self.whole for name in metric.left_out}
        lines = [f"Not in every file, left out: {', '.join(apart)}"] if apart else []
        return (*lines, *([f"Not at every site whole, left out: {', '.join(sorted(out))}"] if out else []))


def pool(files: Sequence[str | Path], *, draws: int = 2000, seed: int = 0) -> PooledTable:
    """Pool the sums of several sites (`export` with the format "sums").

    Means, intervals, differences and p-values equal those of all items together; missing answers count as wrong. Raises
    as `proctor.results.pool_sums`. The command is `proctor results --pool`.
    """
    from proctor.results import pool_sums
    from proctor.stats import Resampling

    benchmark, found = pool_sums([Path(file) for file in files], Resampling(draws=draws, seed=seed))
    return PooledTable(benchmark, len(files), tuple(found))
