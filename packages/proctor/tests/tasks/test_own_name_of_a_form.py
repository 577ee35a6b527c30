"""Own files in the form of a published benchmark: their own name everywhere, and all that the form's reader offers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import proctor
from proctor.core import ABOUT, ProctorError, question_writer, reader_at
from proctor.shell import official_summary
from proctor.systems import prompt_for_benchmark


@pytest.fixture
def theatre(data: Path, tmp_path: Path) -> Path:
    """FOCUS's example questions as if a project had exported them."""
    folder = tmp_path / "theatre"
    folder.mkdir()
    for name in ("requests.json", "references.json"):
        shutil.copyfile(data / "focus-toolkit" / name, folder / name)
    about = {"name": "theatre", "reader": "focus", "track": "procedure", "title": "Our theatre", "licence": "CC0"}
    (folder / ABOUT).write_text(json.dumps(about))
    return folder


def test_the_store_the_prompt_and_the_official_summary_know_it(theatre: Path, tmp_path: Path) -> None:
    loaded = proctor.load(theatre)
    assert (loaded.name, loaded.read_by, loaded.title) == ("theatre", "focus", "Our theatre")
    assert not any("proctor score focus" in note or "results focus" in note for note in loaded.notes)
    assert any("proctor results theatre --protocol official" in note for note in loaded.notes)
    assert prompt_for_benchmark(loaded.read_by).name == "focus.txt.j2"
    store = tmp_path / "runs.db"
    made = proctor.run(theatre, "majority", conditions="text-only", store=store, limit=3, baselines=False)
    assert made.benchmark == "theatre"
    assert official_summary(store, "theatre", "official").json
    with pytest.raises(ProctorError, match="theatre"):
        proctor.results(store, "focus")
    again = proctor.run(
        "theatre", "random", conditions="text-only", store=store
    )  # by its name: the store knows the rest
    assert again.benchmark == "theatre"


def test_questions_to_hand_out_keep_the_name(theatre: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    loaded = proctor.load(theatre)

    write_questions = question_writer(reader_at(theatre).name, theatre)
    write_questions(theatre, out, [item.id for item in loaded.items[:3]], references=False)
    assert (proctor.load(out).name, len(proctor.load(out).items)) == ("theatre", 3)
