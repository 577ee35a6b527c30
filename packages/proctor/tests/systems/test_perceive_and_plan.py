"""Descriptions picture by picture, a plan without pictures, one check: what is sent when, and what comes of it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from proctor.core import Answer, ConfigurationError, Frame, InputError, Item, Status, generator
from proctor.core.formats import OrderingFormat
from proctor.media import MediaLibrary, ShowsOriginals, view
from proctor.models import ModelClient, ModelSpec
from proctor.systems import build_system
from proctor.tasks.clinicalskillqa import READER
from proctor.tasks.clinicalskillqa.methods.perceive_and_plan import PerceiveAndPlan, sent_pictures
from tests.media.test_pose_files import CATEGORIES, image, numbers
from tests.support.faulty_server import Fault, FaultyServer, Request
from tests.support.figures import kneeler, manikin
from tests.support.key_frame_model import Instances, made_instances, run_method, sent
from tests.support.snapshot import assert_frozen
from tests.support.stills import Shown, picture

NAME = "perceive-and-plan"
SNAPSHOTS = Path(__file__).parent / "snapshots"
KEEP = {"problems": [], "revise": False}


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Instances:
    """With the time of every picture as it is sent, details and all."""
    made = made_instances(tmp_path_factory.mktemp("instances"))
    positions = dict(made.positions)
    for item in made.items:
        frames = asyncio.run(view(item, "video", made.library).frames())
        for frame, look in zip(frames, sent_pictures(frames, [None] * len(frames), {}), strict=True):
            position = made.positions[hashlib.sha256(frame.jpeg).hexdigest()]
            positions[hashlib.sha256(look.frame.jpeg).hexdigest()] = position
    return Instances(made.benchmark, made.library, positions)


def one_of(instances: Instances, frames: int = 4) -> Instances:
    item = next(item for item in instances.items if item.tags["frames"] == frames)
    benchmark = type(instances.benchmark)(**{**vars(instances.benchmark), "items": (item,)})
    return Instances(benchmark, instances.library, instances.positions)


def keys(instances: Instances) -> list[Any]:
    return [item.reference.answer for item in instances.items if item.reference is not None]


@dataclass
class Model:
    """It tells from a picture which moment it is; from descriptions, the order of the moments that they tell."""

    instances: Instances
    order: Callable[[list[str]], list[str]] = lambda order: order
    check: Callable[[list[str], list[str]], Any] = lambda _order, _right: KEEP
    plan: Any = None
    description: Any = None

    def __call__(self, request: Request) -> str:
        asked = sent(request)
        if asked.form == "Description":
            ((_, digest),) = asked.pictures
            if self.description is not None:
                return self._said(self.description, None)
            moment = self.instances.positions[digest]
            return json.dumps({"action": f"moment {moment} is shown", "devices": "a bag"})
        assert asked.pictures == ()
        moments = re.findall(r"Picture (\w)\n- doing: moment (\d)", request.text)
        right = [label for label, _ in sorted(moments, key=lambda one: int(one[1]))]
        if asked.form == "CheckReply":
            planned = re.search(r"planned this order: (.*)", request.text)
            assert planned is not None
            return json.dumps(self.check(planned[1].split(" > "), right))
        steps = [{"picture": label, "step": "a step", "anchor": "a moment"} for label in right]
        good = {"steps": steps, "rationale": "one after the other", "order": self.order(right)}
        return self._said(self.plan, good)

    @staticmethod
    def _said(instead: Any, good: Any) -> str:
        return instead if isinstance(instead, str) else json.dumps(good if instead is None else instead)


def answered(instances: Instances, model: Model | None = None, **more: Any) -> list[Answer]:
    with FaultyServer(model or Model(instances)) as server:
        return run_method(NAME, instances, server, **more)


# ── end to end ──


def test_with_a_good_model_every_order_is_right(instances: Instances) -> None:
    with FaultyServer(Model(instances)) as server:
        answers = run_method(NAME, instances, server)
    assert [answer.parsed for answer in answers] == keys(instances)
    for item, answer in zip(instances.items, answers, strict=True):
        n = int(str(item.tags["frames"]))
        assert (answer.extra["calls"], answer.extra["images"], answer.usage.requests) == (n + 2, n, n + 2)
        assert answer.extra["rationale"] == "one after the other"
        assert answer.extra["check"] == {"problems": [], "revised": False}
        assert len(json.dumps(answer.extra)) < 20_000
    forms = [(sent(request).form, len(request.image_bytes)) for request in server.requests]
    assert {one for one in forms if one[0] == "Description"} == {("Description", 1)}
    assert {one for one in forms if one[0] != "Description"} == {("PlanReply", 0), ("CheckReply", 0)}


def test_pictures_are_sent_without_their_labels_and_with_details(instances: Instances) -> None:
    one = one_of(instances)
    with FaultyServer(Model(one)) as server:
        answer = run_method(NAME, one, server)[0]
        plain = run_method(NAME, one, server, insets=False)[0]
    first = server.requests[0]
    assert not re.search(r"\b[BCD]\b|[Pp]icture A", first.text)
    assert "enlarged" in first.text
    assert "- red: a part that stands out or moves" in first.text
    assert plain.parsed == answer.parsed
    alone = server.requests[6]
    assert "enlarged" not in alone.text
    assert alone.image_bytes[0] < first.image_bytes[0]
    insets: Any = answer.extra["insets"]
    assert set(insets) == set("ABCD")
    assert all(one == ["stands out"] * len(one) and one for one in insets.values())


def test_pose_tells_where_head_and_chest_are(instances: Instances, tmp_path: Path) -> None:
    one = one_of(instances)
    name = one.items[0].id
    notes = {
        "images": [image(number, f"{name}/{label}.jpg") for number, label in enumerate("ABCD")],
        "annotations": [
            {"image_id": number, "category_id": 1, "keypoints": numbers(joints)}
            for number in range(4)
            for joints in (manikin(), kneeler())
        ],
        "categories": CATEGORIES,
    }
    file = tmp_path / "k.json"
    file.write_text(json.dumps(notes))
    told = {"action": "moment 0 is shown"}
    with FaultyServer(Model(one, description=told)) as server:
        answer = run_method(NAME, one, server, pose=str(file))[0]
        other = run_method(NAME, one, server, pose=str(file), condition="shuffled")[0]
        marked = run_method(NAME, one, server, chest="0.4,0.4,0.1,0.1")[0]
    assert answer.extra["insets"] == {label: ["head and airway", "chest and hands"] for label in list("ABCD")}
    assert "- blue: chest and hands" in server.requests[0].text
    seen: Any = other.extra["insets"]
    assert all(set(one) == {"stands out"} for one in seen.values())  # keypoints go by names, which lie there
    chest: Any = marked.extra["insets"]
    assert all("chest and hands" in one for one in chest.values())
    file.write_text(json.dumps({**notes, "images": notes["images"][:2], "annotations": []}))
    with FaultyServer() as server, pytest.raises(InputError, match=f"image '{name}/C': found none with this name"):
        run_method(NAME, one, server, pose=str(file))


# ── the check ──


def test_a_mediocre_plan_is_revised_once(instances: Instances) -> None:
    def swap(order: list[str]) -> list[str]:
        return [order[1], order[0], *order[2:]]

    def check(order: list[str], right: list[str]) -> Any:
        wrong = {"rule": "safety first", "pictures": order[:2], "evidence": "it is seen"}
        return {"problems": [wrong], "revise": True, "rationale": "now in order", "order": right}

    plain = answered(instances, Model(instances, order=swap))
    assert [a.parsed for a in plain] == [swap(key) for key in keys(instances)]
    revised = answered(instances, Model(instances, order=swap, check=check))
    assert [a.parsed for a in revised] == keys(instances)
    for answer, key in zip(revised, keys(instances), strict=True):
        assert answer.extra["rationale"] == "now in order"
        told: Any = answer.extra["check"]
        assert told["revised"] is True
        assert told["problems"] == [{"rule": "safety first", "pictures": [key[1], key[0]], "evidence": "it is seen"}]
        planned: Any = answer.extra["plan"]
        assert planned["order"] == swap(key)


@pytest.mark.parametrize(
    ("plan", "check", "parsed", "revised"),
    [
        (list("DBAC"), {"revise": False, "order": list("ABCD")}, "DBAC", False),  # a word without the deed
        (list("DBAC"), {"revise": True, "order": list("AB")}, "DBAC", False),  # an order with less in it
        (list("DBAC"), {"revise": True, "order": []}, "DBAC", False),
        (list("DBAC"), {"revise": True, "order": list("abcd")}, "ABCD", True),
        (list("DB"), {"revise": True, "order": list("ABCD")}, "ABCD", True),
        (list("DB"), {"revise": True, "order": list("DBA")}, "DBA", True),
        (list("DB"), {"revise": True, "order": ["A"]}, "DB", False),
    ],
)
def test_when_a_revision_counts(instances: Instances, plan: list[str], check: Any, parsed: str, revised: bool) -> None:
    model = Model(instances, order=lambda _: plan, check=lambda _order, _right: check)
    answer = answered(one_of(instances), model)[0]
    told: Any = answer.extra["check"]
    assert (answer.parsed, told["revised"]) == (list(parsed), revised)
    assert answer.extra["rationale"] == "one after the other"  # the check gave no other


# ── broken models ──

PROSE = "The pictures show a resuscitation."


@pytest.mark.parametrize(
    ("order", "parsed", "faults"),
    [
        (["d", "b", "a", "c"], list("DBAC"), None),
        (["D.jpg", "x/B.JPG", "Picture A", "frame_C"], list("DBAC"), None),
        ("D > B > A > C", list("DBAC"), None),
        (["D", "B"], list("DB"), {"missing": ["A", "C"]}),
        (["D", "B", "D", "A", "C"], list("DBDAC"), {"repeated": ["D"]}),
        (["X", "D", "B", "A", "C"], list("XDBAC"), {"unknown": ["X"]}),
        (["D"], None, {"missing": ["A", "B", "C"]}),
        ([], None, {"missing": list("ABCD")}),
    ],
)
def test_orders_with_faults_are_told_as_they_came(instances: Instances, order: Any, parsed: Any, faults: Any) -> None:
    plan = {"rationale": "", "order": order}
    answer = answered(one_of(instances), Model(instances, plan=plan))[0]
    assert (answer.status, answer.parsed) == (Status.ANSWERED, parsed)
    assert answer.extra.get("labels") == faults
    assert bool(answer.problem) == (parsed is None)


@pytest.mark.parametrize(
    "model",
    [
        {"description": PROSE},
        {"description": {}},  # no action: nothing is described
        {"plan": PROSE},
        {"plan": {"rationale": "no order"}},
        {"check": lambda _order, _right: {"problems": []}},
    ],
)
def test_no_reply_at_any_stage_is_a_failure_and_no_order(instances: Instances, model: dict[str, Any]) -> None:
    answer = answered(one_of(instances), Model(instances, **model))[0]
    assert (answer.status, answer.parsed, answer.text) == (Status.ERROR, None, "")
    assert answer.reason.startswith("openai:m: no readable reply in 3 tries")


@pytest.mark.parametrize("call", [0, 3, 4, 5])
def test_a_refusal_at_any_call_is_a_refusal(instances: Instances, call: int) -> None:
    script = [*[None] * call, Fault.CONTENT_FILTER]
    with FaultyServer(Model(instances), script=script) as server:
        answer = run_method(NAME, one_of(instances), server)[0]
    assert (answer.status, answer.text, server.count) == (Status.REFUSED, "", call + 1)


def test_faults_on_the_way_change_no_answer(instances: Instances) -> None:
    some = [Fault.SERVER_ERROR, None, Fault.TRUNCATED_JSON, Fault.EMPTY_CONTENT, None, Fault.RESET]
    with FaultyServer(Model(instances), script=some) as server:
        answers = run_method(NAME, instances, server)
    assert [answer.parsed for answer in answers] == keys(instances)


def test_a_model_that_breaks_every_time_in_another_way_crashes_nothing(instances: Instances) -> None:
    draw = generator(7, "broken")
    ways: list[Callable[[str], str]] = [
        lambda good: good,
        lambda _: PROSE,
        lambda _: "{}",
        lambda good: good.lower(),
        lambda good: good.replace('"A"', '"A.jpg"'),
        lambda good: good[: len(good) // 2],
        lambda good: f"```json\n{good}\n```",
        lambda _: '{"action": "\\u0000\\ud83d", "order": "", "rationale": "", "revise": true}',
    ]
    model = Model(instances)

    def reply(request: Request) -> str:
        return ways[int(draw.integers(len(ways)))](model(request) if "moment" in request.text else PROSE)

    with FaultyServer(reply) as server:
        answers = run_method(NAME, instances, server)
    for answer in answers:
        assert answer.status in {Status.ANSWERED, Status.FAILED, Status.ERROR}
        assert not answer.reason.startswith(("KeyError", "TypeError", "ValueError", "IndexError"))


def test_what_the_model_says_is_kept_within_bounds(instances: Instances) -> None:
    long = "so long " * 400
    description = dict.fromkeys(("action", "people", "devices", "anchor"), long)
    plan = {"steps": [{"picture": long, "step": long, "anchor": long}] * 60, "rationale": long, "order": list("ABCD")}
    check = {"problems": [{"rule": long, "pictures": [long] * 20, "evidence": long}] * 40, "revise": False}
    model = Model(instances, description=description, plan=plan, check=lambda _order, _right: check)
    answer = answered(one_of(instances), model)[0]
    assert answer.parsed == list("ABCD")
    assert len(json.dumps(answer.extra)) < 60_000


def test_without_pictures_there_are_two_calls(instances: Instances) -> None:
    with FaultyServer(Model(instances, plan={"rationale": "a guess", "order": list("ABCD")})) as server:
        answer = run_method(NAME, one_of(instances), server, condition="text-only")[0]
    assert (answer.extra["calls"], answer.extra["images"], answer.parsed) == (2, 0, list("ABCD"))
    assert "Of A, B, C, D there is no description." in server.requests[0].text


# ── details from the originals, rules, examples ──


def striped(folder: Path) -> Instances:
    """One instance of pictures of 1600 × 1200 with stripes of 2 pixels, each brighter than the one before."""
    stripes = np.arange(1600) % 4 < 2
    (folder / "q1").mkdir(parents=True)
    for number, label in enumerate("ABCD"):
        row = np.where(stripes, 160 + 20 * number, 20).astype(np.uint8)
        Image.fromarray(np.tile(row, (1200, 1))).convert("RGB").save(folder / "q1" / f"{label}.png")
    benchmark = READER.load(folder)
    return Instances(benchmark, MediaLibrary(benchmark.media_root, cache_dir=folder.parent / "cache"), {})


def pictures_sent(request: Request) -> list[Any]:
    parts = [part for message in request.body["messages"] for part in message["content"] if isinstance(part, dict)]
    jpegs = [
        base64.b64decode(part["image_url"]["url"].partition(",")[2]) for part in parts if part["type"] == "image_url"
    ]
    return [np.asarray(Image.open(io.BytesIO(jpeg)).convert("L"), dtype=float) for jpeg in jpegs]


@pytest.mark.parametrize(("condition", "least", "most"), [("video", 15, 256), ("black", 0, 6)])
def test_details_are_cut_from_the_original(tmp_path: Path, condition: str, least: float, most: float) -> None:
    """In a picture of 512 pixels such stripes are gone, and an inset cut from it shows none; and what is not to be
    seen is not to be seen in the details either."""
    one = striped(tmp_path / "task")
    model = Model(one, description={"action": "moment 0 is shown"}, plan={"order": list("ABCD"), "rationale": "why"})
    with FaultyServer(model) as server:
        run_method(NAME, one, server, condition=condition, chest="0.4,0.4,0.1,0.1")
    (picture,) = pictures_sent(server.requests[0])
    assert picture.shape == (384 + 192, 512)
    inset = picture[390:570, 6:250]
    assert least <= np.abs(np.diff(inset, axis=1)).mean() <= most
    assert np.abs(np.diff(picture[20:100, 6:120], axis=1)).mean() < 12


@pytest.mark.parametrize("condition", ["video", "shuffled", "black", "text-only"])
def test_originals_are_the_frames_with_more_pixels(tmp_path: Path, condition: str) -> None:
    """In the same order and under the same condition, or a detail would tell what the picture hides."""
    one = striped(tmp_path / "task")

    async def both() -> tuple[list[Frame], list[Frame]]:
        seen = view(one.items[0], condition, one.library, seed=3)
        assert isinstance(seen, ShowsOriginals)
        return await seen.frames(), await seen.originals()

    frames, originals = asyncio.run(both())
    assert len(frames) == len(originals) == (0 if condition == "text-only" else 4)
    for frame, original in zip(frames, originals, strict=True):
        small, large = (Image.open(io.BytesIO(one.jpeg)).convert("L") for one in (frame, original))
        assert (small.size, large.size) == ((512, 384), (1600, 1200))
        assert frame.label == original.label
        means = [float(np.asarray(picture, dtype=float).mean()) for picture in (small, large)]
        assert means[0] == pytest.approx(means[1], abs=1.5)


def test_the_check_knows_the_rules_and_what_is_free(instances: Instances) -> None:
    with FaultyServer(Model(instances)) as server:
        run_method(NAME, one_of(instances), server)
    plan, check = (
        next(request.text for request in server.requests if sent(request).form == form)
        for form in ("PlanReply", "CheckReply")
    )
    for text in (plan, check):
        assert "Rules of basic life support" in text
        assert "The chest is bared before pads are attached" in text
        assert "Free is the order of" in text


class Shot(Model):
    """A model that plans by the descriptions of the question alone."""

    def __call__(self, request: Request) -> str:
        *examples, own = request.text.split("Now plan this one.")
        if examples and sent(request).form == "PlanReply":
            moments = re.findall(r"Picture (\w)\n- doing: moment (\d)", own)
            right = [label for label, _ in sorted(moments, key=lambda one: int(one[1]))]
            return json.dumps({"steps": [], "rationale": "as in the examples", "order": right})
        return super().__call__(request)


def test_solved_instances_are_shown_to_the_plan(instances: Instances) -> None:
    """Their pictures are described once a run, in the same way; an item is never its own example."""
    source = str(instances.benchmark.media_root)
    with FaultyServer(Shot(instances)) as server:
        answers = run_method(NAME, instances, server, demonstrations=source, shots=1)
        blind = run_method(NAME, one_of(instances), server, demonstrations=source, condition="text-only")[0]
    assert [answer.parsed for answer in answers] == keys(instances)
    assert (blind.extra["calls"], blind.extra["images"], blind.extra["demonstrations"]) == (2, 0, [])
    shown: dict[str, int] = {}
    for item, answer in zip(instances.items, answers, strict=True):
        n = int(str(item.tags["frames"]))
        shown_here = answer.extra["demonstrations"]
        assert isinstance(shown_here, list)
        (one,) = shown_here
        assert one != item.id
        new = 0 if one in shown else len(next(each for each in READER.load(Path(source)).items if each.id == one).media)
        shown[str(one)] = new
        assert (answer.extra["calls"], answer.extra["images"]) == (n + 2 + new, n + new)
    assert len(shown) == 2  # the first instance, and the second one for the first
    plans = [request.text for request in server.requests if sent(request).form == "PlanReply"]
    assert "Example 1, solved. Its pictures were described so:" in plans[0]
    assert "The right order of example 1:" in plans[0]


# ── what is recorded, and the prompts ──


def test_settings_and_options() -> None:
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1"))

    def system(**options: Any) -> PerceiveAndPlan:
        built = build_system(NAME, [client], seed=0, options=options)
        assert isinstance(built, PerceiveAndPlan)
        return built

    plain = system().settings
    prompts: Any = plain["prompts_sha256"]
    assert set(prompts) == {"perceive", "plan", "check"}
    assert plain["insets"] is True
    assert set(plain["workflows"]) == {"cpr", "aed", "bmv"}  # type: ignore[arg-type]
    assert set(system(scenario="bmv").settings["workflows"]) == {"bmv"}  # type: ignore[arg-type]
    assert system(chest="0,0,1,1").settings["chest"] == {"x": 0, "y": 0, "width": 1, "height": 1}
    with pytest.raises(
        ConfigurationError, match=r"perceive-and-plan: option 'rename'.*\(its options: scenario, workflow, insets, pose"
    ):
        system(rename="none")


def test_looks_enlarge_what_was_found(instances: Instances) -> None:
    item = one_of(instances).items[0]
    frames = asyncio.run(view(item, "video", instances.library).frames())
    looks = sent_pictures(frames, [None] * 4, {})
    with Image.open(io.BytesIO(looks[0].frame.jpeg)) as opened:
        assert opened.size == (384, 216 + 144)
    assert [look.insets[0] for look in looks] == [("red", "")] * 4
    assert {look.frame.label for look in looks} == {""}
    assert [look.frame.jpeg for look in sent_pictures(frames, [None] * 4, {}, insets=False)] == [
        frame.jpeg for frame in frames
    ]


def test_the_prompts_are_frozen() -> None:
    one = Item(
        id="q1",
        group="v1",
        question="The pictures A, B and C are key frames of one recording of bag-mask ventilation, in mixed order. In "
        "which order were they taken?",
        answer=OrderingFormat(labels=("A", "B", "C")),
    )
    frames = [Frame(picture(step, step), None, label) for step, label in enumerate("AB")]
    wrong = {"rule": "r", "pictures": ["A"], "evidence": "e"}
    replies = {
        "Description": {"action": "the mask is taken", "head_airway": "no mask on the face", "unclear": "the bag"},
        "PlanReply": {
            "steps": [{"picture": "B", "step": "open the airway", "anchor": "head tilted"}],
            "rationale": "The mask is taken before it is used.",
            "order": ["B", "A", "C"],
        },
        "CheckReply": {"problems": [wrong], "revise": False},
    }

    async def run(url: str) -> None:
        client = ModelClient(ModelSpec(name="openai:m", base_url=url))
        try:
            await build_system(NAME, [client], seed=0, options={}).answer(one, Shown(frames))
        finally:
            await client.aclose()

    with FaultyServer(lambda request: json.dumps(replies[sent(request).form])) as server:
        asyncio.run(run(server.url))
    for position, name in ((0, "perceive"), (2, "plan"), (3, "check")):
        text = "\n---\n".join(server.requests[position].texts)
        assert_frozen(f"{text}\n", SNAPSHOTS / f"perceive_and_plan_{name}.txt")
