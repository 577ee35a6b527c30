"""The figures under the keys of the task's own script."""

from __future__ import annotations

from proctor.audits import ALL, Agreement, Audit
from proctor.stats import Estimate

_KINDS = {"kendall": "kendalltau", "pearson": "pearson", "spearman": "spearman", "mean": "mean"}


def official(audit: Audit) -> dict[str, float | None]:
    """`iiyi-en-overall-kendalltau`, …, `ALL-en-ALL-mean`; None where there is no correlation."""
    figures: dict[str, float | None] = {}
    for aggregate in audit.aggregates:
        for row in audit.agreements:
            if row.language == aggregate.language:
                for kind, name in _KINDS.items():
                    figures[_key(row.dataset, row.language, row.dimension, name)] = _of(row, kind).value
        figures[_key(ALL, aggregate.language, ALL, "mean")] = aggregate.mean.value
    return figures


def _of(row: Agreement, kind: str) -> Estimate:
    found: Estimate = getattr(row, kind)
    return found


def _key(*parts: str) -> str:
    return "-".join(part for part in parts if part)
