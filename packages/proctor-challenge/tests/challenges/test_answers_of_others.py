"""Answers to questions that a phase does not have: they are refused before anything is scored, and ids that a container
sees are of use to nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor_challenge.check_process import checked
from proctor_challenge.settings import read_challenge
from tests.support.whole_challenge import PRE, TEST, whole_folder_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_folder_of(tmp_path_factory.mktemp("others"))


def ids(folder: Path, phase: str) -> list[str]:
    return [one["qID"] for one in json.loads((folder / "sealed" / phase / "requests.json").read_text())]


def found_in(folder: Path, file: Path, names: list[str]) -> list[str]:
    file.write_text(json.dumps([{"qID": one, "content": "yes"} for one in names]))
    settings, phase = read_challenge(folder), read_challenge(folder).phase(PRE)
    asked = {"kind": "file", "path": str(file), "benchmark": settings.benchmark, "track": settings.track}
    budget = phase.budget.model_dump(mode="json")
    return [*checked(asked | {"data": str(folder / phase.questions), "budget": budget}).problems]


def test_answers_to_the_phase_s_own_questions_fit(folder: Path, tmp_path: Path) -> None:
    assert found_in(folder, tmp_path / "answers.json", ids(folder, PRE)) == []


def test_answers_to_another_phase_s_questions_are_refused(folder: Path, tmp_path: Path) -> None:
    later = ids(folder, TEST)[0]
    assert not set(ids(folder, TEST)) & set(ids(folder, PRE))
    found = found_in(folder, tmp_path / "answers.json", [*ids(folder, PRE), later])
    assert len(found) >= 1
    assert any(later in one for one in found)


def test_two_answers_to_one_question_are_refused(folder: Path, tmp_path: Path) -> None:
    own = ids(folder, PRE)
    found = found_in(folder, tmp_path / "answers.json", [*own, own[3]])
    assert any(own[3] in one for one in found)
