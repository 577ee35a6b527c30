"""A plain model on ClinicalSkillQA: it is asked for the order and why, and what it says of why is kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from proctor.core import Answer, Item
from proctor.core.formats import ChoiceFormat, OrderingFormat
from proctor.media import view
from proctor.models import ModelClient, ModelSpec, Prompt, load_prompt
from proctor.runs import ask
from proctor.systems import ModelSystem, prompt_for_benchmark
from proctor.systems.replies import rationale_in
from tests.support.faulty_server import FaultyServer
from tests.support.key_frame_model import Instances
from tests.support.snapshot import assert_frozen
from tests.support.tiny_vlm import make_tiny_vlm

SNAPSHOTS = Path(__file__).parent / "snapshots"
WHY = "The scene is checked first, then the chest is bared, and compressions follow."


def answered(
    instances: Instances, model: str, *, url: str | None = None, condition: str = "video", prompt: Prompt | None = None
) -> Answer:
    async def run() -> Answer:
        settings = {"max_tokens": 8} if model.startswith("transformers:") else {}
        spec = ModelSpec.model_validate({"name": model, "base_url": url, "settings": settings, "retries": 0})
        client = ModelClient(spec)
        try:
            system = ModelSystem(client, prompt or prompt_for_benchmark("clinicalskillqa"))
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
    got = answered(instances.first(4), f"transformers:{weights}")
    assert got.extra["frames"] == 4
    assert isinstance(got.extra["rationale"], str)
