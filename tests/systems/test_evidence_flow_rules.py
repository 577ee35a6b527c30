"""Rules that evidence gives, by hand; and the corrected order against all orders."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core import generator
from proctor.tasks.clinicalskillqa.methods.evidence_flow import (
    Constraint,
    Evidence,
    FrameEvidence,
    FrameReply,
    PairEvidence,
    PairReply,
    constraints,
    correct,
)
from proctor.tasks.clinicalskillqa.methods.workflow import built_in
from tests.support.key_frame_model import STEPS

CPR = built_in("cpr")


def note(step: str | None, *, certain: bool = True, true: tuple[str, ...] = (), false: tuple[str, ...] = ()) -> Any:
    return FrameEvidence("", step, certain and step is not None, true, false)


def rules(frames: dict[str, FrameEvidence], pairs: tuple[PairEvidence, ...] = ()) -> list[tuple[str, str, str]]:
    found = constraints(Evidence(workflow=CPR, frames=frames, pairs=pairs))
    return [(one.earlier, one.later, one.kind) for one in found]


def test_which_rules_the_evidence_gives() -> None:
    assert rules({"A": note("compress"), "B": note("call_help")}) == [("B", "A", "step")]
    assert rules({"A": note("compress"), "B": note("ventilate")}) == []  # they take turns
    assert rules({"A": note("compress"), "B": note("call_help", certain=False)}) == []
    assert rules({"A": note(None), "B": note("call_help")}) == []
    # The chest is bare in A and not yet in B, which shows a step before it is covered again.
    bare, dressed = note(None, true=("chest_bare",)), note("call_help", false=("chest_bare",))
    assert rules({"A": bare, "B": dressed}) == [("B", "A", "lasting")]
    # Not in B, and nobody knows whether it is covered again there.
    assert rules({"A": bare, "B": note(None, false=("chest_bare",))}) == []
    assert rules({"A": bare, "B": note("aftercare", false=("chest_bare",))}) == []
    # What is merely not seen is not denied.
    assert rules({"A": bare, "B": note("call_help")}) == []


def test_pairs_give_rules_where_they_are_certain() -> None:
    sure = PairEvidence.of("A", "B", PairReply(change="x", earlier="picture b", certain=True))
    assert (sure.earlier, sure.later) == ("B", "A")
    assert rules({}, (sure,)) == [("B", "A", "pair")]
    for reply in (
        PairReply(change="x", earlier="B"),
        PairReply(change="x", earlier="C", certain=True),
        PairReply(change="x", earlier="unclear", certain=True),
    ):
        assert rules({}, (PairEvidence.of("A", "B", reply),)) == []


def test_names_that_the_workflow_does_not_know_are_left_out() -> None:
    reply = FrameReply(
        step="Check Response",
        certain=True,
        true_facts=["Chest bare", "sunshine", "hands_on_chest"],
        false_facts=["hands_on_chest"],
    )
    found = FrameEvidence.of(reply, CPR)
    assert (found.step, found.certain, found.true_facts, found.false_facts) == (
        "check_response",
        True,
        ("chest_bare",),
        (),
    )
    assert FrameEvidence.of(FrameReply(step="dance", certain=True), CPR).certain is False


def test_contradictions_stay_and_are_told() -> None:
    a, b = Constraint("A", "B", "pair", "one way"), Constraint("B", "A", "step", "the other")
    found = correct(["B", "A", "C"], [a, b])
    assert (found.order, found.violated, found.broken, found.moved) == (("B", "A", "C"), (a,), (a,), ())
    twice = correct(["B", "A", "C"], [a, b, Constraint("A", "B", "lasting", "and again")])
    assert twice.order == ("A", "B", "C")
    assert twice.to_json(["B", "A", "C"])["given_up"] == [asdict(b)]
    assert correct(["B", "A"], [Constraint("A", "Z", "pair", "")]).order == ("B", "A")


def test_too_many_frames_stay_as_they_are_and_say_so() -> None:
    labels = [chr(65 + k) for k in range(15)]
    rule = Constraint("B", "A", "pair", "")
    found = correct(labels, [rule])
    assert (list(found.order), found.broken, found.because) == (labels, (rule,), "more than 14 frames")


@settings(max_examples=40, deadline=None)
@given(
    st.permutations(list("ABCDE")), st.lists(st.tuples(st.sampled_from("ABCDE"), st.sampled_from("ABCDE")), max_size=9)
)
def test_the_corrected_order_breaks_the_least_and_is_the_nearest(
    order: list[str], pairs: list[tuple[str, str]]
) -> None:
    known = [Constraint(a, b, "pair", "") for a, b in dict.fromkeys(pairs) if a != b]

    def cost(one: tuple[str, ...]) -> tuple[int, int]:
        place = {label: number for number, label in enumerate(one)}
        broken = sum(place[rule.earlier] > place[rule.later] for rule in known)
        return broken, sum(place[a] > place[b] for k, a in enumerate(order) for b in order[k + 1 :])

    found = correct(order, known)
    assert cost(found.order) == min(cost(one) for one in permutations("ABCDE"))
    assert len(found.broken) == cost(found.order)[0]
    assert len(found.moved) == cost(found.order)[1]


def simulated(wrong: float, trials: int = 250) -> tuple[float, float]:
    """The share of right orders, the model's own and the corrected: six frames, of three draws each exchanges two
    neighbours with probability 0.3, and 60 % of the evidence is called certain, of which the share `wrong` is wrong."""
    draw = generator(0, "noise", str(wrong))
    own_right = corrected_right = 0
    for _ in range(trials):
        truth = [str(label) for label in draw.permutation(list("ABCDEF"))]
        own = truth[:]
        for _ in range(int(draw.binomial(3, 0.3))):
            at = int(draw.integers(5))
            own[at], own[at + 1] = own[at + 1], own[at]
        frames = {}
        for place, label in enumerate(truth):
            step = STEPS[place] if draw.random() >= wrong else STEPS[int(draw.integers(6))]
            frames[label] = note(step, certain=bool(draw.random() < 0.6))
        pairs = [
            PairEvidence(a, b, "", b if draw.random() < wrong else a, bool(draw.random() < 0.6))
            for a, b in combinations(truth, 2)
        ]
        found = correct(own, constraints(Evidence(workflow=CPR, frames=frames, pairs=tuple(pairs))))
        own_right += own == truth
        corrected_right += list(found.order) == truth
    return own_right / trials, corrected_right / trials


@pytest.mark.parametrize(("wrong", "helps"), [(0.0, True), (0.1, True), (0.3, False)])
def test_rules_help_as_long_as_what_is_called_certain_mostly_is_so(wrong: float, helps: bool) -> None:
    """The documentation says so with these figures."""
    own, corrected = simulated(wrong)
    assert (corrected > own + 0.05) == helps
    assert helps or corrected < own - 0.1
