"""Strengths and probabilities of preference: published tables, a second implementation, what can't be known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from statsmodels.genmod.families import Binomial, Poisson
from statsmodels.genmod.generalized_linear_model import GLM

from proctor.core import InputError
from proctor.stats import Floats, PreferenceModel, Resampling, bradley_terry
from tests.support.simulation import assert_share
from tests.support.simulation import repetitions as simulated

PLAN = Resampling(draws=50)
Comparison = tuple[str, str, float]

# Agresti, Categorical Data Analysis: baseball, American League 1987, wins of the row's team over the column's.
TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
WINS = (
    (0, 7, 9, 7, 7, 9, 11),
    (6, 0, 7, 5, 11, 9, 9),
    (4, 6, 0, 7, 7, 8, 12),
    (6, 8, 6, 0, 6, 7, 10),
    (6, 2, 6, 7, 0, 7, 12),
    (4, 4, 5, 6, 6, 0, 6),
    (2, 4, 1, 3, 1, 7, 0),
)

# Davidson (1970), example 2: chocolate puddings of six brands; for each two how often either was preferred, and ties.
PUDDINGS = """
    12:19-22-16 13:16-19-12 23:19-19-10 14:18-23-13 24:23-19-9 34:19-20-15 15:13-19-18 25:16-20-12
    35:16-15-17 45:17-14-16 16:18-21-12 26:22-20-12 36:13-18-10 46:14-19-18 56:11-21-12
"""


def model(comparisons: list[Comparison], groups: list[str] | None = None, plan: Resampling = PLAN) -> PreferenceModel:
    """By default each comparison is a group."""
    first, second, points = ([one[position] for one in comparisons] for position in range(3))
    names = groups or [str(position) for position in range(len(comparisons))]
    return bradley_terry(
        [str(one) for one in first], [str(one) for one in second], [float(p) for p in points], names, plan
    )


def written(text: str) -> list[Comparison]:
    """ "ab" is a preferred to b, "a=b" a tie, "3ab" the same three times."""
    found: list[Comparison] = []
    for one in text.split():
        times, pair = (int(one[0]), one[1:]) if one[0].isdigit() else (1, one)
        found += [(pair[0], pair[-1], 0.5 if "=" in pair else 1.0)] * times
    return found


def strengths(found: PreferenceModel) -> dict[str, float | None]:
    return {one.name: one.strength for one in found.systems}


def win(found: PreferenceModel, one: str, other: str) -> float:
    value = found.wins[one, other].value
    assert value is not None
    return value


def test_baseball_of_agresti() -> None:
    # Published: 1.58, 1.44, 1.29, 1.25, 1.11, 0.68 and 0; Boston beats New York with 0.46.
    games = [
        (one, other, 1.0)
        for one, row in zip(TEAMS, WINS, strict=True)
        for other, times in zip(TEAMS, row, strict=True)
        for _ in range(times)
    ]
    found = model(games)
    strength = {name: value or 0.0 for name, value in strengths(found).items()}
    published = (1.58, 1.44, 1.29, 1.25, 1.11, 0.68, 0.0)
    assert [strength[team] - strength["Baltimore"] for team in TEAMS] == pytest.approx(published, abs=0.005)
    assert [one.name for one in found.systems] == list(TEAMS)
    assert win(found, "Boston", "New York") == pytest.approx(0.46, abs=0.006)
    assert (found.ties, found.problems) == (0.0, ())
    # All teams met equally often: the points that are expected are those that were made, 50 of Milwaukee's 78 games.
    assert found.systems[0].points.value == pytest.approx(50 / 78, abs=1e-9)


def test_puddings_of_davidson() -> None:
    comparisons: list[Comparison] = []
    for row in PUDDINGS.split():
        counts = map(int, row[3:].split("-"))
        comparisons += [
            (row[0], row[1], points) for points, n in zip((1, 0, 0.5), counts, strict=True) for _ in range(n)
        ]
    found = model(comparisons)
    # Published parameters, as the vignette of the R package PlackettLuce gives them.
    worth = np.exp([value or 0.0 for _, value in sorted(strengths(found).items())])
    assert worth / worth.sum() == pytest.approx([0.1388, 0.1730, 0.1617, 0.1654, 0.1587, 0.2024], abs=0.0001)
    assert found.ties == pytest.approx(0.7468, abs=0.0001)


def drawn(seed: int, *, tying: bool) -> list[Comparison]:
    """Comparisons of three to six systems, so many that a largest likelihood is all but sure."""
    rng = np.random.default_rng(seed)
    names = "abcdef"[: int(rng.integers(3, 7))]
    truth = dict(zip(names, rng.normal(0, 0.7, len(names)), strict=True))
    found: list[Comparison] = []
    for one, other in itertools.combinations(names, 2):
        half = np.exp((truth[one] - truth[other]) / 2)
        weights = np.array([half, 1 / half, 0.6 if tying else 0.0])
        times = int(rng.integers(8, 25))
        points = rng.choice([1.0, 0.0, 0.5], times, p=weights / weights.sum()).tolist()
        found += [(one, other, value) for value in points]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_without_ties_it_is_logistic_regression(seed: int) -> None:
    comparisons = drawn(seed, tying=False)
    names = sorted({one for one, _, _ in comparisons} | {other for _, other, _ in comparisons})
    design = np.array([[(one == name) - (other == name) for name in names[1:]] for one, other, _ in comparisons])
    fit = GLM([points for _, _, points in comparisons], design.astype(float), family=Binomial()).fit(tol=1e-12)
    found = model(comparisons)
    strength = [value or 0.0 for _, value in sorted(strengths(found).items())]
    assert np.array(strength[1:]) - strength[0] == pytest.approx(np.asarray(fit.params), abs=1e-6)
    assert sum(strength) == pytest.approx(0, abs=1e-9)
    assert win(found, "a", "b") == pytest.approx(1 / (1 + np.exp(fit.params[0])), abs=1e-7)
    assert win(found, "a", "b") + win(found, "b", "a") == pytest.approx(1)


@pytest.mark.parametrize("seed", range(12))
def test_with_ties_it_is_a_loglinear_model(seed: int) -> None:
    """Counts of the three outcomes of each pair as Poisson numbers, with a mean of their own for each pair (Fienberg
    and Larntz 1976, Biometrika 63:245)."""
    comparisons = drawn(seed, tying=True)
    pairs = sorted({(one, other) for one, other, _ in comparisons})
    names = sorted({name for pair in pairs for name in pair})
    counts, rows = [], []
    for pair in pairs:
        for points in (1.0, 0.0, 0.5):
            counts.append(comparisons.count((*pair, points)))
            share = [points * (pair[0] == name) + (1 - points) * (pair[1] == name) for name in names[1:]]
            rows.append([*(float(pair == other) for other in pairs), *share, float(points == 0.5)])
    fit = GLM(counts, np.array(rows), family=Poisson()).fit(tol=1e-12, maxiter=200)
    found = model(comparisons)
    strength = [value or 0.0 for _, value in sorted(strengths(found).items())]
    parameters = np.asarray(fit.params)[len(pairs) :]
    assert np.array(strength[1:]) - strength[0] == pytest.approx(parameters[:-1], abs=1e-6)
    assert found.ties == pytest.approx(np.exp(parameters[-1]), abs=1e-6)
    expected = np.asarray(fit.mu)[:3] / sum(counts[:3])
    assert [win(found, "a", "b"), win(found, "b", "a")] == pytest.approx(expected[:2], abs=1e-7)


def test_two_systems_have_the_shares_of_their_comparisons() -> None:
    found = model(written("5ab 3ba 2a=b"))
    assert [win(found, "a", "b"), win(found, "b", "a")] == pytest.approx([0.5, 0.3])
    assert found.systems[0].points.value == pytest.approx(0.6)
    # π_a / π_b is 0.5 / 0.3, and ν = 0.2 / √(0.5 · 0.3).
    strength = strengths(found)
    assert (strength["a"] or 0) - (strength["b"] or 0) == pytest.approx(np.log(5 / 3))
    assert found.ties == pytest.approx(0.2 / np.sqrt(0.15))


def test_a_system_that_won_all_has_no_strength() -> None:
    found = model(written("3ab 2ac 3bc 2cb"))
    assert [(one.name, one.part, one.strength is None) for one in found.systems] == [
        ("a", 0, True),
        ("b", 1, False),
        ("c", 1, False),
    ]
    assert (strengths(found)["b"] or 0) - (strengths(found)["c"] or 0) == pytest.approx(np.log(1.5))
    assert win(found, "a", "b") == 1.0
    assert found.wins["a", "b"].ci_low is not None
    assert found.wins["a", "b"].ci_low < 0.5  # three comparisons with b alone
    assert found.problems == (
        "a: preferred in every comparison with other systems, no finite strength beside theirs",
        "b, c: neither preferred nor tied in any comparison with other systems, no finite strength beside theirs",
    )


def test_one_comparison_is_no_proof() -> None:
    """a beat b once; b and c were compared often. That a is better than c hangs on the one."""
    found = model(written("ab 9bc 9cb"))
    assert win(found, "a", "c") == 1.0
    assert found.wins["a", "c"].ci_low is not None
    assert found.wins["a", "c"].ci_low < 0.1


def test_a_system_between_two_others() -> None:
    found = model(written("2ab 2bc"))
    assert [one.strength for one in found.systems] == [None, None, None]
    assert win(found, "a", "c") == 1.0
    assert [one.points.value for one in found.systems] == [1.0, 0.5, 0.0]
    assert found.problems[1] == (
        "b: preferred in every comparison with some systems, in none with others, no finite strength beside theirs"
    )


def test_systems_that_nothing_links() -> None:
    found = model(written("2ab 1ba 1cd 2dc"))
    assert found.problems == ("no comparisons link these: a, b | c, d",)
    assert found.wins["a", "c"].value is None
    assert win(found, "a", "b") == pytest.approx(2 / 3)
    assert [(one.name, one.points.value) for one in found.systems] == [(name, None) for name in "abcd"]
    assert (strengths(found)["d"] or 0) - (strengths(found)["c"] or 0) == pytest.approx(np.log(2))
    # Both beat c, and nothing says which of them is better.
    apart = model(written("2ac 2bc"))
    assert apart.wins["a", "b"].value is None
    assert apart.wins["a", "c"].value == 1.0


def test_ties_without_enough_preferences() -> None:
    """A preference one way and ties: shares are known, and no finite parameters give them."""
    found = model(written("1ab 3a=b"))
    assert (found.ties, [one.strength for one in found.systems]) == (None, [None, None])
    assert [win(found, "a", "b"), win(found, "b", "a")] == pytest.approx([0.25, 0], abs=1e-6)
    assert found.systems[0].points.value == pytest.approx(0.625)
    assert found.problems == ("too few preferences beside ties: no finite strengths are the likeliest",)
    # Ties alone; one preference in a circle of two ties: the same. Two ways: bounded.
    assert model(written("2a=b")).ties is None
    assert model(written("ab b=c c=a")).ties is None
    assert model(written("ab ba b=c c=a")).ties is not None
    assert model(written("ab bc c=a")).ties is not None


def test_order_sides_and_labels_of_groups_do_not_matter() -> None:
    comparisons = drawn(3, tying=True)
    groups = [f"video {position % 11}" for position in range(len(comparisons))]
    found = model(comparisons, groups)
    order = np.random.default_rng(0).permutation(len(comparisons)).tolist()
    turned = [(other, one, 1 - points) for one, other, points in comparisons]
    again = model([turned[k] for k in order], [groups[k].replace("video", "clip") for k in order])
    assert again == found
    assert found.systems[0].points.groups == 11


def test_edges_and_errors() -> None:
    assert bradley_terry([], [], [], []) == PreferenceModel((), {}, None, ("no comparisons",))
    few = model(written("2ab 1ba"), ["x", "x", "y"])
    assert few.systems[0].points.value == pytest.approx(2 / 3)
    assert few.systems[0].points.ci_low is None
    with pytest.raises(InputError, match=r"^comparison 0: found 'a' twice, expected two systems$"):
        bradley_terry(["a"], ["a"], [1], ["v"])
    with pytest.raises(InputError, match=r"^point 0: found 0.7, expected 1, 0.5 or 0$"):
        bradley_terry(["a"], ["b"], [0.7], ["v"])
    with pytest.raises(InputError, match=r"^point 0: found nan, expected a finite number$"):
        bradley_terry(["a"], ["b"], [float("nan")], ["v"])
    with pytest.raises(InputError, match=r"^comparisons: found 1, 2 and 1, expected two systems and points each$"):
        bradley_terry(["a"], ["b", "c"], [1], ["v"])
    with pytest.raises(InputError, match=r"^groups: found 2 labels, expected 1, one per item$"):
        bradley_terry(["a"], ["b"], [1], ["v", "w"])


@pytest.mark.simulation
@pytest.mark.parametrize("n_groups", [12, 40])
def test_intervals_hold_the_truth(n_groups: int) -> None:
    """Four systems; in half of the videos two of them exchange their ranks. The truth is the fit to what is expected."""
    rng = np.random.default_rng(n_groups)
    names, kinds = "abcd", (np.array([0.8, 0.2, -0.2, -0.8]), np.array([-0.2, 0.2, 0.8, -0.8]))
    pairs = list(itertools.combinations(range(4), 2))
    chances: list[list[Floats]] = []
    for kind in kinds:
        half = [np.exp((kind[one] - kind[other]) / 2) for one, other in pairs]
        chances.append([np.array([one, 1 / one, 0.5]) / (one + 1 / one + 0.5) for one in half])
    expected = [
        (names[one], names[other], points)
        for position, (one, other) in enumerate(pairs)
        for points, chance in zip((1.0, 0.0, 0.5), (chances[0][position] + chances[1][position]) / 2, strict=True)
        for _ in range(round(4000 * float(chance)))
    ]
    truth = model(expected, ["all"] * len(expected))
    held, of, full = np.zeros(2), np.zeros(2), simulated(200)
    for _ in range(full):
        comparisons: list[Comparison] = []
        groups: list[str] = []
        for group, times in enumerate(rng.geometric(1 / 8, n_groups)):
            which_kind = int(rng.integers(2))
            for position in rng.integers(0, len(pairs), times).tolist():
                points = rng.choice([1.0, 0.0, 0.5], p=chances[which_kind][position])
                comparisons.append((names[pairs[position][0]], names[pairs[position][1]], float(points)))
                groups.append(str(group))
        found = model(comparisons, groups, Resampling(draws=300))
        real = {one.name: one.points.value for one in truth.systems}
        checks = [(one.points, real[one.name], 0) for one in found.systems]
        checks += [(found.wins[pair], truth.wins[pair].value, 1) for pair in truth.wins]
        for estimate, value, which in checks:
            if estimate.ci_low is not None and estimate.ci_high is not None and value is not None:
                of[which] += 1
                held[which] += estimate.ci_low <= value <= estimate.ci_high
    assert of.min() >= 0.97 * full * 4
    for found_share in held / of:  # of 4 systems, or 12 preferences, of one simulated study, which are not independent
        assert_share(float(found_share) * full, full, 0.92, 0.99)
