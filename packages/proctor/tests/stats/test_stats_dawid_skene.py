"""The latent class model of annotators: the published example, a second implementation, hand-made numbers,
simulation."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from proctor.core import InputError
from proctor.stats import Floats, LabelVotes, LatentLabels, Resampling, copying, dawid_skene, entropy
from tests.support.simulation import assert_share, repetitions

ANAESTHETISTS = [
    "1111111",
    "3334334",
    "1122122",
    "2223121",
    "2223222",
    "2223322",
    "1222111",
    "3333433",
    "2222223",
    "2322223",
    "4444444",
    "2223343",
    "1111111",
    "2223212",
    "1211111",
    "1112111",
    "1111111",
    "1111111",
    "2222221",
    "2221322",
    "2222222",
    "2222221",
    "2223222",
    "2212222",
    "1111111",
    "1111111",
    "2322222",
    "1111111",
    "1111111",
    "1121121",
    "1111111",
    "3333233",
    "1111111",
    "2222222",
    "2223232",
    "4334343",
    "2212232",
    "2323233",
    "3333432",
    "1111111",
    "1111111",
    "1212111",
    "2322222",
    "1211111",
    "2222222",
]
"""Table 1 of Dawid and Skene (1979): 45 patients, fitness for anaesthesia from 1 to 4; the first three digits are the
first anaesthetist's, who judged three times, the others those of anaesthetists 2 to 5."""

OBSERVERS = (1, 1, 1, 2, 3, 4, 5)

PUBLISHED_PRIOR = [0.40, 0.42, 0.11, 0.07]
PUBLISHED_ERRORS = {  # Table 4: rows are the true class, columns the class said
    1: [[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44]],
    2: [[0.83, 0.17, 0, 0], [0.05, 0.63, 0.31, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    3: [[1, 0, 0, 0], [0.11, 0.79, 0.11, 0], [0, 0.40, 0.20, 0.40], [0, 0, 0.67, 0.33]],
    4: [[0.94, 0.06, 0, 0], [0.05, 0.84, 0.10, 0], [0, 0, 0.80, 0.20], [0, 0, 0.33, 0.67]],
    5: [[1, 0, 0, 0], [0.16, 0.73, 0.11, 0], [0, 0.21, 0.79, 0], [0, 0, 0.33, 0.67]],
}


def anaesthetists() -> LabelVotes:
    rows = [
        (patient, observer, int(digit))
        for patient, said in enumerate(ANAESTHETISTS, start=1)
        for observer, digit in zip(OBSERVERS, said, strict=True)
    ]
    items, observers, labels = (list(column) for column in zip(*rows, strict=True))
    return LabelVotes(items, observers, labels, [""] * len(rows), [str(one) for one in items])


def test_the_published_example() -> None:
    found = dawid_skene(anaesthetists(), [1, 2, 3, 4], smoothing=0, plan=None)
    assert found.converged
    assert found.prior[0] == pytest.approx(PUBLISHED_PRIOR, abs=0.005)
    for observer, matrix in zip(found.annotators, found.confusion, strict=True):
        assert matrix == pytest.approx(np.array(PUBLISHED_ERRORS[int(str(observer))]), abs=0.0061)
    classes = found.posterior.argmax(axis=1) + 1
    unsure = {7: (1, 0.98), 35: (2, 0.95), 38: (3, 0.98)}  # the paper prints 1.00 for all others but patient 30
    for patient, (level, probability) in unsure.items():
        assert classes[patient - 1] == level
        assert found.posterior[patient - 1, level - 1] == pytest.approx(probability, abs=0.005)
    others = [k for k in range(45) if k + 1 not in unsure]
    assert found.posterior[others].max(axis=1).min() > 0.995
    assert [int(classes[k - 1]) for k in (2, 3, 11, 12, 36)] == [4, 2, 4, 3, 4]


def plainly(votes: LabelVotes, levels: list[int], smoothing: float, rounds: int) -> tuple[dict[int, Floats], Floats]:
    """The same written as sums over votes, one vote at a time: posteriors by item, and the prior."""
    by_item = defaultdict(list)
    for item, annotator, label in zip(votes.items, votes.annotators, votes.labels, strict=True):
        by_item[item].append((annotator, levels.index(int(str(label)))))
    k = len(levels)
    post = {
        i: np.array([sum(said == t for _, said in some) / len(some) for t in range(k)]) for i, some in by_item.items()
    }
    prior = np.zeros(k)
    for _ in range(rounds):
        prior = (np.sum(list(post.values()), axis=0) + smoothing) / (len(post) + k * smoothing)
        said = {a: np.full((k, k), smoothing) for a in set(votes.annotators)}
        for i, some in by_item.items():
            for a, label in some:
                said[a][:, label] += post[i]
        said = {a: one / np.where(one.sum(axis=1) > 0, one.sum(axis=1), 1)[:, None] for a, one in said.items()}
        for i, some in by_item.items():
            joint = prior * np.prod([said[a][:, label] for a, label in some], axis=0)
            post[i] = joint / joint.sum()
    return {int(str(i)): one for i, one in post.items()}, prior


def drawn(
    seed: int, n: int, rights: list[tuple[float, float]], share: float = 0.3, seen: float = 1.0, groups: int = 10
) -> tuple[LabelVotes, list[int]]:
    """Votes of annotators with a sensitivity and a specificity each, on items of which a share is positive."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(int)
    rows = [
        (item, k, int(truth[item]) if rng.random() < (right[0] if truth[item] else right[1]) else 1 - int(truth[item]))
        for item in range(n)
        for k, right in enumerate(rights)
        if rng.random() < seen
    ]
    items, annotators, labels = (list(column) for column in zip(*rows, strict=True))
    return LabelVotes(items, annotators, labels, [""] * len(rows), [f"v{i % groups}" for i in items]), truth.tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_a_second_implementation_says_the_same(seed: int, smoothing: float) -> None:
    votes, _ = drawn(seed, 40, [(0.95, 0.9), (0.8, 0.95), (0.6, 0.6), (0.9, 0.85)], share=0.5, seen=0.8)
    found = dawid_skene(votes, [0, 1], smoothing=smoothing, plan=None)
    posterior, prior = plainly(votes, [0, 1], smoothing, 250)
    assert found.prior[0] == pytest.approx(prior, abs=1e-3)
    for item, row in zip(found.items, found.posterior, strict=True):
        assert row == pytest.approx(posterior[int(str(item))], abs=2e-3)


def test_a_fixed_point_by_hand() -> None:
    # five annotators agree on everything: 16 items yes, 24 no; smoothing 1. The posteriors are 0 and 1.
    items = [k for k in range(40) for _ in range(5)]
    votes = LabelVotes(items, [0, 1, 2, 3, 4] * 40, [int(k < 16) for k in items], [""] * 200, ["v"] * 200)
    found = dawid_skene(votes, [0, 1], smoothing=1, plan=None)
    assert found.posterior[:16, 1].min() > 0.999999
    assert found.prior[0] == pytest.approx([25 / 42, 17 / 42], abs=1e-5)
    assert found.confusion[0] == pytest.approx(np.array([[25 / 26, 1 / 26], [1 / 18, 17 / 18]]), abs=1e-5)
    assert found.reliability[0].value == pytest.approx(25 / 26 + 17 / 18 - 1, abs=1e-5)
    one = 16 * (np.log(17 / 42) + 5 * np.log(17 / 18)) + 24 * (np.log(25 / 42) + 5 * np.log(25 / 26))
    assert found.log_likelihood == pytest.approx(one, abs=1e-4)


def test_strata_have_priors_of_their_own_and_share_the_annotators() -> None:
    common, _ = drawn(1, 200, [(0.9, 0.9)] * 3, share=0.5)
    rare, _ = drawn(2, 200, [(0.9, 0.9)] * 3, share=0.05)
    votes = LabelVotes(
        [*common.items, *(1000 + int(str(i)) for i in rare.items)], [*common.annotators, *rare.annotators],
        [*common.labels, *rare.labels], ["common"] * 600 + ["rare"] * 600, [*common.groups, *rare.groups],
    )  # fmt: skip
    found = dawid_skene(votes, [0, 1], plan=None)
    assert found.strata == ("common", "rare")
    assert found.prior[:, 1] == pytest.approx([0.5, 0.05], abs=0.08)
    assert found.confusion[:, 1, 1] == pytest.approx(0.9, abs=0.08)


def test_neither_the_order_of_votes_nor_names_count() -> None:
    votes, _ = drawn(3, 120, [(0.9, 0.8), (0.8, 0.9), (0.7, 0.7)], seen=0.9)
    order = np.random.default_rng(0).permutation(len(votes.items))
    other = LabelVotes(*([column[k] for k in order] for column in (
        votes.items, votes.annotators, votes.labels, votes.strata, votes.groups
    )))  # fmt: skip
    one, two = (dawid_skene(some, [0, 1], plan=Resampling(draws=50)) for some in (votes, other))
    for item, row in zip(one.items, one.posterior, strict=True):
        assert row == pytest.approx(two.posterior[two.items.index(item)], abs=1e-6)
    for annotator, estimate in zip(one.annotators, one.reliability, strict=True):
        twin = two.reliability[two.annotators.index(annotator)]
        assert (estimate.value, estimate.ci_low) == pytest.approx((twin.value, twin.ci_low), abs=1e-5)


def test_lazy_and_inverted_annotators_are_seen() -> None:
    votes, truth = drawn(4, 400, [(0.9, 0.95)] * 4 + [(0.0, 1.0), (0.1, 0.1)], share=0.15, groups=16)
    found = dawid_skene(votes, [0, 1])
    good, lazy, inverted = found.reliability[:4], found.reliability[4], found.reliability[5]
    assert all(one.ci_low is not None and one.ci_low > 0.5 for one in good)
    assert lazy.ci_high is not None
    assert lazy.value == pytest.approx(0, abs=0.05)
    assert lazy.ci_high < 0.2
    assert inverted.ci_high is not None
    assert inverted.ci_high < -0.5
    assert (found.posterior.argmax(axis=1) == truth).mean() > 0.98


@pytest.mark.simulation
def test_intervals_hold_the_reliability_and_labels_beat_the_majority() -> None:
    runs = repetitions(120)
    rights = [(0.95, 0.97), (0.7, 0.9), (0.6, 0.95), (0.9, 0.7)]
    covered, better, worse = 0, 0, 0
    for seed in range(runs):
        votes, truth = drawn(1000 + seed, 240, rights, share=0.25, groups=24)
        found = dawid_skene(votes, [0, 1], plan=Resampling(draws=200))
        for estimate, (yes, no) in zip(found.reliability, rights, strict=True):
            assert estimate.ci_low is not None
            assert estimate.ci_high is not None
            covered += estimate.ci_low <= yes + no - 1 <= estimate.ci_high
        said = np.array(votes.labels, dtype=float).reshape(240, 4).mean(axis=1)
        majority = np.where(said == 0.5, 0.5, np.abs((said > 0.5) - np.array(truth)))  # a tie is half an error
        errors = (found.posterior.argmax(axis=1) != truth).sum()
        better, worse = better + int(errors < majority.sum()), worse + int(errors > majority.sum())
    assert_share(covered, 4 * runs, 0.90, 0.98)
    assert better > 3 * worse


def test_who_copies_is_found_and_who_is_good_is_not() -> None:
    votes, _ = drawn(5, 300, [(0.97, 0.98), (0.96, 0.97), (0.8, 0.9), (0.85, 0.9)], share=0.3, groups=12)
    rows = list(zip(votes.items, votes.annotators, votes.labels, votes.groups, strict=True))
    rows += [(item, "copy", label, group) for item, one, label, group in rows if one == 2]
    items, annotators, labels, groups = (list(column) for column in zip(*rows, strict=True))
    pairs = copying(LabelVotes(items, annotators, labels, [""] * len(items), groups), [0, 1])
    assert [(one, other) for one, other, _ in pairs] == [(2, "copy")]
    assert pairs[0][2].value == pytest.approx(1 - (0.3 * (0.8**2 + 0.2**2) + 0.7 * (0.9**2 + 0.1**2)), abs=0.06)
    assert pairs[0][2].ci_low is not None
    assert pairs[0][2].ci_low > 0.1


def test_entropy_in_bits() -> None:
    assert entropy(np.array([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0]])).tolist() == [2.0, 1.0]


def test_what_is_no_vote_is_refused() -> None:
    votes = LabelVotes(["a"], ["r"], ["x"], [""], ["v"])
    with pytest.raises(InputError, match="label of vote 0: found 'x', expected one of 0, 1"):
        dawid_skene(votes, [0, 1])
    with pytest.raises(InputError, match="levels: found"):
        dawid_skene(votes, ["x"])
    with pytest.raises(InputError, match="item 'a': found a second group"):
        dawid_skene(LabelVotes(["a", "a"], ["r", "s"], [0, 1], ["", ""], ["v", "w"]), [0, 1])
    with pytest.raises(InputError, match="found none"):
        dawid_skene(LabelVotes([], [], [], [], []), [0, 1])
    with pytest.raises(InputError, match="columns of"):
        LabelVotes(["a"], [], [], [], [])


def test_few_groups_have_no_interval() -> None:
    votes, _ = drawn(6, 30, [(0.9, 0.9)] * 3, groups=2)
    found: LatentLabels = dawid_skene(votes, [0, 1])
    assert all(one.ci_low is None and one.value is not None for one in found.reliability)
    assert np.isnan(found.low).all()
