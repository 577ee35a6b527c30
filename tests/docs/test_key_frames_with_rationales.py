"""The page on key frames with rationales does what it says: models and physicians by rule, from videos to answers."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from proctor.tasks.clinicalskillqa import READER
from proctor_web.settings import open_store, review_store
from tests.docs.test_examples import agrees, called
from tests.support.faulty_server import FaultyServer
from tests.support.markdown import blocks, commands
from tests.support.reviewers import read_all, settle_all
from tests.support.scribe import scribe
from tests.support.web_study import accounts_of
from tools.docs import ROOT

PAGE = ROOT / "docs" / "tasks" / "key-frames-with-rationales.md"
A: dict[str, Any] = {"verdict": "remove"}


def people_read(folder: Path, line: str) -> None:
    """What people do in the browser after a command: the physicians differ on one order and on two sentences."""
    if not (folder / "skills-review").exists() or ("review update" not in line and "review status" not in line):
        return
    with review_of(folder / "skills-review") as connection:
        who = accounts_of(connection)
        first = json.loads((folder / "skills" / "work" / "frames" / "sim-001.json").read_text())["records"][0]["order"][
            0
        ]
        other: dict[str, Any] = {"verdict": "correct", "text": "An instrument is moved a little.", "frames": [first]}
        if "review update" in line:
            read_all(connection, who["ada"], {"sim-000-k001-s02": A, "sim-001-k001-s02": other})
            unclear: dict[str, Any] = {"sim-002-k001": {"unclear": True}}
            read_all(connection, who["bo"], {"sim-000-k001-s02": A, "sim-001-k001-s03": other} | unclear)
        else:
            assert sorted(settle_all(connection, who["cleo"], {})) == ["sim-001-k001", "sim-002-k001"]


@contextmanager
def review_of(folder: Path) -> Iterator[Connection]:
    engine = open_store(review_store(folder))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@pytest.mark.pages
def test_the_page_leads_from_videos_to_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    folder, seen = tmp_path / "skills", dict[str, str]()
    with FaultyServer(scribe) as server:
        for block in blocks(PAGE):
            if block.info == "yaml":
                for file in (tmp_path / "rendered" / "videos").iterdir():
                    shutil.copy(file, folder / "sources")
                (folder / "project.yaml").write_text(block.body.replace("http://localhost:8000/v1", server.url))
            elif block.info.startswith("yaml title="):
                (tmp_path / "skills-review").mkdir()
                (tmp_path / "skills-review" / "review.yaml").write_text(block.body)
            elif block.info == "console":
                for command in commands(block):
                    code, said = called(shlex.split(command.line))
                    assert code == 0, f"{command.line}\n{said}"
                    assert not command.output or agrees(command.output, said), said
                    seen[command.line] = said
                    people_read(tmp_path, command.line)
        asked = server.count
        code, said = called(["proctor", "build", "run", "skills"])
        assert (code, server.count) == (0, asked)

    items = folder / "items"
    benchmark = READER.load(items)
    assert benchmark.simulated
    assert len({one.group for one in benchmark.items}) == 3
    references = [json.loads(line) for line in (items / "references.jsonl").read_text().splitlines()]
    assert len(references) == len(benchmark.items) == 3
    for one in references:
        assert one["times"] == sorted(one["times"])
        assert len(one["sentences"]) == (3 if one["record"] == "sim-000-k001" else 4)
        assert one["rationale"] == " ".join(each["text"] for each in one["sentences"])
    sheet = (items / "DATASHEET.md").read_text(encoding="utf-8")
    for part in (
        "3 instances (3 of 4 frames) on 3 videos of 3 groups.",
        "Licence: CC0",
        "| refiner | another-model |",
        "- supported: ",
        "2 readers (R-",
        "| the whole order | 66.7 % |",
        "| sentences | ",
        "- 2 instances settled by an adjudicator",
        "- 5 of 6 orders by physicians as recorded",
        "- 0 instances left for that, or without a sentence",
    ):
        assert part in sheet
    assert "the same order" in seen["proctor review status skills-review orders"]
