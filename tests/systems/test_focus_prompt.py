"""What a model is told of a FOCUS question: frozen, and with times by the recording's own clock."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proctor.construction import OBJECTS
from proctor.core import Frame, Item
from proctor.models import ModelClient, ModelSpec
from proctor.systems import ModelSystem, prompt_for_benchmark
from proctor.tasks.focus import READER
from tests.support.faulty_server import FaultyServer, Request
from tests.support.snapshot import assert_frozen

SNAPSHOTS = Path(__file__).parent / "snapshots"

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
        "format_kwargs": {"options": ["left", "right"]},
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
def test_the_prompt_is_frozen(name: str, empty: bool, tmp_path: Path) -> None:
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
