"""Questions that have the form of an installed benchmark and a name of their own get what that benchmark has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import proctor
from proctor.core import Answer
from proctor.runs import Store
from tests.support.report_store import a_benchmark


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Answers to questions called "abdomen", in the form of FOCUS."""
    opened = Store(tmp_path / "own.db")
    benchmark = replace(a_benchmark(items=4, groups=4), name="abdomen", reader="focus")
    opened.add_benchmark(benchmark)
    run = opened.start_run("abdomen", "one", "video", {})
    opened.write(run, [(Answer(item_id=item.id, text="A", parsed="A"), []) for item in benchmark.items])
    return opened


def test_answers_are_exported_as_a_submission(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "answers.json"
    proctor.export(store, out, "abdomen", format="answer", systems="one")
    assert out.is_file()


def test_an_unknown_format_is_refused_with_those_of_the_reader(store: Store, tmp_path: Path) -> None:
    with pytest.raises(proctor.ProctorError, match=r"--format 'word' is unknown: choose one of .*responses"):
        proctor.export(store, tmp_path / "a.docx", "abdomen", format="word")


def test_scores_are_imported_under_the_name_of_the_file(tmp_path: Path) -> None:
    questions = tmp_path / "u1.csv"
    questions.write_text("id,group,question,answer\nq1,g1,Where?,liver\nq2,g2,What?,clip\n", encoding="utf-8")
    ratings, scores = tmp_path / "ratings.csv", tmp_path / "scores.csv"
    ratings.write_text("item,system,rater,value,answer\nq1,s,ann,1,the liver\nq2,s,ann,0,a stapler\n", encoding="utf-8")
    scores.write_text("item,system,value\nq1,s,0.9\nq2,s,0.1\n", encoding="utf-8")
    location = tmp_path / "u1.db"
    proctor.import_answers(str(questions), ratings, store=str(location))
    made = proctor.import_answers(str(questions), scores, store=str(location), scorer="mine")
    assert made.done == (f"2 scores by mine in {location}",)
