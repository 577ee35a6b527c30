"""What local weights can be trained on is what they are asked when they are examined: the same bytes and words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from proctor.core import ConfigurationError, Frame, Item
from proctor.core.formats import BinaryFormat, ChoiceFormat, TimestampsFormat
from proctor.models import ModelClient, ModelSpec, Query
from proctor.models.queries import GeneratedText
from proctor.models.weights import Weights
from proctor.systems import ModelSystem, Sampling

ITEMS = (
    Item(id="choice", group="v", question="What is it?", answer=ChoiceFormat(), options=("clip", "needle")),
    Item(id="when", group="v", question="When?", answer=TimestampsFormat(tolerance=1.0)),
    Item(id="seen", group="v", question="Is it seen?", answer=BinaryFormat()),
)


class Shown:
    """Three frames of a clip that begins at 60 s, or nothing."""

    def __init__(self, condition: str) -> None:
        self.condition = condition
        self.span = (60.0, 63.0) if condition == "video" else None

    async def frames(self, **asked: object) -> list[Frame]:
        times = [60.0, 61.0, 62.0] if self.condition == "video" else []
        return [Frame(b"jpeg %d" % time, time, f"t = {time:.1f} s") for time in times]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """What the weights are asked; they are never loaded."""
    queries: list[Query] = []

    def generate(_self: Weights, asked: Sequence[Query], _given_up: Callable[[], bool]) -> list[GeneratedText]:
        queries.extend(asked)
        return [GeneratedText("Answer: A", 1, 1, False) for _ in asked]

    monkeypatch.setattr(Weights, "load", lambda _self: None)
    monkeypatch.setattr(Weights, "generate", generate)
    return queries


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize("video_as", ["frames", "file"])
@pytest.mark.parametrize("condition", ["video", "text-only"])
@pytest.mark.parametrize("item", ITEMS, ids=[one.id for one in ITEMS])
def test_the_captured_query_is_the_one_that_is_sent(
    item: Item, condition: str, video_as: str, folder: Path, sent: list[Query]
) -> None:
    async def run() -> Query:
        client = ModelClient(ModelSpec(name=f"transformers:{folder}", settings={"max_tokens": 7, "seed": 3}))
        system = ModelSystem(client, sampling=Sampling(video_as="file" if video_as == "file" else "frames"))
        try:
            captured = await system.query(item, Shown(condition))
            assert sent == []
            await system.answer(item, Shown(condition))
        finally:
            await client.aclose()
        return captured

    captured = asyncio.run(run())
    assert sent == [captured]
    assert captured.choices.max_tokens == 7
    words = [part for part in captured.parts if isinstance(part, str)]
    assert item.question in words[-1]
    if condition == "text-only":
        assert len(captured.parts) == 1
    elif video_as == "file":
        assert [clip.seconds for clip in captured.clips] == [
            (60.0, 61.0, 62.0) if item.id == "when" else (0.0, 1.0, 2.0)
        ]
    else:
        times = [word for word in words if word.startswith("t = ")]
        first = {"when": "t = 60.0 s (00:01:00)"}.get(item.id, "t = 0.0 s")
        assert (len(times), times[0], captured.pictures[0]) == (3, first, b"jpeg 60")


def test_a_model_elsewhere_has_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        client = ModelClient(ModelSpec(name="m", base_url="http://localhost:9/v1"))
        try:
            await ModelSystem(client).query(ITEMS[0], Shown("video"))
        finally:
            await client.aclose()

    with pytest.raises(ConfigurationError, match=r"m: found a model elsewhere, expected local weights"):
        asyncio.run(run())
