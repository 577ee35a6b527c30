"""Power: compared with fresh data from a model whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from proctor.audits import (
    CorrelationSettings,
    MetricScores,
    PowerPlan,
    Rating,
    RatingCells,
    RatingsTable,
    paired,
    power,
)
from proctor.audits.power import rater_agreement
from proctor.core import InputError
from proctor.stats import Ints, contrast
from tests.support.simulation import assert_share, repetitions

NOISE = {"sharp": 0.8, "blunt": 1.2}
CUTS = (-0.6, 0.6)


def _drawn(seed: int, groups: int, raters: int = 1) -> tuple[RatingsTable, MetricScores, MetricScores]:
    """Three answers a group that share part of their quality; a rating is quality and as much noise again, cut at three
    levels; the mean of `raters`."""
    rng = np.random.default_rng(seed)
    ratings: list[Rating] = []
    scores: dict[str, dict[tuple[str, str, str], float | None]] = {name: {} for name in NOISE}
    for number in range(groups):
        shared = rng.normal()
        for system in "xyz":
            quality = (shared + rng.normal()) / np.sqrt(2)
            given = [float(np.digitize(quality + 0.6 * rng.normal(), CUTS)) / 2 for _ in range(raters)]
            one = Rating(f"e{number}", "…", system, "overall", "r", float(np.mean(given)))
            ratings.append(one)
            for name, noise in NOISE.items():
                scores[name][one.key] = float(quality + noise * rng.normal())
    sharp, blunt = (MetricScores(name, one) for name, one in scores.items())
    return RatingsTable(tuple(ratings)), sharp, blunt


def _agreement() -> float:
    rng = np.random.default_rng(99)
    quality = rng.normal(size=20_000)
    first, second = (np.digitize(quality + 0.6 * rng.normal(size=20_000), CUTS) for _ in range(2))
    return _pearson_r(first, second)


def _pearson_r(first: Ints, second: Ints) -> float:
    return float(((first - first.mean()) * (second - second.mean())).mean() / (first.std() * second.std()))


def _true_lead() -> float:
    table, *both = _drawn(1, 500)
    frame = RatingCells(table, CorrelationSettings(draws=0))
    first, second = (frame.measure(frame.cells[0], *paired(frame.cells[0], one)).mean.observed for one in both)
    return first - second


def _found(groups: int, raters: int, count: int) -> float:
    """How often fresh data of that many groups tell the two apart, by the test that `proctor audit` makes."""
    told = 0
    for seed in range(count):
        table, *both = _drawn(1000 + seed, groups, raters)
        frame = RatingCells(table, CorrelationSettings(draws=60))
        p = contrast(*(frame.measure(frame.cells[0], *paired(frame.cells[0], one)).mean for one in both)).p
        told += p is not None and p <= 0.05
    return told / count


@pytest.mark.simulation
@pytest.mark.parametrize("raters", [1, 2])
def test_the_chance_is_that_of_fresh_data(raters: int) -> None:
    sizes, count = (60,), repetitions(400)
    agreement = _agreement() if raters == 2 else None
    pilot = power(*_drawn(0, 250), PowerPlan(sizes=sizes, differences=(_true_lead(),), agreement=agreement))
    (said,) = [row.chances for row in pilot.rows if row.seconds == (raters == 2)]
    for size, chance in zip(sizes, said, strict=True):
        assert abs(chance - _found(size, raters, count)) < 0.08 + 3 * 0.5 / count**0.5, size


def test_second_ratings_help_and_a_larger_lead_needs_fewer_groups() -> None:
    found = power(*_drawn(0, 120), PowerPlan(sizes=(50, 200), differences=(0.03, 0.1), agreement=_agreement()))
    one = [row for row in found.rows if not row.seconds]
    two = [row for row in found.rows if row.seconds]
    assert [row.lead for row in one] == [row.lead for row in two]
    assert all((b.needed or 0) < (a.needed or 0) for a, b in zip(one, two, strict=True))
    assert (one[1].needed or 0) < (one[0].needed or 0) / 8  # (0.03 / 0.1)² = 0.09
    for row in found.rows:
        assert row.chances[0] <= row.chances[1]
    assert not found.measured


def test_a_lead_of_nothing_is_found_as_often_as_the_level_says() -> None:
    table, first, _ = _drawn(0, 100)
    rng = np.random.default_rng(5)
    other = MetricScores("other", {key: float(rng.normal()) + (value or 0) for key, value in first.scores.items()})
    found = power(table, first, other, PowerPlan(sizes=(100,), differences=(0.0,)))
    (row,) = found.rows
    assert 0.02 < row.chances[0] < 0.08
    assert row.needed is None


def test_the_same_seed_gives_the_same_table_whatever_the_order_of_the_ratings() -> None:
    table, first, second = _drawn(0, 40)
    plan = PowerPlan(sizes=(40,), agreement=0.7)
    turned = RatingsTable(tuple(sorted(table.ratings, key=lambda one: one.item)))
    assert power(table, first, second, plan) == power(table, first, second, plan)
    assert power(turned, first, second, PowerPlan(sizes=(40,))) == power(table, first, second, PowerPlan(sizes=(40,)))


def test_agreement_is_measured_where_answers_were_rated_twice() -> None:
    table, first, second = _drawn(0, 60)
    again = tuple(Rating(one.item, "…", one.system, "overall", "r2", one.value) for one in table.ratings)
    noisy = tuple(
        Rating(one.item, "…", one.system, "overall", "r2", float(k % 2)) for k, one in enumerate(table.ratings)
    )
    assert rater_agreement(table) is None
    assert rater_agreement(RatingsTable(table.ratings + again)) == pytest.approx(1)
    assert abs(rater_agreement(RatingsTable(table.ratings + noisy)) or 0) < 0.3
    assert not any(row.seconds for row in power(table, first, second, PowerPlan(sizes=(50,))).rows)


def test_raters_that_agree_less_than_the_metrics_tell_are_refused() -> None:
    table, first, second = _drawn(0, 60)
    with pytest.raises(
        InputError, match=r"rater agreement on /overall: found 0\.1, expected above 0\.\d\d, the share of variance"
    ):
        power(table, first, second, PowerPlan(sizes=(50,), agreement=0.1))


def test_a_flat_metric_has_no_power() -> None:
    table, first, _ = _drawn(0, 20)
    flat = MetricScores("flat", dict.fromkeys(table.keys, 1.0))
    with pytest.raises(InputError, match="flat on /overall: found scores or ratings that are all the same"):
        power(table, first, flat)


@pytest.mark.parametrize("times", [1.0, 3.7])
def test_metrics_with_the_same_figures_cannot_be_told_apart(times: float) -> None:
    """Correlations don't depend on the unit, so a metric in another unit is no other metric."""
    table, first, _ = _drawn(0, 20)
    again = MetricScores("again", {key: times * (one or 0.0) for key, one in first.scores.items()})
    with pytest.raises(InputError, match=r"^power: found two metrics with the same figures, expected two that differ$"):
        power(table, first, again, PowerPlan(sizes=(50,)))


def test_there_is_no_row_for_the_observed_lead() -> None:
    """The power to detect what was observed is a function of its p, and says nothing new."""
    found = power(*_drawn(0, 40), PowerPlan(sizes=(40,), differences=(0.02, 0.05), agreement=0.9))
    assert [(row.seconds, row.lead) for row in found.rows] == [(False, 0.02), (False, 0.05), (True, 0.02), (True, 0.05)]


@pytest.mark.simulation
def test_the_number_needed_has_an_interval_that_covers() -> None:
    """The truth is the mean of many pilots; a pilot of 60 encounters misses it by more than its interval in 5 of 100."""
    plan, count = PowerPlan(sizes=(60,), differences=(0.1,)), repetitions(80)
    rows = [row for seed in range(count) for row in power(*_drawn(2000 + seed, 60), plan).rows]
    truth = power(*_drawn(1, 400), plan).rows[0].needed or 0
    held = [(row.needed_low or 0) <= truth <= (row.needed_high or 10**9) for row in rows]
    assert all((row.needed_low or 0) < (row.needed or 0) < (row.needed_high or 10**9) for row in rows)
    assert_share(sum(held), count, 0.9, 1.0)


def test_names_of_encounters_change_nothing() -> None:
    table, *both = _drawn(0, 40)
    named = {
        item: f"{(7 * number) % 41:02d}" for number, item in enumerate(sorted({one.item for one in table.ratings}))
    }
    other = RatingsTable(tuple(replace(one, item=named[one.item], candidate=one.item) for one in table.ratings))
    same = RatingsTable(tuple(replace(one, candidate=one.item) for one in table.ratings))
    scores = [
        MetricScores(one.name, {(named[item], *rest): value for (item, *rest), value in one.scores.items()})  # type: ignore[misc]
        for one in both
    ]
    plan = PowerPlan(sizes=(40,), differences=(0.1,))
    assert power(other, scores[0], scores[1], plan) == power(same, both[0], both[1], plan)
