"""A metric compared with ratings: by item, rater and system, beside other metrics and the raters themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

import proctor
from proctor.audits import (
    ALL,
    AuditReport,
    CorrelationSettings,
    MetricScores,
    Rating,
    RatingsTable,
    agreement_rows,
    audit,
    compare,
    read_metrics,
    read_ratings,
    read_scores,
    to_json,
)
from proctor.core import InputError
from proctor.stats import Contrast, Resampling, Sampled, contrast, krippendorff_alpha
from proctor.tasks.mediqa_eval import official

FEW = CorrelationSettings(draws=200)


def two_raters(seed: int = 0, n: int = 40) -> RatingsTable:
    """Two datasets, three systems, one dimension; everything rated by "a", the first dataset by "b" too."""
    rng = np.random.default_rng(seed)
    ratings = []
    for number in range(n):
        dataset = "one" if number < n // 2 else "two"
        for system in ("s1", "s2", "s3"):
            level = int(rng.integers(0, 3))
            for rater in "ab" if dataset == "one" else "a":
                value = float(np.clip(level + rng.integers(-1, 2), 0, 2)) / 2
                where = {"group": f"e{number}", "dataset": dataset, "language": "en"}
                ratings.append(Rating(f"q{number}", f"{number} {system}", system, "good", rater, value, **where))
    return RatingsTable(tuple(ratings))


def scored(table: RatingsTable, name: str = "mine", seed: int = 1, noise: float = 0.5) -> MetricScores:
    """The mean rating with noise."""
    rng = np.random.default_rng(seed)
    by_key: dict[tuple[str, str, str], list[float]] = {}
    for one in table.ratings:
        by_key.setdefault(one.key, []).append(one.value)
    return MetricScores(name, {key: float(np.mean(values) + noise * rng.normal()) for key, values in by_key.items()})


def plain(metric: MetricScores, table: RatingsTable) -> list[float]:
    return [float(metric.scores[one.key] or 0.0) for one in table.ratings]


def test_every_rating_is_a_pair() -> None:
    table = two_raters()
    metric = scored(table)
    found = audit(table, metric, FEW)
    assert [(row.dataset, row.mean.n, row.answers, row.mean.groups, row.raters) for row in found.agreements] == [
        (ALL, 180, 120, 40, 2),
        ("one", 120, 60, 20, 2),
        ("two", 60, 60, 20, 1),
    ]
    pairs = plain(metric, table), [one.value for one in table.ratings]
    row = found.agreements[0]
    truths = [
        function(*pairs).statistic for function in (reference.kendalltau, reference.pearsonr, reference.spearmanr)
    ]
    assert [row.kendall.value, row.pearson.value, row.spearman.value] == pytest.approx(truths)
    assert row.mean.value == pytest.approx(np.mean(truths))
    assert found.aggregates[0].mean == row.mean


def test_each_rater_and_their_mean() -> None:
    table = two_raters()
    metric = scored(table)
    rows = {(row.dataset, row.rater): row for row in audit(table, metric, FEW).by_rater}
    assert set(rows) == {(dataset, rater) for dataset in (ALL, "one") for rater in ("a", "b", "mean")}
    own = [one for one in table.ratings if one.rater == "b"]
    scores = [float(metric.scores[one.key] or 0.0) for one in own]
    expected = float(reference.pearsonr(scores, [one.value for one in own]).statistic)
    assert rows["one", "b"].pearson.value == pytest.approx(expected)
    means = rows["one", "mean"]
    assert (means.mean.n, means.answers) == (60, 60)
    by_key = {one.key: [two.value for two in table.ratings if two.key == one.key] for one in own}
    scores = [float(metric.scores[key] or 0.0) for key in by_key]
    expected = reference.kendalltau(scores, [np.mean(values) for values in by_key.values()]).statistic
    assert means.kendall.value == pytest.approx(expected)


def test_the_ceiling_is_what_one_rater_says_of_the_other() -> None:
    table = two_raters()
    ceilings = audit(table, scored(table), FEW).ceilings
    assert [(one.dataset, one.first, one.second, one.mean.n) for one in ceilings] == [
        (ALL, "a", "b", 60),
        ("one", "a", "b", 60),
    ]
    shared = [one for one in table.ratings if one.dataset == "one"]
    a, b = ([one.value for one in shared if one.rater == rater] for rater in "ab")
    assert ceilings[1].spearman.value == pytest.approx(reference.spearmanr(a, b).statistic)
    alpha = krippendorff_alpha(
        [one.value for one in shared],
        [one.key for one in shared],
        [one.group for one in shared],
        plan=Resampling(draws=200),
    )
    assert ceilings[1].alpha == alpha


def test_systems_by_hand() -> None:
    values = {"s1": [0.0, 0.5], "s2": [0.5, 0.5], "s3": [1.0, 0.5]}
    scores = {"s1": [0.3, 0.1], "s2": [0.9, 0.9], "s3": [0.4, 0.6]}
    ratings = [
        Rating(f"q{k}", system, system, "good", "r", value)
        for system, row in values.items()
        for k, value in enumerate(row)
    ]
    metric = MetricScores("m", {(f"q{k}", s, "good"): v for s, row in scores.items() for k, v in enumerate(row)})
    (found,) = audit(RatingsTable(tuple(ratings)), metric, FEW).by_system
    assert found.systems == (("s1", 0.2, 0.25, 2), ("s2", 0.9, 0.5, 2), ("s3", 0.5, 0.75, 2))
    # Means 0.2, 0.9, 0.5 against 0.25, 0.5, 0.75: two pairs in order, one not.
    assert found.kendall == pytest.approx(1 / 3)
    assert found.spearman == pytest.approx(0.5)


def test_a_metric_that_likes_long_answers_is_seen() -> None:
    rng = np.random.default_rng(0)
    size = rng.integers(1, 30, 90)
    quality = rng.integers(0, 3, 90) / 2
    ratings = tuple(
        Rating(f"q{k}", " ".join(["word"] * int(size[k])), "s", "good", "r", float(quality[k]), group=f"e{k // 3}")
        for k in range(90)
    )
    table = RatingsTable(ratings)
    long = MetricScores("long", {one.key: float(size[k]) for k, one in enumerate(ratings)})
    (found,) = audit(table, long, FEW).by_length
    assert found.scores.value == pytest.approx(1)
    assert found.ratings.value == pytest.approx(reference.spearmanr(size, quality).statistic)
    assert found.excess.p is not None
    assert found.excess.p < 0.001
    assert found.partial is None  # nothing is left once length is fixed
    mixed = MetricScores("mixed", {one.key: float(quality[k] + size[k] / 30) for k, one in enumerate(ratings)})
    (found,) = audit(table, mixed, FEW).by_length
    ranks = [reference.rankdata(values) for values in (size, quality, quality + size / 30)]
    residuals = [one - np.polyval(np.polyfit(ranks[0], one, 1), ranks[0]) for one in ranks[1:]]
    assert found.partial == pytest.approx(reference.pearsonr(*residuals).statistic)
    flat = MetricScores("flat", dict.fromkeys(table.keys, 1.0))
    (found,) = audit(table, flat, FEW).by_length
    assert (found.scores.value, found.partial, found.reason) == (None, None, "all scores are the same")


def test_what_has_no_correlation_says_why() -> None:
    table = two_raters()
    flat = MetricScores("flat", dict.fromkeys(table.keys, 0.5))
    found = audit(table, flat, FEW)
    assert {row.reason for row in found.agreements} == {"all scores are 0.5"}
    assert all(value is None for value in official(found).values())
    part = dict(scored(table).scores)
    part.update({one.key: None for one in table.ratings if one.dataset == "one"})
    found = audit(table, MetricScores("part", part), FEW)
    assert [(row.dataset, row.reason, row.mean.value is None) for row in found.agreements] == [
        (ALL, "opted out in one", True),
        ("one", "opted out", True),
        ("two", "", False),
    ]
    assert found.aggregates[0].reason == "good: opted out in one"
    same = RatingsTable(tuple(Rating(f"q{k}", "", "s", "good", "r", 1.0) for k in range(5)))
    assert audit(same, scored(same), FEW).agreements[0].reason == "all ratings are 1"
    one = RatingsTable(same.ratings[:1])
    assert audit(one, scored(one), FEW).agreements[0].reason == "fewer than two ratings"


def test_a_missing_score_is_an_error() -> None:
    table = two_raters()
    with pytest.raises(InputError, match=r"^metric 'm': found nothing, expected a score of \('q0', 's1', 'good'\)$"):
        audit(table, MetricScores("m", {}), FEW)


def test_metrics_that_cannot_be_told_apart_share_a_rank() -> None:
    table = two_raters(n=80)
    metrics = [
        scored(table, "good", 1),
        scored(table, "as good", 2),
        scored(table, "noise", 3, 9.0),
        MetricScores("flat", dict.fromkeys(table.keys, 1.0)),
    ]
    overall, board = compare(table, metrics, CorrelationSettings(draws=500))
    assert (overall.dimension, board.dimension) == ("", "good")
    rows = {row.metric: row for row in board.metrics}
    assert [rows[name].rank for name in ("good", "as good", "noise", "flat")] == [1, 1, 3, None]
    assert [rows[name].ties for name in ("good", "as good", "noise", "flat")] == [(1,), (1,), (2,), ()]
    assert rows["flat"].reason == "all scores are 1"
    assert [row.metric for row in board.metrics][-2:] == ["noise", "flat"]
    pairs = {(one.first, one.second): one for one in board.comparisons}
    assert len(pairs) == 6
    near = pairs["good", "as good"]
    assert near.p_holm is not None
    assert near.p_holm > 0.05
    far = pairs["good", "noise"]
    assert far.p_holm is not None
    assert far.p_holm < 0.01
    assert pairs["good", "flat"].p_holm is None
    alone = audit(table, metrics[0], CorrelationSettings(draws=500)).agreements[0].mean
    assert rows["good"].mean == alone


def test_names_of_items_groups_systems_and_raters_change_nothing() -> None:
    """p of a contrast was 0.186 to 0.191, by how encounters were named."""
    table = two_raters(n=40)
    metrics = [scored(table, "good", 1), scored(table, "as good", 2)]
    code = {item: f"{(7 * number) % 41:02d}" for number, item in enumerate(sorted({one.item for one in table.ratings}))}
    systems = {"s1": "z", "s2": "m", "s3": "a"}
    renamed = [
        replace(one, item=code[one.item], group=f"g{code[one.item]}", system=systems[one.system], rater=f"{one.rater}!")
        for one in table.ratings
    ]
    moved = [
        MetricScores(
            one.name, {(code[item], systems[system], what): v for (item, system, what), v in one.scores.items()}
        )
        for one in metrics
    ]
    found, other = (
        [(board.metrics, board.comparisons) for board in compare(RatingsTable(tuple(rows)), scores, FEW)]
        for rows, scores in ((table.ratings, metrics), (sorted(renamed, key=lambda one: one.item), moved))
    )
    for (indices, pairs), (others, other_pairs) in zip(found, other, strict=True):
        ends = [[(one.mean.value, one.mean.ci_low, one.mean.ci_high) for one in some] for some in (indices, others)]
        assert ends[0] == [pytest.approx(one, abs=1e-12) for one in ends[1]]
        p = [[one.difference.p for one in some] for some in (pairs, other_pairs)]
        assert p[0] == pytest.approx(p[1], abs=1e-12)


def test_a_metric_never_ranks_above_one_that_agrees_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best is significantly better than the second, not than the third, which varies more: that one ranks no higher
    than the second for it."""
    table = two_raters(n=80)
    metrics = [scored(table, "a", 1), scored(table, "b", 2, 2.0), scored(table, "c", 3, 9.0)]
    order = [row.metric for row in compare(table, metrics, FEW)[1].metrics]
    p_of = {(0, 1): 0.001, (0, 2): 0.9, (1, 2): 0.9}
    calls = iter([p_of[pair] for _ in range(2) for pair in combinations(range(3), 2)])

    def made(first: Sampled, second: Sampled) -> Contrast:
        return replace(contrast(first, second), p=next(calls))

    monkeypatch.setattr("proctor.audits.comparison.contrast", made)
    rows = compare(table, metrics, FEW)[1].metrics
    assert [row.metric for row in rows] == order
    assert [row.rank for row in rows] == [1, 2, 2]


def test_the_same_metric_twice_is_no_better() -> None:
    table = two_raters()
    first, second = scored(table, "x"), scored(table, "y")
    board = compare(table, [first, second], FEW)[0]
    assert [row.rank for row in board.metrics] == [1, 1]
    assert board.comparisons[0].difference.p == 1.0
    with pytest.raises(InputError, match=r"^metrics: found x, x, expected each name once$"):
        compare(table, [first, first], FEW)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("ab")), min_size=1, max_size=8))
def test_json_never_holds_nan(rows: list[tuple[int, int, str]]) -> None:
    ratings = tuple(Rating(f"q{k}", "", "s", "d", rater, v / 2) for k, (v, _, rater) in enumerate(rows))
    table = RatingsTable(ratings)
    metric = MetricScores("m", {one.key: float(s) for one, (_, s, _) in zip(ratings, rows, strict=True)})
    tiny = CorrelationSettings(draws=20)
    found = audit(table, metric, tiny)
    whole = AuditReport(table, [metric, MetricScores("n", dict.fromkeys(table.keys, 1.0))], tiny)
    json.dumps([to_json(whole), agreement_rows(found), official(found)], allow_nan=False)


HEADER = "item,candidate,system,dimension,rater,value\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("q1,x,s,d,r,1\nq1,x,s,d,r,0\n", ("row 3, column 'rater': found a second rating by 'r', after row 2, expected "
                                         "one of each rater")),
        ("q1,x,s,d,r,1\nq1,y,s,e,r,0\n", "row 3, column 'candidate': found another text, expected that of row 2"),
        ("q1,x,s,d,r,good\n", "row 2, column 'value': found 'good', expected a finite number"),
        ("q1,x,,d,r,1\n", "row 2, column 'system': found nothing, expected a name"),
    ],
)  # fmt: skip
def test_bad_ratings(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(HEADER + content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_ratings(file)
    assert str(caught.value) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("q1,s,d,1\nq1,s,d,1\n", "row 3: found q1, s, d again, expected one score of each"),
        ("q2,s,d,1\n", "row 2: found q2, s, d, expected an answer that was rated"),
        ("q1,s,d,1\n", "found no score of q1, t, d, expected one of every rated answer"),
        ("q1,s,d,\n", "row 2, column 'value': found '', expected a finite number"),
    ],
)
def test_bad_scores(content: str, said: str, tmp_path: Path) -> None:
    ratings, file = tmp_path / "ratings.csv", tmp_path / "scores.csv"
    ratings.write_text(HEADER + "q1,x,s,d,r,1\nq1,y,t,d,r,0\n", encoding="utf-8")
    file.write_text("item,system,dimension,value\n" + content, encoding="utf-8")
    table = read_ratings(ratings)
    with pytest.raises(InputError) as caught:
        read_scores(file, table)
    assert str(caught.value) == f"{file}: {said}"


def test_one_score_an_answer_needs_no_dimension_and_no_text(tmp_path: Path) -> None:
    ratings, scores = tmp_path / "ratings.csv", tmp_path / "mine.csv"
    ratings.write_text("item,system,rater,value\nq1,s,a,1\nq1,s,b,0\nq2,s,a,0\n", encoding="utf-8")
    scores.write_text("item,system,value\nq1,s,0.9\nq2,s,0.1\n", encoding="utf-8")
    table = read_ratings(ratings)
    assert table.dimensions == (("", "quality"),)
    assert {one.candidate for one in table.ratings} == {""}
    assert read_scores(scores, table).scores == {("q1", "s", "quality"): 0.9, ("q2", "s", "quality"): 0.1}
    ratings.write_text("item,system,dimension,rater,value\nq1,s,d,a,1\nq1,s,e,a,0\nq2,s,e,a,0\n", encoding="utf-8")
    found = read_scores(scores, read_ratings(ratings)).scores
    assert found == {("q1", "s", "d"): 0.9, ("q1", "s", "e"): 0.9, ("q2", "s", "e"): 0.1}
    scores.write_text("item,system,value\nq1,s,0.9\nq3,s,0.1\n", encoding="utf-8")
    with pytest.raises(InputError, match="row 3: found q3, s, expected an answer that was rated"):
        read_scores(scores, read_ratings(ratings))


def rated_table(folder: Path) -> Path:
    file = folder / "ratings.csv"
    file.write_text("item,system,rater,value\nq1,s,a,1\nq2,s,a,0\nq3,s,a,1\n", encoding="utf-8")
    return file


def test_a_wide_table_has_a_column_for_each_metric(tmp_path: Path) -> None:
    table, file = read_ratings(rated_table(tmp_path)), tmp_path / "mine.csv"
    file.write_text("group,item,bleu,system,ROUGE L\ng,q1,0.5,s,1\ng,q2,0.25,s,2\ng,q3,-1e-1,s,3\n", encoding="utf-8")
    keys = [(f"q{number}", "s", "quality") for number in (1, 2, 3)]
    assert {one.name: [one.scores[key] for key in keys] for one in read_metrics(file, table)} == {
        "bleu": [0.5, 0.25, -0.1],
        "ROUGE L": [1.0, 2.0, 3.0],
    }
    rows = proctor.audit(file, tmp_path / "ratings.csv", draws=0).rows
    assert {row["metric"] for row in rows} == {"bleu", "ROUGE L"}
    for name in ("bleu", "ROUGE L"):  # each as it is in a table of its own
        read = {key: one.scores[key] for one in read_metrics(file, table) if one.name == name for key in keys}
        own = tmp_path / f"{name}.csv"
        own.write_text("item,system,value\n" + "".join(f"{key[0]},s,{read[key]}\n" for key in keys), encoding="utf-8")
        assert [row for row in rows if row["metric"] == name] == proctor.audit(
            own, tmp_path / "ratings.csv", draws=0
        ).rows


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "item,system,bleu,note\nq1,s,1,good\nq2,s,1,\nq3,s,1,\n",
            "row 2, column 'note': found 'good', expected a finite number",
        ),
        (
            "item,system,bleu,chrf\nq1,s,1,\nq2,s,1,\nq3,s,1,\n",
            "row 2, column 'chrf': found '', expected a finite number",
        ),
        (
            "item,system,value,bleu,note\nq1,s,1,2,x\n",
            "found 'value' beside numbers in 'bleu', expected 'value' alone, or one column for each metric without it",
        ),
        (
            "item,system,group\nq1,s,g\n",
            "found 0 columns of scores, expected 'value', or one column for each metric (at most 50)",
        ),
        (
            f"item,system,{','.join(f'm{number}' for number in range(51))}\nq1,s{',1' * 51}\n",
            "found 51 columns of scores, expected 'value', or one column for each metric (at most 50)",
        ),
        ("item,system,bleu\nq1,s,1\nq2,s,1\n", "found no score of q3, s, quality, expected one of every rated answer"),
    ],
)
def test_a_table_that_may_be_meant_either_way_is_refused(content: str, said: str, tmp_path: Path) -> None:
    ratings, file = rated_table(tmp_path), tmp_path / "mine.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_metrics(file, read_ratings(ratings))
    assert str(caught.value) == f"{file}: {said}"


def test_text_beside_value_is_passed_over_and_a_name_is_for_one_metric(tmp_path: Path) -> None:
    ratings, file = rated_table(tmp_path), tmp_path / "mine.csv"
    file.write_text("item,system,value,note\nq1,s,1,a\nq2,s,2,b\nq3,s,3,4\n", encoding="utf-8")
    (one,) = read_metrics(file, read_ratings(ratings))
    assert one == read_scores(file, read_ratings(ratings))
    assert one.name == "mine"
    file.write_text("item,system,a,b\nq1,s,1,1\nq2,s,2,1\nq3,s,3,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="mine: found 2 metrics, expected one of each name, or a list of tables"):
        proctor.audit({"mine": file}, ratings, draws=0)


def test_a_dimension_that_is_better_low_is_named_in_the_table(tmp_path: Path) -> None:
    """What a metric gives too much of on it is to the answer's disadvantage: signs of its bias are turned."""
    ratings, scores = tmp_path / "ratings.csv", tmp_path / "mine.csv"
    head = "item,candidate,system,dimension,rater,value,lower_is_better\n"
    rows = [f"q{k},text,s{k % 2},errors,r,{k % 3},%s\n" for k in range(12)]
    scores.write_text(
        "item,system,dimension,value\n" + "".join(f"q{k},s{k % 2},errors,{k % 3 + k % 2}\n" for k in range(12)),
        encoding="utf-8",
    )
    found = {}
    for said, lower in (("yes", True), ("no", False)):
        ratings.write_text(head + "".join(row % said for row in rows), encoding="utf-8")
        table = read_ratings(ratings)
        assert table.lower_is_better == (frozenset({"errors"}) if lower else frozenset())
        bias = AuditReport(table, [read_scores(scores, table)], FEW).profiles[0].bias
        found[said] = next(one.residual.value for one in bias if one.value == "s1")
    assert found["yes"] == pytest.approx(-(found["no"] or 0))
    assert (found["no"] or 0) > 0.5
    for cells, message in (
        (["yes", "no"], "row 3, column 'lower_is_better': found another direction, expected that of row 2"),
        (["maybe"], "row 2, column 'lower_is_better': found 'maybe', expected yes or no"),
    ):
        ratings.write_text(head + "".join(rows[k] % cell for k, cell in enumerate(cells)), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_ratings(ratings)


def test_a_table_checks_what_it_is_given() -> None:
    good = Rating("q", "x", "s", "d", "r", 1.0)
    bad: dict[str, Callable[[], RatingsTable]] = {
        "rating 2 (q, s, d): found a second rating by r, expected one of each rater": lambda: RatingsTable(
            (good, good)
        ),
        "rating 1 (q, s, d): found nan, expected a finite number": lambda: RatingsTable(
            (Rating("q", "x", "s", "d", "r", float("nan")),)
        ),
        "rating 2 (q, s, e): found another candidate, expected one text of each system": lambda: RatingsTable(
            (good, Rating("q", "y", "s", "e", "r", 1.0))
        ),
    }
    for said, make in bad.items():
        with pytest.raises(InputError) as caught:
            make()
        assert str(caught.value) == said
