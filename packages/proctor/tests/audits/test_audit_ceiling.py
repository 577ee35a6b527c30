"""What a perfect metric could reach against one rater, by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.audits import CorrelationSettings, MetricScores, Rating, RatingsTable, audit


@pytest.mark.parametrize(("noise", "between"), [(1.0, 0.5), (0.5, 0.8)])
def test_a_perfect_metric_agrees_better_than_another_rater(noise: float, between: float) -> None:
    """Raters who see the quality with an error of their own: r between them, √r with the quality itself."""
    rng = np.random.default_rng(0)
    quality = rng.normal(size=700)
    ratings = tuple(
        Rating(f"e{item}", "…", "s1", "overall", rater, float(value))
        for rater in ("r1", "r2")
        for item, value in enumerate(quality + noise * rng.normal(size=len(quality)))
    )
    perfect = MetricScores("perfect", {(f"e{item}", "s1", "overall"): float(q) for item, q in enumerate(quality)})
    found = audit(RatingsTable(ratings), perfect, CorrelationSettings(draws=0))
    (ceiling,) = found.ceilings
    reached = next(row.pearson.value for row in found.by_rater if row.rater == "r1")
    assert ceiling.pearson.value == pytest.approx(between, abs=0.07)
    assert ceiling.perfect == pytest.approx(reached, abs=0.05)
    assert reached is not None
    assert ceiling.pearson.value is not None
    assert reached > ceiling.pearson.value + 0.05
