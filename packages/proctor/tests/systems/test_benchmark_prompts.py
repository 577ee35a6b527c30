"""The prompts of ClinicalSkillQA and FOCUS: frozen, and what replies to them are read as."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from proctor.core import Answer, Frame, Item
from proctor.core.formats import ChoiceFormat, OrderingFormat, rationale_in
from proctor.media import view
from proctor.models import ModelClient, ModelSpec, Prompt, load_prompt
from proctor.runs import ask
from proctor.systems import ModelSystem, prompt_for_benchmark
from proctor.tasks.focus import READER
from proctor.tracks import OBJECTS
from tests.support.faulty_server import FaultyServer, Request
from tests.support.key_frame_model import Instances
from tests.support.snapshot import assert_frozen
from tests.support.tiny_vlm import make_tiny_vlm

SNAPSHOTS = Path(__file__).parent / "snapshots"
WHY = "The scene is checked first, then the chest is bared, and compressions follow."


def answered(
    instances: Instances,
    model: str,
    *,
    url: str | None = None,
    condition: str = "video",
    prompt: Prompt | None = None,
    orders: Literal["schema", "text"] | None = None,
) -> Answer:
    async def run() -> Answer:
        settings = {"max_tokens": 8} if model.startswith("transformers:") else {}
        spec = ModelSpec.model_validate({"name": model, "base_url": url, "settings": settings, "retries": 0})
        client = ModelClient(spec)
        try:
            system = ModelSystem(client, prompt or prompt_for_benchmark("clinicalskillqa"), orders=orders)
            return await ask(system, instances.items[0], lambda one: view(one, condition, instances.library))
        finally:
            await client.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize(("condition", "shown"), [("video", 4), ("text-only", 0)])
def test_the_prompt_is_frozen(instances: Instances, condition: str, shown: int) -> None:
    """Order and rationale are asked for; without a frame the model is told that there is nothing to see."""
    with FaultyServer(f"Rationale: {WHY}\nAnswer: D > B > A > C") as server:
        got = answered(instances.first(4), "openai:m", url=server.url, condition=condition)
    (request,) = server.requests
    assert len(request.image_bytes) == shown
    assert_frozen("\n-----\n".join(request.texts) + "\n", SNAPSHOTS / f"clinicalskillqa_{condition}.txt")
    assert "Rationale" in request.text
    assert ("nothing to see" in request.text) == (condition == "text-only")
    assert (got.parsed, got.extra["rationale"]) == (["D", "B", "A", "C"], WHY)


def test_the_prompt_beside_a_schema_is_frozen(instances: Instances) -> None:
    with FaultyServer(json.dumps({"rationale": WHY, "order": ["D", "B", "A", "C"]})) as server:
        got = answered(instances.first(4), "openai:m", url=server.url, orders="schema")
    (request,) = server.requests
    assert_frozen("\n-----\n".join(request.texts) + "\n", SNAPSHOTS / "clinicalskillqa_schema_video.txt")
    assert (got.parsed, got.extra["rationale"]) == (["D", "B", "A", "C"], WHY)


@pytest.mark.parametrize("count", [2, 4, 6, 26])
def test_no_prompt_shows_an_order_as_an_example(count: int) -> None:
    """A > B > C as an example is a hint to answer A > B > C."""
    labels = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count])
    form = OrderingFormat(labels=labels)
    assert ">" in form.instruction()
    assert not any(f"{one} >" in form.instruction() or f"> {one}" in form.instruction() for one in labels)


REPLIES = [
    (f"Rationale: {WHY}\nAnswer: B > A", WHY),
    (f"**Rationale:** {WHY}\n\n**Answer:** B > A", WHY),
    (f"## Rationale:\n{WHY}\n## Answer: B > A", WHY),
    (f"{WHY}\n\nAnswer: B > A", WHY),
    (f"Answer: B > A\n\n{WHY}", WHY),
    (f"Answer: B > A\nRationale: {WHY}", WHY),
    (f"<think>A or B? Answer: A > B</think>\nRationale: {WHY}\nAnswer: B > A", WHY),
    (f"A or B? Rationale: none.\n</think>\nRationale: {WHY}\nAnswer: B > A", WHY),
    (json.dumps({"rationale": WHY, "order": ["B", "A"]}), WHY),
    ("```json\n" + json.dumps({"order": ["B", "A"], "Reasoning": WHY}) + "\n```", WHY),
    ("Answer: B > A", ""),
    ("B > A", ""),
    (json.dumps({"order": ["B", "A"]}), ""),
    ("Rationale:\nAnswer: B > A", ""),
    ("<think>" + WHY, ""),
    ("", ""),
    ("{" * 20_000, ""),
    ("\n" * 40_000, ""),
    ("<think>" * 6_000, ""),
    ("Rationale: " * 4_000, None),
]


@pytest.mark.parametrize(("reply", "why"), REPLIES, ids=[str(number) for number in range(len(REPLIES))])
def test_the_rationale_of_a_reply(reply: str, why: str | None) -> None:
    found = rationale_in(reply)
    assert why is None or found == why


def test_what_was_not_asked_for_is_not_noted_as_missing(instances: Instances, tmp_path: Path) -> None:
    """An empty rationale says that one was asked for; a prompt that asks for none leaves none."""
    bare = tmp_path / "bare.txt.j2"
    bare.write_text("{{ question }} {{ instruction }}")
    with FaultyServer("Answer: D > B > A > C") as server:
        own = answered(instances.first(4), "openai:m", url=server.url)
        other = answered(instances.first(4), "openai:m", url=server.url, prompt=load_prompt(bare))
    assert own.extra["rationale"] == ""
    assert "rationale" not in other.extra


def test_other_formats_have_no_rationale(instances: Instances) -> None:
    item = Item(id="q", group="v", question="Which?", answer=ChoiceFormat(), options=("one", "two"))
    with FaultyServer(f"Answer: A\n{WHY}") as server:
        got = answered(instances.only(item), "openai:m", url=server.url, condition="text-only")
    assert "rationale" not in got.extra


@pytest.mark.xdist_group("weights")
def test_local_weights_are_asked_for_both(
    instances: Instances, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    weights = make_tiny_vlm(tmp_path)
    got = answered(instances.first(4), f"transformers:{weights}", orders="schema")
    assert got.extra["frames"] == 4
    assert got.extra["asked_by"] == "text"  # nothing decodes by a schema there
    assert isinstance(got.extra["rationale"], str)


QUESTIONS: dict[str, dict[str, Any]] = {
    "class": {"format": "fo_class", "answer": "Tape, sponge", "question": "Which objects are in the cavity?"},
    "time": {"format": "time", "answer": "00:20:10", "question": "When was the needle last seen?"},
    "free_text": {
        "format": "open_ended",
        "answer": "To keep the bowel aside.",
        "question": "Why was the sponge of 00:20:03 brought in?",
    },
    "choice": {
        "format": "multiple_choice",
        "options": ["left", "right"],
        "answer": "right",
        "question": "On which side of the spleen does the clip lie?",
    },
}


@dataclass
class Shown:
    """A view of two frames of a segment that begins at 20 minutes, or of nothing."""

    empty: bool
    condition: str = "video"
    span: tuple[float, float] | None = (1200.0, 1260.0)

    async def frames(self, **asked: Any) -> list[Frame]:
        del asked
        times = () if self.empty else (1200.0, 1215.5)
        return [Frame(b"\xff\xd8", time, f"t = {time:.1f} s") for time in times]


def items(folder: Path) -> dict[str, Item]:
    requests, references = [], []
    for name, given in QUESTIONS.items():
        requests.append(
            {
                "qID": name,
                "videoID": "v1.mp4",
                "start_time": 1200.0,
                "end_time": 1260.0,
                "procedure_type": "sigmoid resection",
                "question": given["question"],
            }
        )
        references.append({"qID": name, "primary": "fo_usage_purpose"} | given)
    (folder / "requests.json").write_text(json.dumps(requests))
    (folder / "references.json").write_text(json.dumps(references))
    return {item.id: item for item in READER.on_track("segment").load(folder).items}


def asked(item: Item, *, empty: bool = False, condition: str = "video") -> Request:
    async def run(server: FaultyServer) -> None:
        client = ModelClient(ModelSpec(name="openai:m", base_url=server.url))
        prompt = prompt_for_benchmark("focus")
        system = ModelSystem(client, prompt, briefing=READER.briefing)
        await system.answer(item.as_asked(), Shown(empty, condition))
        await client.aclose()

    with FaultyServer("none") as server:
        asyncio.run(run(server))
    return server.requests[0]


@pytest.mark.parametrize("empty", [False, True], ids=["frames", "blind"])
@pytest.mark.parametrize("name", list(QUESTIONS))
def test_the_prompt_of_focus_is_frozen(name: str, empty: bool, tmp_path: Path) -> None:
    request = asked(items(tmp_path)[name], empty=empty, condition="text-only" if empty else "video")
    shown = "blind" if empty else "frames"
    assert_frozen("\n-----\n".join(request.texts) + "\n", SNAPSHOTS / f"focus_{name}_{shown}.txt")


def test_everything_that_the_challenge_gives_is_told(tmp_path: Path) -> None:
    text = asked(items(tmp_path)["class"]).text
    assert "(Procedure: sigmoid resection. Asked at 00:21:00.)" in text
    for name, meaning in OBJECTS.items():
        assert f"- {name}: {meaning}" in text
    assert "or none. The classes are: " in text
    assert ", Sponge, Tape." in text  # a class that only the references name: the list is open


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_frames_have_the_recording_s_own_clock_as_the_questions_do(name: str, tmp_path: Path) -> None:
    texts = asked(items(tmp_path)[name]).texts
    assert texts[1:3] == ("t = 1200.0 s (00:20:00)", "t = 1215.5 s (00:20:15)")


def test_other_definitions_are_other_settings() -> None:
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1"))
    told, bare = ModelSystem(client, briefing=READER.briefing), ModelSystem(client)
    assert told.settings == bare.settings | {"briefing_sha256": told.settings["briefing_sha256"]}
    asyncio.run(client.aclose())


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Gallstone", "In a specimen bag it counts as retrieved"),
        ("Specimen", "In a specimen bag it counts as retrieved"),
        ("Needle", "a thread without it is no needle in view"),
        ("Clip", "not while it still sits in the applier"),
        ("Specimen Bag", "where only the string is to be seen, the bag is not in view"),
    ],
)
def test_models_are_told_how_the_challenge_counts(name: str, rule: str, tmp_path: Path) -> None:
    assert rule in OBJECTS[name]
    assert rule in "\n".join(asked(items(tmp_path)["class"]).texts)
