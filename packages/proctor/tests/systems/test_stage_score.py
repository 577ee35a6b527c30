"""Stages by rules: with a good model, a mediocre one and a broken one; and states, ties and directions by hand."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core import ConfigurationError, Status, generator
from proctor.media import view
from proctor.models import ModelClient, ModelSpec, MultimodalEncoder
from proctor.systems import build_system
from proctor.tasks.clinicalskillqa.methods.stage_score import (
    NO_FACTS,
    appearance,
    first_component,
    sort_frames,
    state_of,
)
from proctor.tasks.clinicalskillqa.methods.workflow import SCENARIOS, built_in
from tests.support.faulty_server import Fault, FaultyServer
from tests.support.key_frame_model import STEPS, Instances, KeyFrameModel, run_method, sent
from tests.support.snapshot import assert_frozen
from tests.support.stills import picture
from tests.support.tiny_clip import make_tiny_clip

SNAPSHOTS = Path(__file__).parent / "snapshots"
CPR = built_in("cpr")


def renamed(instances: Instances) -> Instances:
    """The same, with a question that names no procedure."""
    return instances.only(
        *(item.model_copy(update={"question": "In which order were they taken?"}) for item in instances.items)
    )


# ── end to end ──


def test_with_a_good_model_every_order_is_right(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
        answers = run_method("stage-score", instances, server)
    assert instances.right(answers) == 1.0
    for item, answer in zip(instances.items, answers, strict=True):
        n = int(str(item.tags["frames"]))
        assert answer.extra["calls"] == answer.usage.requests == answer.extra["images"] == n
        assert answer.extra["ties"] == {"features": "appearance", "groups": [], "direction": ""}
        assert str(answer.extra["rationale"]).startswith(
            f"First {answer.parsed[0]}: the rescuer does check_scene (look round"  # type: ignore[index]
        )
        assert len(json.dumps(answer.extra)) < 10_000
    assert [len(request.image_bytes) for request in server.requests] == [1] * server.count


def test_one_call_more_where_the_question_names_no_procedure(instances: Instances) -> None:
    unnamed = renamed(instances)
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
        answers = run_method("stage-score", unnamed, server)
        scenario = run_method("stage-score", unnamed, server, scenario="cpr")
    assert unnamed.right(answers) == unnamed.right(scenario) == 1.0
    for item, answer, told in zip(unnamed.items, answers, scenario, strict=True):
        n = int(str(item.tags["frames"]))
        assert (answer.extra["calls"], answer.extra["images"]) == (n + 1, 2 * n)
        assert (told.extra["calls"], told.extra["images"]) == (n, n)
    other = KeyFrameModel(instances.positions, reply={"ProcedureReply": {"procedure": "other"}})
    with FaultyServer(other) as server:
        answer = run_method("stage-score", unnamed.first(4), server)[0]
    assert (answer.status, answer.extra["calls"], answer.extra["fallback"]) == (Status.ANSWERED, 1, NO_FACTS)
    assert isinstance(answer.parsed, list)
    assert sorted(map(str, answer.parsed)) == [*"ABCD"]
    assert answer.extra["evidence"] == {"procedure": None, "frames": {}}


def test_a_mediocre_model_gives_ties_and_loans_that_are_told(instances: Instances) -> None:
    # It can't tell neighbouring steps apart, and does not know what the last frame shows.
    blurred = KeyFrameModel(
        instances.positions, step=lambda location: None if location == 5 else STEPS[location // 2 * 2]
    )
    with FaultyServer(blurred) as server:
        answers = run_method("stage-score", instances, server)
    assert 0 < instances.right(answers) < 1
    for item, answer in zip(instances.items, answers, strict=True):
        assert sorted(answer.parsed) == sorted(item.answer.labels)  # type: ignore[arg-type, union-attr, type-var]
        ties: Any = answer.extra["ties"]
        assert len(ties["groups"]) >= 2
        assert ties["direction"] == "stages"
        assert len(answer.extra["borrowed"]) == (item.tags["frames"] == 6)  # type: ignore[arg-type]
    assert run_again(blurred, instances) == [answer.parsed for answer in answers]


def run_again(model: KeyFrameModel, instances: Instances) -> list[Any]:
    with FaultyServer(model) as server:
        return [answer.parsed for answer in run_method("stage-score", instances, server)]


@pytest.mark.parametrize("nothing", [{}, {"true_facts": []}, {"true_facts": ["sunshine"], "seen": "?"}])
def test_where_the_model_sees_nothing_all_frames_are_tied(instances: Instances, nothing: dict[str, Any]) -> None:
    """The paper's system always gave a complete order; the answer says that this one rests on looks alone."""
    one = instances.first(4)
    with FaultyServer(KeyFrameModel(instances.positions, reply={"StageReply": nothing})) as server:
        answer = run_method("stage-score", one, server)[0]
        none = run_method("stage-score", one, server, unseen="none")[0]
    assert answer.status is Status.ANSWERED
    frames = asyncio.run(view(one.items[0], "video", one.library).frames())
    along = first_component(appearance([frame.jpeg for frame in frames]))
    by_looks = [frames[int(position)].label for position in np.argsort(along)]
    assert answer.parsed in (by_looks, by_looks[::-1])
    assert isinstance(answer.parsed, list)
    assert sorted(map(str, answer.parsed)) == [*"ABCD"]
    assert answer.extra["fallback"] == NO_FACTS
    ties: Any = answer.extra["ties"]
    assert (ties["groups"], ties["direction"]) == ([[*"ABCD"]], "given")
    assert str(answer.extra["rationale"]).startswith("First ")
    assert (none.parsed, none.text, none.extra["rationale"]) == (None, "Answer: none", "")
    assert none.extra["labels"] == {"missing": ["A", "B", "C", "D"]}


def test_without_pictures_nothing_is_asked(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
        answers = run_method("stage-score", instances, server, condition="text-only")
    assert server.count == 0
    assert {(answer.status, answer.parsed) for answer in answers} == {(Status.ANSWERED, None)}


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ([None, None, Fault.CONTENT_FILTER], Status.REFUSED),
        ([Fault.SERVER_ERROR, None, Fault.CUT_OFF], Status.ANSWERED),
        ([Fault.UNAVAILABLE] * 3, Status.FAILED),
    ],
)
def test_faults_and_refusals(instances: Instances, script: list[Fault | None], status: Status) -> None:
    with FaultyServer(KeyFrameModel(instances.positions), script=script) as server:
        answer = run_method("stage-score", instances.first(4), server)[0]
    assert answer.status is status


@pytest.mark.parametrize("said", ["I see a rescuer.", '{"true_facts": "hands_on_chest"}', "[]", "null"])
def test_replies_of_another_form_fail_for_good(instances: Instances, said: str) -> None:
    with FaultyServer(KeyFrameModel(instances.positions, reply={"StageReply": lambda _: said})) as server:
        answer = run_method("stage-score", instances.first(4), server)[0]
    assert (answer.status, server.count) == (Status.ERROR, 3)
    assert answer.reason.startswith("openai:m: no readable reply in 3 tries")


# ── states by hand ──


@pytest.mark.parametrize(
    ("scenario", "facts", "expected"),
    [
        ("cpr", ["apart_from_patient"], ("check_scene", (), 0)),
        ("cpr", ["fingers_on_neck"], ("check_breathing", (), 4)),
        ("cpr", ["fingers_on_neck", "chest_bare"], ("check_again", ("bare_chest",), 16)),
        ("cpr", ["hands_on_chest", "giving_breath"], ("ventilate", (), 14)),  # two at work: the later step
        ("aed", ["hands_on_chest"], ("compress", (), 4)),
        # The device stands beside the patient and is on: level 3 is behind, which is more than compressions are.
        (
            "aed",
            ["hands_on_chest", "device_beside_patient", "device_on"],
            ("compress", ("place_device", "switch_on"), 7),
        ),
        ("aed", ["hands_on_chest", "pads_on"], ("resume", ("attach_pads",), 18)),
        ("bmv", ["mask_on_face", "squeezing_bag"], ("squeeze", (), 16)),
        ("bmv", ["bag_complete"], (None, ("assemble",), 3)),
        ("bmv", ["no_such_fact"], (None, (), None)),
    ],
)
def test_states_by_hand(scenario: str, facts: list[str], expected: tuple[Any, ...]) -> None:
    found = state_of(facts, built_in(scenario))
    assert (found.step, found.done, found.stage) == expected


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_rule_is_dead(scenario: str) -> None:
    """What a step is shown by, and nothing else, shows that step."""
    known = built_in(scenario)
    for step in known.steps:
        assert state_of(step.shown_by, known).step == step.name


# ── ties by hand ──


def test_the_first_component_is_that_of_the_covariance() -> None:
    points = generator(0, "pca").normal(size=(9, 5)) * [5, 1, 1, 1, 1]
    found = first_component(points)
    values, vectors = np.linalg.eigh(np.cov(points.T))
    expected = (points - points.mean(0)) @ vectors[:, -1]
    assert np.allclose(found, expected) or np.allclose(found, -expected)
    assert found.var(ddof=1) == pytest.approx(values[-1])
    assert first_component(np.ones((4, 3))).tolist() == [0, 0, 0, 0]


def test_ties_run_with_the_stages() -> None:
    vectors = np.array([[0.0], [3.0], [1.0], [2.0]])  # A 0, B 3, C 1, D 2
    up = sort_frames("ABCD", {"A": 0, "B": 9, "C": 4, "D": 4}, vectors)
    assert (up.order, up.tied, up.direction) == (tuple("ACDB"), (("C", "D"),), "stages")
    down = sort_frames("ABCD", {"A": 9, "B": 0, "C": 4, "D": 4}, vectors)
    assert (down.order, down.direction) == (tuple("BDCA"), "stages")
    blind = sort_frames("ABCD", dict.fromkeys("ABCD", 4), vectors)
    assert (blind.order, blind.direction) == (tuple("ACDB"), "given")
    turned = sort_frames("BACD", dict.fromkeys("ABCD", 4), vectors[[1, 0, 2, 3]])
    assert (turned.order, turned.direction) == (tuple("BDCA"), "given")
    alike = sort_frames("ABCD", dict.fromkeys("ABCD", 4), np.zeros((4, 1)))
    assert alike.order == tuple("ABCD")


def test_a_frame_without_a_stage_takes_that_of_the_most_alike_one() -> None:
    vectors = np.array([[0.0], [10.0], [9.0], [1.0]])
    found = sort_frames("ABCD", {"A": 0, "B": 6, "C": None, "D": None}, vectors)
    assert (found.order, found.borrowed) == (tuple("ADCB"), {"C": "B", "D": "A"})
    none = sort_frames("ABC", {"A": None}, np.array([[2.0], [0.0], [1.0]]))
    assert (none.order, none.tied, none.direction, none.borrowed) == (tuple("ACB"), (tuple("ABC"),), "given", {})
    assert sort_frames("", {}, np.zeros((0, 1))).order == ()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=2, max_size=7), st.integers(0, 100))
def test_every_frame_is_sorted_and_stages_go_up(stages: list[int | None], seed: int) -> None:
    labels = "ABCDEFG"[: len(stages)]
    own = dict(zip(labels, stages, strict=True))
    found = sort_frames(labels, own, generator(seed, "vectors").normal(size=(len(stages), 3)))
    if all(stage is None for stage in stages):
        assert (sorted(found.order), found.direction) == (sorted(labels), "given")
        return
    assert sorted(found.order) == sorted(labels)
    told = [own[found.borrowed.get(label, label)] for label in found.order]
    assert told == sorted(told, key=lambda stage: -1 if stage is None else stage)


# ── vectors ──


def test_an_encoder_by_path_sees_pictures_and_words(tmp_path: Path, instances: Instances) -> None:
    encoder = MultimodalEncoder(str(make_tiny_clip(tmp_path / "clip")))
    pictures = [picture(0), picture(4), picture(4)]
    found = np.concatenate([encoder.see(pictures), encoder.read(["hands", "hands", "a mask"])], axis=1)
    assert found.shape == (3, 16)
    assert np.allclose(np.linalg.norm(found[:, :8], axis=1), 1)
    assert np.allclose(found[0, 8:], found[1, 8:], atol=1e-6)
    assert np.abs(found[0, :8] - found[1, :8]).max() > 1e-4
    assert np.allclose(found[1, :8], found[2, :8], atol=1e-6)
    assert np.abs(found[1, 8:] - found[2, 8:]).max() > 1e-4
    same = KeyFrameModel(instances.positions, step=lambda _: "compress")
    with FaultyServer(same) as server:
        answer = run_method("stage-score", instances.first(4), server, encoder=encoder.where)[0]
    ties: Any = answer.extra["ties"]
    assert (ties["features"], ties["groups"], ties["direction"]) == (encoder.where, [list("ABCD")], "given")
    assert sorted(answer.parsed) == list("ABCD")  # type: ignore[arg-type, type-var]


def test_an_encoder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^the encoder '.*nowhere' can't be loaded: "):
        MultimodalEncoder(str(tmp_path / "nowhere")).see([picture(0)])


def test_pictures_of_any_size_have_as_many_points() -> None:
    assert appearance([picture(0), picture(1, 3)]).shape == (2, 3072)


# ── settings, options, prompts ──


def built(**options: Any) -> Any:
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1"))
    return build_system("stage-score", [client], options=options)


def test_settings_and_options() -> None:
    one = built(scenario="aed")
    assert one.name == "stage-score[openai:m]"
    assert list(one.settings["workflows"]) == ["aed"]
    assert (one.settings["features"], built(encoder="x").settings["features"]) == ("appearance", "x")
    assert set(one.settings["prompts_sha256"]) == {"procedure", "frame"}
    with pytest.raises(ConfigurationError) as caught:
        built(enkoder="x")
    assert str(caught.value) == (
        "stage-score: option 'enkoder': no field of this name (its options: scenario, workflow, encoder, unseen)"
    )


def test_the_prompts_are_frozen(instances: Instances) -> None:
    with FaultyServer(KeyFrameModel(instances.positions)) as server:
        run_method("stage-score", renamed(instances).first(4), server)
    texts: dict[str, str] = {}
    for request in server.requests:
        texts.setdefault(sent(request).form, "\n-----\n".join(request.texts))
    frozen = "\n".join(f"===== {form}\n{text}\n" for form, text in texts.items())
    assert_frozen(frozen, SNAPSHOTS / "stage_score.txt")
