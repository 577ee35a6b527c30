"""The page on making a benchmark from videos does what it says, with a scripted model instead of the named one."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from tests.docs.test_examples import agrees, called
from tests.support.ear import SENTENCES, ear
from tests.support.faulty_server import FaultyServer
from tests.support.markdown import blocks, commands
from tests.support.scribe import scribe
from tests.support.sounds import tones, write_video
from tools.docs import ROOT

PAGE = ROOT / "docs" / "tasks" / "make-a-benchmark.md"


@pytest.mark.pages
def test_the_page_leads_from_videos_to_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    seen = []
    with FaultyServer(scribe) as server:
        for block in blocks(PAGE):
            if block.info == "yaml":
                for one in ("videos", "narration"):
                    for file in (tmp_path / "narrated" / one).iterdir():
                        shutil.copy(file, tmp_path / "abdomen" / "sources")
                text = block.body.replace("http://localhost:8000/v1", server.url)
                assert text.count(server.url) == 3
                (tmp_path / "abdomen" / "project.yaml").write_text(text)
            elif block.info == "console":
                for command in commands(block):
                    line = re.sub(r"--seconds 40", "--seconds 24", command.line)
                    code, said = called(shlex.split(line))
                    assert code == 0, f"{line}\n{said}"
                    assert not command.output or agrees(command.output, said), said
                    seen.append((line, server.count, said))
        datasheet = tmp_path / "abdomen" / "items" / "DATASHEET.md"
        first, count = datasheet.read_text(encoding="utf-8"), server.count
        (tmp_path / "abdomen" / "reviewed.md").write_text("## Reviewed by\n\n2 readers of 8 items.\n")
        code, said = called(["proctor", "build", "run", "abdomen", "--until", "export"])
        assert (code, server.count) == (0, count), said
        again = datasheet.read_text(encoding="utf-8")
        assert again == first.replace(
            "Nobody yet: no reading of a clinician is recorded in this project.", "2 readers of 8 items."
        )
    asked = {line: count for line, count, _ in seen}
    redone = [count for line, count, _ in seen if line.startswith("proctor build run abdomen --redo questions")]
    before = asked["proctor build run abdomen --until export"]
    assert before == asked["proctor build status abdomen"]
    assert redone[0] > before  # one item is asked for again
    assert redone[1] == redone[0]  # and comes back out of the journal
    items = tmp_path / "abdomen" / "items"
    for part in (
        "## Sources",
        "## Models and prompts",
        "## What can be guessed",
        "Licence: CC0",
        "no reading of a clinician",
    ):
        assert part in first
    questions = [one for file in items.glob("benchmark_questions/*/*.json") for one in json.loads(file.read_text())]
    assert len(questions) >= 8
    status = next(said for line, _, said in seen if line == "proctor build status abdomen")
    assert all(
        stage in status
        for stage in ("transcript", "normalise", "events", "questions", "screen", "repair", "split", "export")
    )
    history = next(said for line, _, said in seen if line.startswith("proctor build status abdomen sim"))
    assert "transcript" in history
    assert "questions" in history


@pytest.mark.pages
def test_speech_is_recognised_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = [one for one in blocks(PAGE) if one.info.startswith("yaml title=")]
    assert called(["proctor", "build", "new", "abdomen", "--kind", "rexsonovqa"])[0] == 0
    write_video(tmp_path / "abdomen" / "sources" / "spoken.mp4", 12, tones(12, [(2, 5, 300), (7, 10, 400)]))
    with FaultyServer(ear) as server:
        part = yaml.safe_load(block.body.replace("http://localhost:8000/v1", server.url))
        settings = {"kind": "rexsonovqa", "stages": {"normalise": {"model": False}}, **part}
        (tmp_path / "abdomen" / "project.yaml").write_text(yaml.safe_dump(settings))
        code, said = called(["proctor", "build", "run", "abdomen", "--until", "normalise"])
        assert code == 0, said
        assert called(["proctor", "build", "status", "abdomen"])[0] == 0
    made = json.loads((tmp_path / "abdomen/work/normalise/spoken.json").read_text())["records"]
    assert [one["text"] for one in made] == [SENTENCES[300], SENTENCES[400]]
