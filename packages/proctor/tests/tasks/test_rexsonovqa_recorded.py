"""ReXSonoVQA's recorded answers in every layout in which the authors' own scripts write them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from proctor.core import Benchmark, InputError
from proctor.tasks.rexsonovqa import READER
from tests.support.program import within

MODEL = "gemini-3-pro"
REPOSITORY = {"mcq": "final_scores_all_MCQ", "free": "final_scores_all_free"}


@pytest.fixture(scope="module")
def tree(data: Path) -> Path:
    return data / "rexsonovqa"


@pytest.fixture(scope="module")
def benchmark(tree: Path) -> Benchmark:
    return READER.load(tree)


def laid_out(
    tree: Path, to: Path, folders: dict[str, str], prefix: str = "score_pred_", *, scored: bool = True
) -> Path:
    """The published answers of one model in other folders and under other names; not scored on demand, as they
    are before the authors' evaluation script has run."""
    for kind, folder in folders.items():
        (to / folder).mkdir(parents=True, exist_ok=True)
        for file in (tree / "results" / MODEL / kind).glob("score_pred_*.json"):
            target = to / folder / file.name.replace("score_pred_", prefix)
            if scored:
                shutil.copyfile(file, target)
                continue
            entries = json.loads(file.read_text())
            for entry in entries:
                for key in ("eval_score", "eval_max_score", "judge_explanation", "judge_error_type"):
                    entry.pop(key, None)
            target.write_text(json.dumps(entries))
    return to


def test_the_authors_repository_itself_is_read(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    """Its folders lie beside scripts, questions and a summary of the evaluation."""
    laid_out(tree, tmp_path, REPOSITORY)
    (tmp_path / "final_scores_all_MCQ" / "batch_summary.json").write_text('{"total_items": 320}')
    shutil.copyfile(tree / "video_metadata_new.json", tmp_path / "video_metadata_new.json")
    assert READER.read_recorded(tmp_path, benchmark) == READER.read_recorded(tree / "results" / MODEL, benchmark)


def test_blind_files_are_a_run_without_the_video(tree: Path, tmp_path: Path) -> None:
    blind = laid_out(tree, tmp_path / "b", {"mcq": "mcq", "free": "free"}, "score_pred_blind_")
    store = tmp_path / "t.db"
    told = ("import", "rexsonovqa", blind, "--data", tree, "--name", "g", "--store", store)
    code, text = within(*told)
    assert code == 0, text
    assert "657 answers and 337 judgements as g / text-only" in " ".join(text.split())
    code, text = within(*told, "--condition", "video")
    assert code != 0
    assert "found video, expected text-only, as the files' names say" in " ".join(text.split())


def test_answers_that_are_not_scored_yet(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    scored = READER.read_recorded(tree / "results" / MODEL, benchmark)
    laid_out(tree, tmp_path, {"mcq": "mcq", "free": "free"}, "pred_", scored=False)
    plain = READER.read_recorded(tmp_path, benchmark)
    assert plain.answers == scored.answers
    assert not plain.judgements
    assert not plain.scores
    assert "337 free responses are not scored yet (proctor score)" in plain.notes
    assert "judge" not in plain.settings


def test_one_kind_alone(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    laid_out(tree, tmp_path, {"mcq": "mcq"})
    recorded = READER.read_recorded(tmp_path, benchmark)
    assert len(recorded.answers) == 320
    assert "no free responses here" in recorded.notes
    assert not any("have no recorded answer" in note for note in recorded.notes)
    assert READER.read_recorded(tmp_path / "mcq", benchmark) == recorded


def test_scored_beside_not_scored_as_the_scripts_leave_them(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    """`qwen_result` holds both: mcq, free, scores_mcq2, scores_free2."""
    laid_out(tree, tmp_path, {"mcq": "mcq", "free": "free"}, "pred_", scored=False)
    laid_out(tree, tmp_path, {"mcq": "scores_mcq2", "free": "scores_free2"})
    assert READER.read_recorded(tmp_path, benchmark) == READER.read_recorded(tree / "results" / MODEL, benchmark)


def test_two_models_in_one_folder_are_refused(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    laid_out(tree, tmp_path, {"mcq": "mcq"})
    shutil.copytree(tree / "results" / "qwen3.5-397b" / "mcq", tmp_path / "qwen", copy_function=shutil.copy)
    with pytest.raises(InputError, match=r"item 1: found a second answer to .* expected one answer a question"):
        READER.read_recorded(tmp_path, benchmark)


def test_two_conditions_in_one_folder_are_refused(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    laid_out(tree, tmp_path, {"mcq": "mcq"})
    laid_out(tree, tmp_path, {"free": "blind"}, "score_pred_blind_")
    with pytest.raises(InputError, match="expected a folder of one condition alone"):
        READER.read_recorded(tmp_path, benchmark)
