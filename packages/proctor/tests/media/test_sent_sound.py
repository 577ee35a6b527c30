"""What of an item's sound reaches a model over the wire, byte for byte, and what a system that can't listen is told."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.core import (
    Answer,
    AudioClip,
    Benchmark,
    ConfigurationError,
    Frame,
    Item,
    Media,
    Reference,
    Status,
    VideoClip,
)
from proctor.core.formats import ChoiceFormat, TimestampsFormat
from proctor.media import MediaLibrary, Sound, view
from proctor.metrics import AccuracyScorer
from proctor.models import ModelClient, ModelSpec, rejection
from proctor.runs import Limits, Outcome, PlanOptions, Reproducer, Store, estimate_runs, execute, plan, recorded
from proctor.systems import ModelSystem, Sampling, prompt_as_sent, prompt_for_benchmark, system
from tests.support.faulty_server import FaultyServer
from tests.support.provider_server import ProviderServer, candidate
from tests.support.sounds import heard, sounding, tones, write_sound, write_video


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("media")
    write_video(root / "v.mp4", 4.0, tones(4.0, [(1.0, 2.0, 700.0)]))
    write_sound(root / "r.mp3", tones(3.0, [(0.5, 1.0, 900.0)]))
    return root


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    monkeypatch.setenv("GOOGLE_API_KEY", "no-key-at-all")
    with ProviderServer(candidate("Answer: B")) as server:
        yield server


CLIP = VideoClip(source="v.mp4", start=0.5, end=3.0, audio=True)
RECORDING = AudioClip(source="r.mp3", end=2.0)


def question(name: str, *media: Media) -> Item:
    return Item(
        id=name,
        group=name,
        question="What is said?",
        options=("one", "two"),
        answer=ChoiceFormat(),
        media=media,
        reference=Reference(answer="A"),
    )


def benchmark(root: Path, *items: Item) -> Benchmark:
    return Benchmark("toy", "Toy", items, AccuracyScorer().metrics, "accuracy", media_root=root)


def asked(root: Path, item: Item, condition: str) -> tuple[list[Any], Answer]:
    """The parts of the user's message as the server got them, and the answer."""

    async def run(url: str) -> Answer:
        client = ModelClient(ModelSpec(name="m", base_url=url))
        prompt = prompt_for_benchmark("toy", sounding=True)
        shown = view(item, condition, MediaLibrary(root, cache_dir=root / "cache"))
        try:
            return await ModelSystem(client, prompt, sampling=Sampling(count=2)).answer(item.as_asked(), shown)
        finally:
            await client.aclose()

    with FaultyServer("Answer: A") as server:
        answer = asyncio.run(run(server.url))
        system, user = server.requests[0].body["messages"]
    return [system["content"], *(user["content"] if isinstance(user["content"], list) else [user["content"]])], answer


def sent_sounds(parts: list[Any]) -> list[bytes]:
    found = [part["input_audio"] for part in parts if isinstance(part, dict) and part["type"] == "input_audio"]
    assert all(part["format"] == "wav" for part in found)
    return [base64.b64decode(part["data"]) for part in found]


def pictures(parts: list[Any]) -> int:
    return sum(isinstance(part, dict) and part["type"] == "image_url" for part in parts)


def texts(parts: list[Any]) -> list[str]:
    return [
        part if isinstance(part, str) else part["text"] for part in parts if isinstance(part, str) or "text" in part
    ]


def test_the_sound_of_a_clip_is_sent_as_the_protocol_has_it(root: Path) -> None:
    parts, answer = asked(root, question("q", CLIP), "video")
    (wav,) = sent_sounds(parts)
    samples = heard(wav)
    assert (len(samples), pictures(parts)) == (40_000, 2)
    assert sounding(samples) == pytest.approx((0.5, 1.5), abs=0.003)
    assert wav == MediaLibrary(root, cache_dir=root / "cache").sound(CLIP, (0.5, 3.0))
    told = texts(parts)
    assert "sound of the clip, from t = 0.0 s to t = 2.5 s" in told
    assert "seen and heard" in told[0]
    assert answer.extra["sounds"] == 1


def test_a_recording_alone_is_sent_without_any_picture(root: Path) -> None:
    parts, _ = asked(root, question("q", RECORDING), "video")
    (wav,) = sent_sounds(parts)
    assert (len(heard(wav)), pictures(parts)) == (32_000, 0)
    assert "recording, from t = 0.0 s to t = 2.0 s" in texts(parts)
    assert "what can be heard" in texts(parts)[0]


@pytest.mark.parametrize(
    ("condition", "shown", "played", "said"),
    [
        ("muted", 2, 0, "No sound is played this time"),
        ("speech-only", 0, 1, "No picture is shown this time"),
        ("text-only", 0, 0, "nothing of it is shown or played"),
        ("black", 2, 1, "seen and heard"),
    ],
)
def test_what_a_condition_takes_away_does_not_arrive(
    root: Path, condition: str, shown: int, played: int, said: str
) -> None:
    plain, _ = asked(root, question("q", CLIP), "video")
    parts, _ = asked(root, question("q", CLIP), condition)
    assert (pictures(parts), len(sent_sounds(parts))) == (shown, played)
    assert said in texts(parts)[0]
    if played:
        assert sent_sounds(parts) == sent_sounds(plain)
    if condition == "muted":
        assert [part for part in parts if "image_url" in part] == [part for part in plain if "image_url" in part]


def test_where_a_condition_leaves_nothing_the_model_is_told(root: Path) -> None:
    for item, condition in ((question("q", RECORDING), "muted"),):
        parts, _ = asked(root, item, condition)
        assert (pictures(parts), sent_sounds(parts)) == (0, [])
        assert "nothing of it is shown or played" in texts(parts)[0]


def test_times_are_told_by_the_recordings_clock_where_the_answer_is_one(root: Path) -> None:
    item = question("q", CLIP).model_copy(update={"answer": TimestampsFormat(), "options": ()})
    parts, _ = asked(root, item, "speech-only")
    assert "sound of the clip, from t = 0.5 s to t = 3.0 s (00:00:00 to 00:00:03)" in texts(parts)


def test_benchmarks_without_sound_are_asked_as_ever(root: Path) -> None:
    item = question("q", CLIP.model_copy(update={"audio": False}))
    parts, answer = asked(root, item, "video")
    assert sent_sounds(parts) == []
    assert "sounds" not in answer.extra
    assert prompt_for_benchmark("toy").sha256 == prompt_for_benchmark("toy", sounding=False).sha256
    assert prompt_for_benchmark("toy").name == "model_answer.txt.j2"


def test_google_gets_audio_parts(gemini: ProviderServer, root: Path) -> None:
    async def run() -> Answer:
        client = ModelClient(ModelSpec(name="google:gemini-3-pro", base_url=gemini.url, retries=0))
        item = question("q", CLIP, RECORDING)
        shown = view(item, "video", MediaLibrary(root, cache_dir=root / "cache"))
        try:
            return await ModelSystem(client, sampling=Sampling(video_as="file")).answer(item.as_asked(), shown)
        finally:
            await client.aclose()

    asyncio.run(run())
    parts = [part["inlineData"] for part in gemini.asked[0].body["contents"][0]["parts"] if "inlineData" in part]
    assert [part["mime_type"] for part in parts] == ["video/mp4", "audio/wav", "audio/wav"]
    library = MediaLibrary(root, cache_dir=root / "cache")
    assert [base64.urlsafe_b64decode(part["data"]) for part in parts[1:]] == [
        library.sound(CLIP, (0.5, 3.0)),
        library.sound(RECORDING, (0.0, 2.0)),
    ]


def ran(
    root: Path, store: Store, *items: Item, systems: list[Any], conditions: list[str], client: ModelClient | None = None
) -> Outcome:
    library = MediaLibrary(root, cache_dir=root / "cache")

    async def run() -> Outcome:
        planned = plan(store, benchmark(root, *items), systems, conditions, library, scorers=[])
        outcome = await execute(store, planned, Limits(concurrency=1))
        if client is not None:
            await client.aclose()
        return outcome

    return asyncio.run(run())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "runs.db"))


NO_SOUND = (
    "anthropic:claude takes no sound, which belongs to 1 question of toy under video: use --condition muted, or a "
    "system "
    "that takes it (google:…, openai-chat:gpt-audio, an OpenAI-compatible server with --base-url, a function with a "
    "parameter sounds)"
)


def test_a_model_that_takes_no_sound_is_refused_before_anything_is_asked(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "no-key-at-all")
    client = ModelClient(ModelSpec(name="anthropic:claude"))
    deaf = ModelSystem(client)
    with pytest.raises(ConfigurationError) as told:
        ran(root, store, question("q", CLIP), systems=[deaf], conditions=["video"])
    assert str(told.value) == NO_SOUND
    assert store.benchmark_names() == []
    library = MediaLibrary(root, cache_dir=root / "cache")
    with pytest.raises(ConfigurationError, match="takes no sound"):
        estimate_runs(None, benchmark(root, question("q", CLIP)), [deaf], ["speech-only"], library, PlanOptions())
    assert estimate_runs(None, benchmark(root, question("q", CLIP)), [deaf], ["muted"], library, PlanOptions())
    with pytest.raises(ConfigurationError, match=r"anthropic:claude: this model takes no sound: use --condition muted"):
        asyncio.run(client.ask([Sound(b"RIFF", "", (0.0, 1.0)), "What is said?"]))


@pytest.mark.parametrize(("condition", "media", "why"), [
    ("muted", (CLIP.model_copy(update={"audio": False}),), ("no item has sound (`audio: true` in benchmark.yaml says "
                                                           "that a video's belongs to the question)")),
    ("speech-only", (), ("no item has sound (`audio: true` in benchmark.yaml says that a video's belongs to the "
                        "question)")),
    ("speech-only", (RECORDING,), "no item has pictures beside its sound"),
])  # fmt: skip
def test_conditions_of_sound_are_refused_where_they_make_no_sense(
    root: Path, store: Store, condition: str, media: tuple[Media, ...], why: str
) -> None:
    with pytest.raises(ConfigurationError) as told:
        ran(root, store, question("q", *media), systems=[listens], conditions=[condition])
    assert str(told.value) == f"condition '{condition}' makes no sense for toy: {why}"


@system
def listens(sounds: list[Sound], frames: list[Frame]) -> str:
    """Says A where it hears something, and B where not."""
    del frames
    return "Answer: A" if sounds else "Answer: B"


@system
def looks(frames: list[Frame]) -> str:
    """Has no ears."""
    return f"Answer: {'A' if frames else 'B'}"


@system
def forgets(view: Any) -> str:
    """Could listen, and does not."""
    view.frames(count=1)
    return "Answer: A"


@system
def opens(view: Any) -> str:
    """Listens after it has looked."""
    view.frames(count=1)
    return "Answer: A" if view.sounds(window=(1.0, 2.0)) else "Answer: B"


@system
def guesses(question: str) -> str:
    """Looks at nothing."""
    del question
    return "Answer: A"


def test_functions_get_sounds_and_none_gets_lost(root: Path, store: Store) -> None:
    items = [question("q", CLIP), question("r", RECORDING)]
    done = ran(root, store, *items, systems=[listens, opens, guesses], conditions=["video", "muted", "speech-only"])
    assert (done.failed, done.remaining) == (0, 0)
    said = {
        (run.system, run.condition): [one.parsed for one in store.answers(run).values()] for run in store.runs("toy")
    }
    assert said["listens", "video"] == said["listens", "speech-only"] == ["A", "A"]
    assert said["listens", "muted"] == said["opens", "muted"] == ["B", "B"]
    assert said["opens", "video"] == ["A", "A"]
    with pytest.raises(
        ConfigurationError, match=r"looks takes no sound, which belongs to 2 questions of toy under video"
    ):
        ran(root, store, *items, systems=[looks], conditions=["video"])
    assert ran(root, store, *items, systems=[looks], conditions=["muted"]).failed == 0
    with pytest.raises(
        ConfigurationError, match=r"forgets looked at item 'r' and did not ask for its sound, which belongs"
    ):
        ran(root, store, *items, systems=[forgets], conditions=["video"])


def test_a_run_is_reproduced_with_its_sound_and_prompt(root: Path, store: Store, tmp_path: Path) -> None:
    item = question("q", CLIP)
    with FaultyServer("Answer: A") as server:
        client = ModelClient(ModelSpec(name="m", base_url=server.url))
        one = ModelSystem(client, prompt_for_benchmark("toy", sounding=True), sampling=Sampling(count=2))
        conditions = ["video", "muted", "speech-only", "text-only"]
        done = ran(root, store, item, systems=[one], conditions=conditions, client=client)
        sent = [request.texts for request in server.requests]
    assert done.remaining == 0
    again = Reproducer(store, "toy", lambda settings: MediaLibrary(root, settings, tmp_path / "fresh"))
    runs = store.runs("toy")
    states = asyncio.run(again.answers(runs))
    assert {(one.condition, one.state.value, one.pictures) for one in states} == {
        ("video", "same", 3), ("muted", "same", 2), ("speech-only", "same", 1), ("text-only", "same", 0),
    }  # fmt: skip
    for run in runs:
        (answer,) = store.answers(run).values()
        assert answer.status is Status.ANSWERED
        settings: Any = run.settings["system"]
        words = prompt_as_sent("toy", item, answer, settings, recorded(answer), run.condition)
        assert words is not None
        assert any(words[0] in text and words[1] in text for text in map("\n".join, sent)), run.condition


def test_another_sound_is_told_apart(root: Path, store: Store, tmp_path: Path) -> None:
    ran(root, store, question("r", RECORDING), systems=[listens], conditions=["video"])
    other = tmp_path / "media"
    other.mkdir()
    write_sound(other / "r.mp3", tones(3.0, [(0.5, 1.0, 901.0)]))
    again = Reproducer(store, "toy", lambda settings: MediaLibrary(other, settings, tmp_path / "fresh"))
    (found,) = asyncio.run(again.answers(store.runs("toy")))
    assert (found.state.value, found.media) == ("different", ("r.mp3",))
    assert found.reason.startswith("sound 1 of 1 (at 0 s) has other samples: ")


def test_what_servers_say_of_sound_is_understood() -> None:
    for said in ("At most 0 audio(s) may be provided in one prompt.", "This model does not support audio inputs"):
        assert isinstance(rejection(said), ConfigurationError)
    assert (
        type(rejection("Could not process the audio")).__name__
        == type(rejection("The audio is corrupt")).__name__
        == "SystemFaultError"
    )
