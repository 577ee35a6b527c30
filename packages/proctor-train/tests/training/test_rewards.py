"""Rewards: arithmetic by hand, a slow independent implementation, and what a group of equals is worth."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import InputError, generator
from proctor_train.grpo import RewardKind, SampledReply, Target, rewards, share_without_signal

ONE = {"overall": (0.0, 1.0)}
NOTHING = SampledReply(None, False)


def said(value: float, *, formed: bool = True) -> SampledReply:
    return SampledReply({"overall": value}, formed)


def of(cluster: str, *ratings: float) -> Target:
    return Target(cluster, {"overall": ratings})


def test_the_graded_reward_by_hand() -> None:
    targets = [of("e1", 1.0), of("e1", 1.0), of("e2", 0.5), of("e3", 0.0)]
    replies = [said(1.0), said(0.5), said(0.5, formed=False), NOTHING]
    # reply 1: distance 0; above e2's 0.5 as the ratings are: 1            -> 0.5 + 0.4 + 0.1
    # reply 2: distance 0.5; ties with e2's 0.5, where the ratings do not: 0.5 -> 0.25 + 0.2 + 0.1
    # reply 3: distance 0; below reply 1 (1), ties with reply 2 (0.5): 0.75    -> 0.5 + 0.3
    # reply 4 has no values: 0, and is in nobody's pairs
    assert rewards("graded", replies, targets, ONE) == pytest.approx([1.0, 0.55, 0.8, 0.0])


def test_the_published_reward_by_hand() -> None:
    targets = [of("e1", 1.0), of("e1", 0.5, 1.0), of("e2", 0.5), of("e2", 0.5)]
    replies = [said(1.0), said(1.0, formed=False), said(0.0), NOTHING]
    assert rewards("exact", replies, targets, ONE) == pytest.approx([1.1, 0.5, 0.1, 0.0])


def test_dimensions_are_weighted_alike_and_each_by_its_own_range() -> None:
    ranges = {"overall": (0.0, 1.0), "flag": (0.0, 4.0)}
    target = Target("e1", {"overall": (1.0,), "flag": (0.0,)})
    reply = SampledReply({"overall": 0.5, "flag": 1.0}, True)
    # (0.5 + 0.75) / 2 of 0.5, nobody to be compared with: 0.5 of 0.4, form
    assert rewards("graded", [reply], [target], ranges) == pytest.approx([0.3125 + 0.2 + 0.1])


def test_raters_who_differ_widen_the_target() -> None:
    """Two clinicians at 0 and 0.5: both are right, the order is that of 0.25."""
    split, low, middle = of("e1", 0.0, 0.5), of("e2", 0.0), of("e3", 0.5)
    alone = [rewards("graded", [said(value)], [split], ONE)[0] for value in (0.0, 0.25, 0.5, 1.0)]
    assert alone == pytest.approx([0.8, 0.8, 0.8, 0.55])
    between = rewards("graded", [said(0.25), said(0.0), said(0.5)], [split, low, middle], ONE)
    assert between == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize(("value", "expected"), [(0.75, 1.0), (0.5, 0.5), (0.25, 0.0)])
def test_order_is_that_of_another_encounter(value: float, expected: float) -> None:
    replies, targets = [said(value), said(0.5)], [of("e1", 1.0), of("e2", 0.0)]
    graded = 0.5 * value
    assert rewards("graded", replies, targets, ONE)[0] == pytest.approx(graded + 0.4 * expected + 0.1)
    same_encounter = rewards("graded", replies, [of("e1", 1.0), of("e1", 0.0)], ONE)[0]
    assert same_encounter == pytest.approx(graded + 0.4 * 0.5 + 0.1)


def test_ties_that_the_ratings_have_are_right() -> None:
    replies, targets = [said(1.0), said(1.0)], [of("e1", 1.0), of("e2", 1.0)]
    assert rewards("graded", replies, targets, ONE) == pytest.approx([1.0, 1.0])


def test_a_near_miss_tells_a_group_more_than_exact_match_does() -> None:
    """Eight replies, none of them right: as published all earn the same, graded they do not."""
    targets = [of("e1", 1.0)] * 4 + [of("e2", 0.5)] * 4
    replies = [said(0.0), said(0.5), said(0.0), said(0.5), said(0.0), said(1.0), said(0.0), said(1.0)]
    shares = {kind: share_without_signal(rewards(kind, replies, targets, ONE), 4) for kind in KINDS}
    assert shares == {"exact": 1.0, "graded": 0.0}


KINDS: tuple[RewardKind, ...] = ("exact", "graded")
LEVELS = st.sampled_from([0.0, 0.5, 1.0])


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), LEVELS, st.lists(LEVELS, min_size=1, max_size=2), st.booleans(), st.booleans()
        ),
        min_size=1,
        max_size=12,
    )
)
def test_graded_rewards_agree_with_a_slow_implementation(
    rows: list[tuple[str, float, list[float], bool, bool]],
) -> None:
    replies = [said(value, formed=formed) if read else NOTHING for _, value, _, formed, read in rows]
    targets = [of(cluster, *ratings) for cluster, _, ratings, _, _ in rows]
    slow = []
    for cluster, value, ratings, formed, read in rows:
        pairs = []
        for other, theirs, other_ratings, _, other_read in rows:
            if other == cluster or not other_read:
                continue
            mean, other_mean = sum(ratings) / len(ratings), sum(other_ratings) / len(other_ratings)
            signs = (value > theirs) - (value < theirs), (mean > other_mean) - (mean < other_mean)
            pairs.append({0: 1.0, 1: 0.5, 2: 0.0}[abs(signs[0] - signs[1])])
        order = sum(pairs) / len(pairs) if pairs else 0.5
        off = max(min(ratings) - value, value - max(ratings), 0)
        slow.append((0.5 * (1 - off) + 0.4 * order + 0.1 * formed) if read else 0.0)
    found = rewards("graded", replies, targets, ONE)
    assert found == pytest.approx(slow)
    assert all(0 <= one <= 1 for one in found)


def test_order_of_rows_changes_nothing() -> None:
    draw = generator(0, "rewards")
    rows = [
        (said(float(draw.choice([0, 0.5, 1]))), of(f"e{k // 4}", float(draw.choice([0, 0.5, 1])))) for k in range(16)
    ]
    before = rewards("graded", [one[0] for one in rows], [one[1] for one in rows], ONE)
    order = [int(one) for one in draw.permutation(16)]
    after = rewards("graded", [rows[k][0] for k in order], [rows[k][1] for k in order], ONE)
    assert after == pytest.approx([before[k] for k in order])


@pytest.mark.parametrize("kind", KINDS)
def test_telling_the_rating_is_the_best_reply(kind: RewardKind) -> None:
    targets = [of("e1", 0.0), of("e2", 0.5), of("e3", 1.0)]
    totals = {
        values: sum(rewards(kind, [said(one) for one in values], targets, ONE))
        for values in product((0.0, 0.5, 1.0), repeat=3)
    }
    best = max(totals, key=lambda values: totals[values])
    assert best == (0.0, 0.5, 1.0)
    assert sorted(totals.values())[-2] < totals[best]


def test_what_is_out_of_range_is_no_reward() -> None:
    expected = r"^reward: reply 1, overall: found 2, expected 0 to 1$"
    with pytest.raises(InputError, match=expected):
        rewards("graded", [said(2.0)], [of("e1", 1.0)], ONE)
    with pytest.raises(InputError, match=r"^reward: reply 1, overall: found nothing, expected 0 to 1$"):
        rewards("exact", [SampledReply({}, True)], [of("e1", 1.0)], ONE)
    with pytest.raises(ValueError, match="no valid form"):
        SampledReply(None, True)
