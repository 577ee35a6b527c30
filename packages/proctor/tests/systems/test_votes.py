"""The methods `pairwise-vote` and `consensus`: with good, mediocre, biased and broken models; and counting by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.core import (
    Answer,
    ConfigurationError,
    InfrastructureError,
    Item,
    RefusalError,
    Status,
    System,
    Usage,
    View,
    generator,
)
from proctor.core.formats import OrderingFormat
from proctor.models import ModelClient, ModelSpec
from proctor.systems import build_system
from proctor.tasks.clinicalskillqa.methods.votes import Ballot, ConsensusOfSystems, VoteTally, members, read_choice
from tests.support.faulty_server import Fault, FaultyServer
from tests.support.key_frame_model import Instances, KeyFrameModel, run_method, sent
from tests.support.snapshot import assert_frozen
from tests.support.stills import Shown

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("samples", [1, 2])
def test_with_a_good_model_every_order_is_right(instances: Instances, samples: int) -> None:
    some = instances if samples == 1 else instances.first(6)
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
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
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
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
        with FaultyServer(KeyFrameModel(instances.positions, earlier=noisy(3, 0.3))) as server:
            answers = run_method("pairwise-vote", instances, server, samples=samples)
        scores.append(instances.right(answers))
        agreements = [float(str(answer.extra["agreement"])) for answer in answers]
        assert all(0.5 <= agreement < 1 for agreement in agreements)
    assert scores[0] < 0.7 < scores[1]


def test_a_model_that_always_takes_the_first_is_found_out(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.positions, earlier=lambda *_: "1")) as server:
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
    with FaultyServer(KeyFrameModel(instances.positions, earlier=lambda *_: said)) as server:
        answer = run_method("pairwise-vote", instances.first(4), server)[0]
    assert (answer.status, answer.parsed, answer.extra["agreement"]) == (Status.ANSWERED, None, None)
    assert answer.problem.startswith("expected the labels A, B, C, D in an order")
    voting: Any = answer.extra["voting"]
    assert (voting["undecided"], voting["first_shown_share"]) == (24, None)


def test_without_pictures_nothing_is_asked(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
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
    with FaultyServer(KeyFrameModel(instances.positions), script=script) as server:
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
    with pytest.raises(ConfigurationError, match=r"^pairwise-vote: option 'samples': at least 1"):
        built(samples=0)


@pytest.mark.parametrize("named", [True, False])
def test_the_prompt_is_frozen(instances: Instances, named: bool) -> None:
    item = instances.first(4).items[0]
    asked = item if named else item.model_copy(update={"question": "In which order?"})
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
        run_method("pairwise-vote", instances.only(asked), server, samples=1)
    frozen = "\n-----\n".join(server.requests[0].texts) + "\n"
    assert_frozen(frozen, SNAPSHOTS / f"pairwise_vote_{'named' if named else 'unnamed'}.txt")


def swapped(seed: int, share: float) -> Callable[[list[str]], list[str]]:
    """Exchanges two neighbours in a share of the orders."""
    draw = generator(seed, "swap")

    def swap(order: list[str]) -> list[str]:
        if draw.random() >= share:
            return order
        at = int(draw.integers(len(order) - 1))
        return [*order[:at], order[at + 1], order[at], *order[at + 2 :]]

    return swap


# ── end to end ──


def test_samples_of_a_mediocre_model_agree_on_the_right_order(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.positions, order=swapped(2, 0.7))) as server:
        answers = run_method("consensus", instances, server, samples=15)
    alone = [
        [member["order"] for member in answer.extra["members"]]  # type: ignore[union-attr, index, call-overload]
        for answer in answers
    ]
    keys = [item.reference.answer for item in instances.items if item.reference]
    single = [order == key for orders, key in zip(alone, keys, strict=True) for order in orders]
    assert sum(single) / len(single) < 0.6
    assert instances.right(answers) == 1.0
    for item, answer in zip(instances.items, answers, strict=True):
        assert answer.usage.requests == 15
        assert 0.5 < float(str(answer.extra["agreement"])) <= 1
        assert answer.extra["unanimous"] == (answer.extra["agreement"] == 1.0)
        assert len(item.answer.labels) == item.tags["frames"]  # type: ignore[union-attr]
    assert server.count == 15 * len(instances.items)


def test_several_models_vote_together(instances: Instances) -> None:
    good, bad = (
        KeyFrameModel(instances.positions),
        KeyFrameModel(instances.positions, order=lambda order: order[::-1]),
    )
    with FaultyServer(lambda request: (bad if request.model == "m2" else good)(request)) as server:
        models = ("openai:m1", "openai:m2", "openai:m3")
        answers = run_method("consensus", instances, server, models=models)
    assert instances.right(answers) == 1.0
    assert [answer.extra["agreement"] for answer in answers] == [pytest.approx(2 / 3)] * len(answers)
    assert {request.model for request in server.requests} == {"m1", "m2", "m3"}


def test_methods_and_systems_vote_together(instances: Instances) -> None:
    one = instances.first(4)
    own: dict[str, Any] = {"pairwise-vote.samples": 1, "evidence-flow-m.pairs": "draft"}
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
        answer = run_method("consensus", one, server, over="pairwise-vote,evidence-flow-m,seriation", **own)[0]
    assert one.right([answer]) == 1.0
    members: Any = answer.extra["members"]
    assert [member["name"] for member in members] == [
        "pairwise-vote[openai:m]",
        "evidence-flow-m[openai:m]",
        "seriation",
    ]
    assert members[0]["order"] == members[1]["order"] == answer.parsed
    assert answer.usage.requests == server.count == 12 + (2 + 4 + 3)
    assert answer.extra["rationale_of"] in {"pairwise-vote[openai:m]", "evidence-flow-m[openai:m]"}
    assert answer.extra["rationale"]


def test_a_refusal_of_one_is_told_and_of_all_is_a_refusal(instances: Instances) -> None:
    one = instances.first(4)
    with FaultyServer(KeyFrameModel(instances.positions), script=[None, Fault.CONTENT_FILTER]) as server:
        answer = run_method("consensus", one, server, samples=3)[0]
    members: Any = answer.extra["members"]
    assert one.right([answer]) == 1.0
    assert answer.usage.requests == server.count == 3  # the refusal was paid for, too
    assert [bool(member["order"]) for member in members] == [True, False, True]
    assert members[1]["why"].startswith("refused: openai:m")
    with FaultyServer(KeyFrameModel(instances.positions), script=[Fault.CONTENT_FILTER] * 3) as server:
        answer = run_method("consensus", one, server, samples=3)[0]
    assert (answer.status, answer.text, answer.usage.requests) == (Status.REFUSED, "", 3)
    assert answer.reason.startswith("consensus: all 3 members refused: refused: openai:m")


def test_a_fault_of_one_fails_the_answer(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.positions), script=[None, *[Fault.UNAVAILABLE] * 3]) as server:
        answer = run_method("consensus", instances.first(4), server, samples=2)[0]
    assert (answer.status, answer.text, answer.usage.requests) == (Status.FAILED, "", 1)


def test_what_a_method_paid_before_its_error_is_counted(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.positions), script=[None, None, Fault.CONTENT_FILTER]) as server:
        answer = run_method("pairwise-vote", instances.first(4), server, samples=1)[0]
    assert (answer.status, answer.usage.requests, server.count) == (Status.REFUSED, 3, 3)


@pytest.mark.parametrize(
    ("said", "order"),
    [
        ("I can't tell.", None),
        ("A", None),
        ("b > a > c > d", list("BACD")),
        ("Answer: C.jpg, B.jpg, A.jpg, D.jpg", list("CBAD")),
        ("B > A", list("BA")),
        ("B > B > A", list("BA")),
    ],
)
def test_what_a_broken_model_says_is_an_order_or_none(instances: Instances, said: str, order: list[str] | None) -> None:
    with FaultyServer(said) as server:
        answer = run_method("consensus", instances.first(4), server, samples=2)[0]
    assert (answer.status, answer.parsed) == (Status.ANSWERED, order)
    members: Any = answer.extra["members"]
    assert all(bool(member.get("why")) == (order is None) for member in members)
    assert (answer.extra["agreement"] is None) == (order is None)
    assert ("labels" in answer.extra) == (order is None or len(order) < 4)


# ── by hand ──


class Says:
    """A member that says what it is told to."""

    def __init__(self, name: str, said: str | Exception, rationale: str = "") -> None:
        self.name = name
        self._said = said
        self._rationale = rationale
        self.settings: dict[str, Any] = {"said": str(said)}

    def supports(self, item: Item) -> bool:
        return item.id != "odd"

    async def answer(self, item: Item, view: View) -> Answer:
        if isinstance(self._said, Exception):
            raise self._said
        extra: dict[str, Any] = {"rationale": self._rationale} if self._rationale else {}
        return Answer(item_id=item.id, text=self._said, usage=Usage(requests=1, cost_usd=0.5), extra=extra)


def together(*members: Says, labels: str = "ABC") -> Answer:
    voters: list[tuple[str, System]] = [(member.name, member) for member in members]
    item = Item(id="q1", group="v1", question="?", answer=OrderingFormat(labels=tuple(labels)))
    return asyncio.run(ConsensusOfSystems(voters, 0).answer(item, Shown([])))


def test_a_consensus_by_hand() -> None:
    found = together(Says("x", "A > B > C", "because x"), Says("y", "B > C > A", "because y"), Says("z", "A > C > B"))
    # A before B 2 of 3, A before C 2 of 3, B before C 2 of 3: six of nine votes are kept.
    assert found.parsed == ["A", "B", "C"]
    assert found.extra["agreement"] == pytest.approx(6 / 9)
    assert found.extra["against"] == 3.0
    assert (found.extra["rationale"], found.extra["rationale_of"]) == ("because x", "x")
    assert (found.usage.requests, found.usage.cost_usd) == (3, 1.5)
    assert found.extra["unanimous"] is False


def test_an_even_vote_stands_as_given_and_says_so() -> None:
    found = together(Says("x", "C > B > A"), Says("y", "A > B > C"))
    assert (found.parsed, found.extra["agreement"]) == (["A", "B", "C"], 0.5)
    assert found.extra["even"] == [["A", "B"], ["B", "C"]]
    assert together(Says("y", "A > B > C"), Says("x", "C > B > A")).parsed == found.parsed


def test_what_nobody_names_is_missing() -> None:
    found = together(Says("x", "B > A"), Says("y", "no idea"))
    assert (found.parsed, found.extra["labels"]) == (["B", "A"], {"missing": ["C"]})
    none = together(Says("x", "A"), Says("y", "B"))
    assert (none.parsed, none.extra["agreement"], none.text) == (None, None, "Answer: none")


def test_the_machinery_of_one_member_is_raised() -> None:
    with pytest.raises(InfrastructureError, match="down"):
        together(Says("x", "B > A"), Says("y", InfrastructureError("down")))
    with pytest.raises(RefusalError, match="all 2 members refused: refused: no"):
        together(Says("x", RefusalError("no")), Says("y", RefusalError("never")))


def test_items_that_one_member_does_not_support() -> None:
    both = ConsensusOfSystems([("x", Says("x", "")), ("y", Says("y", ""))], 0)
    labels = OrderingFormat(labels=("A", "B"))
    assert both.supports(Item(id="q", group="g", question="?", answer=labels))
    assert not both.supports(Item(id="odd", group="g", question="?", answer=labels))


# ── options ──


def built_consensus(*models: str, seed: int = 0, **options: Any) -> Any:
    clients = [ModelClient(ModelSpec(name=name, base_url="http://localhost:9/v1")) for name in models]
    return build_system("consensus", clients, seed=seed, options=options)


def test_names_and_settings() -> None:
    one = built_consensus("openai:m", samples=5)
    assert one.name == "consensus[5 × openai:m]"
    assert list(one.settings["members"]) == [f"openai:m#{k}" for k in range(1, 6)]
    two = built_consensus("openai:m", over="seriation,random,pairwise-vote", seed=3)
    assert two.name == "consensus[seriation, random, pairwise-vote[openai:m]]"
    assert two.settings["members"]["random"]["seed"] == 3
    assert built_consensus(over="seriation,as-given").name == "consensus[seriation, as-given]"


def test_a_scenario_is_that_of_all_methods_and_each_may_have_its_own() -> None:
    own: dict[str, Any] = {"over": "seriation,model,pairwise-vote,stage-score", "scenario": "bmv"}
    own["stage-score.scenario"] = "cpr"
    settings = built_consensus("openai:m", **own).settings["members"]
    assert [(name, [*said["workflows"]]) for name, said in settings.items() if "workflows" in said] == [
        ("pairwise-vote[openai:m]", ["bmv"]),
        ("stage-score[openai:m]", ["cpr"]),
    ]
    with pytest.raises(
        ConfigurationError, match="consensus: option 'scenario': found no method in 'over' that takes it"
    ):
        built_consensus("openai:m", over="seriation,model", scenario="cpr")


@pytest.mark.parametrize(
    ("models", "options", "text"),
    [
        (["openai:m"], {}, "consensus: found one vote, expected two or more: several --model, --option samples=5, or"),
        ([], {}, "consensus: found no model for model, expected one or more (--model)"),
        ([], {"over": "seriation,pairwise-vote"}, "consensus: found no model for pairwise-vote, expected one or more"),
        (["openai:m"], {"over": "seriation,random"}, "consensus: found 1 model that nobody in 'over' asks"),
        (
            ["openai:m"],
            {"over": "consensus"},
            "consensus: option 'over': found 'consensus', expected one of as-given, ",
        ),
        (["openai:m"], {"over": "model,model"}, "consensus: option 'over': found 'model' twice, expected each once"),
        (["openai:m"] * 2, {}, "consensus: found a model twice, expected each once (samples repeats them)"),
        (["openai:m"], {"samples": 0}, "consensus: option 'samples': at least 1"),
        (
            ["openai:m"],
            {"seriation.start": "plainer"},
            "consensus: option 'seriation.start': found no method 'seriation'",
        ),
        (
            ["openai:m"],
            {"over": "pairwise-vote", "samples": 2, "pairwise-vote.sample": 1},
            "pairwise-vote: option 'sample': no field of this name (its options: scenario, workflow, samples",
        ),
    ],
)
def test_options_that_make_no_sense(models: list[str], options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        built_consensus(*models, **options)
    assert str(caught.value).startswith(text)


def test_an_order_by_looks_alone_is_no_vote() -> None:
    """By itself `stage-score` always orders; in a vote it is silent where no frame shows a fact."""
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1"))
    chosen = dict(members([client], seed=0, options={"over": "stage-score,evidence-flow-m"}))
    assert chosen["stage-score[openai:m]"].settings["unseen"] == "none"
    own = {"over": "stage-score,evidence-flow-m", "stage-score.unseen": "component"}
    assert dict(members([client], seed=0, options=own))["stage-score[openai:m]"].settings["unseen"] == "component"
