"""The parts of the item audit against arithmetic by hand and other implementations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from proctor.audits.items.assignment import answered_together
from proctor.audits.items.audit import find_recurrences
from proctor.audits.items.baselines import (
    chosen_for_folds,
    cross_fit,
    fold_of_groups,
    own_fold,
    random_baseline,
    rule_baselines,
)
from proctor.audits.items.classifiers import boosting, by_features, logistic
from proctor.audits.items.options import (
    FEATURES,
    OptionTable,
    audit_options,
    difference_p,
    p_above_chance,
    right_options,
    words,
)
from proctor.core import Item, Reference
from proctor.core.formats import ChoiceFormat, FreeTextFormat


def choice(
    name: str, options: Sequence[str], key: str = "A", *, group: str = "v1", question: str = "What is done?"
) -> Item:
    return Item(
        id=name,
        group=group,
        question=question,
        answer=ChoiceFormat(),
        options=tuple(options),
        reference=Reference(answer=key),
    )


def feature(items: Sequence[Item], name: str, row: int = 0) -> list[float]:
    index = [one.name for one in FEATURES].index(name)
    table = OptionTable(items, 0)
    return [float(value) for value in table.values[row, : len(items[row].options), index]]


def test_features_by_hand() -> None:
    item = choice(
        "q1",
        ["Slide the probe", "It may be gain, possibly", "Never 3.5 MHz, not 2", "the probe"],
        question="Why slide the probe?",
    )
    assert feature([item], "length") == [15, 24, 20, 9]
    assert feature([item], "question-words") == [1.0, 0.0, 0.0, 1.0]
    assert feature([item], "own-words") == [pytest.approx(1 / 3), 1.0, 1.0, 0.0]
    assert feature([item], "hedges") == [0, 2, 0, 0]
    assert feature([item], "absolutes") == [0, 0, 1, 0]
    assert feature([item], "negations") == [0, 0, 1, 0]
    assert feature([item], "numbers") == [0, 0, 2, 0]
    assert feature([item], "punctuation") == [0, 1, 2, 0]
    assert feature([item], "capitals")[2] == pytest.approx(3 / 20)
    assert feature([item], "word-length")[0] == pytest.approx(13 / 3)
    lengths = np.array([15, 24, 20, 9])
    expected = np.abs(lengths - lengths.mean()) / lengths.std()
    assert feature([item], "length-outlier") == pytest.approx(list(expected))


def test_similarity_is_between_none_and_all() -> None:
    item = choice("q1", ["left kidney", "left kidney", "aorta"], question="Where is the left kidney?")
    near = feature([item], "question-similarity")
    assert near[0] == near[1] > near[2] == 0.0
    assert feature([item], "typicality") == [0.5, 0.5, 0.0]  # the same as one of two others


def test_what_recurs_in_the_group_is_counted_and_in_others_is_not() -> None:
    items = [
        choice("q1", ["a large clip", "bag"], group="v1"),
        choice("q2", ["A large clip.", "needle"], group="v1"),
        choice("q3", ["x", "y"], group="v1", question="After a large clip, what is done with the bag?"),
        choice("q4", ["a large clip", "bag"], group="v2"),
    ]
    assert feature(items, "repeats") == [1, 0]
    assert feature(items, "in-questions") == [1, 0]  # one word alone recurs by nature
    assert feature(items, "repeats", 3) == [0, 0]
    found = {repeat.item_id: repeat for repeat in find_recurrences(items)}
    assert set(found) == {"q1", "q2"}
    assert (found["q1"].as_right, found["q1"].as_wrong, found["q1"].in_question) == (1, 0, 1)


def test_repeats_reach_across_formats() -> None:
    items = [
        choice("q1", ["caudal sweep", "fan"], "B", group="v1"),
        Item(
            id="q2",
            group="v1",
            question="What follows the first view?",
            answer=FreeTextFormat(),
            reference=Reference(answer="A caudal sweep"),
        ),
        choice("q3", ["a caudal sweep", "rock"], "B", group="v1"),
    ]
    (repeat,) = find_recurrences(items)
    assert (repeat.item_id, repeat.as_right, repeat.as_wrong, repeat.in_question) == ("q2", 0, 1, 0)


def test_options_without_a_word_do_not_trip_it() -> None:
    items = [choice(f"q{n}", ["+", "-", "", "?"], group=f"v{n}", question="?") for n in range(6)]
    table = OptionTable(items, 0)
    assert np.isfinite(table.values).all()
    assert np.isfinite(table.relative).all()
    assert table.words.shape[0] == 24
    assert words("Gain, 3.5 MHz!") == ["gain", "3", "5", "mhz"]


def test_rules_pick_what_their_names_say() -> None:
    items = [choice(f"q{n}", ["aaaa", "a", "aaa", "aa"]) for n in range(4)]
    table = OptionTable(items, 0)
    right = np.eye(4, dtype=bool)  # item n has its key at position n
    hits = {baseline.name: list(baseline.hits[:, 0]) for baseline in rule_baselines(table, right, 1)}
    picks = {name: found.index(True) for name, found in hits.items() if sum(found) == 1}
    assert picks["longest-option"] == 0
    assert picks["shortest-option"] == 1
    assert picks["second-longest"] == 2
    assert picks["second-shortest"] == 3
    assert [picks[f"always-{letter}"] for letter in "ABCD"] == [0, 1, 2, 3]


def test_a_rule_that_decides_nothing_is_a_lot() -> None:
    items = [choice(f"q{n}", ["aa", "bb", "cc", "dd"]) for n in range(800)]
    table = OptionTable(items, 0)
    right = np.zeros((800, 4), dtype=bool)
    right[:, 0] = True
    shortest = next(one for one in rule_baselines(table, right, 1) if one.name == "shortest-option")
    assert shortest.hits.mean() == pytest.approx(0.25, abs=0.06)  # 4 standard deviations
    backwards = OptionTable(items[::-1], 0)
    other = next(one for one in rule_baselines(backwards, right, 1) if one.name == "shortest-option")
    assert (other.hits[::-1] == shortest.hits).all()


def test_ranks_and_positions_by_hand() -> None:
    items = [choice("q1", ["aaa", "a"], "B"), choice("q2", ["a", "aaa"], "B"), choice("q3", ["aa", "aa"], "A")]
    table = OptionTable(items, 0)
    found = audit_options(table, right_options(table), draws=50, seed=0)
    assert (found.strictly_shortest, found.strictly_longest) == (1, 1)
    assert found.key_positions[0].counts == (1, 2)
    assert found.key_positions[0].test == "simulated chi-square"
    assert found.key_positions[0].p == 1.0  # of three items, one side always has two or more
    length = found.contrasts[0]
    assert (length.right, length.wrong) == (2.0, 2.0)


def test_the_chi_square_is_scipys() -> None:
    keys = "A" * 30 + "B" * 20 + "C" * 10
    table = OptionTable([choice(f"q{n}", ["a", "b", "c"], key) for n, key in enumerate(keys)], 0)
    histogram = audit_options(table, right_options(table), draws=50, seed=0).key_positions[0]
    assert histogram.p == pytest.approx(float(scipy_stats.chisquare([30, 20, 10]).pvalue))
    assert histogram.test == "chi-square"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.2, 0.25, 0.5]), min_size=1, max_size=8))
def test_the_exact_tail_is_that_of_all_outcomes(chances: list[float]) -> None:
    chance = np.array(chances)
    one_group = np.zeros(len(chances), dtype=np.int64)
    for count in range(len(chances) + 1):
        hits = np.arange(len(chances))[None, :] < count
        expected = sum(
            float(np.prod(np.where(outcome, chance, 1 - chance)))
            for outcome in itertools.product([False, True], repeat=len(chances))
            if sum(outcome) >= count
        )
        assert p_above_chance(hits, chance, one_group)[0] == pytest.approx(min(1.0, expected))


def test_the_t_test_is_scipys_on_group_sums() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 9, size=60)
    hits = np.repeat(rng.random(9) < 0.5, 1)[groups][None, :]  # alike within groups: the exact tail hopes too much
    chance = np.full(60, 0.25)
    sums = np.bincount(groups, hits[0] - chance)
    expected = scipy_stats.ttest_1samp(sums, 0, alternative="greater").pvalue
    assert p_above_chance(hits, chance, groups)[0] == pytest.approx(float(expected))
    differences = rng.normal(0.3, 1, size=60)
    two_sided = scipy_stats.ttest_1samp(np.bincount(groups, differences), 0).pvalue
    assert difference_p(differences, groups) == pytest.approx(float(two_sided))


def test_p_values_at_the_edges() -> None:
    hits = np.ones((1, 4), dtype=bool)
    chance = np.full(4, 0.25)
    assert p_above_chance(hits, chance, np.arange(4))[0] == pytest.approx(0.25**4)  # no spread: the exact tail
    assert p_above_chance(hits[:, :0], chance[:0], np.zeros(0, dtype=np.int64))[0] == 1.0
    assert difference_p(np.ones(3), np.zeros(3, dtype=np.int64)) is None
    assert difference_p(np.zeros(3), np.arange(3)) == 1.0


def test_p_of_a_useless_guesser_in_alike_groups_is_seldom_small() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 5)
    hits = np.repeat(rng.random((2000, 40)) < 0.25, 5, axis=1)  # all items of a group right, or none
    p = p_above_chance(hits, np.full(200, 0.25), groups)
    assert np.mean(p < 0.05) <= 0.065  # 5 % and 3 standard deviations


def test_groups_stay_whole_and_folds_even() -> None:
    groups = [f"v{number % 17}" for number in range(100)]
    fold = fold_of_groups(groups, 0)
    assert all(len({int(fold[row]) for row in range(100) if groups[row] == name}) == 1 for name in set(groups))
    assert np.ptp(np.bincount(fold, minlength=5)) <= 6
    assert (fold_of_groups(groups[::-1], 0)[::-1] == fold).all()
    assert fold_of_groups(["v1", "v2"], 0).max() == 1


def test_no_fit_sees_the_folds_that_it_is_judged_on() -> None:
    fold = np.array([0, 0, 1, 1, 2, 2, 3])
    seen: list[tuple[set[int], set[int]]] = []

    def guess(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        seen.append((set(fold[train].tolist()), set(fold[test].tolist())))
        return np.asarray(test == 3)

    hits = cross_fit(guess, fold)
    assert all(not (trained & tried) for trained, tried in seen)
    assert len(seen) == 10
    assert hits[3].all()
    assert hits.sum() == 4
    assert own_fold(hits, fold).tolist() == [row == 3 for row in range(7)]
    with pytest.raises(ValueError, match="cross-fitting takes at least 3 folds, not 2"):
        cross_fit(guess, np.array([0, 1]))


def test_selection_looks_at_the_other_folds_alone() -> None:
    """A baseline that is right only in the fold it is tried on must not be selected for it."""
    fold = np.repeat(np.arange(4), 25)
    lot = np.zeros((100, 4), dtype=bool)
    lucky = np.repeat((fold == 0)[:, None], 4, axis=1)
    steady = np.repeat((np.arange(100) % 5 > 0)[:, None], 4, axis=1)  # 80 % everywhere
    chance = np.full(100, 0.25)
    chosen = chosen_for_folds(np.stack([lot, lucky]), fold, np.arange(100), chance)
    assert chosen[0] == 0
    chosen = chosen_for_folds(np.stack([lot, lucky, steady]), fold, np.arange(100), chance)
    assert chosen.tolist() == [2, 2, 2, 2]


def test_the_lot_hits_as_often_as_expected_in_every_fold() -> None:
    items = [choice(f"q{n}", ["a", "b", "c", "d"]) for n in range(100)]
    fold = np.repeat(np.arange(5), 20)
    chance = np.full(100, 0.25)
    lots = random_baseline(items, chance, fold, 0).hits[:, 0]
    assert np.bincount(fold, lots).tolist() == [5, 5, 5, 5, 5]
    shares = np.mean([random_baseline(items, chance, fold, seed).hits[:, 0] for seed in range(400)], axis=0)
    assert np.abs(shares - 0.25).max() < 0.1  # 4.6 standard deviations, for each of 100 items
    assert (random_baseline(items[::-1], chance, fold[::-1], 0).hits[::-1, 0] == lots).all()


def test_without_a_chance_level_the_most_hits_win() -> None:
    fold = np.repeat(np.arange(4), 5)
    usual = np.repeat((np.arange(20) % 4 == 0)[:, None], 4, axis=1)
    nearest = np.repeat((np.arange(20) % 3 == 0)[:, None], 4, axis=1)
    chosen = chosen_for_folds(np.stack([usual, nearest]), fold, np.arange(20), None)
    assert chosen.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(3))
def test_features_that_never_vary_change_no_fit(seed: int) -> None:
    """Fits that leave them out answer as those of all features."""
    rng = np.random.default_rng(seed)
    texts = ["the probe", "the clip of the duct", "never the gain", "may be 3 of it", "not all, slide"]
    items = [
        choice(f"q{number}", rng.permutation(texts)[:4].tolist(), "ABCD"[rng.integers(4)], group=f"v{number % 12}")
        for number in range(120)
    ]
    table = OptionTable(items, 0)
    right = right_options(table)
    seen, asked = table.options_of(np.arange(80)), table.options_of(np.arange(80, 120))
    known = table.relative[seen]
    varied = known.min(axis=0) < known.max(axis=0)
    assert 0 < varied.sum() < len(varied)
    for make in (logistic, lambda: boosting(0)):
        scores = np.zeros(table.present.shape)
        scores[asked] = make().fit(known, right[seen]).decision_function(table.relative[asked]).round(9)
        found = by_features(table, right, make)(np.arange(80), np.arange(80, 120))
        assert (table.hits(found, right) == table.hits(scores, right))[80:].all()


def test_seeing_all_questions_at_once_gains_what_the_closed_form_says() -> None:
    """Pairs of questions with the same two options. A system whose right option scores μ higher (noise of variance 1 in
    each score) is right alone with Φ(μ / √2), and with both at once with Φ(μ): 0.6 becomes Φ(√2 · Φ⁻¹(0.6)) = 0.640."""
    items = [
        Item(
            id=f"q{number}",
            group=f"g{number}",
            question="Which?",
            options=(f"first {number // 2}", f"second {number // 2}"),
            answer=ChoiceFormat(),
            reference=Reference(answer="AB"[number % 2]),
        )
        for number in range(200)
    ]
    table = OptionTable(items, 0)
    found = answered_together(table, right_options(table), seed=0)
    assert found is not None
    assert found.alone == pytest.approx(0.6, abs=1e-3)
    expected = NormalDist().cdf(2**0.5 * NormalDist().inv_cdf(0.6))
    assert found.together == pytest.approx(expected, abs=0.01)
