"""Benchmarks go out as tasks: Inspect and lmms-eval run them themselves, and score as Proctor does."""

from __future__ import annotations

import ast
import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from PIL import Image as Picture

import proctor
from proctor.core import Image, InputError, Item, Reference, UsageError, VideoClip, read_model, reader_or_default
from proctor.core.formats import BinaryFormat, FreeTextFormat
from proctor.interchange import LmmsTask
from proctor.interchange.tasks import TaskAbout, media_of, read_task
from proctor.media import MediaLibrary
from proctor.media import view as media_view
from proctor.systems import Sent, frames_as_sent, prompt_for_benchmark, prompt_text
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video
from tests.support.foreign import foreign
from tests.support.lamp_benchmark import lamps


@pytest.fixture
def made(tmp_path: Path) -> proctor.Evaluation:
    """A run that says "yes" to all: right for eight of twelve."""
    store = tmp_path / "s.db"
    return proctor.run(
        lamps(), lambda frames: "Answer: yes", name="yes", conditions="text-only", store=store, baselines=False
    )


def test_inspect_runs_the_task(made: proctor.Evaluation, tmp_path: Path) -> None:
    made.export(tmp_path / "task", format="inspect-task")
    found = foreign("tests.support.foreign_tasks", "inspect", tmp_path / "task", tmp_path)
    assert found["mean"] == pytest.approx(8 / 12, abs=1e-9)
    assert found["ours"] == pytest.approx(found["mean"], abs=1e-9)
    assert found["stderr"] == pytest.approx(0, abs=1e-9)  # clustered: every room has the same share
    assert found["asked"][1] == 'Question: Is lamp 1 on?\n\nStart your reply with "Answer: yes" or "Answer: no".'


def test_the_task_sends_frames_as_proctor_cuts_them(tmp_path: Path) -> None:
    """The example in the task's first lines runs with a server that takes no video: it gets the frames of the span, with
    their times, byte for byte as a run of Proctor sends them. Whole files are refused by that provider."""
    media = tmp_path / "media"
    media.mkdir()
    write_clock_video(media / "b.mp4", ClockVideo(times_ms=range(0, 4000, 40)))
    clip = VideoClip(source="b.mp4", start=1.0, end=3.0)
    item = Item(
        id="b", group="g", question="On?", answer=BinaryFormat(), media=(clip,), reference=Reference(answer=True)
    )
    bare = item.model_copy(update={"id": "n", "media": (), "question": "Off?"})
    store = _stored(tmp_path, proctor.Benchmark("seen", "Seen", (item, bare), (proctor.ACCURACY,), "accuracy"))
    made = proctor.export(store, tmp_path / "task", "seen", format="inspect-task", media=media)
    assert not any("span" in line or "frames" in line for line in made.dropped)
    assert "-T frames=false" in (tmp_path / "task" / "task.py").read_text("utf-8")
    found = foreign("tests.support.foreign_tasks", "server", tmp_path / "task", media, tmp_path)
    sent = found["True"]
    assert (sent["status"], sent["errors"]) == ("success", [])
    (with_frames,) = [one for one in sent["asked"] if "On?" in str(one)]
    content = with_frames[1]["content"]
    pictures = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    view = media_view(item, "video", MediaLibrary(media))
    system, frames, user = asyncio.run(frames_as_sent(item, view, prompt_for_benchmark("seen")))
    assert pictures == [f"data:image/jpeg;base64,{base64.b64encode(frame.jpeg).decode()}" for frame in frames]
    assert [read_clock(frame.jpeg) for frame in frames] == [25, 50]  # seconds 1 and 2 of the video
    texts = [part["text"] for part in content if part["type"] == "text"]
    assert texts == ["t = 0.0 s", "t = 1.0 s", user]
    assert with_frames[0]["content"] == system
    (without,) = [one for one in sent["asked"] if "Off?" in str(one)]
    assert "image_url" not in str(without)
    assert any("Video content is not currently supported" in error for error in found["False"]["errors"])


def test_lmms_eval_runs_the_task(made: proctor.Evaluation, tmp_path: Path) -> None:
    made.export(tmp_path / "task", format="lmms-eval-task")
    made.export(tmp_path / "logs", format="lmms-eval")
    found = foreign("tests.support.foreign_tasks", "lmms", tmp_path / "task", tmp_path / "logs", "lamps_text_only")
    assert found["results"]["accuracy,none"] == pytest.approx(8 / 12, abs=1e-9)
    assert "Question: Is lamp 1 on?" in found["asked"]


def _seen(title: str = "Seen") -> proctor.Benchmark:
    right = Reference(answer=True)
    items = (
        Item(
            id="a", group="g", question="Red?", answer=BinaryFormat(), media=(Image(source="a.png"),), reference=right
        ),
        Item(
            id="b",
            group="g",
            question="On?",
            answer=BinaryFormat(),
            media=(VideoClip(source="b.mp4", end=2.0),),
            reference=right,
        ),
        Item(id="c", group="h", question="Why?", answer=FreeTextFormat(), reference=Reference(answer="so")),
    )
    return proctor.Benchmark("seen", title, items, (proctor.ACCURACY,), "accuracy")


def _stored(tmp_path: Path, benchmark: proctor.Benchmark) -> Path:
    store = tmp_path / "seen.db"
    proctor.open_store(store).add_benchmark(benchmark)
    return store


def test_media_are_handed_over_and_blind_is_blind(tmp_path: Path) -> None:
    store, media = _stored(tmp_path, _seen()), tmp_path / "media"
    media.mkdir()
    Picture.new("RGB", (4, 4), "red").save(media / "a.png")
    (media / "b.mp4").write_bytes(b"no real video")
    written = proctor.export(store, tmp_path / "task", "seen", format="lmms-eval-task", media=media)
    assert any("spans of clips" in line for line in written.dropped)
    assert any("scores of 1 item in free text" in line for line in written.dropped)
    lines = read_task(tmp_path / "task")
    task = LmmsTask(str(media))
    first, second, third = ([*task.visual(line.model_dump())] for line in lines)
    assert first[0].getpixel((0, 0)) == (255, 0, 0)
    assert second == [str(media / "b.mp4")]
    assert third == []
    assert "The video above is a recording" in task.text(lines[1].model_dump())
    assert task.results(lines[0].model_dump(), ["yes"]) == {"accuracy": 1.0}
    assert task.results(lines[0].model_dump(), []) == {"accuracy": 0.0}
    assert task.results(lines[2].model_dump(), ["so"]) == {}
    (media / "b.mp4").unlink()
    with pytest.raises(InputError, match=r"item b: found no b\.mp4"):
        media_of(lines[1], media)
    proctor.export(store, tmp_path / "blind", "seen", format="lmms-eval-task", conditions="text-only")
    assert [line.media for line in read_task(tmp_path / "blind")] == [[], [], []]
    assert "Question: Red?" in read_task(tmp_path / "blind")[0].prompt


def test_no_title_gets_out_of_the_files(tmp_path: Path) -> None:
    store = _stored(tmp_path, _seen('""" + __import__("os").system("true") + """{media!r}'))
    for form, name in (("inspect-task", "task.py"), ("lmms-eval-task", "utils.py")):
        proctor.export(store, tmp_path / form, "seen", format=form)
        tree = ast.parse((tmp_path / form / name).read_text(encoding="utf-8"))
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "system"]
    head = (tmp_path / "lmms-eval-task" / "seen_video.yaml").read_text(encoding="utf-8").replace("!function ", "")
    assert yaml.safe_load(head)["process_results"] == "utils.process_results"


def test_what_a_task_can_not_be(made: proctor.Evaluation, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--no-references"):
        made.export(tmp_path / "a", format="inspect-task", no_references=True)
    with pytest.raises(UsageError, match="needs Proctor's views: choose video or text-only"):
        proctor.export(made.store, tmp_path / "b", "lamps", format="inspect-task", conditions="black")
    assert not (tmp_path / "a").exists()


def test_the_task_of_an_own_benchmark_shows_the_prompt_of_its_reader(tmp_path: Path) -> None:
    """Its name is no installed benchmark's: the frames would come with the general prompt, unlike in a run."""
    store = _stored(tmp_path, replace(_seen(), name="theatre", reader="focus"))
    for form in ("inspect-task", "lmms-eval-task"):
        proctor.export(store, tmp_path / form, "theatre", format=form)
    about = read_model(tmp_path / "inspect-task" / "about.json", TaskAbout, "what an exported task is about")
    item = _seen().items[0]
    sent = Sent(1, timed=False)
    system, _ = prompt_text(
        prompt_for_benchmark(about.benchmark), item, reader_or_default(about.benchmark).briefing, sent
    )
    assert system == read_task(tmp_path / "inspect-task")[0].system == read_task(tmp_path / "lmms-eval-task")[0].system
    assert system != read_task(_task_of(tmp_path, "seen"))[0].system


def _task_of(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / "plain"
    folder.mkdir()
    proctor.export(_stored(folder, _seen()), folder / "task", name, format="inspect-task")
    return folder / "task"
