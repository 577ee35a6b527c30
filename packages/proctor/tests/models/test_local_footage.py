"""Clips for local weights: what times a processor makes of their frames."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import ConfigurationError, Frame, Item
from proctor.core.formats import BinaryFormat
from proctor.models import Footage, ModelClient, ModelSpec
from proctor.models.queries import Choices, Clip, Query
from proctor.models.weights import Weights
from proctor.systems import ModelSystem, Sampling
from tests.support.tiny_vlm import make_tiny_vlm

pytestmark = [pytest.mark.xdist_group("weights"), pytest.mark.usefixtures("offline")]

SECONDS = (0.0, 1.5, 2.0, 7.25)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_vlm(tmp_path_factory.mktemp("weights"))


def jpeg(grey: int) -> bytes:
    out = io.BytesIO()
    Pillow.fromarray(np.full((48, 64, 3), grey, dtype=np.uint8)).save(out, "JPEG")
    return out.getvalue()


class FilmProcessor:
    """Reads clips as Qwen3-VL's processor does (its own reading of the metadata, its own times), and hands the
    frames to the tiny model as pictures. The real one needs torchvision, which is not used here."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.tokenizer = inner.tokenizer
        self.video_processor = object()
        self.times: list[list[float]] = []

    def apply_chat_template(
        self, conversations: list[list[dict[str, Any]]], *, processor_kwargs: dict[str, Any], **more: Any
    ) -> Any:
        from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
        from transformers.video_utils import make_batched_metadata

        assert processor_kwargs.pop("do_sample_frames") is False
        parts = [part for message in conversations for turn in message for part in turn["content"]]
        videos = [part["video"] for part in parts if part["type"] == "video"]
        known = iter(make_batched_metadata(videos, processor_kwargs.pop("video_metadata")))
        for messages in conversations:
            for turn in messages:
                content: list[dict[str, Any]] = []
                for part in turn["content"]:
                    if part["type"] != "video":
                        content.append(part)
                        continue
                    told = next(known)
                    self.times.append(
                        Qwen3VLProcessor._calculate_timestamps(None, list(told.frames_indices), told.fps, 2)
                    )
                    content += [{"type": "image", "image": frame} for frame in part["video"]]
                turn["content"] = content
        return self.inner.apply_chat_template(conversations, processor_kwargs=processor_kwargs, **more)


def test_a_processor_is_told_the_time_of_every_frame(weights: Path) -> None:
    """Two frames make one patch, whose time is the mean of theirs; without metadata the times would be invented."""
    loaded = Weights(str(weights), str(weights), "cpu")
    loaded.load()
    processor = FilmProcessor(loaded._processor)
    loaded._processor = processor
    clips = [
        Clip(tuple(jpeg(40 * k) for k in range(4)), SECONDS),
        Clip(tuple(jpeg(50 * k) for k in range(4)), (3.0, 4.0, 5.0, 6.0)),
    ]
    queries = [Query("", (clip, "What is done?"), Choices(max_tokens=4)) for clip in clips]
    said = loaded.generate(queries, lambda: False)
    assert [len(one.text) > 0 for one in said] == [True, True]
    assert processor.times == [[0.75, 4.625], [3.5, 5.5]]


class Shown:
    condition = "video"
    span = (60.0, 70.0)

    async def frames(self, **asked: Any) -> list[Frame]:
        del asked
        return [Frame(jpeg(90), 60.0 + time, f"t = {60 + time:.1f} s") for time in SECONDS]


def test_a_processor_that_takes_no_video_says_so_in_one_line(weights: Path) -> None:
    async def run() -> None:
        client = ModelClient(ModelSpec(name=f"transformers:{weights}", settings={"max_tokens": 4}))
        system = ModelSystem(client, sampling=Sampling(video_as="file"))
        item = Item(id="q", group="v", question="Is it shown?", answer=BinaryFormat())
        try:
            await system.answer(item, Shown())
        finally:
            await client.aclose()

    with pytest.raises(ConfigurationError) as raised:
        asyncio.run(run())
    assert str(raised.value) == f"transformers:{weights}: its processor takes no video: use --video-as frames"


def test_the_system_hands_over_one_clip_with_times_from_its_start(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    async def ask(self: ModelClient, parts: Any, *, system: str = "") -> Any:
        given.extend(parts)
        raise ConfigurationError("enough")

    monkeypatch.setattr(ModelClient, "ask", ask)
    client = ModelClient(ModelSpec(name=f"transformers:{weights}"))
    system = ModelSystem(client, sampling=Sampling(video_as="file"))
    item = Item(id="q", group="v", question="Is it shown?", answer=BinaryFormat())
    with pytest.raises(ConfigurationError, match="enough"):
        asyncio.run(system.answer(item, Shown()))
    footage, text = given
    assert isinstance(footage, Footage)
    assert tuple(frame.time for frame in footage.frames) == SECONDS
    assert text.startswith("The video above is a recording, or a part of one.")
