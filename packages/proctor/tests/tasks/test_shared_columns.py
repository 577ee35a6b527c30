"""One column serves two fields, or none loses it; ids that are made up match nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import proctor
from proctor.core import InputError
from proctor.tasks.questions.columns import recognise
from proctor.tasks.questions.question_set import read_questions


@pytest.mark.parametrize(
    ("columns", "given", "found"),
    [
        (["id", "question", "answer"], {"group": ["id"]}, {"id": "id", "group": "id"}),
        (["Frage-ID", "question", "answer"], {"group": ["frage-id"]}, {"id": "Frage-ID", "group": "Frage-ID"}),
        (["video", "question", "answer"], {"group": ["video"]}, {"media": "video", "group": "video"}),
        (["video", "question", "answer"], {"id": ["video"]}, {"media": "video", "id": "video"}),
        (["patient", "question", "answer"], {"id": ["patient"]}, {"group": "patient", "id": "patient"}),
        (["item", "question", "answer"], {"media": ["item"]}, {"id": "item", "media": "item"}),
        (["id", "Nr", "question", "answer"], {"group": ["id"]}, {"id": "id", "group": "id"}),
        (["case", "question", "answer"], {"group": ["case"]}, {"id": "", "group": "case"}),
        (["id", "question", "answer"], {"group": ["id"], "id": ["id"]}, {"id": "id", "group": "id"}),
        (["id", "question", "reference", "answer"], {"rationale": ["reference"]}, {"answer": "answer", "rationale": "reference"}),
        (["id", "question", "answer", "key"], {"criteria": ["answer"], "answer": ["key"]}, {"answer": "key", "criteria": "answer"}),
    ],
)  # fmt: skip
def test_a_named_column_stays_what_it_is_called(
    columns: list[str], given: dict[str, list[str]], found: dict[str, str]
) -> None:
    mapping = recognise(columns, given)
    assert {name: mapping.one(name) for name in found} == found
    assert not {*mapping.facets} & {*found.values()}


def test_no_content_is_read_twice() -> None:
    """What somebody names as criteria is not the answer, too."""
    mapping = recognise(["id", "question", "answer"], {"criteria": ["answer"]})
    assert (mapping.one("answer"), mapping.one("criteria")) == ("", "answer")


QUESTIONS = [("q1", "Is it on?", "yes"), ("q2", "Is it open?", "no"), ("q3", "Is it cut?", "yes")]


def written(folder: Path, head: str, rows: Sequence[tuple[str, ...]], name: str = "q.csv") -> Path:
    file = folder / name
    file.write_text("\n".join([head, *map(",".join, rows)]) + "\n", encoding="utf-8")
    return file


def test_ids_stay_when_they_are_the_group_and_answers_reach_their_questions(tmp_path: Path) -> None:
    file = written(tmp_path, "id,question,answer", QUESTIONS[::-1])
    answers = written(tmp_path, "id,answer", [("q1", "yes"), ("q2", "yes")], "a.csv")
    made = proctor.import_answers(file, answers, name="m", columns={"group": "id"}, store=tmp_path / "s.db")
    (run,) = made.runs
    given = made.store.answers(run)
    assert {name: answer.parsed for name, answer in given.items()} == {"q1": True, "q2": True}


def test_ids_that_are_made_up_match_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, "ward,question,answer", [("w", *rest) for _, *rest in QUESTIONS])
    found = read_questions(file, columns={"group": ["ward"]})
    assert [item.id for item in found.items] == ["row-1", "row-2", "row-3"]
    assert "No column of ids: questions are called row-1, row-2, … (--map id=COLUMN names theirs)" in found.notes
    named = {"columns": {"group": "ward"}, "store": tmp_path / "s.db", "name": "m"}
    for ids in (["q1", "q2"], ["row-1", "row-2"]):
        answers = written(tmp_path, "id,answer", [(one, "yes") for one in ids], "a.csv")
        with pytest.raises(
            InputError, match="expected an id, and the questions have none: --map id=COLUMN names its column"
        ):
            proctor.import_answers(file, answers, **named)  # type: ignore[arg-type]
    made = proctor.import_answers(file, answers, id_column="position", **named)  # type: ignore[arg-type]
    assert {*made.store.answers(made.runs[0])} == {"row-1", "row-2"}
    out = tmp_path / "out.jsonl"
    proctor.export(made.store, out, "q", systems="m")
    again = proctor.import_answers(file, out, **{**named, "store": tmp_path / "again.db"})  # type: ignore[arg-type]
    assert {*again.store.answers(again.runs[0])} == {"row-1", "row-2"}  # Proctor wrote them itself


def test_a_recorded_prompt_proves_a_made_up_id(tmp_path: Path) -> None:
    file = written(tmp_path, "ward,question,answer", [("w", *rest) for _, *rest in QUESTIONS])
    named = {"columns": {"group": "ward"}, "store": tmp_path / "s.db", "name": "m"}
    right = [("row-1", "Is it on? Say yes or no.", "yes"), ("row-3", "Is it cut?", "no")]
    made = proctor.import_answers(file, written(tmp_path, "id,prompt,response", right, "a.csv"), **named)  # type: ignore[arg-type]
    assert len(made.store.answers(made.runs[0])) == 2
    swapped = [("row-2", *right[0][1:])]
    with pytest.raises(InputError, match="row 2: found 'Is it on"):
        proctor.import_answers(file, written(tmp_path, "id,prompt,response", swapped, "b.csv"), **named)  # type: ignore[arg-type]


def test_ratings_need_ids(tmp_path: Path) -> None:
    file = written(tmp_path, "ward,question,answer", [("w", *rest) for _, *rest in QUESTIONS])
    rated = written(tmp_path, "item,system,rater,answer,tone", [("row-1", "m", "ana", "yes", "3")], "r.csv")
    with pytest.raises(InputError, match="found ids, expected ids of the questions' own, and they have none"):
        proctor.import_answers(file, rated, columns={"group": "ward"}, store=tmp_path / "s.db")
