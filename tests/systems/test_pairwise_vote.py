"""Votes on pairs: with a good model, a mediocre one, a biased one and a broken one; and counting by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.core import ConfigurationError, Item, Status, generator
from proctor.core.formats import OrderingFormat
from proctor.models import ModelClient, ModelSpec
from proctor.systems import build_system
from proctor.tasks.clinicalskillqa.methods.votes import Ballot, VoteTally, read_choice
from tests.support.faulty_server import Fault, FaultyServer
from tests.support.key_frame_model import Instances, KeyFrameModel, run_method, sent
from tests.support.snapshot import assert_frozen

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("samples", [1, 2])
def test_with_a_good_model_every_order_is_right(instances: Instances, samples: int) -> None:
    some = instances if samples == 1 else instances.first(6)
    with FaultyServer(KeyFrameModel(instances.places)) as server:
        answers = run_method("pairwise-vote", some, server, samples=samples)
    assert some.right(answers) == 1.0
    for item, answer in zip(some.items, answers, strict=True):
        n = int(str(item.tags["frames"]))
        calls = n * (n - 1) * samples
        assert (answer.extra["calls"], answer.usage.requests, answer.extra["images"]) == (calls, calls, 2 * calls)
        assert (answer.extra["agreement"], answer.extra["against"], answer.extra["even"]) == (1.0, 0.0, [])
        voting: Any = answer.extra["voting"]
        assert (voting["first_shown_share"], voting["decided"], voting["undecided"]) == (0.5, calls, 0)
        assert voting["pairs_decided_both_ways"] == voting["pairs_decided_alike"] == n * (n - 1) // 2
        assert f"({2 * samples} of {2 * samples} votes): picture" in str(answer.extra["rationale"])
        assert len(json.dumps(answer.extra)) < 5_000
    assert {len(request.image_bytes) for request in server.requests} == {2}


def test_pictures_go_by_numbers_and_both_ways_round(instances: Instances) -> None:
    one = instances.first(4)
    with FaultyServer(KeyFrameModel(instances.places)) as server:
        run_method("pairwise-vote", one, server, samples=1)
    shown = [sent(request).pictures for request in server.requests]
    assert {tuple(label for label, _ in pair) for pair in shown} == {("1", "2")}
    seen = [(a, b) for (_, a), (_, b) in shown]
    assert len(set(seen)) == 12
    assert {(b, a) for a, b in seen} == set(seen)


def noisy(seed: int, share: float) -> Callable[[str, str], str]:
    draw = generator(seed, "votes")
    return lambda earlier, later: later if draw.random() < share else earlier


def test_many_votes_make_good_for_a_mediocre_model(instances: Instances) -> None:
    scores = []
    for samples in (1, 6):
        with FaultyServer(KeyFrameModel(instances.places, earlier=noisy(3, 0.3))) as server:
            answers = run_method("pairwise-vote", instances, server, samples=samples)
        scores.append(instances.right(answers))
        agreements = [float(str(answer.extra["agreement"])) for answer in answers]
        assert all(0.5 <= agreement < 1 for agreement in agreements)
    assert scores[0] < 0.7 < scores[1]


def test_a_model_that_always_takes_the_first_is_found_out(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.places, earlier=lambda *_: "1")) as server:
        answer = run_method("pairwise-vote", instances.first(4), server)[0]
    voting: Any = answer.extra["voting"]
    assert (voting["first_shown_share"], voting["pairs_decided_both_ways"], voting["pairs_decided_alike"]) == (
        1.0,
        6,
        0,
    )
    assert answer.extra["agreement"] == 0.5
    assert (answer.parsed, answer.extra["even"]) == (list("ABCD"), [["A", "B"], ["B", "C"], ["C", "D"]])


@pytest.mark.parametrize("said", ["unclear", "A", "", "both", "3"])
def test_no_vote_is_no_order(instances: Instances, said: str) -> None:
    with FaultyServer(KeyFrameModel(instances.places, earlier=lambda *_: said)) as server:
        answer = run_method("pairwise-vote", instances.first(4), server)[0]
    assert (answer.status, answer.parsed, answer.extra["agreement"]) == (Status.ANSWERED, None, None)
    assert answer.problem.startswith("expected the labels A, B, C, D in an order")
    voting: Any = answer.extra["voting"]
    assert (voting["undecided"], voting["first_shown_share"]) == (24, None)


def test_without_pictures_nothing_is_asked(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.places)) as server:
        answers = run_method("pairwise-vote", instances, server, condition="text-only")
    assert server.count == 0
    assert {answer.parsed for answer in answers} == {None}


@pytest.mark.parametrize(
    ("script", "status", "count"),
    [
        ([None] * 5 + [Fault.CONTENT_FILTER], Status.REFUSED, 6),
        ([Fault.RESET, None, Fault.EMPTY_CHOICES], Status.ANSWERED, 14),
        ([None, *[Fault.UNAVAILABLE] * 3], Status.FAILED, 4),
    ],
)
def test_faults_and_refusals(instances: Instances, script: list[Any], status: Status, count: int) -> None:
    with FaultyServer(KeyFrameModel(instances.places), script=script) as server:
        answer = run_method("pairwise-vote", instances.first(4), server, samples=1)[0]
    assert (answer.status, server.count) == (status, count)


def test_prose_fails_for_good(instances: Instances) -> None:
    with FaultyServer("The first one, I think.") as server:
        answer = run_method("pairwise-vote", instances.first(4), server)[0]
    assert (answer.status, answer.text, server.count) == (Status.ERROR, "", 3)


# ── by hand ──


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        *(("1", 1), ("2", 2), (" 2. ", 2), ("Picture 1", 1), ("image #2", 2), ("first", 1), ("The second", 2)),
        *(("1st", 1), ('"1"', 1), ("number 2", 2), ("1 or 2", None), ("12", None), ("unclear", None), ("B", None)),
    ],
)
def test_choices_as_models_write_them(said: str, choice: int | None) -> None:
    assert read_choice(said) == choice


def test_votes_by_hand() -> None:
    ballots = [
        Ballot(("A", "B"), 1, ""),  # A
        Ballot(("B", "A"), 2, ""),  # A
        Ballot(("A", "C"), 1, ""),  # A
        Ballot(("C", "A"), 1, ""),  # C
        Ballot(("B", "C"), 2, ""),  # C
        Ballot(("C", "B"), None, ""),
    ]
    tally = VoteTally("ABCD", ballots)
    assert tally.votes("ABC").tolist() == [[0, 2, 1], [0, 0, 0], [1, 1, 0]]
    found = tally.consensus()
    assert found is not None
    # D has no vote and is left out; A and C are even, so A stands first as given.
    assert (found.order, found.against, found.agreement) == (("A", "C", "B"), 1.0, 0.8)
    assert tally.even(found.order) == [("A", "C")]
    assert tally.first_shown_share() == 3 / 5
    assert tally.both_ways() == (2, 1)  # A and B alike, A and C not; B and C were decided one way only
    assert VoteTally("AB", []).consensus() is None


# ── settings, options, prompt ──


def built(**options: Any) -> Any:
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1"))
    return build_system("pairwise-vote", [client], options=options)


def test_settings_and_options() -> None:
    one = built(samples=3)
    assert (one.name, one.settings["samples"], built().settings["samples"]) == ("pairwise-vote[openai:m]", 3, 2)
    many = Item(id="q", group="g", question="?", answer=OrderingFormat(labels=tuple("ABCDEFGHIJKLMNO")))
    assert not one.supports(many)
    with pytest.raises(ConfigurationError, match=r"^pairwise-vote: option 'samples': Input should be greater than"):
        built(samples=0)


@pytest.mark.parametrize("named", [True, False])
def test_the_prompt_is_frozen(instances: Instances, named: bool) -> None:
    item = instances.first(4).items[0]
    asked = item if named else item.model_copy(update={"question": "In which order?"})
    with FaultyServer(KeyFrameModel(instances.places)) as server:
        run_method("pairwise-vote", instances.only(asked), server, samples=1)
    frozen = "\n-----\n".join(server.requests[0].texts) + "\n"
    assert_frozen(frozen, SNAPSHOTS / f"pairwise_vote_{'named' if named else 'unnamed'}.txt")
