"""Dealing: how many readings each item gets, how evenly work is dealt, and that draws depend on nothing but the
seed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from proctor_web.settings import StudyPlan
from proctor_web.studies import deal

NAMES = [f"reader{number}" for number in range(6)]


@st.composite
def plans(draw: st.DrawFn) -> StudyPlan:
    readers = tuple(NAMES[: draw(st.integers(1, 6))])
    return StudyPlan(
        readers=readers,
        readings=draw(st.integers(1, len(readers))),
        adjudicators=("cleo", "dora")[: draw(st.integers(0, 2))],
        overlap=draw(st.sampled_from([0.0, 0.3, 1.0])),
        seed=draw(st.integers(0, 5)),
        gold_share=draw(st.sampled_from([0.0, 0.1, 0.5])),
    )


KEYS = st.lists(st.text("abcdef", min_size=1, max_size=4), unique=True, max_size=40)


@given(plans(), KEYS, st.integers(0, 8))
def test_every_deal_keeps_to_its_plan(plan: StudyPlan, keys: list[str], gold: int) -> None:
    known = [f"gold{number}" for number in range(gold)]
    dealt = deal(plan, keys, known)
    times = Counter(key for some in dealt.readers.values() for key in some if key not in known)
    several = round(plan.overlap * len(keys))
    counts = sorted(times.values(), reverse=True)
    assert counts == sorted([plan.readings] * several + [1] * (len(keys) - several), reverse=True)
    assert all(len(set(some)) == len(some) for some in dealt.readers.values())
    loads = [sum(key not in known for key in some) for some in dealt.readers.values()]
    assert max(loads, default=0) - min(loads, default=0) <= 1
    for some, load in zip(dealt.readers.values(), loads, strict=True):
        wanted = round(load * plan.gold_share / (1 - plan.gold_share))
        assert sum(key in known for key in some) == min(gold, wanted)
    cases = [key for some in dealt.adjudicators.values() for key in some]
    assert sorted(cases) == sorted(key for key, count in times.items() if count > 1 and plan.adjudicators)


@given(plans(), KEYS, st.randoms())
def test_a_deal_depends_on_the_seed_and_not_on_the_order_of_items(
    plan: StudyPlan, keys: list[str], rng: object
) -> None:
    mixed = list(keys)
    rng.shuffle(mixed)  # type: ignore[attr-defined]
    assert deal(plan, keys, ["g1", "g2"]) == deal(plan, mixed, ["g2", "g1"])


def test_another_seed_deals_otherwise_and_readers_have_orders_of_their_own() -> None:
    keys = [f"q{number}" for number in range(30)]
    plan = StudyPlan(readers=("anna", "ben"), seed=1)
    one, other = deal(plan, keys), deal(plan.model_copy(update={"seed": 2}), keys)
    assert one.readers["anna"] != other.readers["anna"]
    assert sorted(one.readers["anna"]) == sorted(one.readers["ben"]) == sorted(keys)
    assert one.readers["anna"] != one.readers["ben"]


def test_pairs_of_readers_are_mixed() -> None:
    plan = StudyPlan(readers=tuple(NAMES[:4]), readings=2)
    dealt = deal(plan, [f"q{number}" for number in range(120)])
    together: dict[str, list[str]] = {}
    for name, some in dealt.readers.items():
        for key in some:
            together.setdefault(key, []).append(name)
    pairs = Counter(tuple(sorted(names)) for names in together.values())
    assert len(pairs) == 6
    assert min(pairs.values()) >= 8  # 20 each on average


def test_gold_items_stand_anywhere_and_come_once() -> None:
    keys, gold = [f"q{number}" for number in range(36)], [f"g{number}" for number in range(9)]
    plan = StudyPlan(readers=("anna", "ben"), gold_share=0.2)
    first = deal(plan, keys, gold).readers["anna"]
    rows = [row for row, key in enumerate(first) if key in gold]
    assert len(rows) == 9
    assert min(rows) < 12
    assert max(rows) > 32
    again = deal(plan, ["n1", "n2", "n3", "n4"], gold, known={"anna": gold[:8], "ben": gold})
    assert [key for key in again.readers["anna"] if key in gold] == ["g8"]
    assert not set(again.readers["ben"]) & set(gold)


def test_new_items_go_to_who_has_least() -> None:
    dealt = deal(StudyPlan(readers=("anna", "ben"), readings=1), ["x", "y"], load={"anna": 5, "ben": 3})
    assert {name: len(some) for name, some in dealt.readers.items()} == {"anna": 0, "ben": 2}
