"""Correlations against scipy on the whole and on written-out resamples; coverage by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from proctor.core import InputError
from proctor.stats import Estimate, Floats, Ints, Kind, Resampling, correlation
from proctor.stats.correlation import STATISTICS
from tests.support.simulation import assert_share
from tests.support.simulation import repetitions as simulated

KINDS: tuple[Kind, ...] = ("pearson", "spearman", "kendall")

_REFERENCE: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": lambda a, b: float(reference.pearsonr(a, b).statistic),
    "spearman": lambda a, b: float(reference.spearmanr(a, b).statistic),
    "kendall": lambda a, b: float(reference.kendalltau(a, b).statistic),
}


def two(seed: int, n_groups: int, truth: float, size: int = 5) -> tuple[Floats, Floats, Ints]:
    """Two normal numbers per item with the given correlation; half their variance is the group's."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(1, 2 * size, n_groups))
    mix = np.array([[1.0, truth], [truth, 1.0]])
    shared = rng.multivariate_normal([0, 0], mix, n_groups)[groups]
    values = shared + rng.multivariate_normal([0, 0], mix, len(groups))
    return values[:, 0], values[:, 1], groups


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [0, 4])
def test_value_agrees_with_scipy(kind: Kind, levels: int) -> None:
    a, b, groups = two(1, 20, 0.6)
    if levels:
        a, b = np.round(a * 2), np.round(b * 2)
    assert correlation(a, b, groups, kind, plan=Resampling(draws=1)).value == pytest.approx(_REFERENCE[kind](a, b))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [0, 4])
def test_resamples_agree_with_resamples_written_out(kind: Kind, levels: int) -> None:
    a, b, groups = two(2, 8, 0.5)
    if levels:
        a, b = np.round(a * 2), np.round(b * 2)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(8, [1 / 8] * 8, size=20).astype(np.float64)
    found = STATISTICS[kind](a, b, groups)(drawn)
    for row, one in zip(drawn, found, strict=True):
        items = np.concatenate([np.flatnonzero(groups == g) for g in range(8) for _ in range(int(row[g]))])
        assert one == pytest.approx(_REFERENCE[kind](a[items], b[items]))


def test_by_hand() -> None:
    # 1234 with 1324: five of six pairs agree, one does not
    found = correlation([1, 2, 3, 4], [1, 3, 2, 4], list("abcd"), "kendall", plan=Resampling(draws=50))
    assert found.value == pytest.approx(4 / 6)
    # Spearman: 1 − 6 · (1 + 1) / (4 · 15)
    assert correlation(
        [1, 2, 3, 4], [1, 3, 2, 4], list("abcd"), "spearman", plan=Resampling(draws=50)
    ).value == pytest.approx(0.8)


@pytest.mark.parametrize("kind", KINDS)
def test_edges(kind: Kind) -> None:
    assert correlation([], [], [], kind) == Estimate(None, None, None, 0, 0)
    assert correlation([1], [2], ["a"], kind) == Estimate(None, None, None, 1, 1)
    assert correlation([0.1] * 3, [1, 2, 3], list("abc"), kind) == Estimate(None, None, None, 3, 3)
    assert correlation([1, 2, 3], [2, 4, 6], ["a", "b", "b"], kind).ci_low is None
    perfect = correlation(np.arange(30), 2 * np.arange(30) + 1, np.arange(30) % 10, kind)
    assert perfect.value == pytest.approx(1)
    assert (perfect.ci_low, perfect.ci_high) == (None, None)  # no sample of it says anything else


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 5)), max_size=15), st.sampled_from(KINDS)
)
def test_never_nan_and_inside(rows: list[tuple[int, int, int]], kind: Kind) -> None:
    a, b, groups = ([row[k] for row in rows] for k in range(3))
    found = correlation(a, b, groups, kind, plan=Resampling(draws=30))
    assert (found.ci_low is None) == (found.ci_high is None)
    if found.value is not None and found.ci_low is not None and found.ci_high is not None:
        assert -1 <= found.ci_low <= found.value <= found.ci_high <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_order_and_names_do_not_matter(kind: Kind) -> None:
    a, b, groups = two(3, 12, 0.4)
    first = correlation(a, b, groups, kind, plan=Resampling(draws=200))
    shuffled = np.random.default_rng(0).permutation(len(a))
    names = [f"v{11 - group}" for group in groups[shuffled]]
    assert first == correlation(a[shuffled], b[shuffled], names, kind, plan=Resampling(draws=200))
    assert first != correlation(a, b, groups, kind, plan=Resampling(draws=200, seed=1))


@pytest.mark.simulation
@pytest.mark.parametrize(("kind", "n_groups"), [("pearson", 30), ("spearman", 30), ("kendall", 30)])
def test_coverage(kind: Kind, n_groups: int) -> None:
    truth = 0.6
    target = {"pearson": truth, "spearman": 6 / np.pi * np.arcsin(truth / 2), "kendall": 2 / np.pi * np.arcsin(truth)}
    held = 0
    repetitions = simulated(300)
    for seed in range(repetitions):
        found = correlation(*two(seed, n_groups, truth), kind, plan=Resampling(draws=600))
        assert found.ci_low is not None
        assert found.ci_high is not None
        held += found.ci_low <= target[kind] <= found.ci_high
    assert_share(held, repetitions, 0.925, 0.98)


def test_errors() -> None:
    with pytest.raises(InputError, match=r"^values: found 1 and 2, expected pairs$"):
        correlation([1], [1, 2], ["a"])
    with pytest.raises(InputError, match=r"^two_level: found True, expected False for a correlation$"):
        correlation([1], [1], ["a"], plan=Resampling(two_level=True))
    with pytest.raises(InputError, match=r"^b's value 0: found inf, expected a finite number$"):
        correlation([1], [float("inf")], ["a"])
