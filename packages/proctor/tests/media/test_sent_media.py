"""What of an item's media reaches a model over the wire: the same prefix for questions on one video, and video
files where the provider takes them."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import av
import pytest

from proctor.core import Answer, Benchmark, ConfigurationError, InputError, Item, Reference, VideoClip
from proctor.core.formats import AnswerFormat, ChoiceFormat, TimestampsFormat
from proctor.media import MediaLibrary, view
from proctor.metrics import AccuracyScorer
from proctor.models import ModelClient, ModelSpec, rejection
from proctor.runs import Limits, Store, execute, plan
from proctor.systems import ModelSystem, Sampling
from tests.support.clock_video import ClockVideo, shown_by_decoding, write_clock_video
from tests.support.faulty_server import Fault, FaultyServer
from tests.support.provider_server import ProviderServer, candidate


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("media")
    for name, length in (("a", 6000), ("b", 7000)):
        write_clock_video(root / f"{name}.mp4", ClockVideo(times_ms=range(0, length, 100), rate=10, keyint=10))
    return root


def question(item_id: str, source: str, start: float, end: float, answer: AnswerFormat | None = None) -> Item:
    return Item(
        id=item_id,
        group=source,
        question=f"What is {item_id}?",
        options=("one", "two"),
        answer=answer or ChoiceFormat(),
        media=(VideoClip(source=source, start=start, end=end),),
        reference=Reference(answer="A"),
    )


def test_questions_on_one_window_go_out_together_with_the_same_prefix(root: Path, tmp_path: Path) -> None:
    """Asked in any order, eight questions on two videos and two windows each reach the server window by window,
    from a video's start to its end; all that stands before a question is the same to the last byte."""
    windows = [("b", 3.0, 6.0), ("a", 0.0, 2.0), ("b", 0.0, 3.0), ("a", 0.0, 4.0)]
    items = [question(f"q{k}{n}", *window) for n in range(2) for k, window in enumerate(windows)]
    benchmark = Benchmark("toy", "Toy", tuple(items), AccuracyScorer().metrics, "accuracy", media_root=root)
    store = Store(str(tmp_path / "runs.db"))
    with FaultyServer("Answer: A", cached_tokens=30) as server:

        async def run() -> int:
            client = ModelClient(ModelSpec(name="m", base_url=server.url))
            library = MediaLibrary(root, cache_dir=tmp_path / "cache")
            planned = plan(store, benchmark, [ModelSystem(client)], ["video"], library, scorers=[])
            outcome = await execute(store, planned, Limits(concurrency=1))
            await client.aclose()
            return outcome.tally.usage.cached_tokens

        assert asyncio.run(run()) == 8 * 30
    sent = [request.body["messages"] for request in server.requests]
    asked = [request.text.partition("What is ")[2][:3] for request in server.requests]
    assert [name[:2] for name in asked] == ["q1", "q1", "q3", "q3", "q2", "q2", "q0", "q0"]
    prefixes = [json.dumps([messages[0], messages[1]["content"][:-1]]) for messages in sent]
    assert all("image_url" in prefix for prefix in prefixes)
    assert prefixes[::2] == prefixes[1::2]
    assert len(set(prefixes)) == 4
    pictures = [_pictures(messages) for messages in sent]
    assert pictures[2][: len(pictures[0])] == pictures[0]  # a longer window goes on where the shorter one ends


def _pictures(messages: list[Any]) -> list[str]:
    return [part["image_url"]["url"] for part in messages[1]["content"] if part["type"] == "image_url"]


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    monkeypatch.setenv("GOOGLE_API_KEY", "no-key-at-all")
    with ProviderServer(candidate("Answer: B")) as server:
        yield server


def answered(gemini: ProviderServer, root: Path, item: Item, condition: str = "video") -> Answer:
    async def run() -> Answer:
        client = ModelClient(ModelSpec(name="google:gemini-3-pro", base_url=gemini.url, retries=0))
        system = ModelSystem(client, sampling=Sampling(video_as="file"))
        shown = view(item, condition, MediaLibrary(root, cache_dir=root / "cache"))
        try:
            return await system.answer(item.as_asked(), shown)
        finally:
            await client.aclose()

    return asyncio.run(run())


def test_a_clip_is_sent_as_a_video_file_where_the_provider_takes_it(gemini: ProviderServer, root: Path) -> None:
    got = answered(gemini, root, question("q", "a", 1.0, 3.0))
    parts = gemini.asked[0].body["contents"][0]["parts"]
    assert parts[0]["inlineData"]["mime_type"] == "video/mp4"
    mp4 = base64.urlsafe_b64decode(parts[0]["inlineData"]["data"])
    with av.open(io.BytesIO(mp4), "r") as container:
        assert sum(1 for _ in container.decode(video=0)) == 20
    assert [list(part) for part in parts] == [["inlineData"], ["text"]]
    assert parts[1]["text"].startswith("The video above is a recording, or a part of one.")
    assert (got.text, got.usage.cached_tokens) == ("Answer: B", 50)
    assert (got.extra["frames"], got.extra["video_bytes"]) == (0, len(mp4))


def test_where_a_time_is_asked_for_the_model_is_told_when_the_clip_begins(gemini: ProviderServer, root: Path) -> None:
    answered(gemini, root, question("q", "a", 1.0, 3.0, TimestampsFormat()))
    parts = gemini.asked[0].body["contents"][0]["parts"]
    assert parts[0]["text"] == "this video begins at 00:00:01 of the recording"
    assert "inlineData" in parts[1]


def test_a_blind_run_sends_no_file(gemini: ProviderServer, root: Path) -> None:
    got = answered(gemini, root, question("q", "a", 1.0, 3.0), "text-only")
    (part,) = gemini.asked[0].body["contents"][0]["parts"]
    assert part["text"].startswith("Question: What is q?")
    assert "video_bytes" not in got.extra


def asked_of_a_server(root: Path, condition: str, cache: Path, *, script: Sequence[Fault | None] = ()) -> Any:
    """The content of the user's message as it arrived."""

    async def run(url: str) -> None:
        client = ModelClient(ModelSpec(name="qwen3.5", base_url=url, retries=0))
        system = ModelSystem(client, sampling=Sampling(video_as="file"))
        item = question("q", "sound", 1.0, 3.0)
        try:
            await system.answer(item.as_asked(), view(item, condition, MediaLibrary(root, cache_dir=cache)))
        finally:
            await client.aclose()

    with FaultyServer("Answer: A", script=script) as server:
        asyncio.run(run(server.url))
    return server.requests[0].body["messages"][-1]["content"]


@pytest.fixture(scope="module")
def sounding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sounding")
    video = ClockVideo(times_ms=range(0, 6000, 100), rate=10, keyint=10, audio_s=6.0)
    write_clock_video(root / "sound.mp4", video)
    return root


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [("video", list(range(10, 30))), ("reversed", list(range(29, 9, -1))), ("single-frame", [20])],
)
def test_an_openai_compatible_server_gets_the_clip_s_own_frames_and_no_sound(
    sounding: Path, tmp_path: Path, condition: str, numbers: list[int]
) -> None:
    video, text = asked_of_a_server(sounding, condition, tmp_path)
    assert (video["type"], list(video), text["type"]) == ("video_url", ["type", "video_url"], "text")
    head, _, encoded = video["video_url"]["url"].partition(",")
    assert head == "data:video/mp4;base64"
    file = tmp_path / "arrived.mp4"
    file.write_bytes(base64.b64decode(encoded, validate=True))
    with av.open(str(file)) as container:
        assert [stream.type for stream in container.streams] == ["video"]
    shown = shown_by_decoding(file)
    assert [number for _, number in shown] == numbers
    if condition == "video":
        assert [round(float(time), 2) for time, _ in shown] == [round(0.1 * k, 2) for k in range(20)]


def test_a_blind_run_sends_the_server_no_file(sounding: Path, tmp_path: Path) -> None:
    parts = asked_of_a_server(sounding, "text-only", tmp_path)
    assert isinstance(parts, str) or [part["type"] for part in parts] == ["text"]


@pytest.mark.parametrize("said", ["Unknown part type: video_url", "At most 0 video(s) may be provided in one prompt."])
def test_a_server_whose_model_takes_no_video_ends_the_run_and_fails_no_item(said: str) -> None:
    assert isinstance(rejection(said), ConfigurationError)


def test_where_the_model_takes_no_files_it_is_said_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no-key-at-all")
    client = ModelClient(ModelSpec(name="openai:gpt-5.2"))
    with pytest.raises(ConfigurationError, match="this model takes no video files: use --video-as frames"):
        ModelSystem(client, sampling=Sampling(video_as="file"))


def test_a_broken_video_is_no_file(gemini: ProviderServer, root: Path) -> None:
    (root / "broken.mp4").write_bytes(b"no video")
    with pytest.raises(InputError, match=r"broken\.mp4: found an unreadable video"):
        answered(gemini, root, question("q", "broken", 0.0, 1.0))
    assert gemini.asked == []
