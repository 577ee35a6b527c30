"""A model as a system: what it is told under a view, and what its reply becomes."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Answer, Frame, InfrastructureError, InputError, Item, RefusalError
from proctor.core.formats import ChoiceFormat, FreeTextFormat, TimestampsFormat
from proctor.models import ModelClient, ModelSpec, load_prompt
from proctor.systems import ModelSystem, Sampling, prompt_for_benchmark
from tests.support.faulty_server import Fault, FaultyServer
from tests.support.snapshot import assert_frozen

SNAPSHOTS = Path(__file__).parent / "snapshots"


@dataclass
class Shown:
    """A view that shows given frames and notes what it was asked for."""

    shown: list[Frame]
    condition: str = "video"
    span: tuple[float, float] | None = (60.0, 75.0)
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def frames(self, **asked: Any) -> list[Frame]:
        self.asked.append(asked)
        return self.shown


def frames(*times: float, prefix: str = "") -> list[Frame]:
    """As the media room labels them: by the video's own clock."""
    return [Frame(b"\xff\xd8", time, f"{prefix}t = {time:.1f} s") for time in times]


def item(**changes: Any) -> Item:
    fields: dict[str, Any] = {
        "id": "q1",
        "group": "v1",
        "question": "Which way does the probe move?",
        "answer": ChoiceFormat(),
        "options": ("cranially", "caudally"),
    }
    return Item.model_validate(fields | changes)


def answer(server: FaultyServer, view: Shown, one: Item | None = None, **system: Any) -> Answer:
    async def run() -> Answer:
        client = ModelClient(
            ModelSpec(name="openai:m", base_url=server.url, backoff_s=0.001, retries=1, timeout_s=600.0)
        )
        try:
            return await ModelSystem(client, **system).answer(one or item(), view)
        finally:
            await client.aclose()

    return asyncio.run(run())


def test_the_reply_is_the_answer_as_it_came() -> None:
    with FaultyServer(" Answer: B, it slides down.", cached_tokens=5) as server:
        got = answer(server, Shown(frames(60.0, 61.5)))
    assert (got.item_id, got.text, got.parsed) == ("q1", " Answer: B, it slides down.", None)
    assert len(str(got.extra.pop("messages_sha256"))) == 64
    assert got.extra == {"model": "m", "finish_reason": "stop", "cut_off": False, "frames": 2}
    assert (got.usage.requests, got.usage.cached_tokens) == (1, 5)
    assert server.requests[0].image_bytes == (2, 2)


def test_thoughts_in_the_text_and_corrections_are_recorded() -> None:
    for text, thinks, corrects in (
        ("<think>B? No.</think>Answer: A", True, None),
        ("<unused94>thought B?<unused95>Answer: A", True, None),
        ("Answer: A\n\nHold on. Answer: B", None, True),
        ("Answer: A\nThe answer is A.\nFinal answer: A", None, None),
    ):
        with FaultyServer(text) as server:
            got = answer(server, Shown([]))
        assert (got.extra.get("thoughts_in_text"), got.extra.get("corrected")) == (thinks, corrects), text


def test_a_reply_that_was_cut_says_so() -> None:
    with FaultyServer("Answer: B, be", script=[Fault.LENGTH]) as server:
        got = answer(server, Shown([]))
    assert (got.text, got.extra["finish_reason"], got.extra["cut_off"]) == ("Answer: B, be", "length", True)


def test_times_are_told_from_the_start_of_the_clip() -> None:
    with FaultyServer() as server:
        answer(server, Shown(frames(60.0, 61.5, 74.5)))
    assert server.requests[0].texts[1:4] == ("t = 0.0 s", "t = 1.5 s", "t = 14.5 s")


def test_where_the_answer_is_a_time_the_videos_own_clock_is_told() -> None:
    """The reference counts from the video's start, so the model must, too."""
    one = item(answer=TimestampsFormat(), options=())
    with FaultyServer() as server:
        answer(server, Shown(frames(60.0, 95.25, 3721.0)), one)
    assert server.requests[0].texts[1:4] == (
        "t = 60.0 s (00:01:00)",
        "t = 95.2 s (00:01:35)",
        "t = 3721.0 s (01:02:01)",
    )


def test_of_several_clips_each_keeps_its_own_clock() -> None:
    shown = frames(61.0, prefix="clip 1, ") + frames(5.5, prefix="clip 2, ")
    with FaultyServer() as server:
        answer(server, Shown(shown))
    assert server.requests[0].texts[1:3] == ("clip 1, t = 61.0 s", "clip 2, t = 5.5 s")


def test_images_keep_their_labels_and_have_no_times() -> None:
    with FaultyServer() as server:
        answer(server, Shown([Frame(b"\xff\xd8", None, "A")], span=None))
    assert server.requests[0].texts[1] == "A"
    assert "The question is about the picture above." in server.requests[0].text


def test_a_question_that_never_had_media_says_nothing_of_a_video() -> None:
    for prompt in (None, prompt_for_benchmark("rexsonovqa")):
        with FaultyServer() as server:
            answer(server, Shown([]), prompt=prompt)
        text = server.requests[0].text.casefold()
        assert [word for word in ("video", "clip", "picture", "frame", "image", "above") if word in text] == []
        assert server.requests[0].image_bytes == ()


def test_the_sampling_reaches_the_view() -> None:
    view = Shown([])
    with FaultyServer() as server:
        answer(server, view)
        answer(server, view, sampling=Sampling(count=8))
        answer(server, view, sampling=Sampling(count=32, fps=2.0))
    assert view.asked == [{"count": None, "fps": None}, {"count": 8, "fps": None}, {"count": 32, "fps": 2.0}]


def test_a_refusal_and_a_fault_are_raised_for_the_engine() -> None:
    with FaultyServer(script=[Fault.CONTENT_FILTER]) as server, pytest.raises(RefusalError):
        answer(server, Shown([]))
    with FaultyServer(faults=1.0, kinds=[Fault.RESET]) as server, pytest.raises(InfrastructureError):
        answer(server, Shown([]))


def test_settings_are_what_changes_the_answers(tmp_path: Path) -> None:
    own = tmp_path / "mine.txt.j2"
    own.write_text("{{ question }}")
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1", settings={"temperature": 0}))
    system = ModelSystem(client, load_prompt(own), "mine", Sampling(count=4))
    assert system.name == "mine"
    assert ModelSystem(client).name == "openai:m"
    assert system.supports(item())
    assert system.settings == {
        "model": "openai:m",
        "base_url": "http://localhost:9/v1",
        "model_settings": {"temperature": 0},
        "structured": "auto",
        "prompt": "mine.txt.j2",
        "prompt_sha256": hashlib.sha256(b"{{ question }}").hexdigest(),
        "sampling": {"count": 4, "fps": None, "video_as": "frames"},
    }
    asyncio.run(client.aclose())


@pytest.mark.parametrize("benchmark", ["simulated", "../judges/three_level", "model_answer.txt", ""])
def test_a_benchmark_without_a_prompt_of_its_own_gets_the_general_one(benchmark: str) -> None:
    assert prompt_for_benchmark(benchmark).name == "model_answer.txt.j2"


SHOWN = {
    "frames": Shown(frames(60.0, 61.5)),
    "single": Shown(frames(60.0), "single-frame"),
    "blind": Shown([], "text-only"),
    "nothing": Shown([]),  # a question that never had anything to be seen
}


@pytest.mark.parametrize("prompt", ["model_answer", "rexsonovqa", "rexsonovqa.paper"])
@pytest.mark.parametrize("shown", list(SHOWN))
@pytest.mark.parametrize("kind", ["choice", "free_text"])
def test_the_prompts_are_frozen(prompt: str, shown: str, kind: str) -> None:
    one = item() if kind == "choice" else item(answer=FreeTextFormat(), options=())
    wording = prompt_for_benchmark(*prompt.split("."))
    with FaultyServer() as server:
        answer(server, SHOWN[shown], one, prompt=wording)
    assert_frozen("\n-----\n".join(server.requests[0].texts) + "\n", SNAPSHOTS / f"{prompt}_{kind}_{shown}.txt")


@pytest.mark.parametrize("prompt", ["model_answer", "rexsonovqa", "rexsonovqa.paper", "focus"])
def test_who_may_see_nothing_is_told_so_and_asked_for_a_guess(prompt: str) -> None:
    with FaultyServer() as server:
        answer(server, SHOWN["blind"], prompt=prompt_for_benchmark(*prompt.split(".")))
    text = " ".join(server.requests[0].text.split())
    assert "there is nothing to see" in text
    assert "give your best guess" in text
    assert not any(word in text for word in ("above", "pictures above", "Watch the video"))


@pytest.mark.parametrize("prompt", ["model_answer", "rexsonovqa", "rexsonovqa.paper", "focus"])
def test_one_picture_is_not_called_several(prompt: str) -> None:
    with FaultyServer() as server:
        answer(server, SHOWN["single"], prompt=prompt_for_benchmark(*prompt.split(".")))
    text = server.requests[0].text
    assert "The picture above is" in text
    assert not any(word in text for word in ("pictures", "frames"))


def test_a_prompt_is_chosen_by_name_or_as_a_file(tmp_path: Path) -> None:
    own = tmp_path / "mine.txt.j2"
    own.write_text("{{ question }}")
    paper = prompt_for_benchmark("rexsonovqa", "paper")
    assert (paper.name, paper.variant) == ("rexsonovqa.paper.txt.j2", "paper")
    assert (prompt_for_benchmark("rexsonovqa", str(own)).variant, prompt_for_benchmark("x").variant) == ("mine", "")
    with pytest.raises(InputError, match=r"--prompt: found 'papers', expected a template file, or one of: paper"):
        prompt_for_benchmark("rexsonovqa", "papers")
    with pytest.raises(InputError, match=r"--prompt: found 'paper', expected a template file \(simulated\)"):
        prompt_for_benchmark("simulated", "paper")
