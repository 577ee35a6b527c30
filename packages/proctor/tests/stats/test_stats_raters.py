"""Percent agreement, Fleiss' κ and Gwet's AC1 of any number of raters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import mean

import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa as reference_kappa

from proctor.core import InputError
from proctor.stats import (
    Estimate,
    Resampling,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    percent_agreement,
)
from tests.support.simulation import assert_share
from tests.support.simulation import repetitions as simulated

PLAN = Resampling(draws=100)
COEFFICIENTS = (percent_agreement, fleiss_kappa, gwet_ac1)

# Fleiss (1971), table 1: 30 patients, each with six psychiatrists' diagnoses (depression, personality disorder,
# schizophrenia, neurosis, other).
DIAGNOSES = """
    00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
    00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""

# Krippendorff (2011), Computing Krippendorff's alpha-reliability; with AC1 in Gwet (2014): four raters, 12 units.
FOUR_RATERS = "11-1 2232 3333 3333 2222 1234 4444 1121 2222 -555 --11 --3-"

Ratings = tuple[list[str], list[str]]


def by_count(rows: Sequence[str]) -> Ratings:
    """Labels and items of rows that count how often each level was given."""
    pairs = [(str(k), str(i)) for i, row in enumerate(rows) for k, n in enumerate(row) for _ in range(int(n))]
    return [label for label, _ in pairs], [item for _, item in pairs]


def by_rater(rows: Sequence[str]) -> Ratings:
    """Labels and items of rows that hold each rater's label, "-" where it is missing."""
    pairs = [(label, str(item)) for item, row in enumerate(rows) for label in row if label != "-"]
    return [label for label, _ in pairs], [item for _, item in pairs]


def value(coefficient: Callable[..., Estimate], ratings: Ratings, levels: str) -> float:
    labels, items = ratings
    found = coefficient(labels, levels, items, items, PLAN)
    assert found.value is not None
    return found.value


def in_words(ratings: Ratings, levels: str) -> tuple[Fraction, Fraction, Fraction]:
    """The three coefficients from every pair of ratings, in exact fractions and nothing but Python."""
    readings: dict[str, list[str]] = {}
    for label, item in zip(*ratings, strict=True):
        readings.setdefault(item, []).append(label)
    several = [some for some in readings.values() if len(some) > 1]
    same = mean(mean(Fraction(a == b) for a, b in itertools.combinations(some, 2)) for some in several)

    def shares(items: list[list[str]]) -> list[Fraction]:
        return [mean(Fraction(some.count(level), len(some)) for some in items) for level in levels]

    fleiss = sum(share**2 for share in shares(several))
    gwet = Fraction(sum(share * (1 - share) for share in shares(list(readings.values())))) / (len(levels) - 1)
    return same, (same - fleiss) / (1 - fleiss), (same - gwet) / (1 - gwet)


def test_diagnoses_of_fleiss() -> None:
    # Published: mean agreement 0.556, chance 0.220, κ = 0.430.
    ratings = by_count(DIAGNOSES.split())
    assert [ratings[0].count(level) for level in "01234"] == [26, 26, 30, 55, 43]
    assert value(percent_agreement, ratings, "01234") == pytest.approx(0.556, abs=0.0005)
    assert value(fleiss_kappa, ratings, "01234") == pytest.approx(0.430, abs=0.0005)


def test_four_raters_with_missing_ratings() -> None:
    # Published: percent agreement 0.818, AC1 0.775 (chance 0.190), Krippendorff's α 0.743. The unit with one rating
    # says something about how frequent label 3 is, to AC1.
    ratings = by_rater(FOUR_RATERS.split())
    assert value(percent_agreement, ratings, "12345") == pytest.approx(0.81818, abs=5e-6)
    assert value(gwet_ac1, ratings, "12345") == pytest.approx(0.77544, abs=5e-6)
    alpha = krippendorff_alpha([int(one) for one in ratings[0]], ratings[1], ratings[1], "nominal", PLAN)
    assert alpha.value == pytest.approx(0.743, abs=0.0005)
    found = gwet_ac1(ratings[0], "12345", ratings[1], ratings[1], PLAN)
    assert (found.n, found.groups) == (11, 11)


def test_ac1_holds_where_nearly_all_labels_are_the_same() -> None:
    # Two raters, 125 items: both + 118, + and − 5, − and + 2. p_a = 118 / 125, π₊ = 243 / 250,
    # p_e = 2 · 0.972 · 0.028 = 0.054432 and AC1 = 0.889568 / 0.945568; Cohen's κ is below 0.
    rows = ["++"] * 118 + ["+-"] * 5 + ["-+"] * 2
    labels = [label for row in rows for label in row]
    items = [str(item) for item in range(125) for _ in range(2)]
    assert value(percent_agreement, (labels, items), "+-") == pytest.approx(0.944)
    assert value(gwet_ac1, (labels, items), "+-") == pytest.approx(0.889568 / 0.945568)
    assert value(fleiss_kappa, (labels, items), "+-") == pytest.approx((0.944 - 0.945568) / 0.054432)
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    cohen = cohen_kappa(first, second, "+-", [str(item) for item in range(125)], PLAN)
    assert cohen.value == pytest.approx(-0.02339, abs=5e-6)


@pytest.mark.parametrize("seed", range(20))
def test_fleiss_kappa_is_that_of_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    raters, levels = int(rng.integers(2, 7)), int(rng.integers(2, 6))
    table = rng.multinomial(raters, rng.dirichlet(np.ones(levels)), size=int(rng.integers(5, 40)))
    ratings = by_count(["".join(map(str, row)) for row in table])
    assert value(fleiss_kappa, ratings, "01234"[:levels]) == pytest.approx(reference_kappa(table), abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_all_agree_with_plain_python_where_ratings_are_missing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = "abcd"[: int(rng.integers(2, 5))]
    items = [str(item) for item in range(int(rng.integers(6, 15))) for _ in range(int(rng.integers(1, 5)))]
    labels = rng.choice(list(levels), len(items)).tolist()
    if max(items.count(item) for item in items) == 1 or len(set(labels)) == 1:
        pytest.skip("nothing to compare")
    found = [value(coefficient, (labels, items), levels) for coefficient in COEFFICIENTS]
    assert found == pytest.approx([float(one) for one in in_words((labels, items), levels)], abs=1e-12)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_order_and_names_do_not_matter(coefficient: Callable[..., Estimate]) -> None:
    labels, items = by_rater(FOUR_RATERS.split() * 3)
    groups = [f"video {int(item) % 9}" for item in items]
    first = coefficient(labels, "12345", items, groups, PLAN)
    order = np.random.default_rng(0).permutation(len(labels)).tolist()
    again = coefficient(
        [labels[k] for k in order],
        "12345",
        [f"item {items[k]}" for k in order],
        [{"video 0": "zero"}.get(groups[k], groups[k]) for k in order],
        PLAN,
    )
    assert first == again
    assert first.groups == 9
    assert first.ci_low is not None
    assert first.value is not None
    assert first.ci_low < first.value


def test_edges() -> None:
    nothing = Estimate(None, None, None, 0, 0)
    for coefficient in COEFFICIENTS:
        assert coefficient([], "yn", [], [], PLAN) == nothing
    for labels, items in ((["y", "n"], ["a", "b"]), ([], [])):
        assert percent_agreement(labels, "yn", items, items, PLAN).value is None
        assert fleiss_kappa(labels, "yn", items, items, PLAN).value is None
        assert gwet_ac1(labels, "yn", items, items, PLAN).value is None
    # All the same: κ is not defined, and that eight groups of items agree is no proof that all do.
    items = [item for item in "abcdefgh" for _ in range(2)]
    assert fleiss_kappa("y" * 16, "yn", items, items, PLAN).value is None
    full = gwet_ac1("y" * 16, "yn", items, items, PLAN)
    assert full.value == 1.0
    assert full.ci_low is not None
    assert full.ci_low < 0.5
    # Never the same: −1, with two levels and equal shares.
    apart = gwet_ac1("yn" * 8, "yn", items, items, PLAN)
    assert (apart.value, fleiss_kappa("yn" * 8, "yn", items, items, PLAN).value) == (-1.0, -1.0)
    # Levels that nobody gave make agreement by chance less likely.
    wide = value(gwet_ac1, (list("yyny"), list("aabb")), "ynu")
    assert wide > value(gwet_ac1, (list("yyny"), list("aabb")), "yn")


def test_groups_with_one_rating_an_item_give_no_interval() -> None:
    items = [*"aabb", *(f"single {k}" for k in range(20))]
    found = gwet_ac1(["y"] * 24, "yn", items, items, PLAN)
    assert (found.value, found.ci_low, found.n, found.groups) == (1.0, None, 2, 2)


def test_errors() -> None:
    for coefficient in COEFFICIENTS:
        with pytest.raises(InputError, match=r"^label of rating 1: found 'x', expected one of y, n$"):
            coefficient("yx", "yn", "aa", "gg", PLAN)
        with pytest.raises(InputError, match=r"^levels: found \['y', 'y'\], expected each level once$"):
            coefficient("yy", "yy", "aa", "gg", PLAN)
        with pytest.raises(InputError, match=r"^item a: found a second group, 'h', expected one group$"):
            coefficient("yy", "yn", "aa", "gh", PLAN)
        with pytest.raises(InputError, match=r"^groups: found 1 label, expected 2, one per item$"):
            coefficient("yy", "yn", "aa", "g", PLAN)
    with pytest.raises(InputError, match=r"^levels: found \['y'\], expected two or more$"):
        gwet_ac1("yy", "y", "aa", "gg", PLAN)


@pytest.mark.simulation
@pytest.mark.parametrize("n_groups", [12, 40])
def test_intervals_hold_the_truth(n_groups: int) -> None:
    """Videos differ in how frequent "y" is and in how often raters err; an item has two or three ratings."""
    rng = np.random.default_rng(n_groups)
    errors, frequent = np.array([0.05, 0.35]), 0.3
    agree = float(np.mean((1 - errors) ** 2 + errors**2))
    share = frequent * (1 - errors.mean()) + (1 - frequent) * errors.mean()
    fleiss, gwet = share**2 + (1 - share) ** 2, 2 * share * (1 - share)
    truth = [agree, (agree - fleiss) / (1 - fleiss), (agree - gwet) / (1 - gwet)]
    held, full = np.zeros(3), simulated(400)
    for _ in range(full):
        group = np.repeat(np.arange(n_groups), rng.geometric(1 / 6, n_groups))
        wrong, chance = rng.choice(errors, n_groups)[group], rng.beta(3, 7, n_groups)[group]
        case = rng.random(len(group)) < chance
        item = np.repeat(np.arange(len(group)), rng.integers(2, 4, len(group)))
        labels = (case[item] != (rng.random(len(item)) < wrong[item])).tolist()
        groups = group[item].tolist()
        for position, coefficient in enumerate(COEFFICIENTS):
            found = coefficient(labels, (True, False), item.tolist(), groups, Resampling(draws=300))
            assert found.ci_low is not None
            assert found.ci_high is not None
            held[position] += found.ci_low <= truth[position] <= found.ci_high
    for one in held:
        assert_share(float(one), full, 0.93, 0.99)


@pytest.mark.parametrize(("others", "interval"), [(2, False), (3, True)])
def test_agreement_beyond_chance_has_no_interval_where_hardly_anything_could_differ(
    others: int, interval: bool
) -> None:
    """Twelve items in twelve groups; Anna says "no" to some of them, Ben to one fewer."""
    groups = [f"v{number:02d}" for number in range(12)]
    anna = ["n" if number < others else "y" for number in range(12)]
    ben = ["n" if number < others - 1 else "y" for number in range(12)]
    plan = Resampling(draws=200)
    both, twice = (
        [label for pair in zip(anna, ben, strict=True) for label in pair],
        [one for one in groups for _ in "ab"],
    )
    values = [float(label == "y") for label in both]
    for found in (
        cohen_kappa(anna, ben, "yn", groups, plan),
        fleiss_kappa(both, "yn", twice, twice, plan),
        krippendorff_alpha(values, twice, twice, "nominal", plan),
    ):
        assert found.value is not None
        assert (found.ci_low is not None) is interval
