"""From narrated videos to a benchmark that runs under its own name, whatever letter the writer prefers."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import proctor
from proctor.core import Benchmark, Item, View
from proctor.tasks.simulated import narrate_folder, simulate
from proctor_build.pipeline import Project, run_stages
from tests.construction.pipeline.test_questions import events_csv, records
from tests.support.faulty_server import FaultyServer, Request
from tests.support.scribe import scribe

TITLE = "Procedures of our own"


def right_first(request: Request) -> str:
    """A writer that always puts the right option first, and a model without the video that takes the last one."""
    written = scribe(request)
    if not written.startswith("{"):  # a blind answer
        return "Answer: D" if written.startswith("Answer: ") else written
    said = json.loads(written)
    if "key" in said:
        right = f"{said['options'][said['key'] - 1]} {said['question'][-18:-12]}"  # none is asked for twice
        wrong = [f"we {verb} a thing of the kind that is there, to go on with it" for verb in ("hold", "wash", "turn")]
        said |= {"options": [right, *wrong], "key": 1}
    elif "groundtruth" in said:
        said["answer"] += f" {said['question'][-18:-12]}"
    return json.dumps(said)


@pytest.fixture(scope="module")
def narrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = simulate(tmp_path_factory.mktemp("narrated") / "sim", videos=3, seconds=30, size=(256, 144), seed=4)
    narrate_folder(folder, 4)
    return folder


def project_of(folder: Path, sim: Path, url: str, **questions: Any) -> Path:
    folder.mkdir()
    (folder / "sources").symlink_to(sim)
    model = {"name": "openai:m", "base_url": url, "retries": 0, "structured": "prompted"}
    sources = [
        {
            "id": one.stem, "video": f"sources/videos/{one.name}", "transcript": f"sources/narration/{one.stem}.vtt",
            "category": f"kind {number}", "group": f"teacher-{number}", "end": 28.0,
        }
        for number, one in enumerate(sorted((sim / "videos").iterdir()))
    ]  # fmt: skip
    stages = {
        "events": {"overlap_s": 30},
        "questions": {"per_event": 1.0} | questions,
        "split": {"shares": {"tuning": 0.4, "test": 0.6}},
    }
    settings = {"kind": "rexsonovqa", "title": TITLE, "licence": "CC BY 4.0", "sources": sources, "stages": stages}
    roles = {role: {**model} for role in ("writer", "screen", "judge")}
    (folder / "project.yaml").write_text(yaml.safe_dump(settings | {"models": roles}))
    return folder


def built(folder: Path, sim: Path, **questions: Any) -> Path:
    with FaultyServer(right_first) as server:
        project_of(folder, sim, server.url, **questions)
        states = asyncio.run(run_stages(Project(folder)))
    assert {one.state for one in states} == {"made"}
    return folder


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, narrated: Path) -> Path:
    """A finished project with choices and free responses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        return built(tmp_path_factory.mktemp("both") / "abdomen", narrated)


def is_own(benchmark: Benchmark, name: str) -> None:
    assert (benchmark.name, benchmark.title, benchmark.simulated) == (name, TITLE, True)
    assert benchmark.published is None
    assert "Licence: CC BY 4.0" in benchmark.notes
    said = " ".join((benchmark.title, *benchmark.notes)).casefold()
    assert "rexsono" not in said
    assert "published" not in said


def test_both_forms_are_read_as_the_project_holds_them(both: Path) -> None:
    final = {kind: [one for one in records(both, "split") if one["kind"] == kind] for kind in ("mcq", "free")}
    assert all(final.values())
    drafts = [one for one in records(both, "questions") if one["kind"] == "mcq"]
    assert len(final["mcq"]) == len(drafts)  # nothing is lost to the letter
    loaded = proctor.load(both / "items")
    is_own(loaded, "abdomen")
    assert Counter(item.reference.answer for item in loaded.items if item.options and item.reference) == Counter(
        "ABCD"[one["key"]] for one in final["mcq"]
    )
    letters = Counter("ABCD"[one["key"]] for one in final["mcq"])
    assert max(letters.values()) - min(letters[letter] for letter in "ABCD") <= 1
    by_text = {(item.question, item.options): item for item in loaded.items}
    for one in (*final["mcq"], *final["free"]):
        item = by_text[one["text"], tuple(one["options"])]
        assert (item.tags["split"], item.tags["category"]) == (one["part"], f"kind {one['source'][-1]}")
        assert item.group == f"teacher-{one['source'][-1]}"
    assert {"split", "category"} <= set(loaded.facets)
    assert (both / "items" / "DATASHEET.md").read_text().startswith(f"# {TITLE}\n")


def test_the_datasheet_audits_letters_that_were_dealt(both: Path) -> None:
    line = next(one for one in (both / "items" / "DATASHEET.md").read_text().splitlines() if "Before repair" in one)
    assert "always the option A) answers 100" not in line


@proctor.system
async def one_frame(item: Item, view: View) -> str:
    """Looks at one frame, and answers the same always."""
    assert len(await view.frames(count=1)) == 1
    return "Answer: A" if item.options else "Something is moved."


@pytest.mark.parametrize(("share", "kind"), [(0.0, "choice"), (1.0, "free_text")])
def test_one_form_alone_is_a_benchmark_and_runs(
    tmp_path: Path, narrated: Path, monkeypatch: pytest.MonkeyPatch, share: float, kind: str
) -> None:
    """Under its own name, in a new store, with its own videos, and without an option that says where they are."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    folder = built(tmp_path / kind, narrated, free_share=share)
    loaded = proctor.load(folder / "items")
    is_own(loaded, kind)
    assert {item.answer.kind for item in loaded.items} == {kind}
    assert len(loaded.items) == len(records(folder, "questions")) > 3
    store = tmp_path / "runs.db"
    evaluation = proctor.run(folder / "items", one_frame, store=store, conditions=["video"])
    assert evaluation.benchmark == kind
    shown = str(proctor.results(store, kind).rows)
    assert "published" not in shown
    assert "Gemini" not in shown


def at_random(request: Request) -> str:
    """A writer whose right option is the first one and no other than the wrong ones; nobody can know without the video."""
    drawn = random.Random(request.text)
    if '"key"' not in request.text:
        return scribe(request) if "You write items" in request.text else json.dumps({"answer": drawn.choice("ABCD")})
    number = int(re.findall(r"the first of them most: (\d+)", request.text)[0])
    words = [
        drawn.sample(("slide", "turn", "press", "lift", "tilt", "hold", "fan", "rock", "sweep"), 3) for _ in range(4)
    ]
    stem = f"Based on the clip, what is done here ({drawn.randrange(10**9)})?"
    said = {"type": 1, "events": [number], "question": stem, "groundtruth": "What is done at this point."}
    return json.dumps(said | {"options": [" ".join(some) for some in words], "key": 1})


def test_a_favourite_letter_costs_no_question(tmp_path: Path, film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve sources are enough for a rule to be chosen and to be surely better than chance: "always A" would be."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    root = tmp_path / "liver"
    (root / "sources").mkdir(parents=True)
    (root / "sources" / "a.mp4").symlink_to(film / "videos" / "sim-000.mp4")
    (root / "sources" / "a.vtt").write_text("WEBVTT\n\n00:00.000 --> 00:03.000\nWe begin.\n")
    sources = []
    for number in range(12):
        (root / "sources" / f"s{number}.csv").write_text(events_csv(5).replace("gently", "with care " * (number + 1)))
        files = {"video": "sources/a.mp4", "transcript": "sources/a.vtt", "events": f"sources/s{number}.csv"}
        sources.append({"id": f"s{number}", "start": number / 100, **files})
    with FaultyServer(at_random) as server:
        model = {"name": "openai:m", "base_url": server.url, "retries": 0, "structured": "prompted"}
        settings = {
            "kind": "rexsonovqa",
            "models": {"writer": {**model}, "screen": {**model}},
            "sources": sources,
            "stages": {
                "normalise": {"model": False},
                "questions": {"free_share": 0.0, "per_event": 1.0, "per_minute": 0},
                "screen": {"seeds": 1},
            },
        }
        (root / "project.yaml").write_text(yaml.safe_dump(settings))
        asyncio.run(run_stages(Project(root), until="repair"))
    drafts = records(root, "questions")
    assert len(drafts) == 60
    assert max(Counter(one["key"] for one in drafts).values()) <= 24  # of 15, by four in a row of each source
    assert len(records(root, "repair")) == 60
    assert not any("guessed by a rule" in flag for one in records(root, "repair") for flag in one["flags"])
