"""The page on key frames with rationales does what it says: models and physicians by rule, from videos to answers."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from proctor.tasks.clinicalskillqa import READER
from tests.docs.test_examples import agrees, called
from tests.support.faulty_server import FaultyServer
from tests.support.markdown import blocks, commands
from tests.support.reviewers import fill_in, reviewer, right_orders
from tests.support.scribe import scribe
from tools.docs import ROOT

PAGE = ROOT / "docs" / "tasks" / "key-frames-with-rationales.md"
A = {"verdict": "remove"}
B = {"verdict": "correct", "correction": "An instrument is moved a little."}


def people_write(folder: Path, line: str) -> None:
    """What the physicians do after a command: they differ on one order and two sentences."""
    table = folder / "sources" / line.rsplit("/", maxsplit=1)[-1].split(maxsplit=1)[0]
    orders = right_orders(folder)
    if "physician-a" in line:
        fill_in(table, reviewer(orders, "Dr Ada", sim_000_k001_s02=A, sim_001_k001_s02=B))
    elif "physician-b" in line:
        other = {"order": "unclear", "comment": "nothing moves"}
        fill_in(table, reviewer(orders, "Dr Bo", sim_000_k001_s02=A, sim_001_k001_s03=B, sim_002_k001=other))
    elif "consensus skills --table" in line:
        rows = fill_in(table, lambda row: row | {"verdict": "accept" if row["id"] in orders else "keep", "by": "both"})
        assert [row["id"] for row in rows] == ["sim-001-k001-s02", "sim-001-k001-s03", "sim-002-k001"]
        assert rows[0]["a"] == "correct An instrument is moved a little."
        assert (rows[2]["b"], rows[2]["text"][:14]) == ("unclear (nothing moves)", "Recorded order")


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
            elif block.info == "console":
                for command in commands(block):
                    code, said = called(shlex.split(command.line))
                    waits = "--table" in command.line
                    assert code == int(waits), f"{command.line}\n{said}"
                    assert not command.output or agrees(command.output, said), said
                    seen[command.line] = said
                    people_write(folder, command.line)
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
        "Dr Ada and Dr Bo.",
        "- the same of the order by both: 0.67 [",
        "- Cohen's κ of keep, correct, remove: ",
    ):
        assert part in sheet
    assert "the same of the order by both: 0.67" in seen["proctor build status skills"]
    page = (tmp_path / "frames.html").read_text(encoding="utf-8")
    assert page.count("<img ") == 3 * 8
    first = "proctor build physicians skills --table skills/sources/physician-a.csv --sheet frames.html"
    assert "sources/physician-b.csv: 3 orders and 12 sentences to review" in seen[first]
