"""One question with all frames: what is sent, what is undone, and what becomes of broken replies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Answer, ConfigurationError, Frame, InputError, Item, Status, generator
from proctor.core.formats import OrderingFormat
from proctor.models import ModelClient, ModelSpec
from proctor.systems import build_system
from proctor.tasks.clinicalskillqa.methods.prompted_order import (
    FORMULATIONS,
    Names,
    PromptedOrder,
    drawn_names,
    kept_names,
)
from tests.media.test_pose_files import CATEGORIES, image, numbers
from tests.support.faulty_server import Fault, FaultyServer, Request
from tests.support.figures import kneeler, manikin, standing
from tests.support.key_frame_model import AskedModel, Instances, keys, made_instances, only, run_method, sent, solved
from tests.support.program import proctor
from tests.support.snapshot import assert_frozen
from tests.support.stills import Shown, picture

NAME = "prompted-order"
SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Instances:
    return made_instances(tmp_path_factory.mktemp("instances"))


# ── end to end ──


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("rename", ["none", "random"])
def test_with_a_good_model_every_order_is_right_in_one_call(
    instances: Instances, formulation: str, rename: str
) -> None:
    with FaultyServer(AskedModel(instances.positions)) as server:
        answers = run_method(NAME, instances, server, formulation=formulation, rename=rename)
    assert [answer.parsed for answer in answers] == keys(instances)
    assert server.count == len(answers)
    for item, answer, request in zip(instances.items, answers, server.requests, strict=False):
        n = item.tags["frames"]
        assert (answer.extra["calls"], answer.extra["images"], len(request.image_bytes)) == (1, n, n)
        order: Any = answer.parsed
        assert answer.extra["rationale"] == (
            f"{order[0]} shows it first, then {order[1] if rename == 'random' else order[1].lower()}."
        )
        assert ("names" in answer.extra) == (rename == "random")


def test_a_mediocre_model_is_reported_as_it_is(instances: Instances) -> None:
    turned = AskedModel(instances.positions, order=lambda order: [order[1], order[0], *order[2:]])
    with FaultyServer(turned) as server:
        answers = run_method(NAME, instances, server)
    for key, answer in zip(keys(instances), answers, strict=True):
        assert answer.parsed == [key[1], key[0], *key[2:]]
        assert answer.status is Status.ANSWERED


def test_names_leave_no_label_in_the_request(instances: Instances) -> None:
    one = only(instances, 6)
    with FaultyServer(AskedModel(instances.positions)) as server:
        answer = run_method(NAME, one, server)[0]
        again = run_method(NAME, one, server)[0]
    names: Any = answer.extra["names"]
    assert again.extra["names"] == names
    assert len(set(names.values())) == 6
    text = server.requests[0].text
    words = set(text.replace(",", " ").replace(".", " ").split())
    assert not words & {"B", "C", "D", "E", "F"}
    assert set(names.values()) <= words
    shown = [name for name, _ in sent(server.requests[0]).pictures]
    assert shown == list(names.values())  # given in the same order as ever, under other names


def alphabetical(request: Request) -> str:
    return json.dumps({"rationale": "", "order": sorted(name for name, _ in sent(request).pictures)})


def test_renaming_undoes_a_bias_for_the_alphabet(instances: Instances) -> None:
    """A model that goes by the names alone gives the labels in their order; under drawn names it gives no order
    that the labels tell, and so is measured by two runs that differ in nothing else."""
    with FaultyServer(alphabetical) as server:
        plain = run_method(NAME, instances, server, rename="none")
        random = run_method(NAME, instances, server, rename="random")
    labels = [list(item.answer.labels) for item in instances.items if item.answer.kind == "ordering"]
    assert [answer.parsed for answer in plain] == labels
    assert sum(answer.parsed == own for answer, own in zip(random, labels, strict=True)) <= 1
    assert all(sorted(map(str, a.parsed or ())) == own for a, own in zip(random, labels, strict=True))  # type: ignore[arg-type]


def test_two_runs_that_differ_in_the_renaming_can_be_compared(instances: Instances, tmp_path: Path) -> None:
    task = instances.benchmark.media_root
    assert task is not None
    store = tmp_path / "runs.db"
    with FaultyServer(alphabetical) as server:
        for rename in ("none", "random"):
            run = proctor(
                *("run", "clinicalskillqa", "--data", task, "--system", NAME, "--model", "openai:m"),
                *("--base-url", server.url, "--option", f"rename={rename}", "--name", f"names-{rename}"),
                *("--store", store, "--cache", tmp_path / "cache", "--limit", "6"),
            )
            assert run.returncode == 0, run.stderr
    told = proctor(
        *("compare", "clinicalskillqa", "--system", "names-none", "--system", "names-random"),
        *("--store", store, "--format", "json"),
    )
    assert told.returncode == 0, told.stderr
    assert "names-random" in told.stdout


def test_without_pictures_the_question_alone_is_put(instances: Instances) -> None:
    blind = json.dumps({"rationale": "a guess", "order": ["A", "B", "C", "D"]})
    with FaultyServer(blind) as server:
        answer = run_method(NAME, only(instances, 4), server, condition="text-only", rename="none")[0]
    assert (answer.extra["calls"], answer.extra["images"]) == (1, 0)
    assert "There is no picture of A, B, C, D." in server.requests[0].text
    assert "shown above" not in server.requests[0].text
    assert answer.parsed == list("ABCD")


# ── broken models ──

PROSE = "A comes first."


def replied(instances: Instances, order: Any, rename: str) -> tuple[Answer, Any]:
    """What becomes of an order, told in the names that are shown where it has the labels in braces."""
    one = only(instances, 4)

    def reply(request: Request) -> str:
        names = dict(zip("ABCD", (name for name, _ in sent(request).pictures), strict=True))
        said = json.loads(json.dumps(order).replace("{", "⟨").replace("}", "⟩"))

        def told(text: str) -> str:
            for label, name in names.items():
                text = text.replace(f"⟨{label}⟩", name).replace(f"⟨{label.lower()}⟩", name.lower())
            return text

        listed = [told(name) for name in said] if isinstance(said, list) else told(said)
        return json.dumps({"rationale": "", "order": listed})

    with FaultyServer(reply) as server:
        answer = run_method(NAME, one, server, rename=rename)[0]
    return answer, answer.extra.get("labels")


@pytest.mark.parametrize("rename", ["none", "random"])
@pytest.mark.parametrize(
    ("order", "parsed", "faults"),
    [
        (["{D}", "{B}", "{A}", "{C}"], list("DBAC"), None),
        (["{d}", "{b}", "{a}", "{c}"], list("DBAC"), None),
        (["{D}.jpg", "x/{B}.JPG", "Picture {A}", "frame_{C}"], list("DBAC"), None),
        ("{D} > {B} > {A} > {C}", list("DBAC"), None),
        (["{D}", "{B}"], list("DB"), {"missing": ["A", "C"]}),
        (["{D}", "{B}", "{D}", "{A}", "{C}"], list("DBDAC"), {"repeated": ["D"]}),
        (["{D}", "zebra", "{B}", "{A}", "{C}"], ["D", "zebra", "B", "A", "C"], {"unknown": ["zebra"]}),
        (["{D}"], None, {"missing": ["A", "B", "C"]}),
        ([], None, {"missing": list("ABCD")}),
    ],
)
def test_orders_with_faults_are_told_as_they_came(
    instances: Instances, rename: str, order: Any, parsed: Any, faults: Any
) -> None:
    answer, found = replied(instances, order, rename)
    assert (answer.status, answer.parsed, found) == (Status.ANSWERED, parsed, faults)
    assert bool(answer.problem) == (parsed is None)


def test_a_label_that_was_never_shown_is_no_answer_under_other_names(instances: Instances) -> None:
    """A model that answers A > B > C > D out of habit has not named one picture."""
    answer, found = replied(instances, ["A", "B", "C", "D"], "random")
    assert answer.parsed == [f"{label} (not shown)" for label in "ABCD"]
    assert found["missing"] == list("ABCD")
    assert answer.text.startswith("[")  # told so that it reads back as it is


def test_prose_fails_and_a_refusal_is_a_refusal(instances: Instances) -> None:
    one = only(instances, 4)
    with FaultyServer(PROSE) as server:
        answer = run_method(NAME, one, server)[0]
    assert (answer.status, answer.text) == (Status.ERROR, "")
    assert "no readable reply in 3 tries" in answer.reason
    assert server.count == 3
    with FaultyServer(script=[Fault.CONTENT_FILTER]) as server:
        assert run_method(NAME, one, server)[0].status is Status.REFUSED
    with FaultyServer(faults=1.0, kinds=[Fault.RESET]) as server:
        assert run_method(NAME, one, server)[0].status is Status.FAILED


# ── pose ──


def keypoints(file: Path, item: str) -> Path:
    poses: dict[str, list[Any]] = {"A": [manikin(), kneeler()], "B": [manikin(), standing()], "C": [], "D": []}
    images = [image(number, f"instances/{item}/{label}.jpg") for number, label in enumerate(poses)]
    notes = [
        {"image_id": number, "category_id": 1, "keypoints": numbers(joints)}
        for number, people in enumerate(poses.values())
        for joints in people
    ]
    file.write_text(json.dumps({"images": images, "annotations": notes, "categories": CATEGORIES}))
    return file


def test_sentences_from_pose_stand_in_the_prompt(instances: Instances, tmp_path: Path) -> None:
    one = only(instances, 4)
    item = one.items[0].id
    file = keypoints(tmp_path / "k.json", item)
    with FaultyServer(AskedModel(instances.positions)) as server:
        answer = run_method(NAME, one, server, pose=str(file), device="0.9,0.1,0.05,0.05")[0]
        blind = run_method(NAME, one, server, pose=str(file), condition="shuffled")[0]
    assert answer.parsed == keys(one)[0]
    said: Any = answer.extra["pose"]
    assert "has a hand on the manikin's chest" in said["A"]
    assert "keeps the hands off the manikin" in said["B"]
    assert said["C"] == "No person is seen. The manikin is not found."
    assert "nknown" not in "".join(said.values())
    names: Any = answer.extra["names"]
    for label in "ABCD":
        assert f"- {names[label]}: {said[label]}" in server.requests[0].text
    # Keypoints of a file would tell under other conditions what may not be seen.
    assert "pose" not in blind.extra
    assert "From the joints" not in server.requests[1].text


def test_some_predicates_may_be_left_out(instances: Instances, tmp_path: Path) -> None:
    """The paper compares partial and full predicates."""
    one = only(instances, 4)
    file = keypoints(tmp_path / "k.json", one.items[0].id)
    with FaultyServer(AskedModel(instances.positions)) as server:
        answer = run_method(NAME, one, server, pose=str(file), predicates="kneeling, leaning_over")[0]
    said: Any = answer.extra["pose"]
    assert "kneel" in said["A"]
    assert "hand" not in said["A"]
    assert "Nearest" not in said["A"]
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1"))
    with pytest.raises(ConfigurationError, match=r"option 'predicates': found 'sitting', expected full, or some"):
        build_system(NAME, [client], seed=0, options={"predicates": "kneeling,sitting"})


def test_pictures_may_stand_in_a_drawn_order(instances: Instances) -> None:
    """Drawn by seed and item, and told apart by their names alone: the answer is in labels again."""
    with FaultyServer(AskedModel(instances.positions)) as server:
        answers = run_method(NAME, instances, server, pictures="random", rename="none")
        again = run_method(NAME, instances, server, pictures="random", rename="none")
    assert [answer.parsed for answer in answers] == keys(instances) == [one.parsed for one in again]
    shown = [tuple(name for name, _ in sent(request).pictures) for request in server.requests]
    count = len(instances.items)
    assert shown[:count] == shown[count:]
    assert {tuple(sorted(one)) for one in shown} == {tuple("ABCD"), tuple("ABCDEF")}
    assert any(one != tuple(sorted(one)) for one in shown)


def test_an_image_without_keypoints_stops_the_run(instances: Instances, tmp_path: Path) -> None:
    file = keypoints(tmp_path / "k.json", "other")
    one = only(instances, 4)
    with FaultyServer() as server, pytest.raises(InputError) as caught:
        run_method(NAME, one, server, pose=str(file))
    assert str(caught.value) == (f"{file}: image '{one.items[0].id}/A': found none with this name, expected one image")
    assert server.count == 0


# ── names ──


def test_names_are_drawn_alike_for_all_and_go_back() -> None:
    first = [drawn_names("ABCD", generator(0, str(seed))).by_label["A"] for seed in range(300)]
    later = sum(
        list(drawn_names("ABCD", generator(0, str(seed))).by_label.values())
        == sorted(drawn_names("ABCD", generator(0, str(seed))).by_label.values())
        for seed in range(300)
    )
    assert len(set(first)) > 250
    assert later < 30  # 300 / 24 by chance
    names = Names({"A": "K7Q", "B": "B4X", "C": "Z2Z"})
    assert names.order(["z2z", "K7Q.png", "picture B4X", "C"]) == ("C", "A", "B", "C (not shown)")
    assert names.restore("K7Q, then b4x. AK7Q is nothing.") == "A, then B. AK7Q is nothing."
    assert names.rename("Is C before B? Pictures A and C. Frame A is one. D > A") == (
        "Is Z2Z before B4X? Pictures K7Q and Z2Z. Frame K7Q is one. D > A"
    )
    kept = kept_names("AB")
    assert (kept.rename("A > B"), kept.order(["b", "x"]), kept.restore("A")) == ("A > B", ("B", "x"), "A")


# ── what is recorded, and the prompts ──


def system(**options: Any) -> PromptedOrder:
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1"))
    built = build_system(NAME, [client], seed=4, options=options)
    assert isinstance(built, PromptedOrder)
    return built


def test_settings_say_all_that_changes_the_answers(tmp_path: Path) -> None:
    plain = system().settings
    assert {key: plain[key] for key in ("formulation", "rename", "seed", "version")} == {
        "formulation": "direct",
        "rename": "random",
        "seed": 4,
        "version": "1",
    }
    assert "workflows" not in plain
    other = system(
        formulation="clinical-rules",
        demonstrations=str(solved(tmp_path / "d", ["d1"])),
        pose=str(keypoints(tmp_path / "k.json", "i")),
        chest="0,0,1,1",
    ).settings
    assert other["prompt_sha256"] != plain["prompt_sha256"]
    more = {"demonstrations", "shots", "pose", "pose_sha256", "predicates", "chest", "workflows"}
    assert set(other) - set(plain) == more


def test_options_that_it_does_not_have() -> None:
    with pytest.raises(ConfigurationError, match=r"prompted-order: option 'rename': 'none' or 'random'"):
        system(rename="some")
    with pytest.raises(
        ConfigurationError,
        match=r"option 'shot'.*\(its options: scenario, workflow, formulation, rename, demonstrations",
    ):
        system(shot=1)
    with pytest.raises(ConfigurationError, match="prompted-order: found 0 models, expected one"):
        build_system(NAME, [], seed=0, options={})
    with pytest.raises(InputError, match="chest: found '1', expected four fractions"):
        system(chest="1")


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_prompts_are_frozen(formulation: str, tmp_path: Path) -> None:
    one = Item(
        id="q1",
        group="v1",
        question="The pictures A, B and C are key frames of one recording of cardiopulmonary resuscitation, in mixed "
        "order. In which order were they taken?",
        answer=OrderingFormat(labels=("A", "B", "C")),
    )
    frames = [Frame(picture(step), None, label) for step, label in enumerate("AB")]
    notes = {
        "images": [image(1, "q1/A.jpg"), image(2, "q1/B.jpg")],
        "annotations": [{"image_id": 1, "category_id": 1, "keypoints": numbers(kneeler())}],
        "categories": CATEGORIES,
    }
    (tmp_path / "k.json").write_text(json.dumps(notes))
    options = {"demonstrations": str(solved(tmp_path / "d", ["d1"])), "pose": str(tmp_path / "k.json")}
    reply = json.dumps({"rationale": "", "order": []})

    async def run(url: str) -> None:
        client = ModelClient(ModelSpec(name="openai:m", base_url=url))
        try:
            built = build_system(NAME, [client], seed=0, options={"formulation": formulation, **options})
            await built.answer(one, Shown(frames))
        finally:
            await client.aclose()

    with FaultyServer(reply) as server:
        asyncio.run(run(server.url))
    texts = server.requests[0].texts
    assert_frozen("\n---\n".join(texts) + "\n", SNAPSHOTS / f"prompted_order_{formulation}.txt")
