"""What a score means and whom it favours: by hand, against other implementations, and by simulation."""

from __future__ import annotations

import json

import numpy as np
import pytest

from proctor.audits import (
    ALL,
    AuditReport,
    Bias,
    CorrelationSettings,
    LengthSlope,
    MetricProfile,
    MetricScores,
    Rating,
    RatingsTable,
    coverage,
    profile,
    scored,
    to_json,
)
from proctor.audits.profile import rank_discrepancies
from proctor.metrics.text import tokens
from proctor.stats import Resampling, mean_interval
from tests.support.planted_metrics import planted

FEW = CorrelationSettings(draws=300)


@pytest.fixture(scope="module")
def portraits() -> dict[str, MetricProfile]:
    table, metrics = planted(5)
    return {name: profile(table, metric, FEW) for name, metric in metrics.items()}


def slope(portrait: MetricProfile, language: str, dimension: str = "") -> LengthSlope:
    return next(one for one in portrait.length_slopes if (one.language, one.dimension) == (language, dimension))


def bias(portrait: MetricProfile, facet: str, value: str, language: str = "en", dimension: str = "") -> Bias:
    return next(
        one
        for one in portrait.bias
        if (one.facet, one.value, one.language, one.dimension) == (facet, value, language, dimension)
    )


def apart(one: Bias | LengthSlope) -> bool:
    found = one.slope if isinstance(one, LengthSlope) else one.residual
    assert found.ci_low is not None
    assert found.ci_high is not None
    return not found.ci_low <= 0 <= found.ci_high


def test_a_judge_that_likes_long_answers_is_told_from_a_fair_one(portraits: dict[str, MetricProfile]) -> None:
    for language, dimension in (("en", ""), ("en", "flag"), ("en", "overall"), ("zh", "overall")):
        long, fair = (slope(portraits[name], language, dimension) for name in ("long", "fair"))
        assert apart(long), (language, dimension)
        assert long.slope.value is not None
        assert long.slope.value > 0.15  # on "flag" too, where its scores fall with length
        assert not apart(fair), (language, dimension)
    values = [one.residual.value for one in portraits["long"].bias if (one.facet, one.dimension) == ("length", "")]
    assert len(values) == 5
    assert (values[0] or 0.0) < -0.3 < 0.3 < (values[-1] or 0.0)


def test_a_judge_with_a_friend_and_one_that_likes_a_language(portraits: dict[str, MetricProfile]) -> None:
    friend = bias(portraits["friend"], "system", "s2")
    assert apart(friend)
    assert friend.residual.value is not None
    assert friend.residual.value > 0.2
    assert not apart(bias(portraits["fair"], "system", "s2"))
    english = bias(portraits["english"], "language", "en", "", "overall")
    assert apart(english)
    assert (english.n, english.groups) == (180, 60)
    assert not apart(bias(portraits["fair"], "language", "en", "", "overall"))
    # Only "overall" was rated in both languages.
    assert {one.dimension for one in portraits["english"].bias if one.facet == "language"} == {"overall"}
    assert not apart(bias(portraits["fair"], "dataset", "one"))


def test_slope_and_residuals_are_those_of_least_squares(portraits: dict[str, MetricProfile]) -> None:
    table, metrics = planted(5)
    own = [one for one in table.ratings if (one.language, one.dimension) == ("en", "flag")]
    raw = np.array([metrics["long"].scores[one.key] or 0.0 for one in own])
    score = -(raw - raw.mean()) / raw.std()
    rating = -np.array([one.value for one in own])
    length = np.log2(1 + np.array([len(tokens(one.candidate)) for one in own]))
    design = np.stack([np.ones(len(own)), rating, length], axis=1)
    expected = np.linalg.lstsq(design, score)[0][2]
    assert slope(portraits["long"], "en", "flag").slope.value == pytest.approx(expected)
    residual = score - design[:, :2] @ np.linalg.lstsq(design[:, :2], score)[0]
    inside = np.array([one.system == "s2" for one in own])
    found = bias(portraits["long"], "system", "s2", "en", "flag")
    assert found.residual.value == pytest.approx(residual[inside].mean())
    assert (found.n, found.groups) == (60, 60)
    both = [bias(portraits["long"], "system", "s2", "en", name).residual.value or 0.0 for name in ("flag", "overall")]
    assert bias(portraits["long"], "system", "s2").residual.value == pytest.approx(np.mean(both))


def test_slopes_of_fair_metrics_leave_zero_out_as_often_as_the_level_says() -> None:
    settings = CorrelationSettings(draws=100)
    outside = 0
    for seed in range(60):
        table, metrics = planted(seed, encounters=24)
        outside += apart(slope(profile(table, metrics["fair"], settings), "en"))
    assert outside <= 8  # 3 are expected; 9 or more have a chance of 0.3 %


def test_what_cannot_be_known_says_why(portraits: dict[str, MetricProfile]) -> None:
    flat = slope(portraits["flat"], "en")
    assert (flat.slope.value, flat.reason) == (None, "flag: all scores are 1; overall: all scores are 1")
    assert bias(portraits["flat"], "dataset", "one").reason == flat.reason
    table, metrics = planted()
    same = RatingsTable(
        tuple(
            Rating(one.item, "same", *(one.system, "overall", "r", one.value))
            for one in table.ratings
            if one.dimension == "overall"
        )
    )
    (found,) = profile(same, metrics["fair"], FEW).length_slopes
    assert (found.slope.value, found.reason) == (None, "lengths differ too little")
    part = {key: None if key[2] == "flag" else value for key, value in metrics["fair"].scores.items()}
    left = profile(table, MetricScores("part", part), FEW)
    assert slope(left, "en").reason == "flag: opted out"
    assert slope(left, "en", "overall").slope.value is not None
    assert next(one.reason for one in left.calibration if one.dimension == "flag") == "opted out"


def test_bins_and_levels_by_hand() -> None:
    ratings = [0.0, 0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
    scores = [0.1, 0.1, 0.1, 0.2, 0.3, 0.3, 0.4, 0.9]
    table = RatingsTable(tuple(Rating(f"e{k}", "x", "s", "good", "r", value) for k, value in enumerate(ratings)))
    metric = MetricScores("m", {(f"e{k}", "s", "good"): value for k, value in enumerate(scores)})
    (found,) = profile(table, metric, FEW).calibration
    # Eight parts were asked for, but equal scores stay together.
    assert [(one.low, one.high, one.rating.n) for one in found.bins] == [
        (0.1, 0.1, 3),
        (0.2, 0.2, 1),
        (0.3, 0.3, 2),
        (0.4, 0.4, 1),
        (0.9, 0.9, 1),
    ]
    assert found.bins[0].rating.value == pytest.approx(0.5 / 3)
    assert [(one.low, one.high, one.n, one.median) for one in found.levels] == [
        (0.0, 0.0, 2, 0.1),
        (0.5, 0.5, 3, 0.2),
        (1.0, 1.0, 3, 0.4),
    ]
    assert found.levels[2].q3 == pytest.approx(np.quantile([0.3, 0.4, 0.9], 0.75))


def test_a_bin_has_the_clustered_interval_of_its_ratings() -> None:
    table, metrics = planted()
    found = next(one for one in profile(table, metrics["fair"], FEW).calibration if one.dimension == "flag")
    assert sum(one.rating.n for one in found.bins) == 180
    assert {one.rating.n for one in found.bins} <= {22, 23}
    own = [one for one in table.ratings if (one.language, one.dimension) == ("en", "flag")]
    last = found.bins[-1]
    inside = [one for one in own if (metrics["fair"].scores[one.key] or 0.0) >= last.low]
    alone = mean_interval([one.value for one in inside], [one.cluster for one in inside], Resampling(draws=300))
    assert last.rating.value == pytest.approx(alone.value)
    assert last.rating.ci_low == pytest.approx(alone.ci_low, abs=0.05)  # its samples draw from all groups
    none = profile(table, metrics["fair"], CorrelationSettings(draws=0)).calibration[0].bins[0].rating
    assert (none.ci_low, none.ci_high) == (None, None)


def test_many_values_of_ratings_are_put_together() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=100)
    table = RatingsTable(tuple(Rating(f"e{k}", "x", "s", "good", "r", float(v)) for k, v in enumerate(values)))
    metric = MetricScores("m", {(f"e{k}", "s", "good"): float(v) for k, v in enumerate(values)})
    (found,) = profile(table, metric, FEW).calibration
    assert len(found.levels) == 8
    assert sum(level.n for level in found.levels) == 100


def test_gaps_are_between_the_ranks_that_equal_values_share() -> None:
    rng = np.random.default_rng(3)
    ratings = rng.integers(0, 3, 40) / 2
    scores = rng.integers(0, 6, 40) / 5
    table = RatingsTable(tuple(Rating(f"e{k}", "", "s", "d", "r", float(v)) for k, v in enumerate(ratings)))
    gaps = rank_discrepancies(table, MetricScores("m", {(f"e{k}", "s", "d"): float(v) for k, v in enumerate(scores)}))
    for k in range(40):
        ends = []
        for values in (scores, ratings):
            low = int((values < values[k]).sum())
            ends.append((low, low + int((values == values[k]).sum()) - 1))
        (low, high), (least, most) = ends
        expected = max(0, low - most) - max(0, least - high)
        assert gaps[f"e{k}", "s", "d"] == pytest.approx(expected / 40)
    monotone = rank_discrepancies(table, MetricScores("m", {one.key: one.value**3 for one in table.ratings}))
    assert set(monotone.values()) == {0.0}
    turned = rank_discrepancies(table, MetricScores("m", {one.key: -one.value for one in table.ratings}))
    assert min(turned.values()) < -0.25 < 0.25 < max(turned.values())
    assert rank_discrepancies(table, MetricScores("m", dict.fromkeys(table.keys, 0.5))) == {}
    assert rank_discrepancies(table, MetricScores("m", dict.fromkeys(table.keys, None))) == {}


def test_gaps_take_the_mean_of_raters_and_keep_languages_apart() -> None:
    rows = [("a", "en", 0.0, 1.0), ("b", "en", 1.0, 1.0), ("c", "zh", 0.2, 0.2), ("d", "zh", 0.1, 0.1)]
    ratings = [
        Rating(item, "", "s", "d", rater, value, language=language)
        for item, language, *values in rows
        for rater, value in zip("xy", values, strict=True)
    ]
    scores = {("a", "s", "d"): 9.0, ("b", "s", "d"): 8.0, ("c", "s", "d"): 1.0, ("d", "s", "d"): 0.0}
    gaps = rank_discrepancies(RatingsTable(tuple(ratings)), MetricScores("m", scores))
    assert gaps == {("a", "s", "d"): 0.5, ("b", "s", "d"): -0.5, ("c", "s", "d"): 0.0, ("d", "s", "d"): 0.0}


def test_counts() -> None:
    table, metrics = planted()
    found = {(one.dataset, one.language): one for one in coverage(table)}
    assert set(found) == {(dataset, language) for dataset in (ALL, "one", "two") for language in ("en", "zh")}
    one = found["one", "en"]
    assert (one.items, one.groups, one.systems, one.answers, one.ratings, one.twice) == (30, 30, 3, 90, 180, 0)
    assert scored(table, metrics["fair"]).scored == len(table.keys) == 540


def test_json_has_everything_and_no_nan() -> None:
    table, metrics = planted(encounters=10)
    found = AuditReport(table, [metrics["fair"], metrics["flat"]], CorrelationSettings(draws=50))
    text = json.dumps(to_json(found), allow_nan=False)
    data = json.loads(text)
    assert [one["metric"] for one in data["profiles"]] == ["fair", "flat"]
    assert data["profiles"][1]["length_slopes"][0]["reason"] == "all scores are 1"
    assert {one["dimension"] for one in data["profiles"][0]["length_slopes"]} == {"flag", "overall", ALL}
    assert data["coverage"][0]["raters"] == ["r"]
    assert data["scored"][1] == {"metric": "flat", "scored": 90, "opted_out": 0}
    assert found.boards is found.boards
