"""The doubles that packages test with: a scripted model, views of pictures, a short video, judgements in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from proctor import InfrastructureError, RefusalError
from proctor.core import Frame, Judgement, SystemFaultError
from proctor.core.formats import EVERY_KIND
from proctor.media import MediaLibrary, view
from proctor.models import Agent, AgentLimits, AgentTool, ToolResult
from proctor.testing import (
    MemoryJudgements,
    ScriptedCall,
    ScriptedModel,
    ScriptedRequest,
    example_items,
    picture,
    right_answer,
    tiny_clip,
    view_of,
)


class Verdict(BaseModel):
    """What a model says."""

    reason: str
    same: bool


class Inner(BaseModel):
    level: int = Field(ge=1, le=5)


class Wide(BaseModel):
    """A form of many kinds."""

    word: Literal["right", "wrong"]
    inner: Inner
    share: float = Field(gt=0)
    order: list[Literal["A", "B", "C"]] = Field(min_length=3, max_length=3)
    perhaps: str | None
    pair: tuple[int, str]
    sure: bool
    long: str = Field(min_length=8)


def said(model: ScriptedModel, *parts: Any, **more: Any) -> Any:
    return asyncio.run(model.ask(list(parts), **more))


def test_a_script_is_one_reply_a_list_or_a_function() -> None:
    one = ScriptedModel("yes")
    assert [said(one, "?").text for _ in range(2)] == ["yes", "yes"]
    several = ScriptedModel(["yes", RefusalError("no")])
    assert said(several, "?").text == "yes"
    with pytest.raises(RefusalError, match="no"):
        said(several, "?")
    with pytest.raises(SystemFaultError, match="scripted:model: found request 3, expected at most 2"):
        said(several, "?")
    assert said(ScriptedModel(lambda request: request.text.upper()), "abc").text == "ABC"


def test_requests_say_what_was_asked() -> None:
    model = ScriptedModel(Verdict(reason="r", same=True))
    frame = Frame(picture(), 2.0, "A")
    assert said(model, "Compare.", frame, system="You judge.", schema=Verdict).value.same
    (request,) = model.requests
    assert (request.text, request.system, request.pictures) == ("Compare.\nA, t = 2.0 s", "You judge.", 1)
    assert request.form is not None
    assert list(request.form["properties"]) == ["reason", "same"]


def test_without_a_script_it_says_the_smallest_value() -> None:
    assert said(ScriptedModel(), "?").text == "Scripted reply."
    value = said(ScriptedModel(), "?", schema=Wide).value
    assert value == Wide(
        word="right", inner=Inner(level=1), share=1, order=["A", "B", "C"], perhaps="text", pair=(0, "text"), sure=True,
        long="textxxxx",
    )  # fmt: skip


def test_it_reads_counts_and_fails_as_a_client_does() -> None:
    model = ScriptedModel(["I can't say.", Verdict(reason="r", same=False)])
    reply = said(model, "?", schema=Verdict)
    assert (reply.value.same, reply.usage.requests) == (False, 2)
    assert reply.usage.input_tokens > 0
    with pytest.raises(SystemFaultError, match="no readable reply in 3 tries"):
        said(ScriptedModel("I can't say."), "?", schema=Verdict)
    broken = ScriptedModel(InfrastructureError("the connection broke"))
    with pytest.raises(InfrastructureError, match=r"^the connection broke$"):
        said(broken, "?")
    assert len(broken.requests) == 1
    assert ScriptedModel(name="scripted:other", settings={"temperature": 0}).settings["model_settings"] == {
        "temperature": 0
    }
    asyncio.run(broken.aclose())


def test_it_calls_the_tools_of_an_agent() -> None:
    class RowLocation(BaseModel):
        """A position in the picture."""

        name: str

    locations: list[str] = []

    async def look(location: RowLocation) -> ToolResult:
        locations.append(location.name)
        return ToolResult("a clip")

    def script(request: ScriptedRequest) -> ScriptedCall:
        assert request.tools == ("look", "rate")
        return (
            ScriptedCall("rate", {"reason": "seen", "same": True})
            if locations
            else ScriptedCall("look", {"name": "left"})
        )

    agent = [AgentTool("look", "Look.", RowLocation, look)], "rate", Verdict, AgentLimits()
    reply = asyncio.run(Agent(ScriptedModel(script), *agent).run(["Find it."], "You look."))
    assert (locations, reply.value.value) == (["left"], {"reason": "seen", "same": True})
    plain = asyncio.run(Agent(ScriptedModel(), *agent).run(["Find it."], "You look."))
    assert plain.value.value == {"reason": "text", "same": True}


def test_replies_wait_while_they_are_held() -> None:
    async def run() -> tuple[bool, str]:
        model = ScriptedModel("yes")
        model.hold = asyncio.Event()
        task = asyncio.ensure_future(model.ask(["?"]))
        await model.asked.wait()
        waiting = not task.done()
        model.hold.set()
        return waiting, (await task).text

    assert asyncio.run(run()) == (True, "yes")


def test_a_view_shows_its_pictures() -> None:
    async def shown(**asked: Any) -> list[float | None]:
        seen = view_of([picture(step) for step in range(8)], times=[step / 2 for step in range(8)])
        assert (seen.condition, seen.span) == ("video", (0.0, 3.5))
        return [frame.time for frame in await seen.frames(**asked)]

    assert asyncio.run(shown()) == [step / 2 for step in range(8)]
    assert asyncio.run(shown(count=2)) == [1.0, 3.0]
    assert asyncio.run(shown(fps=1)) == [0.0, 1.0, 2.0, 3.0]
    assert asyncio.run(shown(window=(1.0, 2.0))) == [1.0, 1.5, 2.0]
    stills = view_of([picture(), picture(1)])
    assert [(frame.label, frame.time) for frame in asyncio.run(stills.frames(count=1))] == [("A", None), ("B", None)]
    assert (stills.asked, stills.span) == (1, None)
    with pytest.raises(OSError, match="disk"):
        asyncio.run(view_of([picture()], fault=OSError("disk")).frames())
    assert asyncio.run(view_of().frames()) == []


def test_a_tiny_clip_is_a_video(tmp_path: Path) -> None:
    clip = tiny_clip(tmp_path / "clip.mp4", seconds=2, fps=4)
    (item,) = example_items(["binary"])
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    seen = view(item.model_copy(update={"media": (clip,)}), "video", library)
    assert seen.span is not None
    assert list(seen.span) == pytest.approx([0.0, 2.0], abs=0.3)
    assert len({frame.jpeg for frame in asyncio.run(seen.frames(count=4))}) == 4


def test_there_is_an_example_of_every_format_and_its_right_answer_is_right() -> None:
    kinds = list(EVERY_KIND)
    items = example_items()
    assert [item.answer.kind for item in items] == kinds
    for item in items:
        answer = right_answer(item)
        assert item.reference is not None
        assert item.answer.match(item.reference.answer, item.answer.parse(answer.text, item.options)), item.id
    assert all(item.reference is None for item in example_items(references=False))
    with pytest.raises(ValueError, match="item 'example-binary' has no reference"):
        right_answer(example_items(["binary"], references=False)[0])


def test_judgements_in_memory_keep_the_first() -> None:
    first = Judgement(key="k", judge="a", item_id="q1", reply={})
    kept = MemoryJudgements(first)
    kept.put(first.model_copy(update={"judge": "b"}))
    assert (kept.get("k"), kept.get("other"), len(kept.kept)) == (first, None, 1)
