"""Heterogeneity between sites against statsmodels, and its intervals by their definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.meta_analysis import combine_effects

from proctor.core import InputError
from proctor.stats import heterogeneity, site_variance

EFFECTS, VARIANCES = [0.12, -0.05, 0.31, 0.2, 0.02], [0.004, 0.01, 0.006, 0.02, 0.003]


def test_figures_are_those_of_statsmodels() -> None:
    found = heterogeneity(EFFECTS, VARIANCES)
    wanted = combine_effects(np.array(EFFECTS), np.array(VARIANCES), method_re="dl")
    assert found.q == pytest.approx(wanted.q, abs=1e-12)
    assert found.i2 == pytest.approx(wanted.i2, abs=1e-12)
    assert found.tau2 == pytest.approx(wanted.tau2, abs=1e-12)
    assert (found.mean, found.error) == pytest.approx((wanted.mean_effect_re, wanted.sd_eff_w_re), abs=1e-12)
    assert found.p == pytest.approx(scipy_stats.chi2.sf(wanted.q, 4), abs=1e-12)


def test_the_ends_of_tau2_are_those_of_the_q_profile() -> None:
    found = heterogeneity(EFFECTS, VARIANCES)
    for tau2, beyond in ((found.tau2_low, 0.975), (found.tau2_high, 0.025)):
        weight = 1 / (np.array(VARIANCES) + tau2)
        mean = (weight * EFFECTS).sum() / weight.sum()
        q = (weight * (np.array(EFFECTS) - mean) ** 2).sum()
        assert q == pytest.approx(scipy_stats.chi2.ppf(beyond, 4), rel=1e-9)
    assert found.tau2_low < found.tau2 < found.tau2_high


def test_prediction_by_hand_and_equal_sites() -> None:
    found = heterogeneity(EFFECTS, VARIANCES)
    reach = scipy_stats.t.ppf(0.975, 3) * (found.tau2 + found.error**2) ** 0.5
    assert found.predicted_high == pytest.approx(found.mean + reach)
    same = heterogeneity([0.1, 0.1], [0.01, 0.02])
    assert (same.q, same.i2, same.tau2, same.predicted_low) == (0.0, 0.0, 0.0, None)


def test_a_sites_variance_is_that_of_a_mean_of_equal_groups() -> None:
    means = np.array([0.1, 0.4, 0.2, 0.9])
    assert site_variance(means * 3, np.full(4, 3.0)) == pytest.approx(means.var(ddof=1) / 4)
    assert site_variance(np.array([1.0]), np.array([2.0])) is None
    assert site_variance(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="sites: found 1 values, 1 variances, expected two sites or more"):
        heterogeneity([0.1], [0.1])
    with pytest.raises(InputError, match="variance: found 0, expected numbers above 0"):
        heterogeneity([0.1, 0.2], [0.1, 0.0])
